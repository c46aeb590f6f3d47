// The page: what is looked at (which is the URL), the event stream, and what is drawn when.

import { $, Problem, addLife, addLink, addStep, api, attempt, clockText, dayText, forget, get, h, known, lengthText,
  number, plural, reasonOf, reconcile, request, shortId, shortPhone, shortTopic, sortEntries, toast, token, wordOf } from "./kit.js";
import { density, drawNarrow, drawWide, icon, legend } from "./lanes.js";
import { closeTool, copies, exportRun, openTool, refreshTool, toggleRecording } from "./drawer.js";

const at = { phone: null, push: null, at: null, span: 0, tool: null, only: "" };
export const view = at;
export const page = { paused: false, online: false, phone: null, phones: [], clock: null, missing: new Set(), go, refreshPhones, showClock, overview: {} };
let cursor, stream, retry = 500, heldBack = 0, hiddenTab = false;

// The URL is the state.

function readUrl() {
  const hash = new URLSearchParams(location.hash.slice(1));
  if (hash.has("token")) {
    token.set(hash.get("token"));
    hash.delete("token");
    history.replaceState(null, "", hash.size ? "#" + hash : location.pathname);
  }
  const before = at.phone;
  at.phone = hash.get("phone");
  at.push = hash.get("push");
  at.at = Number(hash.get("at")) || null;
  at.span = Number(hash.get("span")) || 0;
  at.only = hash.get("only") ?? "";
  at.tool = hash.get("tool");
  if (before !== at.phone) phoneChosen();
  $("span").value = [...$("span").options].some((option) => +option.value === at.span) ? at.span : 0;
  $("only").value = at.only;
  document.body.classList.toggle("one-phone", at.phone != null);
  pushChosen();
  dirty("lanes", "table", "pill", "phones", "tool");
}
export function urlOf(changes = {}) {
  const hash = new URLSearchParams();
  for (const [key, value] of Object.entries({ ...at, ...changes })) if (value) hash.set(key, value);
  return hash.size ? "#" + hash : location.pathname;
}
/** Changes what is looked at. Moving in time replaces the URL, everything else can be gone back from. */
function go(changes, replace = "at" in changes) {
  history[replace ? "replaceState" : "pushState"](null, "", urlOf(changes));
  readUrl();
}

// Drawing: a frame draws what changed, one part at a time, and never for long.

const parts = { pill: drawPill, lanes: drawLanes, table: drawTable, push: drawPush, phones: drawPhones, light: drawLight, tool: drawTool };
const pending = new Set(), lastDrawn = {};
let scheduled = false, incoming = [], busyUntil = 0;
function dirty(...names) {
  names.forEach((name) => pending.add(name));
  if (!scheduled) {
    scheduled = true;
    requestAnimationFrame(frame);
  }
}
function frame(started) {
  scheduled = false;
  drain();
  const busy = started < busyUntil;
  for (const name of pending) {
    if (performance.now() - started > 10) break;
    const wait = busy ? 400 : name === "tool" ? 200 : 60;
    if (started - (lastDrawn[name] ?? -1e4) < wait) continue;
    pending.delete(name);
    lastDrawn[name] = started;
    parts[name]();
    if (name === "lanes" || name === "table") break;
  }
  if (pending.size || incoming.length) dirty();
}

