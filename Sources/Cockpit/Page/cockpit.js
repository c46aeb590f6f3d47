// What is looked at (which is the URL), the event stream, and what is drawn when.

import { $, STATES, addChange, addLife, addStep, api, attempt, breathe, button, day, hms, entries, get, h, keep, keepFocus, known, moment, nameOf, number, pairs, whyOf, reconcile, request, s, set,
	shortId, shortTopic, some, toast, wordOf } from "./kit.js";
import { bars, drawLanes, icon, legend } from "./lanes.js";
import { TOOLS, exportRun, showTool, titleOf, toggleRecording } from "./drawer.js";
import { FILTERS, arrived, drawFilters, fillGap, isFiltered, loadFiltered, loadHistory, loadNames, loadRefused, lost, passes } from "./find.js";
import { drawPhone, gauge, loadListed, loadOwn, loadPast, loadPhone, loadTexts } from "./phone.js";
import { drawPush, loadPush, pushChosen } from "./push.js";
import { drawPolicies } from "./policy.js";

export const view = {};
export const page = { overview: {}, dirty, go, laneView, now, pushLink, refreshPhones, showView, urlOf };
const { body } = document, timers = {};
const isChosen = ({ device }) => device === view.phone;
let online = false, started = false, frozen, spoken = {}, rows = [], chosen, width = 0, most = 0;

// The URL is the state. Moving in time replaces it; from everything else one can go back.

function readUrl() {
	const hash = new URLSearchParams(location.hash.slice(1)), { phone, push, at } = view, filters = FILTERS.map((name) => view[name]).join("\n");
	if (hash.has("token")) {
		sessionStorage.setItem("token", hash.get("token"));
		hash.delete("token");
		history.replaceState(null, "", "#" + hash);
	}
	for (const key of ["phone", "push", "tool", "zoom", "axis", ...FILTERS]) view[key] = hash.get(key) ?? "";
	// What somebody has typed may be no such thing.
	if (!Object.hasOwn(STATES, view.state)) view.state = "";
	for (const [key, form] of [["kind", /^(visible|silent)$/], ["axis", /^(time|order)$/], ["zoom", /^\d+-\d+$/]]) if (!form.test(view[key])) view[key] = "";
	for (const key of ["at", "span"]) view[key] = Number(/^\d{1,15}$/.exec(hash.get(key)));
	$("span").value = view.span;
	if (!$("span").value) $("span").value = view.span = 0;
	$("axis").value = view.axis;
	body.classList.toggle("one-phone", view.phone);
	body.classList.toggle("past", view.at);
	if (phone !== view.phone) phoneChosen();
	if (push !== view.push) {
		pushChosen();
		if (started) attempt(loadPush);
	}
	if (at !== view.at) {
		listed = new Map();
		later("past", loadThen, 250);
	}
	if (started && filters !== FILTERS.map((name) => view[name]).join("\n")) attempt(() => loadFiltered().then(() => dirty("lanes", "table")));
	dirty(...Object.keys(parts));
}
function urlOf(changes) {
	return "#" + new URLSearchParams(pairs({ ...view, ...changes }).filter(([, value]) => value));
}
function pushLink(push, words = "") {
	return h("a", { href: urlOf({ push }), "data-push": push }, words, shortId(push));
}
function go(changes, replace = "at" in changes) {
	history[replace ? "replaceState" : "pushState"](null, "", urlOf(changes));
	readUrl();
}

// Work in small pieces: events are taken in for a few milliseconds at a time; a frame draws one thing that changed.

