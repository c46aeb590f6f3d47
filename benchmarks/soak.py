"""Mixed load on one relay for as long as wanted, with restarts and faults, for scripts/soak.

  soak.py PUSHRELAY FOLDER MINUTES SEED LIFE

The relay, its phones and all that was seen are kept in FOLDER, so that the next run goes on where this one ended. A relay
is restarted after LIFE minutes. Prints a line a minute, and the sum of all runs at the end. Exits with 1 when something was lost or grows.
"""

import collections
import contextlib
import functools
import http.client
import itertools
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

from relay import TOPIC, Client, Relay, must, run, words

SILENT = TOPIC + ".silent"
PHONES, PROVIDERS, PUSHES_A_SECOND = 60, 8, 400
# Seconds between samples and accounts, and from one provider token to the next: each is good for an hour.
SAMPLE, ACCOUNT, TOKEN = 10, 300, 2400
# Pushes to a relay until its memory is compared: the lives of the last 100,000 fill their place, and what malloc keeps comes to rest.
WARM_UP = 200_000
# What one relay may gain or lose in an hour, as its samples have it.
FLAT_BYTES, FLAT_DESCRIPTORS = 2 << 20, 4
FAULTS = [
    ("provider", {"answer": "ServiceUnavailable"}), ("provider", {"delay": "1s"}), ("provider", {"reset": True}),
    ("provider", {"drop": True}), ("connection", {"goaway": "twice"}), ("connection", {"reset": True}),
    ("connection", {"stall": "2s"}), ("delivery", {"delay": "2s"}), ("delivery", {"drop": True}),
    ("delivery", {"duplicate": True}), ("delivery", {"reset": True}), ("journal", {"failWrite": True}),
    ("journal", {"delay": "1s"})]
# Of two-sided 95 % intervals, by degrees of freedom.
STUDENT = [None, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]
TROUBLE = (OSError, ValueError, http.client.HTTPException)


class Phone:
    """One with a TLS connection of its own, and what was pushed to it. Comes and goes as `wanted` says."""

    def __init__(self, known=None):
        self.link, self.wanted, self.turn_at = None, True, 0
        # Of the app whose pushes are all visible: numbers in order, and whether each was answered 200.
        self.pushed, self.got, self.doubled = [], set(), 0
        self.known = known

    def enrol(self, relay):
        link = Client(relay.device, ca=relay.ca)
        try:
            made = must(link.ask("POST", "/v1/devices"), 201)
            fields = [("authorization", "bearer " + made["secret"])]
            tokens = {topic: must(link.ask("PUT", f"/v1/devices/{made['device']}/apps/{topic}", fields), 200)["token"]
                      for topic in (TOPIC, SILENT)}
        finally:
            link.close()
        self.known = {"device": made["device"], "secret": made["secret"], "tokens": tokens}

    def remove(self, relay):
        link = Client(relay.device, ca=relay.ca)
        try:
            path = f"/v1/devices/{self.known['device']}/apps/"
            for topic in (TOPIC, SILENT):
                must(link.ask("DELETE", path + topic, self.fields), 204)
        finally:
            link.close()

    @property
    def fields(self):
        return [("authorization", "bearer " + self.known["secret"])]

    @property
    def is_there(self):
        return self.link is not None and not self.link.closed

    def come(self, relay):
        self.link = Client(relay.device, ca=relay.ca)
        self.link.listeners[self.link.next_stream] = functools.partial(self.hear, self.link)
        self.link.request("POST", f"/v1/devices/{self.known['device']}/stream", self.fields)

    def go(self):
        if self.link:
            self.link.close()
        self.link = None

    def hear(self, link, stream, line):
        if line["type"] == "bye":
            link.close()
        elif line["type"] == "keepalive":
            link.send(stream, b'{"type":"keepalive"}\n')
        elif line["type"] == "notification":
            number = line["payload"].get("n")
            self.doubled += number in self.got
            self.got.add(number)
            link.send(stream, json.dumps({"type": "ack", "id": line["uniqueId"]}).encode() + b"\n")

    def has_newest(self):
        """The last push that was answered 200, or one behind it of which nobody knows what became."""
        for number, is_known in reversed(self.pushed):
            if number in self.got:
                return True
            if is_known:
                return False
        return True


