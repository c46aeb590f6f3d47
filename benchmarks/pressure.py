"""A relay at its limits, one after the other, and an honest provider and phone beside each, for scripts/pressure.

  pressure.py PUSHRELAY DEVICES [SCENE...]

Each scene has a relay of its own. Prints a table in Markdown. Exits with 1 when something is not as docs/OPERATIONS.md
has it, or is not normal again in time.
"""

import collections
import contextlib
import glob
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from relay import Client, Honest, MOST_MILLISECONDS, NotRun, Phone, Scene, TOPIC, aside, braked, clients, dial
from relay import first_words, fleet, keys, must, percentile, push_to, replace, run, until, words

UNAVAILABLE = "503 `ServiceUnavailable`"
# Of one program.
MOST_PHONES = 100_000
WHO = "authorization: TOKEN\r\nhost: localhost\r\n"

# Descriptors and memory

def descriptors(scene):
    keys(scene, 500, team=True)
    relay, honest = scene.start(before=["sh", "-c", 'ulimit -n 256; exec "$0" "$@"'])
    admin, before = http.client.HTTPConnection(relay.admin, timeout=5), relay.descriptors()
    relay.ask("GET", "/v1/overview", connection=admin)
    crowd = [dial(relay.provider) for _ in range(400)]
    until(lambda: relay.logged("connections wait until some end"), 5, "the log says that none are left")
    # Longer than the second after which keys and certificates are read again.
    scene.beside(honest)
    scene.hears("enrolment on an old connection", honest.phone.link.ask("POST", "/v1/devices"), "201")
    scene.hears("admin there", relay.ask("GET", "/v1/overview", connection=admin), "200")
    scene.hears("new connection", Client(relay.provider).ask(*push_to(relay, honest.phone.token), 1), "no answer")
    while crowd:
        crowd.pop().close()
    scene.normal(honest)
    # Some come free now and then, and somebody takes them: who needs many gets some.
    end = time.monotonic() + 10

    def churn():
        while time.monotonic() < end:
            crowd.append(dial(relay.provider))
            if len(crowd) > 260 - before:
                for _ in range(10):
                    crowd.pop(0).close()
            time.sleep(.0005)
    thread = threading.Thread(target=churn, daemon=True)
    thread.start()
    said, _ = honest.push_for(9)
    thread.join()
    scene.hears("while they come and go", said, "200")
    lost = relay.logged("provider key not used")
    scene.expect(lost == 0, f"{lost} times a good provider key was not used")
    while crowd:
        crowd.pop().close()
    scene.normal(honest)
    until(lambda: relay.descriptors() <= before + 4, 10, "descriptors are given back")

def memory(scene):
    relay, honest = scene.start(store="memory", environment={"PUSHRELAY_MAXIMUM_MEMORY": "110"})
    link, tokens = Client(relay.device), []
    for path, fields in fleet(link, 60):
        registrations = (("PUT", f"{path}/apps/com.example.app{n}", fields) for n in range(256))
        tokens += [must(answer, 200)["token"] for answer in link.ask_all(registrations, 500 if tokens else 16)]
    must(honest.push(to=honest.away.token), 200)
    start, provider = relay.memory(), honest.provider
    said = collections.Counter(map(words, provider.ask_all(
        push_to(relay, token, topic=f"com.example.app{n % 256}", size=3900) for n, token in enumerate(tokens))))
    scene.hears(f"{len(tokens)} pushes of 4 kB to phones away", said, "200", UNAVAILABLE)
    scene.expect(len(said) == 2, "not both")
    scene.hears("push to a phone that is there", honest.push(), UNAVAILABLE)
    scene.hears("enrolment", honest.phone.link.ask("POST", "/v1/devices"), UNAVAILABLE)
    scene.hears("registration", honest.phone.register("com.example.more"), UNAVAILABLE)
    scene.hears("a phone's question", honest.phone.link.ask("GET", honest.phone.path, honest.phone.fields), "200")
    honest.away.comes(relay)
    until(lambda: honest.away.got, 5, "what was kept reaches a phone that comes now")
    scene.expect(relay.memory("VmHWM") < 130 << 20, f"{relay.memory('VmHWM') >> 20} MB, not 110")
    # Refused ones must not add up.
    before = relay.memory()
    provider.ask_all(push_to(relay, tokens[0], topic="com.example.app0", size=3900) for _ in range(20_000))
    scene.expect(relay.memory() - before < 8 << 20, f"20,000 refused pushes left {relay.memory() - before >> 20} MB")
    must(relay.ask("POST", "/v1/reset", {"all": True}), 204)
    # Memory that was freed is given back every two seconds.
    scene.normal(honest)
    scene.expect(relay.logged("memory suffices"), "the log does not say that it is over")
    scene.say(f"{start >> 20} MB before, {relay.memory() >> 20} MB after the slots were emptied")