const parts = { pill: drawTop, lanes: drawTime, table: drawTable, push: drawSide, phones: drawPhones, tool: drawTool, filters: drawFilters };
const pending = new Set(), drawn = {};
let scheduled = false, busy = false, took = 0, since = 0, busyUntil = 0;
function dirty(...names) {
	for (const name of names) pending.add(name);
	scheduled ||= setTimeout(() => requestAnimationFrame(frame), busy ? 80 : 0);
}
function frame(time) {
	scheduled = false;
	if (took > 100) busyUntil = time + 2000;
	if (time - since > 500) [took, since] = [0, time];
	busy = time < busyUntil;
	if (busy) later("calm", () => dirty("lanes", "table"), 2100);
	for (const name of pending) {
		if (time - drawn[name] < (busy ? 500 : 50)) continue;
		pending.delete(name);
		drawn[name] = time;
		parts[name]();
		break;
	}
	if (pending.size) dirty();
}
const changed = (change) => noted(addChange(change));
function noted(entry) {
	touched();
	if (!entry) return;
	say(wordOf(entry));
	later("clock", loadClock, 300);
	dirty("lanes", "table");
	if (isFiltered()) arrived();
	if (!view.at) later("waits", loadWaits, 400);
	if (view.phone) later("texts", loadTexts, 600);
}
const events = {
	life(step) {
		if (step.uniqueId === view.push) later("push", loadPush, 250);
		noted(addStep(step));
	},
	device(link) {
		known.links.push(link);
		if (known.links.length > 2000) known.links.splice(0, 500);
		dirty("lanes");
		if (isChosen(link) && link.what === "connected") later("own", () => loadOwn(true), 600);
		changed(link);
	},
	policy({ policy, time }) {
		page.overview.policy = policy;
		changed({ time, policy, what: "policy" });
	},
	clock: () => later("clock", loadClock, 50),
	fault({ uniqueId, time, topic, name, what }) {
		later("fault", () => redo(/faults/), 500);
		if (known.lives.has(uniqueId)) events.life({ uniqueId, time, topic, step: "fault", fault: name, reason: what });
	},
	bye: ({ reason }) => reason === "rewound" && attempt(load),
	stats(counters) {
		const refused = counters.refused - known.counters.refused;
		if (refused > 0) later("refused", () => loadRefused().then(loadTexts), 300, say("refused", refused));
		known.counters = counters;
		known.stats = [...known.stats.slice(-239), { ...counters, wall: Date.now() }];
		showClock({ now: Math.max(counters.now, clock.now ?? 0) });
		dirty("pill", "lanes");
		redo(/charts/);
		later("shelf", () => redo(/faults|checkpoints|recordings/), 2000);
		// What a phone is told elsewhere, no event tells.
		if (view.phone) touched();
	},
	gap({ dropped }) {
		lost(dropped);
		later("history", refill, 1000);
	},
};
// Why the held ones wait, and what may take them along: that changes with what goes to the phone.
async function loadWaits() {
	if (busy) return;
	const held = inView().slice(-300).filter(({ life, step }) => step.step === "stored" && life.entries.at(-1).step === step).slice(-8);
	for (const { life } of held) await get(`/v1/notifications/${life.uniqueId}`).then(addLife, () => {});
	if (held[0]) dirty("lanes", "push");
}
const redo = (tools) => tools.test(view.tool) && dirty("tool");
const say = (word, count = 1) => (spoken[word] = (spoken[word] ?? 0) + count);
const refill = () => (busy ? later("history", refill, 1000) : fillGap());
function later(name, work, wait) {
	timers[name] ??= setTimeout(async () => {
		delete timers[name];
		if (!document.hidden) await attempt(work);
	}, wait);
}

// Lanes and table. Paused, they keep what was there.

