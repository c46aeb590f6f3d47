"""What aioapns makes of a fault: pushes at once, each outcome in a line of its own."""

import asyncio
import logging
import os
import ssl

import aioapns
from aioapns.connection import APNsProductionClientProtocol
from settings import CA, GOOD, HOST, KEY, KEY_ID, PORT, TEAM_ID

APNsProductionClientProtocol.APNS_SERVER = HOST
APNsProductionClientProtocol.APNS_PORT = int(PORT)
logging.getLogger("aioapns").setLevel(logging.CRITICAL)
PATIENCE = float(os.environ.get("PATIENCE", "20"))


async def push(client, number):
    message = {"aps": {"alert": f"Number {number}"}}
    request = aioapns.NotificationRequest(device_token=GOOD[0], message=message)
    try:
        result = await asyncio.wait_for(client.send_notification(request), PATIENCE)
    except asyncio.TimeoutError:
        return "no answer"
    except Exception as problem:
        return type(problem).__name__
    return "accepted" if result.is_successful else result.description


async def main():
    with open(KEY) as file:
        key = file.read()
    context = ssl.create_default_context(cafile=CA)
    client = aioapns.APNs(
        key=key, key_id=KEY_ID, team_id=TEAM_ID, topic=GOOD[1], ssl_context=context
    )
    count = int(os.environ.get("COUNT", "1"))
    for outcome in await asyncio.gather(*(push(client, number) for number in range(count))):
        print(outcome)


asyncio.run(main())
