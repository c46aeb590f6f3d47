"""mopyapns as a program has it: Apple's name and port, nothing of a relay or a proxy."""

from apns2.client import APNsClient
from apns2.credentials import TokenCredentials
from apns2.errors import APNsException
from apns2.payload import Payload
from settings import GONE, GOOD, KEY, KEY_ID, TEAM_ID, UNKNOWN

for place in {}, {"use_sandbox": True, "use_alternative_port": True}:
    client = APNsClient(TokenCredentials(KEY, KEY_ID, TEAM_ID), **place)
    for token, topic in GOOD, UNKNOWN, GONE:
        try:
            client.send_notification(token, Payload(alert="Hello from mopyapns"), topic)
            print("accepted")
        except APNsException as refusal:
            print(type(refusal).__name__)
