// The policy of silent pushes: of all, or of one phone; a named one, or with numbers of one's own.

import { $, api, attempt, get, h, pairs, reconcile, set } from "./kit.js";
import { page, view } from "./cockpit.js";

const OWN = "own";
export function drawPolicies() {
	const common = page.overview.policy, own = page.phone?.budget?.policy, current = view.phone ? own : common, isOwn = current && !(page.policies ?? []).includes(current);
	const choices = [...(view.phone ? [["", `as all (${common})`]] : []), ...(page.policies ?? []).map((name) => [name, name]), ...(isOwn ? [["now", current]] : []), [OWN, "numbers of one's own …"]];
	reconcile($("policy"), choices, ([value]) => value, ([value]) => h("option", { value }), (node, [, text]) => node.textContent === text || set(node, text));
	$("policy").value = view.phone && own === common ? "" : isOwn ? "now" : current ?? "";
}
const path = () => (view.phone ? `/v1/devices/${view.phone}/policy` : "/v1/policy");
const change = (policy) => api(policy ? "PUT" : "DELETE", path(), policy ? { policy } : null).finally(page.refreshPhones);
$("policy").onchange = ({ target: { value } }) => attempt(async () => {
	if (value === "now") return;
	if (value !== OWN) return change(value);
	drawPolicies();
	const { phone } = page, inForce = view.phone ? { app: phone?.apps[0]?.budget, device: phone?.budget } : await get("/v1/policy");
	for (const name of ["app", "device"]) fill(name, inForce[name] ?? {});
	set("own-whose", view.phone ? "of this phone" : "of all phones");
	set("own-wrong");
	$("own-policy").showModal();
});
// `count` at once, and as many come back in the time `per`; an empty count is no limit. A part of it is in whole milliseconds.
const SIZES = { d: 86400e3, h: 3600e3, m: 60e3, s: 1e3, ms: 1 };
function fill(name, { burst = 0, every }) {
	const one = [...(every ?? "").matchAll(/(\d+)(ms|[dhms])/g)].reduce((sum, [, count, unit]) => sum + count * SIZES[unit], 0), all = Math.round(one * burst / 1e3) * 1e3;
	const [unit, size] = pairs(SIZES).find(([, size]) => all % size === 0);
	$(`own-${name}`).value = burst || "";
	$(`own-${name}-per`).value = all ? all / size + unit : "1h";
}
$("own-policy").onsubmit = (event) => {
	if (event.submitter.value) return;
	event.preventDefault();
	const part = (name) => ($(`own-${name}`).value ? { count: Number($(`own-${name}`).value), per: $(`own-${name}-per`).value.trim() } : null);
	const limits = pairs({ app: part("app"), device: part("device") }).filter(([, limit]) => limit);
	change(Object.fromEntries(limits)).then(() => $("own-policy").close(), ({ message }) => set("own-wrong", message));
};
