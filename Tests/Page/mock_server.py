#!/usr/bin/env python3
"""A made-up relay behind the admin API's page, for developing the page and testing it.

It speaks Sources/Cockpit/openapi.json as far as the page uses it, with a virtual clock, a budget of
three silent pushes an hour and app, and two hours of history. Nothing in it decides anything for the
real relay.
`POST /mock/flood {"rate":5000,"seconds":3}` streams made-up pushes.
"""

import argparse
import base64
import copy
import json
import random
import re
import threading
import time
import uuid
from collections import OrderedDict, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "Sources/Cockpit/Page"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
MINUTE = 60_000
REFILL, BUDGET = 20 * MINUTE, 3
KNOWN_POLICIES = ["documented", "strict", "unlimited"]
NAMES = ["anna", "ben", "cleo", "dora", "emil", "frida"]
SILENT = {"aps": {"content-available": 1}, "folder": "inbox"}
VISIBLE = [
    {"aps": {"alert": {"title": "Anna", "subtitle": "Tonight", "body": "Dinner at eight?"}, "badge": 3,
             "sound": "default", "thread-id": "dinner", "category": "INVITE"}},
    {"aps": {"alert": {"title": "Ben", "body": "I bring the dessert."}, "badge": 4, "thread-id": "dinner"}},
    {"aps": {"alert": {"title-loc-key": "GAME_INVITE", "loc-key": "PLAY_WITH", "loc-args": ["Cleo", "chess"]},
             "sound": {"name": "bell.caf", "critical": 1}}},
    {"aps": {"alert": "Storm warning for the coast"}},
]


def length_of(text):
    """Milliseconds of a length such as 1h30m, or None."""
    parts = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text or "")
    if not parts or not text:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000


def stamp(milliseconds):
    seconds, rest = divmod(milliseconds, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03}Z"


def banner_text(payload):
    """What a phone reads in an alert, as Sources/DeviceSimulator/Payload.swift does."""
    alert = ((payload or {}).get("aps") or {}).get("alert")
    if isinstance(alert, str):
        return alert or None
    if not isinstance(alert, dict):
        return None
    parts = [next((alert[key] for key in keys if isinstance(alert.get(key), str)), None)
             for keys in (("title", "title-loc-key"), ("subtitle", "subtitle-loc-key"), ("body", "loc-key"))]
    return ": ".join(part for part in parts if part is not None) or None


class Problem(Exception):
    def __init__(self, status, reason, message, **more):
        super().__init__(reason)
        self.status, self.body = status, {"reason": reason, "message": message, **more}


class App:
    def __init__(self, topic, token):
        self.topic, self.token = topic, token
        self.visible = self.silent = None
        self.used = []  # when each token that is gone comes back

    def view(self, now, low):
        left = 0 if low else BUDGET - len([back for back in self.used if back > now])
        held = min((back for back in self.used if back > now), default=None)
        limit = "low-power-mode" if low else None if left else "app-budget"
        return {"topic": self.topic, "token": self.token, "visible": self.visible,
                "silent": self.silent,
                "budget": {"remaining": left, "burst": BUDGET, "every": "20m", "next": held, "allowed": left > 0,
                           "limit": limit, "heldUntil": None if left or low else held}}


class Phone:
    """What a phone that takes orders says of itself."""

    def __init__(self, topics):
        self.lock, self.low, self.charging, self.off = "locked", False, False, False
        self.states = dict.fromkeys(topics, "suspended")
        self.banners, self.activities = [], []

    def show(self, app, text, at, collapse):
        """A banner; it takes the place of the app's with the same collapse id."""
        self.banners = [banner for banner in self.banners
                        if not collapse or (banner["app"], banner["collapse"]) != (app, collapse)]
        self.banners.append({"app": app, "text": text, "at": at, "contentReady": True, "collapse": collapse})

    def view(self, device, now):
        return {"phone": device.name, "time": now, "link": "connected" if device.connected else "away",
                "network": device.network, "processor": "off" if self.off else "asleep", "lock": self.lock,
                "charging": self.charging, "lowPower": self.low, "refresh": True,
                "banners": [{key: value for key, value in banner.items() if key != "collapse"}
                            for banner in self.banners[-50:]],
                **({"activities": self.activities} if self.activities else {}),
                "apps": [{"app": topic, "version": "1.0", "state": state, "refresh": True, "nextSilent": now,
                          "badge": sum(banner["app"] == topic for banner in self.banners),
                          **({"refused": "force-quit"} if state == "forceQuit" else {}),
                          **({"lastRun": {"began": now - 60_000, "ended": now - 58_000, "cause": "push 3", "outcome": "newData"}}
                             if topic == "com.example.news" else {})}
                         for topic, state in self.states.items()]}

    def obey(self, device, order):
        verb, app = order["do"], order.get("app")
        if verb in ("open", "swipe away", "uninstall", "install again", "crash"):
            if app not in self.states:
                raise Problem(400, "BadOrder", f"the phone has no app {app}")
            self.states[app] = {"open": "foreground", "swipe away": "forceQuit", "uninstall": "uninstalled"}.get(verb, "notRunning")
            if verb == "open":
                self.lock, self.banners = "unlocked", [banner for banner in self.banners if banner["app"] != app]
        elif verb in ("lock", "unlock", "leave"):
            self.lock = "locked" if verb == "lock" else "unlocked"
            self.states = {app: "suspended" if state == "foreground" else state for app, state in self.states.items()}
        elif verb == "network":
            device.network = order["to"]
        elif verb == "low power":
            self.low, device.power = order["to"] == "on", "low" if order["to"] == "on" else "battery"
        elif verb == "charger":
            self.charging, device.power = order["to"] == "on", "charging" if order["to"] == "on" else "battery"
        elif verb == "power":
            self.off = order["to"] == "off"
        elif verb != "reboot":
            raise Problem(400, "BadOrder", f'there is no "{verb}"; \'help\' lists what there is')
        return f"07:00:00.000 {device.name}  {verb} {app or order.get('to', '')}".strip()


