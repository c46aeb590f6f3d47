// One phone: its lock screen, apps, budgets, and what one can do to it. As of then, when one looks back.

import { addRequest, api, attempt, button, data, day, entries, get, h, hms, joined, keep, known, moment, nameOf, number, pairs, partOf, requestsOf, shortTopic, some, toast } from "./kit.js";
import { page, view } from "./cockpit.js";

let own, past, said, refusal, asking;

// What the phone says of itself, if it takes orders; and as of then, what a recording says.
export async function loadPhone() {
	own = past = said = refusal = null;
	if (view.phone) await Promise.all([loadPast(), loadTexts()]);
}
export async function loadOwn(again) {
	if (again) refusal = null;
	// One that takes no orders is asked once.
	const { phone } = view;
	if (!phone || refusal || !own && asking === phone) return;
	asking = phone;
	const found = await get(`/v1/devices/${phone}/phone`).catch(({ message }) => ({ message }));
	asking = null;
	if (view.phone !== phone) return;
	own = [found.apps, found.banners].every(Array.isArray) ? data(found) : null;
	if (own && !known.names.get(phone)) keep(known.names, phone, own.phone, 2000);
	refusal = found.message && `It cannot be told what to do: ${found.message}`;
	page.dirty("push", "lanes", "table");
}
const stateOf = (device, at) => get("/v1/state", { device, at }).catch(({ reason, message }) => ({ reason, message }));
export async function loadPast() {
	const { phone, at } = view, found = phone && at && await stateOf(phone, at);
	if (phone === view.phone && found) past = { ...found, at };
	page.dirty("push");
}
// The phones of the list as of then. The first that nobody recorded ends it.
export async function loadListed(phones) {
	const { at } = view, found = new Map();
	for (const { device } of phones.slice(0, 12)) {
		const state = at && await stateOf(device, at);
		if (!state?.apps || at !== view.at) break;
		found.set(device, state);
	}
	return found;
}
// Payloads are with the requests. Those of this phone, as many as a lock screen has room for.
// A refused one does not say whose it would have been.
export async function loadTexts() {
	const { phone: device } = view;
	if (device) for (const request of await requestsOf({ device, limit: 200 })) addRequest({ device, ...request });
	page.dirty("push", "lanes", "table");
}

// Used and free blocks, and when the next comes back.
export function gauge({ remaining, burst, every, heldUntil, next = heldUntil, limit }, name = "") {
	if (remaining == null) return h("span.dim", name && `${name} `, "no limit");
	const time = view.at || page.now(), other = limit && !/budget/.test(limit) && limit.replaceAll("-", " ");
	const text = joined(`${number(remaining)}${burst ? ` of ${number(burst)}` : ""} left`, next > time && `next ${moment(next)}`, next > time && every && `one in ${every}`, other);
	return h("span.gauge", { role: "img", "aria-label": `${name} budget: ${text}` }, name && `${name} `, Array.from({ length: Math.min(burst ?? remaining, 16) }, (_, index) => h(index < remaining ? "i.on" : "i")), ` ${text}`);
}

