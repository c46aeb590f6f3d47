// Finding: one field for pushes, phones, apps and texts of payloads; filters that stand in the address.

import { $, STATES, addLife, addRequest, attempt, get, h, hms, keep, known, nameOf, pairs, reconcile, set, shortId, shortTopic, some, stateOf, wordOf } from "./kit.js";
import { page, view } from "./cockpit.js";

export const FILTERS = ["app", "kind", "state", "status", "text"];
export const isFiltered = () => FILTERS.some((name) => view[name]);
// Which pushes have the text, as the relay says.
let withText = new Set(), textLoaded, textTimer;

export function passes({ life, mark }) {
	if (!life.uniqueId) return !isFiltered();
	return (!view.app || life.topic === view.app) && (!view.kind || life.kind === view.kind) && (!view.state || stateOf(life) === view.state)
		&& (!view.status || String(life.refusal?.status ?? 200) === view.status || view.status === "refused" && mark === "refused") && (!view.text || withText.has(life.uniqueId));
}

// What the filters want and is not here yet. A new push may have the text, too: it is asked for again.
export async function loadFiltered() {
	const { app: topic, kind, state, status, text, phone: device } = view;
	if (text) await loadText(text);
	if (state === "refused" || status && status !== "200") for (const request of await requests({ topic, device, status: status === "refused" ? "" : status, limit: 200 })) addRequest(request);
	else if (topic || kind || state) for (const life of (await get("/v1/notifications", { topic, kind, state: state === "received" ? "" : state, device, limit: 300 })).notifications.reverse()) addLife(life);
}
async function requests(query) {
	try {
		return (await get("/v1/requests", query)).requests;
	} catch (error) {
		if (error.status === 404) return [];
		throw error;
	}
}
async function loadText(text) {
	const found = (await get("/v1/requests", { payload: `~${text}`, device: view.phone, limit: 200 })).requests;
	if (text !== view.text) return;
	if (textLoaded !== text) withText = new Set();
	textLoaded = text;
	for (const request of found.reverse()) {
		withText.add(request.uniqueId);
		if (!addRequest(request)) await get(`/v1/notifications/${request.uniqueId}`).then(addLife, () => {});
	}
	page.dirty("lanes", "table");
}
export function arrived() {
	if (view.text) textTimer ??= setTimeout(() => ((textTimer = null), attempt(() => view.text && loadText(view.text))), 500);
}

// The filters as they are in the address.

const option = (value, text = value) => h("option", { value }, text);
export function drawFilters() {
	const own = (page.phone?.apps ?? []).map(({ topic }) => topic), topics = [...new Set([...own, ...known.topics.keys(), ...(view.app ? [view.app] : [])])].sort().slice(0, 200);
	const statuses = new Set(["200", "refused", ...known.statuses, ...(view.status ? [view.status] : [])]);
	fill("app", "app", topics.map((topic) => [topic, shortTopic(topic)]));
	fill("kind", "kind", [["visible", "visible"], ["silent", "silent"]]);
	fill("state", "state", pairs(STATES));
	fill("status", "status", [...statuses].map((status) => [status, status === "refused" ? "any refusal" : status]));
	$("clear").hidden = !isFiltered() && !view.zoom;
	set("clear", view.zoom ? "Close the group" : "Clear filters");
	$("text-filter").hidden = !view.text;
	set("text-filter", `with “${view.text}” `, h("b", { "aria-hidden": "true" }, "×"));
	$("text-filter").ariaLabel = `with “${view.text}” in the payload: remove`;
}
function fill(name, none, choices) {
	const select = $(`f-${name}`);
	reconcile(select, [["", none], ...choices], ([value]) => value, ([value]) => option(value), (node, [value, text]) => node.textContent === text || set(node, text));
	select.value = view[name];
	select.classList.toggle("set", view[name]);
}
for (const name of FILTERS.slice(0, 4)) $(`f-${name}`).onchange = ({ target }) => page.go({ [name]: target.value, zoom: "" });
$("text-filter").onclick = () => page.go({ text: "" });
$("clear").onclick = () => page.go(view.zoom ? { zoom: "" } : Object.fromEntries(FILTERS.map((name) => [name, ""])));

// The field: what is found is a list below it.

const field = $("find"), list = $("hits");
let hits = [], active = -1, asked = 0, timer;