/** Takes events in, for at most some milliseconds a frame. */
function drain() {
  const end = performance.now() + 7;
  if (incoming.length > 20_000) {
    const drop = incoming.length - 10_000;
    incoming = incoming.slice(drop);
    known.skipped += drop;
  }
  let index = 0;
  while (index < incoming.length && (index & 63 || performance.now() < end)) take(incoming[index++]);
  if (index > 200) busyUntil = performance.now() + 800;
  incoming = index === incoming.length ? [] : incoming.slice(index);
}
function take([kind, text]) {
  const data = JSON.parse(text);
  switch (kind) {
    case "life": {
      const entry = addStep(data);
      if (page.paused && entry) heldBack += 1;
      if (entry) spoken[wordOf(entry)] = (spoken[wordOf(entry)] ?? 0) + 1;
      if (data.uniqueId === pushShown?.uniqueId) laterPush();
      touched(data.device);
      if (data.step === "sent" || data.step === "stored" || data.step === "discarded") laterClock();
      dirty(page.paused ? "pill" : "lanes", ...(page.paused ? [] : ["table"]));
      break;
    }
    case "device":
      addLink(data);
      touched(data.device);
      if (data.device === at.phone) dirty("lanes");
      break;
    case "clock":
      showClock(data);
      laterClock();
      break;
    case "refusal":
      known.refusals.unshift(data);
      known.refusals.length = Math.min(known.refusals.length, 200);
      spoken.refused = (spoken.refused ?? 0) + 1;
      dirty("tool");
      break;
    case "fault":
      refreshTool("faults");
      break;
    case "stats":
      known.counters = data;
      known.stats.push({ ...data, wall: Date.now() });
      if (known.stats.length > 600) known.stats.shift();
      if (page.clock) showClock({ ...page.clock, now: data.now });
      dirty("light", ...(at.tool === "charts" ? ["tool"] : []));
      break;
    case "gap":
      known.skipped += data.dropped;
      loadHistory().catch(() => {});
      break;
    case "bye":
      retry = 200;
      break;
  }
}

function entriesInView() {
  sortEntries();
  return at.phone ? known.entries.filter((entry) => entry.life.device === at.phone) : known.entries;
}
const laneView = () => ({ entries: entriesInView(), links: known.links.filter((link) => link.device === at.phone),
  now: now(), at: at.at, span: at.span, phone: at.phone ? page.phone ?? { apps: [], connected: true } : null,
  selected: at.push, width: $("lanes").clientWidth, busy: performance.now() < busyUntil });
page.laneView = laneView;

function drawLanes() {
  if (page.paused && !pending.has("force") && $("lanes").firstChild && at.at == null && frozen === urlOf()) return;
  frozen = urlOf();
  const entries = entriesInView(), lanes = laneView();
  if (!lanes.width) return;
  $("lanes").replaceChildren(lanes.width < 560 ? drawNarrow(lanes) : drawWide(lanes));
  const from = entries.length ? entries[0].t : lanes.now - 60e3, to = Math.max(lanes.now, from + 1000);
  const scrub = $("scrub");
  Object.assign(scrub, { min: from, max: to, step: Math.max(1, Math.round((to - from) / 2000)) });
  scrub.value = at.at ?? to;
  scrub.setAttribute("aria-valuetext", at.at ? clockText(at.at) : "live");
  density($("density"), entries, from, to);
  $("scrub-from").textContent = clockText(from);
  $("scrub-to").textContent = clockText(to);
  $("lanes-title").textContent = at.phone ? `Phone ${shortPhone(page.phone ?? at.phone)}` : "All phones";
  const bits = [];
  if (at.phone && page.phone) {
    bits.push([page.phone.connected ? "connected" : "away", page.phone.network, page.phone.power, page.phone.screen && `screen ${page.phone.screen}`]
      .filter(Boolean).join(", "));
  } else if (!at.phone) {
    bits.push(`${number(known.counters.devices)} phones, ${number(known.counters.connections)} connected. A phone has lanes of its own.`);
  }
  if (known.skipped) bits.push(`${number(known.skipped)} older or skipped events are not kept here.`);
  $("about").textContent = bits.join(" ");
}
let frozen;

// The table.

