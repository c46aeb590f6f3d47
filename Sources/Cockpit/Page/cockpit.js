// What is looked at (which is the URL), the event stream, and what is drawn when.

import { $, addLife, addLink, addStep, api, attempt, button, clockText, dayText, entries, forget, get, h, known, lengthText, number, options,
  reasonOf, reconcile, request, shortId, shortPhone, shortTopic, toast, wordOf } from "./kit.js";
import { density, drawNarrow, drawWide, icon, legend } from "./lanes.js";
import { TITLES, closeTool, copies, exportRun, openTool, toggleRecording } from "./drawer.js";

export const view = {};
export const page = { phone: null, phones: [], missing: new Set(), overview: {}, go, now, laneView, urlOf };
const path = encodeURIComponent, body = document.body;
let paused = false, online = false, started = false, heldBack = 0, spoken = {};

// The URL is the state.

function readUrl() {
  const hash = new URLSearchParams(location.hash.slice(1)), before = { ...view };
  if (hash.has("token")) {
    sessionStorage.setItem("token", hash.get("token"));
    hash.delete("token");
    history.replaceState(null, "", "#" + hash);
  }
  for (const key of ["phone", "push", "tool", "only"]) view[key] = hash.get(key) ?? "";
  view.at = Number(hash.get("at")) || null;
  view.span = Number(hash.get("span")) || 0;
  $("span").value = view.span;
  $("only").value = view.only;
  body.classList.toggle("one-phone", view.phone);
  if (before.phone !== view.phone) phoneChosen();
  if (before.push !== view.push) {
    shown = known.lives.get(view.push);
    if (view.push && started) loadPush();
  }
  dirty("lanes", "table", "pill", "phones", "tool", "push");
}
function urlOf(changes) {
  return "#" + new URLSearchParams(Object.entries({ ...view, ...changes }).filter(([, value]) => value));
}
// Moving in time replaces the URL; from everything else one can go back.
function go(changes, replace = "at" in changes) {
  history[replace ? "replaceState" : "pushState"](null, "", urlOf(changes));
  readUrl();
}

// A frame takes in what has come and draws what changed, one part at a time and never for long.

const parts = { pill: drawPill, light: drawLight, lanes: drawLanes, table: drawTable, push: drawPush, phones: drawPhones, tool: drawTool };
const pending = new Set(), drawn = {};
let scheduled = false, incoming = [], busyUntil = 0;
function dirty(...names) {
  for (const name of names) pending.add(name);
  scheduled ||= requestAnimationFrame(frame);
}
function frame(time) {
  scheduled = false;
  const start = performance.now();
  takeIn(start + 7);
  for (const name of pending) {
    if (time - (drawn[name] ?? -1e4) < (time < busyUntil ? 400 : 50)) continue;
    pending.delete(name);
    drawn[name] = time;
    parts[name]();
    if (time < busyUntil || performance.now() - start > 8) break;
  }
  if (pending.size || incoming.length) dirty();
}
function takeIn(end) {
  const excess = incoming.length - 20_000;
  if (excess > 0) known.skipped += incoming.splice(0, excess).length;
  let count = 0;
  while (count < incoming.length && (count % 32 || performance.now() < end)) take(...incoming[count++]);
  if (count > 100) {
    busyUntil = performance.now() + 800;
    later("calm", async () => dirty("lanes", "table"), 1000);
  }
  incoming.splice(0, count);
}
function take(kind, text) {
  const data = JSON.parse(text);
  if (kind === "life") {
    const entry = addStep(data);
    if (view.push && data.uniqueId === view.push) later("push", loadPush, 250);
    touched(data.device);
    if (!entry) return;
    say(wordOf(entry));
    heldBack += paused;
    later("clock", loadClock, 300);
    dirty(...(paused ? ["pill"] : ["lanes", "table"]));
  } else if (kind === "device") {
    addLink(data);
    touched(data.device);
    if (data.device === view.phone) dirty("lanes");
  } else if (kind === "clock") {
    showClock(data);
    later("clock", loadClock, 300);
  } else if (kind === "refusal") {
    known.refusals.unshift(data);
    known.refusals.length = Math.min(known.refusals.length, 200);
    say("refused");
    dirty("tool");
  } else if (kind === "fault") dirty("tool");
  else if (kind === "stats") {
    known.counters = data;
    known.stats.push({ ...data, wall: Date.now() });
    if (known.stats.length > 240) known.stats.shift();
    showClock({ now: data.now });
    dirty("light", ...(view.tool === "charts" ? ["tool"] : []));
  } else if (kind === "gap") {
    known.skipped += data.dropped;
    later("history", loadHistory, 1000);
  } else if (kind === "bye") retry = 200;
}
const say = (word) => (spoken[word] = (spoken[word] ?? 0) + 1);
const timers = {};
function later(name, work, wait) {
  timers[name] ??= setTimeout(() => {
    delete timers[name];
    if (!document.hidden) work().catch(() => {});
  }, wait);
}

