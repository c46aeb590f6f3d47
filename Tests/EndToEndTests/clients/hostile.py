"""What a client can do that makes work and brings nothing, each for a while.

    hostile.py HOST:PORT SECONDS [--once] [--only NAME] [--ca FILE] [--bearer TOKEN]

Prints a line for each: bytes sent, and how often it was sent away. With --once each of the floods ends
when it was. --only does one, of the floods or of the crowds; a crowd is many connections that each do
little, and is for the provider listener unless its name says otherwise.
"""
import argparse
import select
import socket
import ssl
import sys
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
TOKEN = b"ab" * 32

def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

def number(rest):
    out = b""
    while rest > 127:
        out += bytes([rest & 127 | 128])
        rest >>= 7
    return out + bytes([rest])

def text(value):
    return bytes([len(value)]) + value if len(value) < 127 else b"\x7f" + number(len(value) - 127) + value

def field(name, value):
    return b"\0" + text(name) + text(value)

HEAD = b"".join(field(*pair) for pair in [(b":method", b"POST"), (b":scheme", b"https"),
                                          (b":path", b"/3/device/" + TOKEN), (b":authority", b"a")])
HELLO = PREFACE + frame(SETTINGS, 0, 0)
OPEN = frame(HEADERS, 4, 1, HEAD)

# The same frame again and again.
ENDLESS = {
    "empty DATA": frame(DATA, 0, 1), "DATA of one byte": frame(DATA, 0, 1, b"x"),
    "WINDOW_UPDATE": frame(WINDOW, 0, 0, b"\0\0\0\1"), "unknown frames": frame(0x77, 0, 0, b"abc"),
    "PRIORITY": frame(PRIORITY, 0, 1, b"\0\0\0\0\1"), "RST_STREAM of a closed stream": frame(RESET, 0, 1, b"\0\0\0\x08"),
    "PING": frame(PING, 0, 0, b"12345678"), "SETTINGS": frame(SETTINGS, 0, 0),
}

# The same to the admin listener, which speaks HTTP/1.1. A body without an end follows its refusal; names that are too
# long are one head without an end.
ADMIN = {
    "refused requests, admin": b"GET /v1/overview HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "other names, admin": b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n",
    "bodies without end, admin": b"x" * 200,
    "heads without end, admin": b"x: " + b"y" * 200 + b"\r\n",
}
FIRST = {
    "bodies without end, admin": b"POST /v1/push HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n",
    "heads without end, admin": b"GET / HTTP/1.1\r\nhost: localhost\r\n",
}

def streams(make):
    return lambda first: b"".join(make(first + 2 * index) for index in range(100))

LONG = b"".join(field(name, b"x" * 3000) for name in (b"a", b"b", b"c"))
# One entry of nearly the whole table, then a reference to it a byte (RFC 7541 section 7.3 is about what that costs).
BOMB = b"\x40" + text(b"x") + text(b"y" * 3900) + b"\xbe" * 4000

# A hundred streams, then a hundred others.
BY_STREAM = {
    "rapid reset": streams(lambda id: frame(HEADERS, 4, id, HEAD) + frame(RESET, 0, id, b"\0\0\0\x08")),
    "resets made by the server": streams(lambda id: frame(HEADERS, 5, id, field(b":method", b"GET"))),
    "header lists over the limit": streams(lambda id: frame(HEADERS, 5, id, HEAD + LONG)),
    "CONTINUATION without end": streams(
        lambda id: frame(HEADERS, 0, id, HEAD) + b"".join(frame(CONTINUATION, 0, id) for _ in range(20))),
}
FLOODS = [*ENDLESS, *BY_STREAM]
# Those of a flood's form that the first tests do not end.
BY_STREAM["HPACK bombs"] = streams(lambda id: frame(HEADERS, 5, id, HEAD + BOMB))
BY_STREAM["refused requests"] = streams(lambda id: frame(HEADERS, 5, id, HEAD))

def connect(address, ca=None, receive_buffer=None):
    peer = socket.socket()
    if receive_buffer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    peer.settimeout(2)
    peer.connect(address)
    return context(ca).wrap_socket(peer, server_hostname=address[0]) if ca else peer

def context(ca):
    made = ssl.create_default_context(cafile=ca)
    made.set_alpn_protocols(["h2"])
    return made