const all = () => frozen?.entries ?? entries();
function inView() {
	const mine = view.phone ? all().filter(({ life, mark }) => isChosen(life) || !life.device && mark !== "refused") : all();
	return isFiltered() ? mine.filter(passes) : mine;
}
function laneView() {
	return { ...view, entries: inView(), links: known.links.filter(isChosen), now: frozen?.now ?? now(),
		phone: view.phone && (page.phone ?? { apps: [], connected: true }), width, busy };
}
function drawTime() {
	const lanes = laneView(), { entries: shown, now: end, phone } = lanes, { devices, connections } = known.counters, start = shown[0]?.t ?? end - 1, isEmpty = started && !all()[0];
	$("welcome").hidden = !isEmpty;
	$("lanes").hidden = $("past-lanes").hidden = isEmpty;
	if (isEmpty && devices) set("welcome-phone", `${some(devices, "phone")} ${devices === 1 ? "is" : "are"} here. `, h("code", "pushrelay device anna"), " plays another.");
	set("lanes-title", phone ? `Phone ${nameOf(view.phone)}` : "All phones");
	set("about", phone ? phone.missing ? "" : phone.connected ? "connected" : "away" : devices == null ? "" : `${some(devices, "phone")}, ${number(connections)} connected`,
		known.skipped ? `. ${some(known.skipped, "older event is", "older events are")} not kept here.` : "");
	if (!width) return;
	const drawing = drawLanes(lanes);
	// What stays the same keeps its nodes: nothing is painted, and a click ends where it began.
	if (!$("lanes").firstChild?.isEqualNode(drawing)) set("lanes", drawing);
	set("density", s("svg", { viewBox: "0 0 606 24", height: 24, preserveAspectRatio: "none", "aria-hidden": "true" }, bars(shown, (t) => (t - start) / (end - start) * 600, 24, 22)));
	Object.assign($("scrub"), { min: Math.min(start, end - 1), max: end, step: (end - start) / 200 || 1, value: view.at || end, ariaValueText: view.at ? moment(view.at) : "live" });
	$("none").hidden = !isFiltered() || shown[0];
}
function drawTable() {
	// Of an opened group all: the table is the way to its marks without a mouse.
	const [first, last] = view.zoom ? view.zoom.split("-").map(Number) : [0, Infinity], end = Math.min(last, view.at || Infinity), limit = view.zoom ? 1000 : 100;
	const past = inView().filter(({ t }) => t >= first && t <= end);
	// At most 16 new rows in a frame; more follow.
	most = busy ? 12 : past.indexOf(rows[0], -16) < 0 ? 16 : Math.min(most + 16, limit);
	rows = past.slice(-most).reverse();
	reconcile($("table").tBodies[0], rows, ({ key }) => key, (entry) => h("tr", { "data-push": entry.life.uniqueId || null }, [..."123456"].map((column) => h(column === "3" ? "td.dev" : "td"))), (row, entry) => {
		const { t, mark, step, life: { uniqueId, device, topic } } = entry, isRefused = mark === "refused", name = device && nameOf(device), app = shortTopic(isRefused ? topic : step.topic ?? ""), texts = [name, app, known.today].join();
		row.className = `${(uniqueId ? uniqueId === view.push : entry.key === chosen) ? "on" : ""} ${isRefused ? "refused" : ""}`.trim();
		if (row.shows === texts) return;
		row.shows = texts;
		[[moment(t)], [uniqueId && pushLink(uniqueId)], [name], [app], [icon(mark), wordOf(entry)], [whyOf(entry)]].forEach((content, index) => row.cells[index].replaceChildren(...content));
	});
	if (past.length > most && most < limit) dirty("table");
	later("names", () => busy || loadNames(rows), 600);
	dirty("filters");
}
// The side: a push, else the chosen phone. What is the same keeps its nodes and their focus.
function drawSide() {
	const isPhone = view.phone && !view.push, drawing = h("div", isPhone ? drawPhone() : drawPush());
	$("push").ariaLabel = isPhone ? "One phone" : "One push";
	set($("views").lastElementChild, isPhone ? "Phone" : "Push");
	if ($("push").firstElementChild?.isEqualNode(drawing)) return;
	keepFocus($("push"), () => set("push", drawing));
}

// Phones: the server searches and pages; one page of them is all that is ever here.

