"""Fixtures for pytest: a relay a session, every test from the same state."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from . import aio
from .errors import RelayError
from .relay import Relay
from .values import Endpoint, Phone

# What every test begins from: a name that no test is likely to save a state under.
_BEGINNING = "beginning-of-every-test"
_MOST_TOLD = 50
# Of a test, however it came to it.
_RELAY = pytest.StashKey[Relay]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("push-relay")
    group.addoption(
        "--push-relay",
        metavar="URL",
        help="join the relay with this admin address; #token=TOKEN behind it, or admin.token",
    )
    group.addoption(
        "--push-relay-state",
        metavar="DIR",
        default=".pushrelay",
        help="its state directory, or ca.pem and keys/ from there (%(default)s)",
    )
    for port, default in (("provider", 2197), ("device", 5223)):
        group.addoption(
            f"--push-relay-{port}",
            metavar="HOST:PORT",
            help=f"its {port} listener (that of ready.json in DIR, else 127.0.0.1:{default})",
        )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "push_relay_policy(name): the silent policy in this test, such as strict"
    )
    config.addinivalue_line(
        "markers", "push_relay_clock(later): the test begins so much later, such as 2h"
    )


@pytest.fixture(scope="session")
def _push_relay_session(request: pytest.FixtureRequest) -> Iterator[Relay]:
    option = request.config.getoption
    if url := option("--push-relay"):
        with Relay.join(
            url,
            state=option("--push-relay-state"),
            provider=option("--push-relay-provider"),
            device=option("--push-relay-device"),
        ) as relay:
            try:
                relay.call("GET", "/v1/clock")
            except RelayError as problem:
                text = f"--push-relay={url.partition('#')[0]}: {problem}"
                # A worker of xdist that exits leaves no word of why.
                if hasattr(request.config, "workerinput"):
                    pytest.fail(text, pytrace=False)
                # Once, and before a test has made anything there.
                pytest.exit(text, returncode=4)
            yield relay
        return
    # A worker of xdist has a session of its own, and so a relay of its own.
    with _ending_by_signal(), Relay() as relay:
        relay.checkpoint(_BEGINNING)
        yield relay


@contextlib.contextmanager
def _ending_by_signal() -> Iterator[None]:
    """SIGTERM, as of a job that is cancelled, and SIGHUP, as of a terminal that is closed, are as
    Ctrl-C: what was started ends, too."""

    def end(number: int, frame: object) -> None:
        # Once more, and it ends at once; a terminal that is closed says it twice by itself.
        signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
        raise KeyboardInterrupt

    numbers: list[int] = []
    if threading.current_thread() is threading.main_thread():
        known = (signal.SIGTERM, signal.SIGHUP)
        numbers = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def push_relay(_push_relay_session: Relay, request: pytest.FixtureRequest) -> Iterator[Relay]:
    """A relay with a virtual clock, without phones, as it was at the start of the session.

    One that was joined by its address is not taken back, since others may be using it: the phones
    of the test are forgotten, and what a mark or a fault has changed is as it was.
    """
    relay = _push_relay_session
    request.node.stash[_RELAY] = relay
    try:
        if policy := _argument(request, "push_relay_policy", '"strict"'):
            relay.policy(policy)
        if later := _argument(request, "push_relay_clock", '"2h"'):
            relay.advance(later)
        yield relay
    finally:
        if relay.is_joined:
            relay.leave()
        else:
            relay.begin_again(_BEGINNING)


def _argument(request: pytest.FixtureRequest, name: str, example: str) -> Any:
    """What the test's mark of that name says; None without one."""
    mark = request.node.get_closest_marker(name)
    if mark and len(mark.args) != 1:
        raise pytest.UsageError(f"@pytest.mark.{name} wants one argument, such as {example}")
    return mark and mark.args[0]


@pytest.fixture
def async_push_relay(push_relay: Relay) -> Iterator[aio.Relay]:
    """The same relay with methods to await."""
    relay = aio.Relay(push_relay)
    yield relay
    relay.close()


@pytest.fixture
def apns_endpoint(push_relay: Relay) -> Endpoint:
    """Host, port, CA, key file, key id and team: what a client library is told."""
    return push_relay.endpoint


@pytest.fixture
def phone(push_relay: Relay) -> Phone:
    """A phone with the app com.example.app."""
    return push_relay.phone("com.example.app")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, object, None]:
    """On failure the report shows the life of each push of the test, and what was refused."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    relay = item.stash.get(_RELAY, None)
    # After the test nothing of it is left in the relay.
    if report.when == "teardown" or not report.failed or relay is None:
        return
    try:
        lives = relay.lives(_MOST_TOLD + 1)
        told = "\n".join(lives[-_MOST_TOLD:])
        if len(lives) > _MOST_TOLD:
            told = f"the last {_MOST_TOLD}; push_relay.lives(limit) has more\n{told}"
    except RelayError as problem:
        told = str(problem)
    if told:
        report.sections.append(("pushes of this test", told))
