"""pyapns-client: httpx over httpcore; `iat` as a floating-point number."""

import sys

# This file's own name must not hide the library's.
sys.path.append(sys.path.pop(0))

from pyapns_client import (  # noqa: E402
    APNSClient,
    APNSDeviceException,
    IOSNotification,
    IOSPayload,
    IOSPayloadAlert,
)
from settings import CA, GONE, GOOD, HOST, KEY, KEY_ID, PORT, TEAM_ID, UNKNOWN  # noqa: E402

APNSClient.BASE_URLS = {APNSClient.MODE_PROD: f"https://{HOST}:{PORT}"}
client = APNSClient(APNSClient.MODE_PROD, CA, KEY, KEY_ID, TEAM_ID)
for token, topic in (GOOD, UNKNOWN, GONE):
    alert = IOSPayloadAlert(title="Hello", body="from pyapns-client")
    notification = IOSNotification(payload=IOSPayload(alert=alert), topic=topic)
    try:
        client.push(notification, token)
        print("accepted")
    except APNSDeviceException as problem:
        print(type(problem).__name__.removesuffix("Exception"))
client.close()