let pages = [""], more, phones = [];
async function refreshPhones() {
	try {
		const found = await get("/v1/devices", { search: $("search").value.trim(), after: pages.at(-1), limit: 40 });
		phones = found.devices;
		[page.first] = phones;
		for (const { device, name } of phones) keep(known.names, device, name ?? "", 2000);
		more = found.hasMore && found.cursor;
		page.phone = view.phone && (phones.find(isChosen) ?? await get(`/v1/devices/${view.phone}`));
		if (page.phone) keep(known.names, page.phone.device, page.phone.name ?? "", 2000);
		// An address may have its name.
		if (page.phone && !isChosen(page.phone)) go({ phone: page.phone.device }, true);
	} catch (error) {
		if (error.status < 500) page.phone = view.phone && { apps: [], missing: error.message };
	}
	if (view.phone) await loadOwn();
	dirty("phones", "lanes", "table", "push");
	if (view.at) later("past", loadThen, 250);
	redo(/compose/);
}
// How phones are now says nothing of another moment: then it is what a recording says, or nothing.
let listed = new Map();
async function loadThen() {
	await loadPast();
	listed = await loadListed(phones);
	dirty("phones");
}
const touched = () => later("phones", refreshPhones, busy ? 3000 : 300);
async function loadLinks() {
	const { events: found } = await get(`/v1/devices/${view.phone}/events`);
	known.links = known.links.filter((link) => !isChosen(link));
	found.map(events.device);
}
function phoneChosen() {
	page.phone = phones.find(isChosen);
	if (!started) return;
	attempt(loadPhone);
	if (!view.phone) return;
	refreshPhones().then(() => view.phone && !page.phone?.missing && [() => loadHistory(view.phone), loadLinks].map(attempt));
}
function drawPhones() {
	const slot = (apps, kind) => h("span", kind[0].toUpperCase(), apps.some((app) => app[kind]) ? h("b", "● ") : "· ");
	$("everyone").ariaCurrent = view.phone ? null : "true";
	$("everyone").href = urlOf({ phone: "", zoom: "" });
	reconcile($("phone-list"), phones, ({ device }) => device, () => h("a.phone"), (node, phone) => {
		const { device } = phone, then = view.at ? listed.get(device) : phone, { apps = [], connected, network, power } = then ?? {}, shows = JSON.stringify([then, phone.name, view.at]);
		node.href = urlOf({ phone: device, push: "", zoom: "" });
		node.ariaCurrent = isChosen(phone) ? "true" : null;
		if (node.shows === shows) return;
		node.shows = shows;
		const [tightest] = apps.toSorted((a, b) => a.budget.remaining - b.budget.remaining);
		node.replaceChildren(h(connected ? "i.dot" : "i.dot.off"), phone.name ? h("b", phone.name) : h("code", device.slice(0, 8)),
			h("span.slots", { title: "Slots: visible, silent. ● is full" }, slot(apps, "visible"), slot(apps, "silent")),
			then && h("small", `${connected ? "" : "away, "}${network}, ${power}`) || "", tightest ? gauge({ ...tightest.budget, every: "" }, tightest.budget.allowed ? "" : shortTopic(tightest.topic)) : "");
	});
	$("page-back").disabled = pages.length < 2;
	$("page-on").disabled = !more;
	set("page-note", phones[0] ? `page ${pages.length}` : "none found");
	$("search").placeholder = `Search ${some(known.counters.devices, "phone")}`;
	drawPolicies();
}

// The top bar and the drawer.

let clock = { rate: 0 }, clockSeen = 0;
function now() {
	return clock.now ? clock.now + (online ? (performance.now() - clockSeen) * clock.rate : 0) : Date.now();
}
function showClock(changes) {
	clock = { ...clock, ...changes };
	clockSeen = performance.now();
	const { mode, next, rate } = clock;
	page.isVirtual = mode === "virtual";
	$("clock-tools").hidden = $("clock-more").hidden = $("tool-checkpoints").hidden = !page.isVirtual;
	$("rate").value = rate;
	set("next", next ? `next: ${next.what} ${moment(next.at)}` : "next", h("kbd", "n"));
	$("next").disabled = !next;
	tick(true);
}
function tick(isNew) {
	const time = now(), text = hms(time), { mode, next, rate } = clock;
	if (next?.at < time) later("clock", loadClock, 300);
	if ($("clock").textContent === text && !isNew) return;
	if (known.today !== day(time)) dirty("table");
	known.today = day(time);
	set("clock", text);
	set("clock-note", `${known.today}, UTC, ${mode}${page.isVirtual && rate ? ` ${rate}×` : ""}`);
	dirty("lanes", "push");
}
const loadClock = async () => showClock({ next: null, ...await get("/v1/clock") });
const advance = (step) => attempt(async () => {
	const { now: time, fired } = await api("POST", "/v1/clock/advance", step);
	showClock({ now: time });
	toast(`${hms(time)}: ${pairs(fired ?? {}).map(([what, count]) => `${number(count)}× ${what}`).join(", ") || "nothing fired"}`);
	if (view.at) go({ at: 0 });
	await Promise.all([refreshPhones(), loadClock()]);
});
function drawTop() {
	const state = !online ? "off" : view.at ? "at" : frozen ? "paused" : "live", { balance = "", addsUp } = known.counters, sum = balance.replace(/\d+/g, (n) => number(+n));
	$("pill").className = state;
	set("pill", { off: "not connected", at: `looking at ${moment(view.at)}` }[state] ?? state);
	$("light").ariaLabel = `${sum}: ${addsUp ? "adds up" : "does not add up"}. Charts`;
	set("light", h("span", `${sum} `), h(addsUp ? "b.good" : "b.bad", addsUp ? "✓" : "✗"));
}
function setPaused(paused) {
	frozen = paused && { entries: [...entries()], now: now() };
	dirty("pill", "lanes", "table");
}
function goLive() {
	if (view.at) go({ at: 0 });
	setPaused(false);
}
function press(id, name) {
	for (const node of $(id).children) node.ariaPressed = node.value === (name || 0);
}
function drawTool() {
	press("tools", view.tool);
	showTool(view.tool);
}
// The event stream: one for each page, resumed where it ended; a hidden tab has none.

