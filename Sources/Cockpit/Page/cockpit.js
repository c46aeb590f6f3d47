// What is looked at (which is the URL), the event stream, and what is drawn when.

import { $, addLife, addStep, api, attempt, button, hms, entries, get, h, known, number, pairs, whyOf, reconcile, request, set,
	shortId, shortTopic, toast, wordOf } from "./kit.js";
import { drawLanes, icon, legend } from "./lanes.js";
import { TOOLS, copies, exportRun, showTool, toggleRecording } from "./drawer.js";

export const view = {};
export const page = { overview: {}, go, now, laneView, urlOf };
const { body } = document, without = {}, timers = {};
let online = false, started = false, frozen, spoken = {}, shown, rows = [], chosen;

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
	if (phone !== view.phone) phoneChosen();
	if (push !== view.push) {
		shown = known.lives.get(view.push);
		if (started) loadPush();
	}
	dirty(...Object.keys(parts));
}
function urlOf(changes) {
	return "#" + new URLSearchParams(pairs({ ...view, ...changes }).filter(([, value]) => value));
}
function go(changes, replace = "at" in changes) {
	history[replace ? "replaceState" : "pushState"](null, "", urlOf(changes));
	readUrl();
}

// A frame takes in what has come and draws what changed, never for long.

const parts = { pill: drawTop, lanes: drawTime, table: drawTable, push: drawPush, phones: drawPhones, tool: drawTool };
const pending = new Set(), drawn = {};
let scheduled = false, incoming = [], busyUntil = 0;
const isBusy = () => performance.now() < busyUntil;
function dirty(...names) {
	for (const name of names) pending.add(name);
	scheduled ||= requestAnimationFrame(frame);
}
function frame(time) {
	scheduled = false;
	const start = performance.now();
	takeIn(start + 7);
	for (const name of pending) {
		if (time - drawn[name] < (isBusy() ? 400 : 50)) continue;
		pending.delete(name);
		drawn[name] = time;
		parts[name]();
		if (isBusy() || performance.now() - start > 8) break;
	}
	if (pending.size || incoming.length) dirty();
}
function takeIn(end) {
	if (incoming.length > 20_000) known.skipped += incoming.splice(0, incoming.length - 20_000).length;
	let count = 0;
	while (count < incoming.length && (count % 32 || performance.now() < end)) {
		const [kind, text] = incoming[count++];
		events[kind]?.(JSON.parse(text));
	}
	incoming.splice(0, count);
	if (count < 100) return;
	busyUntil = performance.now() + 800;
	later("calm", () => dirty("lanes", "table"), 1000);
}
const events = {
	life(step) {
		const entry = addStep(step);
		if (step.uniqueId === view.push) later("push", loadPush, 250);
		touched();
		if (!entry) return;
		say(wordOf(entry));
		later("clock", loadClock, 300);
		dirty("lanes", "table");
	},
	device(link) {
		known.links.push(link);
		if (known.links.length > 2000) known.links.splice(0, 500);
		touched();
		dirty("lanes");
	},
	clock: () => later("clock", loadClock, 50),
	refusal(refusal) {
		known.refusals = [refusal, ...known.refusals.slice(0, 99)];
		say("refused");
		if (view.tool === "refusals") dirty("tool");
	},
	fault: () => later("fault", () => dirty("tool"), 500),
	stats(counters) {
		known.counters = counters;
		known.stats = [...known.stats.slice(-239), { ...counters, wall: Date.now() }];
		showClock({ now: counters.now });
		dirty("pill");
		if (/charts|lock/.test(view.tool)) dirty("tool");
	},
	gap({ dropped }) {
		known.skipped += dropped;
		later("history", loadHistory, 1000);
	},
};
const say = (word) => (spoken[word] = -~spoken[word]);
function later(name, work, wait) {
	timers[name] ??= setTimeout(async () => {
		delete timers[name];
		if (!document.hidden) await attempt(work);
	}, wait);
}

