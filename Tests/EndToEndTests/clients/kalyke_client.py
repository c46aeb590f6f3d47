"""kalyke-apns: httpx2 over httpcore2; `iat` as a string, a new token and connection for every push."""

import asyncio
import os

from settings import CA, GONE, GOOD, HOST, KEY, KEY_ID, PORT, TEAM_ID, UNKNOWN

# What httpx2 trusts beside the system's authorities.
os.environ["SSL_CERT_FILE"] = CA

from kalyke import ApnsClient, ApnsConfig, Payload, PayloadAlert  # noqa: E402
from kalyke.exceptions import ApnsProviderException  # noqa: E402


class Client(ApnsClient):
    _base_url = f"https://{HOST}:{PORT}"


async def main():
    client = Client(
        use_sandbox=False, team_id=TEAM_ID, auth_key_id=KEY_ID, auth_key_filepath=KEY
    )
    for token, topic in (GOOD, UNKNOWN, GONE):
        payload = Payload(alert=PayloadAlert(title="Hello", body="from kalyke"))
        try:
            await client.send_message(token, payload, ApnsConfig(topic=topic))
            print("accepted")
        except ApnsProviderException as problem:
            print(type(problem).__name__)


asyncio.run(main())
