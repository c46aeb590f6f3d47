"""The package's own tests: scripts/test-python runs them."""

import asyncio
import inspect
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from conftest import Running
from pushrelay import NotMet, Phone, Push, Refused, Relay, RelayError, _process, _run, aio

SILENT = {"aps": {"content-available": 1}}


def test_the_fourth_is_held_and_arrives_within_the_hour(push_relay: Relay, phone: Phone) -> None:
    pushes = [push_relay.push(phone, SILENT) for _ in range(4)]
    push_relay.wait("delivered", pushes[2])
    with pytest.raises(NotMet, match="app budget: 0 of 3 left"):
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


def test_a_wrong_badge_is_named(push_relay: Relay, phone: Phone) -> None:
    push = push_relay.push(phone, {"aps": {"alert": "Your order", "badge": 2}})
    push_relay.wait("delivered", phone, payload={"aps.badge": 2}, headers={"apns-push-type": "alert"})
    with pytest.raises(NotMet, match=rf"{push.unique_id}.*aps\.badge is 2, not 3"):
        push_relay.wait("received", phone, payload={"aps.badge": 3}, timeout="0s")
    push_relay.never("received", phone, payload={"aps.badge": 3})
    assert [sent["uniqueId"] for sent in push_relay.requests("~YOUR ORDER")] == [push.unique_id]
    assert push_relay.requests("~your order", status=400) == []


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
    with push_relay.fault("busy", "provider", {"answer": "ServiceUnavailable"}) as fault:
        with pytest.raises(Refused, match="ServiceUnavailable") as refused:
            push_relay.push(phone, SILENT)
        assert refused.value.reason == "ServiceUnavailable"
        assert fault.hits == 1
    push_relay.wait("delivered", push_relay.push(phone, SILENT))


def test_the_same_with_asyncio(async_push_relay: aio.Relay) -> None:
    async def run() -> None:
        phone = await async_push_relay.phone("com.example.app")
        pushes = await asyncio.gather(*(async_push_relay.push(phone, SILENT) for _ in range(3)))
        for push in pushes:
            await async_push_relay.wait("delivered", push)
        fault = await async_push_relay.fault("gone", "provider", {"answer": "Shutdown"})
        fault.end()
        async with async_push_relay.fault("busy", "provider", {"answer": "ServiceUnavailable"}):
            with pytest.raises(Refused):
                await async_push_relay.push(phone, SILENT)
        assert "received" in await async_push_relay.log(pushes[0])

    asyncio.run(run())


def test_phones_come_at_once_with_asyncio(async_push_relay: aio.Relay) -> None:
    async def run() -> None:
        topics = [f"com.example.app{number}" for number in range(6)]
        phones = await asyncio.gather(*(async_push_relay.phone(topic) for topic in topics))
        assert [phone.topic for phone in phones] == topics
        assert len({phone.device for phone in phones}) == len({phone.name for phone in phones}) == 6

    asyncio.run(run())


def test_many_waits_with_asyncio_hold_up_nothing(async_push_relay: aio.Relay) -> None:
    async def run() -> None:
        phone = await async_push_relay.phone("com.example.app")
        wait = async_push_relay.wait
        waits = [
            asyncio.create_task(wait("delivered", phone, count=number + 1, timeout="1m"))
            for number in range(40)
        ]
        for _ in waits:
            await async_push_relay.push(phone, {"aps": {"alert": "Hello"}})
        await asyncio.gather(*waits)

    asyncio.run(run())


def test_requests_are_found_by_several_conditions(push_relay: Relay, phone: Phone) -> None:
    for badge, priority in ((1, 5), (1, 10), (2, 5)):
        push_relay.push(phone, {"aps": {"alert": "Hello", "badge": badge}}, priority=priority)
    assert len(push_relay.requests(["~Hello", "aps.badge=1"])) == 2
    headers = ["apns-priority=5", "apns-push-type=alert"]
    assert len(push_relay.requests("aps.badge=1", header=headers)) == 1
    assert len(push_relay.requests(text for text in ["~Hello", "aps.badge=2"])) == 1
    assert push_relay.requests(["~Hello", "aps.badge=3"]) == []


