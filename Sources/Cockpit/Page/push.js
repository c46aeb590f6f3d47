// One push: what became of it and what was sent, to copy and to send again.

import { addLife, addRequest, api, button, capital, get, h, isBroadcast, joined, known, moment, lengthOf, nameOf, pairs, partOf, shortId, some, toast, whyOf, withTimes, wordOf, $ } from "./kit.js";
import { icon } from "./lanes.js";
import { gauge } from "./phone.js";
import { page, view } from "./cockpit.js";

let shown, answer;
export function pushChosen() {
	shown = known.lives.get(view.push);
	answer = null;
}

export async function loadPush() {
	const { push } = view, path = encodeURIComponent(push);
	if (!push) return;
	const refused = known.lives.get(push)?.refusal && known.lives.get(push);
	let life = refused || await get(`/v1/notifications/${path}`).then(addLife, ({ message }) => ({ ...known.lives.get(push), missing: message }));
	const sent = life.request ?? await get(`/v1/requests/${path}`).catch(({ reason, message }) => ({ reason, message }));
	if (view.push !== push) return;
	if (sent.uniqueId) {
		life = addRequest(sent) ?? { ...life, uniqueId: sent.uniqueId, request: sent, ...(isBroadcast(sent) && { missing: BROADCAST }) };
	} else life.notKept = sent.reason === "RequestsNotKept" ? "This relay does not keep what was sent: start it with --keep-requests 16."
		: `Nothing is kept of what was sent${life.refusal ? ". A connection that has not proved who it is leaves this row only." : " any more."}`;
	if ((life.uniqueId ?? push) !== push) return page.go({ push: life.uniqueId }, true);
	shown = life;
	page.dirty("push", "lanes", "table");
}

const BROADCAST = "A broadcast: it goes once to each subscriber of its channel, and has no steps.";
const link = (push, words) => push && [" ", page.pushLink(push, words)];
function stepRow(step, index, all) {
	const text = step.fault ? [icon("fault"), `${step.fault}: ${step.reason}`] : withTimes(step.text).replace(step.replacedBy, "newer").replace(`, with ${step.carriedBy}`, "");
	return h("li", h("time", all[index - 1]?.time === step.time ? "" : moment(step.time)), h("span", text, link(step.carriedBy, "with "), link(step.replacedBy, "by ")));
}
// As of the moment that is looked at: what came later has not been said yet.
function sentenceOf({ sentence, refusal, entries, steps }, seen) {
	const last = entries.findLast(({ t }) => !view.at || t <= view.at), isPast = seen.length < steps.length;
	if (refusal) return `${refusal.status} ${refusal.reason}: ${refusal.cause ?? refusal.message}`;
	if (!seen[0]) return "Not received yet at that moment.";
	return withTimes(!isPast && sentence || (last ? `${wordOf(last)}, ${whyOf(last)}` : seen.at(-1).text));
}
const phoneLink = () => view.phone && h("a", { href: page.urlOf({ push: "" }) }, nameOf(view.phone));
export function drawPush() {
	const { kind, uniqueId, id, topic, token, device, steps, refusal, missing, traceparent, request, notKept, waits } = shown ?? {};
	if (!steps && !request) return [h("div.title", h("h2", "One push"), phoneLink()), h("p.dim", missing ? `${capital(missing)}.` : "Choose a mark or a row.")];
	const seen = (steps ?? []).filter(({ time }) => !view.at || time <= view.at), last = shown.entries?.findLast(({ t }) => !view.at || t <= view.at);
	const rows = { phone: device && h("a", { href: page.urlOf({ phone: device, push: "" }) }, nameOf(device) === device.slice(0, 8) ? device : `${nameOf(device)}, ${device}`), "apns-id": id, "unique id": uniqueId, token, traceparent };
	return [h("div.title", h("h2", refusal ? `Refused push ${shortId(uniqueId)}` : `${capital(kind ?? "one")} push ${shortId(uniqueId)}`),
			phoneLink()),
		h("p.dim", topic || ""), h(`p.why.${last?.mark ?? "plain"}`, steps ? capital(sentenceOf(shown, seen)) : missing),
		waits && !view.at && (waits.app || waits.device) && h("p.waits", waits.app && gauge(waits.app, "app"), waits.device && gauge(waits.device, "phone")),
		seen[0] && !refusal && h("ol", seen.slice(-60).map(stepRow)),
		...requestPart(request, notKept), h("h3", "Whose"), h("dl", rowsOf(rows)),
		h("div.row", h("span.dim", "Copy as"), pairs(copies).map(([name, make]) => make(shown) && button(name, () => copy(name, make(shown))))),
		h("div.row", request?.token && button("Resend", resend), answer?.to === uniqueId && h("span#resent", { role: "status" }, answer.words)),
		answer?.copied && h("pre#copied", { tabindex: 0, role: "region", "aria-label": "What was copied" }, answer.copied)];
}
const rowsOf = (rows) => pairs(rows).map(([name, value]) => value && [h("dt", name), h("dd", value)]);

// What turns the direction of a text would show another one than was sent.
const plain = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (sign) => `\\u${sign.charCodeAt().toString(16)}`);
function requestPart(request, notKept) {
	const warnings = (request?.warnings ?? shown.warnings ?? []).map((warning) => h("p.warn", `⚠ ${warning.text ?? warning}`));
	const sent = request?.payload, content = plain((sent ? JSON.stringify(sent, null, 2) : request?.body) ?? "");
	if (!request) return [h("h3", "What was sent"), ...warnings, h("p.dim", notKept ?? "…")];
	const { headers, bodyBytes, connection: { peer, security, listener, request: ordinal, number, team, keyId, certificate } = {}, status, reason, milliseconds, redacted, pushType, path } = request;
	return [h("h3", "What was sent"), ...warnings,
		content ? h("pre#payload", { tabindex: 0, role: "region", "aria-label": "Payload" }, content) : h("p.dim", "No body."),
		h("p.dim", joined(some(bodyBytes ?? 0, "byte"), !request.payload && request.body && "not JSON", redacted?.[0] && `replaced by kind and length: ${redacted.join(", ")}`)),
		h("table.headers", { "aria-label": "Headers" }, h("tbody", headers.map(({ name, value }) => name[0] !== ":" && h("tr", h("th", { scope: "row" }, name), h("td", value))))),
		h("h3", "How it came"),
		h("dl", rowsOf({ answer: status ? h(status < 300 ? "b.good" : "b.bad", `${status} ${reason ?? ""}`) : "none", took: milliseconds != null && (milliseconds < 1 ? `${milliseconds} ms` : lengthOf(milliseconds)),
			at: request.at?.replace("T", " ").replace("Z", " UTC"), type: pushType, path,
			by: team ? `token of team ${team}, key ${keyId}` : certificate ? `certificate ${certificate}` : null,
			connection: joined(peer && `from ${peer}`, listener && listener !== "provider" && `${listener} API`, security && security !== listener && security, ordinal && `request ${number ? `${ordinal} on connection ${number}` : ordinal}`) }))];
}

async function copy(name, make) {
	answer = { copied: await make() };
	page.dirty("push");
	await navigator.clipboard.writeText(answer.copied).then(() => toast(`${name} copied`), () => setTimeout(() => $("copied") && getSelection().selectAllChildren($("copied")), 200));
}
async function resend() {
	const { uniqueId } = shown, { status, reason, message, uniqueId: next } = await api("POST", `/v1/requests/${encodeURIComponent(uniqueId)}/resend`, {});
	answer = { to: uniqueId, words: [h(status === 200 ? "b.good" : "b.bad", `${status} ${reason ?? ""} `), next && page.pushLink(next, "as "), message && ` ${message}`] };
	page.dirty("push");
}

// One push as something to paste. What would not work as pasted is not offered.

export const PAYLOADS = { silent: { aps: { "content-available": 1 } }, visible: { aps: { alert: "Dinner?" } } };
export const HEADERS = { silent: { "apns-push-type": "background", "apns-priority": "5" }, visible: { "apns-push-type": "alert", "apns-priority": "10" } };
const copies = {
	Link: ({ uniqueId }) => () => `${location.origin}/#push=${uniqueId}`,
	curl: ({ request, uniqueId }) => request && (async () => (await get(`/v1/requests/${encodeURIComponent(uniqueId)}`)).curl),
	Scenario: ({ request, steps, topic }) => request?.payload && steps?.[1] && !partOf(topic) && (() => scenario(request, topic)),
};
// The same push to a phone that is there, with full budgets.
function scenario({ headers, payload, time, uniqueId }, topic) {
	const of = (name) => headers.find((header) => header.name === `apns-${name}`)?.value, expiration = of("expiration");
	const push = { name: "one", to: `phone/${topic}`, type: of("push-type"), priority: Number(of("priority")) || undefined, payload,
		collapse: of("collapse-id"), expires: expiration && `${Math.max(0, expiration - Math.floor(time / 1000))}s` };
	return JSON.stringify({ title: `Push ${shortId(uniqueId)}`, length: "3h",
		phones: [{ name: "phone", apps: [{ name: topic }] }], events: [{ at: "5m", push }],
		expect: [{ expect: { what: "delivered", push: "one" } }] }, null, 2);
}