# Disks

def mount(scene, options):
    """The state directory becomes a small disk of its own."""
    command = ["mount", "-t", "tmpfs", "-o", f"mode=0700,{options}", "disk", scene.state]
    if subprocess.run(command, capture_output=True).returncode:
        raise NotRun("needs root, or user namespaces")
    scene.ends.append(lambda: run("umount", "-l", scene.state))

@contextlib.contextmanager
def full(scene):
    with open(f"{scene.state}/filler", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)) == 4096:
            pass
    yield
    os.remove(f"{scene.state}/filler")

def failing(scene, relay, honest, pressure, *also):
    """Nothing can be written for a while, or (`also`) not everything. What is answered 200 is not lost by it."""
    away = honest.away
    with pressure:
        # The first that has to be written finds out.
        until(lambda: honest.push(to=away.token)[0] == 503, 10, "a push that must be stored is refused")
        scene.hears("push to store", honest.push(to=away.token), UNAVAILABLE, *also)
        # One that is acknowledged before it is written (`linger`) is never written.
        scene.hears("push to a phone that is there", honest.push_for(1)[0], "200", UNAVAILABLE)
        scene.hears("registration", honest.phone.register("com.example.more"), UNAVAILABLE, *also)
        scene.hears("enrolment", honest.phone.link.ask("POST", "/v1/devices"), UNAVAILABLE, *also)
        scene.hears("`/health/ready`", relay.ask("GET", "/health/ready"), "503 `JournalFails`", *also)
        scene.hears("a phone's question", away.link.ask("GET", away.path, away.fields), "200")
        before = relay.memory()
        honest.provider.ask_all(push_to(relay, away.token, size=3900) for _ in range(5000))
        scene.expect(relay.memory() - before < 16 << 20, f"5,000 refused left {relay.memory() - before >> 20} MB")
    scene.normal(honest)
    away.comes(relay)
    until(lambda: away.got, 5, "what was answered 200 reaches a phone that comes")

def disk_full(scene):
    mount(scene, "size=24m")
    relay, honest = scene.start()
    # What has room in the pages that the journal's log already has is still written.
    failing(scene, relay, honest, full(scene), "200", "201")

def disk_broken(scene, error="EIO"):
    relay, honest = scene.start()
    failing(scene, relay, honest, braked(relay, "pwrite64,fdatasync,fsync,ftruncate", f"error={error}"))
    return relay

def disk_read_only(scene):
    """A mount with files open for writing stays writable: first its writes fail, then it is so at a start."""
    mount(scene, "size=24m")
    relay = disk_broken(scene, "EROFS")
    away = Phone(relay, listens=False)
    must(Honest(relay).push(to=away.token), 200)
    relay.stop()
    run("mount", "-o", "remount,ro", scene.state)
    refused_start(scene, relay)
    run("mount", "-o", "remount,rw", scene.state)
    relay.start()
    scene.normal(Honest(relay))
    away.comes(relay)
    until(lambda: away.got, 5, "what was answered 200 before reaches a phone that comes")

