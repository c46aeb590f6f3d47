"""The admin API over HTTP/1.1 (docs/ADMIN.md), by the standard library."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

from .errors import RelayError

# Longer than the longest wait that the relay takes: whoever waits is answered by it.
_PATIENCE_SECONDS = 660


class Admin:
    """One relay's, by address (HOST:PORT) and token."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self._token = token

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON; RelayError with the answer's sentence if it is none of success."""
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "authorization": f"bearer {self._token}",
                "content-type": "application/json",
            },
        )
        try:
            with _opener.open(request, timeout=_PATIENCE_SECONDS) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise _error(refusal.code, refusal.read()) from None
        except urllib.error.URLError as problem:
            raise self._silent(problem.reason) from None
        except (OSError, http.client.HTTPException, ValueError) as problem:
            raise self._silent(problem) from None

    def _silent(self, problem: object) -> RelayError:
        return RelayError(f"the admin API at {self.address} did not answer: {problem}")


# A proxy of the environment is for the world outside, not for a relay beside the test.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _error(status: int, body: bytes) -> RelayError:
    try:
        told = json.loads(body)
        return RelayError(str(told["message"]), str(told["reason"]))
    except (ValueError, KeyError, TypeError):
        text = body.decode(errors="replace").strip()
        return RelayError(f"the admin API answered {status}: {text}")
