"""Why the fourth silent push waits, and that it arrives: python3 -m unittest -v, or pytest."""

import unittest

from relay import NotMet, Relay


class SilentPushes(unittest.TestCase):
    def test_the_fourth_is_held_and_arrives_within_the_hour(self):
        with Relay() as relay:
            phone = relay.phone("com.example.app")
            pushes = [
                relay.push(phone, {"aps": {"content-available": 1}},
                           apns_push_type="background", apns_priority="5")
                for _ in range(4)
            ]
            relay.wait("delivered", pushes[2])
            with self.assertRaisesRegex(NotMet, "app budget: 0 of 3 left"):
                relay.wait("delivered", pushes[3], timeout="0s")
            self.assertTrue(relay.wait("delivered", pushes[3], within="1h", advance=True)["met"])


if __name__ == "__main__":
    unittest.main()
