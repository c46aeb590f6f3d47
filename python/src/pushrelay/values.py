"""What the relay's verbs take and give."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
    """A phone that listens and acknowledges, and one of its apps."""

    name: str
    topic: str
    device: str
    token: str


@dataclass(frozen=True)
class Push:
    """A push that the provider API took."""

    unique_id: str
    apns_id: str
