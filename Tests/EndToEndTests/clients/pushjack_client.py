"""pushjack, a client of the binary provider API: command 2, feedback; only hosts and ports changed.

It sends to a token that works, one whose app was removed, and the first again, all in one batch,
goes on behind the refused one by itself, and asks the feedback service twice.
"""

import os
import sys

# This file's own name must not hide the library's.
sys.path.append(sys.path.pop(0))

from pushjack import APNSClient  # noqa: E402

good, gone = os.environ["TOKEN"], os.environ["GONE_TOKEN"]


class Client(APNSClient):
    host, port = os.environ["LEGACY"].rsplit(":", 1)
    feedback_host, feedback_port = os.environ["FEEDBACK"].rsplit(":", 1)
    port, feedback_port = int(port), int(feedback_port)


client = Client(os.environ["CERTIFICATE"])
response = client.send([good, gone, good], "from pushjack", error_timeout=3)
for failed, error in response.token_errors.items():
    print("refused", failed == gone, error.code, error.identifier)
print("accepted", len(response.successes))
for _ in range(2):
    expired = client.get_expired_tokens()
    print("expired", len(expired), all(token.token == gone for token in expired))
client.close()
