"""A relay for as long as a measurement takes, providers and phones of it: what abuse.py and pressure.py share."""

import collections
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

clients = pathlib.Path(__file__).resolve().parent.parent / "Tests" / "EndToEndTests" / "clients"
sys.path.insert(0, str(clients))
import http2  # noqa: E402

TOPIC = "com.example.app"
# The bars: seconds until all is normal again, and milliseconds that an honest push may take beside a crowd.
MOST_SECONDS, MOST_MILLISECONDS = 5, 1000


class Relay:
    """Its state directory is `folder`. `before` is what comes before the program on its command line."""

    def __init__(
            self, program, folder, before=(), encrypted=False, threads=1, store="memory", more=(), environment=None):
        self.program, self.state = program, folder
        self.ca = f"{folder}/ca.pem" if encrypted else None
        self.command = [
            *before, program, "serve", "--state", folder, "--store", store, "--threads", str(threads), "--provider",
            "127.0.0.1:0", "--device", "127.0.0.1:0", "--admin", "127.0.0.1:0", *([] if encrypted else ["--plaintext"]),
            *more]
        self.environment = {**os.environ, **(environment or {})}
        if not os.path.exists(f"{folder}/keys"):
            run(program, "key", "new", "--state", folder)
        # Not in the state directory, which may be full.
        self.log, self.most = f"{folder}.log", 0
        self.start()
        # One for all: each new one on a connection counts (`TooManyProviderTokenUpdates`).
        self.bearer = run(program, "jwt", "--state", folder).strip()
        with open(f"{folder}/admin.token") as token:
            self.admin_fields = {"authorization": f"bearer {token.read().strip()}", "content-type": "application/json"}

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                self.command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment)
        words = dict(word.split("=", 1) for word in self.process.stdout.readline().split() if "=" in word)
        if "provider" not in words:
            raise RuntimeError(f"the relay does not start: {self.last_words()}")
        self.provider, self.device, self.admin = words["provider"], words["device"], words["admin"]

    def stop(self):
        if self.process.poll() is None:
            self.most = max(self.most, self.memory("VmHWM"))
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def last_words(self):
        with open(self.log) as log:
            return (log.read().strip().splitlines() or [""])[-1]

    def logged(self, text):
        """How many lines of the log hold the text."""
        with open(self.log) as log:
            return sum(text in line for line in log)

    def memory(self, field="VmRSS"):
        """Bytes; with VmHWM the most so far."""
        with open(f"/proc/{self.process.pid}/status") as status:
            line = next(line for line in status if line.startswith(field + ":"))
        return int(line.split()[1]) << 10

    def processor(self):
        """Seconds of processor time so far."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def ask(self, method, path, body=None, connection=None, wait=10):
        """A request to the admin API, on a connection of its own if none is given: status and JSON, or text."""
        own = connection or http.client.HTTPConnection(self.admin, timeout=wait)
        try:
            own.request(method, path, json.dumps(body) if body is not None else None, self.admin_fields)
            answer = own.getresponse()
            text = answer.read().decode()
            isJSON = (answer.getheader("content-type") or "").startswith("application/json")
            return answer.status, json.loads(text) if isJSON else text
        finally:
            if connection is None:
                own.close()


class Client(http2.Connection):
    """Answers are taken as they come, on a thread of their own."""

    def __init__(self, address, first=1, ca=None):
        super().__init__(address, ca)
        self.socket.settimeout(None)
        # Of what is encrypted one thread reads or writes at a time, which the connection sees to.
        self.reader = None if ca else self.socket.makefile("rb", 65_536)
        self.next_stream = first
        self.news = threading.Condition()
        self.statuses, self.bodies, self.answers = {}, collections.defaultdict(bytes), {}
        # By stream: who is told its lines.
        self.listeners = {}
        self.goaway, self.closed = None, False
        threading.Thread(target=self._read, daemon=True).start()

    def _exactly(self, count):
        if self.reader is None:
            return super()._exactly(count)
        data = self.reader.read(count)
        return data if len(data) == count else None

    def _read(self):
        try:
            for frame in self.frames():
                with self.news:
                    self._take(*frame)
                    self.news.notify_all()
        except (OSError, ValueError):
            pass
        with self.turn:
            self.socket.close()
            if self.reader:
                self.reader.close()
        with self.news:
            self.closed = True
            self.news.notify_all()

    def _take(self, kind, flags, stream, payload):
        if kind == http2.GOAWAY:
            self.goaway = f"GOAWAY {int.from_bytes(payload[4:8], 'big')} {payload[8:].decode(errors='replace')}".strip()
        elif kind == http2.RST_STREAM:
            self.answers[stream] = 0, {"reason": f"RST_STREAM {int.from_bytes(payload, 'big')}"}
        elif kind == http2.HEADERS and stream not in self.statuses:
            self.statuses[stream] = status(payload)
        elif kind == http2.DATA:
            self.bodies[stream] += payload
            if stream in self.listeners:
                *lines, self.bodies[stream] = self.bodies[stream].split(b"\n")
                for line in lines:
                    self.listeners[stream](stream, json.loads(line))
        if kind in (http2.DATA, http2.HEADERS) and flags & http2.END_STREAM:
            body = self.bodies.pop(stream, b"")
            self.answers[stream] = self.statuses.pop(stream, 0), json.loads(body or b"{}")

    def begin(self, method, path, fields=(), body=b""):
        stream = self.request(method, path, fields, end=not body)
        if body:
            self._send(http2.frame(http2.DATA, http2.END_STREAM, stream, body))
        return stream

    def answer(self, stream, wait=10):
        """Status and JSON; status 0 when there is no answer, with the reason."""
        with self.news:
            self.news.wait_for(lambda: stream in self.answers or self.closed, wait)
            why = self.goaway or ("closed" if self.closed else "no answer")
            return self.answers.pop(stream, (0, {"reason": why}))

    def ask(self, method, path, fields=(), body=b"", wait=10):
        return self.answer(self.begin(method, path, fields, body), wait)

    def ask_all(self, requests, most=500, wait=30):
        """So many at once; the answers in order."""
        streams = []
        for request in requests:
            with self.news:
                self.news.wait_for(lambda: len(streams) - len(self.answers) < most or self.closed, wait)
            streams.append(self.begin(*request))
        return [self.answer(stream, wait) for stream in streams]

    def close(self):
        # This wakes the thread that reads, and that closes the socket: the next one may get its number at once, and
        # would lose bytes to a thread that still reads from it.
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


class Phone:
    """Remembers what it gets and acknowledges at once. One that does not listen is away."""

    def __init__(self, relay, first=1, listens=True):
        self.link, self.got, self.bye = Client(relay.device, first), {}, None
        made = must(self.link.ask("POST", "/v1/devices"), 201)
        self.id, self.fields = made["device"], [("authorization", "bearer " + made["secret"])]
        self.path = f"/v1/devices/{self.id}"
        self.token = must(self.register(TOPIC), 200)["token"]
        if listens:
            self.listen()

    def register(self, topic, method="PUT"):
        return self.link.ask(method, f"{self.path}/apps/{topic}", self.fields)

    def listen(self):
        self.link.listeners[self.link.next_stream] = self.hear
        self.link.request("POST", f"{self.path}/stream", self.fields)

    def comes(self, relay):
        """Again, on another connection."""
        self.link, self.got = Client(relay.device), {}
        self.listen()

    def hear(self, stream, line):
        if line["type"] == "bye":
            self.bye = line["reason"]
        elif line["type"] == "keepalive":
            self.link.send(stream, b'{"type":"keepalive"}\n')
        elif line["type"] == "notification":
            self.got[line["payload"].get("n")] = time.monotonic()
            self.link.send(stream, json.dumps({"type": "ack", "id": line["uniqueId"]}).encode() + b"\n")

    def has(self, number, wait=5):
        with self.link.news:
            return self.link.news.wait_for(lambda: number in self.got or self.link.closed, wait) and number in self.got

    @property
    def is_served(self):
        return self.bye is None and not self.link.closed


class Honest:
    """A provider and a phone that are there before the pressure and stay, and a phone that is away."""

    def __init__(self, relay, bearer=None):
        self.relay, self.phone, self.away = relay, Phone(relay), Phone(relay, listens=False)
        self.provider, self.bearer, self.times = Client(relay.provider), bearer or relay.bearer, []
        must(self.push(), 200)

    def push(self, provider=None, wait=5, to=None):
        """Status and what is said. To its own phone, 200 says that this has it; `times` has the seconds."""
        number, start = uuid.uuid4().hex, time.monotonic()
        push = push_to(self.relay, to or self.phone.token, number, self.bearer)
        answer = (provider or self.provider).ask(*push, wait)
        if answer[0] == 200 and to is None:
            if not self.phone.has(number, wait):
                return 0, {"reason": f"200, but not delivered (bye: {self.phone.bye})"}
            self.times.append(time.monotonic() - start)
        return answer

    def push_for(self, seconds, pause=.02):
        """Again and again; how often what was answered, and the p99 in milliseconds."""
        self.times.clear()
        end, said = time.monotonic() + seconds, collections.Counter()
        while time.monotonic() < end:
            said[words(self.push())] += 1
            time.sleep(pause)
        return dict(said), percentile(self.times)

    def state(self):
        """What somebody new gets: a provider's pushes to the phone there and to the one that is away, a phone, an
        operator."""
        try:
            provider, phone = Client(self.relay.provider), Client(self.relay.device)
            try:
                return [words(answer) for answer in (
                    self.push(provider, 1), self.push(provider, 1, self.away.token),
                    phone.ask("GET", "/v1/health", wait=1), self.relay.ask("GET", "/v1/overview", wait=1))]
            finally:
                provider.close()
                phone.close()
        except (OSError, http.client.HTTPException) as problem:
            return [repr(problem)]


class NotRun(Exception):
    pass


class Scene:
    """What is started and mounted here is ended in `close`."""

    def __init__(self, program, devices):
        self.program, self.devices, self.folder = program, devices, tempfile.mkdtemp(prefix="pressure-")
        self.state, self.again = f"{self.folder}/state", None
        self.said, self.wrong, self.relays, self.ends = [], [], [], []
        os.mkdir(self.state, 0o700)

    def start(self, *more, store="sqlite", **settings):
        """A relay with an honest provider and phone."""
        relay = Relay(self.program, self.state, threads=2, store=store, more=more, **settings)
        self.relays.append(relay)
        self.ends.append(relay.stop)
        return relay, Honest(relay)

    def say(self, text):
        self.said.append(text)

    def expect(self, is_right, text):
        if not is_right:
            self.wrong.append(text)

    def hears(self, what, answer, *wanted):
        """Tells and checks the answer that somebody gets under pressure, or all of them."""
        said = {words(answer)} if isinstance(answer, tuple) else set(answer)
        self.say(f"{what}: {', '.join(sorted(said))}")
        self.expect(said <= set(wanted), f"{what}: not {' or '.join(wanted)}")

    def beside(self, honest, seconds=3):
        said, p99 = honest.push_for(seconds)
        self.hears("push", said, "200")
        self.say(f"p99 {p99:.0f} ms")
        self.expect(p99 < MOST_MILLISECONDS, "the honest push waited")

    def normal(self, honest, most=MOST_SECONDS):
        """The pressure is gone: until all is as it was for the old and the new."""
        start, wanted = time.monotonic(), ["200"] * 4
        while (said := honest.state()) != wanted and time.monotonic() - start < 90:
            time.sleep(.02)
        self.again = max(self.again or 0, time.monotonic() - start)
        self.expect(said == wanted, f"not normal again: {said}")
        self.expect(self.again < most, f"normal again only after {self.again:.1f} s")
        self.expect(honest.phone.is_served, "the phone that was there lost its stream")

    def close(self):
        for end in reversed(self.ends):
            end()
        for relay in self.relays:
            self.expect(relay.process.returncode in (0, None), f"the relay ended with {relay.process.returncode}")
        shutil.rmtree(self.folder)


def until(condition, wait, what):
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > wait:
            raise RuntimeError(f"{what}: not within {wait} s")
        time.sleep(.02)
    return time.monotonic() - start


def dial(address, text="", receive=None):
    """A connection that nobody reads yet."""
    peer = socket.socket()
    if receive:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    host, port = address.rsplit(":", 1)
    peer.connect((host, int(port)))
    peer.sendall(text.encode())
    return peer


def fleet(link, count):
    """Phones without apps: paths and fields."""
    # Not more at once before one has shown its secret.
    made = [must(answer, 201) for answer in link.ask_all((("POST", "/v1/devices") for _ in range(count)), 16)]
    return [(f"/v1/devices/{one['device']}", [("authorization", "bearer " + one["secret"])]) for one in made]


def replace(path, text):
    """Whole, for the relay reads it meanwhile."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def keys(scene, count, team):
    """So many keys more than the first, of the team, or each of its own: their ids."""
    folder = f"{scene.state}/keys"
    run(scene.program, "key", "new", "--state", scene.state)
    with open(f"{folder}/keys.json") as file:
        first = json.load(file)["keys"][0]
    ids = [f"K{number:09}" for number in range(count)]
    for id in ids:
        shutil.copy(f"{folder}/AuthKey_{first['keyID']}.p8", f"{folder}/AuthKey_{id}.p8")
    more = [{"keyID": id, "teamID": first["teamID"] if team else id.replace("K", "T")} for id in ids]
    replace(f"{folder}/keys.json", json.dumps({"keys": [first, *more]}))
    return first, ids