def test_just_so_often_and_refused_for_that(push_relay: Relay, phone: Phone) -> None:
    for _ in range(2):
        push_relay.push(phone, {"aps": {"alert": "Hello"}})
    push_relay.wait("received", phone, count=2)
    push_relay.never("received", phone, count=3)
    with pytest.raises(NotMet):
        push_relay.never("received", phone, count=2)
    with pytest.raises(Refused):
        push_relay.push(phone, {"aps": {"alert": "Hello"}}, priority=7)
    push_relay.wait("refused", status=400, reason="BadPriority", timeout="0s")
    with pytest.raises(NotMet, match="reason is BadPriority, not BadTopic"):
        push_relay.wait("refused", reason="BadTopic", timeout="0s")


def test_asyncio_has_every_verb() -> None:
    verbs = {name for name in vars(Relay) if not name.startswith("_")}
    # What makes a relay, or is for the plugin only.
    verbs -= {"join", "end_faults", "begin_again"}
    assert verbs - set(vars(aio.Relay)) == set()
    for name in verbs - {"endpoint", "admin", "is_joined", "fault"}:
        assert inspect.iscoroutinefunction(getattr(aio.Relay, name)), name


def test_another_app_of_a_phone(push_relay: Relay, phone: Phone) -> None:
    other = push_relay.app(phone, "com.example.other")
    assert other.device == phone.device and other.token != phone.token
    push_relay.wait("delivered", push_relay.push(other, SILENT))
    push_relay.wait("delivered", other)
    push_relay.never("delivered", phone)


def test_a_wait_on_a_phone_or_by_the_id_of_a_push(push_relay: Relay, phone: Phone) -> None:
    push_relay.wait("connected", phone)
    apns_id = str(uuid.uuid4())
    push = push_relay.push(phone, SILENT, apns_id=apns_id)
    assert push.apns_id == apns_id
    push_relay.wait("delivered", apns_id)
    push_relay.push(phone, {"aps": {"alert": "Hello"}})
    push_relay.wait("delivered", phone, count=2)
    push_relay.wait("sent", phone, kind="visible", via="direct")
    with pytest.raises(NotMet):
        push_relay.wait("delivered", phone, count=3, timeout="0s")


def test_headers_are_those_of_the_push(push_relay: Relay, phone: Phone) -> None:
    with pytest.raises(Refused, match="BadCollapseId"):
        push_relay.push(phone, SILENT, collapse_id="a" * 65)
    pushes = [push_relay.push(phone, SILENT, expiration="+60") for _ in range(4)]
    push_relay.wait("delivered", pushes[2])
    with pytest.raises(NotMet, match="(?i)expired"):
        push_relay.wait("delivered", pushes[3], within="1h", advance=True)


def test_a_simulated_phone_does_what_it_is_told(push_relay: Relay) -> None:
    topic = "com.example.news"
    phone = push_relay.phone(topic, simulated=True)
    assert any("opened" in line for line in phone.open(topic))
    assert push_relay.call("GET", f"/v1/devices/{phone.name}")["device"] == phone.device
    assert phone.state()["foreground"] == topic
    assert any("terminated: swiped away" in line for line in phone.swipe_away(topic))
    # Whom the user has ended is not woken.
    push = push_relay.push(phone, SILENT)
    push_relay.wait("outcome", push)
    assert "force-quit" in push_relay.log(push)
    assert any(line.startswith("swipe away ") for line in phone.do("help"))
    with pytest.raises(RelayError, match='there is no "fly"') as refused:
        phone.fly()
    assert refused.value.reason == "BadOrder"


