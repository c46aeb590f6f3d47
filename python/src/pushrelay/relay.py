"""A relay of a test's own, or one that runs already: phones, pushes, waits, the clock, faults."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Union
from urllib.parse import quote, urlencode, urlsplit

from . import _run
from ._admin import Admin
from ._process import Process, answer
from .errors import NotMet, Refused, RelayError
from .values import Endpoint, Phone, Push

# What a wait is about: a push, by itself or by its apns-id; what happens on a phone; or all.
Subject = Optional[Union[Push, Phone, str]]

# A name, or numbers: {"app": {"count": 2, "per": "1d"}}.
Policy = Union[str, Mapping[str, object]]

# Behind a bundle identifier, the topic of its Live Activities.
_ACTIVITIES = ".push-type.liveactivity"

# Happenings of a device, which have no topic.
_OF_DEVICES = ("connected", "disconnected")


class Relay:
    """A relay of a test's own, on free ports, with a clock that moves when told.

    The executable is the argument, else PUSHRELAY, else the one that came with this package, else
    pushrelay on the PATH. It runs as long as the `with` block.
    """

    def __init__(self, executable: str | None = None) -> None:
        self._executable = executable or _run.executable()
        self._process: Process | None = None
        # What runs each device that `phone` has made, in the order in which they were made.
        self._devices: dict[str, Process] = {}
        # Drawn by several threads, if the test is asynchronous.
        self._numbers = itertools.count(1)
        self._faults: dict[str, Fault] = {}
        # Which devices were there when a state was saved: a return ends the others.
        self._saved: dict[str, set[str]] = {}
        self._policy: Policy | None = None
        # Whether a fault, a saved state or the clock's rate may be left, which is to be asked then.
        self._is_steered = False

    @classmethod
    def join(
        cls,
        url: str,
        token: str | None = None,
        *,
        state: str | os.PathLike[str] = ".pushrelay",
        provider: str | None = None,
        device: str | None = None,
        channels: str | None = None,
        executable: str | None = None,
    ) -> Relay:
        """A relay that runs already, by the URL of its admin API and its token.

        The token may be in the URL, as in the address of its page (`#token=…`), or in
        `admin.token` of `state`. `state` is its state directory or a copy of `ca.pem` and `keys/`
        from there: without them nothing can be pushed. It is only read. Listeners that are not named
        are those of its `ready.json`, else the usual ones, 127.0.0.1:2197 and 127.0.0.1:5223.

        Nothing of the relay is started or ended; `leave` takes back what was made.
        """
        relay = cls(executable)
        parts = urlsplit(url if "://" in url else f"http://{url}")
        relay._state = Path(state)
        if token is None and parts.fragment.startswith("token="):
            token = parts.fragment.removeprefix("token=")
        if token is None:
            token = relay._read("admin.token").strip()
        path = relay._state / "ready.json"
        ready = json.loads(path.read_text()) if path.exists() else {}
        relay._provider = provider or ready.get("provider", "127.0.0.1:2197")
        relay._device = device or ready.get("device", "127.0.0.1:5223")
        relay._channels = channels or ready.get("channels")
        relay._admin = Admin(parts.netloc, token)
        relay._directory = tempfile.TemporaryDirectory(prefix="pushrelay-")
        return relay

    @property
    def is_joined(self) -> bool:
        """Whether others may be using it, too."""
        return self._process is None

    def leave(self) -> None:
        """Takes back from a relay that was joined what was made there: faults, saved states, phones
        and their policy."""
        self.end_faults()
        for name in list(self._saved):
            _ignoring("UnknownCheckpoint", self.drop, name)
        self._policy = None
        for device, process in list(self._devices.items()):
            process.stop()
            del self._devices[device]
            _ignoring("UnknownDevice", self.call, "DELETE", f"/v1/devices/{device}")

    def begin_again(self, beginning: str) -> None:
        """Takes a relay of one's own back to a state that was saved, also from what `call` has done.
        No fault is left, no other saved state, and a virtual clock stands."""
        if self._is_steered:
            for fault in self.call("GET", "/v1/faults")["faults"]:
                _ignoring("UnknownFault", self.call, "DELETE", _fault(fault["name"]))
            for saved in self.call("GET", "/v1/checkpoints")["checkpoints"]:
                if saved["name"] != beginning:
                    self.drop(saved["name"])
            if self.call("GET", "/v1/clock").get("rate"):
                self.call("PATCH", "/v1/clock", {"rate": 0})
        self._faults.clear()
        self.restore(beginning)
        self._is_steered = False

    def __enter__(self) -> Relay:
        if "_admin" in self.__dict__:
            return self
        self._directory = tempfile.TemporaryDirectory(prefix="pushrelay-")
        self._state = Path(self._directory.name)
        command = [self._executable, "serve", "--state", str(self._state)]
        command += ["--clock", "virtual", "--store", "memory", "--log-level", "error"]
        for name in ("provider", "device", "admin", "channels"):
            command += [f"--{name}", "127.0.0.1:0"]
        try:
            self._process = Process(command, lambda line: line.startswith("ready "))
        except (RelayError, KeyboardInterrupt):
            self._directory.cleanup()
            raise
        listeners = dict(word.split("=", 1) for word in self._process.ready.split()[1:])
        self._provider, self._device = listeners["provider"], listeners["device"]
        self._channels = listeners.get("channels")
        self._admin = Admin(listeners["admin"], self._read("admin.token").strip())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._process is None:
                self.leave()
        finally:
            for process in self._devices.values():
                process.stop()
            self._devices.clear()
            if self._process:
                self._process.stop()
            self._directory.cleanup()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Of what only a relay at work has."""
            if name in ("_admin", "_channels", "_device", "_directory", "_provider", "_state"):
                raise RelayError("the relay has not been started: `with Relay() as relay:`")
            raise AttributeError(f"a relay has no {name!r}")

    def _read(self, name: str) -> str:
        """Of a file in the state directory."""
        try:
            return (self._state / name).read_text()
        except OSError as problem:
            raise RelayError(
                f"{self._state / name} cannot be read ({problem.strerror}); it is in the state "
                "directory of the relay, which `state` names, or pytest's --push-relay-state"
            ) from None

    @property
    def admin(self) -> str:
        """HOST:PORT of the admin API, and of the page."""
        return self._admin.address

    @property
    def endpoint(self) -> Endpoint:
        """Where a provider's client library is to push, and with which key."""
        key = json.loads(self._read("keys/keys.json"))["keys"][0]
        host, port = self._provider.rsplit(":", 1)
        return Endpoint(
            # The name that the certificate of a relay beside the test is for.
            host="localhost" if host == "127.0.0.1" else host,
            port=int(port),
            channels_port=int(self._channels.rsplit(":", 1)[1]) if self._channels else None,
            ca=self._state / "ca.pem",
            key=self._state / f"keys/AuthKey_{key['keyID']}.p8",
            key_id=key["keyID"],
            team_id=key["teamID"],
        )

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Asks the admin API; docs/ADMIN.md lists its routes."""
        __tracebackhide__ = True
        self._is_steered |= method in ("PUT", "PATCH")
        try:
            return self._admin.call(method, path, body)
        except RelayError as problem:
            if not problem.reason and self._process and (end := self._process.end):
                raise RelayError(f"the relay has ended {end}") from None
            raise

    def phone(
        self,
        topic: str,
        name: str | None = None,
        *,
        simulated: bool = False,
        activities: Iterable[str] = (),
        frequent_updates: bool = False,
        channels: Iterable[str] = (),
    ) -> Phone:
        """A phone with one app, connected; the app subscribes to broadcast channels, by their ids.

        One that is simulated has apps, a lock and a network, and does what it is told. Its app
        declares the attributes of its Live Activities, and that it updates them frequently.
        """
        self._read("ca.pem")
        number = next(self._numbers)
        name = name or f"phone-{number}"
        # Not in the state directory of a relay that was joined, which is only read. In one of its
        # own: with the name of a phone before it, it would be that phone.
        own = Path(self._directory.name) / f"phone-{number}"
        command = [self._executable, "device", name, "--json", "--topic", topic]
        command += [] if simulated else ["--light"]
        command += [word for type in activities for word in ("--activity", type)]
        command += ["--frequent-updates"] if frequent_updates else []
        command += [word for channel in channels for word in ("--channel", channel)]
        command += ["--state", str(own), "--ca", str(self._state / "ca.pem")]
        command += ["--device", self._device]
        key, ready = ("what", "connected") if simulated else ("type", "hello")
        process = Process(
            command,
            lambda line: line.startswith("{") and json.loads(line).get(key) == ready,
        )
        known = json.loads((own / "devices" / f"{name}.json").read_text())
        device = str(known["device"])
        self._devices[device] = process
        phone = Phone(name, topic, device, known["apps"][topic], self)
        if simulated:
            self._listens(phone)
        if self._policy:
            self.policy(self._policy, phone)
        return phone

    def _listens(self, phone: Phone) -> None:
        """Waits until it takes orders, which it does from a moment after it has connected."""
        deadline = time.monotonic() + 20
        while True:
            try:
                self.state(phone)
                return
            except RelayError as early:
                if early.reason != "TakesNoOrders" or time.monotonic() > deadline:
                    raise
            time.sleep(0.005)

    def do(self, phone: Phone, verb: str, *words: object, **members: object) -> list[str]:
        """Has a simulated phone do something; answers what has happened on it, a line each.

        In the words of scenarios, all after each other, or as members: `do(phone, "network",
        "airplane")`, `do(phone, "network", to="airplane")`.
        """
        order = {"do": " ".join([verb, *map(str, words)]), **members}
        __tracebackhide__ = True
        try:
            answer = self.call("POST", f"/v1/devices/{phone.device}/do", order)
        except RelayError as problem:
            if problem.reason != "TakesNoOrders":
                raise
            raise RelayError(
                f"{phone.name} is no simulated phone: phone(topic, simulated=True) makes one",
                problem.reason,
            ) from None
        return list(answer["lines"])

    def state(self, phone: Phone) -> dict[str, Any]:
        """How a simulated phone is, as it knows itself: apps, banners, badges, budgets."""
        return dict(self.call("GET", f"/v1/devices/{phone.device}/phone"))

    def activity(self, phone: Phone, which: int | str) -> Phone:
        """Where to push for a simulated phone's Live Activities: to the token of the app's n-th, or
        to start those with attributes of that name.

        RelayError if the app's server has no such token: of an activity that a push has started the
        app is run first, which takes some seconds of the relay's time.
        """
        topic = f"{phone.topic}{_ACTIVITIES}"
        part = f"start.{which}" if isinstance(which, str) else f"activity.{which}"
        deadline = time.monotonic() + 2
        while True:
            known = self.call("GET", f"/v1/devices/{phone.device}")["apps"]
            for app in known:
                if app["topic"] == f"{topic}.{part}":
                    return Phone(phone.name, topic, phone.device, app["token"], self)
            if time.monotonic() > deadline:
                raise RelayError(f"the server of {phone.topic} has no token {part}")
            # The phone may be telling the relay just now.
            time.sleep(0.005)

    def app(self, phone: Phone, topic: str) -> Phone:
        """An app of a phone, with the token that it has now: another one than the phone was made
        with, or the same one after `install again`."""
        answer = self.call("PUT", f"/v1/devices/{phone.device}/apps/{quote(topic, safe='')}")
        return Phone(phone.name, topic, phone.device, answer["token"], self)

    def push(
        self,
        phone: Phone,
        payload: object,
        *,
        push_type: str | None = None,
        priority: int | None = None,
        expiration: int | str | None = None,
        collapse_id: str | None = None,
        apns_id: str | None = None,
    ) -> Push:
        """Pushes through the provider port, with a provider token.

        The type is inferred from the payload unless given, and the priority of a silent one.
        `expiration` is in UNIX seconds, or "+SECONDS" from now by the relay's clock. Refused, if
        the relay's answer is not 200; RelayError without an answer.
        """
        __tracebackhide__ = True
        # The executable says what is wrong with any other text.
        if (text := str(expiration)).startswith("+") and text[1:].isdecimal():
            expiration = int(self.call("GET", "/v1/clock")["now"]) // 1000 + int(text[1:])
        command = [self._executable, "send", "-", "--json", "--state", str(self._state)]
        if phone.topic.endswith(_ACTIVITIES):
            push_type = push_type or "liveactivity"
        command += ["--to", phone.token, "--topic", phone.topic, "--provider", self._provider]
        headers = {
            "push-type": push_type,
            "priority": priority,
            "expiration": expiration,
            "collapse-id": collapse_id,
            "id": apns_id,
        }
        for header, value in headers.items():
            if value is not None:
                command.append(f"--{header}={value}")
        sent = answer(command, json.dumps(payload))
        told = json.loads(sent.stdout) if sent.stdout.startswith("{") else {}
        if sent.returncode != 0:
            said = sent.stderr.strip().removeprefix("Error: ")
            raise Refused(said, told["reason"]) if "reason" in told else RelayError(said)
        return Push(told["apnsUniqueId"], told["apnsId"])

    def wait(
        self,
        what: str,
        push: Subject = None,
        *,
        timeout: str | None = None,
        within: str | None = None,
        advance: bool = False,
        count: int | None = None,
        kind: str | None = None,
        via: str | None = None,
        topic: str | None = None,
        payload: dict[str, object] | None = None,
        headers: dict[str, str] | None = None,
        status: int | None = None,
        reason: str | None = None,
    ) -> Any:
        """Waits until it has happened to the push, or on the phone; NotMet says why not.

        `push` may be the apns-id that a client library was answered. What has happened before
        counts. `timeout` is of the machine's time (10s), `within` of the relay's, which `advance`
        moves. `count` wants it so often; `kind`, `via` (of `sent`) and `topic` narrow it.
        `payload` and `headers` look at the request as it was sent: {"aps.badge": 3}; NotMet names
        the nearest request and how it differs. `status` and `reason` are the answer that was
        awaited by `refused`, such as 400 and "BadPriority".
        """
        __tracebackhide__ = True
        expect = _expect(what, push, count=count, kind=kind, via=via, topic=topic)
        expect |= _match(payload, headers, status, reason)
        return self._met(expect, timeout, within, advance)

    def never(
        self,
        what: str,
        push: Subject = None,
        *,
        within: str | None = None,
        advance: bool = False,
        count: int | None = None,
        kind: str | None = None,
        via: str | None = None,
        topic: str | None = None,
        payload: dict[str, object] | None = None,
        headers: dict[str, str] | None = None,
        status: int | None = None,
        reason: str | None = None,
    ) -> Any:
        """Sees to it that it does not happen to the push; NotMet says when it did.

        Without `within` it looks once. With `count` it must not happen so often: just twice is a
        wait with 2, and then 3 that never come.
        """
        __tracebackhide__ = True
        expect = _expect(what, push, count=count, kind=kind, via=via, topic=topic)
        expect |= {"never": True, **_match(payload, headers, status, reason)}
        return self._met(expect, "0s" if within is None else None, within, advance)

    def _met(
        self, expect: dict[str, object], timeout: str | None, within: str | None, advance: bool
    ) -> Any:
        __tracebackhide__ = True
        body: dict[str, object] = {"expect": expect}
        if timeout is not None:
            body["timeout"] = timeout
        if within is not None:
            body["within"] = within
        if advance:
            body["advance"] = True
        try:
            return self.call("POST", "/v1/wait", body)
        except RelayError as unmet:
            # Anything else is a mistake in the question, or a relay that is gone.
            if unmet.reason in ("NotYet", "NeverAgain", "Happened", "NotKept"):
                raise NotMet(str(unmet)) from None
            raise

    def policy(self, name: Policy, phone: Phone | None = None) -> None:
        """The silent policy in force: documented, strict, unlimited, or numbers of one's own.

        Of one phone, if one is named. Of a relay that was joined, only of the phones made here,
        those to come among them: the others are somebody else's.
        """
        if phone:
            self.call("PUT", f"/v1/devices/{phone.device}/policy", {"policy": name})
        elif self.is_joined:
            for device in self._devices:
                self.call("PUT", f"/v1/devices/{device}/policy", {"policy": name})
            self._policy = name
        else:
            self.call("PUT", "/v1/policy", {"policy": name})

    def fault(self, name: str, at: str, do: dict[str, object], **more: object) -> Fault:
        """Something goes wrong on purpose, until it is ended (docs/ADMIN.md has the table).

        `with relay.fault("busy", "provider", {"answer": "ServiceUnavailable"}): …` ends it with
        the block; the fixture ends it with the test. `more` has `match`, `when`, `seed` and `for`.
        """
        self.call("PUT", _fault(name), {"at": at, "do": do, **more})
        fault = self._faults[name] = Fault(self, name)
        return fault

    def end_faults(self) -> None:
        """Ends what `fault` began and nobody has ended."""
        for fault in list(self._faults.values()):
            fault.end()

    def advance(self, by: str) -> Any:
        """Moves the relay's clock; answers what has fired."""
        return self.call("POST", "/v1/clock/advance", {"by": by})

    def checkpoint(self, name: str) -> None:
        """Saves the relay's state under that name."""
        self.call("PUT", f"/v1/checkpoints/{quote(name, safe='')}")
        self._saved[name] = set(self._devices)

    def restore(self, name: str) -> None:
        """Takes the relay back to that state; phones that were not there then are ended."""
        then = self._saved.get(name, set(self._devices))
        # Before the return: a phone that the relay does not know any more would complain.
        for device in [device for device in self._devices if device not in then]:
            self._devices.pop(device).stop()
        self.call("POST", f"/v1/checkpoints/{quote(name, safe='')}/restore")

    def drop(self, name: str) -> None:
        """Forgets that state."""
        self._saved.pop(name, None)
        self.call("DELETE", f"/v1/checkpoints/{quote(name, safe='')}")

    def channels(self) -> list[dict[str, Any]]:
        """The broadcast channels: subscribers, and how often each was published and delivered."""
        return list(self.call("GET", "/v1/channels")["channels"])

    def log(self, push: Push | str) -> str:
        """The life of a push, a step a line, and what became of it in a sentence."""
        unique_id = push if isinstance(push, str) else push.unique_id
        return _life(self.call("GET", f"/v1/notifications/{quote(unique_id, safe='')}"))

    def requests(
        self, payload: str | Iterable[str] | None = None, **filters: Any
    ) -> list[dict[str, Any]]:
        """The newest requests as they were sent, newest first (docs/ADMIN.md, "What was sent").

        `payload` is "aps.badge=3", "aps.alert.title~hello" or "~hello"; filters are topic, token,
        device, status, reason, pushType, header ("apns-priority=5"), since and limit. Of payload
        and header there may be a list.
        """
        wanted = {
            name: value if isinstance(value, (str, int)) else list(value)
            for name, value in {**filters, "payload": payload}.items()
            if value is not None
        }
        found = self.call("GET", f"/v1/requests?{urlencode(wanted, doseq=True, quote_via=quote)}")
        return list(found["requests"])

    def lives(self, limit: int = 50) -> list[str]:
        """The `log` of the last pushes, oldest first, however they were sent, and what was refused.

        Of a relay that was joined, only of those to the phones made here, and no refusals.
        """
        queries: Iterable[str] = [""]
        refusals: list[dict[str, Any]] = []
        if self.is_joined:
            queries = [f"&device={device}" for device in self._devices]
        else:
            refusals = self.call("GET", f"/v1/refusals?limit={limit}")["refusals"]
        found = [(told["time"], _refusal(told)) for told in reversed(refusals)]
        for query in queries:
            page = self.call("GET", f"/v1/notifications?limit={limit}{query}")
            # Newest first, and several have one time while a virtual clock stands.
            lives = reversed(page["notifications"])
            found += [(told["steps"][0]["time"], _life(told)) for told in lives]
        found.sort(key=lambda told: told[0])
        return [text for _, text in found[-limit:]]