export function drawPhone() {
	const isPast = !!view.at, device = isPast ? past?.at === view.at && past : page.phone, time = view.at || page.now(), name = nameOf(view.phone), phone = isPast ? null : own, short = view.phone.slice(0, 8);
	if (page.phone?.missing) return [h("h2", `Phone ${name}`), h("p.why.away", page.phone.missing)];
	const apps = (device?.apps ?? []).filter(({ topic }) => !partOf(topic)), tokens = (device?.apps ?? []).filter(({ topic }) => partOf(topic));
	// The relay forgets one that is uninstalled; the phone can install it again.
	for (const { app, state } of phone?.apps ?? []) if (state === "uninstalled" && !apps.some(({ topic }) => topic === app)) apps.push({ topic: app });
	const note = isPast && (device ? device.message && `How this phone was at ${moment(view.at)} is not known: ${device.reason === "UnknownRecording" ? "nothing was recorded. Recordings begins one." : device.message}` : "…");
	const facts = device?.apps && joined(isPast && `at ${moment(view.at)}`, device.connected ? "connected" : "away", phone?.network ?? device.network, device.power, phone?.processor !== "off" && `screen ${device.screen}`, phone && (phone.processor === "off" ? "switched off" : LOCKS[phone.lock]));
	return [h("div.title", h("h2", name === short ? `Phone ${name}` : name), h("code.dim", short)), h("p.dim", facts || ""),
		note && h("p.why.away", note), lockScreen(time, phone), h("h3", "Apps"),
		apps[0] ? h("ul.apps", apps.slice(0, 40).map((app) => appRow(app, phone))) : h("p.dim", isPast ? "Not known." : "No app yet."),
		tokens[0] && h("p.dim", "Tokens of Live Activities: ", tokens.slice(0, 40).map(({ topic }) => shortTopic(topic)).join("; ")),
		device?.budget && [h("h3", "Budget of the phone"), h("p", gauge(device.budget)), h("p.dim", `Policy: ${device.budget.policy}`)],
		!isPast && [h("h3", "At the relay"), h("div.row", pairs({ connection: "Drop connection", slots: "Empty slots", budget: "Refill budget" }).map(([part, name]) =>
			button(name, () => api("DELETE", `/v1/devices/${view.phone}/${part}`).then(() => tell(`${name}: done`))))), phone ? orders(phone) : h("p.dim", refusal)],
		h("p#said.dim", { role: "status" }, said)].flat();
}
const LOCKS = { locked: "locked", unlocked: "unlocked", beforeFirstUnlock: "not unlocked since its start" };
const STATES = { notRunning: "not running", foreground: "open", background: "runs in the background", forceQuit: "swiped away" };
const slotWords = (slot, kind) => slot && [h("b.warn", "● "), `${kind} `, page.pushLink(slot.uniqueId), " held "];
function appRow({ topic, environment, budget, visible, silent }, phone) {
	const { state, badge, refused, lastRun } = phone?.apps.find(({ app }) => app === topic) ?? {}, short = shortTopic(topic);
	const verbs = phone?.processor === "off" ? [] : state === "uninstalled" ? ["Install again"]
		: ["Open", state !== "forceQuit" && "Swipe away", state === "foreground" && "Leave", /ground/.test(state) && "Crash", "Uninstall"];
	return h("li", h("div.title", h("b", { title: topic }, short), h("span.dim", joined(environment, state && (STATES[state] ?? state), state && badge && `badge ${number(badge)}`))), budget && h("div", gauge(budget)),
		(visible || silent) && h("div", slotWords(visible, "visible"), slotWords(silent, "silent")),
		lastRun && h("div.dim", `last run ${moment(lastRun.began)} for `, lastRun.uniqueId ? page.pushLink(lastRun.uniqueId) : lastRun.cause, `: ${lastRun.outcome ?? (lastRun.ended ? "ended" : "still runs")}`), refused && h("div.warn", `not run in the background: ${refused}`),
		state && verbs[0] && h("div.row", verbs.map((verb) => verb && button(verb, () => order(verb.toLowerCase(), verb !== "Leave" && { app: topic }), short))));
}
async function order(verb, more) {
	const { phone } = view, { lines } = await api("POST", `/v1/devices/${phone}/do`, { do: verb, ...more });
	if (view.phone === phone) await tell(lines?.slice(-5).join("; ") || `${verb}: done`);
}
function tell(text) {
	said = text;
	toast(text);
	return page.refreshPhones();
}
const switcher = (name, isOn) => button(`${name} ${isOn ? "off" : "on"}`, () => order(name.toLowerCase(), { to: isOn ? "off" : "on" }));
function orders({ lock, network, charging, lowPower, processor }) {
	const choose = ({ target }) => attempt(() => order("network", { to: target.value }));
	const isOn = processor !== "off";
	return [h("h3", "Do to the phone"), h("div.row", isOn && (lock === "unlocked" ? button("Lock", () => order("lock")) : button("Unlock", () => order("unlock"))),
		h("label", "network ", h("select#p-network", { value: network, onchange: choose }, ["wifi", "cellular", "none", "airplane"].map((value) => h("option", { value }, value)))),
		switcher("Charger", charging), isOn && switcher("Low power", lowPower), isOn && button("Reboot", () => order("reboot")), switcher("Power", isOn))];
}