// Lanes and table. Paused, they keep what was there.

const inView = () => (frozen?.entries ?? entries()).filter(({ life }) => !view.phone || life.device === view.phone);
function laneView() {
	return { ...view, entries: inView(), links: known.links.filter(({ device }) => device === view.phone), now: frozen?.now ?? now(),
		phone: view.phone && (page.phone ?? { apps: [], connected: true }), width: $("lanes").clientWidth, busy: isBusy() };
}
function drawTime() {
	const lanes = laneView(), { entries: all, width, phone } = lanes, { devices, connections } = known.counters;
	if (!width) return;
	$("lanes").replaceChildren(drawLanes(lanes));
	Object.assign($("scrub"), { min: all[0]?.t ?? lanes.now - 1, max: lanes.now, value: view.at || lanes.now, ariaValueText: view.at ? hms(view.at) : "live" });
	set("lanes-title", phone ? `Phone ${view.phone.slice(0, 8)}` : "All phones");
	set("about", phone ? [phone.connected ? "connected" : "away", phone.network, phone.power].filter(Boolean).join(", ") : `${number(devices)} phones, ${number(connections)} connected, policy ${page.overview.policy}`,
		known.skipped ? `. ${number(known.skipped)} events are not kept here.` : "");
}
function drawTable() {
	const all = inView(), past = view.at ? all.filter(({ t }) => t <= view.at) : all;
	rows = past.slice(isBusy() ? -20 : -100).reverse();
	reconcile($("table").tBodies[0], rows, ({ key }) => key, ({ t, mark, life, ...rest }) => h("tr", { "data-push": life.uniqueId },
		h("td", hms(t)), h("td", h("a", { href: urlOf({ push: life.uniqueId }) }, shortId(life.uniqueId))), h("td.dev", life.device.slice(0, 8)),
		h("td", shortTopic(life.topic)), h("td", icon(mark), wordOf({ mark, ...rest })), h("td", whyOf({ mark, ...rest }))),
	(row, { life }) => (row.className = life.uniqueId === view.push ? "on" : ""));
}

// One push.

async function loadPush() {
	const { push } = view;
	if (!push) return;
	const life = await get(`/v1/notifications/${encodeURIComponent(push)}`).then(addLife, ({ message }) => known.lives.get(push) ?? { missing: message });
	if (view.push !== push) return;
	if ((life.uniqueId ?? push) !== push) return go({ push: life.uniqueId }, true);
	shown = life;
	dirty("push", "lanes", "table");
}
const STAMP = /\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)(\.\d+)?Z/g;
function drawPush() {
	const { kind, uniqueId, id, topic, token, device, sentence, steps, warnings, missing } = shown ?? {};
	if (!steps) return set("push", h("h2", "One push"), h("p.dim", missing ?? "Choose a mark or a row."));
	const last = shown.entries.at(-1), payload = shown.payload ?? known.sent.get(uniqueId)?.payload, output = h("pre#copied", { hidden: true, tabindex: 0 });
	const text = (sentence || (last ? `${wordOf(last)}, ${whyOf(last)}` : "received")).replace(STAMP, "$1");
	const link = (push, words) => push && [" ", h("a", { href: urlOf({ push }) }, `${words} ${shortId(push)}`)];
	set("push", h("h2", `${kind === "silent" ? "Silent" : "Visible"} push ${shortId(uniqueId)}`),
		h("p.dim", topic), h(`p.why.${last?.mark}`, text[0].toUpperCase() + text.slice(1)),
		h("ol", steps.filter(({ time }) => !view.at || time <= view.at).slice(-60).map((step, index, all) => h("li", h("time", all[index - 1]?.time === step.time ? "" : hms(step.time)),
			h("span", step.text.replace(STAMP, "$1").replace(step.replacedBy, "newer"), link(step.carriedBy, "with"), link(step.replacedBy, "by"))))),
		warnings?.map((warning) => h("p.warn", `⚠ ${warning}`)), payload && h("pre", JSON.stringify(payload)),
		h("dl", pairs({ phone: h("a", { href: urlOf({ phone: device }) }, device), "apns-id": id, "unique id": uniqueId, token }).map(([name, value]) => [h("dt", name), h("dd", value)])),
		h("div.row", "Copy as", pairs(copies).map(([name, make]) => button(name, async () => {
			output.textContent = make(shown, payload);
			output.hidden = false;
			await navigator.clipboard.writeText(output.textContent).then(() => toast(`${name} copied`), () => getSelection().selectAllChildren(output));
		}))), output);
}

