"""The package's own tests: scripts/test-python runs them."""

import asyncio
import ssl

import pytest
from pushrelay import Endpoint, NotMet, Phone, Refused, Relay

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


def test_aioapns_pushes_to_it(
    apns_endpoint: Endpoint, push_relay: Relay, phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    import aioapns
    from aioapns.connection import APNsProductionClientProtocol

    monkeypatch.setattr(APNsProductionClientProtocol, "APNS_SERVER", apns_endpoint.host)
    monkeypatch.setattr(APNsProductionClientProtocol, "APNS_PORT", apns_endpoint.port)

    async def send() -> str:
        client = aioapns.APNs(
            key=apns_endpoint.key.read_text(),
            key_id=apns_endpoint.key_id,
            team_id=apns_endpoint.team_id,
            topic=phone.topic,
            ssl_context=ssl.create_default_context(cafile=str(apns_endpoint.ca)),
        )
        result = await client.send_notification(
            aioapns.NotificationRequest(
                device_token=phone.token, message={"aps": {"alert": "Hello"}}
            )
        )
        return str(result.status)

    assert asyncio.run(send()) == "200"


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
    result.stdout.fnmatch_lines(["*- push *", "*received*"])
