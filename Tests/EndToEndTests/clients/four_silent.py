"""Four silent pushes by aioapns; prints what the relay made of each."""

import asyncio
import ssl

import aioapns
from aioapns.connection import APNsProductionClientProtocol
from settings import CA, GOOD, HOST, KEY, KEY_ID, PORT, TEAM_ID

APNsProductionClientProtocol.APNS_SERVER = HOST
APNsProductionClientProtocol.APNS_PORT = int(PORT)


async def main():
    with open(KEY) as file:
        key = file.read()
    context = ssl.create_default_context(cafile=CA)
    client = aioapns.APNs(
        key=key, key_id=KEY_ID, team_id=TEAM_ID, topic=GOOD[1], ssl_context=context
    )
    for _ in range(4):
        request = aioapns.NotificationRequest(
            device_token=GOOD[0],
            message={"aps": {"content-available": 1}},
            apns_topic=GOOD[1],
            push_type=aioapns.PushType.BACKGROUND,
            priority=5,
        )
        result = await asyncio.wait_for(client.send_notification(request), 20)
        print("accepted" if result.is_successful else result.description)


asyncio.run(main())