// Phones: the server searches and pages; one page of them is all that is ever here.

let pages = [""], more, phones = [];
async function refreshPhones() {
	try {
		const found = await get("/v1/devices", { search: $("search").value.trim(), after: pages.at(-1), limit: 40 });
		phones = found.devices;
		more = found.hasMore && found.cursor;
		page.phone = view.phone && (phones.find(({ device }) => device === view.phone) ?? await get(`/v1/devices/${view.phone}`));
	} catch (error) {
		$("phones").hidden = error.isMissing;
		page.phone = { apps: [], network: error.message };
	}
	dirty("phones", "lanes");
	if (view.tool === "compose") dirty("tool");
}
const touched = () => later("phones", refreshPhones, isBusy() ? 2000 : 300);
function phoneChosen() {
	page.phone = phones.find(({ device }) => device === view.phone);
	if (!view.phone || !started) return;
	refreshPhones();
	attempt(() => loadHistory(view.phone));
}
// Full tokens, empty ones, and when the next comes.
function gauge({ topic, budget: { remaining, capacity, heldUntil, nextAt, limit } }, named) {
	if (remaining == null) return "";
	const next = nextAt ?? heldUntil, text = [named && shortTopic(topic), next ? `next ${hms(next)}` : limit?.replaceAll("-", " ")].filter(Boolean).join(", ");
	return h("span.gauge", { role: "img", "aria-label": `budget: ${remaining} left ${text}` },
		Array.from({ length: Math.min(8, capacity ?? Math.max(3, remaining)) }, (_, index) => h(index < remaining ? "i.on" : "i")), ` ${text}`);
}
function drawPhones() {
	const slot = (apps, kind) => h("span", kind[0].toUpperCase(), apps.some((app) => app[kind]) ? h("b", "● ") : "· ");
	$("everyone").ariaCurrent = !view.phone;
	$("everyone").href = urlOf({ phone: "" });
	reconcile($("phone-list"), phones, ({ device }) => device, () => h("a.phone"), (node, { device, apps, connected, network, power }) => {
		node.href = urlOf({ phone: device, push: "" });
		node.ariaCurrent = device === view.phone;
		const [tightest] = apps.toSorted((a, b) => a.budget.remaining - b.budget.remaining);
		node.replaceChildren(h(connected ? "i.dot" : "i.dot.off"), h("code", device.slice(0, 8)),
			h("span.slots", { title: "Slots: visible, silent. ● is full" }, slot(apps, "visible"), slot(apps, "silent")),
			h("small", `${connected ? "" : "away, "}${network}, ${power}`), tightest ? gauge(tightest, !tightest.budget.allowed) : "");
	});
	$("page-back").disabled = pages.length < 2;
	$("page-on").disabled = !more;
	set("page-note", phones[0] ? `page ${pages.length}` : "none found");
	$("search").placeholder = `Search ${number(known.counters.devices)} phones`;
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
	$("clock-tools").hidden = !page.isVirtual || without.clock;
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
async function loadClock() {
	if (!without.clock) await get("/v1/clock").then((found) => showClock({ next: null, ...found }), ({ isMissing }) => (without.clock = $("clock-tools").hidden = isMissing));
}
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
	const { received = 0, restored = 0, delivered = 0, replaced = 0, expired = 0, discarded = 0, waiting, addsUp } = known.counters;
	set("light", `${number(received + restored)} received = ${number(delivered + replaced + expired + discarded)} ended + ${number(waiting)} waiting `, h(addsUp ? "b.good" : "b.bad", addsUp ? "✓" : "✗"));
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
// Takes a tool away whose route is not there.
page.hide = (name) => {
	without[name] = $(`tool-${name}`).hidden = true;
	if (view.tool === name) go({ tool: "" }, true);
};

// The event stream: one for each page, resumed where it ended; a hidden tab has none.

let cursor, stream, retry = 500;
async function listen() {
	const { signal } = stream = new AbortController();
	try {
		const response = await request("GET", "/v1/events", undefined, { signal, headers: { accept: "text/event-stream", ...(cursor && { "last-event-id": cursor }) } });
		online = true;
		retry = 500;
		dirty("pill");
		let rest = "", kind, data = "", id;
		for (const reader = response.body.pipeThrough(new TextDecoderStream()).getReader(); ;) {
			const { value, done } = await reader.read();
			if (done) break;
			const lines = (rest + value).split("\n");
			rest = lines.pop();
			for (const line of lines) {
				const [, name, content] = /^(\w+): ?(.*)/.exec(line) ?? [];
				if (name === "data") data += content;
				else if (name === "event") kind = content;
				else if (name === "id") id = content;
				else if (!name && data) {
					incoming.push([kind, data]);
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
	setTimeout(() => signal.aborted || listen(), retry);
	retry = Math.min(retry * 2, 10_000);
}
function resume() {
	online = false;
	stream?.abort();
	if (document.hidden || !started) return;
	listen();
	refreshPhones();
	loadClock();
}
document.onvisibilitychange = resume;

// Starting.

async function loadHistory(device) {
	for (const life of (await get("/v1/notifications", { device, limit: 500 })).notifications.reverse()) addLife(life);
	dirty("lanes", "table", "push");
}
async function load() {
	const found = await get("/v1/overview");
	if (page.overview.epoch !== found.epoch) {
		known.lives.clear();
		known.entries = [];
	}
	page.overview = found;
	known.counters = { ...found, ...found.counters };
	cursor = found.cursor;
	showClock({ now: found.now, rate: found.rate, mode: found.clock });
	await loadHistory();
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
	resume();
	phoneChosen();
	loadPush();
	for (const name of ["faults", "recordings", "refusals"]) {
		page.overview.missing?.includes(name) ? page.hide(name) : get(`/v1/${name}`).then(({ refusals }) => (known.refusals = refusals ?? known.refusals), (error) => error.isMissing && page.hide(name));
	}
}
setInterval(tick, 250);
setInterval(() => {
	const said = pairs(spoken).map(([word, count]) => `${count} ${word}`).join();
	spoken = {};
	if (said) set("live", said);
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
	event.preventDefault();
	history.pushState(null, "", push ? urlOf({ push }) : link.getAttribute("href"));
	readUrl();
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
$("light").onclick = () => toggle("charts");
$("span").onchange = ({ target }) => go({ span: target.value }, true);
const turn = (to) => later("search", refreshPhones, 150, pages = to);
$("search").oninput = () => turn([""]);
$("page-back").onclick = () => turn(pages.slice(0, -1));
$("page-on").onclick = () => turn([...pages, more]);
$("scrub").oninput = ({ target: { value, min, max } }) => go({ at: max - value < (max - min) / 1000 ? 0 : value });
$("views").onclick = ({ target }) => showView(target.value);
set("tools", pairs(TOOLS).map(([tool, [title]]) => h(`button#tool-${tool}`, { value: tool, onclick: () => toggle(tool) }, title, tool === "compose" && h("kbd", "c"))), button("Export", exportRun));
onhashchange = onpopstate = readUrl;
new ResizeObserver(() => dirty("lanes")).observe($("lanes"));
set("legend", legend());
showView("time");
readUrl();
start();