class Fault:
    """Something that goes wrong on purpose until the `with` block, or `end`."""

    def __init__(self, relay: Relay, name: str) -> None:
        self._relay = relay
        self.name = name

    @property
    def hits(self) -> int:
        """How often it has acted."""
        return int(self._relay.call("GET", _fault(self.name))["hit"])

    def end(self) -> None:
        """Ends it; once more does nothing."""
        if self._relay._faults.get(self.name) is self:
            del self._relay._faults[self.name]
            _ignoring("UnknownFault", self._relay.call, "DELETE", _fault(self.name))

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


def _ignoring(reason: str, act: Callable[..., object], *words: object) -> None:
    """Does it; that it has been done already is no mistake."""
    try:
        act(*words)
    except RelayError as problem:
        if problem.reason != reason:
            raise


def _fault(name: str) -> str:
    return f"/v1/faults/{quote(name, safe='')}"


def _expect(what: str, subject: Subject, **narrower: str | int | None) -> dict[str, object]:
    expect: dict[str, object] = {"what": what}
    if isinstance(subject, Phone):
        expect["device"] = subject.device
        if what not in _OF_DEVICES:
            expect["topic"] = subject.topic
    elif subject is not None:
        expect["push"] = subject.unique_id if isinstance(subject, Push) else subject
    return expect | {name: value for name, value in narrower.items() if value is not None}


def _match(
    payload: dict[str, object] | None,
    headers: dict[str, str] | None,
    status: int | None,
    reason: str | None,
) -> dict[str, object]:
    match = {"payload": payload, "headers": headers, "status": status, "reason": reason}
    wanted = {name: value for name, value in match.items() if value}
    return {"match": wanted} if wanted else {}


def _refusal(told: dict[str, Any]) -> str:
    return f"{told['uniqueId']} refused: {told['status']} {told['reason']}: {told['cause']}"


def _life(told: dict[str, Any]) -> str:
    lines = [f"{told['uniqueId']} {told['kind']} {told['topic']}: {told['sentence']}"]
    lines += [f"  {step['at']}  {step['text']}" for step in told["steps"]]
    return "\n".join(lines)
