"""What the tests of the package share."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pushrelay import Relay, _run
from pushrelay._process import Process

pytest_plugins = ["pytester"]


@dataclass(frozen=True)
class Running:
    """A relay that somebody else has started, with its journal on disk and the machine's time."""

    state: Path
    admin: str
    provider: str
    device: str

    @property
    def token(self) -> str:
        return (self.state / "admin.token").read_text().strip()

    def join(self) -> Relay:
        return Relay.join(f"http://{self.admin}", self.token, state=self.state)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    state = tmp_path / "state"
    command = [_run.executable(), "serve", "--state", str(state), "--log-level", "error"]
    for listener in ("provider", "device", "admin"):
        command += [f"--{listener}", "127.0.0.1:0"]
    process = Process(command, lambda line: line.startswith("ready "))
    listeners = dict(word.split("=", 1) for word in process.ready.split()[1:])
    yield Running(state, **listeners)
    process.stop()
