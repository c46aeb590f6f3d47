"""The relay's image as a container of Testcontainers for Python, and the fixtures' Relay joined to it.

    with RelayContainer() as container, container.join() as relay:
        phone = relay.phone("com.example.app")
        relay.wait("delivered", relay.push(phone, {"aps": {"alert": "Hello"}}))

Needs testcontainers 4.13 or newer and, for `join`, the wheel pushrelay. Copy it beside your tests.
Not tried with a container engine: there was none where it was written. What needs none (how it is
configured, what `join` copies and where it then asks) is tried by test_pushrelay_container.py.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pushrelay import Relay
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy

STATE = "/var/lib/push-relay"
PROVIDER, DEVICE, ADMIN = 2197, 5223, 8080


class RelayContainer(DockerContainer):
    """A relay whose clock moves when told and whose store is memory, ready when it is entered."""

    def __init__(self, image: str = "push-relay:0.9.0", **options: Any) -> None:
        super().__init__(image, **options)
        self.with_envs(
            PUSHRELAY_CLOCK="virtual",
            PUSHRELAY_STORE="memory",
            PUSHRELAY_ADMIN=f"0.0.0.0:{ADMIN}",
        )
        self.with_exposed_ports(PROVIDER, DEVICE, ADMIN)
        # As the image's own health check, which the engine asks every 15 seconds only.
        self.waiting_for(HttpWaitStrategy(ADMIN, "/health/ready").for_status_code(200))

    def address(self, port: int) -> str:
        """Where that port of the container is reached from here."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(port)}"

    def read(self, name: str) -> str:
        """A file of the relay's state: ca.pem, admin.token, keys/keys.json, keys/AuthKey_….p8."""
        status, output = self.exec(["cat", f"{STATE}/{name}"])
        if status != 0:
            raise FileNotFoundError(str(output, "utf-8").strip())
        return str(output, "utf-8")

    @contextmanager
    def join(self) -> Iterator[Relay]:
        """The relay, with `phone`, `push`, `wait`, `advance` and what client libraries are told."""
        names = ["ca.pem", "admin.token", "keys/keys.json"]
        names += [
            f"keys/AuthKey_{key['keyID']}.p8" for key in json.loads(self.read(names[-1]))["keys"]
        ]
        with tempfile.TemporaryDirectory(prefix="pushrelay-") as state:
            (Path(state) / "keys").mkdir()
            for name in names:
                path = Path(state) / name
                path.touch(mode=0o600)
                path.write_text(self.read(name))
            with Relay.join(
                f"http://{self.address(ADMIN)}",
                state=state,
                provider=self.address(PROVIDER),
                device=self.address(DEVICE),
            ) as relay:
                yield relay