def test_what_is_sent_in_airplane_mode_comes_afterwards(push_relay: Relay) -> None:
    phone = push_relay.phone("com.example.news", simulated=True)
    phone.network("airplane")
    push_relay.wait("disconnected", phone)
    push = push_relay.push(phone, {"aps": {"alert": "Hello", "badge": 3}})
    push_relay.wait("stored", push)
    assert phone.state()["banners"] == []
    phone.network(to="wifi")
    push_relay.wait("delivered", push, timeout="5s")
    state = phone.state()
    assert [banner["text"] for banner in state["banners"]] == ["Hello"]
    assert state["apps"][0]["badge"] == 3


def test_without_coverage_the_clock_goes_on(push_relay: Relay) -> None:
    phone = push_relay.phone("com.example.news", simulated=True)
    phone.network("none")
    push = push_relay.push(phone, SILENT)
    push_relay.advance("1h")
    assert push_relay.call("GET", f"/v1/devices/{phone.device}")["connected"] is False
    phone.network("wifi")
    push_relay.wait("delivered", push)


def test_a_light_phone_takes_no_orders(push_relay: Relay, phone: Phone) -> None:
    with pytest.raises(RelayError) as refused:
        phone.lock()
    assert refused.value.reason == "TakesNoOrders"


def test_a_simulated_phone_with_asyncio(async_push_relay: aio.Relay) -> None:
    async def run() -> None:
        phone = await async_push_relay.phone("com.example.news", simulated=True)
        await async_push_relay.do(phone, "open", phone.topic)
        assert (await async_push_relay.state(phone))["lock"] == "unlocked"

    asyncio.run(run())


def test_a_return_keeps_the_phones_that_were_there(push_relay: Relay, phone: Phone) -> None:
    push_relay.checkpoint("with-phone")
    later = push_relay.phone("com.example.app")
    pushes = [push_relay.push(phone, SILENT) for _ in range(4)]
    push_relay.wait("delivered", pushes[2])
    push_relay.restore("with-phone")
    devices = push_relay.call("GET", "/v1/devices")["devices"]
    assert [device["device"] for device in devices] == [phone.device] != [later.device]
    # Its budget is full again, and it still listens.
    pushes = [push_relay.push(phone, SILENT) for _ in range(3)]
    push_relay.wait("delivered", pushes[2])


def test_a_policy_of_one_phone(push_relay: Relay, phone: Phone) -> None:
    other = push_relay.phone("com.example.app")
    push_relay.policy("strict", phone)
    told = push_relay.call("GET", f"/v1/devices/{phone.device}")
    assert told["budget"]["policy"] == "strict"
    push_relay.policy({"app": {"count": 2, "per": "1d"}}, phone)
    told = push_relay.call("GET", f"/v1/devices/{phone.device}")
    assert told["budget"]["policy"] == "2 a day per app"
    push_relay.policy("strict", phone)
    for each in (phone, other):
        for _ in range(2):
            push_relay.push(each, SILENT)
    push_relay.wait("delivered", other, count=2)
    with pytest.raises(NotMet):
        push_relay.wait("delivered", phone, count=2, timeout="0s")


def test_the_log_tells_a_life(push_relay: Relay, phone: Phone) -> None:
    push = push_relay.push(phone, SILENT)
    push_relay.wait("delivered", push)
    first, *steps = push_relay.log(push).splitlines()
    assert first.startswith(f"{push.unique_id} silent com.example.app: Delivered ")
    assert "received (silent)" in steps[0] and "delivered" in steps[2]


def test_an_error_has_the_sentence_of_the_api(push_relay: Relay, phone: Phone) -> None:
    push = push_relay.push(phone, SILENT)
    for ask, reason, sentence in (
        (lambda: push_relay.restore("none"), "UnknownCheckpoint", "none"),
        (lambda: push_relay.advance("soon"), "BadBody", "length of time such as 90s"),
        (lambda: push_relay.policy("none"), "BadBody", "documented, strict, unlimited"),
        (lambda: push_relay.fault("x", "moon", {"drop": True}), "BadBody", "provider"),
        # A question that makes no sense is no wait that was not met.
        (lambda: push_relay.wait("eaten", push), "BadBody", "delivered"),
        (lambda: push_relay.log(str(uuid.uuid4())), "UnknownNotification", "notification"),
    ):
        with pytest.raises(RelayError, match=sentence) as error:
            ask()
        assert reason in error.value.reason and str(error.value), error.value


