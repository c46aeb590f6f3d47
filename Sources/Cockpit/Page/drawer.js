// The drawer's tools, the copies of one push, and the export of a run.

import { $, LEGEND, api, attempt, button, clockText, dayText, download, entries, get, h, known, number, reasonOf, request,
  s, shortId, shortTopic, toast, wordOf } from "./kit.js";
import { drawWide, icon } from "./lanes.js";
import { page, view } from "./cockpit.js";

export const TITLES = { compose: "Compose", faults: "Faults", refusals: "Refusals", recordings: "Recordings", token: "Token check", charts: "Charts", lock: "Lock screen" };
const TOOLS = { compose, faults, refusals, recordings, token, charts, lock };
let open, refresh;

export function openTool(name) {
  if (open === name) return refresh?.();
  open = name;
  const body = h("div.cols");
  $("drawer").replaceChildren(h("div.title", h("h2", TITLES[name]), button("Close", () => page.go({ tool: "" }))), body);
  $("drawer").hidden = false;
  refresh = TOOLS[name](body);
}
export function closeTool() {
  open = refresh = undefined;
  $("drawer").hidden = true;
}
const field = (label, kind, props = {}) => h("label", label, h(kind, { spellcheck: "false", autocomplete: "off", ...props }));
const list = (items, none) => h("ul", items.length ? items.map((item) => h("li.row", item)) : h("li.dim", none));

// Compose, with lint while typing.

const TEMPLATES = { Silent: ["background", 5, { aps: { "content-available": 1 } }], Alert: ["alert", 10, { aps: { alert: { title: "Anna", body: "Dinner?" }, sound: "default" } }],
  Badge: ["alert", 10, { aps: { badge: 3 } }] };
function compose(body) {
  const to = field("To", "input#c-to", { placeholder: "device id or token" }), app = field("App", "input#c-app", { list: "apps", placeholder: "the phone's only app" }), apps = h("datalist#apps");
  const head = field("Headers", "textarea#c-headers", { rows: 4 }), text = field("Payload", "textarea#c-payload", { rows: 7 }), says = h("div#c-lint"), answer = h("p#c-answer", { role: "status" });
  const draft = () => ({ headers: Object.fromEntries(head.control.value.trim().split("\n").map((line) => line.split(/:(.*)/, 2).map((part) => part?.trim() ?? ""))), payload: JSON.parse(text.control.value) });
  let timer, without;
  const check = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      try {
        const push = draft(), { kind, warnings, refusal } = without ? { kind: "not checked", warnings: [] } : await api("POST", "/v1/lint", push);
        says.replaceChildren(h("p.dim", `${kind}, ${number(new TextEncoder().encode(text.control.value).length)} bytes`), ...warnings.map((warning) => h("p.warn", `⚠ ${warning.text}`)),
          h(refusal ? "p.bad" : "p.good", refusal ? `✗ would be refused: ${refusal.status} ${refusal.reason}` : warnings.length || without ? "" : "✓ nothing odd"));
      } catch (error) {
        without ||= error.isMissing;
        says.replaceChildren(h("p.bad", without ? "" : `✗ ${error.message}`));
      }
    }, 150);
  };
  const send = (count) => attempt(async () => {
    const push = draft();
    let last;
    do {
      last = await api("POST", "/v1/push", { to: to.control.value.trim(), ...(app.control.value && { topic: app.control.value.trim() }), ...push });
      known.sent.set(last.uniqueId, push);
      if (known.sent.size > 300) known.sent.delete(known.sent.keys().next().value);
    } while (last.status === 200 && --count);
    const good = last.status === 200;
    answer.replaceChildren(h(good ? "b.good" : "b.bad", `${good ? "✓" : "✗"} ${last.status} ${last.reason ?? ""} `), good ? h("a", { href: page.urlOf({ push: last.uniqueId }) }, shortId(last.uniqueId)) : last.message ?? "");
  });
  const pick = ([type, priority, payload]) => {
    head.control.value = `apns-push-type: ${type}\napns-priority: ${priority}`;
    text.control.value = JSON.stringify(payload, null, 2);
    check();
  };
  body.oninput = check;
  body.onkeydown = (event) => event.key === "Enter" && event.ctrlKey && send(1);
  body.append(h("div", to, app, apps, head), h("div", h("div.row", Object.entries(TEMPLATES).map(([name, template]) => button(name, () => pick(template)))), text),
    h("div", h("h3", "Lint"), says, h("div.row", h("button.main#c-send", { onclick: () => send(1) }, "Send"), button("Send 5", () => send(5)), h("kbd", "Ctrl+Enter")), answer));
  pick(TEMPLATES.Silent);
  setTimeout(() => (view.phone ? text : to).control.focus());
  let told;
  const update = () => {
    if (!page.phone?.apps || told === view.phone) return;
    told = to.control.value = view.phone;
    app.control.value = page.phone.apps[0]?.topic ?? "";
    apps.replaceChildren(...page.phone.apps.map(({ topic }) => h("option", { value: topic })));
  };
  update();
  return update;
}

