// What is looked at (which is the URL), the event stream, and what is drawn when.

import { $, addChange, addLife, addStep, api, attempt, button, capital, hms, entries, get, h, known, number, pairs, whyOf, reconcile, request, s, set,
	shortId, shortTopic, toast, wordOf } from "./kit.js";
import { bars, drawLanes, icon, legend } from "./lanes.js";
import { TOOLS, copies, exportRun, showTool, titleOf, toggleRecording } from "./drawer.js";

export const view = {};
export const page = { overview: {}, go, now, laneView, pushLink };
const { body } = document, timers = {};
const isChosen = ({ device }) => device === view.phone;
let online = false, started = false, frozen, spoken = {}, shown, rows = [], chosen, width = 0, most = 0;

// The URL is the state. Moving in time replaces it; from everything else one can go back.

function readUrl() {
	const hash = new URLSearchParams(location.hash.slice(1)), { phone, push } = view;
	if (hash.has("token")) {
		sessionStorage.setItem("token", hash.get("token"));
		hash.delete("token");
		history.replaceState(null, "", "#" + hash);
	}
	for (const key of ["phone", "push", "tool"]) view[key] = hash.get(key) ?? "";
	for (const key of ["at", "span"]) view[key] = Number(hash.get(key));
	$("span").value = view.span;
	body.classList.toggle("one-phone", view.phone);
	body.classList.toggle("past", view.at);
	if (phone !== view.phone) phoneChosen();
	if (push !== view.push) {
		shown = known.lives.get(view.push);
		loadPush();
	}
	dirty(...Object.keys(parts));
}
function urlOf(changes) {
	return "#" + new URLSearchParams(pairs({ ...view, ...changes }).filter(([, value]) => value));
}
function pushLink(push, words = "") {
	return h("a", { href: urlOf({ push }) }, words, shortId(push));
}
function go(changes, replace = "at" in changes) {
	history[replace ? "replaceState" : "pushState"](null, "", urlOf(changes));
	readUrl();
}

// Work in small pieces: events are taken in for a few milliseconds at a time; a frame draws one thing that changed.

const parts = { pill: drawTop, lanes: drawTime, table: drawTable, push: drawPush, phones: drawPhones, tool: drawTool };
const pending = new Set(), drawn = {};
let scheduled = false, busy = false, took = 0, since = 0, busyUntil = 0, breath = 0;
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
async function breathe() {
	if (performance.now() < breath + 4) return;
	await new Promise((done) => setTimeout(done));
	breath = performance.now();
}
const changed = (change) => noted(addChange(change));
function noted(entry) {
	touched();
	if (!entry) return;
	say(wordOf(entry));
	later("clock", loadClock, 300);
	dirty("lanes", "table");
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
		changed(link);
	},
	policy({ policy, time }) {
		page.overview.policy = policy;
		changed({ time, policy, what: "policy" });
	},
	clock: () => later("clock", loadClock, 50),
	refusal(refusal) {
		known.refusals = [refusal, ...known.refusals.slice(0, 99)];
		say("refused");
		redo(/refusals/);
	},
	fault({ uniqueId, time, topic, name, what }) {
		later("fault", () => redo(/faults/), 500);
		if (known.lives.has(uniqueId)) events.life({ uniqueId, time, topic, step: "fault", fault: name, reason: what });
	},
	bye: ({ reason }) => reason === "rewound" && attempt(load),
	stats(counters) {
		known.counters = counters;
		known.stats = [...known.stats.slice(-239), { ...counters, wall: Date.now() }];
		showClock({ now: counters.now });
		dirty("pill");
		redo(/charts|lock/);
	},
	gap({ dropped }) {
		known.skipped += dropped;
		later("history", fillGap, 1000);
	},
};
const redo = (tools) => tools.test(view.tool) && dirty("tool");
const say = (word) => (spoken[word] = -~spoken[word]);
const fillGap = () => (busy ? later("history", fillGap, 1000) : loadHistory());
function later(name, work, wait) {
	timers[name] ??= setTimeout(async () => {
		delete timers[name];
		if (!document.hidden) await attempt(work);
	}, wait);
}

// Lanes and table. Paused, they keep what was there.

