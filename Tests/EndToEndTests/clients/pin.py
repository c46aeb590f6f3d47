"""A thousand strangers who make the relay keep as much as they can, and what that is.

pin.py HOST:PORT KIND CONNECTIONS PID
Opens the connections without TLS, says hello on each, and looks at the resident memory of the process;
then does what KIND says on each, waits until the relay has seen it, and looks again. Prints one line,
`held BYTES sent BYTES`: what came on top for one connection, and what it sent for it."""

import struct
import sys

import http2

address, kind, count, process = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
MARK = b"pinned??"


def resident():
    with open(f"/proc/{process}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def text(value):
    """A string literal, not Huffman coded (RFC 7541 section 5.2)."""
    if len(value) < 127:
        return bytes([len(value)]) + value.encode()
    rest, size = len(value) - 127, b"\x7f"
    while rest >= 128:
        size, rest = size + bytes([rest % 128 + 128]), rest // 128
    return size + bytes([rest]) + value.encode()


class Heads:
    """The same request again and again: its fields go into the table with the first (section 6.2.1),
    so that each further one is a few bytes."""

    def __init__(self, fields):
        self.fields, self.next_stream = fields, 1

    def frame(self, end):
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        block = b"\x83\x86"
        for place, (name, value) in enumerate(self.fields):
            if stream == 1:
                block += b"\x40" + text(name) + text(value)
            else:
                block += bytes([0x80 | 61 + len(self.fields) - place])
        flags = http2.END_HEADERS | (http2.END_STREAM if end else 0)
        return stream, http2.frame(http2.HEADERS, flags, stream, block)


def requests(heads, number, body=b"", end=False):
    data = b""
    for _ in range(number):
        stream, head = heads.frame(end and not body)
        data += head
        if body:
            flags = http2.END_STREAM if end else 0
            data += http2.frame(http2.DATA, flags, stream, body)
    return data


def device(bearer):
    return Heads(
        [(":path", "/v1/devices"), (":authority", "relay"), ("authorization", "bearer " + bearer)]
    )


def provider():
    return Heads(
        [(":path", "/3/device/" + "ab" * 32), (":authority", "relay"), ("apns-topic", "com.example.app")]
    )


def indexed(number):
    """Heads of long fields, never like the one before, of a few bytes each: two sets of values are in
    the table (RFC 7541 section 2.3.3: the newest entry is 62), and they take turns."""

    def spelled(letter):
        name = "-".join(letter * count for count in (8, 4, 4, 4, 12))
        fields = [("apns-topic", letter * 250), ("apns-collapse-id", letter * 64), ("apns-id", name)]
        return b"".join(b"\x40" + text(field) + text(value) for field, value in fields)

    data = b""
    for request in range(number):
        block = b"\x83\x86\x01\x01r"
        if request == 0:
            block += b"\x44" + text("/3/device/" + "ab" * 32) + spelled("A")
        elif request == 1:
            block += bytes([0x80 | 65]) + spelled("B")
        else:
            newest = 67 if request % 2 == 0 else 64
            block += bytes([0x80 | 68]) + bytes(0x80 | newest - place for place in range(3))
        data += http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * request + 1, block)
    return data


no_window = http2.frame(http2.SETTINGS, 0, 0, struct.pack(">HI", 4, 0))

attacks = {
    # Requests that do not end, each with a bearer of nearly 4 kB.
    "bearers": lambda: requests(device("x" * 3850), 1000),
    # As few bytes as will do for the streams that a stranger may have.
    "few-streams": lambda: requests(device("x"), 16),
    # Bodies that do not end, as long as they may be.
    "bodies": lambda: requests(device("x"), 16, b"x" * 4096),
    # Pushes without a token that do not end; with long heads of few bytes; with bodies; and whose answers have no window to leave.
    "pushes": lambda: requests(provider(), 1000),
    "push-indexed": lambda: indexed(100),
    "push-bodies": lambda: requests(provider(), 100, b"x" * 4096),
    "unread-answers": lambda: no_window + requests(provider(), 1000, end=True),
}


class Stranger:
    def __init__(self):
        self.socket, self.received = http2.dial(address), b""
        self.send(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0))

    def send(self, data):
        """Sends, and waits until the relay has answered what came before a PING."""
        self.socket.sendall(data + http2.frame(http2.PING, 0, 0, MARK))
        while MARK not in self.received:
            piece = self.socket.recv(65536)
            if not piece:
                raise SystemExit("the relay has closed the connection")
            self.received = self.received[-7:] + piece
        self.received = b""


strangers = [Stranger() for _ in range(count)]
before = resident()
attack = attacks[kind]()
for stranger in strangers:
    stranger.send(attack)
print(f"held {max(0, resident() - before) // count} sent {len(attack)}", flush=True)
