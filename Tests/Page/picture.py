"""Makes docs/page.png, the picture of the page in the README, from a relay that is started for it.

usage: PUSHRELAY=.build/release/pushrelay PYTHON-WITH-PLAYWRIGHT Tests/Page/picture.py
(scripts/test-page installs Chromium and Playwright)
"""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "examples/python"))
from relay import Relay  # noqa: E402

SILENT = {"aps": {"content-available": 1}, "folder": "inbox"}
LUNCH = {"aps": {"alert": {"title": "Anna", "body": "Lunch at one?"}, "badge": 1, "sound": "default"}}

with Relay() as relay, sync_playwright() as player:
    phone = relay.phone("com.example.news")
    for minutes in (1, 2, 1, 2, 3):
        last = relay.push(phone, SILENT, apns_push_type="background", apns_priority="5")
        relay.call("POST", "/v1/clock/advance", {"by": f"{minutes}m"})
    relay.push(phone, LUNCH, apns_push_type="alert")
    relay.call("POST", "/v1/clock/advance", {"by": "2m"})
    relay.call("POST", "/v1/push", {"to": "12" * 32, "topic": "com.example.news", "headers": {"apns-push-type": "alert"}, "payload": LUNCH})
    relay.push(phone, SILENT, apns_push_type="background", apns_priority="5")
    relay.call("POST", "/v1/clock/advance", {"by": "1m"})
    browser = player.chromium.launch(
        executable_path=os.environ.get("RELAY_TEST_CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1280, "height": 680}, color_scheme="light")
    page.goto(f"http://{relay.addresses['admin']}/#token={relay.token}&push={last}")
    page.wait_for_timeout(1500)  # the arc is drawn with the next frame
    page.evaluate("document.querySelectorAll('*').forEach((element) => (element.scrollTop = 0))")
    page.screenshot(path=ROOT / "docs/page.png")
    browser.close()