def test_a_refusal_says_what_is_wrong(push_relay: Relay, phone: Phone) -> None:
    gone = Phone(phone.name, phone.topic, phone.device, "ab" * 32)
    with pytest.raises(Refused, match="BadDeviceToken") as refused:
        push_relay.push(gone, SILENT)
    assert refused.value.reason == "BadDeviceToken"
    with push_relay.fault("reset", "provider", {"reset": True}):
        with pytest.raises(RelayError, match="broke the stream off"):
            push_relay.push(phone, SILENT)


def test_headers_that_look_like_options(push_relay: Relay, phone: Phone) -> None:
    push = push_relay.push(phone, {"aps": {"alert": "x"}}, collapse_id="-x")
    push_relay.wait("received", push, headers={"apns-collapse-id": "-x"})


def test_an_expiration_counts_from_the_relays_now(push_relay: Relay) -> None:
    away = push_relay.phone("com.example.app", simulated=True)
    push_relay.advance("2h")
    away.network("airplane")
    push = push_relay.push(away, {"aps": {"alert": "x"}}, expiration="+3600")
    assert "stored" in push_relay.log(push)
    push_relay.wait("discarded", push, within="61m", advance=True)


def test_what_a_phone_can_do_is_no_value(push_relay: Relay) -> None:
    phone = push_relay.phone("com.example.app", simulated=True)
    with pytest.raises(TypeError, match="phone.state()"):
        assert phone.locked
    with pytest.raises(TypeError, match="phone.state()"):
        assert phone.badge == 3
    light = push_relay.phone("com.example.app")
    with pytest.raises(RelayError, match="simulated=True"):
        light.lock()


def test_a_relay_that_was_not_started_says_so() -> None:
    with pytest.raises(RelayError, match="with Relay.. as relay"):
        Relay().phone("com.example.app")
    with pytest.raises(AttributeError, match="no 'phones'"):
        Relay().phones  # type: ignore[attr-defined]  # noqa: B018


def test_an_executable_that_is_none_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RelayError, match="cannot be run .No such file or directory.; PUSHRELAY"):
        Relay(str(tmp_path / "pushrelay")).__enter__()
    with pytest.raises(RelayError, match="false ended without a word"):
        Relay(shutil.which("false")).__enter__()
    monkeypatch.setattr(_process, "_PATIENCE_SECONDS", 0.1)
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o755)
    with pytest.raises(RelayError, match="was not ready"):
        Relay(str(silent)).__enter__()