class Soak:
    def __init__(self, program, folder, minutes, seed, life):
        self.program, self.folder, self.random = program, folder, random.Random(seed)
        self.end, self.life = time.monotonic() + minutes * 60, life * 60
        self.said, self.wrong, self.counts = open(f"{folder}/soak.jsonl", "a"), [], collections.Counter()
        self.calm, self.over = threading.Event(), threading.Event()
        self.calm.set()
        self.number, self.pushing, self.gate = itertools.count(time.time_ns()), 0, threading.Condition()
        os.makedirs(f"{folder}/state", mode=0o700, exist_ok=True)
        self.relay = Relay(program, f"{folder}/state", encrypted=True, threads=2, store="sqlite")
        self.born, self.signed, self.pushes_before = time.monotonic(), time.monotonic(), 0
        self.phones = self.roster()

    def roster(self):
        """Phones of the run before, or new ones."""
        path = f"{self.folder}/phones.json"
        if os.path.exists(path):
            with open(path) as file:
                return [Phone(known) for known in json.load(file)]
        phones = [Phone() for _ in range(PHONES)]
        for phone in phones:
            phone.enrol(self.relay)
        return phones

    def say(self, kind, **values):
        print(json.dumps({"kind": kind, "at": round(time.time()), **values}), file=self.said, flush=True)

    def fail(self, text):
        self.wrong.append(text)
        self.say("wrong", text=text)
        print(f"WRONG: {text}", flush=True)

    # MARK: What goes on

    def provide(self, index):
        """One connection's pushes to its share of the phones, one after the other, so that their order is known."""
        chance, link, left = random.Random(self.random.random()), None, 0
        while not self.over.is_set():
            self.calm.wait()
            with self.gate:
                if not self.calm.is_set():
                    continue
                self.pushing += 1
            try:
                if link is None or link.closed or link.goaway or not left:
                    if link:
                        link.close()
                    link, left = Client(self.relay.provider, ca=self.relay.ca), chance.randrange(200, 2000)
                left -= 1
                self.push(link, chance, chance.choice(self.phones[index::PROVIDERS]))
            except TROUBLE:
                link = None
                self.over.wait(.1)
            finally:
                with self.gate:
                    self.pushing -= 1
                    self.gate.notify_all()
            self.over.wait(chance.random() * 2 * PROVIDERS / PUSHES_A_SECOND)

    def push(self, link, chance, phone):
        kind = chance.choices(("visible", "collapsed", "silent", "fleeting", "refused"), (60, 8, 20, 7, 5))[0]
        topic = SILENT if kind in ("silent", "fleeting") else TOPIC
        token, number = phone.known["tokens"][topic], next(self.number)
        fields = [("authorization", "bearer " + self.relay.bearer), ("apns-topic", topic),
                  ("apns-push-type", "background" if kind == "silent" else "alert")]
        aps = {"content-available": 1} if kind == "silent" else {"alert": "x" * chance.randrange(400)}
        if kind == "silent":
            fields.append(("apns-priority", "5"))
        elif kind == "collapsed":
            fields.append(("apns-collapse-id", f"c{chance.randrange(3)}"))
        elif kind == "fleeting":
            fields.append(("apns-expiration", "0"))
        elif kind == "refused":
            token = chance.choice(("abc", "0" * 64, "f" * 64))
        stored = kind in ("visible", "collapsed")
        if stored:
            # Unknown until it is answered: the relay may take it and be killed before it says so.
            phone.pushed.append((number, False))
        answer = link.ask("POST", f"/3/device/{token}", fields, json.dumps({"aps": aps, "n": number}).encode(), 15)
        self.counts[f"{kind}: {words(answer)}"] += 1
        if stored and answer[0] == 200:
            phone.pushed[-1] = number, True
        elif stored and answer[0] >= 400:
            phone.pushed.pop()
        if answer[0] == 0:
            link.close()
        # Faults and restarts give none or 503, and a phone that was replaced meanwhile is gone.
        if answer[0] not in ((0, 400, 503) if kind == "refused" else (0, 200, 410, 503)):
            self.fail(f"a {kind} push was answered {words(answer)}")

    def serve_phones(self):
        """Has those connected that want to be; each is there for a while and then away. One in a while is replaced."""
        chance, next_removal = random.Random(self.random.random()), time.monotonic() + 30
        while not self.over.wait(.1):
            now = time.monotonic()
            for phone in self.phones:
                with contextlib.suppress(*TROUBLE):
                    if self.calm.is_set() and now > phone.turn_at:
                        phone.wanted = not phone.wanted
                        phone.turn_at = now + chance.uniform(15, 60) if phone.wanted else now + chance.uniform(2, 20)
                    if phone.wanted and not phone.is_there:
                        phone.come(self.relay)
                    elif not phone.wanted and phone.link:
                        phone.go()
            if now > next_removal and self.calm.is_set():
                next_removal = now + 30
                self.replace(chance.randrange(PHONES))

    def replace(self, index):
        """A phone's apps are removed, and another phone comes."""
        try:
            old, new = self.phones[index], Phone()
            new.enrol(self.relay)
            old.remove(self.relay)
            old.go()
            self.phones[index] = new
            self.counts["phones replaced"] += 1
        except (*TROUBLE, RuntimeError):
            # Restarts and faults come between.
            pass

    def operate(self):
        """Reads what an operator and a monitoring system read."""
        chance = random.Random(self.random.random())
        paths = ["/v1/overview", "/metrics", "/v1/notifications?limit=50", "/v1/requests?limit=50", "/v1/refusals",
                 "/v1/devices?limit=20", "/health/ready"]
        while not self.over.wait(chance.uniform(.3, 1.5)):
            path = chance.choice(paths)
            with contextlib.suppress(*TROUBLE):
                status, _ = self.relay.ask("GET", path)
                self.counts[f"operator: {status}"] += 1
                if status != 200 and path != "/health/ready":
                    self.fail(f"GET {path} was answered {status}")
            if chance.random() < .05:
                self.follow(chance.uniform(1, 20))

    def follow(self, seconds):
        """Reads the stream of events for a while."""
        connection = http.client.HTTPConnection(self.relay.admin, timeout=5)
        try:
            connection.request("GET", "/v1/events", headers=self.relay.admin_fields)
            answer, end = connection.getresponse(), time.monotonic() + seconds
            while time.monotonic() < end and answer.read1(65_536):
                pass
        except TROUBLE:
            pass
        finally:
            connection.close()

    def break_things(self):
        """A fault for some seconds, now and then."""
        chance = random.Random(self.random.random())
        while not self.over.wait(chance.uniform(20, 60)):
            at, do = chance.choice(FAULTS)
            fault = {"at": at, "do": do, "when": {"probability": .3}, "seed": chance.randrange(1 << 20)}
            with contextlib.suppress(*TROUBLE):
                self.relay.ask("PUT", "/v1/faults/soak", fault)
                self.counts[f"fault: {at} {next(iter(do))}"] += 1
                self.over.wait(chance.uniform(2, 6))
                self.relay.ask("DELETE", "/v1/faults/soak")

    def sign(self):
        """A new provider token, which connections take up as they come to it."""
        self.relay.bearer = run(self.program, "jwt", "--state", f"{self.folder}/state").strip()
        self.signed = time.monotonic()

    # MARK: What is checked

    @contextlib.contextmanager
    def calmed(self):
        """Nobody pushes and nothing goes wrong on purpose meanwhile."""
        self.calm.clear()
        with self.gate:
            self.gate.wait_for(lambda: self.pushing == 0, 60)
        with contextlib.suppress(*TROUBLE):
            self.relay.ask("DELETE", "/v1/faults/soak")
        yield
        self.calm.set()

    def account(self):
        """Every phone comes, and gets the newest that was answered 200."""
        with self.calmed():
            for phone in self.phones:
                phone.wanted, phone.turn_at = True, 0
                phone.go()
            end = time.monotonic() + 60
            while time.monotonic() < end and not all(phone.has_newest() for phone in self.phones):
                time.sleep(.1)
            for phone in self.phones:
                if not phone.has_newest():
                    self.fail(f"{phone.known['device']} has not got {phone.pushed[-1]}, got {sorted(phone.got)[-3:]}")
                wanted, known = {number for number, _ in phone.pushed}, sum(one for _, one in phone.pushed)
                self.counts["answered 200"] += known
                self.counts["of them on the phone"] += len(wanted & phone.got)
                self.counts["on a phone twice"] += phone.doubled
                phone.pushed, phone.got, phone.doubled = [], set(), 0
        self.counts["accounts"] += 1

    def restart(self):
        """By signal, one after the other; the phones and providers find it again by themselves."""
        self.counts["restarts"] += 1
        if self.counts["restarts"] % 2:
            self.relay.process.kill()
            self.relay.process.wait()
        else:
            self.relay.process.terminate()
            status = self.relay.process.wait(30)
            if status:
                self.fail(f"the relay ended with {status}")
        self.relay.process.stdout.close()
        self.relay.start()
        self.born, self.pushes_before = time.monotonic(), self.pushes()

    def record(self):
        """A minute on record, which replays."""
        name = f"soak-{time.time_ns()}"
        with contextlib.suppress(*TROUBLE):
            if self.relay.ask("PUT", f"/v1/recordings/{name}", {})[0] not in (200, 201):
                return
            self.pause(60)
            self.relay.ask("POST", f"/v1/recordings/{name}/stop", {})
            path = f"{self.folder}/state/recordings/{name}.prr"
            replayed = subprocess.run([self.program, "replay", path], capture_output=True, text=True)
            self.counts["recordings replayed"] += 1
            if replayed.returncode:
                self.fail(f"{name} does not replay: {replayed.stdout[-500:]}{replayed.stderr[-500:]}")
            self.relay.ask("DELETE", f"/v1/recordings/{name}")

    def sample(self):
        relay, state = self.relay, f"{self.folder}/state"
        with os.scandir(state) as files:
            journal = sum(file.stat().st_size for file in files if file.is_file())
        values = {"life": round(self.born), "age": round(time.monotonic() - self.born, 1),
                  "pushes": self.pushes() - self.pushes_before, "bytes": relay.memory(),
                  "descriptors": relay.descriptors(), "processor": relay.processor(), "journal": journal}
        self.say("sample", **values)
        return values

    # MARK: The run

    def pause(self, seconds):
        """Samples meanwhile."""
        end = min(time.monotonic() + seconds, self.end)
        while (left := end - time.monotonic()) > 0:
            self.over.wait(min(left, SAMPLE))
            values = self.sample()
        return values

    def go(self):
        threads = [threading.Thread(target=self.provide, args=(index,)) for index in range(PROVIDERS)]
        threads += [threading.Thread(target=work) for work in (self.serve_phones, self.operate, self.break_things)]
        for thread in threads:
            thread.start()
        start, accounted = time.monotonic(), time.monotonic()
        try:
            while time.monotonic() < self.end:
                values = self.pause(60)
                print(f"{(time.monotonic() - start) / 60:5.0f} min: {self.pushes()} pushes, "
                      f"{values['bytes'] >> 20} MB, {values['descriptors']} descriptors, "
                      f"{values['journal'] >> 20} MB journal, {len(self.wrong)} wrong", flush=True)
                if self.relay.process.poll() is not None:
                    return self.fail(f"the relay has ended by itself: {self.relay.last_words()}")
                if time.monotonic() - accounted > ACCOUNT:
                    self.account()
                    self.record()
                    accounted = time.monotonic()
                if time.monotonic() - self.signed > TOKEN:
                    self.sign()
                if time.monotonic() - self.born > self.life:
                    self.restart()
            self.account()
        finally:
            self.over.set()
            self.calm.set()
            for thread in threads:
                thread.join(30)
            for phone in self.phones:
                phone.go()
            self.relay.stop()
            self.say("run", seconds=round(time.monotonic() - start), counts=self.counts)
            with open(f"{self.folder}/phones.json", "w") as file:
                json.dump([phone.known for phone in self.phones], file)

    def pushes(self):
        kinds = ("visible", "collapsed", "silent", "fleeting", "refused")
        return sum(count for key, count in list(self.counts.items()) if key.split(":")[0] in kinds)