let cursor, stream, retry = 500;
async function listen() {
	const { signal } = stream = new AbortController();
	try {
		const response = await request("GET", "/v1/events", undefined, { signal, headers: cursor && { "last-event-id": cursor } });
		online = true;
		retry = 500;
		dirty("pill");
		let rest = "";
		for (const reader = response.body.pipeThrough(new TextDecoderStream()).getReader(); ;) {
			const { value, done } = await reader.read();
			if (done) break;
			const blocks = (rest + value).split("\n\n");
			rest = blocks.pop();
			for (const block of blocks) {
				const { id, event, data } = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/, 2)));
				await breathe();
				if (data) events[event]?.(JSON.parse(data));
				cursor = id || cursor;
				took++;
			}
		}
	} catch (error) {
		if (error.status === 401) return signIn();
		if (error.status === 410) await load().then(() => (retry = 100), () => {});
	}
	if (signal.aborted) return;
	online = false;
	dirty("pill");
	setTimeout(() => signal.aborted || listen(), retry);
	retry = Math.min(retry * 2, 4000);
}
function resume() {
	online = false;
	stream?.abort();
	if (!document.hidden && started) [listen, refreshPhones, loadClock].map(attempt);
}
document.onvisibilitychange = resume;

// Starting.

async function load() {
	const found = await get("/v1/overview");
	if (started && page.overview.epoch !== found.epoch) {
		[known.lives, known.changes, known.requests, known.names].map((map) => map.clear());
		known.entries = [];
		known.links = [];
		known.skipped = 0;
		goLive();
	}
	page.overview = found;
	$("version").textContent = found.version;
	if (found.node) (await import("./nodes.js")).join();
	known.counters = { ...found, ...found.counters };
	cursor = found.cursor;
	showClock({ now: found.now, rate: found.rate, mode: found.clock });
	page.policies = (await get("/v1/policy")).known;
	known.from = await loadHistory();
	await loadRefused(100);
	await loadFiltered();
	if (started) await Promise.all([refreshPhones(), loadClock(), loadPush()]);
}
async function start() {
	try {
		await load();
	} catch (error) {
		if (error.status === 401) return signIn();
		toast(error.message);
		return setTimeout(start, 3000);
	}
	started = true;
	[resume, phoneChosen, loadPush].map(attempt);
}
// The page asks for a token that it does not have, and says so when the one it has is wrong.
function signIn() {
	$("sign-wrong").hidden = !sessionStorage.getItem("token");
	$("sign-token").value = "";
	if (!$("sign-in").open) $("sign-in").showModal();
}
setInterval(tick, 250);
setInterval(() => {
	const said = pairs(spoken);
	spoken = {};
	if (said[0]) set("live", said.map(([word, count]) => `${count} ${word}`).join());
}, 5000);

// Keys.

