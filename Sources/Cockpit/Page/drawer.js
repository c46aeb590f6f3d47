// The drawer's tools: compose, faults, refusals, recordings, token check, charts, lock screen; copies and export.

import { $, LEGEND, api, attempt, clockText, dayText, download, get, h, known, number, reasonOf, reconcile, request,
  s, shortId, shortPhone, shortTopic, toast, wordOf } from "./kit.js";
import { drawWide, icon } from "./lanes.js";
import { page, view } from "./cockpit.js";

const TITLES = { compose: "Compose", faults: "Faults", refusals: "Refusals", recordings: "Recordings and checkpoints",
  token: "Token check", charts: "Charts", lock: "Lock screen" };
const TOOLS = { compose, faults, refusals, recordings, token: tokenCheck, charts, lock };
let open, refresh;

export function openTool(name) {
  if (!TOOLS[name] || page.missing.has(name)) return closeTool();
  if (open === name) return refresh?.();
  open = name;
  refresh = undefined;
  const body = h("div", {});
  $("drawer").replaceChildren(h("div", { class: "title" }, h("h2", { text: TITLES[name] }),
    h("button", { text: "Close", onclick: () => page.go({ tool: null }) })), body);
  $("drawer").hidden = false;
  $("drawer").setAttribute("aria-label", TITLES[name]);
  refresh = TOOLS[name](body);
}
export function closeTool() {
  open = refresh = undefined;
  $("drawer").hidden = true;
  $("drawer").replaceChildren();
}
export function refreshTool(name) {
  if (open === name) refresh?.(true);
}
/** Hides a tool whose route is not there. */
function hide(name) {
  page.missing.add(name);
  const button = document.querySelector(`[data-tool=${name}]`);
  if (button) button.hidden = true;
  if (open === name) page.go({ tool: null }, true);
  toast("This relay does not have that yet");
}
const field = (label, control) => h("label", { text: label }, control);
const select = (options, props = {}) => h("select", props, ...options.map((option) => h("option",
  Array.isArray(option) ? { value: option[0], text: option[1] } : { text: option })));
/** A button that wants to be pressed twice. */
function careful(text, work) {
  const button = h("button", { text, onclick: () => {
    if (button.textContent === text) {
      button.textContent = `Really: ${text.toLowerCase()}?`;
      setTimeout(() => (button.textContent = text), 4000);
    } else work();
  } });
  return button;
}

// Compose.

const TYPES = ["background", "alert", "voip", "complication", "fileprovider", "mdm", "liveactivity", "location",
  "pushtotalk", "widgets", "controls", "accessory"];
