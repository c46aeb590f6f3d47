"""A phone on the POST stream: prints the relay's lines, sends up what comes on standard input.

phone.py HOST:PORT DEVICE SECRET [--ca FILE] [--ack] [--never-read]
--ack acknowledges by itself. --never-read opens the stream, says so and reads no byte of it."""

import argparse
import json
import sys
import threading

import http2

parser = argparse.ArgumentParser()
for name in ("address", "device", "secret"):
    parser.add_argument(name)
parser.add_argument("--ca")
parser.add_argument("--ack", action="store_true")
parser.add_argument("--never-read", action="store_true")
options = parser.parse_args()

connection = http2.Connection(options.address, options.ca, 4096 if options.never_read else None)
stream = connection.request(
    "POST",
    f"/v1/devices/{options.device}/stream",
    [("authorization", f"bearer {options.secret}")],
)


def speak():
    for line in sys.stdin:
        connection.send(stream, line.encode())


if options.never_read:
    print("not reading", flush=True)
    sys.stdin.read()
    sys.exit()

threading.Thread(target=speak, daemon=True).start()
rest = b""
for kind, flags, _, payload in connection.frames():
    if kind == http2.HEADERS and http2.status(payload) not in (None, 200):
        print(f"status {http2.status(payload)}", flush=True)
    if kind == http2.DATA:
        *lines, rest = (rest + payload).split(b"\n")
        for line in lines:
            print(line.decode(), flush=True)
            message = json.loads(line)
            if options.ack and message["type"] == "notification":
                ack = {"type": "ack", "id": message["uniqueId"], "outcome": "newData"}
                connection.send(stream, json.dumps(ack).encode() + b"\n")
    if kind in (http2.DATA, http2.HEADERS) and flags & http2.END_STREAM:
        break
    if kind == http2.RST_STREAM:
        print("reset", flush=True)
        break