def slope(samples, field):
    """By least squares, an hour."""
    ages, values = [sample["age"] / 3600 for sample in samples], [sample[field] for sample in samples]
    return statistics.linear_regression(ages, values).slope


def interval(slopes):
    """The mean, and half the length of its interval of 95 %; none from a single one."""
    if len(slopes) < 2:
        return statistics.fmean(slopes), None
    t = STUDENT[min(len(slopes) - 1, len(STUDENT) - 1)]
    return statistics.fmean(slopes), t * statistics.stdev(slopes) / math.sqrt(len(slopes))


def report(folder):
    """Over all runs; whether nothing was lost and nothing grows."""
    with open(f"{folder}/soak.jsonl") as file:
        lines = [json.loads(line) for line in file]
    counts, seconds, lives, wrong = collections.Counter(), 0, collections.defaultdict(list), 0
    for line in lines:
        if line["kind"] == "run":
            counts.update(line["counts"])
            seconds += line["seconds"]
        elif line["kind"] == "sample" and line.get("pushes", 0) > WARM_UP:
            lives[line["life"]].append(line)
        wrong += line["kind"] == "wrong"
    print(f"\n{seconds / 3600:.2f} hours in {sum(line['kind'] == 'run' for line in lines)} runs")
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count:,}")
    # Ten minutes or more of one relay.
    lives, grows = [samples for samples in lives.values() if samples[-1]["age"] - samples[0]["age"] > 600], False
    for field, unit, flat in (("bytes", 1 << 20, FLAT_BYTES), ("descriptors", 1, FLAT_DESCRIPTORS)):
        if not lives:
            print("no relay lived long enough to say whether it grows")
            break
        mean, half = interval([slope(samples, field) for samples in lives])
        within = f" ± {half / unit:.2f}" if half is not None else ""
        print(f"{'MB' if unit > 1 else field} an hour, {len(lives)} lives from {WARM_UP:,} pushes on: {mean / unit:+.2f}{within}")
        grows = grows or mean - (half or 0) > flat
    print("something grows" if grows else f"{wrong} wrong")
    return wrong == 0 and not grows


def main():
    program, folder, minutes, seed, life = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    soak = Soak(program, folder, float(minutes), int(seed), float(life))
    with contextlib.suppress(KeyboardInterrupt):
        soak.go()
    sys.exit(0 if report(folder) else 1)


main()
