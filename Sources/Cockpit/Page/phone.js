// One phone: its lock screen, apps, budgets, and what one can do to it. As of then, when one looks back.

import { api, button, day, entries, get, h, hms, keep, known, nameOf, number, pairs, shortId, shortTopic, some, toast } from "./kit.js";
import { page, view } from "./cockpit.js";

const COUNTS = { documented: [3, 12], strict: [1, 2] };
let own, past, pastOf = "", said;

// What the phone says of itself, if it takes orders; and as of then, what a recording says.
export async function loadPhone() {
	const { phone } = view;
	own = past = said = null;
	pastOf = "";
	if (!phone) return;
	const found = await get(`/v1/devices/${phone}/phone`).catch(() => null);
	if (view.phone === phone) own = found;
	page.dirty("push");
	await Promise.all([loadPast(), loadTexts(phone)]);
}
export async function loadPast() {
	const { phone, at } = view, wanted = `${phone} ${at}`;
	if (!phone || !at) return (pastOf = "");
	if (pastOf === wanted) return;
	pastOf = wanted;
	const found = await get("/v1/state", { device: phone, at }).catch(({ message }) => ({ message }));
	if (pastOf === wanted) past = found;
	page.dirty("push");
}
// The phones of the list as of then. The first that nobody recorded ends it.
let listed = 0;
export async function loadListed(phones) {
	const { at } = view, number = ++listed, found = new Map();
	for (const { device } of at ? phones.slice(0, 12) : []) {
		const state = await get("/v1/state", { device, at }).catch(() => null);
		if (number !== listed) return new Map();
		if (!state) break;
		found.set(device, state);
	}
	return found;
}
// Payloads are with the requests. Those of this phone, as many as a lock screen has room for.
async function loadTexts(device) {
	const { requests } = await get("/v1/requests", { device, limit: 60 }).catch(() => ({ requests: [] }));
	for (const request of requests) keep(known.requests, request.uniqueId, request, 500);
	page.dirty("push");
}

// Used and free blocks, and when the next comes back.
export function gauge({ remaining, heldUntil, next = heldUntil, limit, count }, most, name = "") {
	if (remaining == null) return h("span.dim", name && `${name} `, "no limit");
	const total = Math.max(count ?? most ?? 0, remaining), time = view.at || page.now();
	const text = [remaining || total ? `${remaining} of ${total} left` : "", next > time && `next ${hms(next)}`, limit && limit !== "app-budget" && limit !== "device-budget" && limit.replaceAll("-", " ")].filter(Boolean).join(", ");
	return h("span.gauge", { role: "img", "aria-label": `${name} budget: ${text}` }, name && `${name} `, Array.from({ length: Math.min(total, 16) }, (_, index) => h(index < remaining ? "i.on" : "i")), ` ${text}`);
}
export function countsOf(policy) {
	return typeof policy === "object" && policy ? [policy.app?.count, policy.device?.count] : COUNTS[policy] ?? [];
}

export function drawPhone() {
	const isPast = !!view.at, device = isPast ? past : page.phone, time = view.at || page.now(), name = nameOf(view.phone), takesOrders = own && !isPast;
	const [perApp, perPhone] = countsOf(device?.budget?.policy), head = h("div.title", h("h2", name === view.phone.slice(0, 8) ? `Phone ${name}` : name), h("code.dim", view.phone.slice(0, 8)));
	const note = isPast && (past ? past.message && `What this phone was at ${hms(view.at)} is not known: ${past.message.replace(/[.]$/, "")}. A recording has to run (Recordings).` : "…");
	return [head, h("p.dim", device?.apps ? [isPast && `at ${hms(view.at)}`, device.connected ? "connected" : "away", device.network, device.power, `screen ${device.screen}`, takesOrders && own.locked != null && (own.locked ? "locked" : "unlocked")].filter(Boolean).join(", ") : ""),
		note && h("p.why.away", note), lockScreen(time), h("h3", "Apps"),
		device?.apps?.[0] ? h("ul.apps", device.apps.slice(0, 40).map((app) => appRow(app, perApp, takesOrders))) : h("p.dim", isPast ? "Not known." : "No app yet."),
		device?.budget && [h("h3", "Budget of the phone"), h("p", gauge(device.budget, perPhone)), h("p.dim", `Policy: ${page.policyName(device.budget.policy)}`)],
		!isPast && [h("h3", "At the relay"), h("div.row", pairs({ connection: "Drop connection", slots: "Empty slots", budget: "Refill budget" }).map(([part, name]) =>
			button(name, () => api("DELETE", `/v1/devices/${view.phone}/${part}`).then(page.refreshPhones))))],
		takesOrders ? orders() : !isPast && h("p.dim", "This phone takes no orders: only a simulated one that said so does what one tells it (pushrelay device)."),
		h("p#said.dim", { role: "status" }, said)].flat();
}
function slotWords(slot, kind) {
	return slot && [h("b.warn", "● "), `${kind} `, page.pushLink(slot.uniqueId), " held"];
}
function appRow({ topic, budget, visible, silent }, perApp, takesOrders) {
	const state = own?.apps?.find((app) => app.topic === topic || app.name === topic), short = shortTopic(topic);
	return h("li", h("div.title", h("b", { title: topic }, short), h("span.dim", !view.at && state ? [state.state, state.badge ? `badge ${state.badge}` : ""].filter(Boolean).join(", ") : "")),
		h("div", gauge(budget, perApp)), h("div.dim", slotWords(visible, "visible"), visible && silent && ", ", slotWords(silent, "silent")),
		takesOrders && h("div.row", [["Open", "open"], ["Swipe away", "swipe away"], ["Crash", "crash"], ["Uninstall", "uninstall"]].map(([name, verb]) => button(name, () => order(verb, { app: topic }), short))));
}
async function order(verb, more) {
	const { phone } = view, { lines } = await api("POST", `/v1/devices/${phone}/do`, { do: verb, ...more });
	const text = lines?.map((line) => line.text ?? line).join("; ") || `${verb}: done`;
	if (view.phone !== phone) return;
	const kept = own = await get(`/v1/devices/${phone}/phone`).catch(() => own);
	said = text;
	toast(text);
	page.dirty("push");
	await page.refreshPhones();
	own = kept;
}
function orders() {
	const isOn = { lock: own.locked, low: own.lowPower, charging: own.charging, off: own.off };
	const switcher = (name, verb, on) => button(`${name} ${on ? "off" : "on"}`, () => order(verb, { to: on ? "off" : "on" }));
	return [h("h3", "Do to the phone"), h("div.row", isOn.lock ? button("Unlock", () => order("unlock")) : button("Lock", () => order("lock")),
		h("label", "network ", h("select#p-network", { value: own.network ?? page.phone?.network, onchange: ({ target }) => page.attempt(() => order("network", { to: target.value })) }, ["wifi", "cellular", "none", "airplane"].map((value) => h("option", { value }, value)))),
		switcher("Charger", "charger", isOn.charging ?? page.phone?.power === "charging"), switcher("Low power", "low power", isOn.low ?? page.phone?.power === "low"),
		button("Reboot", () => order("reboot")), button(isOn.off ? "Switch on" : "Switch off", () => order("power", { to: isOn.off ? "on" : "off" })))];
}