function faults(body) {
  const name = field("Name", "input", { value: "flaky" }), text = field("Fault", "textarea", { rows: 4 }), box = h("div");
  text.control.value = JSON.stringify({ at: "provider", do: { answer: "ServiceUnavailable" }, when: { skip: 2, times: 3 } }, null, 1);
  const load = async () => {
    const { faults: all } = await get("/v1/faults");
    box.replaceChildren(list(all.map((fault) => [h("b", fault.name), `at ${fault.at}: ${Object.entries(fault.do).flat().join(" ")}`, h("span.dim", `seen ${number(fault.seen)}, hit ${number(fault.hit)}`),
      button("Remove", () => put("DELETE", fault.name), { "aria-label": `Remove ${fault.name}` })]), "No faults."));
  };
  const put = (method, name, input) => api(method, `/v1/faults/${encodeURIComponent(name)}`, input).then(load);
  body.append(box, h("div", name, text, button("Add", () => put("PUT", name.control.value, JSON.parse(text.control.value)))));
  attempt(load);
  return () => attempt(load);
}

const table = (columns, rows) => h("table", h("thead", h("tr", columns.map((name) => h("th", name)))), h("tbody", rows.map((row) => h("tr", row.map((cell) => h("td", cell ?? ""))))));
function refusals(body) {
  body.className = "";
  const update = () => body.replaceChildren(known.refusals.length ? table(["time, UTC", "status", "reason", "cause", "app"],
    known.refusals.slice(0, 60).map(({ time, status, reason, cause, topic }) => [clockText(time), String(status), reason, cause, topic])) : h("p.dim", "Nothing was refused."));
  update();
  return update;
}

const freshName = (prefix) => `${prefix}-${clockText(page.now()).replaceAll(":", "")}-${Date.now().toString(36).slice(-4)}`;
export const toggleRecording = (payloads = "aps") => attempt(async () => {
  const running = (await get("/v1/recordings")).recordings.find(({ state }) => state === "running"), name = running?.name ?? freshName("run");
  await (running ? api("POST", `/v1/recordings/${name}/stop`, {}) : api("PUT", `/v1/recordings/${name}`, { payloads }));
  toast(running ? `${name} is recorded` : `Recording ${name}`);
  if (open === "recordings") refresh();
});
function recordings(body) {
  const left = h("div"), middle = h("div"), payloads = h("select", { "aria-label": "Payloads" }, ["aps", "none", "all"].map((name) => h("option", { value: name }, `payloads: ${name}`)));
  const load = async () => {
    const { recordings: all } = await get("/v1/recordings");
    left.replaceChildren(list(all.map(({ name, state, bytes }) => [h("b", name), h("span.dim", `${state}, ${number(bytes)} bytes`), state === "stopped" && button("Save file", async () =>
      download(`${name}.prr`, "", await (await request("GET", `/v1/recordings/${name}/file`)).blob()), { "aria-label": `Save ${name}` })]), "No recordings."));
    const points = await get("/v1/checkpoints").catch(() => null);
    const act = (text, name, method, rest = "") => button(text, () => api(method, `/v1/checkpoints/${name}${rest}`, method === "DELETE" ? undefined : {}).then(load), { "aria-label": `${text} ${name}` });
    if (points) middle.replaceChildren(h("h3", "Checkpoints"), list(points.checkpoints.map(({ name, at }) => [h("b", name), h("span.dim", clockText(at)), act("Go back", name, "POST", "/restore"), act("Delete", name, "DELETE")]), "No checkpoints."),
      button("Make one", () => api("PUT", `/v1/checkpoints/${freshName("point")}`, {}).then(load)));
  };
  body.append(h("div", left, h("div.row", button("Record, or stop", () => toggleRecording(payloads.value)), payloads)), middle,
    h("div", h("h3", "This run"), h("p.dim", "One HTML file to attach to a ticket."), button("Export", exportRun)));
  attempt(load);
  return () => attempt(load);
}