const isId = (text) => /^[0-9a-f]{8}[0-9a-f-]*$/i.test(text);
const aboutLife = (life) => [life.kind, life.topic && shortTopic(life.topic), life.device && nameOf(life.device), life.entries?.at(-1) ? wordOf(life.entries.at(-1)) : stateOf(life)].filter(Boolean).join(", ");
const pushHit = (life) => ({ kind: "push", name: shortId(life.uniqueId), about: aboutLife(life), go: { push: life.uniqueId } });
function alertOf({ payload, body = "" }) {
	const alert = payload?.aps?.alert ?? {};
	return alert.at ? alert : [alert.title, alert.body].filter(Boolean).join(": ") || (payload ? JSON.stringify(payload) : body);
}

async function find(text) {
	const number = ++asked, low = text.toLowerCase(), id = low.replace(/^#/, ""), found = [], seen = new Set();
	const add = (hit) => hit && !seen.has(hit.kind + JSON.stringify(hit.go)) && seen.add(hit.kind + JSON.stringify(hit.go)) && found.push(hit);
	const lives = [...known.lives.values()].reverse();
	if (/^#?[0-9a-f-]+$/.test(low)) lives.filter((life) => shortId(life.uniqueId) === `#${id}`
		|| id.length > 5 && [life.uniqueId, life.id, life.token, life.traceparent].some((other) => other?.toLowerCase().includes(id))).slice(0, 4).map((life) => add(pushHit(life)));
	const query = { limit: 5 }, answers = await Promise.allSettled([
		isId(id) && get(`/v1/notifications/${id}`), isId(id) && get(`/v1/requests/${id}`), /^([0-9a-f]{2}){8,100}$/.test(id) && get("/v1/notifications", { ...query, token: id }),
		get("/v1/devices", { ...query, search: text }), text[1] && get("/v1/requests", { ...query, payload: `~${text}` })]);
	if (number !== asked) return;
	const [life, request, ofToken, phones, texts] = answers.map(({ value }) => value || null);
	if (life?.uniqueId) add(pushHit(addLife(life)));
	if (request && !life) add({ kind: request.status > 299 ? "refused" : "push", name: shortId(request.uniqueId), about: `${request.status ?? ""} ${request.reason ?? ""} ${alertOf(request)}`, go: { push: addRequest(request)?.uniqueId ?? request.uniqueId } });
	for (const life of ofToken?.notifications ?? []) add(pushHit(addLife(life)));
	for (const { device, name, apps } of phones?.devices ?? []) {
		if (name) keep(known.names, device, name, 2000);
		add({ kind: "phone", name: name ?? device.slice(0, 8), about: some(apps.length, "app"), go: { phone: device, push: "" } });
	}
	const topics = new Set([...known.topics.keys(), ...(phones?.devices ?? []).flatMap(({ apps }) => apps.map(({ topic }) => topic))]);
	[...topics].filter((topic) => topic.toLowerCase().includes(low)).sort().slice(0, 4).map((topic) => add({ kind: "app", name: shortTopic(topic), about: topic, go: { app: topic } }));
	for (const request of texts?.requests ?? []) {
		addRequest(request);
		add({ kind: request.status > 299 ? "refused" : "text", name: alertOf(request), about: `${shortId(request.uniqueId)}, ${hms(request.time)}${request.device ? `, ${nameOf(request.device)}` : ""}`, go: { push: request.uniqueId } });
	}
	if (texts?.requests[0]) add({ kind: "filter", name: "show only these", about: `with “${text}” in the payload`, go: { text, push: "" } });
	const kept = answers[4].reason?.reason !== "RequestsNotKept";
	show(found, found[0] ? "" : `Nothing has “${text}”: no id, no phone, no app${kept ? ", no text of a payload" : ""}.`, !kept && "Texts are not searched: the relay keeps no requests (--keep-requests).");
}
function show(found, ...notes) {
	hits = found;
	active = -1;
	set(list, hits.map((hit, index) => h(`div#hit-${index}`, { role: "option", onclick: () => choose(hit) }, h("small", hit.kind), h("b", hit.name), h("span.dim", hit.about))));
	const note = notes.filter(Boolean).join(" ");
	set("find-note", note);
	$("find-box").classList.toggle("open", hits[0] || note);
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
	field.blur();
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
