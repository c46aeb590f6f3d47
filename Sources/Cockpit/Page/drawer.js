// The drawer's tools, and the export of a run.

import { $, api, attempt, button, capital, keepFocus, hms, joined, moment, day, download, get, h, known, nameOf, number, pairs, whyOf, request, s, set, some, toast, wordOf } from "./kit.js";
import { isFiltered } from "./find.js";
import { drawLanes } from "./lanes.js";
import { HEADERS, PAYLOADS } from "./push.js";
import { page, view } from "./cockpit.js";

export const TOOLS = { compose, faults, recordings, checkpoints, token, charts };
export const titleOf = (tool) => ({ token: "Token check" })[tool] ?? capital(tool);
let open, refresh;

export function showTool(name) {
	const make = TOOLS[name], body = h("div.cols");
	if (open !== name) {
		$("drawer").hidden = !make;
		set("drawer", h("div.title", h("h2", make && titleOf(name)), button("Close", () => page.go({ tool: "" }))), body);
		refresh = make?.(body);
		if (!make && (document.activeElement ?? document.body) === document.body) $(`tool-${open}`)?.focus();
	}
	open = name;
	if (refresh) attempt(refresh);
}
const field = (label, kind, more, kids) => h("label", label, h(kind, { spellcheck: "false", autocomplete: "off", ...more }, kids));
const list = (items, none) => (items[0] ? h("ul", items.map((item) => h("li.row", item))) : none);
// Named things of the relay, what there is to say and do about each, and what makes another.
const change = (...call) => api(...call).then(() => refresh());
function shelf(body, kind, rowOf, ...maker) {
	const box = h("div");
	body.append(box, h("div", maker));
	return async () => {
		const rows = (await get(`/v1/${kind}`))[kind].map((item) => {
			const { name } = item, path = `/v1/${kind}/${name}`;
			return [h("b", name), rowOf(item, path), button("Delete", () => change("DELETE", path), name)];
		});
		// What is pressed at this moment stays.
		if (!box.matches(":active")) keepFocus(body, () => set(box, list(rows, `No ${kind}.`)));
	};
}
function headersOf(text) {
	const headers = {};
	for (const line of text.split("\n").filter((line) => line.trim())) {
		const [, name, value] = /^\s*([^\s:]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
		if (!name) throw new Error(`“${line.trim()}” is not a header: name, colon, value`);
		if (headers[name] != null) throw new Error(`${name} is there twice`);
		headers[name] = value;
	}
	return headers;
}
const verdict = (good, text) => h(good ? "b.good" : "b.bad", `${good ? "✓" : "✗"} ${text} `);
const warn = (text) => h("p.warn", `⚠ ${text}`);
// What was being written, when its drawer is opened again.
let composed;
function compose(body) {
	const fields = [field("To: name or id of a phone, or a token", "input#c-to"), field("App", "input#c-app"), field("Headers", "textarea#c-headers", { rows: 3 }), field("Payload", "textarea#c-payload", { rows: 6 })];
	const [to, app, head, text] = fields.map(({ control }) => control), says = h("div#c-lint"), answer = h("p#c-answer", { role: "status" });
	const draft = () => ({ headers: headersOf(head.value), payload: JSON.parse(text.value) });
	const before = composed?.controls.map(({ value }) => value);
	composed = { controls: [to, app, head, text], told: composed?.told };
	let timer;
	function check() {
		clearTimeout(timer);
		timer = setTimeout(async () => {
			try {
				const { kind, warnings, refusal } = await api("POST", "/v1/lint", draft());
				set(says, verdict(!refusal, refusal ? `would be refused: ${refusal.status} ${refusal.reason}` : kind), warnings.map((warning) => warn(warning.text)));
			} catch (error) {
				set(says, verdict(false, error.message));
			}
		}, 150);
	}
	async function send(count) {
		set(answer);
		try {
			const push = draft();
			let last;
			do {
				last = await api("POST", "/v1/push", { to: to.value.trim(), ...(app.value && { topic: app.value.trim() }), ...push });
			} while (last.status === 200 && --count);
			set(answer, verdict(last.status === 200, `${last.status} ${last.reason ?? ""}`), last.message ?? page.pushLink(last.uniqueId));
		} catch ({ message }) {
			set(answer, verdict(false, message));
		}
	}
	function pick(kind) {
		head.value = pairs(HEADERS[kind]).map((pair) => pair.join(": ")).join("\n");
		text.value = JSON.stringify(PAYLOADS[kind], null, 2);
		check();
	}
	body.oninput = check;
	body.onkeydown = ({ key, ctrlKey }) => void (key === "Enter" && ctrlKey && attempt(() => send(1)));
	body.append(h("div", fields.slice(0, 3)), h("div", h("div.row", button("Silent", () => pick("silent")), button("Alert", () => pick("visible"))), fields[3]),
		h("div", says, h("div.row", button("Send", () => send(1)), button("Send 5", () => send(5))), answer));
	pick("silent");
	before?.forEach((value, place) => (composed.controls[place].value = value));
	setTimeout(() => text.focus());
	return () => {
		// The chosen phone, else the first: what is there can be sent to at once.
		const { device, apps } = page.phone || page.first || {};
		if (!device || composed.told === device && app.value || !view.phone && to.value) return;
		composed.told = to.value = device;
		app.value = apps[0]?.topic ?? "";
	};
}

// What can go wrong on purpose, by place: what it does, and in which values. A length is typed, `true` needs none.
const REASONS = ["ServiceUnavailable", "TooManyRequests", "InternalServerError", "Unregistered", "BadDeviceToken", "ExpiredProviderToken", "InvalidProviderToken",
	"PayloadTooLarge", "DeviceTokenNotForTopic", "TopicDisallowed", "Shutdown"];
const DOES = { provider: { answer: REASONS, delay: "2s", drop: true, reset: true }, connection: { goaway: ["once", "twice", "bare"], reset: true, halfClose: true, blackhole: true, stall: "5s" },
	delivery: { delay: "2s", drop: true, duplicate: true, reset: true }, journal: { failWrite: true, delay: "2s" } };
const READY = { "503 three times": ["provider", "answer", "ServiceUnavailable", 3], "429 for all": ["provider", "answer", "TooManyRequests"], "410 once": ["provider", "answer", "Unregistered", 1],
	"Answers late": ["provider", "delay", "2s"], "GOAWAY once": ["connection", "goaway", "once", 1], "Line to the phone drops": ["delivery", "drop", true, 1], "Delivered twice": ["delivery", "duplicate", true, 1], "Journal fails": ["journal", "failWrite", true, 1] };
function faults(body) {
	const choice = (label, id, values) => field(label, `select#x-${id}`, { spellcheck: null, autocomplete: null }, values.map((value) => h("option", { value }, value)));
	const name = field("Name", "input#x-name", { value: "flaky", required: true }), at = choice("Where", "at", Object.keys(DOES)), does = choice("What", "do", []), value = h("div"), app = field("Only of app", "input#x-app", { placeholder: "all apps" });
	const count = (label, id, more) => field(label, `input#x-${id}`, { type: "number", min: 0, spellcheck: null, ...more }), skip = count("Let pass first", "skip", { placeholder: 0 }), times = count("So often", "times", { min: 1, placeholder: "always" });
	const chance = count("Percent", "chance", { min: 1, max: 100, placeholder: 100 }), lasts = field("For", "input#x-for", { placeholder: "until deleted" }), says = h("p.bad", { role: "status" });
	let worth;
	function drawValue(wanted) {
		const values = DOES[at.control.value][does.control.value];
		worth = values === true ? null : Array.isArray(values) ? choice("Which", "value", values) : field("How long", "input#x-value", { value: values });
		set(value, worth ?? "");
		if (worth && wanted) worth.control.value = wanted;
	}
	function drawDoes(wanted, wantedValue) {
		set(does.control, Object.keys(DOES[at.control.value]).map((value) => h("option", { value }, value)));
		if (wanted) does.control.value = wanted;
		drawValue(wantedValue);
	}
	at.control.onchange = () => drawDoes();
	does.control.onchange = () => drawValue();
	const pick = (ready, [place, what, value, often = ""]) => {
		at.control.value = place;
		times.control.value = often;
		name.control.value = ready.toLowerCase().replace(/[^a-z0-9]+/g, "-");
		drawDoes(what, value);
	};
	async function add() {
		const of = ({ control }) => control.value.trim(), number = (field) => Number(of(field)) || undefined, topic = of(app);
		const when = { skip: number(skip), times: number(times), probability: number(chance) / 100 || undefined };
		set(says);
		await change("PUT", `/v1/faults/${encodeURIComponent(of(name))}`, { at: of(at), do: { [of(does)]: worth ? of(worth) : true }, match: topic ? { topic } : {}, when, for: of(lasts) || undefined }).catch(({ message }) => set(says, message));
	}
	drawDoes();
	const form = h("form", { "aria-label": "A fault", onsubmit: (event) => event.preventDefault(attempt(add)) }, h("div.fields", name, at, does, value, app, times, skip, chance, lasts), h("button", "Add"), says);
	return shelf(body, "faults", (fault) => [h("span", aboutFault(fault)), h("span.dim", `seen ${number(fault.seen)}, hit ${number(fault.hit)}`)],
		h("div.row", { role: "group", "aria-label": "Ready to use" }, pairs(READY).map(([ready, parts]) => button(ready, () => pick(ready, parts)))), form);
}

function aboutFault({ at, do: does, match: { topic }, skip, times, probability, until }) {
	const what = pairs(does).flat().filter((word) => word !== true).join(" ");
	return joined(`at ${at}: ${what}${topic ? ` of ${topic}` : ""}`, skip && `after ${number(skip)}`, times && some(times, "time"),
		probability < 1 && `${number(probability * 100)} %`, until && `${until < page.now() ? "over since" : "until"} ${moment(until)}`);
}

function checkpoints(body) {
	const name = field("Name", "input#k-name", { value: "ready", required: true });
	const save = () => change("PUT", `/v1/checkpoints/${encodeURIComponent(name.control.value.trim())}`, {});
	return shelf(body, "checkpoints", ({ at, name }, path) => [h("span.dim", `${day(at)} ${hms(at)}`), button("Restore", async () => {
		await change("POST", `${path}/restore`, {});
		toast(`Back at ${name}, ${moment(at)}`);
	}, name)], h("form", { "aria-label": "A checkpoint", onsubmit: (event) => event.preventDefault(attempt(save)) }, name, h("button", "Save")));
}

export const toggleRecording = () => attempt(async () => {
	const running = (await get("/v1/recordings")).recordings.find(({ state }) => state === "running"), name = running?.name ?? `run-${Date.now().toString(36)}`;
	await (running ? api("POST", `/v1/recordings/${name}/stop`, {}) : api("PUT", `/v1/recordings/${name}`, { payloads: "aps" }));
	toast(running ? `${name} is recorded` : `Recording ${name}`);
	if (open === "recordings") await refresh();
});
function recordings(body) {
	return shelf(body, "recordings", ({ name, state, bytes }, path) => [h("span.dim", `${state}, ${number(bytes)} bytes`),
		state === "stopped" && button("Save", async () => download(`${name}.prr`, await (await request("GET", `${path}/file`)).blob()), name)], button("Record, or stop", toggleRecording));
}

function token(body) {
	const input = field("A provider token. It is sent to this relay only.", "textarea#t-token", { rows: 4, placeholder: "eyJ…" }), says = h("div#t-says", { role: "status" });
	input.oninput = async () => {
		if (!input.control.value.trim()) return set(says);
		try {
			const { valid, problems, ...rest } = await api("POST", "/v1/token-check", { token: input.control.value.trim() });
			set(says, verdict(valid, `This relay ${valid ? "takes" : "does not take"} it.`), problems.map(warn), pairs(rest)[0] && h("pre", JSON.stringify(rest, null, 1)));
		} catch (error) {
			set(says, error.message);
		}
	};
	body.append(input, says);
}

function charts(body) {
	return () => set(body, ["received", "delivered", "refused", "waiting"].map((key) => {
		const points = known.stats.map((sample, index, { [index - 1]: before }) => (key === "waiting" ? sample[key]
			: before ? Math.max(0, sample[key] - before[key]) * 1000 / Math.max(200, sample.wall - before.wall) : 0));
		const top = Math.max(1, ...points), name = key === "waiting" ? "waiting for the journal" : `${key} a second`;
		return h("div", h("div.title", name, h("b", number(Math.round(points.at(-1) ?? 0)))), s("svg.chart", { viewBox: "0 0 100 52", preserveAspectRatio: "none", role: "img", "aria-label": `${name}, at most ${Math.round(top)}` },
			s("path", { d: "M0 50" + points.map((value, index) => `L${index / points.length * 100} ${50 - value / top * 46}`).join("") })));
	}));
}

// A run as one file: nothing in it runs or loads anything.

export function exportRun() {
	const lanes = page.laneView(), all = lanes.entries.slice(-3000), whose = view.phone && `phone ${nameOf(view.phone)}`, only = isFiltered() && "filtered";
	const title = `push-relay, ${joined(whose, only, `${day(lanes.now)} ${hms(lanes.now)}`)}`;
	const doc = document.implementation.createHTMLDocument(title);
	doc.documentElement.lang = "en";
	doc.head.append(h("meta", { charset: "utf-8" }));
	const style = `<style>${[...document.styleSheets[0].cssRules].map(({ cssText }) => cssText).join("\n")} body{display:block;height:auto;margin:24px}</style></head>`;
	doc.body.append(h("h1", title), h("p", `Policy ${page.overview.policy}. ${$("light").textContent}. Times are UTC.`),
		h("div#lanes", drawLanes({ ...lanes, entries: all, width: 1360 })), $("legend").cloneNode(true),
		h("table", h("thead", h("tr", ["when", "push", "phone", "app", "what", "why"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", all.toReversed().map((entry) => h("tr", [moment(entry.t), entry.life.uniqueId, entry.life.device, entry.life.topic, wordOf(entry), whyOf(entry)].map((text) => h("td", text)))))));
	download("push-relay.html", "<!doctype html>\n" + doc.documentElement.outerHTML.replace("</head>", () => style), "text/html");
	toast("The run is saved as one HTML file");
}