@pytest.mark.skipif(_run._OWN.exists(), reason="the package has an executable of its own")
def test_the_command_of_a_package_without_one_does_not_start_itself(tmp_path: Path) -> None:
    command, like, other = (tmp_path / name / "pushrelay" for name in "abc")
    script = f"#!{sys.executable}\nfrom pushrelay._run import main\nmain()\n"
    for path, text in ((command, script), (like, script), (other, '#!/bin/sh\necho "$@"\n')):
        path.parent.mkdir()
        path.write_text(text)
        path.chmod(0o755)

    def said(*directories: Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": os.pathsep.join(map(str, directories))}
        environment.pop("PUSHRELAY", None)
        return subprocess.run(
            [command, "--version"], env=environment, capture_output=True, text=True, timeout=20
        )

    assert said(command.parent, like.parent, other.parent).stdout == "--version\n"
    alone = said(command.parent, like.parent)
    assert alone.returncode == 1 and "set PUSHRELAY" in alone.stderr


def test_a_phone_and_a_push_that_find_nobody_say_so(running: Running) -> None:
    nowhere = "127.0.0.1:1"
    with Relay.join(
        running.admin, running.token, state=running.state, provider=nowhere, device=nowhere
    ) as joined:
        with pytest.raises(RelayError, match="cannot connect to 127.0.0.1:1"):
            joined.phone("com.example.app")
        with pytest.raises(RelayError, match="cannot connect to 127.0.0.1:1"):
            joined.push(Phone("none", "com.example.app", "none", "ab" * 32), SILENT)


def test_a_relay_that_runs_is_joined_by_url_and_token(running: Running, tmp_path: Path) -> None:
    # All that is taken along from its state directory, as from a container.
    copy = tmp_path / "copy"
    shutil.copytree(running.state / "keys", copy / "keys")
    shutil.copy(running.state / "ca.pem", copy)
    listeners = {"provider": running.provider, "device": running.device}
    url = f"http://{running.admin}/#token={running.token}"
    before = sorted(running.state.glob("devices/*"))
    with Relay.join(url, state=copy, **listeners) as joined:
        phone = joined.phone("com.example.app", name="joined")
        push = joined.push(phone, SILENT)
        joined.wait("delivered", push)
        assert joined.endpoint.port == int(running.provider.rsplit(":")[1])
        with pytest.raises(RelayError, match="virtual") as error:
            joined.advance("1h")
        assert error.value.reason == "ClockNotVirtual"
    # It is left as it was.
    with running.join() as after:
        assert after.call("GET", "/v1/devices")["devices"] == []
    assert sorted(running.state.glob("devices/*")) == before
    with pytest.raises(RelayError, match="token"):
        Relay.join(running.admin, "wrong", state=copy).call("GET", "/v1/clock")
    with pytest.raises(RelayError, match="admin.token cannot be read"):
        Relay.join(running.admin, state=copy)
    with pytest.raises(RelayError, match="ca.pem cannot be read .*--push-relay-state"):
        Relay.join(url, state=tmp_path / "none").phone("com.example.app")


def test_the_eleventh_start_of_an_activity_is_dropped_and_says_why(push_relay: Relay) -> None:
    phone = push_relay.phone("com.example.shop", simulated=True, activities=["Order"])
    starts = push_relay.activity(phone, "Order")

    def start(number: int) -> Push:
        return push_relay.push(
            starts,
            {
                "aps": {
                    "timestamp": 1795219200 + number,
                    "event": "start",
                    "attributes-type": "Order",
                    "attributes": {"order": number},
                    "content-state": {"status": "ordered"},
                    "alert": {"title": f"Order {number}", "body": "We have it"},
                }
            },
        )

    for number in range(1, 11):
        push = start(number)
        push_relay.wait("outcome", push)
        assert "outcome (shown)" in push_relay.log(push)
        phone.dismiss_activity(number)
    eleventh = start(11)
    push_relay.wait("outcome", eleventh)
    why = r"not shown: push-to-start budget of com\.example\.shop is used up until [\d :-]+ "
    assert re.search(why + r"\(policy live-activities: ours\)", push_relay.log(eleventh))
    assert phone.state()["activities"] == []
    push_relay.advance("1h")
    push_relay.wait("outcome", start(12))
    shown = phone.state()["activities"]
    assert [activity["shows"] for activity in shown] == ['{"status":"ordered"}']

    # The app is run first, and then tells its server the token.
    with pytest.raises(RelayError, match="no token activity.11"):
        push_relay.activity(phone, 11)
    push_relay.advance("10s")
    update = {"timestamp": 1795230000, "event": "update", "content-state": {"status": "sent"}}
    order = push_relay.activity(phone, 11)
    push_relay.wait("outcome", push_relay.push(order, {"aps": update}))
    assert phone.state()["activities"][0]["shows"] == '{"status":"sent"}'
    phone.dismiss_activity(11)
    with pytest.raises(Refused) as refused:
        # The phone is telling the relay.
        for _ in range(200):
            push_relay.push(order, {"aps": update})
    assert refused.value.reason == "Unregistered"