const TEMPLATES = {
  Silent: ["background", "5", { aps: { "content-available": 1 } }],
  Alert: ["alert", "10", { aps: { alert: { title: "Anna", body: "Dinner?" }, sound: "default" } }],
  "Alert, wakes app": ["alert", "10", { aps: { alert: "Dinner?", "content-available": 1 } }],
  Badge: ["alert", "10", { aps: { badge: 3 } }],
};
function compose(body) {
  const to = h("input", { id: "c-to", value: view.phone ?? "", spellcheck: "false", placeholder: "device id or token", autocomplete: "off" });
  const topics = h("datalist", { id: "c-topics" });
  const topic = h("input", { id: "c-topic", list: "c-topics", spellcheck: "false", placeholder: "the phone's only app", autocomplete: "off" });
  const type = select(TYPES, { id: "c-type" }), priority = select(["5", "10", "1"], { id: "c-priority" });
  const expires = select([["", "30 days"], ["0", "never stored"], ["60", "in 1 min"], ["3600", "in 1 h"]], { id: "c-expires" });
  const collapse = h("input", { id: "c-collapse", maxlength: "64" });
  const payload = h("textarea", { id: "c-payload", rows: "7", spellcheck: "false" });
  const says = h("div", { id: "c-lint", "aria-live": "off" }), answer = h("div", { id: "c-answer", role: "status" });
  let timer, lintIsMissing = false;

  function parsed() {
    const value = JSON.parse(payload.value);
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("the payload is a JSON object");
    return value;
  }
  function headers() {
    const found = { "apns-push-type": type.value, "apns-priority": priority.value };
    if (expires.value) found["apns-expiration"] = expires.value === "0" ? "0" : String(Math.floor(page.now() / 1000) + Number(expires.value));
    if (collapse.value) found["apns-collapse-id"] = collapse.value;
    return found;
  }
  const line = (kind, text) => h("p", { class: kind, text });
  async function check() {
    let value;
    try {
      value = parsed();
    } catch (error) {
      says.replaceChildren(line("bad", `✗ ${error.message}`));
      return;
    }
    const size = new TextEncoder().encode(payload.value).length;
    if (lintIsMissing) return says.replaceChildren(line("dim", `${size} bytes`));
    try {
      const found = await api("POST", "/v1/lint", { headers: headers(), payload: value });
      says.replaceChildren(line("dim", `${found.kind}, ${number(size)} bytes`),
        ...(found.refusal ? [line("bad", `✗ would be refused: ${found.refusal.status} ${found.refusal.reason}, ${found.refusal.message}`)] : []),
        ...found.warnings.map((warning) => line("warn", `⚠ ${warning.text}`)),
        ...(found.warnings.length || found.refusal ? [] : [line("good", "✓ nothing odd")]));
    } catch (error) {
      lintIsMissing = error.isMissing;
      says.replaceChildren(line("dim", lintIsMissing ? `${size} bytes` : error.message));
    }
  }
  const typed = () => {
    clearTimeout(timer);
    timer = setTimeout(check, 200);
  };
  async function send(count) {
    await attempt(async () => {
      let last;
      for (let i = 0; i < count; i++) {
        const value = parsed();
        last = await api("POST", "/v1/push", { to: to.value.trim(), ...(topic.value.trim() ? { topic: topic.value.trim() } : {}), headers: headers(), payload: value });
        if (last.status !== 200) break;
        known.payloads.set(last.uniqueId, { payload: value, headers: headers() });
        if (known.payloads.size > 300) known.payloads.delete(known.payloads.keys().next().value);
      }
      const good = last.status === 200;
      answer.replaceChildren(h("p", { class: good ? "good" : "bad" }, `${good ? "✓" : "✗"} ${last.status} ${last.reason ?? ""} ${last.message ?? ""} `,
        good ? h("a", { href: `#push=${last.uniqueId}`, text: shortId(last.uniqueId),
          onclick: (event) => { event.preventDefault(); event.stopPropagation(); page.go({ push: last.uniqueId }); } }) : ""));
    });
  }
  function pick(name) {
    const [kind, level, value] = TEMPLATES[name];
    type.value = kind;
    priority.value = level;
    payload.value = JSON.stringify(value, null, 2);
    check();
  }
  const form = h("div", { class: "cols" },
    h("div", {}, h("div", { class: "fields" }, field("To", to), field("App", topic), field("Push type", type), field("Priority", priority),
      field("Expires", expires), field("Collapse id", collapse)), topics),
    h("div", {}, h("div", { class: "row", role: "group", "aria-label": "Payload templates" }, ...Object.keys(TEMPLATES).map((name) => h("button", { text: name, onclick: () => pick(name) }))),
      field("Payload", payload)),
    h("div", {}, h("h3", { text: "Lint" }), says, h("div", { class: "row" }, h("button", { class: "main", id: "c-send", text: "Send", onclick: () => send(1) }),
      h("button", { text: "Send 5", onclick: () => send(5) }), h("span", { class: "dim", text: "Ctrl+Enter" })), answer));
  form.addEventListener("input", typed);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(1);
  });
  body.append(form);
  pick("Silent");
  let phone;
  const update = () => {
    const apps = page.phone?.apps ?? [];
    if (view.phone && phone !== view.phone && (!to.value || to.value === phone)) to.value = view.phone;
    if (view.phone && apps.length && (phone !== view.phone || !topic.value)) topic.value = apps[0].topic;
    phone = apps.length ? view.phone : phone;
    reconcile(topics, apps, (app) => app.topic, (app) => h("option", { value: app.topic }));
  };
  update();
  requestAnimationFrame(() => (to.value ? payload : to).focus());
  return update;
}

// Faults.

