// Finding: one field for pushes, phones, apps and texts of payloads; filters that stand in the address.

import { $, STATES, addLife, addRefusal, addRequest, attempt, breathe, entries, get, h, isBroadcast, joined, keep, known, moment, nameOf, pairs, reconcile, requestsOf, set, shortId, shortTopic, some, stateOf } from "./kit.js";
import { page, view } from "./cockpit.js";

export const FILTERS = ["app", "kind", "state", "status", "text"];
export const isFiltered = () => FILTERS.some((name) => view[name]);
// Which pushes have the text, as the relay says.
let withText = new Set(), textLoaded, textTimer;

export function passes({ life }) {
	if (!life.uniqueId) return !isFiltered();
	return (!view.app || life.topic === view.app) && (!view.kind || life.kind === view.kind) && (!view.state || stateOf(life, view.at || Infinity) === view.state)
		&& (!view.status || String(life.refusal?.status ?? 200) === view.status) && (!view.text || withText.has(life.uniqueId));
}

// What the filters want and is not here yet. A new push may have the text, too: it is asked for again.
export async function loadFiltered() {
	const { app: topic, kind, state, status, text, phone: device } = view;
	if (text) await loadText(text);
	if (state === "refused" || status && status !== "200") for (const request of await requestsOf({ topic, device, status, limit: 200 })) addRequest({ device, ...request });
	else if (topic || kind || state) for (const life of (await get("/v1/notifications", { topic, kind, state: view.at || state === "received" ? "" : state, device, limit: 300 })).notifications.reverse()) addLife(life);
}
async function loadText(text) {
	const found = await requestsOf({ payload: `~${text}`, device: view.phone, limit: 200 });
	if (text !== view.text) return;
	if (textLoaded !== text) withText = new Set();
	textLoaded = text;
	for (const request of found.reverse()) {
		withText.add(request.uniqueId);
		if (!addRequest(request) && !isBroadcast(request)) await get(`/v1/notifications/${request.uniqueId}`).then(addLife, () => {});
	}
	page.dirty("lanes", "table");
}
export function arrived() {
	if (view.text) textTimer ??= setTimeout(() => ((textTimer = null), attempt(() => view.text && loadText(view.text))), 2000);
}

// The newest lives; it says from when on none is missing.
export async function loadHistory(device) {
	const { notifications, hasMore } = await get("/v1/notifications", { device, limit: 300 });
	for (const life of notifications.toReversed()) {
		await breathe();
		addLife(life);
	}
	page.dirty("lanes", "table", "push");
	return hasMore ? notifications.at(-1).steps[0].time : 0;
}
// Events that the stream left out: what happened is asked for again, and may be too much.
let gap = { dropped: 0 };
export function lost(dropped) {
	gap.from ??= entries().at(-1)?.t ?? 0;
	gap.dropped += dropped;
}
export async function fillGap() {
	const { from, dropped } = gap;
	gap = { dropped: 0 };
	if (await loadHistory() > from) known.skipped += dropped;
}

// Refusals name no app; the requests that are kept do.
export async function loadRefused(most = 20) {
	for (const refusal of (await get("/v1/refusals", { limit: 100 })).refusals.reverse()) addRefusal(refusal);
	for (const sent of await requestsOf({ limit: most })) known.lives.get(sent.uniqueId)?.refusal && addRequest(sent);
	page.dirty("lanes", "table");
}
// Lives have ids of phones; a person reads names. Asked for those in sight that are not known yet.
// A refused one has the token only.
export async function loadNames(rows) {
	const strays = rows.map(({ life }) => life).filter(({ refusal, device, token }) => refusal && !device && /^([0-9a-f]{2}){8,}$/i.test(token));
	const tokens = [...new Set(strays.map(({ token }) => token))].filter((token) => !known.owners.has(token)).slice(0, 6);
	await Promise.all(tokens.map((search) => get("/v1/devices", { search }).then(({ devices: [found] }) => keep(known.owners, search, found?.device ?? "", 2000), () => {})));
	for (const life of strays) life.device = known.owners.get(life.token) ?? "";
	if (tokens[0]) page.dirty("table", "lanes", "push");
	const unknown = [...new Set(rows.map(({ life }) => life.device))].filter((device) => device && !known.names.has(device)).slice(0, 12);
	if (!unknown[0]) return;
	await Promise.all(unknown.map((device) => get(`/v1/devices/${device}`).catch(() => ({})).then(({ name = "" }) => keep(known.names, device, name, 2000))));
	page.dirty("table", "lanes");
}

// The filters as they are in the address.

export function drawFilters() {
	const own = (page.phone?.apps ?? []).map(({ topic }) => topic), topics = withChosen("app", [...own, ...known.topics.keys()]).sort().slice(0, 200);
	const alike = Map.groupBy(topics, shortTopic);
	fill("app", topics.map((topic) => [topic, alike.get(shortTopic(topic))[1] ? topic : shortTopic(topic)]));
	fill("kind", [["visible", "visible"], ["silent", "silent"]]);
	fill("state", pairs(STATES));
	fill("status", withChosen("status", ["200", ...known.statuses]).map((status) => [status, status]));
	$("clear").hidden = !isFiltered() && !view.zoom;
	set("clear", view.zoom ? "Close the group" : `Clear filters${view.text ? `, with “${view.text}”` : ""}`);
}
const withChosen = (name, values) => [...new Set([...values, view[name]])].filter(Boolean);
function fill(name, choices) {
	const select = $(`f-${name}`);
	reconcile(select, [["", name], ...choices], ([value]) => value, ([value]) => h("option", { value }), (node, [value, text]) => node.textContent === text || set(node, text));
	select.value = view[name];
	select.classList.toggle("set", view[name]);
}
for (const name of FILTERS.slice(0, 4)) $(`f-${name}`).onchange = ({ target }) => page.go({ [name]: target.value, zoom: "" });
$("clear").onclick = () => page.go(view.zoom ? { zoom: "" } : Object.fromEntries(FILTERS.map((name) => [name, ""])));

