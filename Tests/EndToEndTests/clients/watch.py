"""A provider that begins a push and is in no hurry to end it: says `connected`, tells the relay's GOAWAYs,
sends its body only after the last, and tells the answer.

watch.py HOST:PORT DEVICE_TOKEN TOPIC PROVIDER_TOKEN [--ca FILE]"""

import struct
import sys

import http2

address, token, topic, provider_token = sys.argv[1:5]
ca = sys.argv[6] if sys.argv[5:6] == ["--ca"] else None
connection = http2.Connection(address, ca)
fields = [("authorization", f"bearer {provider_token}"), ("apns-topic", topic)]
stream = connection.request("POST", f"/3/device/{token}", fields)
for kind, flags, _, payload in connection.frames():
    if kind == http2.SETTINGS and flags & http2.ACK:
        # The relay has read our settings; the request came right behind them.
        print("connected", flush=True)
    if kind == http2.GOAWAY:
        code = struct.unpack(">I", payload[4:8])[0]
        last, reason = struct.unpack(">I", payload[:4])[0], payload[8:].decode()
        print(f"goaway {code} {reason or last}", flush=True)
        if reason:
            connection.send(stream, b'{"aps":{"alert":"Late"}}', end=True)
    if kind == http2.HEADERS:
        print(f"status {http2.status(payload)}", flush=True)
print("closed", flush=True)
