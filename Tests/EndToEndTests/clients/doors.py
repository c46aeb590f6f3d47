"""What somebody without the token can do to the admin listener, and to every other one.

doors.py spellings HOST:PORT
    Asks for every route of /openapi.json in every spelling that a client can send, without and with a wrong
    token, from another site and with a form's content type. Prints what was not turned away at the door.
doors.py unread HOST:PORT PID
    Opens 1,024 connections, sends 4,000 requests on each and reads nothing. Prints one line,
    `grew BYTES median MILLISECONDS slowest MILLISECONDS left DESCRIPTORS kept BYTES`: of the process's resident memory; of answers to
    /health/live meanwhile; what is open 15 seconds later, and the memory then.
doors.py descriptors HOST:PORT PID LIMIT ADMIN
    Opens as many connections as the process may open files, waits, closes them, and asks again. Prints `ticks N
    left N answered YES`: the processor time that it has taken meanwhile, in hundredths of a second, and the files
    that it could open.
doors.py pinging HOST:PORT PID LIMIT
    Has strangers that say HTTP/2's preface and PING each second take all places, and waits for the one that came
    last. Prints `answered YES`: whether the relay has greeted it before a minute was over.
doors.py page HOST:PORT CHROMIUM
    Has a browser open a page of another port of this machine, which asks for what it may not have. Prints what
    the browser told the page."""

import concurrent.futures
import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

mode, address = sys.argv[1], sys.argv[2]
host, port = address.rsplit(":", 1)


def dial(receive_buffer=None):
    stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if receive_buffer:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    stream.settimeout(30)
    stream.connect((host, int(port)))
    return stream


def ask(target, method="GET", fields=(), body=b"", name=address):
    """One request on a connection of its own; answers the status and the body."""
    head = [f"{method} {target} HTTP/1.1", f"host: {name}", "connection: close", f"content-length: {len(body)}"]
    with dial() as stream:
        stream.sendall("\r\n".join(head + list(fields) + ["", ""]).encode("latin-1") + body)
        answer = b""
        while piece := stream.recv(65536):
            answer += piece
            # A stream that should not be there has no end.
            if b"\r\n\r\n" in answer and not answer.startswith(b"HTTP/1.1 4"):
                break
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]) if head else 0, rest


# MARK: Every spelling


def spellings(path):
    """Ways to write a path that something between a client and the router may take for the same."""
    parts = path.strip("/").split("/")
    encoded = "/" + "%" + f"{ord(parts[0][0]):02x}" + parts[0][1:] + "/" + "/".join(parts[1:])
    yield from [
        path, "/" + path, "///" + path, path + "/", path + "//", path.replace("/", "//"), "/./" + path[1:],
        "/x/.." + path, "/health/.." + path, "/health/live/../.." + path, path.replace("/", "%2f"),
        "/%2f" + path[1:], "/" + path[1:].replace("/", "%2F"), encoded, path.upper(), "\\" + path, "/\\" + path[1:],
        path + "?x=/health/live", path + "#/health/live", path + ";/health/live", "/health/live" + path,
        "http://" + address + path, "http://" + address + "/" + path, "HTTP://localhost" + path,
        "http://evil.example" + path, "//" + address + path, path[1:], "*" + path, " " + path,
        path.replace("/", "/\u00cc\u00b8"), path + "/%00", path + "/.", "/openapi.json/.." + path,
    ]


WRONG = "authorization: bearer 0123456789abcdef0123456789abcdef"
VISITORS = [
    ("nobody", [], b"{}"),
    ("wrong token", [WRONG, "content-type: application/json"], b"{}"),
    ("empty token", ["authorization: bearer ", "content-type: application/json"], b"{}"),
    ("another site", ["origin: http://evil.example", "sec-fetch-site: cross-site"], b"{}"),
    ("another port", ["origin: http://localhost:1", "sec-fetch-site: same-site", "content-type: text/plain"], b"{}"),
    ("a form", ["content-type: application/x-www-form-urlencoded"], b"all=true"),
]


def try_spellings():
    described = json.load(urllib.request.urlopen(f"http://{address}/openapi.json"))["paths"]
    device = "00000000-0000-4000-8000-000000000000"
    values = {"{id}": device, "{topic}": "com.example.app", "{name}": "x"}

    def try_route(path, operations):
        count = 0
        for name, value in values.items():
            path = path.replace(name, value)
        for turn, spelling in enumerate(spellings(path)):
            for number, (visitor, fields, body) in enumerate(VISITORS):
                # Who shows nothing tries each spelling, the others take turns behind the first.
                if turn and number not in (0, 1 + turn % (len(VISITORS) - 1)):
                    continue
                # All methods once, for those who show nothing.
                own = [method.upper() for method in operations]
                more = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] if number == 0 else own
                for method in dict.fromkeys(own + more):
                    status, rest = ask(spelling, method, fields, b"" if method == "GET" else body)
                    count += 1
                    # 400 without a word is the parser's: that was no request.
                    if status not in (401, 403) and not (status == 400 and not rest) and status != 0:
                        print("open:", method, repr(spelling), visitor, status, rest[:60])
        return count

    routes = [route for route in described.items() if route[0].startswith("/v1")]
    with concurrent.futures.ThreadPoolExecutor(4) as askers:
        print("asked", sum(askers.map(lambda route: try_route(*route), routes)))