const all = () => frozen?.entries ?? entries();
const inView = () => (view.phone ? all().filter(({ life }) => isChosen(life) || !life.device) : all());
function laneView() {
	return { ...view, entries: inView(), links: known.links.filter(isChosen), now: frozen?.now ?? now(),
		phone: view.phone && (page.phone ?? { apps: [], connected: true }), width, busy };
}
function drawTime() {
	const lanes = laneView(), { entries: shown, now: end, phone } = lanes, { devices, connections } = known.counters, start = shown[0]?.t ?? end - 1;
	if (!width) return;
	const drawing = drawLanes(lanes);
	// What stays the same keeps its nodes: nothing is painted, and a click ends where it began.
	if (!$("lanes").firstChild?.isEqualNode(drawing)) set("lanes", drawing);
	set("density", s("svg", { viewBox: "0 0 606 24", height: 24, preserveAspectRatio: "none", "aria-hidden": true }, bars(shown, (t) => (t - start) / (end - start) * 600, 24, 22)));
	Object.assign($("scrub"), { min: start, max: end, value: view.at || end, ariaValueText: view.at ? hms(view.at) : "live" });
	set("lanes-title", phone ? `Phone ${view.phone.slice(0, 8)}` : "All phones");
	set("about", phone ? [phone.connected ? "connected" : "away", phone.network, phone.power].filter(Boolean).join(", ") : `${number(devices)} phones, ${number(connections)} connected`,
		known.skipped ? `. ${number(known.skipped)} events are not kept here.` : "");
}
function drawTable() {
	const past = view.at ? inView().filter(({ t }) => t <= view.at) : inView();
	// At most 16 new rows in a frame; more follow.
	most = busy ? 12 : past.indexOf(rows[0], -16) < 0 ? 16 : Math.min(most + 16, 100);
	rows = past.slice(-most).reverse();
	reconcile($("table").tBodies[0], rows, ({ key }) => key, ({ t, mark, life: { uniqueId, device }, step }) => h("tr", { "data-push": uniqueId || null },
		h("td", hms(t)), h("td", uniqueId && pushLink(uniqueId)), h("td.dev", device.slice(0, 8)),
		h("td", shortTopic(step.topic ?? "")), h("td", icon(mark), wordOf({ mark, step })), h("td", whyOf({ mark, step }))),
	(row, { life: { uniqueId } }) => (row.className = uniqueId && uniqueId === view.push ? "on" : ""));
	if (past.length > most && most < 100) dirty("table");
}

// One push.

async function loadPush() {
	const { push } = view;
	if (!push || !started) return;
	const life = await get(`/v1/notifications/${encodeURIComponent(push)}`).then(addLife, ({ message }) => known.lives.get(push) ?? { missing: message });
	if (view.push !== push) return;
	if ((life.uniqueId ?? push) !== push) return go({ push: life.uniqueId }, true);
	shown = life;
	dirty("push", "lanes", "table");
}
const STAMP = /\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)(\.\d+)?Z/g;
function drawPush() {
	const { kind, uniqueId, id, topic, token, device, sentence, steps, warnings, missing, traceparent } = shown ?? {};
	if (!steps) return set("push", h("h2", "One push"), h("p.dim", missing ?? "Choose a mark or a row."));
	const last = shown.entries.at(-1), payload = shown.payload ?? known.sent.get(uniqueId)?.payload, output = h("pre#copied", { hidden: true, tabindex: 0 });
	const text = (sentence || (last ? `${wordOf(last)}, ${whyOf(last)}` : "received")).replace(STAMP, "$1");
	const link = (push, words) => push && [" ", pushLink(push, words)];
	set("push", h("h2", `${kind === "silent" ? "Silent" : "Visible"} push ${shortId(uniqueId)}`),
		h("p.dim", topic), h(`p.why.${last?.mark}`, capital(text)),
		h("ol", steps.filter(({ time }) => !view.at || time <= view.at).slice(-60).map((step, index, all) => h("li", h("time", all[index - 1]?.time === step.time ? "" : hms(step.time)),
			h("span", step.fault ? [icon("fault"), `${step.fault}: ${step.reason}`] : step.text.replace(STAMP, "$1").replace(step.replacedBy, "newer"), link(step.carriedBy, "with "), link(step.replacedBy, "by "))))),
		warnings?.map((warning) => h("p.warn", `⚠ ${warning}`)), payload && h("pre", JSON.stringify(payload)),
		h("dl", pairs({ phone: h("a", { href: urlOf({ phone: device }) }, device), "apns-id": id, "unique id": uniqueId, token, traceparent }).map(([name, value]) => value && [h("dt", name), h("dd", value)])),
		h("div.row", "Copy as", pairs(copies).map(([name, make]) => button(name, async () => {
			output.textContent = make(shown, payload);
			output.hidden = false;
			await navigator.clipboard.writeText(output.textContent).then(() => toast(`${name} copied`), () => getSelection().selectAllChildren(output));
		}))), output);
}

// Phones: the server searches and pages; one page of them is all that is ever here.