def aside(work):
    """In a process of its own, whose threads do not hold up the honest. `recv` of the answer is what it returns."""
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.Process(target=lambda: theirs.send(work()), daemon=True).start()
    return ours


@contextlib.contextmanager
def braked(relay, calls, what):
    """System calls of the relay go wrong or take long."""
    if not shutil.which("strace"):
        raise NotRun("needs strace")
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(relay.process.pid), "-e",
                               f"trace={calls}", "-e", f"inject={calls}:{what}"], stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    if tracer.poll() is not None:
        raise NotRun(f"strace may not: {tracer.stderr.read().strip()}")
    try:
        yield
    finally:
        tracer.terminate()
        tracer.wait()


def first_words(peer):
    """Of an answer in HTTP/1.1, if there is one."""
    peer.setblocking(False)
    try:
        head, _, body = peer.recv(1 << 16).decode().partition("\r\n\r\n")
    except BlockingIOError:
        return "no answer"
    except OSError:
        return "closed"
    return words((int(head.split()[1]), json.loads(body or "{}"))) if head else "closed"


def push_to(relay, token, number="", bearer=None, topic=TOPIC, size=0):
    bearer = "bearer " + (bearer or relay.bearer)
    fields = [("authorization", bearer), ("apns-topic", topic), ("apns-push-type", "alert")]
    return "POST", f"/3/device/{token}", fields, json.dumps({"aps": {"alert": "x" * size}, "n": number}).encode()