// The field: what is found is a list below it.

const field = $("find"), list = $("hits");
let hits = [], active = -1, asked = 0, timer;

const isTrace = (text) => /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(text);
const isId = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
const aboutLife = (life) => joined(life.kind, shortTopic(life.topic), nameOf(life.device), STATES[stateOf(life)]);
function alertOf({ payload, body = "" }) {
	const alert = payload?.aps?.alert ?? {};
	return alert.at ? alert : [alert.title, alert.body].filter(Boolean).join(": ") || (payload ? JSON.stringify(payload) : body);
}

async function find(text) {
	const number = ++asked, low = text.toLowerCase(), id = low.replace(/^#/, ""), found = new Map();
	const add = (kind, name, about, go) => found.set(JSON.stringify(go), { kind, name, about, go }), addPush = (life) => add("push", shortId(life.uniqueId), aboutLife(life), { push: life.uniqueId });
	const addSent = (kind, request) => {
		addRequest(request);
		add(request.status > 299 ? "refused" : kind, alertOf(request), joined(shortId(request.uniqueId), moment(request.time), request.device && nameOf(request.device)), { push: request.uniqueId });
	};
	const lives = [...known.lives.values()].reverse();
	if (/^#?[0-9a-f-]+$/.test(low)) lives.filter((life) => shortId(life.uniqueId) === `#${id}`
		|| id.length > 5 && [life.uniqueId, life.id, life.token, life.traceparent].some((other) => other?.toLowerCase().includes(id))).slice(0, 4).map(addPush);
	const query = { limit: 5 }, answers = await Promise.allSettled([
		isId(id) && get(`/v1/notifications/${id}`), isId(id) ? get(`/v1/requests/${id}`) : isTrace(id) && get("/v1/requests", { header: `traceparent=${id}` }).then(({ requests: [found] }) => found), /^([0-9a-f]{2}){8,100}$/.test(id) && get("/v1/notifications", { ...query, token: id }),
		get("/v1/devices", { ...query, search: text }), text[1] && get("/v1/requests", { ...query, payload: `~${text}` })]);
	if (number !== asked) return;
	const [life, request, ofToken, phones, texts] = answers.map(({ value }) => value || null);
	if (life) addPush(addLife(life));
	else if (request) addSent("push", request);
	for (const life of ofToken?.notifications ?? []) addPush(addLife(life));
	for (const { device, name, apps } of phones?.devices ?? []) {
		if (name) keep(known.names, device, name, 2000);
		add("phone", nameOf(device), some(apps.length, "app"), { phone: device, push: "" });
	}
	const topics = new Set([...known.topics.keys(), ...(phones?.devices ?? []).flatMap(({ apps }) => apps.map(({ topic }) => topic))]);
	[...topics].filter((topic) => topic.toLowerCase().includes(low)).sort().slice(0, 4).map((topic) => add("app", shortTopic(topic), topic, { app: topic }));
	for (const request of texts?.requests ?? []) addSent("text", request);
	if (texts?.requests.some((request) => !isBroadcast(request))) add("filter", "show only these", `with “${text}” in the payload`, { text, push: "" });
	const kept = answers[4].reason?.reason !== "RequestsNotKept";
	show([...found.values()], found.size ? "" : `Nothing has “${text}”: no id${known.from ? " (the end of one is looked for among the newest pushes)" : ""}, no phone, no app${kept ? ", no text of a payload" : ""}.`, !kept && "Texts are not searched: the relay keeps no requests (--keep-requests).");
}
function show(found, ...notes) {
	hits = found;
	active = -1;
	set(list, hits.map((hit, index) => h(`div#hit-${index}`, { role: "option", onclick: () => choose(hit) }, h("small", hit.kind), h("b", hit.name), h("span.dim", hit.about))));
	const note = notes.filter(Boolean).join(" ");
	set("find-note", note);

	list.hidden = !hits[0];
	$("find-note").hidden = !note;
	point(hits[0] ? 0 : -1);
}
function point(index) {
	list.children[active]?.setAttribute("aria-selected", "false");
	active = hits[index] ? index : -1;
	list.children[active]?.setAttribute("aria-selected", "true");
	list.children[active]?.scrollIntoView({ block: "nearest" });
	field.ariaExpanded = String(!!hits[0]);
	active < 0 ? field.removeAttribute("aria-activedescendant") : field.setAttribute("aria-activedescendant", `hit-${active}`);
}
function close() {
	asked++;
	show([]);
}
function choose({ go }) {
	field.value = "";
	close();
	page.go({ ...go, zoom: "", ...(go.push && { at: 0 }) }, false);
	if (go.push) page.showView("push");
	$(go.push ? "push" : "lanes-title").focus();
}
field.oninput = () => {
	clearTimeout(timer);
	const text = field.value.trim();
	text ? timer = setTimeout(() => attempt(() => find(text)), 200) : close();
};
field.onkeydown = (event) => {
	const { key } = event, move = { ArrowDown: 1, ArrowUp: -1 }[key];
	if (move && hits[0]) point((active + move + hits.length) % hits.length);
	else if (key === "Enter" && hits[active]) choose(hits[active]);
	else if (key === "Escape" && (hits[0] || field.value)) {
		field.value = "";
		close();
	} else return;
	event.preventDefault();
	event.stopPropagation();
};
list.onmousedown = (event) => event.preventDefault();
field.onblur = close;