let pages = [""], more, phones = [], policies = [];
async function refreshPhones() {
	try {
		const found = await get("/v1/devices", { search: $("search").value.trim(), after: pages.at(-1), limit: 40 });
		phones = found.devices;
		more = found.hasMore && found.cursor;
		page.phone = view.phone && (phones.find(isChosen) ?? await get(`/v1/devices/${view.phone}`));
	} catch (error) {
		page.phone = { apps: [], network: error.message };
	}
	dirty("phones", "lanes");
	redo(/compose/);
}
const touched = () => later("phones", refreshPhones, busy ? 3000 : 300);
function phoneChosen() {
	page.phone = phones.find(isChosen);
	if (!view.phone || !started) return;
	refreshPhones();
	attempt(() => loadHistory(view.phone));
	attempt(async () => {
		const { events: found } = await get(`/v1/devices/${view.phone}/events`);
		known.links = known.links.filter((link) => !isChosen(link));
		found.map(events.device);
	});
}
// Full tokens, empty ones, and when the next comes.
function gauge({ topic, budget: { remaining, heldUntil, limit } }, named) {
	if (remaining == null) return "";
	const text = [named && shortTopic(topic), heldUntil ? `next ${hms(heldUntil)}` : limit?.replaceAll("-", " ")].filter(Boolean).join(", ");
	return h("span.gauge", { role: "img", "aria-label": `budget: ${remaining} left ${text}` },
		[0, 1, 2, 3, 4, 5, 6, 7].slice(0, Math.max(3, remaining)).map((index) => h(index < remaining ? "i.on" : "i")), ` ${text}`);
}
function drawPhones() {
	const slot = (apps, kind) => h("span", kind[0].toUpperCase(), apps.some((app) => app[kind]) ? h("b", "● ") : "· ");
	$("everyone").ariaCurrent = !view.phone;
	$("everyone").href = urlOf({ phone: "" });
	reconcile($("phone-list"), phones, ({ device }) => device, () => h("a.phone"), (node, phone) => {
		const { device, apps, connected, network, power } = phone;
		node.href = urlOf({ phone: device, push: "" });
		node.ariaCurrent = isChosen(phone);
		if (node.shows === JSON.stringify(phone)) return;
		node.shows = JSON.stringify(phone);
		const [tightest] = apps.toSorted((a, b) => a.budget.remaining - b.budget.remaining);
		node.replaceChildren(h(connected ? "i.dot" : "i.dot.off"), h("code", device.slice(0, 8)),
			h("span.slots", { title: "Slots: visible, silent. ● is full" }, slot(apps, "visible"), slot(apps, "silent")),
			h("small", `${connected ? "" : "away, "}${network}, ${power}`), tightest ? gauge(tightest, !tightest.budget.allowed) : "");
	});
	$("page-back").disabled = pages.length < 2;
	$("page-on").disabled = !more;
	set("page-note", phones[0] ? `page ${pages.length}` : "none found");
	$("search").placeholder = `Search ${number(known.counters.devices)} phones`;
	const common = page.overview.policy, own = page.phone?.budget?.policy;
	reconcile($("policy"), [view.phone && "", ...policies], (name) => name, (value) => h("option", { value }), (node, name) => set(node, name || `as all: ${common}`));
	$("policy").value = view.phone ? (own === common ? "" : own) : common;
	$("phone-tools").hidden = !view.phone;
	set("phone-tools", page.phone?.apps?.slice(0, 12).map((app) => h("span", `${shortTopic(app.topic)} `, gauge(app))), h("i.grow"),
		pairs({ connection: "Drop connection", slots: "Empty slots", budget: "Refill budget" }).map(([part, name]) => button(name, () => api("DELETE", `/v1/devices/${view.phone}/${part}`).then(refreshPhones))));
}

// The top bar and the drawer.

