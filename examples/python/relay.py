"""A push-relay of a test's own: started on free ports, with a clock that moves when told.

The standard library is all it needs. PUSHRELAY names the binary (default: pushrelay on the PATH).
"""

import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.request

BINARY = os.environ.get("PUSHRELAY", "pushrelay")


class NotMet(AssertionError):
    """A wait was not met; the message says why, and until when a push is held."""


class Relay:
    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.state = self.directory.name
        self.phones = []
        self.process = subprocess.Popen(
            [BINARY, "serve", "--state", self.state, "--clock", "virtual", "--store", "memory"]
            + [part for name in ("provider", "device", "admin") for part in (f"--{name}", "127.0.0.1:0")]
            + ["--log-level", "error"],
            stdout=subprocess.PIPE, text=True)
        words = self.process.stdout.readline().split()
        self.addresses = dict(word.split("=") for word in words[1:])
        with open(f"{self.state}/admin.token") as file:
            self.token = file.read().strip()
        return self

    def __exit__(self, *_):
        for process in [*self.phones, self.process]:
            process.terminate()
            process.wait(20)
            process.stdout.close()
        self.directory.cleanup()

    def call(self, method, path, body=None):
        """Asks the admin API; docs/ADMIN.md lists its routes."""
        request = urllib.request.Request(
            f"http://{self.addresses['admin']}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"bearer {self.token}", "content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def phone(self, topic, name="phone"):
        """A phone that listens and acknowledges; answers its id."""
        process = subprocess.Popen(
            [BINARY, "device", name, "--light", "--json", "--topic", topic, "--state", self.state,
             "--device", self.addresses["device"]],
            stdout=subprocess.PIPE, text=True)
        self.phones.append(process)
        for line in process.stdout:
            if line.startswith("{") and json.loads(line).get("type") == "hello":
                return json.loads(line)["device"]
        raise RuntimeError("the phone did not connect")

    def push(self, phone, payload, **headers):
        """Pushes as a provider would; answers the push's id."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.call("POST", "/v1/push", {"to": phone, "headers": headers, "payload": payload})
        assert answer["status"] == 200, answer
        return answer["uniqueId"]

    def wait(self, what, push, **options):
        """Waits until it has happened; NotMet says why not."""
        try:
            return self.call("POST", "/v1/wait", {"expect": {"what": what, "push": push}, **options})
        except urllib.error.HTTPError as refusal:
            raise NotMet(json.load(refusal)["message"]) from None
