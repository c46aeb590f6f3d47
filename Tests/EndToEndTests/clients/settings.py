"""What every library is told: where the relay is, whom to trust, which key to sign with."""

import os

HOST, PORT = os.environ["RELAY"].rsplit(":", 1)
CA = os.environ["RELAY_CA"]
KEY, KEY_ID, TEAM_ID = os.environ["KEY"], os.environ["KEY_ID"], os.environ["TEAM_ID"]
# Device token and topic: one that works, one that nobody has, one whose app was removed.
GOOD = os.environ["TOKEN"], os.environ["TOPIC"]
UNKNOWN = "ab" * 32, os.environ["TOPIC"]
GONE = os.environ["GONE_TOKEN"], os.environ["GONE_TOPIC"]