let clock = { rate: 0 }, clockSeen = 0;
function now() {
	return clock.now ? clock.now + (online ? (performance.now() - clockSeen) * clock.rate : 0) : Date.now();
}
function showClock(changes) {
	clock = { ...clock, ...changes };
	clockSeen = performance.now();
	const { mode, rate, next } = clock;
	page.isVirtual = mode === "virtual";
	$("clock-tools").hidden = $("tool-checkpoints").hidden = !page.isVirtual;
	$("rate").value = rate;
	set("next", next ? `next: ${next.what} ${hms(next.at)}` : "next", h("kbd", "n"));
	$("next").disabled = !next;
	set("clock-note", `UTC, ${mode}${page.isVirtual && rate ? ` ${rate}×` : ""}`);
	tick();
}
function tick() {
	const text = hms(now());
	if ($("clock").textContent === text) return;
	set("clock", text);
	dirty("lanes");
}
const loadClock = async () => showClock({ next: null, ...await get("/v1/clock") });
const advance = (step) => attempt(async () => {
	const { now: time, fired } = await api("POST", "/v1/clock/advance", step);
	showClock({ now: time });
	toast(`${hms(time)}: ${pairs(fired ?? {}).map(([what, count]) => `${number(count)} ${what}`).join(", ") || "nothing fired"}`);
	if (view.at) go({ at: 0 });
	await Promise.all([refreshPhones(), loadClock()]);
});
function drawTop() {
	const state = !online ? "off" : view.at ? "at" : frozen ? "paused" : "live";
	$("pill").className = state;
	set("pill", { off: "not connected", at: `looking at ${hms(view.at)}` }[state] ?? state);
	const { balance = "", addsUp } = known.counters;
	set("light", `${balance.replace(/\d+/g, (n) => number(+n))} `, h(addsUp ? "b.good" : "b.bad", addsUp ? "✓" : "✗"));
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
		if (error.status === 401) return $("sign-in").showModal();
		if (error.status === 410) await load().catch(() => {});
	}
	if (signal.aborted) return;
	online = false;
	dirty("pill");
	setTimeout(() => signal.aborted || listen(), retry);
	retry = Math.min(retry * 2, 10_000);
}
function resume() {
	online = false;
	stream?.abort();
	if (!document.hidden && started) [listen, refreshPhones, loadClock].map(attempt);
}
document.onvisibilitychange = resume;

// Starting.

async function loadHistory(device) {
	for (const life of (await get("/v1/notifications", { device, limit: 300 })).notifications.reverse()) {
		await breathe();
		addLife(life);
	}
	dirty("lanes", "table", "push");
}
async function load() {
	const found = await get("/v1/overview");
	if (started && page.overview.epoch !== found.epoch) {
		known.lives.clear();
		known.changes.clear();
		known.entries = [];
		known.links = [];
		goLive();
	}
	page.overview = found;
	$("version").textContent = found.version;
	if (found.node) (await import("./nodes.js")).join();
	known.counters = { ...found, ...found.counters };
	cursor = found.cursor;
	showClock({ now: found.now, rate: found.rate, mode: found.clock });
	policies = (await get("/v1/policy")).known;
	known.refusals = (await get("/v1/refusals")).refusals;
	await loadHistory();
	if (started) await Promise.all([refreshPhones(), loadClock(), loadPush()]);
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
	[resume, phoneChosen, loadPush].map(attempt);
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
	const index = rows.findIndex(({ key, life }) => (chosen ? key === chosen : life.uniqueId === view.push)), entry = rows[Math.max(0, index + direction)];
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
	"?": ["these keys", () => $("help").showModal()], "/": ["search phones", () => $("search").focus(showView("phones"))],
	j: ["next row", () => move(1)], k: ["row before", () => move(-1)], Enter: ["open the push", () => $("push").focus(showView("push"))],
	" ": ["pause, go on", () => setPaused(!frozen)], ArrowLeft: ["a step back in time", () => step(-1)], ArrowRight: ["a step on", () => step(1)],
	n: ["to the next timer", () => $("next").checkVisibility() && $("next").click()], c: ["compose", () => toggle("compose")],
	r: ["record, stop recording", toggleRecording], Escape: ["close, or back to live", () => (view.tool ? go({ tool: "" }) : goLive())],
};
document.onkeydown = (event) => {
	const { key, target } = event, isEscape = key === "Escape";
	if (!KEYS[key] || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
	if (!isEscape && (!$("keys-on").checked || target.matches("input, select, textarea") || (target.matches("button, a") && /^( |Enter)$/.test(key)))) return;
	event.preventDefault();
	if (isEscape) target.blur();
	KEYS[key][1]();
};
document.onclick = (event) => {
	const link = event.target.closest("a[href^='#']"), push = event.target.closest("[data-push]")?.dataset.push;
	if (event.metaKey || event.ctrlKey || event.shiftKey || !(link || push)) return;
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
$("policy").onchange = ({ target: { value: policy } }) => attempt(() =>
	api(policy ? "PUT" : "DELETE", view.phone ? `/v1/devices/${view.phone}/policy` : "/v1/policy", policy ? { policy } : null).finally(refreshPhones));
$("light").onclick = () => toggle("charts");
$("span").onchange = ({ target }) => go({ span: target.value }, true);
const turn = (to) => later("search", refreshPhones, 150, pages = to);
$("search").oninput = () => turn([""]);
$("page-back").onclick = () => turn(pages.slice(0, -1));
$("page-on").onclick = () => turn([...pages, more]);
$("scrub").oninput = ({ target: { value, min, max } }) => go({ at: max - value < (max - min) / 1000 ? 0 : value });
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