let tableLimit = 60, rowsShown = [];
function tableRows() {
  const only = at.only.split(" ").filter(Boolean), rows = [];
  const all = entriesInView();
  for (let i = all.length - 1; i >= 0 && rows.length <= tableLimit; i--) {
    const entry = all[i];
    if (at.at != null && entry.t > at.at) continue;
    if (only.length && !only.includes(entry.mark)) continue;
    rows.push(entry);
  }
  return rows;
}
function drawTable() {
  if (page.paused && frozenTable === urlOf()) return;
  frozenTable = urlOf();
  const rows = tableRows();
  $("older").hidden = rows.length <= tableLimit;
  rowsShown = rows.slice(0, tableLimit);
  reconcile($("table").tBodies[0], rowsShown, (entry) => entry.key, (entry) => h("tr", { "data-push": entry.life.uniqueId, "data-mark": entry.mark },
    h("td", {}, h("time", { text: clockText(entry.t), datetime: new Date(entry.t).toISOString() })),
    h("td", {}, h("a", { text: shortId(entry.life.uniqueId), href: urlOf({ push: entry.life.uniqueId }) })),
    h("td", { class: "dev", text: shortPhone(entry.life.device) }),
    h("td", { text: shortTopic(entry.life.topic), title: entry.life.topic }),
    h("td", { class: "what" }, icon(entry.mark), wordOf(entry)),
    h("td", { class: "reason", text: reasonOf(entry) })),
  (row, entry) => row.classList.toggle("on", entry.life.uniqueId === at.push));
  $("table-note").textContent = rows.length ? "" : at.only ? "Nothing of that kind." : "Nothing yet.";
}
let frozenTable;

// One push.

let pushShown, pushTimer, pushTold;
function laterPush() {
  pushTimer ??= setTimeout(() => {
    pushTimer = undefined;
    loadPush();
  }, 250);
}
async function loadPush() {
  const wanted = at.push;
  try {
    const life = await get(`/v1/notifications/${encodeURIComponent(wanted)}`);
    if (at.push !== wanted) return;
    addLife(life);
    pushShown = life;
    if (known.lives.has(life.uniqueId) && life.uniqueId !== wanted) return go({ push: life.uniqueId }, true);
  } catch (error) {
    if (at.push === wanted) pushShown = known.lives.get(wanted) ?? { missing: error.message };
  }
  dirty("push", "lanes", "table");
}
function pushChosen() {
  if (pushTold === at.push) return dirty("push");
  pushTold = at.push;
  pushShown = known.lives.get(at.push);
  if (at.push) loadPush();
  dirty("push");
}
function drawPush() {
  const box = $("push"), life = pushShown;
  if (!life || life.missing) {
    box.replaceChildren(h("h2", { text: "One push" }), h("p", { class: "dim", text: life?.missing ??
      "Choose a mark or a row: why it waited, until when, what replaced it, what carried it." }));
    return;
  }
  const mine = known.lives.get(life.uniqueId) ?? life;
  const last = mine.entries?.at(-1);
  const sentence = life.sentence ?? (last ? `${wordOf(last)}, ${reasonOf(last)}` : "");
  const payload = life.payload ?? known.payloads.get(life.uniqueId)?.payload;
  const output = h("pre", { id: "copied", hidden: true, tabindex: "0" });
  const warnings = life.warnings ?? [];
  box.replaceChildren(
    h("div", { class: "title" }, h("h2", {}, `${life.kind === "silent" ? "Silent" : "Visible"} push ${shortId(life.uniqueId)} `),
      h("button", { text: "Close", onclick: () => go({ push: null }) })),
    h("p", { class: "dim", text: life.topic }),
    h("div", { class: `why ${last?.mark ?? ""}` }, sentence ? sentence[0].toUpperCase() + sentence.slice(1) + (/[.!]$/.test(sentence) ? "" : ".") : "No sentence yet."),
    h("ol", { class: "steps" }, ...mine.steps.slice(-60).map((step, index, all) => h("li", {
      class: (index === all.length - 1 ? "end" : "") + (at.at != null && step.time > at.at ? " later" : "") },
    h("time", { text: index && all[index - 1].time === step.time ? "" : clockText(step.time) }), stepText(step)))),
    ...warnings.map((text) => h("p", { class: "warn", text: `⚠ ${text}` })),
    warnings.length ? null : h("p", { class: "dim", text: "Lint finds nothing odd." }),
    h("dl", { class: "facts" }, ...fact("apns-id", life.id), ...fact("unique id", life.uniqueId),
      ...fact("phone", h("a", { href: urlOf({ phone: life.device, push: life.uniqueId }), text: shortPhone(life.device) })),
      ...fact("token", life.token)),
    payload ? h("pre", { text: JSON.stringify(payload) }) : null,
    h("div", { class: "row", role: "group", "aria-label": "Copy as" }, h("span", { class: "dim", text: "Copy as" }),
      ...Object.entries(copies).map(([name, make]) => h("button", { text: name, onclick: () => copy(make(mine, payload), output, name) }))),
    output);
}
const fact = (name, value) => [h("dt", { text: name }), h("dd", {}, value ?? "")];
function stepText(step) {
  const span = h("span", { text: (step.text ?? step.step).replace(/\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)(\.\d+)?Z/g, "$1") });
  const other = step.carriedBy ?? step.replacedBy;
  if (other) {
    span.textContent = span.textContent.replace(other, shortId(other));
    span.append(" ", h("a", { href: urlOf({ push: other }), text: step.carriedBy ? `with ${shortId(other)}` : `see ${shortId(other)}` }));
  }
  return span;
}
async function copy(text, output, name) {
  output.textContent = text;
  output.hidden = false;
  try {
    await navigator.clipboard.writeText(text);
    toast(`${name} copied`);
  } catch {
    getSelection().selectAllChildren(output);
    toast("Press Ctrl+C to copy");
  }
}

