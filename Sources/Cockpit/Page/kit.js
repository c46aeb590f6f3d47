// What every part uses: elements, times and names, the admin API, and what is known so far.

export const { entries: pairs } = Object;
export const $ = (id) => document.getElementById(id);

// h("button.main#send", { onclick }, "Send"). Children become text or nodes; nothing here parses HTML.
const maker = (space) => (what, ...rest) => {
	const [tag, ...marks] = what.split(/(?=[.#])/), node = document.createElementNS(space, tag);
	let value;
	for (const mark of marks) mark[0] === "#" ? (node.id = mark.slice(1)) : node.classList.add(...(mark.match(/[\w-]+/g) ?? []));
	for (const item of rest.flat(3)) {
		if (item == null || item === false) continue;
		if (item.constructor !== Object) node.append(item);
		else for (const [key, content] of pairs(item)) {
			if (key === "value") value = content;
			else if (key.startsWith("on")) node[key] = content;
			else if (content != null && content !== false) node.setAttribute(key, content === true ? "" : content);
		}
	}
	if (value !== undefined) node.value = value;
	return node;
};
// What a phone says of itself is data: an object where a text is expected is shown, and is no attributes.
const plain = Object.assign(Object.create(null), { toString() { return JSON.stringify(this); } });
export const data = (value) => JSON.parse(JSON.stringify(value), (key, part) => (part?.constructor === Object ? Object.assign(Object.create(plain), part) : part));
export const h = maker("http://www.w3.org/1999/xhtml"), s = maker("http://www.w3.org/2000/svg");
export const set = (where, ...kids) => (where.at ? $(where) : where).replaceChildren(...h("i", kids).childNodes);

// Makes `parent` show `items`; nodes that stay are not moved and keep their focus.
export function reconcile(parent, items, keyOf, make, update) {
	const wanted = new Map(items.map((item) => [keyOf(item), item])), have = new Map();
	for (const node of [...parent.children]) wanted.has(node.key) ? have.set(node.key, node) : node.remove();
	let cursor = parent.firstElementChild;
	for (const [key, item] of wanted) {
		const node = have.get(key) ?? Object.assign(make(item), { key });
		update(node, item);
		if (node === cursor) cursor = cursor.nextElementSibling;
		else parent.insertBefore(node, cursor);
	}
}

// Times are UTC, as in the relay's log. The end of an id counts in the relay's own ids.
export const hms = (ms, seconds = true) => new Date(ms).toISOString().slice(11, seconds ? 19 : 16);
export const day = (ms) => new Date(ms).toISOString().slice(0, 10);
// A time, with its day where that is not the day of now.
export const moment = (ms, seconds) => (day(ms) === known.today ? "" : `${day(ms)} `) + hms(ms, seconds);
export const number = (value) => (value ?? 0).toLocaleString("en-US");
export const some = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
// A length of time as one would say it: at most two units.
const UNITS = [["d", 86400e3], ["h", 3600e3], ["min", 60e3], ["s", 1e3], ["ms", 1]];
export function lengthOf(ms) {
	const first = UNITS.findIndex(([, size]) => ms >= size || size === 1), [unit, size] = UNITS[first], [smaller, rest] = UNITS[first + 1] ?? [unit, size], whole = Math.floor(ms / size), more = Math.floor(ms % size / rest);
	return `${whole} ${unit}${more && whole < 10 ? ` ${more} ${smaller}` : ""}`;
}
const STAMP = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
export const withTimes = (text) => text.replace(STAMP, (stamp) => moment(Date.parse(stamp)));
export const shortId = (id) => id && "#" + (id.split("-").pop().replace(/^0+/, "").slice(-6) || "0");
export const joined = (...parts) => parts.filter(Boolean).join(", ");
export const capital = (text) => text[0].toUpperCase() + text.slice(1);
// What a device has of Live Activities has topics of its own: `activity 1 of shop`.
export const partOf = (topic) => topic.split(".push-type.liveactivity.")[1]?.replace(".", " ");
export const shortTopic = (topic) => [partOf(topic), topic.split(".push-type.liveactivity")[0].split(".").pop()].filter(Boolean).join(" of ");
export const nameOf = (device) => known.names.get(device) || device.slice(0, 8);

// The admin API.
export async function request(method, path, body, more = {}) {
	const headers = { authorization: `bearer ${sessionStorage.getItem("token")}`, ...(body && { "content-type": "application/json" }), ...more.headers };
	const response = await fetch(path, { method, body: body && JSON.stringify(body), cache: "no-store", ...more, headers }).catch(() => {
		throw new Error("The relay does not answer. Does it run?");
	});
	if (response.ok) return response;
	const { status } = response, { reason, message = `the relay answered ${status}` } = await response.json().catch(() => ({}));
	throw Object.assign(new Error(message), { status, reason });
}
export const api = async (...call) => JSON.parse((await (await request(...call)).text()) || "null");
export const get = (path, query = {}) => api("GET", `${path}?${new URLSearchParams(pairs(query).filter(([, value]) => value))}`.replace(/\?$/, ""));
// Requests as they were sent; none of a relay that keeps none.
export const requestsOf = (query) => get("/v1/requests", query).then(({ requests }) => requests, () => []);
// Work in small pieces: after four milliseconds others have their turn.
let breath = 0;
export async function breathe() {
	if (performance.now() < breath + 4) return;
	await new Promise((done) => setTimeout(done));
	breath = performance.now();
}
// Draws, and who was there with the keyboard stays: on what has that name, else on the first that is about the same, else at that place from the end.
export function keepFocus(parent, draw) {
	const nodes = () => [...parent.querySelectorAll("button, a, select, input")], said = (node) => node.ariaLabel ?? node.textContent;
	const before = nodes(), index = before.indexOf(document.activeElement);
	draw();
	if (index < 0 || parent.contains(document.activeElement)) return;
	const after = nodes(), name = said(before[index]), about = before[index].ariaLabel?.split(" ").at(-1);
	(after.find((node) => said(node) === name) ?? (about && after.find(({ ariaLabel }) => ariaLabel?.endsWith(` ${about}`))) ?? after.at(index - before.length) ?? after[0] ?? parent).focus();
}
let toastTimer;
export function toast(text) {
	$("toast").hidden = false;
	set("toast", text);
	clearTimeout(toastTimer);
	toastTimer = setTimeout(() => ($("toast").hidden = true), 5000);
}
// Starts work and says in a sentence what went wrong.
export const attempt = (work) => Promise.resolve().then(work).catch(({ message }) => toast(message));
export const button = (text, work, about) => h("button", { onclick: () => attempt(work), "aria-label": about && `${text} ${about}` }, text);
export function download(name, content, type) {
	const href = URL.createObjectURL(new Blob([content], { type }));
	h("a", { href, download: name }).click();
	setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

// What is known. Bounded: the oldest goes, and the page says so.
const MOST_LIVES = 4000, MOST_ENTRIES = 5000;
export const known = { lives: new Map(), entries: [], links: [], changes: new Map(), names: new Map(), owners: new Map(), topics: new Map(), requests: new Map(), statuses: new Set(), stats: [], counters: {}, skipped: 0, from: 0 };
let order = 0, sorted = true;

// What is further down is shown when marks do not fit.
export const LEGEND = { direct: "silent, sent", visible: "visible, sent", connect: "sent on connect", resend: "sent again", replaced: "replaced",
	refill: "sent on refill", away: "held, phone away", held: "held", ride: "rode along", expired: "expired, dropped", fault: "fault", change: "limits changed", refused: "refused" };
const CHANGES = { budget: "budget filled", emptied: "slots emptied", policy: "policy", forgotten: "forgotten" };
function markOf({ step, reason, via }, kind) {
	if (step === "fault") return step;
	if (step === "stored") return reason === "device offline" ? "away" : "held";
	if (step === "discarded") return reason === "replaced" ? reason : "expired";
	if (via === "direct") return kind === "visible" ? kind : via;
	return { piggyback: "ride", hold: "refill" }[via] ?? via;
}
export function wordOf({ mark, step }) {
	if (mark === "change") return step.remaining === 0 ? "budget used up" : CHANGES[step.what];
	if (mark === "expired") return step.reason === mark ? mark : "dropped";
	return { direct: "sent", visible: "sent", away: "held" }[mark] ?? LEGEND[mark];
}
export function whyOf({ mark, life, step: { limit, reason, until, carriedBy, carrier: word, replacedBy, via, fault, policy, device, topic } }) {
	const carrier = known.lives.get(carriedBy);
	if (mark === "change") return joined(policy, topic ?? (device ? "this phone" : "all phones"));
	if (mark === "refused") return `${life.refusal.status} ${life.refusal.reason}: ${life.refusal.cause ?? life.refusal.message ?? ""}`;
	if (fault) return `${fault}: ${reason}`;
	if (mark === "held") return `${(limit ?? reason).replaceAll("-", " ")}, ${until ? `until ${moment(until)}` : "no time frees it"}`;
	if (carriedBy) return `with ${shortId(carriedBy)}${carrier ? `, ${carrier.kind}, ${shortTopic(carrier.topic)}` : ""}`;
	if (word) return { condition: "the phone changed", answer: "with the phone's answer", room: "there was room" }[word] ?? `with a ${word}`;
	if (replacedBy) return `by ${shortId(replacedBy)}`;
	return { hold: "it waited long enough", expired: "its expiration passed", refill: "a token came back",
		connect: "the phone connected", resend: "no acknowledgement came", direct: "at once", "device offline": "the phone is away" }[via ?? reason] ?? reason;
}

export function keep(map, key, value, most) {
	map.set(key, value);
	if (map.size > most) map.delete(map.keys().next().value);
}
// What comes by stream may be known from a life already; within a life the same may come twice in a millisecond.
const isSame = (one, other) => ["time", "step", "via", "reason", "outcome"].every((key) => one[key] === other[key]);
export function addStep(data, times = 1) {
	let life = known.lives.get(data.uniqueId);
	if (!life) {
		const { uniqueId, id, topic, kind, device, token } = data;
		life = { uniqueId, id, topic, kind, device, token, steps: [], entries: [] };
		keep(known.lives, uniqueId, life, MOST_LIVES);
		keep(known.topics, topic, true, 500);
	}
	if (life.steps.filter((step) => isSame(step, data)).length >= times) return null;
	life.steps.push(data);
	const mark = markOf(data, life.kind);
	return mark ? enter(life, mark, data) : null;
}
// A refused request is a life of one step. What is known of it besides comes with the request, if that is kept.
export function addRefusal({ time, uniqueId, ...refusal }) {
	if (known.lives.has(uniqueId)) return null;
	const life = { uniqueId, id: "", topic: "", kind: "", device: "", token: "", steps: [{ time, step: "refused", text: `refused: ${refusal.status} ${refusal.reason}` }], entries: [], refusal };
	keep(known.lives, uniqueId, life, MOST_LIVES);
	known.statuses.add(String(refusal.status));
	addRequest(known.requests.get(uniqueId));
	return enter(life, "refused", life.steps[0]);
}
// A request as it was sent; of a refused one it says whose it would have been.
export function addRequest(request) {
	if (!request) return null;
	const { uniqueId, id, topic, kind, device, token } = request;
	keep(known.requests, uniqueId, request, 500);
	let life = known.lives.get(uniqueId);
	if (!life && request.status > 299) {
		addRefusal({ cause: request.message, peer: request.connection.peer, ...request });
		life = known.lives.get(uniqueId);
	}
	if (!life) return null;
	if (life.refusal) {
		for (const [key, value] of pairs({ id, topic, kind, device, token })) life[key] = value || life[key];
		if (topic) keep(known.topics, topic, true, 500);
	}
	life.request = request;
	return life;
}
// It goes to whoever listens to a channel, and has no life of its own.
export const isBroadcast = ({ path }) => /\/broadcasts\//.test(path);
// How far a push is, or how it has ended: at a moment.
export function stateOf({ refusal, steps }, at = Infinity) {
	if (refusal) return "refused";
	const last = steps.findLast(({ step, time }) => STATES[step] && time <= at) ?? { step: "received" };
	return last.step === "discarded" && STATES[last.reason] ? last.reason : last.step;
}
export const STATES = { received: "just received", restored: "restored", stored: "held", sent: "sent, not acknowledged", delivered: "delivered",
	replaced: "replaced", expired: "expired", discarded: "dropped otherwise", refused: "refused" };
// What somebody changed has a lane of its own. A budget's use is a push's; that it was the last is not.
export function addChange(data) {
	const { time, device, what, topic, policy, remaining } = data, key = [time, device, what, topic, policy].join();
	if (!CHANGES[what] || remaining || known.changes.has(key)) return null;
	keep(known.changes, key, true, 2000);
	return enter({ uniqueId: "", topic: "limits", kind: "silent", device: device ?? "", entries: [] }, "change", data);
}
function enter(life, mark, step) {
	const entry = { t: step.time, mark, life, step, key: ++order, rank: parseInt(life.uniqueId.slice(-12), 16) };
	sorted &&= entry.t > (known.entries.at(-1)?.t ?? 0);
	known.entries.push(entry);
	life.entries.push(entry);
	if (known.entries.length > MOST_ENTRIES * 1.2) known.skipped += entries().splice(0, MOST_ENTRIES * .2).length;
	return entry;
}
// Of one moment by the numbers that the relay gave them; a change, which has none, goes last.
const byTime = (a, b) => a.t - b.t || (a.rank || 1 / 0) - (b.rank || 1 / 0) || a.key - b.key;
export function entries() {
	if (!sorted) known.entries.sort(byTime);
	sorted = true;
	return known.entries;
}
export function addLife({ steps, ...life }) {
	steps = steps.map((step) => ({ ...life, ...step }));
	steps.forEach((step, index) => addStep(step, steps.slice(0, index + 1).filter((other) => isSame(other, step)).length));
	const mine = known.lives.get(life.uniqueId), later = mine.steps.filter((step) => !steps.some((other) => isSame(other, step)));
	if (life.phone) keep(known.names, life.device, life.phone, 2000);
	mine.entries.sort(byTime);
	mine.steps = [...steps, ...later].sort((a, b) => a.time - b.time);
	return Object.assign(mine, { waits: null }, life);
}