// The lock screen: what was sent to the phone until then, as a phone groups it, the newest first.

// A payload may have anything anywhere.
const textOf = (...values) => values.find((value) => typeof value === "string");
// What a phone reads in an alert; without a text it shows no banner.
function bannerOf(alert) {
	const parts = [textOf(alert?.title, alert?.["title-loc-key"]), textOf(alert?.subtitle, alert?.["subtitle-loc-key"]), textOf(alert?.body, alert?.["loc-key"])];
	return textOf(alert) ?? parts.filter((part) => part != null).join(": ");
}
const args = (list) => (Array.isArray(list) && list[0] != null ? ` (${data(list).join(", ")})` : "");
// A text, or of a localized one the key that the app would look up.
function texts(alert) {
	if (typeof alert !== "object") return { body: alert };
	const of = (text, key, values) => textOf(text) ?? (textOf(alert[key]) && h("code", { title: "The app looks this key up in its own language" }, alert[key], args(alert[values])));
	return { title: of(alert.title, "title-loc-key", "title-loc-args"), subtitle: of(alert.subtitle, "subtitle-loc-key", "subtitle-loc-args"), body: of(alert.body, "loc-key", "loc-args") };
}
const soundOf = (sound) => sound && `♪ ${textOf(sound, sound.name, "default")}${sound.critical ? ", critical" : ""}`;
function lockScreen(time, phone) {
	const { shown, wakes, dropped, badges, isCut } = sentUntil(time);
	for (const { app, badge } of phone?.apps ?? []) badges.set(app, badge || null);
	const banners = phone ? ofPhone(phone.banners, shown) : shown, row = ({ life, t }, ...text) =>
		h("li", h("time", moment(t, false)), h("span", page.pushLink(life.uniqueId), text));
	const groups = [...Map.groupBy(banners, ({ app, aps }) => `${app} ${textOf(aps["thread-id"], "")}`).values()];
	return [h("div.screen", { role: "group", "aria-label": "Lock screen" }, h("b", hms(time, false)), h("span", day(time)),
			phone?.activities?.map(activityCard), groups.slice(0, 5).map((group) => card(group, badges, isCut && !phone)),
			groups[5] && h("small", some(groups.length - 5, "more group")),
			!groups[0] && !phone?.activities?.[0] && h("small", "Nothing on the lock screen.")),
		dropped.size > 0 && h("ul.wakes.warn", { "aria-label": "Not shown" }, [...dropped].slice(0, 3).map(([text, [first, ...more]]) =>
			row(first, text, more[0] && `, ${number(more.length + 1)} pushes`))),
		wakes[0] && h("ul.wakes", { "aria-label": "Woken by silent pushes" }, wakes.slice(0, 3).map((push) =>
			row(push, ` wakes ${shortTopic(push.life.topic)}`, push.data && `, with ${push.data}`)))];
}
// What was sent, the newest first: what shows a banner, what wakes an app, what the phone did not show.
function sentUntil(time) {
	const shown = [], wakes = [], dropped = new Map(), badges = new Map(), seen = new Set();
	const isMine = ({ life, step, t }) => life.device === view.phone && step.step === "sent" && t <= time;
	const sent = entries().filter(isMine).toReversed(), isCut = !!sent[200] || known.from > 0;
	for (const { life, t } of sent.slice(0, 200)) {
		const { payload, collapseId } = life.request ?? known.requests.get(life.uniqueId) ?? {}, aps = payload?.aps ?? {};
		const [app, part] = life.topic.split(".push-type."), collapse = `${app} ${collapseId ?? life.uniqueId}`;
		const text = payload ? bannerOf(aps.alert) : null, push = { life, t, app, aps, text };
		const refused = part && life.steps.find((step) => step.outcome?.startsWith("not shown") && step.time <= time);
		if (seen.has(life.uniqueId)) continue;
		seen.add(life.uniqueId);
		if (refused) {
			const words = ` ${shortTopic(life.topic)} ${refused.outcome}`;
			dropped.set(words, [...dropped.get(words) ?? [], push]);
		} else if (life.kind === "silent") {
			wakes.push({ ...push, data: Object.keys(payload ?? {}).filter((name) => name !== "aps").join(", ") });
		} else {
			if (Number.isFinite(aps.badge) && !badges.has(app)) badges.set(app, aps.badge);
			if (text !== "" && !seen.has(collapse)) shown.push(push);
			seen.add(collapse);
		}
	}
	return { shown, wakes, dropped, badges, isCut };
}
// The banners of a phone that says how it is, the newest first, each with the push that it is of.
function ofPhone(banners, shown) {
	return banners.toReversed().map(({ app, text, at }) => {
		const index = shown.findIndex((push) => push.app === app && push.t <= at && (push.text ?? text).startsWith(text));
		return index < 0 ? { app, t: at, aps: { alert: text } } : { ...shown.splice(index, 1)[0], text, t: at };
	});
}
// A Live Activity, as the phone has it: its content-state by name, how it is, and how its server reaches it.
function activityCard({ activity, app, type, shows, state, staleAt, leavesAt, hasToken, channel }) {
	const how = { active: staleAt ? `active, stale at ${moment(staleAt, false)}` : "active", stale: `stale since ${moment(staleAt ?? 0, false)}`, ended: `ended, here until ${moment(leavesAt ?? 0, false)}` }[state];
	const reach = leavesAt ? null : channel ? `by channel ${channel}` : hasToken ? null : "its server has no token yet";
	return h(`p.card.${state}`, h("small", h("span", shortTopic(app)), h("span", `${type}, activity ${number(activity)}`)), contentOf(shows), h("small.notes", joined(how, reach)));
}
function contentOf(text) {
	try {
		return Object.entries(JSON.parse(text)).slice(0, 8).map(([name, value]) => h("span", `${name} `, h("b", typeof value === "object" ? JSON.stringify(value) : String(value))));
	} catch {
		return h("span", text);
	}
}
function card([{ life, t, app, aps, text }, ...older], badges, isCut) {
	const { title, subtitle, body } = texts(aps.alert ?? text ?? "text not here"), badge = badges.get(app);
	const level = textOf(aps["interruption-level"]), thread = textOf(aps["thread-id"]), category = textOf(aps.category);
	const notes = [soundOf(aps.sound), thread && `thread ${thread}`, category && `category ${category}`,
		level !== "active" && level, aps["content-available"] === 1 && "wakes the app"].filter(Boolean);
	const links = older.slice(0, 3).flatMap(({ life }) => (life ? [page.pushLink(life.uniqueId), " "] : []));
	return h("p.card", { "data-push": life?.uniqueId },
		h("small", h("span", shortTopic(app), badge != null && h("b.badge", { title: "badge" }, number(badge))),
			h("span", moment(t, false), " ", life && page.pushLink(life.uniqueId))),
		title && h("strong", title), subtitle && h("em", subtitle), body && h("span", body),
		notes[0] && h("small.notes", notes.join(" · ")),
		older[0] && h("small.older", `${isCut ? "at least " : ""}${number(older.length)} more ${thread ? "in this thread" : `from ${shortTopic(app)}`}${links[0] ? ": " : ""}`, links));
}
