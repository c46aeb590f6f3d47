"""One connection opens far more streams than it may, as fast as it can; what becomes of it and of others.

flood.py HOST:PORT COUNT
Opens COUNT streams without TLS and without a token, none of which ends, while another connection sends PING
after PING, fifty a second at most. Prints one line when all but a hundred were refused and a PING shows that
the connection lives: how many PINGs of the other connection were answered meanwhile, and the slowest."""

import sys
import threading
import time

import http2

address, count = sys.argv[1], int(sys.argv[2])
HELLO = http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0)
# POST, http, / and a name (RFC 7541 appendix A).
BLOCK = b"\x83\x86\x84\x01\x01r"


def frames(socket):
    data = b""
    while piece := socket.recv(65536):
        data += piece
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
            length = int.from_bytes(data[:3], "big")
            yield data[3], data[9 : 9 + length]
            data = data[9 + length :]


def pong(kinds, mark):
    """Reads until the PING with this mark is answered."""
    for kind, payload in kinds:
        if kind == http2.PING and payload == mark:
            return
    raise SystemExit("the relay has closed the connection")


greedy, honest = http2.dial(address), http2.dial(address)
greedy_frames, honest_frames = frames(greedy), frames(honest)
honest.sendall(HELLO)
opens = b"".join(
    http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * number + 1, BLOCK) for number in range(count)
)
sender = threading.Thread(target=greedy.sendall, args=(HELLO + opens,), daemon=True)
done, others, longest = threading.Event(), 0, 0.0


def ask():
    global others, longest
    while not done.is_set():
        mark, start = others.to_bytes(8, "big"), time.monotonic()
        honest.sendall(http2.frame(http2.PING, 0, 0, mark))
        pong(honest_frames, mark)
        longest = max(longest, time.monotonic() - start)
        others += 1
        # More than a hundred a second would be no honest client's.
        time.sleep(0.02)


asker = threading.Thread(target=ask, daemon=True)
asker.start()
sender.start()
# A PING may be answered before what came before it: resets are counted first.
refused = 0
while refused < count - 100:
    kind, _ = next(greedy_frames)
    refused += kind == http2.RST_STREAM
greedy.sendall(http2.frame(http2.PING, 0, 0, b"thats it"))
pong(greedy_frames, b"thats it")
done.set()
asker.join()
print(f"others {others} longest {int(1000 * longest)}", flush=True)