function token(body) {
  const input = field("A provider token. It is sent to this relay only.", "textarea#t-token", { rows: 4, placeholder: "eyJ…" }), says = h("div#t-says", { role: "status" });
  input.oninput = async () => {
    try {
      const { valid, problems, ...rest } = await api("POST", "/v1/token-check", { token: input.control.value.trim().replace(/^bearer\s+/i, "") });
      says.replaceChildren(h(valid ? "p.good" : "p.bad", valid ? "✓ This relay takes it." : "✗ This relay does not take it."), ...problems.map((text) => h("p.warn", `⚠ ${text}`)), h("pre", JSON.stringify(rest, null, 2)));
    } catch (error) {
      error.isMissing ? page.hide("token") : says.replaceChildren(error.message);
    }
  };
  body.append(input, says);
}

function charts(body) {
  const update = () => {
    const all = known.stats, counts = {};
    const line = (key, now) => {
      const points = all.map((sample, index) => {
        const before = all[index - 1];
        return now ? sample[key] : before ? Math.max(0, sample[key] - before[key]) * 1000 / Math.max(200, sample.wall - before.wall) : 0;
      });
      const top = Math.max(1, ...points), name = `${key} ${now ? "now" : "a second"}`;
      return h("div", h("div.title", h("span.dim", name), h("b", number(Math.round(points.at(-1) ?? 0)))), s("svg", { viewBox: "0 0 100 52", preserveAspectRatio: "none", role: "img", "aria-label": `${name}, at most ${Math.round(top)}` },
        s("path", { d: points.map((value, index) => `${index ? "L" : "M"}${index / Math.max(1, points.length - 1) * 100} ${50 - value / top * 46}`).join("") || "M0 50" })));
    };
    for (const { mark } of known.entries) counts[mark] = (counts[mark] ?? 0) + 1;
    body.replaceChildren(h("div.charts", line("received"), line("delivered")), h("div.charts", line("waiting", true), line("refused")), h("div", h("h3", `The last ${number(known.entries.length)} marks`),
      Object.entries(counts).map(([mark, count]) => h("div.bar", h("span", icon(mark), LEGEND[mark]), h("meter", { max: known.entries.length, value: count, "aria-label": LEGEND[mark] }), number(count)))));
  };
  update();
  return update;
}

function lock(body) {
  let told;
  const update = async () => {
    const time = view.at ?? page.now(), pushes = entries().filter(({ life, step, t }) => life.device === view.phone && life.kind === "visible" && step.step === "sent" && t <= time).slice(-4).reverse();
    const face = view.phone + pushes.map(({ key }) => key) + clockText(time, false);
    if (face === told) return;
    told = face;
    for (const { life } of pushes) life.payload ??= known.sent.get(life.uniqueId)?.payload ?? (await get(`/v1/notifications/${life.uniqueId}`).catch(() => ({}))).payload ?? {};
    body.replaceChildren(view.phone ? h("div.screen", h("b", clockText(time, false)), dayText(time), pushes.map(({ life, t }) => {
      const alert = life.payload.aps?.alert;
      return h("div", h("small", `${shortTopic(life.topic)}, ${clockText(t, false)}`), alert?.title && h("strong", alert.title), h("p", alert?.body ?? (typeof alert === "string" ? alert : `Push ${shortId(life.uniqueId)}; its text is not kept.`)));
    })) : h("p.dim", "Choose a phone first."));
  };
  update();
  return update;
}

