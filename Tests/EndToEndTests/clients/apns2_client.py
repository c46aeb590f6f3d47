"""apns2-up: hyper, which is an HTTP/2 client of its own; no `apns-id`."""

import hyper.tls
from apns2.client import APNsClient
from apns2.credentials import TokenCredentials
from apns2.errors import APNsException
from apns2.payload import Payload
from settings import CA, GONE, GOOD, HOST, KEY, KEY_ID, PORT, TEAM_ID, UNKNOWN

hyper.tls.cert_loc = CA
APNsClient.LIVE_SERVER, APNsClient.DEFAULT_PORT = HOST, int(PORT)
client = APNsClient(TokenCredentials(KEY, KEY_ID, TEAM_ID))
for token, topic in (GOOD, UNKNOWN, GONE):
    try:
        client.send_notification(token, Payload(alert="Hello from apns2"), topic)
        print("accepted")
    except APNsException as problem:
        print(type(problem).__name__)
