"""push-relay in tests: a relay of one's own, phones, pushes, and why one was held."""

from .relay import Endpoint, NotMet, Phone, Push, Refused, Relay, RelayError

__all__ = ["Endpoint", "NotMet", "Phone", "Push", "Refused", "Relay", "RelayError"]