// Lanes and table.

const inView = () => (view.phone ? entries().filter(({ life }) => life.device === view.phone) : entries());
function laneView() {
  return { ...view, entries: inView(), links: known.links.filter(({ device }) => device === view.phone), now: now(), selected: view.push,
    phone: view.phone && (page.phone ?? { apps: [], connected: true }), width: $("lanes").clientWidth, busy: performance.now() < busyUntil };
}
// While paused, a part is drawn again only when something else is looked at.
const stays = {};
const isFrozen = (part) => paused && stays[part] === urlOf() || !(stays[part] = urlOf());
function drawLanes() {
  const lanes = laneView(), { entries: all, width, phone } = lanes;
  if (!width || isFrozen("lanes")) return;
  $("lanes").replaceChildren((width < 560 ? drawNarrow : drawWide)(lanes));
  const from = all[0]?.t ?? lanes.now - 60e3, to = Math.max(lanes.now, from + 1000);
  Object.assign($("scrub"), { min: from, max: to, step: Math.ceil((to - from) / 2000) }).value = view.at ?? to;
  $("scrub").setAttribute("aria-valuetext", view.at ? clockText(view.at) : "live");
  density($("density"), all, from, to);
  $("scrub-from").textContent = clockText(from);
  $("scrub-to").textContent = clockText(to);
  $("lanes-title").textContent = phone ? `Phone ${shortPhone(view.phone)}` : "All phones";
  $("about").textContent = (phone ? [phone.connected ? "connected" : "away", phone.network, phone.power, phone.screen && `screen ${phone.screen}`].filter(Boolean).join(", ")
    : `${number(known.counters.devices)} phones, ${number(known.counters.connections)} connected`) + (known.skipped ? `. ${number(known.skipped)} older or skipped events are not kept here` : "");
}
let most = 60, rows = [], chosen;
function drawTable() {
  if (isFrozen("table")) return;
  const all = inView(), limit = performance.now() < busyUntil ? 20 : most;
  rows = [];
  for (let i = all.length; i-- > 0 && rows.length <= limit;) {
    if ((!view.at || all[i].t <= view.at) && (!view.only || view.only.includes(all[i].mark))) rows.push(all[i]);
  }
  $("older").hidden = rows.length <= limit;
  $("table-note").textContent = rows.length ? "" : "Nothing yet.";
  reconcile($("table").tBodies[0], rows.splice(0, limit, ...rows.slice(0, limit)), (entry) => entry.key, (entry) => h("tr", { "data-push": entry.life.uniqueId },
    h("td", clockText(entry.t)), h("td", h("a", { href: urlOf({ push: entry.life.uniqueId }) }, shortId(entry.life.uniqueId))), h("td.dev", shortPhone(entry.life.device)),
    h("td", { title: entry.life.topic }, shortTopic(entry.life.topic)), h("td.what", icon(entry.mark), wordOf(entry)), h("td", reasonOf(entry))),
  (row, entry) => (row.className = entry.life.uniqueId === view.push ? "on" : ""));
}