// Phones: the server searches and pages; a page of them is all that is ever here.

let pages = [null], phonesTimer, phonesAgain = false;
async function refreshPhones() {
  phonesTimer = undefined;
  phonesAgain = false;
  lastPhones = performance.now();
  try {
    const answer = await get("/v1/devices", { search: $("search").value.trim(), after: pages.at(-1), limit: 40 });
    page.phones = answer.devices;
    page.more = answer.hasMore && answer.cursor;
    const listed = answer.devices.find((device) => device.device === at.phone);
    if (at.phone) page.phone = listed ?? await get(`/v1/devices/${encodeURIComponent(at.phone)}`);
  } catch (error) {
    if (error.isMissing) $("phones").hidden = true;
    if (at.phone && error.reason === "UnknownDevice") page.phone = { device: at.phone, connected: false, apps: [], network: error.message };
  }
  dirty("phones", "lanes");
}
let lastPhones = 0;
function touched(device) {
  if (device !== at.phone && !page.phones.some((phone) => phone.device === device)) return;
  laterPhones(performance.now() - lastPhones > 2000 ? 150 : 1500);
}
function laterPhones(wait) {
  if (hiddenTab) return;
  phonesTimer ??= setTimeout(refreshPhones, wait);
}
function phoneChosen() {
  page.phone = page.phones.find((phone) => phone.device === at.phone) ?? null;
  tableLimit = 60;
  if (at.phone && started) {
    refreshPhones();
    loadHistory(at.phone).catch(() => {});
  }
}
const most = {};
function gauge(phone) {
  const apps = (phone.apps ?? []).filter((app) => app.budget?.remaining != null);
  if (!apps.length) return null;
  const tightest = apps.reduce((least, app) => (app.budget.remaining < least.budget.remaining ? app : least));
  return appGauge(tightest, apps.length > 1);
}
function appGauge({ topic, budget }, named) {
  const capacity = budget.capacity ?? (most[topic] = Math.min(8, Math.max(most[topic] ?? 3, budget.remaining)));
  const next = budget.nextAt ?? budget.heldUntil;
  const words = budget.limit && !next ? budget.limit.replaceAll("-", " ") : next ? `next ${clockText(next)}` : "";
  return h("span", { class: "gauge", role: "img", "aria-label": `budget: ${budget.remaining} of ${capacity} left ${words}` },
    ...Array.from({ length: capacity }, (_, index) => h("i", { class: index < budget.remaining ? "on" : "" })),
    h("span", { text: [named && words ? shortTopic(topic) : "", words].filter(Boolean).join(", ") }));
}
function slot(phone, kind) {
  const full = (phone.apps ?? []).filter((app) => app[kind]).length;
  return h("span", { class: full ? "full" : "", text: `${kind[0].toUpperCase()}${full ? (full > 1 ? full : "●") : "·"} ` });
}
function drawPhones() {
  $("everyone").toggleAttribute("aria-current", !at.phone);
  if (!at.phone) $("everyone").setAttribute("aria-current", "true");
  $("everyone").href = urlOf({ phone: null });
  const listed = page.phones;
  reconcile($("phone-list"), listed, (phone) => phone.device, () => h("a", { class: "phone" }), (node, phone) => {
    const face = JSON.stringify(phone) + urlOf();
    if (node.face === face) return;
    node.face = face;
    node.href = urlOf({ phone: phone.device, push: null });
    if (phone.device === at.phone) node.setAttribute("aria-current", "true");
    else node.removeAttribute("aria-current");
    const full = (kind) => ((phone.apps ?? []).some((app) => app[kind]) ? `${kind} slot full. ` : "");
    const slots = h("span", { class: "slots", title: "Slots: V visible, S silent", role: "img",
      "aria-label": full("visible") + full("silent") || "slots empty" }, slot(phone, "visible"), slot(phone, "silent"));
    node.replaceChildren(h("span", { class: "dot" + (phone.connected ? "" : " off") }), h("b", { text: shortPhone(phone) }), slots,
      h("small", { text: [phone.connected ? "" : "away", phone.network, phone.power, plural(phone.apps?.length ?? 0, "app")].filter(Boolean).join(", ") }));
    const budget = gauge(phone);
    if (budget) node.append(budget);
  });
  $("page-back").disabled = pages.length < 2;
  $("page-on").disabled = !page.more;
  const first = (pages.length - 1) * 40;
  $("page-note").textContent = listed.length ? `${number(first + 1)} to ${number(first + listed.length)}` : "none found";
  $("search").placeholder = known.counters.devices ? `Search ${number(known.counters.devices)} phones` : "Search phones";
  const tools = $("phone-tools");
  tools.hidden = !at.phone || !page.phone;
  if (tools.hidden || tools.face === JSON.stringify(page.phone)) return;
  tools.face = JSON.stringify(page.phone);
  const path = `/v1/devices/${encodeURIComponent(at.phone)}`;
  const act = (name, method, rest, done) => h("button", { text: name, onclick: () => attempt(async () => {
    await api(method, path + rest);
    toast(done);
    refreshPhones();
  }) });
  tools.replaceChildren(h("div", { class: "apps" }, ...page.phone.apps.slice(0, 12).map((app) => h("span", { title: app.topic }, h("b", { text: shortTopic(app.topic) }), appGauge(app)))),
    h("div", { class: "row" }, act("Drop connection", "DELETE", "/connection", "The connection is dropped"),
      act("Empty slots", "DELETE", "/slots", "The slots are empty"), act("Refill budget", "DELETE", "/budget", "The budget is full")));
}

