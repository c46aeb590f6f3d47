"""Processes of the executable: started, heard, ended."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence

from .errors import RelayError

# Until a process is ready: a host that swallows everything would be waited for for ever.
_PATIENCE_SECONDS = 60


class Process:
    """One that prints a line when it is ready, and goes on until it is stopped."""

    def __init__(self, command: Sequence[str], is_ready: Callable[[str], bool]) -> None:
        self._name = command[0]
        # A file and not a pipe: nobody reads it while the process runs, and a pipe would be full.
        self._complaints = tempfile.TemporaryFile("w+")
        try:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=self._complaints, text=True
            )
        except OSError as problem:
            self._complaints.close()
            raise RelayError(
                f"{command[0]} cannot be run ({problem.strerror}); "
                "PUSHRELAY names the executable of push-relay"
            ) from None
        patience = threading.Timer(_PATIENCE_SECONDS, self._process.kill)
        patience.start()
        try:
            self.ready = self._first(is_ready)
        except KeyboardInterrupt:
            self.stop()
            raise
        finally:
            patience.cancel()
        # Behind a full pipe a phone does not acknowledge any more.
        threading.Thread(target=self._drain, daemon=True).start()

    def _first(self, is_ready: Callable[[str], bool]) -> str:
        assert self._process.stdout
        for line in self._process.stdout:
            if is_ready(line):
                return line
        self._process.wait()
        self._process.stdout.close()
        said = self._said()
        self._complaints.close()
        raise RelayError(said or f"{self._name} ended without a word, or was not ready in a minute")

    def stop(self) -> None:
        """Ends it; what it has complained about goes to standard error."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # A simulated phone tells its tokens there, which is no complaint.
        said = [line for line in self._said().splitlines() if ": token of " not in line]
        if said:
            print("\n".join(said), file=sys.stderr)
        self._complaints.close()

    @property
    def end(self) -> str:
        """How it ended; empty while it runs."""
        code = self._process.poll()
        if code is None:
            return ""
        return f"by signal {-code}" if code < 0 else f"with exit status {code}"

    def _said(self) -> str:
        self._complaints.seek(0)
        return self._complaints.read().strip().removeprefix("Error: ")

    def _drain(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for _ in lines:
                pass


def answer(command: Sequence[str], given: str) -> subprocess.CompletedProcess[str]:
    """Runs it to its end, with that as its standard input."""
    try:
        return subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=_PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RelayError(f"{command[0]} {command[1]} has not ended within a minute") from None
