"""What goes wrong, each with the sentence of whoever said so."""

from __future__ import annotations


class RelayError(Exception):
    """The relay, or its executable, said no; the message is its sentence.

    `reason` is the admin API's word for it, such as UnknownCheckpoint; empty if it was not that
    which answered.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class NotMet(AssertionError):
    """A wait was not met; the message says why, and until when a push is held."""


class Refused(AssertionError):
    """The provider API did not answer 200; the message is the relay's.

    `reason` is Apple's, such as BadDeviceToken.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason
