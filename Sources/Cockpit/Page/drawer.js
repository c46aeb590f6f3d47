// The drawer's tools, the copies of one push, and the export of a run.

import { $, api, attempt, button, capital, hms, day, download, entries, get, h, keep, known, number, pairs, whyOf, request, s, set, shortId, shortTopic, toast, wordOf } from "./kit.js";
import { drawLanes } from "./lanes.js";
import { page, view } from "./cockpit.js";

export const TOOLS = { compose, faults, refusals, recordings, checkpoints, token, charts, lock };
export const titleOf = (tool) => ({ token: "Token check", lock: "Lock screen" })[tool] ?? capital(tool);
let open, refresh;

export function showTool(name) {
	const make = TOOLS[name], body = h("div.cols");
	if (open !== name) {
		$("drawer").hidden = !make;
		set("drawer", h("div.title", h("h2", make && titleOf(name)), button("Close", () => page.go({ tool: "" }))), body);
		refresh = make?.(body);
	}
	open = name;
	if (refresh) attempt(refresh);
}
const field = (label, kind, more) => h("label", label, h(kind, { spellcheck: "false", ...more }));
const list = (items, none) => (items[0] ? h("ul", items.map((item) => h("li.row", item))) : none);
// Named things of the relay, what there is to say and do about each, and what makes another.
const change = (...call) => api(...call).then(() => refresh());
function shelf(body, kind, rowOf, ...maker) {
	const box = h("div");
	body.append(box, h("div", maker));
	return async () => set(box, list((await get(`/v1/${kind}`))[kind].map((item) => [h("b", item.name), rowOf(item, `/v1/${kind}/${item.name}`),
		button("Delete", () => change("DELETE", `/v1/${kind}/${item.name}`), item.name)]), `No ${kind}.`));
}
const verdict = (good, text) => h(good ? "b.good" : "b.bad", `${good ? "✓" : "✗"} ${text} `);
const warn = (text) => h("p.warn", `⚠ ${text}`);
const PAYLOADS = { silent: { aps: { "content-available": 1 } }, visible: { aps: { alert: "Dinner?" } } };
const HEADERS = { silent: { "apns-push-type": "background", "apns-priority": "5" }, visible: { "apns-push-type": "alert", "apns-priority": "10" } };
function compose(body) {
	const fields = [field("To, a device or token", "input#c-to"), field("App", "input#c-app"), field("Headers", "textarea#c-headers", { rows: 3 }), field("Payload", "textarea#c-payload", { rows: 6 })];
	const [to, app, head, text] = fields.map(({ control }) => control), says = h("div#c-lint"), answer = h("p#c-answer", { role: "status" });
	const draft = () => ({ headers: Object.fromEntries(head.value.trim().split("\n").map((line) => line.split(/\s*:\s*/, 2))), payload: JSON.parse(text.value) });
	let timer, told;
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
		const push = draft();
		let last;
		do {
			last = await api("POST", "/v1/push", { to: to.value.trim(), ...(app.value && { topic: app.value.trim() }), ...push });
			keep(known.sent, last.uniqueId, push, 300);
		} while (last.status === 200 && --count);
		set(answer, verdict(last.status === 200, `${last.status} ${last.reason ?? ""}`), last.message ?? page.pushLink(last.uniqueId));
	}
	function pick(kind) {
		head.value = pairs(HEADERS[kind]).map((pair) => pair.join(": ")).join("\n");
		text.value = JSON.stringify(PAYLOADS[kind], null, 2);
		check();
	}
	body.oninput = check;
	body.onkeydown = (event) => event.key === "Enter" && event.ctrlKey && attempt(() => send(1));
	body.append(h("div", fields.slice(0, 3)), h("div", h("div.row", button("Silent", () => pick("silent")), button("Alert", () => pick("visible"))), fields[3]),
		h("div", says, h("div.row", button("Send", () => send(1)), button("Send 5", () => send(5))), answer));
	pick("silent");
	setTimeout(() => text.focus());
	return () => {
		if (!page.phone?.apps || told === view.phone) return;
		told = to.value = view.phone;
		app.value = page.phone.apps[0]?.topic ?? "";
	};
}

function faults(body) {
	const name = field("Name", "input", { value: "flaky" }), text = field("Fault", "textarea", { rows: 4, value: JSON.stringify({ at: "provider", do: { answer: "ServiceUnavailable" }, when: { skip: 2, times: 3 } }, null, 1) });
	return shelf(body, "faults", (fault) => [`at ${fault.at}: ${pairs(fault.do).flat().join(" ")}`, h("span.dim", `seen ${number(fault.seen)}, hit ${number(fault.hit)}`)],
		name, text, button("Add", () => change("PUT", `/v1/faults/${name.control.value}`, JSON.parse(text.control.value))));
}

