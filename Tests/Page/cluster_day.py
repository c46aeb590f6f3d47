"""Makes docs/cluster-*.png: a day of a cluster on the page, by its own clock. One of three relays dies, comes back,
and is drained in the evening, while providers push and phones are used.

usage: PUSHRELAY=.build/release/pushrelay NATS_SERVER=nats-server PYTHON-WITH-PLAYWRIGHT Tests/Page/cluster_day.py
(scripts/test-page installs Chromium and Playwright, scripts/demo-cluster nats-server)
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent.parent
BINARY = os.environ.get("PUSHRELAY", "pushrelay")
ENGINE = os.environ.get("NATS_SERVER", "nats-server")
APPS = ["com.example.news", "com.example.mail"]
PHONES = ["anna", "ben", "clara", "david", "emma", "felix"]
LUNCH = {"aps": {"alert": {"title": "Anna", "body": "Lunch at one?"}, "badge": 1, "sound": "default"}}
SILENT = {"aps": {"content-available": 1}, "folder": "inbox"}


class Cluster:
    """Three relays and one nats-server, on free ports, with a clock that moves when told."""

    def __init__(self, folder):
        self.folder, self.programs, self.addresses = folder, {}, {}
        self.run("nats", ENGINE, "--jetstream", "--addr", "127.0.0.1", "--port", "-1", "--store_dir", f"{folder}/nats",
                 "--ports_file_dir", folder)
        ports = self.until("the engine listens", lambda: next(Path(folder).glob("nats-server*.ports"), None))
        self.engine = json.loads(ports.read_text())["nats"][0]
        subprocess.run([BINARY, "certs", "--state", f"{folder}/a"], check=True, capture_output=True)
        for name in "bc":
            shutil.copytree(f"{folder}/a", f"{folder}/{name}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in reversed(self.programs.values()):
            program.kill()
            program.wait()

    def run(self, name, *command):
        with open(f"{self.folder}/{name}.log", "a") as log:
            self.programs[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def until(self, what, said):
        deadline = time.monotonic() + 60
        while not (answer := said()):
            assert time.monotonic() < deadline, f"{what}: not for a minute; {self.folder} has the logs"
            time.sleep(.1)
        return answer

    def start(self, name):
        """A relay, until it is ready."""
        state = f"{self.folder}/{name}"
        Path(state, "ready.json").unlink(missing_ok=True)
        places = [part for listener in ("provider", "device", "admin") for part in (f"--{listener}", "127.0.0.1:0")]
        self.run(name, BINARY, "serve", "--state", state, "--store", "jetstream", "--nats", self.engine, "--node", name,
                 "--clock", "virtual", *places)
        self.until(f"relay {name} is ready", Path(state, "ready.json").exists)
        self.addresses[name] = json.loads(Path(state, "ready.json").read_text())

    def kill(self, name):
        self.programs[name].kill()
        self.programs[name].wait()

    def call(self, name, method, path, body=None):
        token = Path(self.folder, name, "admin.token").read_text().strip()
        request = urllib.request.Request(
            self.addresses[name]["admin"] + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"bearer {token}", "content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def stripes(self, *counts):
        """Waits until a, b and c have so many."""
        def spread():
            nodes = {node["name"]: len(node["stripes"]) for node in self.call("a", "GET", "/v1/cluster")["nodes"]}
            return [nodes.get(name, 0) for name in "abc"] == list(counts)
        self.until(f"stripes are {counts}", spread)


def push(cluster, hour):
    """What a provider sends in an hour: silent pushes to all, an alert to some; to whichever relay is there."""
    for number, phone in enumerate(PHONES):
        kind = ("alert", "10", LUNCH) if (number + hour) % 5 == 0 else ("background", "5", SILENT)
        answer = cluster.call("a", "POST", "/v1/push", {
            "to": phone, "topic": APPS[number % 2], "payload": kind[2],
            "headers": {"apns-push-type": kind[0], "apns-priority": kind[1]}})
        assert answer["status"] == 200, answer


def hours(cluster, first, last):
    for hour in range(first, last):
        push(cluster, hour)
        cluster.call("a", "POST", "/v1/clock/advance", {"by": "1h"})


def main():
    with tempfile.TemporaryDirectory() as folder, Cluster(folder) as cluster, sync_playwright() as player:
        for name in "abc":
            cluster.start(name)
        cluster.stripes(3, 3, 2)
        cluster.run("phones", BINARY, "phones", "start", "--count", str(len(PHONES)), "--apps", "news,mail", "--behave", "usual",
                    "--state", f"{folder}/a", "--seed", "7")
        cluster.until("the phones listen", lambda: sum(
            device["connected"] and len(device["apps"]) == 2 for device in cluster.call("a", "GET", "/v1/devices")["devices"]) == len(PHONES))
        browser = player.chromium.launch(
            executable_path=os.environ.get("RELAY_TEST_CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 760}, color_scheme="light")
        token = Path(folder, "a", "admin.token").read_text().strip()
        page.goto(f"{cluster.addresses['a']['admin']}/#token={token}&tool=nodes")

        def picture(name, words):
            page.get_by_text(words).first.wait_for()
            page.wait_for_timeout(2500)
            page.screenshot(path=ROOT / f"docs/cluster-{name}.png")

        hours(cluster, 0, 5)
        cluster.kill("b")
        cluster.stripes(4, 0, 4)
        hours(cluster, 5, 9)
        picture("gone", "b is gone")
        cluster.start("b")
        cluster.stripes(3, 2, 3)
        hours(cluster, 9, 12)
        picture("back", "3 nodes")
        cluster.call("a", "POST", "/v1/cluster/nodes/c/drain", {})
        cluster.stripes(4, 4, 0)
        hours(cluster, 12, 16)
        picture("drained", "draining")
        browser.close()


if __name__ == "__main__":
    main()