// One push.

let shown;
async function loadPush() {
  const wanted = view.push;
  const life = await get(`/v1/notifications/${path(wanted)}`).catch((error) => known.lives.get(wanted) ?? { missing: error.message });
  if (view.push !== wanted) return;
  if (life.steps !== known.lives.get(wanted)?.steps && life.steps) addLife(life);
  if (life.uniqueId && life.uniqueId !== wanted) return go({ push: life.uniqueId }, true);
  shown = known.lives.get(wanted) ?? life;
  dirty("push", "lanes", "table");
}
function drawPush() {
  const { kind, uniqueId, topic, sentence, steps, warnings, missing } = shown ?? {};
  if (!steps) return $("push").replaceChildren(h("h2", "One push"), h("p.dim", missing ?? "Choose a mark or a row: why it waited, until when, what replaced it, what carried it."));
  const last = shown.entries.at(-1), payload = shown.payload ?? known.sent.get(uniqueId)?.payload, text = sentence || (last ? `${wordOf(last)}, ${reasonOf(last)}` : "received");
  const output = h("pre#copied", { hidden: true, tabindex: 0 });
  const fact = (name, value) => [h("dt", name), h("dd", value)];
  $("push").replaceChildren(...h("i", h("div.title", h("h2", `${kind === "silent" ? "Silent" : "Visible"} push ${shortId(uniqueId)}`), button("Close", () => go({ push: "" }))),
    h("p.dim", topic), h("div.why", { "data-mark": last?.mark }, text[0].toUpperCase() + text.slice(1).replace(/\.?$/, ".").replace(STAMP, "$1")),
    h("ol", steps.slice(-60).map((step, index, all) => h(view.at && step.time > view.at ? "li.later" : "li", h("time", all[index - 1]?.time === step.time ? "" : clockText(step.time)), stepText(step)))),
    warnings?.length ? warnings.map((warning) => h("p.warn", `⚠ ${warning}`)) : h("p.dim", "Lint finds nothing odd."),
    payload && h("pre", JSON.stringify(payload)),
    h("dl", fact("phone", h("a", { href: urlOf({ phone: shown.device }) }, shown.device)), fact("apns-id", shown.id), shown.id !== uniqueId && fact("unique id", uniqueId), fact("token", shown.token)),
    h("div.row", { role: "group", "aria-label": "Copy as" }, "Copy as", Object.entries(copies).map(([name, make]) => button(name, async () => {
      output.textContent = make(shown, payload);
      output.hidden = false;
      await navigator.clipboard.writeText(output.textContent).then(() => toast(`${name} copied`), () => getSelection().selectAllChildren(output));
    }))), output).childNodes);
}
const STAMP = /\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)(\.\d+)?Z/g;
function stepText({ text, step, carriedBy, replacedBy }) {
  const other = carriedBy ?? replacedBy;
  return h("span", (text ?? step).replace(STAMP, "$1").replace(other, shortId(other ?? "")), other && [" ", h("a", { href: urlOf({ push: other }) }, carriedBy ? `with ${shortId(other)}` : "see it")]);
}

// Phones: the server searches and pages; one page of them is all that is ever here.

