"""Asks the admin API for things that take long, on its Unix socket.

  lingering.py SOCKET

Waits for ten minutes, sends half a body, and does not read a stream of events. Prints "asked", the wait's status and
reason, and "ended" when all connections are closed.
"""

import json
import socket
import sys


def ask(method, path, body="", length=None):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(sys.argv[1])
    head = f"{method} {path} HTTP/1.1\r\nhost: relay\r\ncontent-type: application/json\r\n"
    peer.sendall(f"{head}content-length: {length or len(body)}\r\n\r\n{body}".encode())
    return peer


def rest(peer):
    said = b""
    try:
        while piece := peer.recv(65_536):
            said += piece
    except ConnectionResetError:
        pass
    return said.decode()


wait = ask("POST", "/v1/wait", json.dumps({"expect": {"what": "received"}, "timeout": "10m"}))
others = [ask("POST", "/v1/wait", "{", length=100), ask("GET", "/v1/events")]
# These come later: when they are answered, the others are under way.
for _ in range(5):
    others.append(ask("GET", "/v1/overview"))
    others[-1].recv(65_536)
print("asked", flush=True)
head, _, body = rest(wait).partition("\r\n\r\n")
print(head.split()[1], json.loads(body)["reason"], flush=True)
for peer in others:
    rest(peer)
print("ended", flush=True)