// Top bar.

let clockSeen = 0, clockTimer;
function now() {
  if (!page.clock) return Date.now();
  return page.clock.now + (performance.now() - clockSeen) * (page.online ? page.clock.rate : 0);
}
page.now = now;
function showClock(clock) {
  const moved = page.clock?.now !== clock.now;
  page.clock = { ...page.clock, ...clock };
  clockSeen = performance.now();
  const virtual = page.clock.mode === "virtual";
  $("clock-tools").hidden = !virtual || page.missing.has("clock");
  const rate = page.clock.rate;
  if (![...$("rate").options].some((option) => +option.value === rate)) $("rate").append(h("option", { value: rate, text: `${rate}×` }));
  $("rate").value = rate;
  const next = page.clock.next;
  $("next").replaceChildren(next ? `next: ${next.what} ${clockText(next.at)}` : "next", h("kbd", { text: "n" }));
  $("next").disabled = !next;
  $("clock-note").textContent = `UTC, ${dayText(now())}${virtual ? `, virtual, ${rate ? rate + "×" : "stands"}` : ""}`;
  tick();
  if (moved) dirty("lanes");
}
function tick() {
  const text = clockText(now());
  if ($("clock").textContent !== text) {
    $("clock").textContent = text;
    if (page.clock?.rate && !page.paused) dirty("lanes");
  }
}
function laterClock() {
  if (page.clock?.mode !== "virtual" || page.missing.has("clock")) return;
  clockTimer ??= setTimeout(async () => {
    clockTimer = undefined;
    await loadClock();
  }, 300);
}
async function loadClock() {
  try {
    const clock = await get("/v1/clock");
    showClock({ next: null, ...clock });
  } catch (error) {
    if (error.isMissing) page.missing.add("clock");
    if (page.clock) showClock(page.clock);
  }
}
async function advance(body) {
  await attempt(async () => {
    const before = now();
    const { now: after, fired } = await api("POST", "/v1/clock/advance", body);
    showClock({ now: after });
    await loadClock();
    const list = Object.entries(fired ?? {}).map(([what, count]) => `${number(count)} ${what}`).join(", ");
    toast(`${lengthText(after - before)} later: ${list || "nothing fired"}`);
    if (at.at != null) go({ at: null });
    laterPhones(100);
  });
}
function drawPill() {
  const pill = $("pill");
  const state = !page.online ? "off" : at.at != null ? "at" : page.paused ? "paused" : "live";
  pill.className = `pill ${state}`;
  pill.textContent = { off: "not connected", at: `looking at ${clockText(at.at ?? 0)}`, live: "live",
    paused: `paused${heldBack ? `, ${number(heldBack)} new` : ""}` }[state];
}
function drawLight() {
  const { received = 0, restored = 0, delivered = 0, replaced = 0, expired = 0, discarded = 0, waiting = 0, addsUp } = known.counters;
  const ended = delivered + replaced + expired + discarded;
  $("light").replaceChildren(`${number(received + restored)} received = ${number(ended)} ended + ${number(waiting)} waiting `,
    h("b", { class: addsUp ? "good" : "bad", text: addsUp ? "✓ adds up" : "✗ does not add up" }));
}
function setPaused(paused) {
  page.paused = paused;
  heldBack = 0;
  frozen = frozenTable = undefined;
  dirty("pill", "lanes", "table");
}
function goLive() {
  if (at.at != null) go({ at: null });
  setPaused(false);
}