function step(direction) {
	const times = inView().map(({ t }) => t), from = view.at || now() + 1;
	const next = direction < 0 ? times.findLast((t) => t < from) : times.find((t) => t > from);
	next ? go({ at: next }) : direction > 0 && goLive();
}
function move(direction) {
	const index = rows.findIndex(({ key, life }) => (chosen ? key === chosen : view.push && life.uniqueId === view.push)), entry = rows[Math.max(0, index + direction)];
	if (!entry) return;
	chosen = entry.key;
	go({ push: entry.life.uniqueId }, true);
	setTimeout(() => document.querySelector("tr.on")?.scrollIntoView({ block: "nearest" }), 100);
}
function showView(name) {
	body.dataset.view = name;
	press("views", name);
	dirty("lanes");
}
const toggle = (tool) => go({ tool: view.tool === tool ? "" : tool });
const KEYS = {
	"?": ["these keys", () => $("help").showModal()], "/": ["find a push, a phone, a text", () => $("find").focus(showView("time"))],
	j: ["next row", () => move(1)], k: ["row before", () => move(-1)], Enter: ["open the push", () => $("push").focus(showView("push"))],
	" ": ["pause, go on", () => setPaused(!frozen)], ArrowLeft: ["a step back in time", () => step(-1)], ArrowRight: ["a step on", () => step(1)],
	n: ["to the next timer", () => $("next").checkVisibility() && $("next").click()], c: ["compose", () => toggle("compose")],
	r: ["record, stop recording", toggleRecording], Escape: ["close, or back to live", () => (view.tool ? go({ tool: "" }) : view.zoom ? go({ zoom: "" }) : goLive())],
};
document.onkeydown = (event) => {
	const { key, target } = event, isEscape = key === "Escape";
	const opener = /^( |Enter)$/.test(key) && target.closest("[data-zoom]");
	if (opener) return event.preventDefault(go({ zoom: opener.dataset.zoom }));
	if (!KEYS[key] || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
	if (!isEscape && (!$("keys-on").checked || target.matches("input, select, textarea") || (target.matches("button, a") && /^( |Enter)$/.test(key)))) return;
	event.preventDefault();
	if (isEscape) target.blur();
	KEYS[key][1]();
};
document.onclick = (event) => {
	const link = event.target.closest("a[href^='#']"), push = event.target.closest("[data-push]")?.dataset.push, opener = event.target.closest("[data-zoom]");
	if (opener) return go({ zoom: opener.dataset.zoom });
	if (!event.target.closest("header")) body.classList.remove("clock-open");
	if (event.metaKey || event.ctrlKey || event.shiftKey || !(link || push)) return;
	chosen = null;
	if (link?.matches(".phone")) {
		// Drawn before the latest filter, perhaps.
		const phone = new URLSearchParams(link.hash.slice(1)).get("phone") ?? "";
		link.href = urlOf({ phone, zoom: "", ...(phone && { push: "" }) });
	}
	if (push) event.preventDefault(go({ push }));
	showView(link?.matches(".phone") ? "time" : "push");
};
set("key-list", pairs(KEYS).map(([key, [does]]) => [h("dt", h("kbd", { " ": "Space", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" }[key] ?? key)), h("dd", does)]));
$("keys-on").checked = localStorage.getItem("keys") !== "off";
$("keys-on").onchange = ({ target }) => localStorage.setItem("keys", target.checked ? "on" : "off");
$("keys").onclick = KEYS["?"][1];
$("sign-in").onclose = () => {
	sessionStorage.setItem("token", $("sign-token").value.trim());
	started ? resume() : start();
};
$("pill").onclick = () => (view.at || frozen ? goLive() : setPaused(true));
$("advance").onclick = ({ target }) => target.value && advance({ by: target.value });
$("next").onclick = () => advance({ next: true });
$("rate").onchange = ({ target }) => attempt(() => api("PATCH", "/v1/clock", { rate: Number(target.value) }).then(showClock));
$("first").onclick = () => toggle("compose");
$("light").onclick = () => toggle("charts");
$("span").onchange = ({ target }) => go({ span: target.value, zoom: "" }, true);
$("axis").onchange = ({ target }) => go({ axis: target.value }, true);
$("clock-more").onclick = () => $("clock-more").ariaExpanded = String(body.classList.toggle("clock-open"));
// A handler that answers false would take the key away.
$("search").onkeydown = ({ key }) => void (key === "ArrowDown" && $("phone-list").firstElementChild?.focus());
const turn = (to) => later("search", refreshPhones, 150, pages = to);
$("search").oninput = () => turn([""]);
$("page-back").onclick = () => turn(pages.slice(0, -1));
$("page-on").onclick = () => turn([...pages, more]);
$("scrub").oninput = ({ target: { value, min, max } }) => go({ at: max - value < (max - min) / 400 ? 0 : Math.round(value) });
$("views").onclick = ({ target }) => showView(target.value);
set("tools", Object.keys(TOOLS).map((tool) => h(`button#tool-${tool}`, { value: tool, onclick: () => toggle(tool) }, titleOf(tool), tool === "compose" && h("kbd", "c"))), button("Export", exportRun));
onpopstate = readUrl;
new ResizeObserver(([{ contentRect }]) => {
	({ width } = contentRect);
	dirty("lanes");
}).observe($("lanes"));
set("legend", legend());
showView("time");
readUrl();
start();
