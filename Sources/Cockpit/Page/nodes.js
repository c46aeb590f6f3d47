// The nodes of a cluster: who is there, who has what, how far behind. A relay on its own never loads this.

import { $, api, attempt, button, get, h, number, reconcile, set, toast } from "./kit.js";
import { TOOLS, showTool } from "./drawer.js";
import { page, view } from "./cockpit.js";

const PAUSE = 2000;
let status, shown = [], problem;

const isAway = ({ state, leaseSeconds }) => state !== "gone" && !(leaseSeconds > 0);
function troubles({ nodes, stripes }) {
	const open = stripes.filter(({ node, state }) => !node && state !== "moving").map(({ stripe }) => stripe);
	return [...nodes.filter(({ state }) => state === "gone").map(({ name }) => `${name} is gone`),
		...nodes.filter(isAway).map(({ name, leaseSeconds }) => `${name} ${leaseSeconds == null ? "does not answer" : "has lost its lease"}`),
		...(open[0] == null ? [] : [`no node has ${open[1] ? "stripes" : "stripe"} ${open.join(", ")}`])];
}
async function look() {
	try {
		status = await get("/v1/cluster");
		problem = troubles(status).join("; ");
	} catch ({ message }) {
		problem = message;
	}
	const active = status?.nodes.filter(({ state }) => state !== "gone").length ?? 0;
	set("nodes", problem || `${number(active)} node${active === 1 ? "" : "s"} `, h(problem ? "b.bad" : "b.good", problem ? " ✗" : "✓"));
	shown.map((draw) => draw());
}
function words({ state, ageSeconds, leaseSeconds, name }) {
	if (state === "gone") return `gone for ${ageSeconds < 120 ? `${Math.round(ageSeconds)} s` : ageSeconds < 7200 ? `${Math.round(ageSeconds / 60)} min` : `${Math.round(ageSeconds / 3600)} h`}`;
	if (leaseSeconds == null) return `${state}, does not answer`;
	return `${state}${leaseSeconds > 0 ? "" : ", no lease"}${name === status.node ? ", this one" : ""}`;
}
const ORDERS = { active: "Drain", draining: "Undo drain of", gone: "Forget" };
function order({ name, stripes, state }) {
	if (state === "active" && !confirm(`Have ${name} give its ${stripes.length} stripe${stripes[1] == null ? "" : "s"} to the others? It takes none until that is undone, or it is started again.`)) return;
	const told = { active: "gives its stripes away", draining: "takes stripes again", gone: "is forgotten" }[state];
	return api(state === "active" ? "POST" : "DELETE", `/v1/cluster/nodes/${encodeURIComponent(name)}${state === "gone" ? "" : "/drain"}`, {}).then(look).then(() => toast(`${name} ${told}`));
}
function nodes(body) {
	const rows = h("tbody");
	body.append(h("table", h("thead", h("tr", ["node", "state", "stripes", "partitions", "waiting for the engine", "", "providers", "phones"].map((name) => h("th", name)))), rows));
	shown = [() => status && reconcile(rows, status.nodes, ({ name }) => name, ({ name: own }) => h("tr", [..."12345"].map(() => h("td")),
		h("td", button("Drain", () => order(status.nodes.find(({ name }) => name === own)), own)), h("td"), h("td")), (row, node) => {
		const { name, stripes, partitions, waiting, waitingSeconds, provider, device, state } = node, isGone = state === "gone";
		const marks = h("span.gauge", { role: "img", "aria-label": `stripes ${stripes.join(", ") || "none"}` }, status.stripes.map(({ node: owner }) => h(owner === name ? "i.on" : "i")));
		const late = waiting ? `${number(waiting)} records, ${waitingSeconds.toFixed(1)} s` : waiting === 0 ? "nothing" : "unknown";
		[h("b", name), h(isAway(node) ? "b.bad" : "span", words(node)), isGone ? "none" : marks, number(partitions), isGone ? "" : late, null, provider, device]
			.map((content, index) => content == null || row.childNodes[index].replaceChildren(content));
		const act = row.querySelector("button");
		[act.textContent, act.ariaLabel] = [ORDERS[state].split(" ")[0], `${ORDERS[state]} ${name}`];
		act.disabled = state === "active" && !stripes.length;
	})];
	return () => shown.map((draw) => draw());
}

export function join() {
	if (TOOLS.nodes) return;
	TOOLS.nodes = nodes;
	const toggle = () => page.go({ tool: view.tool === "nodes" ? "" : "nodes" });
	$("light").before(h("button#nodes", { onclick: toggle }, "nodes"));
	$("tools").prepend(h("button#tool-nodes", { value: "nodes", onclick: toggle }, "Nodes"));
	if (view.tool === "nodes") page.go({}, ["", "nodes"].map(showTool));
	setInterval(() => document.hidden || attempt(look), PAUSE);
	attempt(look);
}
