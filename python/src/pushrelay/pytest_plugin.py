"""Fixtures for pytest: a relay a session, every test from the same state."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from .relay import Endpoint, Phone, Relay


@pytest.fixture(scope="session")
def _push_relay_session() -> Iterator[Relay]:
    with Relay() as relay:
        relay.checkpoint("pytest")
        yield relay


@pytest.fixture
def push_relay(_push_relay_session: Relay) -> Iterator[Relay]:
    """A relay with a virtual clock, without phones, as it was at the start of the session."""
    yield _push_relay_session
    _push_relay_session.restore("pytest")


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
    """On failure the report shows the life of each push of the test."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    relay = getattr(item, "funcargs", {}).get("push_relay")
    if report.when == "call" and report.failed and isinstance(relay, Relay):
        for push in relay.pushes:
            report.sections.append((f"push {push.unique_id}", relay.timeline(push)))
