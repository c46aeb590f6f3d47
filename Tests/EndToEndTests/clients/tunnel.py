"""tunnel.py PROXY CA TARGET [BYTES]: a request to the proxy with the beginning of TLS behind it,
written BYTES at a time (all at once without), and whose certificate is there. Without TLS if the
target is a whole request."""

import socket
import ssl
import sys

proxy, ca, target = sys.argv[1:4]
host, port = proxy.rsplit(":", 1)
step = int(sys.argv[4]) if len(sys.argv) > 4 else None
with socket.create_connection((host, int(port)), timeout=20) as connection:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(data):
        size = step or len(data) or 1
        for start in range(0, len(data), size):
            connection.sendall(data[start : start + size])

    if " " in target:
        try:
            send(target.encode().decode("unicode_escape").encode("latin-1"))
        except BrokenPipeError:
            pass
        print(connection.makefile("rb").read().decode().splitlines()[0])
        sys.exit()
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    received, output = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, output, server_hostname=target.rsplit(":", 1)[0])
    send_now = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()
    head = b""
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            send(send_now + output.read())
            send_now = b""
        data = connection.recv(65536)
        assert data, "the proxy has closed"
        if b"\r\n\r\n" not in head:
            head, _, data = (head + data).partition(b"\r\n\r\n")
            head += b"\r\n\r\n"
        received.write(data)
    print(head.decode().splitlines()[0], tls.selected_alpn_protocol())
