"""A small HTTP/2 client on Python's standard library alone: just what these tests need, and independent
of the relay's own code. Field blocks are written as literals (RFC 7541 section 6.2.2) and read only as
far as a status code from the static table."""

import select
import socket
import ssl
import struct
import threading

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
STATUSES = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}


def status(payload):
    """The status of an answer's head, where the static table has it. The size of the peer's table,
    0x20 when there is none, may come first (RFC 7541 section 6.3)."""
    return STATUSES.get(payload.lstrip(b"\x20")[0])


def dial(address, ca=None, receive_buffer=None):
    """A socket to HOST:PORT, with TLS and ALPN h2 when `ca` is given."""
    host, port = address.rsplit(":", 1)
    plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if receive_buffer:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    plain.connect((host, int(port)))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if ca is None:
        return plain
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(plain, server_hostname=host)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _text(value):
    data = value.encode()
    if len(data) < 127:
        return bytes([len(data)]) + data
    rest, size = len(data) - 127, b"\x7f"
    while rest >= 128:
        size, rest = size + bytes([rest % 128 + 128]), rest // 128
    return size + bytes([rest]) + data


class Connection:
    def __init__(self, address, ca=None, receive_buffer=None):
        self.address, self.scheme = address, "https" if ca else "http"
        self.socket = dial(address, ca, receive_buffer)
        # A session of OpenSSL is for one thread at a time, and one may send while another reads.
        self.turn = threading.Lock()
        self.next_stream = 1
        self._send(PREFACE + frame(SETTINGS, 0, 0))

    def _send(self, data):
        with self.turn:
            self.socket.sendall(data)

    def _receive(self, count):
        """Waits outside its turn, so that others may send meanwhile."""
        while True:
            with self.turn:
                self.socket.settimeout(0)
                try:
                    return self.socket.recv(count)
                except (BlockingIOError, ssl.SSLWantReadError):
                    pass
                finally:
                    self.socket.settimeout(None)
            select.select([self.socket], [], [])

    def request(self, method, path, fields=(), end=False):
        """Opens a stream; returns its number."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        pseudo = [(":method", method), (":scheme", self.scheme), (":authority", self.address)]
        block = b"".join(
            b"\x00" + _text(name) + _text(value)
            for name, value in pseudo + [(":path", path)] + list(fields)
        )
        flags = END_HEADERS | (END_STREAM if end else 0)
        self._send(frame(HEADERS, flags, stream, block))
        return stream

    def send(self, stream, data, end=False):
        """Sends in frames of the size that every peer must take."""
        for start in range(0, len(data), 16_384):
            self._send(frame(DATA, 0, stream, data[start : start + 16_384]))
        if end:
            self._send(frame(DATA, END_STREAM, stream))

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self._receive(count - len(data))
            if not piece:
                return None
            data += piece
        return data

    def frames(self):
        """All frames until the end; settings, pings and windows are answered on the way."""
        while True:
            head = self._exactly(9)
            if head is None:
                return
            length = struct.unpack(">I", b"\0" + head[:3])[0]
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            payload = self._exactly(length) if length else b""
            if payload is None:
                return
            if kind == SETTINGS and not flags & ACK:
                self._send(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                self._send(frame(PING, ACK, 0, payload))
            elif kind == DATA and payload:
                more = struct.pack(">I", len(payload))
                self._send(
                    frame(WINDOW_UPDATE, 0, 0, more) + frame(WINDOW_UPDATE, 0, stream, more)
                )
            yield kind, flags, stream, payload
