"""aioapns: its own protocol over h2 and asyncio; no ALPN, `host` instead of `:authority`."""

import asyncio
import logging
import ssl

import aioapns
from aioapns.connection import APNsProductionClientProtocol
from settings import CA, GONE, GOOD, HOST, KEY, KEY_ID, PORT, TEAM_ID, UNKNOWN

APNsProductionClientProtocol.APNS_SERVER = HOST
APNsProductionClientProtocol.APNS_PORT = int(PORT)
logging.getLogger("aioapns").setLevel(logging.CRITICAL)


async def main():
    with open(KEY) as file:
        key = file.read()
    context = ssl.create_default_context(cafile=CA)
    client = aioapns.APNs(
        key=key, key_id=KEY_ID, team_id=TEAM_ID, topic=GOOD[1], ssl_context=context
    )
    for token, topic in (GOOD, UNKNOWN, GONE):
        message = {"aps": {"alert": "Hello from aioapns"}}
        request = aioapns.NotificationRequest(
            device_token=token, message=message, apns_topic=topic
        )
        result = await asyncio.wait_for(client.send_notification(request), 20)
        if token == GONE[0]:
            assert result.timestamp, result
        print("accepted" if result.is_successful else result.description)


asyncio.run(main())