let pages = [""], more;
async function refreshPhones() {
  try {
    const found = await get("/v1/devices", { search: $("search").value.trim(), after: pages.at(-1), limit: 40 });
    page.phones = found.devices;
    more = found.hasMore && found.cursor;
    if (view.phone) page.phone = found.devices.find(({ device }) => device === view.phone) ?? await get(`/v1/devices/${path(view.phone)}`);
  } catch (error) {
    if (error.isMissing) $("phones").hidden = true;
    if (view.phone && !page.phone) page.phone = { apps: [], network: error.message };
  }
  dirty("phones", "lanes", "tool");
}
function touched(id) {
  if (id === view.phone || page.phones.some(({ device }) => device === id)) later("phones", refreshPhones, performance.now() < busyUntil ? 2000 : 250);
}
function phoneChosen() {
  page.phone = page.phones.find(({ device }) => device === view.phone);
  most = 60;
  if (!view.phone || !started) return;
  refreshPhones();
  loadHistory(view.phone).catch(() => {});
}
// Full tokens, empty ones, and when the next comes.
function gauge({ topic, budget: { remaining, capacity, heldUntil, nextAt, limit: why } }, name) {
  const size = Math.min(8, capacity ?? Math.max(3, remaining)), next = nextAt ?? heldUntil;
  const text = [name && shortTopic(topic), next ? `next ${clockText(next)}` : why?.replaceAll("-", " ")].filter(Boolean).join(", ");
  return h("span.gauge", { role: "img", "aria-label": `budget: ${remaining} left ${text}` }, Array.from({ length: size }, (_, index) => h(index < remaining ? "i.on" : "i")), text);
}
function slot(apps, kind) {
  const full = apps.filter((app) => app[kind]).length;
  return h(full ? "b" : "span", kind[0].toUpperCase() + (full > 1 ? full : full ? "●" : "·") + " ");
}
function drawPhones() {
  const current = (node, on) => (on ? node.setAttribute("aria-current", true) : node.removeAttribute("aria-current"));
  current($("everyone"), !view.phone);
  $("everyone").href = urlOf({ phone: "" });
  reconcile($("phone-list"), page.phones, ({ device }) => device, () => h("a.phone"), (node, phone) => {
    node.href = urlOf({ phone: phone.device, push: "" });
    current(node, phone.device === view.phone);
    const { apps, connected } = phone, face = JSON.stringify(phone);
    if (node.face === face) return;
    node.face = face;
    const limited = apps.filter(({ budget }) => budget?.remaining != null).sort((a, b) => a.budget.remaining - b.budget.remaining);
    const full = ["visible", "silent"].filter((kind) => apps.some((app) => app[kind]));
    node.replaceChildren(h(connected ? "i.dot" : "i.dot.off"), h("code", shortPhone(phone.device)),
      h("span.slots", { role: "img", "aria-label": full.length ? `slots full: ${full}` : "slots empty", title: "Slots: V visible, S silent" }, slot(apps, "visible"), slot(apps, "silent")),
      h("small", [connected ? "" : "away", phone.network, phone.power, `${apps.length} app${apps.length === 1 ? "" : "s"}`].filter(Boolean).join(", ")),
      limited.length ? gauge(limited[0], apps.length > 1 && !limited[0].budget.allowed) : "");
  });
  $("page-back").disabled = pages.length < 2;
  $("page-on").disabled = !more;
  const first = pages.length * 40 - 39;
  $("page-note").textContent = page.phones.length ? `${number(first)} to ${number(first + page.phones.length - 1)}` : "none found";
  $("search").placeholder = `Search ${number(known.counters.devices)} phones`;
  const tools = $("phone-tools"), face = JSON.stringify(page.phone);
  tools.hidden = !view.phone || !page.phone;
  if (tools.hidden || tools.face === face) return;
  tools.face = face;
  const act = (name, rest) => button(name, async () => {
    await api("DELETE", `/v1/devices/${path(view.phone)}/${rest}`);
    refreshPhones();
  });
  tools.replaceChildren(...page.phone.apps.slice(0, 12).map((app) => h("span", { title: app.topic }, h("b", shortTopic(app.topic)), app.budget?.remaining != null && gauge(app))), h("i.grow"),
    act("Drop connection", "connection"), act("Empty slots", "slots"), act("Refill budget", "budget"));
}

// The top bar.