def flood(address, name, seconds, once=False, ca=None):
    end = time.monotonic() + seconds
    sent = away = 0
    while time.monotonic() < end and not (once and away):
        try:
            peer = connect(address, ca)
            peer.settimeout(.2)
            peer.sendall(FIRST.get(name, b"") if name in ADMIN else HELLO + (OPEN if name in ENDLESS else b""))
            if name.startswith("RST"):
                peer.sendall(frame(RESET, 0, 1, b"\0\0\0\x08"))
            first = 3
            while time.monotonic() < end:
                try:
                    same = ENDLESS.get(name) or ADMIN.get(name)
                    part = same * 500 if same else BY_STREAM[name](first)
                    first += 200
                    sent += len(part)
                    peer.sendall(part)
                    peer.setblocking(False)
                    try:
                        if peer.recv(1 << 20) == b"":
                            away += 1
                            break
                    except (BlockingIOError, ssl.SSLWantReadError):
                        pass
                    peer.settimeout(1.5)
                except TimeoutError:
                    continue
            peer.close()
        except OSError:
            away += 1
    return sent, away

def client_hello(host):
    out = ssl.MemoryBIO()
    made = ssl.create_default_context()
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.set_alpn_protocols(["h2"])
    try:
        made.wrap_bio(ssl.MemoryBIO(), out, server_hostname=host).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()

NO_WINDOW = PREFACE + frame(SETTINGS, 0, 0, b"\0\4\0\0\0\0")
def many(count):
    return b"".join(frame(HEADERS, 5, 2 * index + 1, HEAD) for index in range(count))

def requests(bearer):
    return HEAD + b"".join(field(*pair) for pair in [
        (b"authorization", b"bearer " + bearer), (b"apns-topic", b"com.example.app"), (b"apns-push-type", b"alert")])

# How many connections; what each sends first; what each sends ten times a second. Small receive buffers where
# nothing is read.
CROWDS = {
    "half-open connections": (500, lambda o: b"", b""),
    "slow heads": (500, lambda o: HELLO + frame(HEADERS, 0, 1, HEAD)[:40], b"x"),
    "slow bodies": (300, lambda o: HELLO + frame(HEADERS, 4, 1, requests(o.bearer.encode())), frame(DATA, 0, 1, b"{")),
    "peers that never read": (300, lambda o: HELLO + many(90), b""),
    "zero windows": (300, lambda o: NO_WINDOW + many(90), b""),
    "TLS garbage": (200, lambda o: bytes(range(256)) * 16, b"\x16\x03\x01\xff\xff"),
    "TLS hellos without more": (500, lambda o: client_hello(o.address.rsplit(":", 1)[0]), b""),
    "lines of strangers, device": (300, lambda o: HELLO + frame(HEADERS, 4, 1, b"".join(
        field(*pair) for pair in [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"a"),
                                  (b":path", b"/v1/devices/0f952648-02e1-843e-8000-000000000002/stream")])),
        frame(DATA, 0, 1, b'{"type":"keepalive"}\n')),
    "half heads, admin": (500, lambda o: b"GET / HTTP/1.1\r\nhost: localhost\r\n", b"x: y\r\n"),
    "peers that never read, admin": (300, lambda o: b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 20, b""),
}

def crowd(address, name, seconds, options):
    count, first, again = CROWDS[name]
    hello = first(options)
    end, sent, away = time.monotonic() + seconds, 0, 0
    peers = []
    while time.monotonic() < end:
        while len(peers) < count and time.monotonic() < end:
            try:
                peer = connect(address, receive_buffer=2048)
                peer.sendall(hello)
                sent += len(hello)
                peer.setblocking(False)
                peers.append(peer)
            except OSError:
                away += 1
                break
        left = []
        for peer in peers:
            try:
                if again:
                    peer.send(again)
                    sent += len(again)
                # Where nothing is read, an end shows as an error of the next send.
                if not name.startswith(("peers that never read", "zero windows")) and select.select([peer], [], [], 0)[0] \
                        and peer.recv(65536) == b"":
                    raise OSError
                left.append(peer)
            except BlockingIOError:
                left.append(peer)
            except OSError:
                away += 1
                peer.close()
        peers = left
        time.sleep(.1)
    for peer in peers:
        peer.close()
    return sent, away

def handshakes(address, seconds, ca):
    """Complete ones, one after the other; the context is new each time, so none is resumed."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        try:
            connect(address, ca).close()
            count += 1
        except OSError:
            pass
    return count

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--ca")
    parser.add_argument("--bearer", default="")
    options = parser.parse_args()
    host, port = options.address.rsplit(":", 1)
    address = (host, int(port))
    for name in [options.only] if options.only else FLOODS:
        if name == "handshakes":
            print(f"{name:32} {handshakes(address, options.seconds, options.ca)} handshakes", flush=True)
            continue
        if name in CROWDS:
            sent, away = crowd(address, name, options.seconds, options)
        elif name in ENDLESS or name in BY_STREAM or name in ADMIN:
            sent, away = flood(address, name, options.seconds, options.once, options.ca)
        else:
            sys.exit(f"{name} is none of: {', '.join([*ENDLESS, *BY_STREAM, *ADMIN, *CROWDS, 'handshakes'])}")
        print(f"{name:32} {sent / 1e6:8.1f} MB, sent away {away} times", flush=True)