// The drawer.

function drawTool() {
  document.querySelectorAll("footer [data-tool]").forEach((button) => button.setAttribute("aria-pressed", button.dataset.tool === at.tool));
  if (at.tool) openTool(at.tool);
  else closeTool();
}

// The event stream: one for each page, resumed where it ended.

async function listen() {
  stream?.abort();
  const mine = stream = new AbortController();
  try {
    const response = await request("GET", "/v1/events", undefined, { signal: mine.signal,
      headers: { accept: "text/event-stream", ...(cursor ? { "last-event-id": cursor } : {}) } });
    page.online = true;
    retry = 500;
    dirty("pill");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      parse(lines);
    }
  } catch (error) {
    if (mine.signal.aborted) return;
    if (error.status === 401) return signIn();
    if (error.status === 410) {
      cursor = undefined;
      await load().catch(() => {});
    } else if (error instanceof Problem && error.isMissing) retry = 30_000;
  }
  if (mine.signal.aborted) return;
  page.online = false;
  dirty("pill");
  setTimeout(() => mine === stream && !hiddenTab && listen(), retry * (.75 + Math.random() / 2));
  retry = Math.min(retry * 2, 10_000);
}
let eventKind = "", eventData = "", eventId;
function parse(lines) {
  for (const line of lines) {
    if (line === "" || line === "\r") {
      if (eventData) incoming.push([eventKind, eventData]);
      if (eventId) cursor = eventId;
      eventKind = eventData = eventId = "";
    } else if (line.startsWith("data:")) eventData += line.slice(5);
    else if (line.startsWith("event:")) eventKind = line.slice(6).trim();
    else if (line.startsWith("id:")) eventId = line.slice(3).trim();
  }
  if (incoming.length) dirty();
}
document.addEventListener("visibilitychange", () => {
  hiddenTab = document.hidden;
  if (hiddenTab) {
    stream?.abort();
    page.online = false;
  } else if (started) {
    listen();
    refreshPhones();
    loadClock();
  }
});

// Starting.

