"""Throws garbage at a listener: plain bytes, bytes inside TLS, and HTTP/2 frames that make no sense.

garbage.py HOST:PORT SEED ROUNDS [--ca FILE]
Ends with status 0 when all is thrown; what the relay does then is the test's business."""

import random
import socket
import ssl
import struct
import sys

import http2

address, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ca = sys.argv[5] if sys.argv[4:5] == ["--ca"] else None
chance = random.Random(seed)


def throw(connection, data):
    """Sends, ends our side, reads what the relay still says, at most half a second a piece."""
    connection.settimeout(0.5)
    try:
        connection.sendall(data)
        if not isinstance(connection, ssl.SSLSocket):
            connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    except OSError:
        pass
    connection.close()


def frames():
    """A proper beginning, then frames of random kind, flags, stream and content."""
    data = http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0)
    for _ in range(chance.randrange(1, 40)):
        kind, flags = chance.randrange(0, 12), chance.randrange(0, 256)
        stream = chance.choice([0, 1, 3, 5, 2**31 - 1, chance.randrange(0, 2**32)])
        data += http2.frame(kind, flags, stream, chance.randbytes(chance.randrange(0, 120)))
    return data


def wrong_length():
    """Frames whose length field lies."""
    head = struct.pack(">I", chance.randrange(0, 2**24))[1:]
    return http2.PREFACE + head + chance.randbytes(chance.randrange(6, 400))


def bad_block():
    """A request whose field block is noise."""
    block = chance.randbytes(chance.randrange(1, 200))
    return (
        http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0) + http2.frame(http2.HEADERS, 5, 1, block)
    )


for _ in range(rounds):
    noise = chance.randbytes(chance.randrange(1, 3000))
    throw(http2.dial(address), noise)
    throw(http2.dial(address), b"GET / HTTP/1.1\r\nhost: relay\r\n\r\n")
    # The beginning of a TLS record that says it is a handshake, and is none.
    throw(http2.dial(address), b"\x16\x03\x01" + struct.pack(">H", len(noise)) + noise)
    for data in (noise, frames(), wrong_length(), bad_block(), http2.PREFACE[:10]):
        throw(http2.dial(address, ca), data)