def refused_start(scene, relay):
    try:
        relay.start()
        scene.expect(False, "it starts")
    except RuntimeError as problem:
        scene.say(str(problem).replace(scene.folder, ""))
    relay.process.wait(10)
    scene.expect(relay.process.returncode == 1, f"exit status {relay.process.returncode}")

def disk_slow(scene):
    relay, honest = scene.start()
    with braked(relay, "fdatasync,fsync", "delay_enter=300000"):
        scene.beside(honest)
        start = time.monotonic()
        said = list(map(words, honest.provider.ask_all(push_to(relay, honest.away.token) for _ in range(500))))
        took = time.monotonic() - start
        scene.hears("500 to store", said, "200")
        scene.say(f"in {took:.1f} s, with 0.3 s for a flush")
        scene.expect(took < 5, "slower than a few flushes")
    scene.normal(honest)

def inodes(scene):
    mount(scene, "size=24m,nr_inodes=60")
    relay, honest = scene.start()
    os.mkdir(f"{scene.state}/many")
    with contextlib.suppress(OSError):
        for number in range(100):
            open(f"{scene.state}/many/{number}", "w").close()
    scene.beside(honest)
    scene.hears("push to store", honest.push(to=honest.away.token), "200")
    scene.hears("enrolment", honest.phone.link.ask("POST", "/v1/devices"), "201")
    scene.hears("recording", relay.ask("PUT", "/v1/recordings/more", {}), "503 `CannotWrite`")
    made = subprocess.run([scene.program, "key", "new", "--state", scene.state], capture_output=True, text=True)
    scene.say(f"`key new`: {made.stderr.strip().replace(scene.folder, '')}")
    scene.expect(made.returncode, "a key is made without a file")
    scene.beside(honest, 2)
    shutil.rmtree(f"{scene.state}/many")
    scene.normal(honest)
    must(relay.ask("PUT", "/v1/recordings/more", {}), 200)

# Time and numbers

def clock_steps(scene):
    library, offset = f"{scene.folder}/clock.so", f"{scene.folder}/offset"
    if not shutil.which("cc"):
        raise NotRun("needs a C compiler")
    run("cc", "-O1", "-shared", "-fPIC", "-o", library, str(clients / "clockoffset.c"))
    replace(offset, "0")
    relay, honest = scene.start(environment={"LD_PRELOAD": library, "CLOCK_OFFSET_FILE": offset})
    # Two end 32 bits of seconds, with a sign and without, a moment later.
    steps = {"50 minutes back": -3000, "50 minutes on": 0, "30 days back": -2_592_000, "60 days on": 2_592_000,
             "2038": 2 ** 31 - 5 - time.time(), "2106": 2 ** 32 - 5 - time.time(), "back to now": 0}
    before = 0
    for name, seconds in steps.items():
        replace(offset, str(int(seconds)))
        # Looked at once a second.
        honest.push_for(1.5)
        near = abs(seconds - before) < 3600
        scene.hears(f"{name}, token of before", honest.push(), "200" if near else "403 `ExpiredProviderToken`")
        if name.startswith("2"):
            time.sleep(5)
        issued = str(int(time.time() + seconds))
        honest.bearer = run(scene.program, "jwt", "--state", relay.state, "--issued-at", issued).strip()
        # Who changes it often on one connection is refused.
        honest.provider, before = Client(relay.provider), seconds
        scene.normal(honest)
    honest.away.comes(relay)
    until(lambda: honest.away.got, 5, "what was stored before is there")