# MARK: Answers that nobody reads


def resident(process):
    with open(f"/proc/{process}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS:")).split()[1]) * 1024


def descriptors(process):
    return len(os.listdir(f"/proc/{process}/fd"))


def leave_unread(process):
    before, open_before = resident(process), descriptors(process)
    most, times, done = before, [], threading.Event()

    def look():
        nonlocal most
        while not done.is_set():
            start = time.monotonic()
            try:
                isWell = ask("/health/live")[0] == 200
            except OSError:
                isWell = False
            times.append(time.monotonic() - start if isWell else 1000)
            most = max(most, resident(process))
            time.sleep(0.05)

    looking = threading.Thread(target=look)
    looking.start()
    request = f"GET /openapi.json HTTP/1.1\r\nhost: {address}\r\n\r\n".encode() * 4000
    strangers = []
    for _ in range(1024):
        stream = dial(4096)
        stream.setblocking(False)
        rest = memoryview(request)
        try:
            while rest:
                rest = rest[stream.send(rest):]
        except (BlockingIOError, ConnectionError):
            pass
        strangers.append(stream)
    time.sleep(15)
    # On a busy machine those that are in the way are ended later.
    for _ in range(60):
        if descriptors(process) - open_before <= 2:
            break
        time.sleep(1)
    done.set()
    looking.join()
    left = descriptors(process) - open_before
    median, slowest = (int(1000 * value) for value in (sorted(times)[len(times) // 2], max(times)))
    kept = resident(process) - before
    print(f"grew {most - before} median {median} slowest {slowest} left {left} kept {kept}")


# MARK: No descriptors


def ticks(process):
    with open(f"/proc/{process}/stat") as status:
        fields = status.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def fill(words=b""):
    """As many strangers as the process may open files, so that the last ones wait at the door."""
    strangers = []
    for number in range(int(sys.argv[4])):
        strangers.append(dial())
        strangers[-1].sendall(words)
        if number % 10 == 0:
            time.sleep(0.01)
    return strangers


def use_up(process):
    strangers = fill()
    before = ticks(process)
    time.sleep(2)
    used = ticks(process) - before
    left = int(sys.argv[4]) - descriptors(process)
    for stream in strangers:
        stream.close()
    global host, port
    host, port = sys.argv[5].rsplit(":", 1)
    answered = ask("/health/live")[0] == 200
    print(f"ticks {used} left {left} answered {answered}")


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
PING = bytes([0, 0, 8, 6, 0, 0, 0, 0, 0]) + b"stranger"


def ping_on():
    strangers = fill(PREFACE)
    last, answer, end = None, b"", time.monotonic() + 60
    while not answer and time.monotonic() < end:
        for stream in strangers:
            try:
                stream.sendall(PING)
            except OSError:
                pass
        try:
            # Whoever is turned away comes again.
            if not last:
                last = dial()
                last.sendall(PREFACE)
                last.settimeout(1)
            answer = last.recv(9)
            if not answer:
                last = None
        except TimeoutError:
            pass
        except OSError:
            last = None
    for stream in strangers:
        stream.close()
    # SETTINGS come first (RFC 9113, section 3.4).
    print(f"answered {answer[3:4] == bytes([4])}")


# MARK: A browser

PAGE = """<!doctype html><body><pre id=said>nothing</pre><script type=module>
const said = [];
const ask = async (path, body) => {
  for (const mode of ["no-cors", "cors"]) {
    try {
      const answer = await fetch("http://RELAY" + path, {method: body ? "POST" : "GET", mode, body});
      said.push(mode + " " + path + " " + answer.type + " " + answer.status);
    } catch (error) { said.push(mode + " " + path + " failed"); }
  }
};
await ask("//v1/overview");
await ask("//v1/devices", "{}");
await ask("/v1//devices", "{}");
await ask("/v1/devices", "{}");
document.getElementById("said").textContent = "said: " + said.join("; ");
</script>"""


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = PAGE.replace("RELAY", address).encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def open_page(chromium):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        # The same host, so that it is the same site.
        said = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
             "--virtual-time-budget=10000", "--dump-dom", f"http://{host}:{server.server_port}/"],
            capture_output=True, text=True, timeout=120)
    start = said.stdout.find("said: ")
    print(said.stdout[start:said.stdout.find("<", start)] if start >= 0 else "no page: " + said.stderr[-500:])


if mode == "spellings":
    try_spellings()
elif mode == "unread":
    leave_unread(sys.argv[3])
elif mode == "descriptors":
    use_up(sys.argv[3])
elif mode == "pinging":
    ping_on()
else:
    open_page(sys.argv[3])