class Device:
    def __init__(self, identifier, topics, connected=True, power="battery", network="cellular"):
        self.id, self.connected, self.power, self.network = identifier, connected, power, network
        self.policy, self.changes = None, []
        self.apps = OrderedDict(
            (topic, App(topic, (uuid.uuid5(uuid.UUID(identifier), topic).hex * 2))) for topic in topics)
        self.keep_alive = None
        self.name = self.phone = None
        self.past = []  # views with their instants, for /v1/state

    def view(self, now, policy):
        apps = [app.view(now, self.power == "low") for app in self.apps.values()]
        used = sum(BUDGET - app["budget"]["remaining"] for app in apps)
        return {"device": self.id, **({"name": self.name} if self.name else {}), "connected": self.connected, "power": self.power,
                "network": self.network, "screen": "off", "inFlight": 0,
                "budget": {"policy": self.policy or policy, "remaining": max(0, 12 - used), "burst": 12, "every": "5m"}, "apps": apps}


class Relay:
    def __init__(self, phones, clock, empty=False):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.virtual = clock == "virtual"
        self.rate, self.policy, self.epoch = (0 if self.virtual else 1), "documented", 1
        self.now = 1_795_244_400_000 if self.virtual else int(time.time() * 1000)
        self.sequence, self.pushes = 0, 0
        self.events = deque(maxlen=30_000)
        self.lives, self.refusals, self.requests = OrderedDict(), [], OrderedDict()
        self.payloads, self.whose = {}, {}  # a refused request does not say whose it would have been
        self.keeps_requests = True
        self.recordings, self.checkpoints, self.faults = OrderedDict(), OrderedDict(), OrderedDict()
        self.counters = dict.fromkeys(
            ["received", "restored", "delivered", "replaced", "expired", "discarded", "refused"], 0)
        self.devices, self.saved = OrderedDict(), {}
        with self.lock:
            self.populate(phones, empty)

    # What happens

    def emit(self, kind, data):
        self.sequence += 1
        self.events.append((self.sequence, kind, data))
        self.changed.notify_all()

    def change(self, device, what, **more):
        event = {"time": self.now, "device": device.id, "what": what, **more}
        device.changes.append(event)
        self.emit("device", event)

    # Everything that a checkpoint takes back.
    KEPT = ("devices", "active", "lives", "counters", "now", "rate", "policy", "pushes", "requests", "refusals")

    def save(self, name):
        self.checkpoints[name] = {"name": name, "at": self.now, "bytes": 48_120}
        self.saved[name] = copy.deepcopy({key: getattr(self, key) for key in self.KEPT})
        return self.checkpoints[name]

    def restore(self, name):
        for key, value in copy.deepcopy(self.saved[name]).items():
            setattr(self, key, value)
        self.epoch += 1
        self.changed.notify_all()
        return self.checkpoints[name]

    def step(self, life, step, text, **more):
        entry = {"at": stamp(self.now), "time": self.now, "step": step, **more, "text": text}
        life["steps"].append(entry)
        if step not in ("outcome", "fault"):
            life["state"] = step
        if step == "fault":
            return self.emit("fault", {"time": self.now, "name": more["fault"], "at": "delivery", "what": more["reason"],
                                       "uniqueId": life["uniqueId"], "topic": life["topic"]})
        keys = ("uniqueId", "id", "topic", "kind", "device", "token")
        self.emit("life", {**{key: life[key] for key in keys}, **entry})

    def push(self, device, app, kind, headers=None, payload=None, expires=None):
        self.pushes += 1
        unique = f"4deb533b-02c3-8e39-8000-{self.pushes:012x}"
        life = {"uniqueId": unique, "id": (headers or {}).get("apns-id", unique), "topic": app.topic,
                "kind": kind, "device": device.id, "token": app.token, "state": "received",
                "steps": [], "warnings": [w["text"] for w in lint(headers or {}, payload)["warnings"]],
                **({"traceparent": headers["traceparent"]} if "traceparent" in (headers or {}) else {}),
                "expiresAt": expires or self.now + 30 * 24 * 60 * MINUTE}
        self.lives[unique] = life
        self.payloads[unique] = payload, (headers or {}).get("apns-collapse-id")
        self.request(unique, 200, headers or {}, payload, device=device, app=app, kind=kind)
        if len(self.lives) > 20_000:
            self.lives.popitem(last=False)
        self.counters["received"] += 1
        self.step(life, "received", f"received ({kind})")
        if (payload or {}).get("faulty"):
            self.step(life, "fault", "fault (flaky: delay at delivery)", fault="flaky", reason="delay")
        if not device.connected:
            self.hold(device, app, life, "stored (device offline)", reason="device offline")
        elif kind == "visible":
            self.send(device, life, "direct")
            self.ride(device, unique, except_for=None)
        else:
            view = app.view(self.now, device.power == "low")["budget"]
            if view["allowed"]:
                app.used = [back for back in app.used if back > self.now]
                app.used.append(max([self.now, *app.used]) + REFILL)
                self.send(device, life, "direct")
                self.change(device, "budget", topic=app.topic, remaining=view["remaining"] - 1)
                self.ride(device, unique, except_for=app)
            else:
                until = {"until": view["heldUntil"]} if view["heldUntil"] else {}
                text = f"stored (power considerations: held by {view['limit']})"
                if until:
                    text = f"stored (power considerations: held until {stamp(until['until'])} by {view['limit']})"
                self.hold(device, app, life, text, reason="power considerations", limit=view["limit"], **until)
        return life

    def request(self, unique, status, headers, payload, device=None, app=None, kind=None, **more):
        """What was sent, as the journal of requests has it."""
        if not self.keeps_requests:
            return
        found = lint(headers, payload)
        raw = json.dumps(payload or {})
        token = app.token if app else headers.get(":token", "00" * 32)
        curl = (f"curl --http2 --cacert .pushrelay/ca.pem https://localhost:2197/3/device/{token}"
                + "".join(f" \\\n  -H '{name}: {value}'" for name, value in headers.items() if name[0] != ":") + f" \\\n  -d '{raw}'")
        if device:
            self.whose[unique] = device.id
        self.requests[unique] = {
            "uniqueId": unique, "id": headers.get("apns-id", unique), "at": stamp(self.now), "time": self.now,
            "path": f"/3/device/{token}", "topic": headers.get("apns-topic", app.topic if app else None), "token": token,
            **({"device": device.id} if device and status < 300 else {}), **({"kind": kind} if kind else {}),
            **({"collapseId": headers["apns-collapse-id"]} if "apns-collapse-id" in headers else {}),
            "pushType": headers.get("apns-push-type"), "priority": int(headers.get("apns-priority", 10)),
            "headers": [{"name": ":method", "value": "POST"}] + [{"name": name, "value": str(value)} for name, value in headers.items() if name[0] != ":"],
            "payload": payload, "bodyBytes": len(raw), "warnings": found["warnings"],
            "connection": {"peer": "127.0.0.1:51234", "listener": "provider", "security": "tls", "number": 7,
                           "request": len(self.requests) + 1, "team": "TEAM123456", "keyId": "KEY1234567"},
            "status": status, "milliseconds": 1.4, "curl": curl, **more}
        self.requests[unique] = {key: value for key, value in self.requests[unique].items() if value is not None}
        if len(self.requests) > 2000:
            self.requests.popitem(last=False)

    def find_requests(self, query):
        found = []
        for request in reversed(self.requests.values()):
            if any(query.get(key) and str(request.get(key)) != query[key] for key in
                   ("topic", "token", "status", "reason", "pushType")):
                continue
            if query.get("device") not in (None, "", self.whose.get(request["uniqueId"])):
                continue
            name, _, value = query.get("header", "").partition("=")
            if name and {"name": name, "value": value} not in request["headers"]:
                continue
            wanted = query.get("payload", "")
            if wanted and wanted.lstrip("~").lower() not in json.dumps(request["payload"]).lower():
                continue
            found.append({key: value for key, value in request.items() if key != "curl" and value is not None})
        return found

    def hold(self, device, app, life, text, **why):
        older = getattr(app, life["kind"])
        setattr(app, life["kind"], {"uniqueId": life["uniqueId"], "id": life["id"],
                                    "acceptedAt": self.now, "expiresAt": life["expiresAt"]})
        if older:
            self.counters["replaced"] += 1
            self.step(self.lives[older["uniqueId"]], "discarded", f"discarded (replaced by {life['uniqueId']})",
                      reason="replaced", replacedBy=life["uniqueId"])
        self.step(life, "stored", text, **why)

    def send(self, device, life, via, **more):
        if device.phone and life["kind"] == "visible":
            payload, collapse = self.payloads[life["uniqueId"]]
            if text := banner_text(payload):
                device.phone.show(life["topic"], text, self.now, collapse)
        self.step(life, "sent", f"sent (via: {via})", via=via, **more)
        self.step(life, "delivered", "delivered")
        self.counters["delivered"] += 1
        if life["kind"] == "silent":
            self.step(life, "outcome", "outcome (newData)", outcome="newData")

    def ride(self, device, carrier, except_for):
        for app in device.apps.values():
            if app.silent and app is not except_for and device.power != "low":
                life, app.silent = self.lives[app.silent["uniqueId"]], None
                self.send(device, life, "piggyback", **({"carriedBy": carrier} if carrier else {"carrier": "keep-alive"}))

    def connect(self, device, connected):
        if device.connected == connected:
            return
        device.connected = connected
        self.change(device, "connected" if connected else "disconnected")
        for app in device.apps.values() if connected else ():
            for kind in ("visible", "silent"):
                if slot := getattr(app, kind):
                    setattr(app, kind, None)
                    self.send(device, self.lives[slot["uniqueId"]], "connect")

    # Time

    def timers(self):
        """What comes by itself: instants with what they do."""
        for device in self.active:
            for app in device.apps.values():
                for kind in ("visible", "silent"):
                    if slot := getattr(app, kind):
                        yield slot["expiresAt"], "expiration", device, app, kind
                if app.silent and device.connected and device.power != "low":
                    backs = [back for back in app.used if back > self.now]
                    if backs:
                        yield min(backs), "refill", device, app, "silent"
            if device.connected and device.keep_alive:
                yield device.keep_alive, "keep-alive", device, None, None

    def next_timer(self):
        return min(self.timers(), key=lambda timer: timer[0], default=None)

    def advance_to(self, until):
        fired = {}
        while (timer := self.next_timer()) and timer[0] <= until:
            at, what, device, app, kind = timer
            self.now = max(self.now, at)
            fired[what] = fired.get(what, 0) + 1
            if what == "keep-alive":
                device.keep_alive = at + 15 * MINUTE
                self.ride(device, None, except_for=None)
            elif what == "expiration":
                slot = getattr(app, kind)
                setattr(app, kind, None)
                self.counters["expired"] += 1
                self.step(self.lives[slot["uniqueId"]], "discarded", "discarded (expired)", reason="expired")
            else:
                life, app.silent = self.lives[app.silent["uniqueId"]], None
                app.used = [back for back in app.used if back > self.now]
                app.used.append(max([self.now, *app.used]) + REFILL)
                self.send(device, life, "refill")
                self.ride(device, life["uniqueId"], except_for=app)
        self.now = max(self.now, until)
        self.remember()
        return fired

    @property
    def mode(self):
        return "virtual" if self.virtual else "system"

    def populate(self, phones, empty=False):
        chance = random.Random(7)
        end = self.now
        topics = ["com.example.news", "com.example.chat", "com.example.mail"]
        for number in range(phones):
            identifier = str(uuid.UUID(int=chance.getrandbits(128), version=4))
            self.devices[identifier] = Device(
                identifier, topics if number < 6 else topics[:1], connected=number % 7 != 2,
                power="low" if number % 11 == 3 else "charging" if number % 5 == 1 else "battery",
                network="wifi" if number % 5 == 1 else "cellular")
        self.active = list(self.devices.values())[:6]
        for name, device in zip(NAMES, self.active):
            device.name = name
            if name in ("anna", "ben"):
                device.phone = Phone(topics)
        if empty:
            return
        anna, others = self.active[0], self.active[1:]
        self.now = end - 120 * MINUTE
        for device in others[:2]:
            device.keep_alive = self.now + 15 * MINUTE
        script = []
        for _ in range(60):
            device = chance.choice(others)
            kind = chance.choice(["silent", "silent", "silent", "visible"])
            script.append((chance.randrange(5, 119), device, chance.choice(topics), kind, {}))
        news, chat, mail = topics
        for minute, topic, kind in [(97, news, "silent"), (102, news, "silent"), (107, news, "silent"),
                                    (108, news, "silent"), (109, news, "silent"), (112, chat, "visible"),
                                    (113.5, news, "silent"), (100, mail, "visible"), (118, news, "silent")]:
            script.append((minute, anna, topic, kind, {}))
        script.append((93, anna, "away", None, {}))
        script.append((94, anna, mail, "silent", {"expires": 60_000}))
        script.append((95, anna, "back", None, {}))
        script.append((96, anna, mail, "silent", {}))
        script.append((98, anna, chat, "silent", {}))
        script.append((60, others[2], "away", None, {}))
        script.append((90, others[2], "back", None, {}))
        start, shown = self.now, 0
        for minute, device, topic, kind, more in sorted(script, key=lambda entry: entry[0]):
            self.advance_to(start + int(minute * MINUTE))
            if topic in ("away", "back"):
                self.connect(device, topic == "back")
                continue
            expires = self.now + more["expires"] if "expires" in more else None
            shown += kind == "visible"
            self.push(device, device.apps[topic], kind, {"apns-topic": topic, "apns-push-type": "background" if kind == "silent" else "alert",
                      "apns-priority": "5" if kind == "silent" else "10"},
                      SILENT if kind == "silent" else VISIBLE[shown % len(VISIBLE)], expires)
            if minute == 112:
                self.refuse("DeviceTokenNotForTopic", 400, "the token is of com.example.news, the topic is com.example.chat",
                            {"apns-topic": "com.example.chat", "apns-push-type": "alert"},
                            {"aps": {"alert": "Wrong number"}}, device=device, app=device.apps[news])
        self.advance_to(end)
        anna.keep_alive = end + 5 * MINUTE
        self.refuse("BadDeviceToken", 400, "the token is 12 bytes of hexadecimal, none of them known here",
                    {"apns-topic": "com.example.news", "apns-push-type": "alert"}, {"aps": {"alert": "Hello nobody", "badge": 2}})
        self.faults["flaky"] = {"name": "flaky", "at": "provider", "match": {"topic": "com.example.app"},
                                "do": {"answer": "ServiceUnavailable"}, "skip": 0, "times": 3, "probability": 1,
                                "seen": 12, "hit": 3}

    def refuse(self, reason, status, cause, headers=None, payload=None, device=None, app=None):
        self.counters["refused"] += 1
        self.pushes += 1
        entry = {"time": self.now, "uniqueId": f"4deb533b-02c3-8e39-8000-{self.pushes:012x}", "status": status, "reason": reason,
                 "cause": cause, "peer": "127.0.0.1:51234"}
        self.refusals.insert(0, entry)
        if headers is not None:
            self.request(entry["uniqueId"], status, headers, payload, device=device, app=app, reason=reason, message=cause)
        self.changed.notify_all()

    # Views

    def stats(self):
        slots = sum(bool(app.visible) + bool(app.silent) for device in self.active
                    for app in device.apps.values())
        values = {**self.counters, "waiting": slots, "inSlots": slots, "inFlight": 0}
        ended = sum(values[key] for key in ("delivered", "replaced", "expired", "discarded"))
        values["balance"] = f"{values['received']} received = {ended} ended + {slots} held"
        return values, values["received"] + values["restored"] == ended + slots

    @property
    def cursor(self):
        return f"e{self.epoch}-{self.sequence}"

    def overview(self):
        counters, adds_up = self.stats()
        return {"version": "0.9", "now": self.now, "clock": self.mode, "rate": self.rate,
                "policy": self.policy, "profile": "dev", "epoch": f"e{self.epoch}", "cursor": self.cursor,
                "devices": len(self.devices), "connections": sum(d.connected for d in self.devices.values()),
                "addsUp": adds_up, "counters": counters, **({"node": "a"} if self.nodes else {})}

    def cluster(self):
        """Three nodes; a fourth is long gone, and stripe 7 is left over when somebody drains c."""
        def node(name, number, stripes, **more):
            return {"name": name, "number": number, "state": "active", "ageSeconds": .4, "stripes": stripes,
                    "partitions": 32 * len(stripes), "provider": f"127.0.0.1:{2190 + number}",
                    "device": f"127.0.0.1:{5220 + number}", "admin": f"127.0.0.1:{8080 + number}",
                    "leaseSeconds": 2.3, "waiting": 0, "waitingSeconds": 0, **more}
        own = {"a": [0, 3, 6], "b": [1, 4], "c": [2, 5, 7]}
        gone = {"state": "gone", "ageSeconds": 4000}
        if self.drained:
            own["c"] = []
        nodes = [node("a", 1, own["a"]), node("b", 2, own["b"], waiting=1200, waitingSeconds=.7),
                 node("c", 3, own["c"], **({"state": "draining"} if self.drained else {})), node("d", 4, [], **gone)]
        for key in ("leaseSeconds", "waiting", "waitingSeconds"):
            del nodes[3][key]
        if self.forgotten:
            del nodes[3]
        owner = {stripe: name for name, stripes in own.items() for stripe in stripes}
        return {"node": "a", "nodes": nodes, "partitions": 256, "stripes": [
            {"stripe": stripe, "epoch": 3, **({"state": "live", "node": owner[stripe]} if stripe in owner else {"state": "nobody"})}
            for stripe in range(8)]}

    def stats_event(self):
        counters, adds_up = self.stats()
        return {**counters, "now": self.now, "devices": len(self.devices), "addsUp": adds_up,
                "connections": sum(device.connected for device in self.devices.values())}

    def life(self, life):
        last = next((s for s in reversed(life["steps"]) if s["step"] not in ("outcome", "fault")), life["steps"][-1])
        held = next((s for s in life["steps"] if s["step"] == "stored"), None)
        sentence = {"sent": "sent, not acknowledged yet", "received": "just received"}.get(last["step"], "")
        if last["step"] == "stored":
            until = f" until {stamp(held['until'])}" if "until" in held else ""
            sentence = f"held because of {held.get('limit', 'no connection')}{until}"
            if "until" in held:
                sentence = (f"app budget: 0 of 3 left, one comes back every 20 minutes, the next at {stamp(held['until'])} "
                            "(policy documented); or it goes along with the next visible push, connection or keep-alive")
        elif last["step"] == "discarded":
            sentence = f"discarded: {last['reason']}"
        elif last["step"] == "delivered":
            sent = next(s for s in reversed(life["steps"]) if s["step"] == "sent")
            waited = (sent["time"] - life["steps"][0]["time"]) // 1000
            sentence = f"delivered via {sent['via']}" + (f" after {waited} s" if waited else " at once")
        device = self.devices.get(life["device"])
        more = {"sentence": sentence, **({"phone": device.name} if device and device.name else {})}
        if last["step"] == "stored" and device and life["kind"] == "silent":
            app, whole = device.apps[life["topic"]].view(self.now, device.power == "low"), device.view(self.now, self.policy)
            more["waits"] = {"by": "relay", "limit": last.get("limit") or "offline", "policy": whole["budget"]["policy"],
                             **({"until": held["until"]} if "until" in held else {}), "app": app["budget"], "device": whole["budget"]}
            if device.connected and device.keep_alive:
                more["waits"]["ride"] = {"by": device.keep_alive}
        return {key: value for key, value in {**life, **more}.items() if key != "expiresAt"}

    def remember(self):
        for device in self.active:
            device.past = [*device.past[-400:], (self.now, device.view(self.now, self.policy))]

    def clock(self):
        upcoming = self.next_timer()
        view = {"mode": self.mode, "now": self.now, "rate": self.rate}
        return {**view, "next": {"at": upcoming[0], "what": upcoming[1]}} if upcoming else view


