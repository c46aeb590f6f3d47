"""What of the module needs no container engine: scripts/test-wheel runs it.

`Container` is a relay of this machine, started with the container's environment. The commands that the
engine would run in it run here, and its ports are those that the relay has printed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pushrelay import _run
from pushrelay_container import ADMIN, DEVICE, PROVIDER, STATE, RelayContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy


class Container(RelayContainer):
    def start_here(self, state: Path) -> subprocess.Popen[str]:
        self.state = state
        # Ports of its own choice: others may run on this machine.
        environment = {**os.environ, **self.env, "PUSHRELAY_ADMIN": "127.0.0.1:0"}
        process = subprocess.Popen(
            [_run.executable(), "serve", "--state", str(state), "--log-level", "error"]
            + ["--provider", "127.0.0.1:0", "--device", "127.0.0.1:0"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        said = dict(word.split("=", 1) for word in process.stdout.readline().split()[1:])
        names = {PROVIDER: "provider", DEVICE: "device", ADMIN: "admin"}
        self.mapped = {port: int(said[name].rsplit(":", 1)[1]) for port, name in names.items()}
        return process

    def get_container_host_ip(self) -> str:
        return "localhost"

    def get_exposed_port(self, port: int) -> int:
        return self.mapped[port]

    def exec(self, command: list[str]) -> tuple[int, bytes]:  # type: ignore[override]
        here = [word.replace(STATE, str(self.state)) for word in command]
        done = subprocess.run(here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    # With a version the client of Docker does not ask an engine for it.
    container = Container(docker_client_kw={"version": "1.44"})
    process = container.start_here(tmp_path)
    yield container
    process.terminate()
    assert process.wait(timeout=30) == 0


def test_it_exposes_the_ports_and_waits_for_health(container: Container) -> None:
    assert {int(port) for port in container.ports} == {PROVIDER, DEVICE, ADMIN}
    strategy = container._wait_strategy
    assert isinstance(strategy, HttpWaitStrategy)
    # Ends at once, or after its time-out with an error.
    strategy.with_startup_timeout(5).wait_until_ready(container)


def test_the_relay_is_joined_and_its_clock_moves(container: Container) -> None:
    with container.join() as relay:
        phone = relay.phone("com.example.app")
        pushes = [relay.push(phone, {"aps": {"content-available": 1}}) for _ in range(4)]
        relay.wait("delivered", pushes[2])
        relay.never("delivered", pushes[3])
        assert relay.wait("delivered", pushes[3], within="1h", advance=True)["met"]
        assert relay.endpoint.key.read_text().startswith("-----BEGIN PRIVATE KEY-----")


def test_a_file_that_is_not_there_is_said(container: Container) -> None:
    with pytest.raises(FileNotFoundError, match="nothing.pem"):
        container.read("nothing.pem")
