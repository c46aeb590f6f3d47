"""What the plugin does to a test run, seen from outside: runs of pytest within a test."""

import os
import signal
from pathlib import Path

import pytest
from conftest import Running

SILENT = {"aps": {"content-available": 1}}


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "pushrelay.pytest_plugin", *options)


def test_a_failure_shows_the_life_of_this_tests_pushes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        SILENT = {"aps": {"content-available": 1}}

        def test_before(push_relay):
            push_relay.push(push_relay.phone("com.example.before"), SILENT)

        def test_it(push_relay, phone):
            pushes = [push_relay.push(phone, SILENT) for _ in range(4)]
            push_relay.wait("delivered", pushes[2])
            push_relay.wait("delivered", pushes[3], timeout="0s")
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            # The assertion's message is the "why".
            "E*NotMet: *app budget: 0 of 3 left, *",
            "*- pushes of this test -*",
            "* silent com.example.app: Delivered *",
            "* received (silent)",
            "* delivered",
            "* silent com.example.app: *app budget: 0 of 3 left, *",
        ]
    )
    result.stdout.no_fnmatch_line("*com.example.before*")


def test_what_a_client_library_sent_is_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import subprocess
        from pushrelay import _run

        def test_it(apns_endpoint, push_relay, phone):
            subprocess.run(
                [_run.executable(), "send", "-", "--to", phone.token, "--topic", phone.topic,
                 "--provider", f"localhost:{apns_endpoint.port}",
                 "--state", str(apns_endpoint.ca.parent)],
                input='{"aps":{"alert":"Hello"}}', text=True, check=True)
            push_relay.wait("delivered", phone, count=2, timeout="0s")
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*- pushes of this test -*", "* visible com.example.app: *"])


def test_however_the_relay_came_its_pushes_are_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_it(request):
            relay = request.getfixturevalue("push_relay")
            relay.push(relay.phone("com.example.late"), {"aps": {"alert": "Hello"}})
            assert False
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*- pushes of this test -*", "* visible com.example.late: *"])


def test_what_was_refused_is_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from pushrelay import Refused

        ALERT = {"aps": {"alert": "Hello"}}

        def test_before(push_relay, phone):
            with pytest.raises(Refused):
                push_relay.push(phone, ALERT, collapse_id="a" * 65)

        def test_it(push_relay, phone):
            with pytest.raises(Refused):
                push_relay.push(phone, ALERT, priority=7)
            push_relay.wait("received", phone, timeout="0s")
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*NotMet: nothing of the kind has happened; *, was 400 BadPriority: *",
            "*- pushes of this test -*",
            "* refused: 400 BadPriority: *",
        ]
    )
    result.stdout.no_fnmatch_line("*BadCollapseId*")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_cancelled_session_ends_its_relay(pytester: pytest.Pytester, name: str) -> None:
    if signal.getsignal(signal.Signals[name]) is signal.SIG_IGN:
        pytest.skip(f"{name} is ignored here, as behind nohup")
    pytester.makepyfile(
        f"""
        import os, signal, time

        def test_it(push_relay, phone):
            print("relay", push_relay._process._process.pid, flush=True)
            os.kill(os.getpid(), signal.{name})
            time.sleep(60)
        """
    )
    result = run(pytester, "-s")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    line = next(line for line in result.outlines if "relay " in line)
    pid = int(line.rpartition("relay ")[2])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_relay_that_is_gone_is_said_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_it(push_relay):
            push_relay._process.stop()
            push_relay.advance("1h")
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*RelayError: the relay has ended *", "*- pushes of this test -*"]
    )


