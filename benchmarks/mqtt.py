"""What a broker of MQTT 3.1.1 does, for scripts/bench: as little of the protocol as that takes.

  mqtt.py fleet PORT SUBSCRIBERS PUBLICATIONS SECONDS QOS   subscribers of one topic, a connection each
  mqtt.py push PORT SECONDS RATE                            another client, whose publications are
                                                            acknowledged
  mqtt.py pair PORT SECONDS RATE                            one of each over TLS, both with QoS 1

Prints JSON. One thread with epoll and blocking writes: what arrives is counted by its length.
"""

import json
import select
import socket
import ssl
import sys
import time

TOPIC = b"score"
PAYLOAD = b'{"aps":{"event":"update","timestamp":1790000000,"content-state":{"n":1}},"sent":123456789}'


def field(data):
    return len(data).to_bytes(2, "big") + data


def packet(kind, body):
    assert len(body) < 16384
    size = [len(body)] if len(body) < 128 else [len(body) & 127 | 128, len(body) >> 7]
    return bytes([kind, *size]) + body


def publication(topic, qos, number=0):
    name = field(topic) + (number.to_bytes(2, "big") if qos else b"")
    return packet(0x30 | qos << 1, name + PAYLOAD)


def connect(port, name, number, context=None):
    # A source address for each 10,000, which is what the ports of one suffice for.
    peer = socket.create_connection(
        ("127.0.0.1", port), source_address=(f"127.0.0.{2 + number // 10000}", 0))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context:
        peer = context.wrap_socket(peer)
    # A clean session, no keep-alive.
    peer.sendall(packet(0x10, field(b"MQTT") + b"\x04\x02\x00\x00" + field(name)))
    expect(peer, b"\x20\x02\x00\x00")
    return peer


def expect(peer, answer):
    got = b""
    while len(got) < len(answer):
        data = peer.recv(len(answer) - len(got))
        if not data:
            sys.exit("the broker hung up")
        got += data
    if got != answer:
        sys.exit(f"the broker answers {got.hex()}, not {answer.hex()}")


def fleet(port, count, publications, seconds, qos):
    peers, poll = {}, select.epoll()
    for number in range(count):
        peer = connect(port, b"phone%d" % number, number)
        peer.sendall(packet(0x82, b"\x00\x01" + field(TOPIC) + bytes([qos])))
        expect(peer, bytes([0x90, 3, 0, 1, qos]))
        peers[peer.fileno()] = peer
        poll.register(peer.fileno(), select.EPOLLIN)
    publisher = connect(port, b"provider", count)
    length = len(publication(TOPIC, qos))
    print(f"{count} subscribe", file=sys.stderr, flush=True)
    lasts, arrived = [], 0
    start = time.monotonic()
    for number in range(publications):
        due = start + (number + 0.5) * seconds / publications
        time.sleep(max(0, due - time.monotonic()))
        begin, due = time.monotonic(), count
        publisher.sendall(publication(TOPIC, qos, number + 1))
        while due and time.monotonic() < begin + 30:
            for each, _ in poll.poll(1):
                data = peers[each].recv(4096)
                if len(data) != length:
                    sys.exit(f"{len(data)} bytes came, not {length}")
                if qos:
                    # PUBACK with the packet's number, which is behind the topic.
                    at = 2 + len(field(TOPIC))
                    peers[each].send(b"\x40\x02" + data[at:at + 2])
                due -= 1
        if qos:
            expect(publisher, b"\x40\x02" + (number + 1).to_bytes(2, "big"))
        lasts.append(int((time.monotonic() - begin) * 1e6))
        arrived += count - due
    print(json.dumps({"lastMicroseconds": sorted(lasts), "arrived": arrived}))


def push(port, seconds, rate):
    """QoS 1, each sent when it is due; its time is until it is acknowledged, counted from then."""
    provider, phone = connect(port, b"other", 0), connect(port, b"others-phone", 0)
    phone.sendall(packet(0x82, b"\x00\x01" + field(b"other") + b"\x00"))
    expect(phone, bytes([0x90, 3, 0, 1, 0]))
    provider.setblocking(False)
    phone.setblocking(False)
    count, sent, delays, rest = seconds * rate, 0, [], b""
    start = time.monotonic()
    while len(delays) < count:
        while sent < count and start + sent / rate <= time.monotonic():
            sent += 1
            provider.send(publication(b"other", 1, (sent - 1) % 60000 + 1))
        wait = max(0, start + sent / rate - time.monotonic()) if sent < count else 1
        for peer in select.select([provider, phone], [], [], wait)[0]:
            data = peer.recv(65536)
            if peer is phone:
                continue
            rest += data
            now = time.monotonic()
            for _ in range(len(rest) // 4):
                delays.append(now - start - len(delays) / rate)
            rest = rest[len(rest) // 4 * 4:]
    delays.sort()
    print(json.dumps({"p99": int(delays[len(delays) * 99 // 100] * 1e6)}))


def pair(port, seconds, rate):
    """Publications to one subscriber, who acknowledges each, as the broker does to the provider."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    provider = connect(port, b"provider", 0, context)
    phone = connect(port, b"phone", 0, context)
    phone.sendall(packet(0x82, b"\x00\x01" + field(b"alert") + b"\x01"))
    expect(phone, bytes([0x90, 3, 0, 1, 1]))
    provider.settimeout(0)
    phone.settimeout(0)
    length, at = len(publication(b"alert", 1)), 2 + len(field(b"alert"))
    count, sent, acknowledged, arrived = seconds * rate, 0, 0, 0
    answers, lines, start = b"", b"", time.monotonic()
    while acknowledged < count or arrived < count:
        due = min(count, int((time.monotonic() - start) * rate))
        if sent < due:
            numbers = range(sent, due)
            send(provider, b"".join(publication(b"alert", 1, n % 60000 + 1) for n in numbers))
            sent = due
        for peer in select.select([provider, phone], [], [], 0.001)[0]:
            data = read(peer)
            if peer is provider:
                answers += data
                acknowledged += len(answers) // 4
                answers = answers[len(answers) // 4 * 4:]
                continue
            lines += data
            whole = len(lines) // length
            send(phone, b"".join(
                b"\x40\x02" + lines[n * length + at:n * length + at + 2] for n in range(whole)))
            arrived += whole
            lines = lines[whole * length:]
        if time.monotonic() > start + seconds + 30:
            sys.exit(f"{acknowledged} of {count} acknowledged, {arrived} arrived")
    print(json.dumps({"acknowledged": arrived}))


def send(peer, data):
    peer.settimeout(30)
    peer.sendall(data)
    peer.settimeout(0)


def read(peer):
    """All that is there: TLS may have more than the socket shows."""
    data = b""
    try:
        while part := peer.recv(65536):
            data += part
    except ssl.SSLWantReadError:
        pass
    return data


if __name__ == "__main__":
    {"fleet": fleet, "push": push, "pair": pair}[sys.argv[1]](*map(int, sys.argv[2:]))