function faults(body) {
  const list = h("ul", { class: "list" });
  const name = h("input", { value: "flaky", pattern: "[a-z0-9-]{1,64}" });
  const place = select(["provider", "connection", "delivery", "journal"]);
  const does = select(["answer", "delay", "goaway", "reset", "halfClose", "blackhole", "stall", "drop", "duplicate", "failWrite"]);
  const how = h("input", { value: "ServiceUnavailable" });
  const topic = h("input", { placeholder: "any" }), skip = h("input", { type: "number", min: "0", value: "0" });
  const times = h("input", { type: "number", min: "1", placeholder: "always" });
  does.onchange = () => (how.value = { answer: "ServiceUnavailable", delay: "2s" }[does.value] ?? "");
  const add = () => attempt(async () => {
    const when = { ...(Number(skip.value) ? { skip: Number(skip.value) } : {}), ...(times.value ? { times: Number(times.value) } : {}) };
    await api("PUT", `/v1/faults/${encodeURIComponent(name.value)}`, { at: place.value, ...(topic.value ? { match: { topic: topic.value } } : {}),
      do: { [does.value]: how.value || true }, ...(Object.keys(when).length ? { when } : {}) });
    load();
  });
  const load = async () => {
    try {
      const found = (await get("/v1/faults")).faults;
      list.replaceChildren(...found.map((fault) => h("li", { class: "row" }, h("b", { text: fault.name }),
        `at ${fault.at}: ${Object.entries(fault.do ?? {}).map((pair) => pair.join(" ")).join()}${fault.match?.topic ? `, ${fault.match.topic}` : ""}`,
        h("span", { class: "dim", text: `seen ${number(fault.seen)}, hit ${number(fault.hit)}` }),
        h("button", { text: "Remove", "aria-label": `Remove ${fault.name}`, onclick: () => attempt(async () => {
          await api("DELETE", `/v1/faults/${encodeURIComponent(fault.name)}`);
          load();
        }) }))), found.length ? "" : h("li", { class: "dim", text: "No faults." }));
    } catch (error) {
      if (error.isMissing) hide("faults");
    }
  };
  body.append(list, h("h3", { text: "Add a fault" }), h("div", { class: "fields" }, field("Name", name), field("At", place), field("Does", does), field("With", how),
    field("App", topic), field("Skip the first", skip), field("Times", times), h("button", { class: "main", text: "Add", onclick: add })));
  load();
  return (told) => told && load();
}

// Refusals.

function refusals(body) {
  const rows = h("tbody");
  body.append(h("table", { "aria-label": "Refused requests, newest first" }, h("thead", {}, h("tr", {}, ...["time, UTC", "status", "reason", "cause", "app"].map((text) => h("th", { scope: "col", text })))), rows));
  const update = () => rows.replaceChildren(...known.refusals.slice(0, 60).map((refusal) => h("tr", {}, h("td", { text: clockText(refusal.time) }),
    h("td", { text: refusal.status }), h("td", { text: refusal.reason }), h("td", { text: refusal.cause }), h("td", { text: refusal.topic ?? "" }))),
  ...(known.refusals.length ? [] : [h("tr", {}, h("td", { colspan: "5", text: "Nothing was refused." }))]));
  update();
  return update;
}

// Recordings and checkpoints.

