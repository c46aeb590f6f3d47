"""Says one thing to a NATS server, as somebody who is no relay does.

usage: nats.py PORT SUBJECT [BODY]

A body that begins with `hex:` is bytes; `zeros:N` are so many.

Prints the answer, or nothing when none comes within five seconds. The protocol is a few lines of text
(NATS documentation, "Client Protocol").
"""

import socket
import sys

port, subject, text = int(sys.argv[1]), sys.argv[2], (sys.argv[3:] or [""])[0]
body = text.encode()
if text.startswith("hex:"):
    body = bytes.fromhex(text[4:])
elif text.startswith("zeros:"):
    body = bytes(int(text[6:]))
inbox = "_INBOX.nats-py"

with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
    file = connection.makefile("rwb")
    file.readline()
    file.write(b'CONNECT {"verbose":false,"user":"operator","pass":"operator"}\r\n')
    file.write(f"SUB {inbox} 1\r\nPUB {subject} {inbox} {len(body)}\r\n".encode() + body + b"\r\n")
    file.flush()
    try:
        while line := file.readline():
            if line.startswith(b"PING"):
                file.write(b"PONG\r\n")
                file.flush()
            elif line.startswith(b"MSG"):
                print(file.read(int(line.split()[-1])).decode())
                break
    except TimeoutError:
        pass
