"""aioapns with the two settings for a proxy that it has; whom to trust is in the environment."""

import asyncio
import logging
import os

import aioapns
from settings import GONE, GOOD, KEY, KEY_ID, TEAM_ID, UNKNOWN

logging.getLogger("aioapns").setLevel(logging.CRITICAL)


async def main():
    host, port = os.environ["HTTPS_PROXY"].removeprefix("http://").rsplit(":", 1)
    with open(KEY) as file:
        key = file.read()
    for sandbox in False, True:
        client = aioapns.APNs(
            key=key, key_id=KEY_ID, team_id=TEAM_ID, topic=GOOD[1], use_sandbox=sandbox,
            proxy_host=host, proxy_port=int(port),
        )
        for token, topic in GOOD, UNKNOWN, GONE:
            request = aioapns.NotificationRequest(
                device_token=token, message={"aps": {"alert": "Hello"}}, apns_topic=topic
            )
            result = await asyncio.wait_for(client.send_notification(request), 20)
            print("accepted" if result.is_successful else result.description)


asyncio.run(main())
