"""Starts the executable and speaks its admin API. The standard library is all it needs."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from . import _run


class RelayError(Exception):
    """The relay, or its executable, said no; the message is its sentence."""


class NotMet(AssertionError):
    """A wait was not met; the message says why, and until when a push is held."""


class Refused(AssertionError):
    """The provider API did not answer 200; the message is its reason."""


@dataclass(frozen=True)
class Endpoint:
    """What an APNs client library wants to be told."""

    host: str
    port: int
    ca: Path
    key: Path
    key_id: str
    team_id: str


@dataclass(frozen=True)
class Phone:
    """A phone that listens and acknowledges."""

    name: str
    topic: str
    device: str
    token: str


@dataclass(frozen=True)
class Push:
    """A push that the provider API took."""

    unique_id: str
    apns_id: str


class Relay:
    """A relay of a test's own, on free ports, with a clock that moves when told.

    The executable is the argument, else PUSHRELAY, else the one that came with this package, else
    pushrelay on the PATH.
    """

    def __init__(self, executable: str | None = None) -> None:
        self._executable = executable or _run.executable()
        self._phones: list[tuple[Phone, subprocess.Popen[str]]] = []
        self._names = 0
        self._process: subprocess.Popen[str] | None = None
        self.pushes: list[Push] = []

    @classmethod
    def join(
        cls,
        url: str,
        *,
        state: str | os.PathLike[str],
        provider: str = "127.0.0.1:2197",
        device: str = "127.0.0.1:5223",
        executable: str | None = None,
    ) -> Relay:
        """A relay that runs already, whose state directory is here.

        Nothing of it is started or ended; `leave` takes back what was made of phones.
        """
        relay = cls(executable)
        relay._state = Path(state)
        relay._token = (relay._state / "admin.token").read_text().strip()
        admin = url.split("#", 1)[0].rstrip("/").split("://", 1)[-1]
        relay._addresses = {"admin": admin, "provider": provider, "device": device}
        return relay

    def leave(self) -> None:
        """Ends the phones that `phone` has made, and has the relay forget them."""
        for phone, process in self._phones:
            _stop(process)
            self.call("DELETE", f"/v1/devices/{phone.device}")
            (self._state / f"devices/{phone.name}.json").unlink(missing_ok=True)
        self._phones.clear()
        self.pushes.clear()

    def __enter__(self) -> Relay:
        if hasattr(self, "_addresses"):
            return self
        self._directory = tempfile.TemporaryDirectory(prefix="pushrelay-")
        self._state = Path(self._directory.name)
        command = [self._executable, "serve", "--state", str(self._state)]
        command += ["--clock", "virtual", "--store", "memory", "--log-level", "error"]
        for name in ("provider", "device", "admin"):
            command += [f"--{name}", "127.0.0.1:0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        words = self._process.stdout.readline().split()
        if not words:
            self.__exit__(None, None, None)
            raise RelayError(f"{self._executable} did not start; its message is above")
        _drain(self._process)
        self._addresses = dict(word.split("=", 1) for word in words[1:])
        self._token = (self._state / "admin.token").read_text().strip()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is None:
            return self.leave()
        for _, process in self._phones:
            _stop(process)
        self._phones.clear()
        _stop(self._process)
        self._directory.cleanup()

    @property
    def endpoint(self) -> Endpoint:
        """Where a provider's client library is to push, and with which key."""
        key = json.loads((self._state / "keys/keys.json").read_text())["keys"][0]
        return Endpoint(
            host="localhost",
            port=int(self._addresses["provider"].rsplit(":", 1)[1]),
            ca=self._state / "ca.pem",
            key=self._state / f"keys/AuthKey_{key['keyID']}.p8",
            key_id=key["keyID"],
            team_id=key["teamID"],
        )

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Asks the admin API; docs/ADMIN.md lists its routes."""
        request = urllib.request.Request(
            f"http://{self._addresses['admin']}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "authorization": f"bearer {self._token}",
                "content-type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise RelayError(json.load(refusal)["message"]) from None

    def phone(self, topic: str, name: str | None = None) -> Phone:
        """A phone with one app, connected."""
        self._names += 1
        name = name or f"phone-{self._names}"
        process = subprocess.Popen(
            [self._executable, "device", name, "--light", "--json", "--topic", topic]
            + ["--state", str(self._state), "--device", self._addresses["device"]],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        for line in process.stdout:
            if line.startswith("{") and json.loads(line).get("type") == "hello":
                _drain(process)
                apps = json.loads((self._state / f"devices/{name}.json").read_text())["apps"]
                phone = Phone(name, topic, json.loads(line)["device"], apps[topic])
                self._phones.append((phone, process))
                return phone
        _stop(process)
        raise RelayError(f"the phone {name} did not connect; its message is above")

    def push(
        self,
        phone: Phone,
        payload: object,
        *,
        push_type: str | None = None,
        priority: int | None = None,
        expiration: str | None = None,
        collapse_id: str | None = None,
    ) -> Push:
        """Pushes through the provider port, with a provider token.

        Type and priority are inferred from the payload unless given.
        """
        command = [self._executable, "send", "-", "--json", "--state", str(self._state)]
        command += ["--to", phone.token, "--topic", phone.topic]
        command += ["--provider", self._addresses["provider"]]
        headers = {
            "push-type": push_type,
            "priority": priority,
            "expiration": expiration,
            "collapse-id": collapse_id,
        }
        for header, value in headers.items():
            if value is not None:
                command += [f"--{header}", str(value)]
        sent = subprocess.run(
            command, input=json.dumps(payload), capture_output=True, text=True, timeout=60
        )
        if sent.returncode != 0:
            raise Refused((sent.stdout + sent.stderr).strip())
        answer = json.loads(sent.stdout)
        push = Push(answer["apnsUniqueId"], answer["apnsId"])
        self.pushes.append(push)
        return push

    def wait(
        self,
        what: str,
        push: Push,
        *,
        timeout: str | None = None,
        within: str | None = None,
        advance: bool = False,
    ) -> Any:
        """Waits until it has happened to the push; NotMet says why not."""
        body: dict[str, object] = {"expect": {"what": what, "push": push.unique_id}}
        if timeout is not None:
            body["timeout"] = timeout
        if within is not None:
            body["within"] = within
        if advance:
            body["advance"] = True
        return self._met(body)

    def never(
        self, what: str, push: Push, *, within: str | None = None, advance: bool = False
    ) -> Any:
        """Sees to it that it does not happen to the push; NotMet says when it did."""
        body: dict[str, object] = {"expect": {"what": what, "push": push.unique_id, "never": True}}
        body |= {"timeout": "0s"} if within is None else {"within": within, "advance": advance}
        return self._met(body)

    def _met(self, body: dict[str, object]) -> Any:
        try:
            return self.call("POST", "/v1/wait", body)
        except RelayError as unmet:
            raise NotMet(str(unmet)) from None

    def policy(self, name: str) -> None:
        """The silent policy in force: documented, strict or unlimited."""
        self.call("PUT", "/v1/policy", {"policy": name})

    @contextmanager
    def fault(self, name: str, at: str, do: dict[str, object], **more: object) -> Iterator[None]:
        """Something goes wrong on purpose, until the block ends (docs/ADMIN.md has the table).

        `with relay.fault("busy", "provider", {"answer": "ServiceUnavailable"}): …`; `more` has
        `match`, `when` and `seed`.
        """
        self.call("PUT", f"/v1/faults/{name}", {"at": at, "do": do, **more})
        try:
            yield
        finally:
            self.call("DELETE", f"/v1/faults/{name}")

    def advance(self, by: str) -> Any:
        """Moves the relay's clock; answers what has fired."""
        return self.call("POST", "/v1/clock/advance", {"by": by})

    def checkpoint(self, name: str) -> None:
        """Saves the relay's state under that name."""
        self.call("PUT", f"/v1/checkpoints/{name}")

    def restore(self, name: str) -> None:
        """Takes the relay back to that state. Phones made by `phone` stop first."""
        for phone, process in self._phones:
            _stop(process)
            (self._state / f"devices/{phone.name}.json").unlink(missing_ok=True)
        self._phones.clear()
        self.pushes.clear()
        self.call("POST", f"/v1/checkpoints/{name}/restore")

    def timeline(self, push: Push) -> str:
        """The life of a push, as `pushrelay log` tells it."""
        told = subprocess.run(
            [self._executable, "log", push.unique_id, "--state", str(self._state)]
            + ["--provider", self._addresses["provider"]],
            capture_output=True,
            text=True,
            timeout=60,
        )
        return told.stdout + told.stderr


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _drain(process: subprocess.Popen[str]) -> None:
    """Reads what else it says: behind a full pipe a phone does not acknowledge any more."""

    def read() -> None:
        assert process.stdout
        with process.stdout as lines:
            for _ in lines:
                pass

    threading.Thread(target=read, daemon=True).start()