let started = false;
async function loadHistory(device) {
  const { notifications } = await get("/v1/notifications", { device, limit: device ? 200 : 500 });
  for (const life of notifications.reverse()) addLife(life);
  dirty("lanes", "table", "push");
}
async function load() {
  const overview = await get("/v1/overview");
  if (page.overview.epoch && page.overview.epoch !== overview.epoch) forget();
  page.overview = overview;
  known.counters = { ...overview.counters, devices: overview.devices, connections: overview.connections, addsUp: overview.addsUp, now: overview.now };
  cursor = overview.cursor;
  showClock({ now: overview.now, rate: overview.rate, mode: overview.clock });
  $("light").title = `push-relay ${overview.version}, profile ${overview.profile}`;
  dirty("light", "pill", "phones");
  await loadHistory().catch(() => {});
  if (at.phone) await loadHistory(at.phone).catch(() => {});
}
async function start() {
  try {
    await load();
  } catch (error) {
    if (error.status === 401) return signIn();
    toast(error.message);
    setTimeout(start, 3000);
    return;
  }
  started = true;
  listen();
  refreshPhones();
  loadClock();
  get("/v1/policy").then(({ policy, known: policies }) => {
    $("policy").replaceChildren(...policies.map((name) => h("option", { text: name })));
    $("policy").value = policy;
    $("policy-box").hidden = false;
  }).catch(() => {});
  for (const name of ["faults", "recordings", "refusals"]) {
    get(`/v1/${name}`).then((answer) => {
      if (name === "refusals") known.refusals = answer.refusals;
    }).catch((error) => {
      if (!error.isMissing) return;
      page.missing.add(name);
      document.querySelector(`[data-tool=${name}]`).hidden = true;
      if (at.tool === name) go({ tool: null }, true);
    });
  }
  dirty("tool");
}
function signIn() {
  if (!$("sign-in").open) $("sign-in").showModal();
}

// A summary for screen readers, at most every five seconds.

let spoken = {};
setInterval(() => {
  const list = Object.entries(spoken).map(([word, count]) => `${count} ${word}`);
  spoken = {};
  if (list.length && !document.hidden) $("live").textContent = `${list.join(", ")}. ${clockText(now(), false)}.`;
}, 5000);
setInterval(tick, 250);

// Pointer and keys.