def streams(scene):
    """The last numbers of streams on a connection of a provider, and of a phone."""
    relay, honest = scene.start()
    provider = Client(relay.provider, 2 ** 31 - 9)
    scene.hears("streams 2^31-9 to 2^31-1", [words(honest.push(provider)) for _ in range(5)], "200")
    # A client opens another connection then; number 1 again is an error.
    scene.hears("then number 1", honest.push(provider), "GOAWAY 1")
    until(lambda: provider.closed, 5, "the connection ends")
    phone = Phone(relay, first=2 ** 31 - 7)
    scene.expect(phone.link.next_stream > 2 ** 31 - 3, "it has not come to the last numbers")
    must(honest.push(to=phone.token), 200)
    until(lambda: phone.got, 5, "a phone whose stream has a last number is served")
    wide = Client(relay.provider)
    must(honest.push(wide), 200)
    wide._send(b"\0\0\4\x08\0\0\0\0\0" + (2 ** 31 - 1).to_bytes(4, "big"))
    until(lambda: wide.closed, 5, "a window beyond 2^31-1 ends the connection")
    scene.hears("a window beyond 2^31-1", [wide.goaway], "GOAWAY 3")
    scene.beside(honest)
    scene.normal(honest)

# Many

def enrol(scene, relay, honest):
    """All devices, with an app each; their tokens."""
    before, link, tokens, start, times = relay.memory(), Client(relay.device), [], time.monotonic(), []
    must(link.ask("GET", *fleet(link, 1)[0]), 200)
    for part in range(0, scene.devices, 5000):
        made = link.ask_all((("POST", "/v1/devices") for _ in range(min(5000, scene.devices - part))))
        answers = link.ask_all(
            ("PUT", f"/v1/devices/{one['device']}/apps/{TOPIC}", [("authorization", "bearer " + one["secret"])])
            for one in (must(answer, 201) for answer in made))
        tokens += [must(answer, 200)["token"] for answer in answers]
        honest.push_for(.1)
        times += honest.times
    took, each = time.monotonic() - start, (relay.memory() - before) / scene.devices
    scene.say(f"{scene.devices} enrolled and registered in {took:.0f} s, {each:.0f} bytes of memory each")
    scene.expect(percentile(times) < MOST_MILLISECONDS, "the honest push waited")
    return tokens

def devices(scene):
    relay, honest = scene.start()
    tokens = enrol(scene, relay, honest)
    some = random.sample(tokens, 2000)
    scene.hears("pushes to some", map(words, honest.provider.ask_all(push_to(relay, token) for token in some)), "200")
    for path in ("/metrics", "/v1/overview", "/v1/devices?limit=100", "/v1/devices?search=nobody"):
        start = time.monotonic()
        status, took = relay.ask("GET", path, wait=60)[0], time.monotonic() - start
        scene.expect(status == 200 and took < 1, f"{path}: {status} after {took:.1f} s")
    scene.beside(honest)
    scene.normal(honest)
    relay.stop()
    start = time.monotonic()
    relay.start()
    scene.say(f"the next start takes {time.monotonic() - start:.1f} s, {relay.memory() / scene.devices:.0f} bytes each")
    scene.normal(Honest(relay))

