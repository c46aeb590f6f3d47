"""The binary provider API, written from Apple's description of its frames.

usage: binary.py push|silent HOST:PORT COUNT TOKEN [BAD_TOKEN BAD_AT] [--tls CA CERTIFICATE KEY]
       binary.py feedback HOST:PORT [--tls CA CERTIFICATE KEY]
       binary.py hold HOST:PORT COUNT TOKEN [--tls CA CERTIFICATE KEY]
       binary.py leave HOST:PORT COUNT TOKEN [--tls CA CERTIFICATE KEY]
       binary.py each HOST:PORT TOKEN...

push: sends COUNT pushes without waiting, in all three commands by turns, then says what the relay
      says until it closes: 'error STATUS IDENTIFIER' or nothing, then 'closed'.
silent: the same with pushes that show nothing.
hold: the same, but stays connected when nothing is said: 'sent', and goes on to listen.
leave: the same, but hangs up as soon as all is written, as scripts do.
each: a push to each token at once, over connections of their own, and a line for what came back,
      as above, but without 'closed' behind an error.
feedback: a line 'TIME TOKEN' for each tuple, then 'closed'.
"""

import socket
import ssl
import struct
import sys


def connect(address, tls):
    host, port = address.rsplit(":", 1)
    plain = socket.create_connection((host, int(port)), timeout=60)
    if not tls:
        return plain
    authority, certificate, key = tls
    context = ssl.create_default_context(cafile=authority)
    if certificate:
        context.load_cert_chain(certificate, key)
    return context.wrap_socket(plain, server_hostname=host)


def data(value):
    return struct.pack(">H", len(value)) + value


def frame(number, identifier, token, payload):
    """Every third push in command 1, the others in command 2."""
    if number % 3 == 0:
        return struct.pack(">BII", 1, identifier, 0x7FFFFFFF) + data(token) + data(payload)
    items = [
        (1, token),
        (2, payload),
        (3, struct.pack(">I", identifier)),
        (4, struct.pack(">I", 0x7FFFFFFF)),
        (5, bytes([10])),
    ]
    body = b"".join(bytes([item]) + data(value) for item, value in items)
    return struct.pack(">BI", 2, len(body)) + body


def read_to_end(stream):
    found = b""
    while piece := stream.recv(65536):
        found += piece
    return found


def said(stream):
    """What the relay says until it closes."""
    answer = read_to_end(stream)
    if answer:
        command, status, identifier = struct.unpack(">BBI", answer)
        assert command == 8
        return f"error {status} {identifier}"
    return None


def each(address, tokens):
    streams = [connect(address, None) for _ in tokens]
    for stream, token in zip(streams, tokens):
        stream.sendall(frame(0, 1000, bytes.fromhex(token), b'{"aps":{"alert":"Hello"}}'))
        stream.shutdown(socket.SHUT_WR)
    for stream in streams:
        print(said(stream) or "closed")


def main(arguments):
    tls = None
    if "--tls" in arguments:
        place = arguments.index("--tls")
        tls = (arguments[place + 1 :] + [None, None])[:3]
        arguments = arguments[:place]
    mode, address, *rest = arguments
    if mode == "each":
        each(address, rest)
        return
    stream = connect(address, tls)
    if mode == "feedback":
        found = read_to_end(stream)
        while found:
            seconds, length = struct.unpack(">IH", found[:6])
            print(seconds, found[6 : 6 + length].hex())
            found = found[6 + length :]
        print("closed")
        return
    count, tokens = int(rest[0]), [bytes.fromhex(rest[1])]
    bad = (bytes.fromhex(rest[2]), int(rest[3])) if len(rest) > 2 else (b"", -1)
    frames = []
    for number in range(count):
        token = bad[0] if number == bad[1] else tokens[0]
        aps = b'"content-available":1' if mode == "silent" else b'"alert":"Hello"'
        payload = b'{"aps":{%s},"n":%d}' % (aps, number)
        frames.append(frame(number, 1000 + number, token, payload))
    stream.sendall(b"".join(frames))
    if mode == "leave":
        stream.close()
        return
    if mode == "hold":
        print("sent", flush=True)
    elif bad[1] < 0:
        # Nothing will be said, so the end has to be ours.
        stream.unwrap() if tls else stream.shutdown(socket.SHUT_WR)
        if tls:
            print("closed")
            return
    if error := said(stream):
        print(error)
    print("closed")


main(sys.argv[1:])
