// What every part of the page uses: elements, times, the admin API, and what is known so far.

/** An element. `on…` are listeners, `text` is text; nothing here ever parses HTML. */
export function h(tag, props = {}, ...kids) {
  return fill(document.createElement(tag), props, kids);
}
export function s(tag, props = {}, ...kids) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, kids);
}
function fill(node, props, kids) {
  for (const [key, value] of Object.entries(props)) {
    if (value == null || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...kids.filter((kid) => kid != null));
  return node;
}
export const $ = (id) => document.getElementById(id);

/** Makes `parent` show `items` and leaves the nodes that stay where they are, with their focus. */
export function reconcile(parent, items, keyOf, make, update) {
  const wanted = new Map(items.map((item) => [keyOf(item), item]));
  const have = new Map();
  for (const node of [...parent.children]) {
    if (wanted.has(node.key)) have.set(node.key, node);
    else node.remove();
  }
  let cursor = parent.firstElementChild;
  for (const [key, item] of wanted) {
    let node = have.get(key);
    if (!node) {
      node = make(item);
      node.key = key;
    }
    update?.(node, item);
    if (node === cursor) cursor = cursor.nextElementSibling;
    else parent.insertBefore(node, cursor);
  }
}

// Times and names. UTC, as in the relay's log.

export const clockText = (ms, long = true) => new Date(ms).toISOString().slice(11, long ? 19 : 16);
export const dayText = (ms) => new Date(ms).toLocaleDateString("en-GB", {
  day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
export function lengthText(ms) {
  const parts = [[86400e3, "d"], [3600e3, "h"], [60e3, "min"], [1e3, "s"]];
  const found = [];
  for (const [size, unit] of parts) {
    if (ms >= size && found.length < 2) found.push(`${Math.floor(ms / size)} ${unit}`);
    ms %= size;
  }
  return found.join(" ") || "no time";
}
export const number = (value) => (value ?? 0).toLocaleString("en-US");
/** The last digits of an id, which count in the relay's own ids. */
export const shortId = (id) => "#" + ((id ?? "").split("-").pop().replace(/^0+/, "").slice(-6) || "0");
export const shortPhone = (device) => device.name ?? (device.device ?? device).slice(0, 8);
export const shortTopic = (topic) => topic.split(".").pop();
export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

// The admin API.

export class Problem extends Error {
  constructor(status, body) {
    super(body?.message || body?.reason || `the relay answered ${status}`);
    this.status = status;
    this.reason = body?.reason;
    this.body = body ?? {};
  }
  /** The route is not there, as opposed to the thing that was asked for. */
  get isMissing() {
    return this.status === 501 || (this.status === 404 && !/^Unknown/.test(this.reason ?? ""));
  }
}
export const token = {
  get: () => sessionStorage.getItem("token") ?? "",
  set: (value) => sessionStorage.setItem("token", value),
};
export async function request(method, path, body, more = {}) {
  const headers = { authorization: `bearer ${token.get()}`, ...more.headers };
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(path, {
    method, headers, body: body === undefined ? undefined : JSON.stringify(body),
    signal: more.signal, cache: "no-store" });
  if (response.ok) return response;
  throw new Problem(response.status, await response.json().catch(() => null));
}
export async function api(method, path, body) {
  const response = await request(method, path, body);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}
export const get = (path, query = {}) => {
  const pairs = Object.entries(query).filter(([, value]) => value != null && value !== "");
  return api("GET", path + (pairs.length ? "?" + new URLSearchParams(pairs) : ""));
};

let toastTimer;
export function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = false;
  $("live").textContent = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => ($("toast").hidden = true), 5000);
}
/** Runs what a button starts, and says in a sentence what went wrong. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    const waiting = error.body?.waitingFor;
    toast(error.message + (waiting ? ` (waiting for ${JSON.stringify(waiting)})` : ""));
    return undefined;
  }
}
export function download(name, content, type) {
  const link = h("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// What is known. Bounded: the oldest goes, and the page says so.

const MOST_LIVES = 4000, MOST_ENTRIES = 5000, MOST_LINKS = 2000;
export const known = {
  lives: new Map(), entries: [], links: [], refusals: [], stats: [], payloads: new Map(),
  counters: {}, skipped: 0, version: 0, order: 0, sorted: true,
};

/** The kind of mark of a step, if it has one. */
function markOf(step, kind) {
  if (step.step === "stored") return step.reason === "device offline" ? "away" : "held";
  if (step.step === "discarded") return step.reason === "replaced" ? "replaced" : "expired";
  if (step.step !== "sent") return null;
  if (step.via === "direct") return kind === "visible" ? "visible" : "direct";
  return { piggyback: "ride", refill: "refill", hold: "refill", resend: "resend" }[step.via] ?? "connect";
}
const WORDS = {
  direct: "sent", visible: "sent", held: "held", away: "held", ride: "rode along", refill: "sent on refill",
  connect: "sent on connect", resend: "sent again", replaced: "replaced", expired: "expired" };
export const LEGEND = {
  direct: "silent, sent", visible: "visible, sent", held: "held", away: "held, phone away", ride: "rode along",
  refill: "sent on refill", connect: "sent on connect", resend: "sent again", replaced: "replaced",
  expired: "expired, dropped" };
export function wordOf(entry) {
  const { step, mark } = entry;
  if (mark === "expired" && step.reason !== "expired") return "dropped";
  if (mark === "refill" && step.via === "hold") return "sent after hold";
  return WORDS[mark];
}
const LIMITS = { "app-budget": "budget of the app", "device-budget": "budget of the phone",
  "low-power-mode": "Low Power Mode", "in-flight": "too many in flight", "low-priority": "low priority" };
export function reasonOf({ step, mark }) {
  const carrier = known.lives.get(step.carriedBy);
  switch (mark) {
    case "held": return (LIMITS[step.limit] ?? step.limit ?? step.reason ?? "") +
      (step.until ? `, until ${clockText(step.until)}` : ", no time frees it");
    case "away": return "the phone is away";
    case "ride": return step.carriedBy
      ? `with ${carrier ? carrier.kind + " " : ""}${shortId(step.carriedBy)}${carrier ? " for " + shortTopic(carrier.topic) : ""}`
      : "with a keep-alive or a line of the phone";
    case "replaced": return step.replacedBy ? `by ${shortId(step.replacedBy)}` : "by a newer one";
    case "expired": return step.reason === "expired" ? "its expiration passed" : step.reason ?? "";
    case "refill": return step.via === "hold" ? "it had waited long enough" : "a token came back";
    case "connect": return "the phone connected";
    case "resend": return "no acknowledgement came";
    default: return "at once";
  }
}

export function addStep(data) {
  let life = known.lives.get(data.uniqueId);
  if (!life) {
    const { uniqueId, id, topic, kind, device, token: address } = data;
    life = { uniqueId, id, topic, kind, device, token: address, steps: [], entries: [] };
    known.lives.set(uniqueId, life);
    if (known.lives.size > MOST_LIVES) known.lives.delete(known.lives.keys().next().value);
  }
  const twice = life.steps.some((step) => step.time === data.time && step.step === data.step &&
    step.via === data.via && step.reason === data.reason && step.outcome === data.outcome);
  if (twice) return null;
  life.steps.push(data);
  if (data.step !== "outcome") life.state = data.step;
  known.version += 1;
  const mark = markOf(data, life.kind);
  if (!mark) return null;
  const entry = { t: data.time, mark, life, step: data, key: ++known.order };
  const last = known.entries.at(-1);
  if (last && last.t > entry.t) known.sorted = false;
  known.entries.push(entry);
  life.entries.push(entry);
  if (known.entries.length > MOST_ENTRIES * 1.2) {
    sortEntries();
    known.skipped += known.entries.length - MOST_ENTRIES;
    known.entries = known.entries.slice(-MOST_ENTRIES);
  }
  return entry;
}
export function addLife(life) {
  for (const step of life.steps) addStep({ ...life, ...step });
  const mine = known.lives.get(life.uniqueId);
  if (!mine) return;
  mine.entries.sort((a, b) => a.t - b.t || a.key - b.key);
  for (const key of ["sentence", "warnings", "payload"]) if (life[key] != null) mine[key] = life[key];
}
export function addLink(event) {
  known.links.push(event);
  if (known.links.length > MOST_LINKS) known.links.splice(0, MOST_LINKS / 4);
  known.version += 1;
}
export function sortEntries() {
  if (known.sorted) return;
  known.entries.sort((a, b) => a.t - b.t || a.key - b.key);
  known.sorted = true;
}
export function forget() {
  known.lives.clear();
  known.entries = [];
  known.links = [];
  known.version += 1;
}