const freshName = (prefix) => `${prefix}-${new Date(page.now()).toISOString().slice(11, 19).replaceAll(":", "")}-${Math.random().toString(36).slice(2, 5)}`;
export async function toggleRecording() {
  await attempt(async () => {
    const running = (await get("/v1/recordings")).recordings.find((recording) => recording.state === "running");
    const name = running?.name ?? freshName("run");
    if (running) await api("POST", `/v1/recordings/${name}/stop`, {});
    else await api("PUT", `/v1/recordings/${name}`, { payloads: "aps" });
    toast(running ? `Recording ${name} has ended` : `Recording ${name}`);
    refreshTool("recordings");
  });
}
function recordings(body) {
  const list = h("ul", { class: "list" }), points = h("ul", { class: "list" }), pointBox = h("div", { hidden: true });
  const payloads = select([["aps", "aps only"], ["none", "none"], ["all", "all"]]);
  const kilobytes = (bytes) => `${number(Math.ceil(bytes / 1000))} kB`;
  const act = (text, name, method, path, input) => h("button", { text, "aria-label": `${text} ${name}`, onclick: () => attempt(async () => {
    await api(method, path, input);
    load();
  }) });
  const load = async () => {
    try {
      const found = (await get("/v1/recordings")).recordings;
      list.replaceChildren(...found.map((recording) => h("li", { class: "row" }, h("b", { text: recording.name }),
        h("span", { class: "dim", text: `${recording.state}, ${kilobytes(recording.bytes)}, payloads ${recording.payloads}` }),
        recording.state === "running" ? act("Stop", recording.name, "POST", `/v1/recordings/${recording.name}/stop`, {})
          : h("button", { text: "Save file", "aria-label": `Save file of ${recording.name}`, onclick: () => attempt(async () => {
            const file = await request("GET", `/v1/recordings/${recording.name}/file`);
            download(`${recording.name}.prr`, await file.blob(), "application/octet-stream");
          }) }))), found.length ? "" : h("li", { class: "dim", text: "No recordings." }));
    } catch (error) {
      if (error.isMissing) return hide("recordings");
    }
    try {
      const found = (await get("/v1/checkpoints")).checkpoints;
      pointBox.hidden = false;
      points.replaceChildren(...found.map((point) => h("li", { class: "row" }, h("b", { text: point.name }),
        h("span", { class: "dim", text: `${clockText(point.at)}, ${kilobytes(point.bytes)}` }),
        act("Go back to it", point.name, "POST", `/v1/checkpoints/${point.name}/restore`, {}), act("Delete", point.name, "DELETE", `/v1/checkpoints/${point.name}`))),
      found.length ? "" : h("li", { class: "dim", text: "No checkpoints." }));
    } catch { /* not there: stays hidden */ }
  };
  pointBox.append(h("h3", { text: "Checkpoints" }), points,
    h("button", { text: "Make a checkpoint", onclick: () => attempt(async () => {
      await api("PUT", `/v1/checkpoints/${freshName("point")}`, {});
      load();
    }) }));
  body.append(h("div", { class: "cols" }, h("div", {}, h("h3", { text: "Recordings" }), list,
    h("div", { class: "row" }, h("button", { text: "Record, or stop", onclick: () => attempt(async () => {
      const running = (await get("/v1/recordings")).recordings.find((recording) => recording.state === "running");
      if (running) await api("POST", `/v1/recordings/${running.name}/stop`, {});
      else await api("PUT", `/v1/recordings/${freshName("run")}`, { payloads: payloads.value });
      load();
    }) }), field("payloads ", payloads))), pointBox,
  h("div", {}, h("h3", { text: "This run" }), h("p", { class: "dim", text: "One file to attach to a ticket: lanes, table, data." }),
    h("div", { class: "row" }, h("button", { text: "Export as HTML", onclick: exportRun }),
      careful("Reset everything", () => attempt(async () => {
        await api("POST", "/v1/reset", { all: true });
        toast("Everything is reset");
      }))))));
  load();
  return (told) => told && load();
}

// Token check.

function tokenCheck(body) {
  const input = h("textarea", { rows: "4", spellcheck: "false", placeholder: "eyJ…", id: "t-token" });
  const says = h("div", { role: "status", id: "t-says" });
  let timer;
  input.oninput = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const text = input.value.trim().replace(/^bearer\s+/i, "");
      if (!text) return says.replaceChildren();
      try {
        const found = await api("POST", "/v1/token-check", { token: text });
        says.replaceChildren(h("p", { class: found.valid ? "good" : "bad", text: found.valid ? "✓ This relay takes it" : "✗ This relay does not take it" }),
          ...found.problems.map((problem) => h("p", { class: "warn", text: `⚠ ${problem}` })),
          h("pre", { text: JSON.stringify({ header: found.header, claims: found.claims }, null, 2) }));
      } catch (error) {
        if (error.isMissing) hide("token");
        else says.replaceChildren(h("p", { class: "bad", text: error.message }));
      }
    }, 250);
  };
  body.append(h("div", { class: "cols" }, h("div", {}, field("A provider token; it is sent to this relay only", input)), says));
}

// Charts.