function checkpoints(body) {
	const name = field("Name", "input#k-name", { value: "ready" });
	return shelf(body, "checkpoints", ({ at, name }, path) => [h("span.dim", `${day(at)} ${hms(at)}`), button("Restore", async () => {
		await change("POST", `${path}/restore`, {});
		toast(`Back at ${name}, ${hms(at)}`);
	}, name)], name, button("Save", () => change("PUT", `/v1/checkpoints/${name.control.value}`, {})));
}

function refusals(body) {
	return () => set(body, list(known.refusals.map(({ time, status, reason, cause, topic }) => [hms(time), h("b", `${status} ${reason}`), cause, topic]), "Nothing was refused."));
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
		try {
			const { valid, problems, ...rest } = await api("POST", "/v1/token-check", { token: input.control.value.trim() });
			set(says, verdict(valid, `This relay ${valid ? "takes" : "does not take"} it.`), problems.map(warn), h("pre", JSON.stringify(rest, null, 1)));
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
		const top = Math.max(1, ...points), name = `${key} ${key === "waiting" ? "now" : "a second"}`;
		return h("div", h("div.title", name, h("b", number(Math.round(points.at(-1) ?? 0)))), s("svg.chart", { viewBox: "0 0 100 52", preserveAspectRatio: "none", role: "img", "aria-label": `${name}, at most ${Math.round(top)}` },
			s("path", { d: "M0 50L" + points.map((value, index) => `${index / points.length * 100} ${50 - value / top * 46}`).join("L") })));
	}));
}

function lock(body) {
	return () => {
		const time = view.at || page.now(), pushes = entries().filter(({ life, step, t }) => life.device === view.phone && life.kind === "visible" && step.step === "sent" && t <= time).slice(-4).reverse();
		set(body, view.phone ? h("div.screen", h("b", hms(time, false)), day(time), pushes.map(({ life, t }) => {
			const alert = (life.payload ?? known.sent.get(life.uniqueId)?.payload)?.aps?.alert;
			return h("p", h("small", `${shortTopic(life.topic)}, ${hms(t, false)}`), alert?.title && h("strong", alert.title), alert?.body ?? (alert?.at ? alert : `Push ${shortId(life.uniqueId)}, text unknown`));
		})) : "Choose a phone first.");
	};
}

// One push as something to paste.

const curl = (path, body) => `curl -s ${location.origin}${path} \\\n  -H "authorization: bearer $(cat .pushrelay/admin.token)" \\\n  -H 'content-type: application/json' \\\n  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`;
const sentAs = ({ uniqueId, kind, payload }) => ({ headers: HEADERS[kind], payload: payload ?? PAYLOADS[kind], ...known.sent.get(uniqueId) });
export const copies = {
	Link: ({ uniqueId }) => `${location.origin}/#push=${uniqueId}`,
	curl: (life) => curl("/v1/push", { to: life.token, ...sentAs(life) }),
	"Wait call": ({ uniqueId }) => curl("/v1/wait", { expect: { what: "delivered", push: uniqueId }, ...(page.isVirtual && { within: "1h", advance: true }), timeout: "10s" }),
	Scenario(life) {
		const app = shortTopic(life.topic), { step, via } = life.entries.at(-1)?.step ?? { step: "received" }, { headers, payload } = sentAs(life);
		return JSON.stringify({ title: `Push ${shortId(life.uniqueId)}`, length: "3h", phones: [{ name: "phone", apps: [{ name: app }] }],
			events: [{ at: "5m", push: { name: "one", to: `phone/${app}`, type: headers["apns-push-type"], payload } }], expect: [{ expect: { what: step, push: "one", why: via } }] }, null, 2);
	},
};

// A run as one file: nothing in it runs or loads anything.

export function exportRun() {
	const lanes = page.laneView(), all = lanes.entries.slice(-3000), title = `push-relay, ${day(lanes.now)} ${hms(lanes.now)}`;
	const doc = document.implementation.createHTMLDocument(title);
	doc.documentElement.lang = "en";
	doc.head.append(h("meta", { charset: "utf-8" }), h("style", [...document.styleSheets[0].cssRules].map(({ cssText }) => cssText), "body{display:block;height:auto;margin:24px}"));
	doc.body.append(h("h1", title), h("p", `Policy ${page.overview.policy}. ${$("light").textContent}. Times are UTC.`),
		h("div#lanes", drawLanes({ ...lanes, entries: all, width: 1360 })), $("legend").cloneNode(true),
		h("table", h("tbody", all.toReversed().map((entry) => h("tr", [hms(entry.t), entry.life.uniqueId, entry.life.device, entry.life.topic, wordOf(entry), whyOf(entry)].map((text) => h("td", text)))))));
	download("push-relay.html", "<!doctype html>\n" + doc.documentElement.outerHTML, "text/html");
	toast("The run is saved as one HTML file");
}