def test_each_worker_of_xdist_has_a_relay(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os
        import pathlib
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(push_relay, phone, number):
            pushes = [push_relay.push(phone, {"aps": {"content-available": 1}}) for _ in range(3)]
            push_relay.wait("delivered", pushes[2])
            worker = pathlib.Path(os.environ["SEEN"], os.environ["PYTEST_XDIST_WORKER"])
            with worker.open("a") as file:
                print(push_relay.admin, file=file)
        """
    )
    seen = pytester.mkdir("seen")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SEEN", str(seen))
        result = run(pytester, "-n", "2")
    result.assert_outcomes(passed=4)
    relays = {worker.name: set(worker.read_text().split()) for worker in seen.iterdir()}
    assert sorted(relays) == ["gw0", "gw1"]
    assert len(relays["gw0"]) == len(relays["gw1"]) == 1
    assert relays["gw0"] != relays["gw1"]


JOINED = """
    import pytest
    SILENT = {"aps": {"content-available": 1}}

    def test_it_is_that_one(push_relay):
        assert push_relay.is_joined and push_relay.admin == "ADMIN"

    @pytest.mark.parametrize("run", [1, 2])
    def test_each_has_a_phone_of_its_own(push_relay, phone, run):
        pushes = [push_relay.push(phone, SILENT) for _ in range(4)]
        push_relay.wait("delivered", pushes[2])
        push_relay.never("delivered", pushes[3])

    @pytest.mark.push_relay_policy("strict")
    def test_the_policy_is_that_of_its_phones(push_relay, phone):
        assert push_relay.call("GET", "/v1/policy")["policy"] == "documented"
        pushes = [push_relay.push(phone, SILENT) for _ in range(2)]
        push_relay.wait("delivered", pushes[0])
        push_relay.never("delivered", pushes[1])

    def test_a_fault_that_nobody_ends(push_relay):
        push_relay.fault("left", "provider", {"answer": "InternalServerError"})

    def test_is_ended(push_relay, phone):
        assert push_relay.call("GET", "/v1/faults")["faults"] == []
        assert False, "for the report"
"""


def test_a_relay_that_was_joined_keeps_what_others_have(
    pytester: pytest.Pytester, running: Running
) -> None:
    with running.join() as other:
        phone = other.phone("com.example.app", name="phone-1")
        held = [other.push(phone, SILENT) for _ in range(4)][3]
        pytester.makepyfile(JOINED.replace("ADMIN", running.admin))
        result = run(
            pytester,
            f"--push-relay=http://{running.admin}/#token={running.token}",
            f"--push-relay-state={running.state}",
        )
        result.assert_outcomes(passed=5, failed=1)
        result.stdout.no_fnmatch_line("*- pushes of this test -*")
        devices = other.call("GET", "/v1/devices")["devices"]
        assert [device["device"] for device in devices] == [phone.device]
        assert "app budget: 0 of" in other.log(held).splitlines()[0]


def test_an_address_where_no_relay_is(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile("def test_it(push_relay): push_relay.advance('1h')")
    result = run(pytester, "--push-relay=127.0.0.1:1", f"--push-relay-state={tmp_path}")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*RelayError: {tmp_path}/admin.token cannot be read *"])
    result = run(pytester, "--push-relay=http://127.0.0.1:1/#token=x")
    assert result.ret == 4
    said = ["*--push-relay=http://127.0.0.1:1/: the admin API at * did not *"]
    result.stdout.fnmatch_lines(said)
    pytest.importorskip("xdist")
    result = run(pytester, "-n", "2", "--push-relay=http://127.0.0.1:1/#token=x")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(said)


def test_the_fixture_takes_every_test_back(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("run", [1, 2])
        def test_it(push_relay, run):
            assert push_relay.call("GET", "/v1/devices")["devices"] == []
            assert push_relay.call("GET", "/v1/notifications")["notifications"] == []
            assert push_relay.call("GET", "/v1/faults")["faults"] == []
            assert push_relay.call("GET", "/v1/policy")["policy"] == "documented"
            saved = push_relay.call("GET", "/v1/checkpoints")["checkpoints"]
            assert [checkpoint["name"] for checkpoint in saved] == ["beginning-of-every-test"]
            push_relay.checkpoint(f"saved-{run}")
            now = push_relay.call("GET", "/v1/clock")["now"]
            if run == 2:
                assert now == test_it.now
            test_it.now = now
            push_relay.push(push_relay.phone("com.example.app"), {"aps": {"alert": "Hello"}})
            push_relay.fault("left", "provider", {"answer": "InternalServerError"})
            push_relay.policy("unlimited")
            push_relay.advance("1h")
        """
    )
    run(pytester).assert_outcomes(passed=2)


def test_what_is_left_by_the_admin_apis_own_words_is_taken_back(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("run", [1, 2])
        def test_it(push_relay, run):
            call = push_relay.call
            assert call("GET", "/v1/faults")["faults"] == []
            assert call("GET", "/v1/clock")["rate"] == 0
            assert len(call("GET", "/v1/checkpoints")["checkpoints"]) == 1
            assert call("GET", "/v1/devices")["devices"] == []
            call("PUT", "/v1/faults/left", {"at": "provider", "do": {"reset": True}})
            call("PATCH", "/v1/clock", {"rate": 3600})
            call("PUT", "/v1/checkpoints/left")
            # What is gone already is no mistake.
            push_relay.fault("busy", "provider", {"reset": True})
            push_relay.checkpoint("mine")
            call("DELETE", "/v1/faults/busy")
            call("DELETE", "/v1/checkpoints/mine")
            push_relay.phone("com.example.app")

        @pytest.mark.push_relay_policy
        def test_a_mark_without_its_argument(push_relay): pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(['*push_relay_policy wants one argument, such as "strict"'])


def test_without_the_executable_it_says_what_is_missing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUSHRELAY", "nowhere/pushrelay")
    pytester.makepyfile("def test_it(push_relay): pass")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*nowhere/pushrelay cannot be run (No such file or directory)*"])
