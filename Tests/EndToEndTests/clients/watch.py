"""A provider that sends nothing: says `connected`, then tells how the relay ends the connection.

watch.py HOST:PORT [--ca FILE]"""

import struct
import sys

import http2

address = sys.argv[1]
ca = sys.argv[3] if sys.argv[2:3] == ["--ca"] else None
for kind, flags, _, payload in http2.Connection(address, ca).frames():
    if kind == http2.SETTINGS and not flags & http2.ACK:
        print("connected", flush=True)
    if kind == http2.GOAWAY:
        code = struct.unpack(">I", payload[4:8])[0]
        print(f"goaway {code} {payload[8:].decode()}", flush=True)
print("closed", flush=True)
