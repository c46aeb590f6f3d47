"""An honest provider and honest phones, alone and beside each attack of hostile.py, for scripts/abuse.

  abuse.py PUSHRELAY SECONDS SERVER_CORE LOAD_CORE [ATTACK...]

Starts a relay in the clear and one with TLS. Prints a table in Markdown. Exits with 1 when a bar is missed.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from relay import Relay, TOPIC, answers, clients, percentile
import hostile
import http2

RATE, PHONES = 500, 10
# The bars: times of the p99 alone, bytes of memory on top, descriptors left behind.
MOST_TIMES, MOST_BYTES = 3, 64 << 20
# What is below this is the clock of these two processes, not the relay.
LEAST_MILLISECONDS = 2.0


class Honest:
    """Ten phones on a connection and a provider on another, until `end`."""

    def __init__(self, relay):
        self.relay = relay
        enrolled = answers(relay.device, relay.ca, [("POST", "/v1/devices", [], b"")] * PHONES)
        self.devices = [(one["device"], [("authorization", "bearer " + one["secret"])]) for one in enrolled]
        self.tokens = [one["token"] for one in answers(relay.device, relay.ca, [
            ("PUT", f"/v1/devices/{id}/apps/{TOPIC}", fields, b"") for id, fields in self.devices])]
        self.answered, self.delivered, self.sent = [], [], 0
        self.due, self.lock = {}, threading.Lock()
        self.phones = http2.Connection(relay.device, relay.ca)
        self.streams = [
            self.phones.request("POST", f"/v1/devices/{id}/stream", fields) for id, fields in self.devices]
        self.provider = http2.Connection(relay.provider, relay.ca)
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.read, daemon=True).start()

    def listen(self):
        rest = {}
        for kind, _, stream, payload in self.phones.frames():
            if kind != http2.DATA:
                continue
            *lines, rest[stream] = (rest.get(stream, b"") + payload).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if message["type"] == "notification":
                    self.delivered.append(time.monotonic() - message["payload"]["due"])
                    ack = {"type": "ack", "id": message["uniqueId"], "outcome": "newData"}
                    self.phones.send(stream, json.dumps(ack).encode() + b"\n")
                elif message["type"] == "keepalive":
                    self.phones.send(stream, b'{"type":"keepalive"}\n')

    def read(self):
        for kind, _, stream, payload in self.provider.frames():
            if kind == http2.HEADERS and stream in self.due:
                assert http2.status(payload) == 200, payload
                self.answered.append(time.monotonic() - self.due.pop(stream))

    def push(self, seconds):
        """At their due times, whatever came of those before. Returns p99 until answer and phone in ms, and how many
        are not delivered."""
        self.answered, self.delivered = [], []
        fields = [("authorization", "bearer " + self.relay.bearer), ("apns-topic", TOPIC),
                  ("apns-push-type", "alert")]
        start = time.monotonic()
        for index in range(int(seconds * RATE)):
            due = start + index / RATE
            time.sleep(max(0, due - time.monotonic()))
            stream = self.provider.request("POST", f"/3/device/{self.tokens[index % PHONES]}", fields)
            self.due[stream] = due
            self.provider.send(stream, json.dumps({"aps": {"alert": "x" * 180}, "due": due}).encode(), end=True)
        wait = time.monotonic() + 5
        while len(self.delivered) < seconds * RATE and time.monotonic() < wait:
            time.sleep(.01)
        return percentile(self.answered), percentile(self.delivered), int(seconds * RATE) - len(self.delivered)


def main():
    program, seconds, server_core, load_core, *wanted = sys.argv[1:]
    seconds = float(seconds)
    server = server_core.split() if server_core else []
    load = load_core.split() if load_core else []
    if load:
        os.sched_setaffinity(0, {int(load[-1])})
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        relays = [Relay(program, f"{folder}/{name}", server, name == "tls") for name in ("clear", "tls")]
        try:
            missed = table(relays, seconds, load, wanted)
        finally:
            for relay in relays:
                relay.stop()
    sys.exit(1 if missed else 0)


def table(relays, seconds, load, wanted):
    honest = [Honest(relay) for relay in relays]
    for one in honest:
        one.push(2)  # Not the first of its kind.
    clear = [*hostile.ENDLESS, *hostile.BY_STREAM, *hostile.ADMIN, *(name for name in hostile.CROWDS if "TLS" not in name)]
    encrypted = [*(name for name in hostile.CROWDS if "TLS" in name), "handshakes", "PING", "rapid reset"]
    print("| attack | p99 alone: answer, phone | beside it | times | memory | descriptors left | what the attacker had |")
    print("|---|---|---|---|---|---|---|")
    missed = False
    for place, names in ((0, clear), (1, encrypted)):
        relay, one = relays[place], honest[place]
        for name in names:
            if wanted and name not in wanted:
                continue
            alone = one.push(seconds)
            memory, descriptors = relay.memory(), relay.descriptors()
            address = relay.admin if "admin" in name else relay.device if "device" in name else relay.provider
            command = [sys.executable, str(clients / "hostile.py"), address,
                       str(seconds + 1), "--only", name, "--bearer", relay.bearer]
            # Whatever the core has left; the honest ones go first there.
            attacker = subprocess.Popen(["nice", "-n", "19", *load, *command, *(["--ca", relay.ca] if relay.ca else [])],
                                        stdout=subprocess.PIPE, text=True)
            time.sleep(.5)
            beside = one.push(seconds)
            most = relay.memory() - memory
            said = attacker.communicate()[0].strip()
            left, wait = relay.descriptors() - descriptors, time.monotonic() + 15
            while left > 0 and time.monotonic() < wait:
                time.sleep(.2)
                left = relay.descriptors() - descriptors
            times = max(beside[i] / max(alone[i], LEAST_MILLISECONDS) for i in (0, 1))
            bad = times > MOST_TIMES or most > MOST_BYTES or left > 0 or beside[2] > 0
            missed = missed or bad
            mark = "**" if bad else ""
            print(f"| {name}{', TLS' if relay.ca and 'TLS' not in name else ''} | {alone[0]:.1f}, {alone[1]:.1f} ms | "
                  f"{beside[0]:.1f}, {beside[1]:.1f} ms | {mark}{times:.1f}{mark} | {most / (1 << 20):.0f} MB | {left} | "
                  f"{said[32:].strip()}{f'; {beside[2]} not delivered' if beside[2] else ''} |", flush=True)
    return missed


main()