// The lock screen: what was sent to the phone until then, as a phone groups it, the newest first.

export const payloadOf = (life) => life.payload ?? life.request?.payload ?? known.requests.get(life.uniqueId)?.payload ?? known.sent.get(life.uniqueId)?.payload;
const args = (list) => (list?.[0] ? ` (${list.join(", ")})` : "");
// A text, or of a localized one the key that the app would look up.
function texts(alert) {
	if (alert == null) return {};
	if (typeof alert !== "object") return { body: String(alert) };
	const of = (text, key, values) => text ?? (alert[key] && h("code", { title: "The app looks this key up in its own language" }, `${alert[key]}${args(alert[values])}`));
	return { title: of(alert.title, "title-loc-key", "title-loc-args"), subtitle: of(alert.subtitle, "subtitle-loc-key", "subtitle-loc-args"), body: of(alert.body, "loc-key", "loc-args") };
}
const soundOf = (sound) => sound && `♪ ${sound.name ?? (sound.at ? sound : "default")}${sound.critical ? ", critical" : ""}`;
function lockScreen(time) {
	const mine = entries().filter(({ life, step, t }) => life.device === view.phone && step.step === "sent" && t <= time), seen = new Set(), groups = new Map(), badges = new Map(), wakes = [];
	for (const { life, t } of mine.toReversed().slice(0, 200)) {
		if (seen.has(life.uniqueId)) continue;
		seen.add(life.uniqueId);
		const payload = payloadOf(life), aps = payload?.aps ?? {}, key = `${life.topic} ${aps["thread-id"] ?? ""}`;
		if (aps.badge != null && !badges.has(life.topic)) badges.set(life.topic, aps.badge);
		if (life.kind === "silent") {
			const data = Object.keys(payload ?? {}).filter((name) => name !== "aps").join(", ");
			if (wakes.length < 3) wakes.push(h("li", h("time", hms(t, false)), h("span", page.pushLink(life.uniqueId), ` wakes ${shortTopic(life.topic)}${data ? `, with ${data}` : ""}`)));
		} else groups.has(key) ? groups.get(key).push({ life, t, aps, payload }) : groups.set(key, [{ life, t, aps, payload }]);
	}
	return [h("div.screen", { role: "group", "aria-label": "Lock screen" }, h("b", hms(time, false)), h("span", day(time)),
		[...groups.values()].slice(0, 5).map((group) => card(group, badges)), groups.size > 5 && h("small", some(groups.size - 5, "more group")), !groups.size && h("small", "Nothing on the lock screen.")),
		wakes[0] && h("ul.wakes", { "aria-label": "Woken by silent pushes" }, wakes)];
}
function card([{ life, t, aps, payload }, ...older], badges) {
	const { title, subtitle, body } = texts(aps.alert), badge = badges.get(life.topic), level = aps["interruption-level"];
	const notes = [soundOf(aps.sound), aps["thread-id"] && `thread ${aps["thread-id"]}`, aps.category && `category ${aps.category}`, level && level !== "active" && level, aps["content-available"] === 1 && "wakes the app"].filter(Boolean);
	return h("p.card", { "data-push": life.uniqueId }, h("small", h("span", shortTopic(life.topic), badge != null && h("b.badge", { title: "badge" }, number(badge))), h("span", hms(t, false))),
		title && h("strong", title), subtitle && h("em", subtitle), body && h("span", body),
		!title && !body && h("span", payload ? (aps.badge != null ? `no text, badge ${aps.badge}` : "no alert") : [`Push `, page.pushLink(life.uniqueId), ", text not kept"]),
		notes[0] && h("small.notes", notes.join(" · ")), older[0] && h("small.older", `${older.length} more ${aps["thread-id"] ? "in this thread" : `from ${shortTopic(life.topic)}`}: `, older.slice(0, 3).map(({ life }) => [page.pushLink(life.uniqueId), " "])));
}