const LINES = { received: "received a second", delivered: "delivered a second", waiting: "waiting now", refused: "refused a second" };
function charts(body) {
  const box = h("div", { class: "charts" }), bars = h("div", {});
  body.append(h("div", { class: "cols" }, h("div", {}, box), bars));
  const update = () => {
    const samples = known.stats.slice(-240);
    box.replaceChildren(...Object.entries(LINES).map(([key, name]) => {
      const values = samples.map((sample, index) => {
        if (key === "waiting" || !index) return key === "waiting" ? sample[key] ?? 0 : 0;
        return Math.max(0, sample[key] - samples[index - 1][key]) / Math.max(.2, (sample.wall - samples[index - 1].wall) / 1000);
      });
      const top = Math.max(1, ...values), width = Math.max(1, values.length - 1);
      const line = values.map((value, index) => `${index ? "L" : "M"}${index / width * 100} ${50 - value / top * 46}`).join("");
      return h("div", {}, h("div", { class: "title" }, h("span", { class: "dim", text: name }), h("b", { text: number(Math.round(values.at(-1) ?? 0)) })),
        s("svg", { viewBox: "0 0 100 52", preserveAspectRatio: "none", role: "img", "aria-label": `${name}, at most ${Math.round(top)}` }, s("path", { d: line || "M0 50H100" })));
    }));
    const counts = {};
    for (const entry of known.entries) counts[entry.mark] = (counts[entry.mark] ?? 0) + 1;
    const most = Math.max(1, ...Object.values(counts));
    bars.replaceChildren(h("h3", { text: `The last ${number(known.entries.length)} marks` }), ...Object.keys(LEGEND).filter((mark) => counts[mark]).map((mark) => h("div", { class: "bar" },
      h("span", {}, icon(mark), LEGEND[mark].split(",")[0]), h("meter", { max: most, value: counts[mark], "aria-label": LEGEND[mark] }), h("span", { text: number(counts[mark]) }))));
  };
  update();
  return update;
}

// Lock screen.

function lock(body) {
  let told;
  const update = async () => {
    const moment = view.at ?? page.now();
    const shown = known.entries.filter((entry) => entry.life.device === view.phone && entry.life.kind === "visible" &&
      entry.step.step === "sent" && entry.t <= moment).slice(-4).reverse();
    const face = view.phone + shown.map((entry) => entry.key) + clockText(moment, false);
    if (face === told) return;
    told = face;
    for (const { life } of shown) {
      if (life.payload || known.payloads.has(life.uniqueId)) continue;
      const whole = await get(`/v1/notifications/${life.uniqueId}`).catch(() => null);
      life.payload = whole?.payload ?? {};
    }
    body.replaceChildren(view.phone ? h("div", { class: "screen", role: "group", "aria-label": "Lock screen" }, h("span", { class: "big", text: clockText(moment, false) }),
      h("span", { class: "day", text: dayText(moment) }), ...shown.map((entry) => {
        const alert = (entry.life.payload?.aps ?? known.payloads.get(entry.life.uniqueId)?.payload?.aps)?.alert;
        return h("div", { class: "note" }, h("small", {}, h("span", { text: shortTopic(entry.life.topic) }), h("span", { text: clockText(entry.t, false) })),
          alert?.title ? h("b", { text: alert.title }) : null, h("div", { text: (typeof alert === "string" ? alert : alert?.body) ?? `Push ${shortId(entry.life.uniqueId)}; its text is not kept` }));
      }), shown.length ? null : h("div", { class: "note", text: "Nothing visible has come yet." })) : h("p", { class: "dim", text: "Choose a phone first." }));
  };
  update();
  return update;
}

// Copies of one push.

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const curl = (path, body) => `curl -s ${location.origin}${path} \\\n  -H "authorization: bearer $(cat .pushrelay/admin.token)" \\\n  -H 'content-type: application/json' \\\n  -d ${quote(JSON.stringify(body))}`;
const stand = (life) => (life.kind === "silent" ? { aps: { "content-available": 1 } } : { aps: { alert: "Hello" } });
const headersOf = (life) => known.payloads.get(life.uniqueId)?.headers ?? (life.kind === "silent"
  ? { "apns-push-type": "background", "apns-priority": "5" } : { "apns-push-type": "alert", "apns-priority": "10" });