let clock = { rate: 0 }, clockSeen = 0;
function now() {
  return clock.now ? clock.now + (online ? (performance.now() - clockSeen) * clock.rate : 0) : Date.now();
}
function showClock(changes) {
  clock = { ...clock, ...changes };
  clockSeen = performance.now();
  const { mode, rate, next } = clock, virtual = mode === "virtual";
  page.isVirtual = virtual;
  $("clock-tools").hidden = !virtual || page.missing.has("clock");
  if (![...$("rate").options].some(({ value }) => Number(value) === rate)) $("rate").append(h("option", { value: rate }, `${rate}×`));
  if (document.activeElement !== $("rate")) $("rate").value = rate;
  $("next").replaceChildren(next ? `next: ${next.what} ${clockText(next.at)}` : "next", h("kbd", "n"));
  $("next").disabled = !next;
  $("clock-note").textContent = `UTC${virtual ? ", virtual" : ""}`;
  $("clock").title = dayText(now());
  tick();
}
function tick() {
  const text = clockText(now());
  if ($("clock").textContent === text) return;
  $("clock").textContent = text;
  if (!paused) dirty("lanes");
}
async function loadClock() {
  if (page.missing.has("clock")) return;
  try {
    showClock({ next: null, ...await api("GET", "/v1/clock") });
  } catch (error) {
    if (error.isMissing) page.missing.add("clock");
    showClock({});
  }
}
const advance = (step) => attempt(async () => {
  const before = now(), answer = await api("POST", "/v1/clock/advance", step);
  showClock({ now: answer.now });
  toast(`${lengthText(answer.now - before)} later: ${Object.entries(answer.fired ?? {}).map(([what, count]) => `${number(count)} ${what}`).join(", ") || "nothing fired"}`);
  if (view.at) go({ at: null });
  refreshPhones();
  await loadClock();
});
function drawPill() {
  const state = !online ? "off" : view.at ? "at" : paused ? "paused" : "live";
  $("pill").className = state;
  $("pill").textContent = { off: "not connected", at: `looking at ${view.at && clockText(view.at)}`, live: "live", paused: "paused" + (heldBack ? `, ${number(heldBack)} new` : "") }[state];
}
function drawLight() {
  const { received = 0, restored = 0, delivered = 0, replaced = 0, expired = 0, discarded = 0, waiting, addsUp } = known.counters;
  $("light").replaceChildren(h("span", `${number(received + restored)} received = ${number(delivered + replaced + expired + discarded)} ended + ${number(waiting)} waiting `),
    h(addsUp ? "b.good" : "b.bad", addsUp ? "✓ adds up" : "✗ does not add up"));
}
function setPaused(value) {
  paused = value;
  heldBack = 0;
  stays.lanes = stays.table = 0;
  dirty("pill", "lanes", "table");
}
function goLive() {
  if (view.at) go({ at: null });
  setPaused(false);
}
function drawTool() {
  for (const node of $("tools").children) node.setAttribute("aria-pressed", node.dataset.tool === view.tool);
  view.tool ? openTool(view.tool) : closeTool();
}

// The event stream: one for each page, resumed where it ended; a hidden tab has none.

let cursor, stream, retry = 500;
async function listen() {
  stream?.abort();
  const { signal } = stream = new AbortController();
  try {
    const response = await request("GET", "/v1/events", undefined, { signal, headers: { accept: "text/event-stream", ...(cursor && { "last-event-id": cursor }) } });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    online = true;
    retry = 500;
    dirty("pill");
    let rest = "", kind, data = "", id;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) data += line.slice(5);
        else if (line.startsWith("event:")) kind = line.slice(6).trim();
        else if (line.startsWith("id:")) id = line.slice(3).trim();
        else if (!line.trim()) {
          if (data) incoming.push([kind, data]);
          cursor = id || cursor;
          data = id = "";
        }
      }
      dirty();
    }
  } catch (error) {
    if (error.status === 401) return $("sign-in").showModal();
    if (error.status === 410) await load().catch(() => {});
    if (error.isMissing) retry = 30_000;
  }
  if (signal.aborted) return;
  online = false;
  dirty("pill");
  setTimeout(() => signal.aborted || listen(), retry * (.75 + Math.random() / 2));
  retry = Math.min(retry * 2, 10_000);
}
document.onvisibilitychange = () => {
  if (!started) return;
  online = false;
  stream.abort();
  if (document.hidden) return;
  listen();
  refreshPhones();
  loadClock();
};