// One push as something to paste.

const curl = (path, body) => `curl -s ${location.origin}${path} \\\n  -H "authorization: bearer $(cat .pushrelay/admin.token)" \\\n  -H 'content-type: application/json' \\\n  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`;
const payloadOf = (life, payload) => payload ?? { aps: life.kind === "silent" ? { "content-available": 1 } : { alert: "Hello" } };
const headersOf = ({ uniqueId, kind }) => known.sent.get(uniqueId)?.headers ?? { "apns-push-type": kind === "silent" ? "background" : "alert", "apns-priority": kind === "silent" ? "5" : "10" };
export const copies = {
  Link: ({ uniqueId }) => `${location.origin}/#push=${uniqueId}`,
  curl: (life, payload) => curl("/v1/push", { to: life.token, headers: headersOf(life), payload: payloadOf(life, payload) }),
  "Wait call": ({ uniqueId }) => curl("/v1/wait", { expect: { what: "delivered", push: uniqueId }, ...(page.isVirtual && { within: "1h", advance: true }), timeout: "10s" }),
  Scenario: (life, payload) => {
    const app = shortTopic(life.topic), { step, via } = life.entries.at(-1)?.step ?? { step: "received" };
    return JSON.stringify({ title: `Push ${shortId(life.uniqueId)}`, length: "3h", phones: [{ name: "phone", apps: [{ name: app }] }],
      events: [{ at: "5m", push: { name: "one", to: `phone/${app}`, type: headersOf(life)["apns-push-type"], payload: payloadOf(life, payload) } }], expect: [{ expect: { what: step, push: "one", ...(via && { why: via }) } }] }, null, 2);
  },
};

// A run as one file: nothing in it runs or loads anything.

export function exportRun() {
  const lanes = page.laneView(), all = lanes.entries.slice(-3000), { counters } = known;
  const doc = document.implementation.createHTMLDocument(`push-relay, ${dayText(lanes.now)} ${clockText(lanes.now)}`);
  const steps = all.map(({ step, life }) => ({ ...step, uniqueId: life.uniqueId, id: life.id, topic: life.topic, kind: life.kind, device: life.device }));
  doc.documentElement.lang = "en";
  doc.head.append(h("meta", { charset: "utf-8" }), h("style", [...document.styleSheets[0].cssRules].map((rule) => rule.cssText).filter((text) => /^(:root|#lanes|#legend|table|t[hd]|svg|\.dim)/.test(text)).join("\n"),
    "body{background:var(--bg);color:var(--ink);font:14px system-ui,sans-serif;margin:24px}"));
  doc.body.append(h("h1", doc.title), h("p", `push-relay ${page.overview.version}, policy ${page.overview.policy}. ${view.phone && `Phone ${view.phone}. `}Counters: ${["received", "delivered", "replaced", "expired", "waiting"].map((key) => `${number(counters[key])} ${key}`).join(", ")}. Times are UTC.`),
    h("div#lanes", drawWide({ ...lanes, entries: all, width: 1360, busy: false })), $("legend").cloneNode(true),
    table(["time", "push", "phone", "app", "what", "why, until when"], all.toReversed().map((entry) => [clockText(entry.t), entry.life.uniqueId, entry.life.device, entry.life.topic, wordOf(entry), reasonOf(entry)])),
    h("script", { type: "application/json" }, JSON.stringify({ exported: lanes.now, counters, steps }).replaceAll("<", "\\u003c")));
  download(`push-relay-${dayText(lanes.now)}-${clockText(lanes.now).replaceAll(":", "")}.html`, "text/html", "<!doctype html>\n" + doc.documentElement.outerHTML);
  toast("The run is saved as one HTML file");
}