function step(direction) {
  const entries = entriesInView(), from = at.at ?? now() + 1;
  const times = entries.map((entry) => entry.t);
  const next = direction < 0 ? times.filter((t) => t < from).at(-1) : times.find((t) => t > from);
  if (next == null) return direction > 0 && goLive();
  go({ at: next });
}
function move(direction) {
  const index = rowsShown.findIndex((entry) => entry.life.uniqueId === at.push && (!move.key || entry.key === move.key));
  const entry = rowsShown[Math.min(rowsShown.length - 1, Math.max(0, index + direction))];
  if (!entry) return;
  move.key = entry.key;
  go({ push: entry.life.uniqueId }, true);
  requestAnimationFrame(() => document.querySelector("tr.on")?.scrollIntoView({ block: "nearest" }));
}
function showPush() {
  document.body.dataset.view = "push";
  showViews();
  $("push").focus();
}
const toggleTool = (tool) => go({ tool: at.tool === tool ? null : tool });
const KEYS = {
  "?": ["these keys", () => $("help").showModal()],
  "/": ["search phones", () => showView("phones") ?? $("search").focus()],
  j: ["next row", () => move(1)], k: ["row before", () => move(-1)],
  Enter: ["open the push", () => at.push && showPush()],
  " ": ["pause, go on", () => setPaused(!page.paused)],
  ArrowLeft: ["a step back in time", () => step(-1)], ArrowRight: ["a step on", () => step(1)],
  n: ["to the next timer", () => !$("clock-tools").hidden && !$("next").disabled && advance({ next: true })],
  c: ["compose", () => toggleTool("compose")],
  r: ["record, stop recording", () => !page.missing.has("recordings") && toggleRecording()],
  Escape: ["back to live; close", () => (at.tool && at.at == null && !page.paused ? go({ tool: null }) : goLive())],
};
const keysOn = () => localStorage.getItem("keys") !== "off";
document.addEventListener("keydown", (event) => {
  const known = KEYS[event.key];
  if (!known || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const where = event.target;
  if (event.key === "Escape" && where.closest("#drawer")) return go({ tool: null }), document.querySelector("footer [data-tool]").focus();
  if (!keysOn() || where.matches("input, select, textarea")) return;
  if ((event.key === " " || event.key === "Enter") && where.matches("button, a, summary")) return;
  event.preventDefault();
  known[1]();
});
const NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };
$("key-list").append(...Object.entries(KEYS).flatMap(([key, [does]]) => [h("dt", {}, h("kbd", { text: NAMES[key] ?? key })), h("dd", { text: does })]));
$("keys-on").checked = keysOn();
$("keys-on").onchange = (event) => localStorage.setItem("keys", event.target.checked ? "on" : "off");
$("keys").onclick = () => $("help").showModal();
$("help-close").onclick = () => $("help").close();
$("sign-in").addEventListener("cancel", (event) => event.preventDefault());
$("sign-form").onsubmit = (event) => {
  event.preventDefault();
  token.set($("sign-token").value.trim());
  $("sign-in").close();
  start();
};
$("pill").onclick = () => (at.at != null || page.paused ? goLive() : setPaused(true));
$("clock-tools").onclick = (event) => event.target.dataset?.by && advance({ by: event.target.dataset.by });
$("next").onclick = () => advance({ next: true });
$("rate").onchange = (event) => attempt(async () => showClock(await api("PATCH", "/v1/clock", { rate: Number(event.target.value) })));
$("policy").onchange = (event) => attempt(async () => {
  await api("PUT", "/v1/policy", { policy: event.target.value });
  toast(`The policy is ${event.target.value}`);
  refreshPhones();
});
$("light").onclick = () => toggleTool("charts");
$("span").onchange = (event) => go({ span: Number(event.target.value) }, true);
$("only").onchange = (event) => go({ only: event.target.value }, true);
$("older").onclick = () => {
  tableLimit += 100;
  frozenTable = undefined;
  dirty("table");
};
let searchTimer;
$("search").oninput = () => {
  pages = [null];
  clearTimeout(searchTimer);
  searchTimer = setTimeout(refreshPhones, 200);
};
$("page-back").onclick = () => pages.length > 1 && (pages.pop(), refreshPhones());
$("page-on").onclick = () => page.more && (pages.push(page.more), refreshPhones());
$("scrub").oninput = (event) => {
  const value = Number(event.target.value), end = Number(event.target.max);
  go({ at: value >= end - (end - event.target.min) / 1000 ? null : value });
};
function inApp(event, link) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  readUrl();
}
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='#'], a[href='/']");
  if (link?.classList.contains("skip")) {
    event.preventDefault();
    return $("lanes-title").focus();
  }
  if (link) {
    inApp(event, link);
    return showView(link.classList.contains("phone") ? "time" : link.closest("table") ? "push" : null);
  }
  const mark = event.target.closest?.("[data-push]");
  if (!mark || event.target.closest("#drawer")) return;
  const [from, to] = (mark.dataset.zoom ?? "").split(" ").map(Number);
  if (to > from && at.span !== 60e3) {
    const span = [21600e3, 3600e3, 1800e3, 600e3, 60e3].find((size) => size < (at.span || 86400e3) && size < (to - from) * 30) ?? 60e3;
    return go({ span, at: to, push: mark.dataset.push });
  }
  go({ push: mark.dataset.push });
  showView("push");
});
function showView(name) {
  if (name) document.body.dataset.view = name;
  showViews();
  dirty("lanes");
}
function showViews() {
  document.querySelectorAll(".views button").forEach((button) => button.setAttribute("aria-pressed", button.dataset.view === document.body.dataset.view));
}
document.querySelector(".views").onclick = (event) => event.target.dataset.view && showView(event.target.dataset.view);
document.querySelectorAll("footer [data-tool]").forEach((button) => (button.onclick = () => toggleTool(button.dataset.tool)));
$("export").onclick = () => exportRun();
addEventListener("hashchange", readUrl);
addEventListener("popstate", readUrl);
new ResizeObserver(() => dirty("lanes")).observe($("lanes"));
$("legend").append(...legend());
showViews();
readUrl();
start();