export const copies = {
  Link: (life) => `${location.origin}${location.pathname}#push=${life.uniqueId}`,
  curl: (life, payload) => curl("/v1/push", { to: life.token, headers: headersOf(life), payload: payload ?? stand(life) }),
  "Wait call": (life) => curl("/v1/wait", { expect: { what: "delivered", push: life.uniqueId }, within: "1h", advance: page.clock?.mode === "virtual", timeout: "10s" }),
  Scenario: (life, payload) => {
    const app = shortTopic(life.topic), ended = life.entries?.at(-1)?.step;
    const what = ended?.step === "discarded" ? "discarded" : ended?.step === "stored" ? "stored" : "sent";
    return JSON.stringify({ title: `Push ${shortId(life.uniqueId)}`, length: "3h", phones: [{ name: "phone", apps: [{ name: app }] }],
      events: [{ at: "5m", push: { name: "one", to: `phone/${app}`, type: headersOf(life)["apns-push-type"], payload: life.kind === "silent" && !payload ? "silent" : payload ?? stand(life) } }],
      expect: [{ expect: { what, push: "one", ...(what === "sent" && ended?.via ? { why: ended.via } : {}) } }] }, null, 2);
  },
};

// Export: one file with everything in it and nothing that runs.

const EXPORT_STYLE = `body{font:14px/1.45 system-ui,sans-serif;margin:24px;max-width:1400px}table{border-collapse:collapse;font-size:13px}
th,td{text-align:left;padding:4px 14px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--dim)}`;
export function exportRun() {
  const lanes = page.laneView();
  const entries = lanes.entries.slice(-3000);
  const svg = drawWide({ ...lanes, entries, width: 1360, busy: false });
  svg.setAttribute("id", "lanes-svg");
  const doc = document.implementation.createHTMLDocument(`push-relay run, ${dayText(lanes.now)} ${clockText(lanes.now)}`);
  doc.documentElement.lang = "en";
  const rules = [...document.styleSheets[0].cssRules].map((rule) => rule.cssText)
    .filter((text) => /^(:root|#lanes|\.(direct|connect|held|away|ride|refill|replaced|expired|mark|legend)|body \{)/.test(text) && !text.startsWith("body"));
  const { counters } = known;
  const data = entries.map(({ t, life, step }) => ({ ...step, time: t, uniqueId: life.uniqueId, id: life.id, topic: life.topic, kind: life.kind, device: life.device }));
  const json = JSON.stringify({ exported: lanes.now, counters, steps: data }).replaceAll("<", "\\u003c");
  doc.head.append(h("meta", { charset: "utf-8" }), h("style", { text: rules.join("\n") + "\nbody{background:var(--bg);color:var(--ink)}" + EXPORT_STYLE }));
  doc.body.append(h("h1", { text: doc.title }),
    h("p", { text: `push-relay ${page.overview.version ?? ""}, policy ${page.overview.policy ?? ""}. ${view.phone ? `Phone ${view.phone}. ` : ""}${number(counters.received)} received, ${number(counters.delivered)} delivered, ${number(counters.replaced)} replaced, ${number(counters.expired)} expired, ${number(counters.waiting)} waiting. Times are UTC.` }),
    h("div", { id: "lanes" }, svg), h("p", { class: "legend" }, ...[...document.querySelectorAll("#legend > span")].map((item) => item.cloneNode(true))),
    h("table", {}, h("thead", {}, h("tr", {}, ...["time", "push", "phone", "app", "what", "why, until when"].map((text) => h("th", { scope: "col", text })))),
      h("tbody", {}, ...entries.slice().reverse().map((entry) => h("tr", {}, ...[clockText(entry.t), entry.life.uniqueId, shortPhone(entry.life.device), entry.life.topic, wordOf(entry), reasonOf(entry)].map((text) => h("td", { text })))))),
    h("script", { type: "application/json", id: "data", text: json }));
  download(`push-relay-${new Date(lanes.now).toISOString().slice(0, 19).replaceAll(":", "")}.html`, "<!doctype html>\n" + doc.documentElement.outerHTML, "text/html");
  toast("The run is saved as one HTML file");
}