def words(answer):
    """Status and reason."""
    status, body = answer
    reason = body.get("reason") if isinstance(body, dict) else None
    return f"{status} `{reason}`" if reason and status else str(reason or status)


def must(answer, status):
    if answer[0] != status:
        raise RuntimeError(f"{words(answer)}, not {status}")
    return answer[1]


def status(block):
    """The status of an answer's head: of the static table, or a literal that is not compressed. The size of the peer's
    table may come first (RFC 7541 section 6.3)."""
    block = block.lstrip(b"\x20")
    return http2.STATUSES.get(block[0]) or int(block[2:5])


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def answers(address, ca, requests):
    """One after the other; the bodies."""
    connection = http2.Connection(address, ca)
    frames, bodies = connection.frames(), []
    for method, path, fields, body in requests:
        stream = connection.request(method, path, fields, end=not body)
        if body:
            connection.send(stream, body, end=True)
        whole = b""
        for kind, flags, at, payload in frames:
            if at == stream and kind == http2.DATA:
                whole += payload
            if at == stream and flags & http2.END_STREAM:
                break
        bodies.append(json.loads(whole or b"{}"))
    connection.socket.close()
    return bodies


def percentile(values, share=.99):
    values = sorted(values)
    return values[int(len(values) * share)] * 1000 if values else float("inf")
