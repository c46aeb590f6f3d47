"""The package's own tests: scripts/test-python runs them."""

import asyncio
import ssl

import pytest
from pushrelay import Endpoint, NotMet, Phone, Refused, Relay, aio

SILENT = {"aps": {"content-available": 1}}

pytest_plugins = ["pytester"]


def test_the_fourth_is_held_and_arrives_within_the_hour(push_relay: Relay, phone: Phone) -> None:
    pushes = [push_relay.push(phone, SILENT) for _ in range(4)]
    push_relay.wait("delivered", pushes[2])
    with pytest.raises(NotMet, match="app-budget, until"):
        push_relay.wait("delivered", pushes[3], timeout="0s")
    assert push_relay.wait("delivered", pushes[3], within="1h", advance=True)["met"]


@pytest.mark.parametrize("run", [1, 2])
def test_each_test_begins_with_a_full_budget(push_relay: Relay, phone: Phone, run: int) -> None:
    pushes = [push_relay.push(phone, SILENT) for _ in range(3)]
    push_relay.wait("delivered", pushes[2])


def test_a_phone_may_say_more_than_a_pipe_holds(push_relay: Relay, phone: Phone) -> None:
    for number in range(24):
        push = push_relay.push(phone, {"aps": {"alert": f"{number}" + "x" * 3900}})
        push_relay.wait("delivered", push)


def test_a_refusal_says_its_reason(push_relay: Relay, phone: Phone) -> None:
    with pytest.raises(Refused, match="BadPriority"):
        push_relay.push(phone, SILENT, push_type="background", priority=7)


def test_what_must_not_happen(push_relay: Relay, phone: Phone) -> None:
    pushes = [push_relay.push(phone, SILENT) for _ in range(4)]
    push_relay.wait("delivered", pushes[2])
    push_relay.never("delivered", pushes[3])
    with pytest.raises(NotMet):
        push_relay.never("delivered", pushes[3], within="1h", advance=True)


@pytest.mark.push_relay_policy("strict")
@pytest.mark.push_relay_clock("2h")
def test_marks_choose_policy_and_time(push_relay: Relay, phone: Phone) -> None:
    assert push_relay.call("GET", "/v1/policy")["policy"] == "strict"
    pushes = [push_relay.push(phone, SILENT) for _ in range(2)]
    push_relay.wait("delivered", pushes[0])
    push_relay.never("delivered", pushes[1])


def test_a_mark_is_for_its_test_only(push_relay: Relay) -> None:
    assert push_relay.call("GET", "/v1/policy")["policy"] == "documented"


def test_a_fault_ends_with_its_block(push_relay: Relay, phone: Phone) -> None:
    with push_relay.fault("busy", "provider", {"answer": "ServiceUnavailable"}):
        with pytest.raises(Refused, match="ServiceUnavailable"):
            push_relay.push(phone, SILENT)
    push_relay.wait("delivered", push_relay.push(phone, SILENT))


def test_the_same_with_asyncio(async_push_relay: aio.Relay) -> None:
    async def run() -> None:
        phone = await async_push_relay.phone("com.example.app")
        pushes = await asyncio.gather(*(async_push_relay.push(phone, SILENT) for _ in range(3)))
        for push in pushes:
            await async_push_relay.wait("delivered", push)
        async with async_push_relay.fault("busy", "provider", {"answer": "ServiceUnavailable"}):
            with pytest.raises(Refused):
                await async_push_relay.push(phone, SILENT)
        assert "received" in await async_push_relay.log(pushes[0])

    asyncio.run(run())


def test_a_relay_that_runs_is_joined(push_relay: Relay, phone: Phone) -> None:
    with Relay.join(
        push_relay.admin,
        state=push_relay._state,
        provider=push_relay._provider,
        device=push_relay._device,
    ) as joined:
        other = joined.phone("com.example.app", name="other")
        joined.wait("delivered", joined.push(other, SILENT))
    devices = push_relay.call("GET", "/v1/devices")["devices"]
    assert [device["device"] for device in devices] == [phone.device]


def test_a_failure_shows_the_timeline(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_it(push_relay, phone):
            push_relay.push(phone, {"aps": {"alert": "Hello"}})
            assert False
        """
    )
    result = pytester.runpytest_subprocess("-p", "pushrelay.pytest_plugin")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*- pushes of this test -*", "*received*"])
