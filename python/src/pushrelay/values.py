"""What the relay's verbs take and give."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .relay import Relay


@dataclass(frozen=True)
class Endpoint:
    """What an APNs client library wants to be told."""

    host: str
    port: int
    ca: Path
    key: Path
    key_id: str
    team_id: str
    # Where broadcast channels are made and deleted; a broadcast goes to `port`.
    channels_port: int | None = None


@dataclass(frozen=True)
class Phone:
    """A phone that listens and acknowledges, and one of its apps.

    One that is simulated does every verb of scenarios: `phone.swipe_away("com.example.news")`,
    `phone.network("airplane")`, `phone.use(app="com.example.news", **{"for": "10m"})`.
    """

    name: str
    topic: str
    device: str
    token: str
    _relay: Relay | None = field(default=None, repr=False, compare=False)

    def do(self, verb: str, *words: object, **members: object) -> list[str]:
        """Has it do something; answers what has happened on it, a line each."""
        assert self._relay, "a phone of Relay.phone"
        return self._relay.do(self, verb, *words, **members)

    def state(self) -> dict[str, Any]:
        """How it is, as it knows itself: apps, banners, badges, budgets."""
        assert self._relay, "a phone of Relay.phone"
        return self._relay.state(self)

    def __deepcopy__(self, memo: object) -> Phone:
        return self  # nothing in it changes, and a relay has only one process

    def __getattr__(self, name: str) -> Verb:
        if name.startswith("_"):
            raise AttributeError(name)
        return Verb(self, name)


class Verb:
    """Something that a simulated phone can be told, to be called. It is no value: a test that asks
    `assert phone.locked` would be told yes for ever, so it is told where to look instead."""

    def __init__(self, phone: Phone, name: str) -> None:
        self._phone, self._name = phone, name

    def __call__(self, *words: object, **members: object) -> list[str]:
        return self._phone.do(self._name.replace("_", " "), *words, **members)

    def __bool__(self) -> bool:
        raise self._no_value()

    def __eq__(self, other: object) -> bool:
        raise self._no_value()

    __hash__ = None  # type: ignore[assignment]

    def _no_value(self) -> TypeError:
        return TypeError(
            f"phone.{self._name} is something to do, with parentheses behind it; "
            "phone.state() says how the phone is"
        )


@dataclass(frozen=True)
class Push:
    """A push that the provider API took."""

    unique_id: str
    apns_id: str
