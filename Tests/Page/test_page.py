"""Drives the admin API's page in headless Chromium: scripts/test-page installs what that needs.

Without RELAY_TEST_PAGE_URL it starts mock_server.py itself. With it (a URL with #token=…) it goes
against that server, and what needs the mock's own routes is skipped.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
import mock_server  # noqa: E402

BROWSER = os.environ.get("RELAY_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
GIVEN = os.environ.get("RELAY_TEST_PAGE_URL")
MOST_BYTES = 116_700

WATCH = """
window.watched = { violations: [], streams: 0 };
document.addEventListener("securitypolicyviolation", (event) => watched.violations.push(event.violatedDirective + " " + event.blockedURI));
const realFetch = window.fetch;
window.fetch = (...call) => { if (String(call[0]).includes("/v1/events")) watched.streams += 1; return realFetch(...call); };
"""

# Without axe: what it would say first.
CONTRAST = """() => {
  const channel = (value) => (value /= 255) <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
  const parse = (text) => { const context = new OffscreenCanvas(1, 1).getContext("2d"); context.fillStyle = text; context.fillRect(0, 0, 1, 1); return context.getImageData(0, 0, 1, 1).data; };
  const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const behind = (node) => { for (; node; node = node.parentElement) { const c = parse(getComputedStyle(node).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
  const bad = [];
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility() || node.closest("svg, :disabled, .unseen") || ![...node.childNodes].some((kid) => kid.nodeType === 3 && kid.data.trim())) continue;
    const [one, two] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((a, b) => b - a);
    if ((one + .05) / (two + .05) < 4.5) bad.push(`${node.tagName}.${node.className} "${node.textContent.slice(0, 30)}" ${((one + .05) / (two + .05)).toFixed(2)}`);
  }
  return bad;
}"""
UNNAMED = """() => [...document.querySelectorAll("button, a, input, select, textarea, [role=img]")].filter((node) => node.checkVisibility()
  && !(node.textContent.trim() || node.getAttribute("aria-label") || node.title || node.labels?.length)).map((node) => node.outerHTML.slice(0, 80))"""


class PageTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = None if GIVEN else mock_server.start()
        cls.url = GIVEN or f"http://127.0.0.1:{cls.server.server_address[1]}/#token=dev"
        cls.origin = "{0.scheme}://{0.netloc}".format(urlsplit(cls.url))
        cls.token = parse_qs(urlsplit(cls.url).fragment)["token"][0]
        cls.driver = sync_playwright().start()
        cls.browser = cls.driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.driver.stop()
        if cls.server:
            mock_server.stop(cls.server)

    def setUp(self):
        self.problems = []

    def open(self, url=None, scheme="light", width=1440, height=900, phones=True, **options):
        context = self.browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}, **options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.addCleanup(context.close)
        context.add_init_script(WATCH)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: message.type == "error" and self.problems.append(f"{message.text} {message.location['url']}"))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.goto(url or self.url)
        page.wait_for_selector("#pill.live")
        if phones:
            page.wait_for_selector("#phone-list a.phone", state="attached")
        return page

    def call(self, method, path, body=None, server=None):
        origin = f"http://127.0.0.1:{server.server_address[1]}" if server else self.origin
        request = Request(origin + path, method=method, data=json.dumps(body).encode() if body is not None else None,
                          headers={"authorization": f"bearer {self.token}", "content-type": "application/json"})
        text = urlopen(request, timeout=20).read()
        return json.loads(text) if text else None

    def busy_phone(self):
        """A phone that has a push that rode along."""
        for life in self.call("GET", "/v1/notifications?limit=500")["notifications"]:
            if any(step.get("carriedBy") for step in life["steps"]):
                return life
        self.skipTest("no push has ridden along on this relay")

    def at_phone(self, **options):
        life = self.busy_phone()
        page = self.open(f"{self.origin}/#token={self.token}&phone={life['device']}", **options)
        page.wait_for_selector("#push h2", state="attached")
        page.wait_for_function("name => document.querySelector('#push').textContent.includes(name)", arg=life["device"][:8])
        return page, life

    # It loads, small and clean.

    def test_loads_without_errors_or_violations(self):
        page = self.open()
        expect(page.locator("#lanes svg")).to_be_visible()
        self.assertGreater(page.locator("#table tbody tr").count(), 3)
        self.assertNotIn("token", page.url)
        self.assertIn(page.locator("#light b").inner_text()[0], "✓✗")
        self.assertRegex(page.locator("#light").inner_text(), r"received = [\d,]+ ended")
        self.assertEqual(page.evaluate("watched.violations"), [])
        self.assertEqual(page.evaluate("watched.streams"), 1)
        self.assertEqual(self.problems, [])

    def test_is_small_and_asks_nobody_else(self):
        page = self.open()
        asked = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)") + [page.url]
        self.assertEqual([url for url in asked if not url.startswith((self.origin, "data:"))], [])
        files = {url.split("#")[0].split("?")[0] for url in asked if "/v1/" not in url and not url.startswith("data:")}
        sizes = {url: len(urlopen(url, timeout=10).read()) for url in files}
        self.assertGreaterEqual(len(sizes), 4)
        self.assertLess(sum(sizes.values()), MOST_BYTES, sizes)

    def test_nodes_of_a_cluster(self):
        self.needs_mock()
        expect(self.open().locator("#tool-nodes")).to_have_count(0)
        server = self.a_mock(phones=10, clock="system", nodes=True)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&tool=nodes")
        expect(page.locator("#nodes")).to_have_text("d is gone ✗")
        rows = page.locator("#drawer tbody tr")
        expect(rows).to_have_count(4)
        expect(rows.nth(0)).to_contain_text("active, this one")
        expect(rows.nth(1)).to_contain_text("1,200 records, 0.7 s")
        expect(rows.nth(2).get_by_role("img")).to_have_attribute("aria-label", "stripes 2, 5, 7")
        expect(rows.nth(3)).to_contain_text("gone")
        expect(page.get_by_role("button", name="Drain a")).to_be_enabled()
        expect(page.locator("#tool-nodes")).to_have_attribute("aria-pressed", "true")
        drain = page.get_by_role("button", name="Drain c")
        page.once("dialog", lambda dialog: dialog.dismiss())
        drain.click()
        self.assertFalse(server.relay.drained)
        page.once("dialog", lambda dialog: dialog.accept())
        drain.click()
        expect(page.locator("#nodes")).to_have_text("d is gone; no node has stripes 2, 5, 7 ✗")
        page.get_by_role("button", name="Undo drain of c").click()
        expect(page.locator("#nodes")).to_have_text("d is gone ✗")
        expect(drain).to_be_enabled()
        page.get_by_role("button", name="Forget d").click()
        expect(page.locator("#nodes")).to_have_text("3 nodes ✓")
        expect(rows).to_have_count(3)
        page.click("#nodes")
        expect(page.locator("#drawer")).to_be_hidden()
        page.click("#tool-nodes")
        expect(rows).to_have_count(3)
        self.assertEqual(self.problems, [])
        phone = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&tool=nodes", width=390, height=800)
        expect(phone.locator("#drawer tbody tr")).to_have_count(3)
        wide = phone.evaluate("document.documentElement.scrollWidth")
        self.assertLessEqual(wide, 390)

    def test_script_in_data_stays_text(self):
        self.needs_mock()
        server = self.a_mock(phones=10)
        device = self.call("GET", "/v1/devices?limit=1", server=server)["devices"][0]
        with server.relay.lock:
            relay_device = server.relay.devices[device["device"]]
            app = next(iter(relay_device.apps.values()))
            app.topic = "com.example.<img src=x onerror=alert(1)>"
            server.relay.push(relay_device, app, "visible")
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        expect(page.locator("#table tbody tr", has_text="<img src=x").first).to_be_visible()
        self.assertEqual(page.locator("main img").count(), 0)

    # Lanes, table, one push.

    def test_composed_push_appears_in_lane_and_table(self):
        page, life = self.at_phone()
        page.keyboard.press("c")
        expect(page.locator("#c-to")).to_have_value(life["device"])
        page.get_by_role("button", name="Alert", exact=True).click()
        expect(page.locator("#c-lint")).to_contain_text("visible")
        page.get_by_role("button", name="Send", exact=True).click()
        link = page.locator("#c-answer a")
        expect(link).to_be_visible()
        push = parse_qs(link.get_attribute("href")[1:])["push"][0]
        expect(page.locator(f"#table tr[data-push='{push}']").first).to_be_visible()
        expect(page.locator(f"#lanes .mark[data-push='{push}'], #lanes .mark[data-zoom]").first).to_be_attached()
        link.click()
        expect(page.locator("#push h2")).to_contain_text("Visible push")
        expect(page.locator("#push ol li").first).to_contain_text("received")
        self.assertEqual(self.problems, [])

    def test_lint_speaks_while_typing(self):
        page, _ = self.at_phone()
        page.keyboard.press("c")
        page.locator("#c-headers").press("Control+a")
        page.keyboard.type("apns-push-type: background\napns-priority: 10")
        expect(page.locator("#c-lint .warn")).to_contain_text("priority 5")
        page.fill("#c-payload", '{"aps":')
        expect(page.locator("#c-lint .bad")).to_contain_text("JSON")

    def test_composed_headers_go_as_typed(self):
        self.needs_mock()
        page, life = self.at_phone()
        page.keyboard.press("c")
        send, answer = page.get_by_role("button", name="Send", exact=True), page.locator("#c-answer")
        page.fill("#c-headers", "apns-push-type: alert\napns-collapse-id: score:12:30\n")
        send.click()
        expect(answer).to_contain_text("200")
        sent = self.call("GET", "/v1/requests?limit=1")["requests"][0]
        self.assertEqual(sent["collapseId"], "score:12:30")
        for typed, said in (("apns-push-type alert", "not a header"), ("apns-priority: 5\napns-priority: 10", "apns-priority is there twice")):
            page.fill("#c-headers", typed)
            expect(page.locator("#c-lint")).to_contain_text(said)
            send.click()
            expect(answer).to_contain_text(said)
        self.assertEqual(self.call("GET", "/v1/requests?limit=1")["requests"][0]["uniqueId"], sent["uniqueId"])

    def test_draft_stays_and_payload_turns_nothing(self):
        self.needs_mock()
        page, life = self.at_phone()
        page.keyboard.press("c")
        turned = '{"aps":{"alert":"pay \u202e001\u202c"}}'
        page.fill("#c-payload", turned)
        for tool in ("Faults", "Compose"):
            page.locator("footer").get_by_role("button", name=tool).click()
            expect(page.locator("#drawer h2")).to_have_text(tool)
        expect(page.locator("#c-payload")).to_have_value(turned)
        expect(page.locator("#c-to")).to_have_value(life["device"])
        page.get_by_role("button", name="Send", exact=True).click()
        page.locator("#c-answer a").click()
        expect(page.locator("#payload")).to_contain_text("pay \\u202e001\\u202c")
        self.assertEqual(self.problems, [])

    def test_arc_joins_a_piggybacked_push_and_its_carrier(self):
        page, life = self.at_phone()
        page.select_option("#span", "3600000")
        carrier = next(step["carriedBy"] for step in life["steps"] if step.get("carriedBy"))
        arc = page.locator(f"#lanes .arc-group[data-from='{life['uniqueId']}'][data-to='{carrier}'] path.arc")
        expect(arc).to_have_count(1)
        page.wait_for_function("() => document.querySelector('#lanes path.arc').getBoundingClientRect().height > 15")
        expect(page.locator("#lanes .arc-text").first).to_contain_text("rode along with #")
        row = page.locator(f"#table tr[data-push='{life['uniqueId']}']").first
        expect(row).to_contain_text("rode along")

    def test_push_shows_sentence_steps_and_copies(self):
        page, life = self.at_phone()
        page.click(f"#table tr[data-push='{life['uniqueId']}'] >> nth=0")
        self.assertIn(f"push={life['uniqueId']}", page.url)
        expect(page.locator("#push .why")).not_to_have_text("")
        expect(page.locator("#push ol li")).to_have_count(len(life["steps"]))
        wanted = {"Link": f"#push={life['uniqueId']}", "curl": "curl", "Scenario": '"expect"'}
        for name, part in wanted.items():
            page.get_by_role("button", name=name, exact=True).click()
            expect(page.locator("#copied")).to_contain_text(part)
            page.wait_for_function("async (part) => (await navigator.clipboard.readText()).includes(part)", arg=part)
            self.assertNotIn(f"bearer {self.token}", page.locator("#copied").inner_text())

    def test_what_is_so_now_is_not_shown_of_another_moment(self):
        page, life = self.at_phone()
        now = ["#phone-list .gauge", "#phone-list .slots", "#phone-list small", "#about", "#light", "#push .apps .gauge"]
        for part in now: expect(page.locator(part).first).to_be_visible()
        page.evaluate("at => location.hash += `&at=${at}`", life["steps"][0]["time"])
        expect(page.locator("#pill")).to_contain_text("looking at")
        for part in now: expect(page.locator(part).first).to_be_hidden()
        expect(page.locator("#push .why")).to_contain_text("is not known")
        page.keyboard.press("Escape")
        for part in now: expect(page.locator(part).first).to_be_visible()

    def test_every_push_and_moment_is_a_url(self):
        life = self.busy_phone()
        time = life["steps"][0]["time"]
        page = self.browser.new_context().new_page()
        self.addCleanup(page.context.close)
        page.goto(f"{self.origin}/#token={self.token}&push={life['uniqueId']}&at={time}")
        expect(page.locator("#push h2")).to_contain_text("push #")
        expect(page.locator("#pill")).to_have_text(f"looking at {mock_server.stamp(time)[11:19]}")
        newest = page.locator("#table tbody tr td").first.inner_text()
        self.assertLessEqual(newest, mock_server.stamp(time)[11:19])
        page.keyboard.press("Escape")
        expect(page.locator("#pill")).to_have_text("live")
        page.click("#table tbody tr:not(.on) >> nth=0")
        page.wait_for_function("push => !location.hash.includes(push)", arg=life["uniqueId"])
        page.go_back()
        page.wait_for_function("push => location.hash.includes(push)", arg=life["uniqueId"])
        expect(page.locator("#table tr.on").first).to_have_attribute("data-push", life["uniqueId"])

    # Finding.

    def find(self, page, text, hit):
        """The first thing found of that kind, or with that text."""
        page.fill("#find", text)
        option = page.locator("#hits [role=option]", has=page.locator("small, b", has_text=hit)).first
        expect(option).to_be_visible()
        return option

    def test_a_phone_is_chosen_with_the_latest_filter(self):
        self.needs_mock()
        page, _ = self.at_phone()
        # Before anything is drawn again.
        choose = """([filter, value, link]) => {
            const field = document.querySelector("#f-" + filter);
            field.value = value;
            field.dispatchEvent(new Event("change", { bubbles: true }));
            document.querySelector(link).click();
        }"""
        for filter, value, link, is_phone in (
            ("app", "com.example.mail", "#everyone", "false"),
            ("kind", "silent", "#phone-list a", "true"),
        ):
            page.evaluate(choose, [filter, value, link])
            page.wait_for_function(f"() => location.hash.includes('phone=') === {is_phone}")
            self.assertIn(f"{filter}={value}", page.evaluate("location.hash"))
            expect(page.locator(f"#f-{filter}")).to_have_value(value)

    def test_one_field_finds_ids_phones_apps_and_texts(self):
        self.needs_mock()
        page, life = self.at_phone()
        token, push = life["token"], life["uniqueId"]
        short = "#" + push.split("-")[-1].lstrip("0")
        for text in (push, short, token):
            self.find(page, text, "push")
        self.assertEqual(self.axe(page), [])
        self.find(page, push, short).click()
        expect(page.locator("#push h2")).to_have_text(f"Silent push {short}")
        expect(page.locator("#find")).to_have_value("")
        self.find(page, "ben", "phone").click()
        expect(page.locator("#lanes-title")).to_have_text("Phone ben")
        self.find(page, "example.mail", "app").click()
        expect(page.locator("#f-app")).to_have_value("com.example.mail")
        page.click("#everyone")
        page.click("#clear")
        # A word of its text finds a push, by keyboard alone; a word of a refused one does, too.
        page.keyboard.press("/")
        page.keyboard.type("eight")
        expect(page.locator("#hits [aria-selected=true]")).to_contain_text("Anna: Dinner at eight?")
        page.keyboard.press("ArrowDown")
        expect(page.locator("#hits [aria-selected=true]")).to_have_count(1)
        self.assertEqual(page.locator("#find").get_attribute("aria-activedescendant"), "hit-1")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        expect(page.locator("#payload")).to_contain_text('"body": "Dinner at eight?"')
        self.find(page, "nobody", "refused").click()
        expect(page.locator("#push h2")).to_contain_text("Refused push #")
        self.assertEqual(self.problems, [])

    def test_a_refused_push_has_its_phone_and_its_trace(self):
        self.needs_mock()
        server, trace = self.a_mock(phones=10), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        relay = server.relay
        with relay.lock:
            device = next(iter(relay.devices.values()))
            app = next(iter(device.apps.values()))
            relay.refuse("BadPriority", 400, "9 is none", {"traceparent": trace}, {"aps": {}}, device, app)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        row = page.locator("#table tr.refused", has_text="BadPriority")
        expect(row.locator("td.dev")).to_have_text(device.name or device.id[:8])
        self.find(page, trace, "refused").click()
        expect(page.locator("#push p.why")).to_contain_text("9 is none")
        self.assertEqual(self.problems, [])

    def test_finding_nothing_says_so(self):
        self.needs_mock()
        server = self.a_mock(phones=10)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        page.fill("#find", "zebra")
        expect(page.locator("#find-note")).to_contain_text("no id, no phone, no app, no text of a payload")
        server.relay.keeps_requests = False
        page.fill("#find", "zebras")
        expect(page.locator("#find-note")).to_contain_text("--keep-requests")
        page.keyboard.press("Escape")
        expect(page.locator("#find-note")).to_be_hidden()
        expect(page.locator("#find")).to_have_value("")

    def test_filters_stand_in_the_address(self):
        self.needs_mock()
        page = self.open()
        rows = page.locator("#table tbody tr")
        page.select_option("#f-app", "com.example.chat")
        page.select_option("#f-kind", "visible")
        page.wait_for_function("() => [...document.querySelectorAll('#table tbody tr')].every((row) => row.cells[3].textContent === 'chat')")
        self.assertIn("app=com.example.chat&kind=visible", page.url)
        page.reload()
        expect(page.locator("#f-kind")).to_have_value("visible")
        expect(rows.first).to_contain_text("chat")
        page.click("#clear")
        self.assertNotIn("kind=", page.url)
        page.select_option("#f-state", "replaced")
        page.wait_for_function("() => [...document.querySelectorAll('#table tbody tr')].at(0)?.textContent.includes('replaced')")
        page.select_option("#f-state", "")
        page.select_option("#f-status", "400")
        expect(page.locator("#table tr.refused").first).to_be_visible()
        expect(page.locator("#table tbody tr:not(.refused)")).to_have_count(0)
        page.select_option("#f-app", "com.example.mail")
        expect(page.locator("#none")).to_have_text("Nothing passes the filters.")
        page.go_back()
        expect(page.locator("#table tr.refused").first).to_be_visible()
        page.click("#clear")
        # All with a text of their payload.
        self.find(page, "dessert", "show only these").click()
        self.assertIn("text=dessert", page.url)
        found = [r["uniqueId"] for r in self.call("GET", "/v1/requests?payload=~dessert&limit=200")["requests"]]
        page.wait_for_function("""(found) => { const rows = [...document.querySelectorAll('#table tbody tr')];
          return rows.length > 1 && rows.every((row) => found.includes(row.dataset.push)); }""", arg=found)
        expect(page.locator("#clear")).to_have_text("Clear filters, with “dessert”")
        page.click("#clear")
        expect(page.locator("#clear")).to_be_hidden()
        self.assertEqual(self.problems, [])

    # What was sent.

    def test_refused_is_a_row_with_its_request_beside_it(self):
        self.needs_mock()
        page = self.open()
        answer = self.call("POST", "/v1/push", {"to": "12" * 32, "payload": {"aps": {"alert": "Nobody", "badge": 2}},
                                                "headers": {"apns-topic": "com.example.chat", "apns-push-type": "alert"}})
        row = page.locator(f"#table tr[data-push='{answer['uniqueId']}']")
        expect(row).to_have_class("refused")
        expect(row).to_contain_text("400 BadDeviceToken: the device token is unknown here")
        expect(row).to_contain_text("chat")
        expect(page.locator(f"#lanes .mark[data-push='{answer['uniqueId']}'] .shape.refused")).to_have_count(1)
        row.click()
        expect(page.locator("#push h2")).to_contain_text("Refused push #")
        expect(page.locator("#push .why")).to_have_text("400 BadDeviceToken: the device token is unknown here")
        expect(page.locator("#payload")).to_contain_text('"badge": 2')
        expect(page.locator("#push .headers")).to_contain_text("com.example.chat")
        self.assertEqual(self.problems, [])

    def test_nothing_is_pretended_of_what_is_not_kept(self):
        self.needs_mock()
        server = self.a_mock(phones=10)
        relay = server.relay
        with relay.lock:
            relay.refuse("MissingProviderToken", 403, "no token and no certificate")
        url = f"http://127.0.0.1:{server.server_address[1]}/#token=dev&push="
        page = self.open(url + relay.refusals[0]["uniqueId"])
        expect(page.locator("#push")).to_contain_text("Nothing is kept of what was sent")
        relay.keeps_requests = False
        relay.requests.clear()
        page = self.open(url + next(iter(relay.lives)))
        expect(page.locator("#push")).to_contain_text("does not keep what was sent")
        self.assertEqual(page.get_by_role("button", name="Resend").count(), 0)

    def test_what_a_phone_says_and_what_was_sent_may_be_of_any_form(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, anna = server.relay, server.relay.active[0]
        app = next(iter(anna.apps.values()))
        forms = [{"loc-key": "k", "loc-args": "abc"}, {"title-loc-key": "t", "title-loc-args": {"a": 1}, "body": "b"},
                 {"loc-key": "k", "loc-args": [{"toString": 1}, None]}, {"subtitle": "only this"}]
        with relay.lock:
            for alert in forms:
                relay.push(anna, app, "visible", {"apns-push-type": "alert"}, {"aps": {"alert": alert}})
            said = anna.phone.view
            rogue = {"onmouseover": "alert(1)", "ONCLICK": "alert(1)", "id": "toast", "style": "position:fixed"}
            runs = {"lastRun": {"began": 1, "cause": rogue, "outcome": rogue}}
            anna.phone.view = lambda *of: (state := said(*of)) | {"apps": [each | runs for each in state["apps"]]}
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={anna.id}")
        expect(page.locator(".screen")).to_contain_text("only this")
        expect(page.locator("#push")).to_contain_text('"onmouseover":"alert(1)"')
        self.assertEqual(page.locator("[onmouseover], [onclick], [style*=fixed]").count(), 0)
        self.assertEqual(page.locator("#toast").count(), 1)
        self.assertEqual(self.problems, [])

    def test_only_what_works_is_offered_to_copy(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        headers = {"apns-push-type": "background", "apns-priority": "5", "apns-collapse-id": "c",
                   "apns-expiration": str(relay.now // 1000 + 60)}
        with relay.lock:
            push = relay.push(ben, ben.apps["com.example.mail"], "silent", headers, mock_server.SILENT)["uniqueId"]
            relay.refuse("BadPriority", 400, "apns-priority is not 10, 5 or 1", {"apns-priority": "7"}, {"aps": {}})
            relay.refuse("MissingProviderToken", 403, "no token and no certificate")
            relay.request("b", 200, {"apns-push-type": "liveactivity"}, {"aps": {"event": "update"}}, token=None,
                          topic="com.example.mail", path="/4/broadcasts/apps/com.example.mail")
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        buttons = page.locator("#push .row", has_text="Copy as").get_by_role("button")
        def look(push, *names):
            page.evaluate("push => location.hash = `push=${push}`", push)
            expect(buttons).to_have_text(names)
        look(push, "Link", "curl", "Scenario")
        page.get_by_role("button", name="Scenario").click()
        scenario = json.loads(page.locator("#copied").inner_text())
        self.assertEqual(scenario["events"][0]["push"], {
            "name": "one", "to": "phone/com.example.mail", "type": "background", "priority": 5, "collapse": "c",
            "expires": "60s", "payload": mock_server.SILENT})
        look(relay.refusals[1]["uniqueId"], "Link", "curl")
        look(relay.refusals[0]["uniqueId"], "Link")
        look("b", "Link", "curl")
        expect(page.locator("#push .why")).to_contain_text("A broadcast")
        self.assertEqual(page.get_by_role("button", name="Resend").count(), 0)
        relay.requests.clear()
        page.reload()
        look(push, "Link")

    def test_request_of_a_push_and_what_one_can_do_with_it(self):
        self.needs_mock()
        page, life = self.at_phone()
        payload = {"aps": {"content-available": 1}, "text": "<b>bold</b>"}
        push = self.call("POST", "/v1/push", {"to": life["device"], "topic": life["topic"], "payload": payload,
                                              "headers": {"apns-push-type": "background", "apns-priority": "10"}})["uniqueId"]
        page.locator(f"#table tr[data-push='{push}']").first.click()
        panel = page.locator("#push")
        self.assertEqual(json.loads(page.locator("#payload").inner_text()), payload)
        self.assertEqual(panel.locator("b", has_text="bold").count(), 0)
        self.assertIn("\n  ", page.locator("#payload").inner_text())
        expect(panel.locator(".warn")).to_contain_text("priority 5")
        expect(panel.locator(".headers th[scope=row]", has_text="apns-priority")).to_be_visible()
        for part in ("200", "1 ms", "team TEAM123456, key KEY1234567", "from 127.0.0.1:51234", "on connection 7"):
            expect(panel).to_contain_text(part)
        page.get_by_role("button", name="curl", exact=True).click()
        expect(page.locator("#copied")).to_contain_text("--cacert")
        before = len(self.server.relay.lives)
        page.get_by_role("button", name="Resend").click()
        expect(page.locator("#resent")).to_contain_text("200 as #")
        self.assertEqual(len(self.server.relay.lives), before + 1)
        page.locator("#resent a").click()
        expect(page.locator("#payload")).to_contain_text("bold")
        self.assertEqual(self.problems, [])

    def test_refused_of_a_phone_are_in_its_view(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        def refuse():
            with relay.lock:
                relay.refuse("BadPriority", 400, "apns-priority is not 10, 5 or 1", {"apns-priority": "7"},
                             {"aps": {"alert": "x"}}, device=ben, app=ben.apps["com.example.mail"])
            return relay.refusals[0]["uniqueId"]
        push = refuse()
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={ben.id}&status=400")
        expect(page.locator(f"#table tr[data-push='{push}']")).to_contain_text("BadPriority")
        later = refuse()
        expect(page.locator(f"#table tr[data-push='{later}']")).to_contain_text("ben")
        expect(page.locator("#none")).to_be_hidden()
        page.click("#clear")
        expect(page.locator("#table tr.refused")).to_have_count(2)
        page.evaluate("id => location.hash = `phone=${id}`", relay.active[0].id)
        expect(page.locator("#lanes-title")).to_have_text("Phone anna")
        expect(page.locator("#table tr.refused")).to_have_count(0)
        self.assertEqual(self.problems, [])

    # The timeline.

    OVERLAPS = """() => {
      const boxes = [...document.querySelectorAll("#lanes text")].map((node) => [node.getBoundingClientRect(), node.textContent]), bad = [];
      boxes.forEach(([a, one], index) => boxes.slice(index + 1).forEach(([b, two]) => {
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3) bad.push(`${one} | ${two}`); }));
      return bad;
    }"""

    def test_labels_never_overlap(self):
        self.needs_mock()
        for width in (1400, 1000, 390):
            page, life = self.at_phone(width=width)
            for where in (f"phone={life['device']}", "axis=time", "span=3600000&axis=time", "axis=order", "span=600000", f"push={life['uniqueId']}"):
                page.evaluate("where => location.hash = where", where)
                page.wait_for_timeout(250)
                self.assertEqual(page.evaluate(self.OVERLAPS), [], f"{where} at {width}")

    def test_close_marks_go_by_order_and_back_by_time(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, url = server.relay, f"http://127.0.0.1:{server.server_address[1]}/#token=dev"
        device = relay.active[0]
        app = next(iter(device.apps.values()))

        def push(pause):
            with relay.lock:
                relay.advance_to(relay.now + pause)
                relay.push(device, app, "visible")
        for _ in range(3):
            push(60_000)
        page = self.open(url)
        about = page.locator("#lanes svg")
        expect(about).not_to_have_attribute("aria-label", re.compile("order"))
        for pause in (60_000, 10, 10, 10, 7_200_000, 5, 5):
            push(pause)
        expect(about).to_have_attribute("aria-label", re.compile("order"))
        expect(page.locator("#lanes .mark")).to_have_count(10)
        xs = sorted(box["x"] for box in (page.locator("#lanes .mark .shape").nth(index).bounding_box() for index in range(10)))
        self.assertGreater(min(b - a for a, b in zip(xs, xs[1:])), 18)
        expect(page.locator("#lanes .gap", has_text="2 h")).to_have_count(1)
        page.select_option("#axis", "time")
        expect(about).not_to_have_attribute("aria-label", re.compile("order"))
        self.assertIn("axis=time", page.url)
        page.select_option("#axis", "")
        for _ in range(45):
            push(720_000)
        expect(about).not_to_have_attribute("aria-label", re.compile("order"))

    def test_phone_is_there_for_what_was_sent_at_once(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        with relay.lock:
            for what in ("connected", "disconnected", "connected"):
                relay.change(ben, what)
            for _ in range(3):
                relay.push(ben, ben.apps["com.example.mail"], "visible")
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={ben.id}")
        expect(page.locator("#lanes .mark")).to_have_count(3)
        expect(page.locator("#lanes line.conn").first).to_be_attached()
        backwards = "[...document.querySelectorAll('#lanes line')].filter(({ x1, x2 }) => x1.baseVal.value > x2.baseVal.value).length"
        self.assertEqual(page.evaluate(backwards), 0)
        first = page.locator("#lanes .mark .shape").first.bounding_box()
        self.assertLessEqual(page.locator("#lanes line.conn").first.bounding_box()["x"], first["x"] + first["width"] / 2)
        self.assertEqual(page.evaluate("scrub.value - scrub.max"), 0)
        self.assertGreater(page.evaluate("scrub.max - scrub.min"), 0)

    def test_another_day_is_named(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        day = mock_server.stamp(relay.now)[:10]
        mail = ben.apps["com.example.mail"]
        with relay.lock:
            relay.push(ben, mail, "visible", {}, {"aps": {"alert": "yesterday"}})
            relay.advance_to(relay.now + 26 * 60 * mock_server.MINUTE)
            today = mock_server.stamp(relay.now)[:10]
            mail.used = [relay.now + 72 * 60 * mock_server.MINUTE] * 3
            held = relay.push(ben, mail, "silent", {"apns-push-type": "background"}, mock_server.SILENT)["uniqueId"]
            until = mock_server.stamp(mail.used[0])[:19].replace("T", " ")
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={ben.id}")
        times = page.locator("#table tbody td:first-child")
        expect(times).to_have_text(["09:00:00", f"{day} 07:00:00"])
        expect(page.locator("#clock-note")).to_contain_text(today)
        expect(page.locator("#table")).to_contain_text(f"until {until}")
        expect(page.locator("#lanes")).to_contain_text(f"may go {until[:16]}")
        expect(page.locator(".screen .card")).to_contain_text(day)
        page.evaluate("push => location.hash += `&push=${push}`", held)
        expect(page.locator("#push ol")).to_contain_text(f"held until {until} by app-budget")
        expect(page.locator("#push .why")).to_contain_text(f"the next at {until}")
        self.call("POST", "/v1/clock/advance", {"by": "24h"}, server)
        expect(times).to_have_text([f"{today} 09:00:00", f"{day} 07:00:00"])

    def test_chosen_push_is_in_the_lanes(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        with relay.lock:
            pushes = [relay.push(ben, ben.apps["com.example.mail"], "visible")["uniqueId"] for _ in range(60)]
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&push={pushes[3]}")
        expect(page.locator("#lanes .mark .ring")).to_have_count(1)
        expect(page.locator(f"#lanes .mark[data-push='{pushes[3]}']")).to_have_count(1)
        expect(page.locator(f"#lanes .mark[data-push='{pushes[59]}']")).to_have_count(1)

    def test_forecast_has_no_empty_columns(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        mail, chat = ben.apps["com.example.mail"], ben.apps["com.example.chat"]
        def silent(app):
            return relay.push(ben, app, "silent", {"apns-push-type": "background"}, mock_server.SILENT)
        with relay.lock:
            ben.keep_alive = relay.now + 60 * mock_server.MINUTE
            for _ in range(4):
                held = silent(mail)["uniqueId"]
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        ghost = page.locator("#lanes .ghost")
        expect(ghost).to_have_count(1)
        expect(ghost.locator("title")).to_have_text("#4 may go, if nothing takes it along before, 07:20, in 20 min")
        expect(page.locator("#lanes")).to_contain_text("may go 07:20")
        # The column of the refill alone stands behind those of the marks: nothing is behind it.
        edge = "Math.max(...[...document.querySelectorAll('#lanes line.edge[y1=\"18\"]')].map((line) => line.x1.baseVal.value))"
        place = page.evaluate("document.querySelector('#lanes .ghost').transform.baseVal[0].matrix.e")
        self.assertAlmostEqual(page.evaluate(edge), place, delta=1)
        with relay.lock:
            ben.keep_alive = relay.now + 10 * mock_server.MINUTE
            for _ in range(60):
                relay.push(relay.active[4], relay.active[4].apps["com.example.chat"], "visible")
        expect(page.locator("#lanes")).not_to_contain_text("mail")
        expect(ghost).to_have_count(0)
        right = "Math.max(...[...document.querySelectorAll('#lanes .mark')].map((mark) => mark.transform.baseVal[0].matrix.e))"
        self.assertGreater(page.evaluate(right), page.evaluate("document.querySelector('#lanes svg').viewBox.baseVal.width") - 60)

    def test_lanes_and_filters_tell_alike_topics_apart(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        with relay.lock:
            for topic in ("com.example.shop", "com.example.shop.push-type.liveactivity"):
                relay.push(ben, mock_server.App(topic, "00" * 32), "visible")
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        expect(page.locator("#f-app option")).to_have_text(["app", "com.example.shop", "com.example.shop.push-type.liveactivity"])
        expect(page.locator("#lanes text > title", has_text="com.example.shop.push-type.liveactivity")).to_have_count(1)

    def test_a_mistyped_address_is_live(self):
        page = self.open()
        for typed in ("at=abc", "at=99999999999999999", "at=-5", "state=held", "kind=loud"):
            page.goto("about:blank")
            page.goto(f"{self.origin}/#token={self.token}&{typed}")
            expect(page.locator("#pill")).to_have_text("live")
            expect(page.locator("#lanes .mark").first).to_be_visible()
        self.assertEqual(self.problems, [])

    def test_group_opens_on_click_and_by_key(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay = server.relay
        device = relay.active[0]
        with relay.lock:
            for _ in range(6):
                relay.advance_to(relay.now + 100)
                relay.push(device, next(iter(device.apps.values())), "visible")
            relay.advance_to(relay.now + 60_000)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&axis=time&span=600000")
        group = page.locator("#lanes .mark[data-zoom]")
        expect(group).to_have_attribute("aria-label", re.compile("marks, .*: open"))
        group.click()
        expect(page.locator("#lanes .mark[data-push]")).to_have_count(5)
        self.assertIn("zoom=", page.url)
        expect(page.locator("#table tbody tr")).to_have_count(5)
        page.keyboard.press("Escape")
        expect(group).to_have_count(1)
        group.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#lanes .mark[data-push]")).to_have_count(5)
        page.click("#clear")
        expect(group).to_have_count(1)
        self.assertEqual(self.axe(page), [])

    def test_future_of_a_held_push_is_drawn(self):
        self.needs_mock()
        server = self.a_mock(phones=10)
        anna = server.relay.active[0]
        for width in (1400, 390):
            page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={anna.id}", width=width)
            ghosts = page.locator("#lanes .ghost")
            expect(ghosts.first).to_be_visible()
            expect(page.locator("#lanes")).to_contain_text("may go 07:17" if width > 390 else "may go")
            expect(page.locator("#lanes")).to_contain_text("in 17 min")
            if width > 390:
                expect(page.locator("#lanes")).to_contain_text("or rides 07:05")
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={anna.id}")
        held = next(life for life in reversed(server.relay.lives.values()) if life["device"] == anna.id and life["state"] == "stored")
        page.evaluate("push => location.hash += `&push=${push}`", held["uniqueId"])
        expect(page.locator("#push .why")).to_contain_text("0 of 3 left, one comes back every 20 minutes")
        expect(page.locator("#push .waits .gauge").first).to_contain_text("app")
        page.evaluate("at => location.hash += `&at=${at}`", held["steps"][0]["time"] - 1)
        expect(page.locator("#push .why")).to_have_text("Not received yet at that moment.")

    # Clock and keys.

    def test_clock_buttons_move_the_clock(self):
        if self.call("GET", "/v1/clock")["mode"] != "virtual":
            self.skipTest("this relay has no virtual clock")
        page = self.open()
        for name, length in (("+1m", 60_000), ("+20m", 1_200_000), ("+1h", 3_600_000)):
            before = self.call("GET", "/v1/clock")["now"]
            page.get_by_role("button", name=name, exact=True).click()
            expect(page.locator("#clock")).to_have_text(mock_server.stamp(before + length)[11:19])
            self.assertEqual(self.call("GET", "/v1/clock")["now"], before + length)
        clock = self.call("GET", "/v1/clock")
        if "next" in clock:
            expect(page.locator("#next")).to_be_enabled()
            page.locator("body").press("n")
            expect(page.locator("#clock")).to_have_text(mock_server.stamp(clock["next"]["at"])[11:19])
        expect(page.locator("#toast")).to_contain_text(page.locator("#clock").inner_text())

    def test_next_timer_is_never_in_the_past(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        with relay.lock:
            ben.keep_alive = relay.now + 3000
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        expect(page.locator("#next")).to_contain_text("keep-alive 07:00:03")
        self.call("PATCH", "/v1/clock", {"rate": 1}, server)
        expect(page.locator("#clock")).to_have_text("07:00:04", timeout=8000)
        expect(page.locator("#next")).to_contain_text("keep-alive 07:15:03", timeout=1500)
        page.get_by_role("button", name="+1h", exact=True).click()
        expect(page.locator("#toast")).to_contain_text(": 4× keep-alive")

    def test_keys_work_and_can_be_switched_off(self):
        page = self.open()
        page.wait_for_selector("#table tbody tr")
        page.keyboard.press("j")
        expect(page.locator("#push h2")).to_contain_text("push #")
        first = page.url
        page.keyboard.press("j")
        page.keyboard.press("j")
        self.assertNotEqual(first, page.url)
        page.keyboard.press("Space")
        expect(page.locator("#pill")).to_contain_text("paused")
        page.keyboard.press("Space")
        expect(page.locator("#pill")).to_have_text("live")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#pill")).to_contain_text("looking at")
        moment = page.url
        page.keyboard.press("ArrowLeft")
        page.wait_for_function("moment => location.href !== moment", arg=moment)
        page.keyboard.press("Escape")
        expect(page.locator("#pill")).to_have_text("live")
        page.keyboard.press("/")
        expect(page.locator("#find")).to_be_focused()
        page.keyboard.type("c")
        expect(page.locator("#drawer")).to_be_hidden()
        page.keyboard.press("Escape")
        page.locator("#find").blur()
        page.keyboard.press("c")
        expect(page.locator("#drawer h2")).to_have_text("Compose")
        page.keyboard.press("Escape")
        expect(page.locator("#drawer")).to_be_hidden()
        page.keyboard.press("?")
        expect(page.locator("#help")).to_be_visible()
        page.locator("#keys-on").uncheck()
        page.keyboard.press("Escape")
        expect(page.locator("#help")).to_be_hidden()
        page.keyboard.press("c")
        page.keyboard.press("Space")
        expect(page.locator("#drawer")).to_be_hidden()
        expect(page.locator("#pill")).to_have_text("live")
        self.assertEqual(self.problems, [])

    def test_recording_key(self):
        page = self.open()
        if page.locator("#tool-recordings").is_hidden():
            self.skipTest("this relay does not record")
        page.keyboard.press("r")
        expect(page.locator("#toast")).to_contain_text("Recording")
        self.assertIn("running", [r["state"] for r in self.call("GET", "/v1/recordings")["recordings"]])
        page.keyboard.press("r")
        expect(page.locator("#toast")).to_contain_text("is recorded")

    # Phones.

    def test_phones_are_searched_and_paged_by_the_server(self):
        page = self.open()
        total = self.call("GET", "/v1/overview")["devices"]
        self.assertLessEqual(page.locator("#phone-list a").count(), 40)
        if total <= 40:
            self.skipTest("fewer phones than a page holds")
        first = page.locator("#phone-list a > :nth-child(2)").first.inner_text()
        page.click("#page-on")
        expect(page.locator("#page-note")).to_have_text("page 2")
        self.assertNotEqual(page.locator("#phone-list a > :nth-child(2)").first.inner_text(), first)
        page.fill("#search", first)
        expect(page.locator("#phone-list a")).to_have_count(1)
        page.click("#phone-list a")
        expect(page.locator("#lanes-title")).to_have_text(f"Phone {first}")

    def test_phone_panel_and_its_lock_screen(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        mail, chat = ben.apps["com.example.mail"], ben.apps["com.example.chat"]
        loc = {"aps": {"alert": {"title-loc-key": "INVITE_TITLE", "loc-key": "PLAY_WITH", "loc-args": ["Cleo", "chess"]}, "sound": {"name": "bell.caf", "critical": 1}}}
        for app, kind, payload in [(mail, "visible", mock_server.VISIBLE[0]), (mail, "visible", mock_server.VISIBLE[1]), (chat, "visible", loc),
                                   (mail, "silent", mock_server.SILENT), (chat, "visible", {"aps": {"alert": "<img src=x>"}})]:
            with relay.lock:
                relay.advance_to(relay.now + 60_000)
                relay.push(ben, app, kind, {"apns-push-type": "alert"}, payload)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={ben.id}")
        cards = page.locator(".screen .card")
        expect(cards).to_have_count(2)
        expect(cards.nth(0)).to_contain_text("<img src=x>")
        expect(cards.nth(0)).to_contain_text("1 more from chat")
        for part in ("Ben", "I bring the dessert.", "thread dinner", "1 more in this thread"):
            expect(cards.nth(1)).to_contain_text(part)
        expect(page.locator(".wakes")).to_contain_text("wakes mail, with folder")
        expect(page.locator("#push .apps li").first.locator(".gauge")).to_contain_text("3 of 3 left")
        expect(page.locator("#push .apps")).to_contain_text("suspended, badge 2")
        # What is told to the phone, it does.
        page.get_by_role("button", name="Open chat").click()
        expect(page.locator("#said")).to_contain_text("open com.example.chat")
        expect(page.locator("#push .apps li", has_text="chat")).to_contain_text("open")
        expect(cards).to_have_count(1)
        expect(page.get_by_role("button", name="Leave chat")).to_be_visible()
        page.get_by_role("button", name="Uninstall mail").focus()
        self.call("DELETE", f"/v1/devices/{ben.id}/budget", server=server)
        page.wait_for_timeout(1200)
        expect(page.get_by_role("button", name="Uninstall mail")).to_be_focused()
        page.get_by_role("button", name="Swipe away mail").click()
        expect(page.locator("#push .apps li", has_text="mail")).to_contain_text("swiped away")
        page.select_option("#p-network", "airplane")
        expect(page.locator("#said")).to_contain_text("network airplane")
        self.assertEqual(ben.network, "airplane")
        page.get_by_role("button", name="Low power on").click()
        expect(page.get_by_role("button", name="Low power off")).to_be_visible()
        page.get_by_role("button", name="Lock", exact=True).click()
        expect(page.get_by_role("button", name="Unlock")).to_be_visible()
        self.assertEqual(self.axe(page), [])
        self.assertEqual(self.problems, [])

    def lock_screen(self, pushes, **options):
        """The page of ben, to whom those payloads and headers were sent in apps of his."""
        server = self.a_mock(phones=10, empty=True)
        ben = server.relay.active[1]
        def push(app, payload, **headers):
            with server.relay.lock:
                server.relay.push(ben, ben.apps[f"com.example.{app}"], "visible", headers, payload)
        for app, payload, headers in pushes:
            push(app, payload, **headers)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={ben.id}", **options)
        return page, server, ben, push

    def test_lock_screen_is_what_the_phone_shows(self):
        self.needs_mock()
        score, long = {"apns-collapse-id": "score"}, "word " * 400
        page, server, ben, push = self.lock_screen([
            ("chat", {"aps": {"alert": "one"}}, {}), ("chat", {"aps": {"alert": "two"}}, score),
            ("chat", {"aps": {"alert": {"title": "three", "body": 3}, "category": {}}}, score),
            ("chat", {"aps": {"badge": 4}}, {}), ("chat", {"aps": {}}, {}), ("chat", {"aps": {"alert": 5}}, {}),
            ("mail", {"aps": {"alert": {"title": "A", "body": long}}}, {})])
        cards = page.locator(".screen .card")
        expect(cards).to_have_count(2)
        expect(cards.nth(0)).to_contain_text("word word")
        self.assertLess(cards.nth(0).bounding_box()["height"], 160)
        expect(cards.nth(1)).to_contain_text("three")
        expect(cards.nth(1)).to_contain_text("1 more from chat: #1")
        self.assertNotIn("object", page.locator(".screen").inner_text())
        # One that does not say how it is: the same, of what was sent.
        ben.phone = None
        page.reload()
        expect(page.locator("#push")).to_contain_text("cannot be told")
        expect(cards).to_have_count(2)
        expect(cards.nth(1)).to_contain_text("1 more from chat: #1")
        self.assertEqual([problem for problem in self.problems if not problem.endswith("/phone")], [])
        self.assertLessEqual(len(self.problems), 2, "asked once for each time that the page was opened")

    def test_lock_screen_keeps_up_with_the_phone(self):
        self.needs_mock()
        page, server, ben, push = self.lock_screen([("mail", {"aps": {"alert": "one"}}, {})])
        screen = page.locator(".screen")
        expect(screen).to_contain_text("one")
        push("chat", {"aps": {"alert": {"title": "Kept", "subtitle": "Sub"}}})
        expect(screen).to_contain_text("Sub")
        expect(screen).not_to_contain_text("not kept")
        # Told elsewhere, without an event.
        with server.relay.lock:
            ben.phone.obey(ben, {"do": "open", "app": "com.example.mail"})
        expect(page.locator("#push .apps li", has_text="mail")).to_contain_text("open", timeout=9000)
        expect(screen).not_to_contain_text("one")
        server.relay.keeps_requests = False
        push("chat", {"aps": {"alert": "said by the phone"}})
        expect(screen).to_contain_text("said by the phone")
        ben.phone = None
        push("chat", {"aps": {"alert": "nobody knows"}})
        page.reload()
        expect(screen).to_contain_text("text not here")

    def test_live_activities_are_on_the_lock_screen(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        ben, at = server.relay.active[1], server.relay.now
        one = {"app": "com.example.mail", "type": "Order", "startedAt": at, "hasToken": True, "state": "active",
               "shows": '{"status":"packed","<b>":[1]}'}
        ben.phone.activities = [
            {**one, "activity": 1, "staleAt": at + 60_000},
            {**one, "activity": 2, "state": "stale", "staleAt": at - 60_000, "hasToken": False},
            {**one, "activity": 3, "state": "ended", "leavesAt": at + 3_600_000, "shows": '{"too long'},
            {**one, "activity": 4, "hasToken": False, "channel": "AAAA=="}]
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={ben.id}")
        cards = page.locator(".screen .card")
        expect(cards).to_have_count(4)
        said = [("mail", "Order, activity 1", "status packed", "<b> [1]", "active, stale at"), ("stale since", "no token yet"),
                ("ended, here until", '{"too long'), ("active, by channel AAAA==",)]
        for number, parts in enumerate(said):
            for part in parts:
                expect(cards.nth(number)).to_contain_text(part)
        self.assertEqual(self.axe(page), [])
        self.assertEqual(self.problems, [])

    def test_localized_keys_and_what_goes_with_an_alert_are_named(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, cleo = server.relay, server.relay.active[4]
        with relay.lock:
            relay.push(cleo, cleo.apps["com.example.mail"], "visible", {}, mock_server.VISIBLE[2])
            relay.push(cleo, cleo.apps["com.example.chat"], "visible", {}, mock_server.VISIBLE[0])
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={cleo.id}")
        cards = page.locator(".screen .card")
        for part in ("Anna", "Tonight", "Dinner at eight?", "♪ default", "thread dinner", "category INVITE"):
            expect(cards.nth(0)).to_contain_text(part)
        expect(cards.nth(0).locator(".badge")).to_have_text("3")
        expect(cards.nth(1).locator("code").first).to_have_text("GAME_INVITE")
        expect(cards.nth(1)).to_contain_text("PLAY_WITH (Cleo, chess)")
        expect(cards.nth(1)).to_contain_text("♪ bell.caf, critical")
        # This one takes no orders, and the page says why.
        expect(page.locator("#push")).to_contain_text("cannot be told what to do")
        self.assertEqual(page.get_by_role("button", name="Swipe away").count(), 0)

    def test_looking_back_shows_budgets_of_then(self):
        self.needs_mock()
        server = self.a_mock(phones=10)
        relay = server.relay
        anna, at = relay.active[0], relay.now - 15 * 60_000
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone={anna.id}")
        page.evaluate("at => location.hash += `&at=${at}`", at)
        expect(page.locator("#push .why")).to_contain_text("is not known: nothing was recorded")
        self.assertEqual(page.locator("#push .apps").count(), 0)
        relay.recordings["run"] = {"name": "run", "state": "running", "bytes": 1}
        page.reload()
        expect(page.locator("#push .apps li", has_text="news").locator(".gauge")).to_contain_text("1 of 3 left")
        expect(page.locator(".screen > b")).to_have_text("06:45")
        expect(page.locator(".screen .card")).to_have_count(1)
        expect(page.locator("#phone-list a", has_text="anna").locator(".gauge")).to_contain_text("1 of 3 left")
        self.assertEqual(page.get_by_role("button", name="Drop connection").count(), 0)
        last = page.evaluate("Math.max(...[...document.querySelectorAll('#lanes .mark title')].map((title) => Number(title.textContent.slice(0, 5).replace(':', ''))))")
        self.assertLessEqual(last, 645)
        page.keyboard.press("Escape")
        expect(page.locator("#push .apps li", has_text="news").locator(".gauge")).to_contain_text("0 of 3 left")

    def test_names_and_numbers_are_spoken_well(self):
        self.needs_mock()
        server = self.a_mock(phones=1, empty=True)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        expect(page.locator("#about")).to_contain_text("1 phone, 1 connected")
        expect(page.locator("#search")).to_have_attribute("placeholder", "Search 1 phone")
        page.click("#first")
        expect(page.locator("#c-to")).to_have_value(server.relay.active[0].id)
        page.keyboard.press("Escape")
        expect(page.locator("#phone-list a")).to_contain_text("anna")
        with server.relay.lock:
            anna = server.relay.active[0]
            server.relay.push(anna, next(iter(anna.apps.values())), "visible", {}, {"aps": {"alert": "x"}})
        expect(page.locator("#table tbody tr .dev")).to_have_text("anna")
        expect(page.locator("#lanes svg")).to_have_attribute("aria-label", re.compile("1 mark in 1 lane"))

    def test_phones_that_come_are_counted_at_once(self):
        self.needs_mock()
        server = self.a_mock(phones=0, empty=True)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev", phones=False)
        expect(page.locator("#about")).to_have_text("0 phones, 0 connected")
        with server.relay.lock:
            for number in range(3):
                identifier = f"00000000-0000-4000-8000-00000000000{number}"
                server.relay.devices[identifier] = mock_server.Device(identifier, ["com.example.mail"])
        expect(page.locator("#about")).to_have_text("3 phones, 3 connected", timeout=9000)
        expect(page.locator("#welcome")).to_contain_text("3 phones are here.")
        self.assertNotIn("to it", page.locator("#welcome").inner_text())

    def test_only_what_is_missing_is_said_to_be(self):
        self.needs_mock()
        server = self.a_mock(phones=10, empty=True)
        relay, ben = server.relay, server.relay.active[1]
        def push(count):
            with relay.lock:
                for _ in range(count):
                    relay.push(ben, ben.apps["com.example.mail"], "visible")
                relay.advance_to(relay.now + 1000)
        def gap():
            with relay.lock:
                relay.emit("gap", {"dropped": 7})
        push(3)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        expect(page.locator("#table tbody tr")).to_have_count(3)
        gap()
        page.wait_for_timeout(1500)
        expect(page.locator("#about")).not_to_contain_text("kept here")
        # More than the page asks for.
        with relay.changed:
            known = relay.sequence
            push(400)
            relay.events = mock_server.deque((entry for entry in relay.events if entry[0] <= known), maxlen=30_000)
            relay.emit("gap", {"dropped": 7})
        expect(page.locator("#about")).to_contain_text("7 older events are not kept here.")

    def test_a_phone_that_is_not_there_is_said_once(self):
        self.needs_mock()
        server = self.a_mock(phones=10)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&phone=nosuch")
        panel = page.locator("#push")
        expect(panel.locator(".why")).to_have_text("no such device; GET /v1/devices lists them")
        expect(page.locator("#about")).to_have_text("")
        expect(page.locator("#lanes svg")).to_be_visible()
        expect(page.locator("#lanes")).not_to_contain_text("away")
        expect(page.locator("#toast")).to_be_hidden()
        self.assertNotIn("undefined", panel.inner_text())
        expect(panel.get_by_role("button")).to_have_count(0)
        frida = server.relay.active[5]
        page.evaluate("id => location.hash = `phone=${id}`", frida.id)
        expect(panel.get_by_role("button", name="Drop connection")).to_be_visible()
        self.call("DELETE", f"/v1/devices/{frida.id}", server=server)
        expect(panel.locator(".why")).to_contain_text("no such device")
        expect(panel.get_by_role("button")).to_have_count(0)

    def test_what_is_done_is_said_and_keeps_the_focus(self):
        self.needs_mock()
        page, server, ben, push = self.lock_screen([("mail", {"aps": {"alert": "one"}}, {})])
        button = lambda name: page.locator("#push").get_by_role("button", name=name, exact=True)
        def press(name, focused):
            button(name).focus()
            page.keyboard.press("Enter")
            expect(button(name)).to_have_count(0)
            expect(focused).to_be_focused()
        press("Unlock", button("Lock"))
        press("Charger on", button("Charger off"))
        press("Swipe away mail", button("Open mail"))
        # "Leave chat" and "Crash chat" go with it: not on to what another app has in that place.
        button("Open chat").click()
        expect(button("Leave chat")).to_be_visible()
        press("Swipe away chat", button("Open chat"))
        press("Power off", button("Power on"))
        for name in ("Reboot", "Open mail", "Uninstall chat"):
            expect(button(name)).to_have_count(0)
        press("Power on", button("Power off"))
        for name in ("Empty slots", "Refill budget", "Drop connection"):
            button(name).click()
            expect(page.locator("#said")).to_have_text(f"{name}: done")
        page.select_option("#p-network", "airplane")
        ben.network = "wifi"
        expect(page.locator("#said")).to_contain_text("airplane")
        self.assertEqual(self.problems, [])

    def test_slider_goes_by_keys(self):
        page, _ = self.at_phone()
        page.locator("#scrub").focus()
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#pill")).to_contain_text("looking at")
        moved = page.evaluate("(scrub.max - scrub.value) / (scrub.max - scrub.min)")
        self.assertGreater(moved, .003)
        page.keyboard.press("ArrowRight")
        expect(page.locator("#pill")).to_have_text("live")

    def test_first_minute_says_what_to_do(self):
        self.needs_mock()
        server = self.a_mock(phones=0, empty=True)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev", phones=False)
        expect(page.locator("#welcome")).to_contain_text("pushrelay device anna")
        expect(page.locator("#table")).to_be_hidden()
        page.click("#first")
        expect(page.locator("#drawer h2")).to_have_text("Compose")
        self.assertEqual(self.axe(page), [])
        self.assertEqual(self.problems, [])

    def test_what_is_over_is_not_drawn_as_waiting(self):
        """By order what has gone before is not shown; a phone was there before the first of its pushes was sent."""
        page = self.open()
        drawn = page.evaluate(r"""async () => {
          const { drawLanes } = await import("/lanes.js");
          const push = (uniqueId, topic, kind, steps) => {
            const life = { uniqueId, topic, kind, device: "d", steps: [] };
            return (life.entries = steps.map(([t, mark, step]) => ({ t, mark, life, key: t, step: { step, reason: "app-budget" } })));
          };
          const entries = push("a-1", "com.x.news", "silent", [[1000, "held", "stored"], [2000, "refill", "sent"]]);
          for (let n = 0; n < 80; n++) entries.push(...push(`b-${n}`, "com.x.mail", "visible", [[3000 + n * 10, "visible", "sent"]]));
          const view = { entries, now: 10000, at: 0, phone: { apps: [{ topic: "com.x.news" }], connected: true }, push: "", width: 800, span: 0, zoom: "",
            axis: "order", links: [{ what: "connected", time: 500 }] };
          const waits = (entries) => drawLanes({ ...view, entries }).querySelectorAll("line.wait:not(.ended)").length;
          const few = drawLanes({ ...view, entries: entries.slice(0, 4) }), x = (group) => Number(/[\d.]+/.exec(group.getAttribute("transform"))[0]);
          return { over: waits(entries), shown: waits(entries.slice(0, 4)), begin: Number(few.querySelector("line.conn").getAttribute("x1")),
            first: Math.min(...[...few.querySelectorAll("g.mark")].map(x)) };
        }""")
        self.assertEqual((drawn["over"], drawn["shown"]), (0, 1))
        self.assertLess(drawn["begin"], drawn["first"])

    def test_the_same_may_come_twice_in_a_millisecond(self):
        """A phone that is led to another node, or comes again, on a virtual clock."""
        page = self.open()
        found = page.evaluate("""async () => {
          const { addLife, addStep, stateOf, known } = await import("/kit.js");
          const words = ["received", "stored", "sent", "stored", "sent", "delivered"];
          const life = { uniqueId: "twice", id: "twice", topic: "com.example.app", kind: "silent", device: "d", token: "" };
          const steps = words.map((step, index) => ({ step, time: index < 2 ? 1000 : 2000, text: step, via: step === "sent" ? "connect" : undefined }));
          // The stream says each once.
          for (const step of steps) addStep({ ...life, ...step });
          const before = stateOf(addLife({ ...life, steps }));
          const mine = addLife({ ...life, steps });
          return { words: mine.steps.map(({ step }) => step), marks: mine.entries.map(({ step }) => step.step), states: [before, stateOf(mine)] };
        }""")
        self.assertEqual(found["words"], ["received", "stored", "sent", "stored", "sent", "delivered"])
        self.assertEqual(found["marks"], ["stored", "sent", "stored", "sent"])
        self.assertEqual(found["states"], ["delivered", "delivered"])

    def test_what_happens_in_one_moment_goes_by_the_relays_numbers(self):
        page = self.open()
        found = page.evaluate("""async () => {
          const { addLife, entries } = await import("/kit.js");
          const life = (number) => ({ uniqueId: "4deb1c52-0d6e-8b34-8000-00000000000" + number, id: "", topic: "a.b", kind: "visible", device: "d", token: "" });
          for (const number of ["b", 9, "a"]) addLife({ ...life(number), steps: [{ step: "sent", time: 9e12, text: "sent", via: "direct" }] });
          return entries().slice(-3).map(({ life }) => life.uniqueId.at(-1));
        }""")
        self.assertEqual(found, ["9", "a", "b"])

    def test_what_is_not_here_is_not_said_to_be_nothing(self):
        page = self.open()
        for known_from, text in ((0, "Nothing had happened yet."), (10**13, "What was then is not here")):
            page.evaluate("async (from) => ((await import('/kit.js')).known.from = from)", known_from)
            page.evaluate("(at) => (location.hash = '#at=' + at)", 1000 + known_from % 7)
            expect(page.locator("#lanes")).to_contain_text(text)

    def test_policy_with_numbers_of_ones_own(self):
        self.needs_mock()
        server = self.a_mock(phones=10)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        # No limit has no numbers.
        page.select_option("#policy", "unlimited")
        expect(page.locator("#table tr", has_text="policy").first).to_contain_text("unlimited")
        page.select_option("#policy", "own")
        for name, value in {"app": "", "app-per": "1h", "device": "", "device-per": "1h"}.items():
            expect(page.locator(f"#own-{name}")).to_have_value(value)
        page.keyboard.press("Escape")
        page.select_option("#policy", "documented")
        expect(page.locator("#table tr", has_text="policy").first).to_contain_text("documented")
        page.select_option("#policy", "own")
        expect(page.locator("#own-policy")).to_be_visible()
        # Those in force.
        for name, value in {"app": "3", "app-per": "1h", "device": "12", "device-per": "1h"}.items():
            expect(page.locator(f"#own-{name}")).to_have_value(value)
        page.fill("#own-app-per", "soon")
        page.get_by_role("button", name="Take").click()
        expect(page.locator("#own-app-per:invalid")).to_be_visible()
        page.fill("#own-app-per", "0m")
        page.get_by_role("button", name="Take").click()
        expect(page.locator("#own-wrong")).to_contain_text("count and per")
        self.problems.clear()
        page.fill("#own-app", "2")
        page.fill("#own-app-per", "1d")
        page.fill("#own-device", "")
        page.get_by_role("button", name="Take").click()
        row = page.locator("#table tr", has_text="policy").first
        expect(row).to_contain_text("2 in 1d per app, all phones")
        self.assertEqual(server.given, {"app": {"count": 2, "per": "1d"}})
        expect(page.locator("#own-policy")).to_be_hidden()
        expect(page.locator("#policy option:checked")).to_have_text("2 in 1d per app")
        self.assertEqual(self.problems, [])

    # The drawer and its parts.

    def test_tools_open(self):
        page, _ = self.at_phone()
        self.assertEqual(page.locator("#tools [aria-pressed=true]").count(), 0)
        for tool, part in (("charts", "received a second"), ("recordings", "Record, or stop"), ("faults", "Where")):
            button = page.locator(f"#tool-{tool}")
            if button.is_hidden():
                continue
            button.click()
            expect(page.locator("#drawer")).to_contain_text(part)
            self.assertEqual(page.locator("#tools [aria-pressed=true]").count(), 1)
        self.assertEqual(self.problems, [])

    def test_faults_by_form(self):
        self.needs_mock()
        server = self.a_mock(phones=10)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&tool=faults")
        faults = server.relay.faults
        page.get_by_role("button", name="410 once").click()
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#drawer li", has_text="410-once")).to_contain_text("answer Unregistered, 1 time")
        made = {key: faults["410-once"][key] for key in ("at", "do", "when")}
        self.assertEqual(made, {"at": "provider", "do": {"answer": "Unregistered"}, "when": {"times": 1}})
        page.fill("#x-name", "slow line")
        page.select_option("#x-at", "delivery")
        page.select_option("#x-do", "delay")
        page.fill("#x-value", "3s")
        page.fill("#x-app", "com.example.mail")
        page.fill("#x-chance", "25")
        page.fill("#x-times", "")
        page.fill("#x-for", "5m")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#drawer .bad")).to_contain_text("a-z")
        page.fill("#x-name", "slow-line")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#drawer li", has_text="slow-line")).to_contain_text("at delivery: delay 3s of com.example.mail, 25 %, until 07:05:00")
        made = {key: faults["slow-line"][key] for key in ("at", "do", "when", "match", "for")}
        self.assertEqual(made, {"at": "delivery", "do": {"delay": "3s"}, "when": {"probability": .25}, "match": {"topic": "com.example.mail"}, "for": "5m"})
        page.select_option("#x-do", "drop")
        expect(page.locator("#x-value")).to_have_count(0)
        page.fill("#x-skip", "2")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#drawer li", has_text="slow-line")).to_contain_text("after 2, 25 %")
        # Another person deletes one.
        del faults["410-once"]
        expect(page.locator("#drawer li", has_text="410-once")).to_have_count(0)
        page.get_by_role("button", name="Delete slow-line").click()
        expect(page.locator("#drawer li", has_text="slow-line")).to_have_count(0)
        expect(page.locator("#drawer :focus")).to_be_attached()
        self.assertEqual(len(self.problems), 1, "the one with a bad name")

    def test_token_check(self):
        page = self.open()
        page.click("#tool-token")
        page.fill("#t-token", "eyJhbGciOiJFUzI1NiJ9.nonsense")
        expect(page.locator("#t-says")).to_contain_text("does not take it")
        expect(page.locator("#t-says pre")).to_have_count(0)

    def test_what_needs_a_virtual_clock_is_hidden_without_one(self):
        self.needs_mock()
        server = self.a_mock(clock="system", phones=10)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        for name in ("#tool-checkpoints", "#clock-tools"):
            expect(page.locator(name)).to_be_hidden()
        expect(page.locator("#tool-compose")).to_be_visible()
        expect(self.open().locator("#tool-checkpoints")).to_be_visible(visible=self.is_virtual())

    def test_checkpoints_are_saved_restored_and_deleted(self):
        if not self.is_virtual():
            self.skipTest("this relay has no virtual clock")
        page, life = self.at_phone()
        page.click("#tool-checkpoints")
        page.fill("#k-name", "before-it")
        page.get_by_role("button", name="Save", exact=True).click()
        restore = page.get_by_role("button", name="Restore before-it")
        expect(restore).to_be_visible()
        self.assertIn("before-it", [saved["name"] for saved in self.call("GET", "/v1/checkpoints")["checkpoints"]])
        then = self.call("GET", "/v1/clock")["now"]
        push = self.push(life)
        row = page.locator(f"#table tr[data-push='{push}']").first
        expect(row).to_be_visible()
        page.get_by_role("button", name="+20m", exact=True).click()
        expect(page.locator("#clock")).to_have_text(mock_server.stamp(then + 1_200_000)[11:19])
        restore.click()
        expect(page.locator("#toast")).to_contain_text("Back at before-it")
        self.assertEqual(self.call("GET", "/v1/clock")["now"], then)
        expect(row).to_have_count(0)
        expect(page.locator("#clock")).to_have_text(mock_server.stamp(then)[11:19])
        expect(page.locator("#pill")).to_have_text("live")
        again = self.push(life)
        expect(page.locator(f"#table tr[data-push='{again}']").first).to_be_visible()
        page.get_by_role("button", name="Delete before-it").click()
        expect(restore).to_have_count(0)
        self.assertNotIn("before-it", [saved["name"] for saved in self.call("GET", "/v1/checkpoints")["checkpoints"]])

    def test_checkpoint_has_the_name_that_was_typed(self):
        self.needs_mock()
        server = self.a_mock(phones=10)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&tool=checkpoints")
        page.fill("#k-name", "a?b")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator("#toast")).to_contain_text("a-z, 0-9 and -")
        page.fill("#k-name", "")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator("#k-name:invalid")).to_be_focused()
        self.assertEqual(len(self.problems), 1, "the bad name")
        self.assertEqual(server.relay.checkpoints, {})

    def test_policy_of_all_and_of_one_phone(self):
        page, life = self.at_phone()
        device, common = f"/v1/devices/{life['device']}", self.call("GET", "/v1/policy")["policy"]
        self.addCleanup(self.call, "PUT", "/v1/policy", {"policy": common})
        other = "strict" if common != "strict" else "documented"
        expect(page.locator("#policy")).to_have_value("")
        page.select_option("#policy", other)
        row = page.locator("#table tr", has_text="policy").first
        expect(row).to_contain_text(f"{other}, this phone")
        expect(page.locator("#policy")).to_have_value(other)
        self.assertEqual(self.call("GET", device)["budget"]["policy"], other)
        self.assertEqual(self.call("GET", "/v1/policy")["policy"], common)
        page.select_option("#policy", "")
        expect(row).to_contain_text(f"{common}, this phone")
        self.assertEqual(self.call("GET", device)["budget"]["policy"], common)
        page.click("#everyone")
        expect(page.locator("#policy")).to_have_value(common)
        page.select_option("#policy", other)
        expect(row).to_contain_text(f"{other}, all phones")
        expect(page.locator("#policy")).to_have_value(other)
        self.assertEqual(self.call("GET", "/v1/policy")["policy"], other)
        self.assertGreaterEqual(page.locator("#lanes .shape.change").count(), 1)
        self.call("PUT", "/v1/policy", {"policy": common})
        expect(page.locator("#policy")).to_have_value(common)
        self.assertEqual(self.problems, [])

    def test_changes_of_a_phone_have_a_mark_and_words(self):
        page, life = self.at_phone()
        row = page.locator("#table tbody tr").first
        for part, words in (("budget", "budget filled"), ("slots", "slots emptied")):
            self.call("DELETE", f"/v1/devices/{life['device']}/{part}")
            expect(row).to_contain_text(words)
            expect(row).to_contain_text("this phone")
            expect(row.locator(".shape.change")).to_have_count(1)
        expect(page.locator("#lanes .mark:not([data-push]) .shape.change").first).to_be_visible()
        page.reload()
        expect(page.locator("#table tr", has_text="slots emptied").first).to_be_visible()

    def test_fault_and_trace_are_in_a_life(self):
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        page, life = self.at_phone()
        if not self.call("GET", f"/v1/devices/{life['device']}")["connected"]:
            self.skipTest("that phone is away")
        fault = {"at": "delivery", "do": {"delay": "1s"}, "match": {"topic": life["topic"]}, "when": {"times": 1}}
        self.call("PUT", "/v1/faults/slow-test", fault)
        self.addCleanup(self.call, "DELETE", "/v1/faults/slow-test")
        push = self.push(life, faulty=True, traceparent=trace)
        rows = page.locator(f"#table tr[data-push='{push}']")
        expect(rows.filter(has=page.locator(".shape.fault"))).to_contain_text("delay")
        rows.first.click()
        step = page.locator("#push ol li", has=page.locator(".shape.fault"))
        expect(step).to_contain_text("delay")
        expect(page.locator("#push dl").last).to_contain_text(trace)
        self.assertEqual(self.problems, [])

    def test_density_shows_where_something_happened(self):
        page = self.open()
        bars = page.locator("#density path.bar")
        expect(bars.first).to_be_attached()
        heights = page.evaluate("[...document.querySelectorAll('#density path')].map((path) => path.getBBox().height)")
        # Of a relay with few pushes the bars are low.
        self.assertGreater(max(heights), 10 if not GIVEN else 3)
        box, thumb = page.locator("#density").bounding_box(), page.locator("#scrub").bounding_box()
        self.assertAlmostEqual(box["x"], thumb["x"], delta=1)
        self.assertAlmostEqual(box["width"], thumb["width"], delta=1)

    def test_lanes_that_stay_the_same_keep_their_nodes(self):
        if not self.is_virtual():
            self.skipTest("the lanes of this relay move with the time")
        page, life = self.at_phone()
        page.wait_for_timeout(1000)
        page.evaluate("document.querySelector('#lanes svg').kept = true; dispatchEvent(new Event('popstate'))")
        page.wait_for_timeout(300)
        self.assertTrue(page.evaluate("document.querySelector('#lanes svg').kept === true"))
        self.push(life)
        page.wait_for_function("() => !document.querySelector('#lanes svg').kept")

    def test_crowded_lanes_become_bars(self):
        self.needs_mock()
        server = self.a_mock(phones=300)
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev&span=3600000", width=2400)
        expect(page.locator("#lanes .mark").first).to_be_visible()
        self.assertEqual(page.locator("#lanes .bar").count(), 0)
        device = server.relay.active[0]
        for _ in range(120):
            with server.relay.lock:
                server.relay.advance_to(server.relay.now + 25_000)
                server.relay.push(device, next(iter(device.apps.values())), "visible")
        expect(page.locator("#lanes .bar").first).to_be_attached()
        expect(page.locator("#lanes text", has_text="marks").first).to_be_visible()
        self.assertLess(page.locator("#lanes *").count(), 1500)

    def test_wrong_token_asks_for_one(self):
        page = self.browser.new_context().new_page()
        self.addCleanup(page.context.close)
        page.goto(f"{self.origin}/#token=wrong")
        expect(page.locator("#sign-in")).to_be_visible()
        expect(page.locator("#sign-wrong")).to_contain_text("is wrong")
        page.fill("#sign-token", self.token)
        page.get_by_role("button", name="Go on").click()
        expect(page.locator("#pill")).to_have_text("live")

    def test_export_is_one_file_that_runs_nothing(self):
        page, life = self.at_phone()
        with page.expect_download() as download:
            page.get_by_role("button", name="Export", exact=True).click()
        self.assertTrue(download.value.suggested_filename.endswith(".html"))
        file = Path(self.enterContext(tempfile.TemporaryDirectory())) / "run.html"
        download.value.save_as(file)
        text = file.read_text()
        self.assertIn(life["uniqueId"], text)
        self.assertIn('class="arc"', text)
        self.assertNotIn(self.token + '"', text)
        self.assertNotRegex(text, r'(src|href)="http')
        self.assertEqual(page.evaluate("watched.violations"), [])
        exported = self.browser.new_context(java_script_enabled=False).new_page()
        self.addCleanup(exported.context.close)
        exported.goto(file.as_uri())
        self.assertGreater(exported.locator("table tbody tr").count(), 3)
        self.assertGreater(exported.locator("svg .mark").count(), 1)

    # Stream.

    def test_hidden_tab_lets_go_and_resumes_without_loss(self):
        self.needs_mock()
        page, life = self.at_phone()
        page.evaluate("""() => { Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
          document.dispatchEvent(new Event("visibilitychange")); }""")
        answer = self.call("POST", "/v1/push", {"to": life["device"], "topic": life["topic"], "headers": {"apns-push-type": "alert"}, "payload": {"aps": {"alert": "x"}}})
        row = page.locator(f"#table tr[data-push='{answer['uniqueId']}']")
        self.assertEqual(page.evaluate("watched.streams"), 1)
        self.assertEqual(row.count(), 0)
        page.evaluate("""() => { delete document.hidden; document.dispatchEvent(new Event("visibilitychange")); }""")
        expect(row.first).to_be_visible()
        self.assertEqual(page.evaluate("watched.streams"), 2)

    def test_five_thousand_events_a_second_make_no_long_task(self):
        self.needs_mock()
        server = self.a_mock()
        page = self.open(f"http://127.0.0.1:{server.server_address[1]}/#token=dev")
        expect(page.locator("#lanes svg")).to_be_visible()
        page.evaluate("new Promise((done) => requestIdleCallback(done))")
        trace = Path(self.enterContext(tempfile.TemporaryDirectory())) / "trace.json"
        self.browser.start_tracing(page=page, path=trace, categories=["toplevel", "devtools.timeline"])
        before = server.relay.sequence
        self.call("POST", "/mock/flood", {"rate": 5000, "seconds": 3}, server)
        last = f"f100d000-0000-4000-8000-{15_000 // 3 - 1:012x}"
        page.wait_for_selector(f"#table tr[data-push='{last}']", timeout=20_000)
        self.assertGreaterEqual(server.relay.sequence - before, 15_000)
        self.assertLessEqual(page.locator("#table tbody tr").count(), 60)
        self.assertLess(page.locator("#lanes *").count(), 3000)
        self.browser.stop_tracing()
        # Processor time, not time on the wall: the machine may be busy with other things.
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("ph") == "X"]
        drawing = Counter((event["pid"], event["tid"]) for event in events if event["name"] == "FireAnimationFrame")
        main, frames = drawing.most_common(1)[0]
        self.assertGreater(frames, 10)
        tasks = [event["tdur"] / 1000 for event in events if (event["pid"], event["tid"]) == main and event["name"].endswith("RunTask") and "tdur" in event]
        self.assertGreater(len(tasks), frames)
        self.assertEqual([round(task) for task in tasks if task > 50], [], "long tasks, in milliseconds")

    # For everybody.

    def test_accessible_in_both_themes(self):
        for scheme in ("light", "dark"):
            with self.subTest(scheme):
                page, life = self.at_phone(scheme=scheme)
                page.click(f"#table tr[data-push='{life['uniqueId']}'] >> nth=0")
                page.wait_for_selector("#push ol")
                for tool in (None, "compose", "recordings", "charts", "token", "faults", "checkpoints"):
                    if tool and not page.locator(f"#tool-{tool}").is_hidden():
                        page.click(f"#tool-{tool}")
                        expect(page.locator("#drawer h2")).to_be_visible()
                    self.assertEqual(page.evaluate(UNNAMED), [], tool)
                    self.assertEqual(page.evaluate(CONTRAST), [], tool)
                    self.assertEqual(self.axe(page), [], tool)
        self.assertEqual(self.problems, [])

    def axe(self, page):
        try:
            from axe_playwright_python.sync_playwright import Axe
        except ImportError:
            return []
        found = Axe().run(page).response["violations"]
        return [f"{rule['id']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]]

    def test_landmarks_and_focus_order(self):
        page = self.open()
        for landmark in ("header", "nav", "main", "footer", "#push"):
            expect(page.locator(landmark)).to_be_visible()
        order = []
        for _ in range(400):
            page.keyboard.press("Tab")
            order.append(page.evaluate("document.activeElement.closest('header, nav, main, #push, footer')?.tagName"))
            if order[-1] == "FOOTER":
                break
        self.assertEqual(order[0], "HEADER")
        for part in ("NAV", "MAIN", "FOOTER"):
            self.assertIn(part, order)
        self.assertEqual(order, sorted(order, key=["HEADER", "NAV", "MAIN", "SECTION", "FOOTER"].index))

    def test_themes_differ(self):
        colours = [self.open(scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor") for scheme in ("light", "dark")]
        self.assertNotEqual(*colours)

    def test_forced_colours_keep_the_marks(self):
        page, _ = self.at_phone(forced_colors="active")
        self.assertGreater(page.locator("#lanes .mark").count(), 1)
        strokes = page.evaluate("[...new Set([...document.querySelectorAll('#lanes .shape')].map((node) => getComputedStyle(node).stroke))]")
        self.assertEqual(len(strokes), 1, strokes)

    def test_phone_width(self):
        page, life = self.at_phone(width=400, height=860, has_touch=True)
        wide = "document.documentElement.scrollWidth - innerWidth"
        self.assertLessEqual(page.evaluate(wide), 0)
        expect(page.locator("#phones")).to_be_hidden()
        marks = page.locator("#lanes .mark")
        expect(marks.first).to_be_visible()
        tops = [marks.nth(index).bounding_box()["y"] for index in range(min(4, marks.count()))]
        self.assertEqual(tops, sorted(set(tops)), "one mark below the other")
        self.assertGreaterEqual(page.locator("#lanes path.arc").count(), 1)
        page.locator("#lanes .mark[data-push]").first.click()
        expect(page.locator("#push h2")).to_contain_text("push #")
        self.assertLessEqual(page.evaluate(wide), 0)
        page.click("#views [value=phones]")
        expect(page.locator("#phone-list a").first).to_be_visible()
        self.assertLessEqual(page.evaluate(wide), 0)
        page.click("#views [value=push]")
        for view in ("phones", "time", "push"):
            page.click(f"#views [value={view}]")
            self.assertEqual(self.axe(page), [], view)
        page.click("#tool-compose")
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_attached()
        self.assertLessEqual(page.evaluate(wide), 0)

    def test_header_is_one_line_on_a_phone(self):
        page = self.open(width=390, height=844)
        boxes = page.evaluate("[...document.querySelectorAll('header > :not(.grow)')].filter((node) => node.checkVisibility()).map((node) => node.getBoundingClientRect()).map(({ top, bottom, right }) => [top, bottom, right])")
        self.assertLess(page.locator("header").bounding_box()["height"], 56)
        self.assertLess(max(top for top, _, _ in boxes), min(bottom for _, bottom, _ in boxes))
        self.assertLessEqual(max(right for _, _, right in boxes), 390)
        self.assertTrue(page.locator("#light").get_attribute("aria-label"))
        if self.is_virtual():
            page.click("#clock-more")
            expect(page.get_by_role("button", name="+20m", exact=True)).to_be_visible()
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 390)

    def test_markup_says_what_it_means(self):
        page, life = self.at_phone()
        self.assertEqual(page.evaluate("document.querySelectorAll('th:not([scope])').length"), 0)
        page.click(f"#table tr[data-push='{life['uniqueId']}'] >> nth=0")
        expect(page.locator("#push h3").first).to_be_visible()
        self.assertEqual(page.evaluate("document.querySelectorAll('th:not([scope]), [style]').length"), 0)
        empty = "[...document.querySelectorAll('*')].flatMap((node) => [...node.attributes].filter(({ name, value }) => value === '' && !/^(hidden|required|disabled|value|open|class|href|placeholder|formnovalidate|alt)$/.test(name)).map(({ name }) => `${node.tagName} ${name}`))"
        self.assertEqual(page.evaluate(empty), [])
        self.assertEqual(page.evaluate("[...document.querySelectorAll('[class=\"\"]')].filter((node) => node.tagName !== 'TR').length"), 0)

    def test_says_what_happens_but_not_often(self):
        self.needs_mock()
        page, life = self.at_phone()
        page.evaluate("""() => { window.said = []; new MutationObserver(() => said.push(performance.now())).observe(document.getElementById("live"), { childList: true }); }""")
        for _ in range(5):
            self.call("POST", "/v1/push", {"to": life["device"], "topic": life["topic"], "headers": {"apns-push-type": "alert"}, "payload": {"aps": {"alert": "x"}}})
        expect(page.locator("#live")).to_contain_text("sent")
        self.assertEqual(page.locator("#live").get_attribute("aria-live"), "polite")
        self.assertLessEqual(page.evaluate("said.length"), 2)

    # Helpers.

    def is_virtual(self):
        return self.call("GET", "/v1/clock")["mode"] == "virtual"

    def push(self, life, faulty=False, **headers):
        """Sends a visible push to that phone and app. The mock takes a fault from the payload."""
        payload = {"aps": {"alert": "x"}, **({"faulty": True} if faulty else {})}
        return self.call("POST", "/v1/push", {"to": life["device"], "topic": life["topic"], "payload": payload,
                                              "headers": {"apns-push-type": "alert", **headers}})["uniqueId"]

    def needs_mock(self):
        if GIVEN:
            self.skipTest("needs the mock server")

    def a_mock(self, **options):
        server = mock_server.start(**options)
        self.addCleanup(mock_server.stop, server)
        return server


if __name__ == "__main__":
    unittest.main(verbosity=2)