// Starting.

async function loadHistory(device) {
  const { notifications } = await get("/v1/notifications", { device, limit: device ? 200 : 500 });
  notifications.reverse().forEach(addLife);
  dirty("lanes", "table", "push");
}
async function load() {
  const { epoch, counters, devices, connections, addsUp, now: time, rate, clock: mode, ...rest } = await get("/v1/overview");
  if (page.overview.epoch && page.overview.epoch !== epoch) forget();
  page.overview = { epoch, ...rest };
  known.counters = { ...counters, devices, connections, addsUp };
  cursor = rest.cursor;
  showClock({ now: time, rate, mode });
  dirty("light");
  await loadHistory().catch(() => {});
}
async function start() {
  try {
    await load();
  } catch (error) {
    if (error.status === 401) return $("sign-in").showModal();
    toast(error.message);
    return setTimeout(start, 3000);
  }
  started = true;
  listen();
  refreshPhones();
  loadClock();
  phoneChosen();
  if (view.push) loadPush();
  get("/v1/policy").then(({ policy, known: names }) => {
    $("policy").append(...names.map((name) => h("option", name)));
    $("policy").value = policy;
    $("policy-box").hidden = false;
  }, () => {});
  for (const name of ["faults", "recordings", "refusals"]) {
    get(`/v1/${name}`).then(({ refusals }) => (known.refusals = refusals ?? known.refusals), (error) => error.isMissing && page.hide(name));
  }
}
// Takes a tool away whose route is not there.
page.hide = (name) => {
  page.missing.add(name);
  $("tools").querySelector(`[data-tool=${name}]`).hidden = true;
  if (view.tool === name) go({ tool: "" }, true);
};
setInterval(tick, 250);
setInterval(() => {
  const list = Object.entries(spoken).map(([word, count]) => `${count} ${word}`);
  spoken = {};
  if (list.length) $("live").textContent = `${list.join(", ")}. ${clockText(now(), false)}.`;
}, 5000);

// Keys and pointer.

