"""push-relay in tests: a relay of one's own, phones, pushes, and why one was held."""

from .errors import NotMet, Refused, RelayError
from .relay import Fault, Relay
from .values import Endpoint, Phone, Push

__all__ = ["Endpoint", "Fault", "NotMet", "Phone", "Push", "Refused", "Relay", "RelayError"]