def crowd(scene):
    """Beside all devices a fifth as many that are there, on shared connections, until the relay is killed."""
    with socket.create_server(("127.0.0.1", 0)) as some:
        port = some.getsockname()[1]
    relay, honest = scene.start("--device", f"127.0.0.1:{port}")
    enrol(scene, relay, honest)
    before, count, start = relay.memory(), scene.devices // 5, time.monotonic()
    programs = [subprocess.Popen(
        [scene.program, "device", "--light", "--count", str(min(count - first, MOST_PHONES)), "--per-connection", "2000",
         "--plaintext", "--device", relay.device, "--state", f"{scene.folder}/phones{first}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for first in range(0, count, MOST_PHONES)]
    for program in programs:
        scene.ends.append(lambda program=program: (program.terminate(), program.wait()))

    def connected():
        if any(program.poll() is not None for program in programs):
            raise RuntimeError("the phones' program ended")
        text = relay.ask("GET", "/metrics", wait=60)[1]
        return int(float(text.split('pushrelay_devices{state="connected"} ')[1].split()[0]))

    until(lambda: connected() > count, 300, "all phones are there")
    scene.say(f"{count} more are there after {time.monotonic() - start:.0f} s, "
              f"{(relay.memory() - before) / count:.0f} bytes of memory each, with {relay.descriptors()} descriptors")
    scene.beside(honest)
    relay.most = max(relay.most, relay.memory("VmHWM"))
    relay.process.kill()
    relay.process.wait()
    start = time.monotonic()
    relay.start()
    ready, honest = time.monotonic() - start, Honest(relay)
    said, p99 = collections.Counter(), []
    while connected() <= count and time.monotonic() - start < 300:
        some, one = honest.push_for(1)
        said.update(some)
        p99.append(one)
    scene.expect(connected() > count, "some do not come back")
    scene.say(f"killed: ready after {ready:.1f} s, all are back after {time.monotonic() - start:.1f} s, "
              f"{relay.processor():.1f} s of processor time")
    scene.hears(f"{sum(said.values())} pushes meanwhile", said, "200")
    scene.say(f"p99 of a second at most {max(p99, default=0):.0f} ms")
    scene.normal(honest)

def apps(scene):
    relay, honest = scene.start()
    phone = honest.phone
    said = collections.Counter(map(words, phone.link.ask_all(
        ("PUT", f"{phone.path}/apps/com.example.app{n}", phone.fields) for n in range(10_000))))
    scene.hears("10,000 apps", said, "200", "409 `TooManyApps`")
    scene.expect(said["200"] == 255, f"{said['200']} more than the first one")
    scene.beside(honest)
    scene.hears("an app less", phone.register("com.example.app0", "DELETE"), "204")
    scene.hears("another one", phone.register("com.example.last"), "200")
    scene.normal(honest)

def hammer(scene):
    relay, honest = scene.start()
    target = Phone(relay, listens=False)

    def strike():
        provider, said, end = Client(relay.provider), collections.Counter(), time.monotonic() + 5
        must(provider.ask(*push_to(relay, target.token)), 200)
        while time.monotonic() < end:
            pushes = (push_to(relay, target.token, n, size=200) for n in range(2000))
            said.update(map(words, provider.ask_all(pushes, 900)))
        return said
    striker = aside(strike)
    scene.beside(honest, 5)
    said = striker.recv()
    scene.hears(f"{said.total()} to one token in 5 s", said, "200")
    size = sum(os.path.getsize(path) for path in glob.glob(f"{relay.state}/relay.sqlite*"))
    scene.expect(size < 48 << 20, f"the journal of a few pushes takes {size >> 20} MB")
    scene.normal(honest)
    target.comes(relay)
    until(lambda: target.got, 5, "the last one is there")
    scene.expect(len(target.got) == 1, f"{len(target.got)} came, not the last one")
    relay.stop()
    relay, honest = scene.start(environment={"PUSHRELAY_TOKEN_REQUESTS_PER_MINUTE": "60"})
    pushes = (push_to(relay, honest.away.token) for _ in range(2000))
    said = collections.Counter(map(words, honest.provider.ask_all(pushes)))
    scene.hears("2,000 with 60 a minute", said, "200", "429 `TooManyRequests`")
    scene.expect(400 <= said["200"] < 450, f"{said['200']} were let through")
    scene.beside(honest)

def teams(scene):
    count, (first, ids) = 2000, keys(scene, 2000, team=False)
    relay, honest = scene.start(store="memory", environment={"PUSHRELAY_METRICS_TOPICS": "true"})
    bearers = [run(scene.program, "jwt", "--key", id, "--state", relay.state).strip() for id in ids]
    link = Client(relay.device)
    phones, said = fleet(link, count // 250), collections.Counter()
    side = threading.Thread(target=lambda: scene.beside(honest, 10), daemon=True)
    side.start()
    for number, bearer in enumerate(bearers):
        path, fields = phones[number // 250]
        topic = f"com.example.topic{number}"
        token = must(link.ask("PUT", f"{path}/apps/{topic}", fields), 200)["token"]
        provider = Client(relay.provider)
        said[words(provider.ask(*push_to(relay, token, bearer=bearer, topic=topic)))] += 1
        provider.close()
    side.join()
    scene.hears(f"{count} keys, teams and topics", said, "200")
    metrics = relay.ask("GET", "/metrics")[1]
    topics = {line.split('topic="')[1].split('"')[0] for line in metrics.splitlines() if 'topic="' in line}
    scene.say(f"/metrics has {len(metrics) >> 10} kB and {len(topics)} topics")
    scene.expect(50 <= len(topics) <= 101 and len(metrics) < 1 << 17, "more than 50 topics of a loop and `other`")
    used = relay.processor()
    time.sleep(5)
    share = (relay.processor() - used) / 5
    scene.say(f"{share:.0%} of a core at rest")
    scene.expect(share < .1, "keys that nobody uses cost more than a tenth of a core")
    added = json.loads(run(scene.program, "key", "new", "--json", "--state", relay.state))["keyId"]
    bearer, start = run(scene.program, "jwt", "--key", added, "--state", relay.state).strip(), time.monotonic()
    answer = Client(relay.provider).ask(*push_to(relay, honest.phone.token, bearer=bearer), 60)
    scene.hears("push with a key more", answer, "200")
    scene.say(f"after {time.monotonic() - start:.1f} s")
    scene.expect(time.monotonic() - start < 1, "a new key does not count at once")
    provider = Client(relay.provider)
    replace(f"{relay.state}/keys/keys.json", json.dumps({"keys": [first]}))
    push = push_to(relay, honest.phone.token, bearer=bearers[5])
    took = until(lambda: provider.ask(*push)[0] == 403, 10, "keys are gone")
    scene.say(f"all but one taken away: 403 after {took:.1f} s")
    scene.expect(took < 1.5, "keys that are taken away count for longer than a second")
    scene.normal(honest)

def faults(scene):
    relay, honest = scene.start()
    rule = {"at": "provider", "do": {"answer": "ServiceUnavailable"}, "match": {"topic": "com.example.other"}}
    said = collections.Counter(words(relay.ask("PUT", f"/v1/faults/f{n}", rule)) for n in range(1000))
    scene.hears("1,000 faults", said, "200", "409 `TooManyFaults`")
    scene.expect(said["200"] == 100, f"{said['200']} are in force")
    scene.beside(honest)
    must(relay.ask("DELETE", "/v1/faults/f0"), 204)
    scene.hears("after one was removed", relay.ask("PUT", "/v1/faults/next", rule), "200")
    for name in ["next", *(f"f{n}" for n in range(1, 100))]:
        must(relay.ask("DELETE", f"/v1/faults/{name}"), 204)
    scene.normal(honest)

# The admin API

def waits(scene):
    relay, honest = scene.start()
    before = relay.descriptors()
    body = json.dumps({"expect": {"what": "received", "topic": "com.example.never"}, "timeout": "60s"})
    text = f"POST /v1/wait HTTP/1.1\r\n{WHO}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    text = text.replace("TOKEN", relay.admin_fields["authorization"])
    peers = [dial(relay.admin, text) for _ in range(2000)]
    time.sleep(2)
    said = collections.Counter(map(first_words, peers))
    # Of those whose token was not read yet the oldest end for the next (`adminConnections`).
    scene.hears("2,000 waits", said, "no answer", "503 `TooManyWaits`", "closed")
    scene.say(f"{said}".removeprefix("Counter"))
    scene.expect(said["no answer"] == 256 and said["closed"] < 100, "not 256 wait, or many are closed")
    scene.beside(honest)
    scene.hears("admin", relay.ask("GET", "/v1/overview"), "200")
    for peer in peers:
        peer.close()
    wish = {"expect": {"what": "received", "topic": TOPIC}, "timeout": "1s"}
    scene.again = until(lambda: relay.ask("POST", "/v1/wait", wish)[0] == 200, 10, "a wait is taken again")
    scene.normal(honest)
    until(lambda: relay.descriptors() <= before + 4, 10, "descriptors are given back")

def readers(scene, path="/v1/events", count=1000, reading=2, seconds=15):
    """One in `reading` reads."""
    relay, honest = scene.start()
    honest.provider.ask_all(push_to(relay, honest.phone.token, size=3000) for _ in range(3000))
    before, open_files, told = relay.memory(), relay.descriptors(), None
    text = f"GET {path} HTTP/1.1\r\n{WHO}\r\n".replace("TOKEN", relay.admin_fields["authorization"])
    peers = [dial(relay.admin, text, None if reading and n % reading == 0 else 4096) for n in range(count)]

    def read():
        end, told = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for peer in peers[::reading]:
                peer.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    told += len(peer.recv(1 << 18))
            time.sleep(.05)
        return told
    reader = aside(read) if reading else None
    scene.beside(honest, seconds - 5)
    start = time.monotonic()
    scene.hears("admin", relay.ask("GET", "/v1/overview", wait=90), "200")
    took, more = time.monotonic() - start, relay.memory("VmHWM") - before >> 20
    scene.say(f"after {took:.1f} s, with {more} MB of memory more")
    scene.expect(took < 1, "other operators wait for longer than a second")
    scene.expect(more < 256, "more than 256 MB")
    if reader:
        told = reader.recv()
        scene.say(f"{told >> 20} MB were read")
        scene.expect(told > 1 << 20, "nobody was told anything")
    else:
        # After half a minute in which nothing was taken, twice at most.
        took = until(lambda: relay.descriptors() <= open_files + 4, 90, "who does not read is sent away")
        scene.say(f"all are sent away after {took:.0f} s")
    for peer in peers:
        peer.close()
    scene.normal(honest)
    until(lambda: relay.descriptors() <= open_files + 4, 30, "descriptors are given back")

SCENES = {
    "descriptors used up": descriptors, "memory at its ceiling": memory, "disk full": disk_full,
    "disk read-only": disk_read_only, "disk with I/O errors": disk_broken, "disk slow": disk_slow,
    "inodes used up": inodes, "clock steps": clock_steps, "last stream numbers": streams, "many devices": devices,
    "a crowd": crowd, "10,000 apps of a device": apps, "one token hammered": hammer, "thousands of teams": teams,
    "faults": faults, "waits": waits, "readers of events": readers,
    "readers of requests": lambda scene: readers(scene, "/v1/requests?limit=500", 500, reading=0),
}

def play(name, program, devices):
    """One scene and its row; whether all was as it should be."""
    scene, skipped = Scene(program, devices), None
    try:
        SCENES[name](scene)
    except NotRun as reason:
        skipped = f"not run: {reason}"
    except Exception as problem:
        if os.environ.get("PRESSURE_TRACE"):
            raise
        scene.expect(False, f"{type(problem).__name__}: {problem}")
    finally:
        scene.close()
    said = skipped or "; ".join(scene.said + [f"**{text}**" for text in scene.wrong])
    most = max((relay.most for relay in scene.relays), default=0) >> 20
    again = "never" if scene.again is None else f"{scene.again:.2f} s"
    mark = "**" if scene.wrong else ""
    print(f"| {mark}{name}{mark} | {said} | {most} MB | {again} |".replace("\n", " "), flush=True)
    return not scene.wrong

def main():
    program, devices, *wanted = sys.argv[1:]
    # Mounts of its own, which end with it, however it does.
    if "PRESSURE_MOUNTS" not in os.environ and shutil.which("unshare"):
        os.environ["PRESSURE_MOUNTS"] = "own"
        for flags in ("-m", "-rm"):
            if subprocess.run(["unshare", flags, "true"], capture_output=True).returncode == 0:
                os.execvp("unshare", ["unshare", flags, sys.executable, *sys.argv])
    for name in wanted:
        if name not in SCENES:
            sys.exit(f"{name} is none of: {', '.join(SCENES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    socket.setdefaulttimeout(10)
    print("| pressure | what is answered meanwhile | most memory | normal again after |\n|---|---|---|---|", flush=True)
    right = [play(name, program, int(devices)) for name in wanted or SCENES]
    sys.exit(0 if all(right) else 1)

main()