function step(direction) {
  const times = inView().map(({ t }) => t), from = view.at ?? now() + 1;
  const next = direction < 0 ? times.findLast((t) => t < from) : times.find((t) => t > from);
  next ? go({ at: next }) : direction > 0 && goLive();
}
function move(direction) {
  const index = rows.findIndex(({ key, life }) => (chosen ? key === chosen : life.uniqueId === view.push));
  const entry = rows[Math.min(rows.length - 1, Math.max(0, index + direction))];
  if (!entry) return;
  chosen = entry.key;
  go({ push: entry.life.uniqueId }, true);
  setTimeout(() => document.querySelector("tr.on")?.scrollIntoView({ block: "nearest" }), 100);
}
function showView(name) {
  if (name) body.dataset.view = name;
  for (const node of $("views").children) node.setAttribute("aria-pressed", node.dataset.view === body.dataset.view);
  dirty("lanes");
}
const toggle = (tool) => go({ tool: view.tool === tool ? "" : tool });
const KEYS = {
  "?": ["these keys", () => $("help").showModal()], "/": ["search phones", () => (showView("phones"), $("search").focus())],
  j: ["next row", () => move(1)], k: ["row before", () => move(-1)], Enter: ["open the push", () => view.push && (showView("push"), $("push").focus())],
  " ": ["pause, go on", () => setPaused(!paused)], ArrowLeft: ["a step back in time", () => step(-1)], ArrowRight: ["a step on", () => step(1)],
  n: ["to the next timer", () => $("next").checkVisibility() && $("next").click()], c: ["compose", () => toggle("compose")],
  r: ["record, stop recording", () => page.missing.has("recordings") || toggleRecording()],
  Escape: ["close, or back to live", () => (view.tool ? go({ tool: "" }) : goLive())],
};
const NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };
document.onkeydown = (event) => {
  const key = KEYS[event.key], { target } = event, isEscape = event.key === "Escape";
  if (!key || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (!isEscape && (!$("keys-on").checked || target.matches("input, select, textarea") || (/^[ E]/.test(event.key) && target.matches("button, a")))) return;
  event.preventDefault();
  if (isEscape) target.blur();
  key[1]();
};
document.onclick = (event) => {
  const link = event.target.closest("a[href^='#']"), mark = event.target.closest("[data-push]");
  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link) {
    event.preventDefault();
    history.pushState(null, "", link.hash || "#");
    readUrl();
    showView(link.matches(".phone") ? "time" : "push");
  } else if (mark) {
    const [from, to] = (mark.dataset.zoom ?? "").split(" ").map(Number), push = mark.dataset.push;
    if (to > from && view.span !== 60e3) return go({ push, at: to, span: [216e5, 36e5, 18e5, 6e5, 6e4].find((size) => size < (view.span || 9e7) && size < (to - from) * 30) ?? 6e4 });
    go({ push });
    showView("push");
  }
};
$("key-list").append(...Object.entries(KEYS).flatMap(([key, [does]]) => [h("dt", h("kbd", NAMES[key] ?? key)), h("dd", does)]));
$("keys-on").checked = localStorage.getItem("keys") !== "off";
$("keys-on").onchange = ({ target }) => localStorage.setItem("keys", target.checked ? "on" : "off");
$("keys").onclick = KEYS["?"][1];
$("sign-in").onclose = () => {
  sessionStorage.setItem("token", $("sign-token").value.trim());
  started ? listen() : start();
};
$("pill").onclick = () => (view.at || paused ? goLive() : setPaused(true));
$("clock-tools").onclick = ({ target }) => target.dataset.by && advance({ by: target.dataset.by });
$("next").onclick = () => advance({ next: true });
$("rate").append(...options({ stands: 0, "1×": 1, "10×": 10, "60×": 60, "600×": 600 }));
$("rate").onchange = ({ target }) => attempt(async () => showClock(await api("PATCH", "/v1/clock", { rate: Number(target.value) })));
$("policy").onchange = ({ target }) => attempt(async () => {
  await api("PUT", "/v1/policy", { policy: target.value });
  refreshPhones();
});
$("light").onclick = () => toggle("charts");
$("span").append(...options({ "what fits": 0, "1 min": 6e4, "10 min": 6e5, "30 min": 18e5, "1 h": 36e5, "6 h": 216e5, "1 day": 864e5 }));
$("span").onchange = ({ target }) => go({ span: target.value }, true);
$("only").append(...options({ everything: "", sent: "direct visible", held: "held away", "rode along": "ride", "sent later": "refill connect resend", replaced: "replaced", "expired, dropped": "expired" }));
$("only").onchange = ({ target }) => go({ only: target.value }, true);
$("older").onclick = () => {
  most += 100;
  stays.table = 0;
  dirty("table");
};
const turn = (to) => {
  pages = to;
  later("search", refreshPhones, 150);
};
$("search").oninput = () => turn([""]);
$("page-back").onclick = () => turn(pages.slice(0, -1));
$("page-on").onclick = () => turn([...pages, more]);
$("scrub").oninput = ({ target: { value, min, max } }) => go({ at: max - value < (max - min) / 1000 ? null : value });
$("views").onclick = ({ target }) => showView(target.dataset.view);
$("tools").append(...Object.entries(TITLES).map(([tool, title]) => h("button", { "data-tool": tool, onclick: () => toggle(tool) }, title, tool === "compose" && h("kbd", "c"))), button("Export", exportRun));
onhashchange = onpopstate = readUrl;
new ResizeObserver(() => dirty("lanes")).observe($("lanes"));
$("legend").append(...legend());
showView();
readUrl();
start();