def lint(headers, payload):
    aps = payload.get("aps") if isinstance(payload, dict) else None
    kind = "silent" if headers.get("apns-push-type") == "background" else "visible"
    if isinstance(aps, dict) and aps.get("content-available") == 1 and not aps.keys() & {"alert", "sound", "badge"}:
        kind = "silent"
    warnings = []
    if kind == "silent" and headers.get("apns-priority", "10") == "10":
        warnings.append({"code": "silentAtPriorityTen", "text": "a silent push must be sent with priority 5"})
    if payload is not None and aps is None:
        warnings.append({"code": "apsMissing", "text": "the payload has no aps object"})
    answer = {"kind": kind, "warnings": warnings}
    if len(json.dumps(payload or {})) > 4096:
        answer["refusal"] = {"status": 413, "reason": "PayloadTooLarge", "message": "the body is over 4096 bytes"}
    return answer


def check_token(token):
    parts = token.split(".")
    if len(parts) != 3:
        return {"valid": False, "problems": [f"a JWT has three parts separated by dots, this has {len(parts)}"]}
    try:
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in parts[:2])
    except ValueError:
        return {"valid": False, "problems": ["header or claims are not JSON"]}
    return {"valid": False, "header": header, "claims": claims,
            "problems": [f"kid {header.get('kid')} is no key of this relay"]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer("GET")

    def do_POST(self):
        self.answer("POST")

    def do_PUT(self):
        self.answer("PUT")

    def do_PATCH(self):
        self.answer("PATCH")

    def do_DELETE(self):
        self.answer("DELETE")

    def answer(self, method):
        url = urlsplit(self.path)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        try:
            if parts[0] not in ("v1", "mock"):
                return self.file(url.path)
            if self.headers.get("authorization") != f"bearer {self.server.token}":
                raise Problem(401, "Unauthorized", "send the admin token")
            if parts == ["v1", "events"]:
                return self.stream(query)
            size = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(size)) if size else {}
            with self.server.relay.lock:
                if method != "GET":
                    self.server.relay.remember()
                result = self.route(method, parts[0], parts[1:], query, body)
            self.reply(200 if result is not None else 204, result)
        except Problem as problem:
            self.reply(problem.status, problem.body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def reply(self, status, value):
        data = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def file(self, path):
        file = (PAGE / (path.lstrip("/") or "index.html")).resolve()
        if file.parent != PAGE or not file.is_file():
            raise Problem(404, "BadPath", "there is no such file")
        # As PageRoutes.swift does: no comments, no indentation.
        lines = [line.lstrip(b"\t") for line in file.read_bytes().splitlines()]
        data = b"\n".join(line for line in lines if line and not line.startswith((b"//", b"/*")))
        self.send_response(200)
        self.send_header("content-type", TYPES[file.suffix])
        self.send_header("content-length", str(len(data)))
        self.send_header("content-security-policy", POLICY)
        self.send_header("cache-control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def stream(self, query):
        relay = self.server.relay
        with relay.lock:
            epoch, seen = (self.headers.get("last-event-id") or relay.cursor).split("-", 1)
            seen = int(seen)
            if epoch != f"e{relay.epoch}":
                raise Problem(410, "CursorExpired", "the cursor is of another run")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        told, stats_at = None, 0
        while not self.server.stopping:
            with relay.changed:
                if not relay.events or relay.events[-1][0] <= seen:
                    relay.changed.wait(0.25)
                if epoch != f"e{relay.epoch}":
                    return self.wfile.write(f'id: {relay.cursor}\nevent: bye\ndata: {{"reason":"rewound"}}\n\n'.encode())
                first = relay.events[0][0] if relay.events else 0
                fresh = []
                for event in reversed(relay.events):
                    if event[0] <= seen:
                        break
                    fresh.append(event)
                fresh.reverse()
                stats = relay.stats_event() if time.monotonic() - stats_at >= 0.25 else None
            lines = []
            if fresh and fresh[0][0] > seen + 1 and first > seen + 1:
                lines.append(f'event: gap\ndata: {{"dropped":{fresh[0][0] - seen - 1}}}\n\n')
            for number, kind, data in fresh:
                if "device" in query and data.get("device", query["device"]) != query["device"]:
                    continue
                lines.append(f"id: {epoch}-{number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n")
            seen = fresh[-1][0] if fresh else seen
            if stats is not None and ({**stats, "now": 0} != told or time.monotonic() - stats_at > 5):
                told, stats_at = {**stats, "now": 0}, time.monotonic()
                lines.append(f"event: stats\ndata: {json.dumps(stats)}\n\n")
            if lines:
                self.wfile.write("".join(lines).encode())
                self.wfile.flush()
                time.sleep(0.02)

    # Routes

    def device(self, identifier):
        relay = self.server.relay
        device = relay.devices.get(identifier) or next((d for d in relay.active if d.name == identifier), None)
        if not device:
            raise Problem(404, "UnknownDevice", "no such device; GET /v1/devices lists them")
        return device

    def route(self, method, root, parts, query, body):
        relay = self.server.relay
        if root == "mock":
            return self.mock(parts, body)
        name = getattr(self, f"{method.lower()}_{parts[0].replace('-', '_')}", None)
        if not name:
            raise Problem(404 if method == "GET" else 405, "BadPath", "there is no such route")
        return name(relay, parts[1:], query, body)

    def mock(self, parts, body):
        if parts == ["flood"]:
            threading.Thread(target=flood, args=(self.server.relay, body["rate"], body["seconds"]),
                             daemon=True).start()
        elif parts == ["device"]:
            self.server.relay.connect(self.device(body["device"]), body["connected"])
        return {}

    def get_cluster(self, relay, parts, query, body):
        if not relay.nodes:
            raise Problem(409, "NoCluster", "this relay is on its own")
        return relay.cluster()

    def post_cluster(self, relay, parts, query, body):
        relay.drained = parts[1:] == ["c", "drain"]
        return relay.cluster()

    def delete_cluster(self, relay, parts, query, body):
        if parts[1:] == ["c", "drain"]:
            relay.drained = False
        relay.forgotten = parts[1:] == ["d"]
        return relay.cluster()

    def get_overview(self, relay, parts, query, body):
        return relay.overview()

    def get_devices(self, relay, parts, query, body):
        if parts:
            device = self.device(parts[0])
            if parts[1:] == ["phone"]:
                if not device.phone:
                    raise Problem(409, "TakesNoOrders", "this phone takes no orders")
                return device.phone.view(device, relay.now)
            return {"events": device.changes} if parts[1:] == ["events"] else device.view(relay.now, relay.policy)
        search, limit = query.get("search", "").lower(), int(query.get("limit", 50))
        found = [d for d in relay.devices.values() if not search or search in d.id or search in (d.name or "")
                 or any(search in app.topic or search in app.token for app in d.apps.values())]
        start = int(query.get("after", 0))
        page = found[start:start + limit]
        more = start + limit < len(found)
        return {"cursor": str(start + limit) if more else None, "hasMore": more,
                "devices": [device.view(relay.now, relay.policy) for device in page]}

    def put_devices(self, relay, parts, query, body):
        device = self.device(parts[0])
        device.policy = body["policy"]
        relay.change(device, "policy", policy=device.policy)
        return device.view(relay.now, relay.policy)

    def delete_devices(self, relay, parts, query, body):
        device, what = self.device(parts[0]), parts[1] if len(parts) > 1 else None
        if what == "connection":
            relay.connect(device, False)
        elif what == "policy":
            device.policy = None
            relay.change(device, "policy", policy=relay.policy)
            return device.view(relay.now, relay.policy)
        elif what == "budget":
            for app in device.apps.values():
                app.used = []
            relay.change(device, "budget")
        else:
            for app in device.apps.values():
                for kind in ("visible", "silent"):
                    if slot := getattr(app, kind):
                        setattr(app, kind, None)
                        relay.counters["discarded"] += 1
                        relay.step(relay.lives[slot["uniqueId"]], "discarded", "discarded (token unregistered)",
                                   reason="token unregistered")
            relay.change(device, "emptied" if what else "forgotten")
            if not what:
                del relay.devices[device.id]

    def post_devices(self, relay, parts, query, body):
        device = self.device(parts[0])
        if parts[1:] != ["do"] or not device.phone:
            raise Problem(409, "TakesNoOrders", "this phone takes no orders")
        line = device.phone.obey(device, body)
        relay.change(device, "condition")
        return {"time": relay.now, "lines": [line]}

    def get_state(self, relay, parts, query, body):
        if not any(recording["state"] == "running" for recording in relay.recordings.values()):
            raise Problem(404, "UnknownRecording", "nothing is being recorded")
        found = [view for at, view in self.device(query["device"]).past if at <= int(query["at"])]
        if not found:
            raise Problem(404, "UnknownDevice", "there was no such device at that moment")
        return found[-1]

    def get_requests(self, relay, parts, query, body):
        if not relay.keeps_requests:
            raise Problem(404, "RequestsNotKept", "this relay keeps no requests; start it with --keep-requests 16")
        if parts:
            for request in relay.requests.values() if parts[0] not in relay.requests else [relay.requests[parts[0]]]:
                if parts[0] in (request["id"], request["uniqueId"]):
                    return request
            raise Problem(404, "UnknownRequest", "the relay does not have it (any more)")
        found, limit = relay.find_requests(query), int(query.get("limit", 100))
        return {"cursor": relay.cursor, "hasMore": len(found) > limit, "requests": found[:limit],
                "kept": {"bytes": 48_000, "limitBytes": 16_777_216, "count": len(relay.requests)}}

    def post_requests(self, relay, parts, query, body):
        request = self.get_requests(relay, parts[:1], query, None)
        return self.post_push(relay, [], {}, {"to": request["token"], "payload": request["payload"],
                              "headers": {h["name"]: h["value"] for h in request["headers"] if h["name"][0] != ":"}})

    def get_notifications(self, relay, parts, query, body):
        if parts:
            for life in relay.lives.values() if parts[0] not in relay.lives else [relay.lives[parts[0]]]:
                if parts[0] in (life["id"], life["uniqueId"]):
                    kept = relay.requests.get(life["uniqueId"])
                    return {**relay.life(life), **({"request": kept} if kept else {})}
            raise Problem(404, "UnknownNotification", "the relay does not know it (any more)")
        def state(life):
            last = next((s for s in reversed(life["steps"]) if s["step"] == life["state"]), {})
            return {life["state"], last.get("reason")}
        lives = [life for life in reversed(relay.lives.values())
                 if all(life[key] == query[key] for key in ("topic", "device", "token", "kind") if key in query)
                 and query.get("state") in (None, *state(life))]
        limit = int(query.get("limit", 100))
        return {"cursor": relay.cursor, "hasMore": len(lives) > limit,
                "notifications": [relay.life(life) for life in lives[:limit]]}

    def get_refusals(self, relay, parts, query, body):
        return {"cursor": relay.cursor, "hasMore": False, "refusals": relay.refusals[:100]}

    def get_policy(self, relay, parts, query, body):
        if relay.policy == "unlimited":
            return {"policy": relay.policy, "known": KNOWN_POLICIES}
        return {"policy": relay.policy, "known": KNOWN_POLICIES, "app": {"burst": BUDGET, "every": "20m"},
                "device": {"burst": 12, "every": "5m"}}

    def put_policy(self, relay, parts, query, body):
        policy = body.get("policy")
        if isinstance(policy, dict):
            if not all(length_of(part["per"]) for part in policy.values()):
                raise Problem(400, "BadBody", "policy: app is count and per", field="policy")
            self.server.given = policy
            policy = ", ".join(f"{part['count']} in {part['per']} per {name}" for name, part in policy.items())
        elif policy not in KNOWN_POLICIES:
            raise Problem(400, "BadBody", "no such policy", field="policy")
        relay.policy = policy
        relay.emit("policy", {"time": relay.now, "policy": relay.policy})
        return {"policy": relay.policy, "known": KNOWN_POLICIES}

    def get_clock(self, relay, parts, query, body):
        return relay.clock()

    def patch_clock(self, relay, parts, query, body):
        relay.rate = body["rate"]
        relay.emit("clock", {"now": relay.now, "rate": relay.rate, "mode": relay.mode})
        return relay.clock()

    def post_clock(self, relay, parts, query, body):
        if not relay.virtual:
            raise Problem(409, "ClockNotVirtual", "start it with --clock virtual")
        upcoming = relay.next_timer()
        if body.get("next") and not upcoming:
            raise Problem(409, "NothingNext", "nothing is to come")
        by = length_of(body.get("by"))
        until = upcoming[0] if body.get("next") else body.get("to") or (relay.now + by if by is not None else None)
        if until is None:
            raise Problem(400, "BadBody", "a length is like 1h30m", field="by")
        if until < relay.now:
            raise Problem(409, "ClockBackwards", "that is in the past")
        fired = relay.advance_to(until)
        relay.emit("clock", relay.clock())
        return {"now": relay.now, "fired": fired}

    def post_push(self, relay, parts, query, body):
        app = device = None
        for candidate in relay.devices.values():
            for a in candidate.apps.values():
                if a.token == body.get("to") or candidate.id == body.get("to") and body.get("topic") in (None, "", a.topic):
                    device, app = device or candidate, app or a
        found = lint(body.get("headers", {}), body.get("payload"))
        if not app or "refusal" in found:
            refusal = found.get("refusal", {"status": 400, "reason": "BadDeviceToken",
                                            "message": "the device token is unknown here"})
            relay.refuse(refusal["reason"], refusal["status"], refusal["message"],
                         {**body.get("headers", {}), ":token": body.get("to", "")}, body.get("payload"))
            return {**refusal, "apnsId": str(uuid.uuid4()), "uniqueId": relay.refusals[0]["uniqueId"],
                    "warnings": found["warnings"]}
        if device not in relay.active:
            relay.active.append(device)
        life = relay.push(device, app, found["kind"], body.get("headers"), body.get("payload"))
        return {"status": 200, "apnsId": life["id"], "uniqueId": life["uniqueId"], "warnings": found["warnings"]}

    def post_lint(self, relay, parts, query, body):
        return lint(body.get("headers", {}), body.get("payload"))

    def post_token_check(self, relay, parts, query, body):
        return check_token(body.get("token", ""))

    def post_reset(self, relay, parts, query, body):
        if not body:
            raise Problem(400, "BadBody", "say topic, device or all")

    def get_checkpoints(self, relay, parts, query, body):
        return {"checkpoints": list(relay.checkpoints.values())}

    def put_checkpoints(self, relay, parts, query, body):
        if not re.fullmatch("[a-z0-9-]{1,64}", parts[0]):
            raise Problem(400, "BadName", "a name has 1 to 64 of the characters a-z, 0-9 and -")
        return relay.save(parts[0])

    def post_checkpoints(self, relay, parts, query, body):
        return relay.restore(parts[0])

    def delete_checkpoints(self, relay, parts, query, body):
        relay.checkpoints.pop(parts[0], None)

    def get_recordings(self, relay, parts, query, body):
        return b"PRR made up" if parts else {"recordings": list(relay.recordings.values())}

    def put_recordings(self, relay, parts, query, body):
        relay.recordings[parts[0]] = {"name": parts[0], "state": "running", "bytes": 4096,
                                      "payloads": body.get("payloads", "aps")}
        return relay.recordings[parts[0]]

    def post_recordings(self, relay, parts, query, body):
        relay.recordings[parts[0]]["state"] = "stopped"
        return relay.recordings[parts[0]]

    def get_faults(self, relay, parts, query, body):
        return {"faults": list(relay.faults.values())}

    def put_faults(self, relay, parts, query, body):
        if not re.fullmatch("[a-z0-9-]{1,64}", parts[0]):
            raise Problem(400, "BadName", "a name is made of a-z, 0-9 and -")
        relay.faults[parts[0]] = {"name": parts[0], "match": {}, "when": {}, "skip": 0, "probability": 1,
                                  **body, **body.get("when", {}), "seen": 0, "hit": 0}
        if "for" in body:
            relay.faults[parts[0]]["until"] = relay.now + length_of(body["for"])
        return relay.faults[parts[0]]

    def delete_faults(self, relay, parts, query, body):
        relay.faults.pop(parts[0], None)


def flood(relay, rate, seconds):
    """Made-up life events that no counter knows, to see whether the page keeps up."""
    devices = list(relay.devices.values())[:200]
    vias = ["direct", "direct", "piggyback", "refill", "connect"]
    number, start = 0, time.monotonic()
    while number < rate * seconds:
        due = min(rate * seconds, int((time.monotonic() - start) * rate))
        with relay.changed:
            while number < due:
                number += 1
                device = devices[number % len(devices)]
                app = next(iter(device.apps.values()))
                unique = f"f100d000-0000-4000-8000-{number // 3:012x}"
                step = ("received", "sent", "delivered")[number % 3]
                more = {"via": vias[number // 3 % len(vias)]} if step == "sent" else {}
                relay.sequence += 1
                relay.events.append((relay.sequence, "life", {
                    "time": relay.now + int((time.monotonic() - start) * 1000), "at": stamp(relay.now),
                    "uniqueId": unique, "id": unique, "topic": f"com.example.app{number % 5}", "kind": "silent",
                    "device": device.id, "token": app.token, "step": step, "text": step, **more}))
            relay.changed.notify_all()
        time.sleep(0.02)


def run_clock(server):
    """Lets the clock go by its rate."""
    last = time.monotonic()
    while not server.stopping:
        time.sleep(0.25)
        passed, last = time.monotonic() - last, time.monotonic()
        with server.relay.lock:
            if server.relay.rate:
                server.relay.advance_to(server.relay.now + int(passed * 1000 * server.relay.rate))


def start(port=0, token="dev", clock="virtual", phones=10_000, nodes=False, empty=False):
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.token, server.stopping = token, False
    server.relay = Relay(phones, clock, empty)
    server.relay.nodes, server.relay.drained, server.relay.forgotten = nodes, False, False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=run_clock, args=(server,), daemon=True).start()
    return server


def stop(server):
    server.stopping = True
    server.shutdown()
    server.server_close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8089)
    parser.add_argument("--token", default="dev")
    parser.add_argument("--clock", choices=["virtual", "system"], default="virtual")
    parser.add_argument("--phones", type=int, default=10_000)
    options = parser.parse_args()
    server = start(options.port, options.token, options.clock, options.phones)
    print(f"http://127.0.0.1:{server.server_address[1]}/#token={options.token}", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        stop(server)


if __name__ == "__main__":
    main()
