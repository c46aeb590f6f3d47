// The policy of silent pushes: of all, or of one phone; a named one, or with numbers of one's own.

import { $, api, attempt, h, pairs, reconcile, set } from "./kit.js";
import { page, view } from "./cockpit.js";

const OWN = "own";
export function drawPolicies() {
	const common = page.overview.policy, own = page.phone?.budget?.policy, current = view.phone ? own : common, isOwn = current && !(page.policies ?? []).includes(current);
	const choices = [...(view.phone ? [["", `as all (${common})`]] : []), ...(page.policies ?? []).map((name) => [name, name]), ...(isOwn ? [["now", current]] : []), [OWN, "numbers of one's own …"]];
	reconcile($("policy"), choices, ([value]) => value, ([value]) => h("option", { value }), (node, [, text]) => node.textContent === text || set(node, text));
	$("policy").value = view.phone && own === common ? "" : isOwn ? "now" : current ?? "";
}
const change = (policy) => attempt(() => api(policy ? "PUT" : "DELETE", view.phone ? `/v1/devices/${view.phone}/policy` : "/v1/policy", policy ? { policy } : null).finally(page.refreshPhones));
$("policy").onchange = ({ target: { value } }) => {
	if (value === "now") return;
	if (value !== OWN) return change(value);
	drawPolicies();
	$("own-whose").textContent = view.phone ? "of this phone" : "of all phones";
	$("own-policy").showModal();
};
// `count` at once, and as many come back in the time `per`; an empty count is no limit.
$("own-policy").onclose = () => {
	if ($("own-policy").returnValue !== "take") return;
	$("own-policy").returnValue = "";
	const part = (name) => ($(`own-${name}`).value ? { count: Number($(`own-${name}`).value), per: $(`own-${name}-per`).value.trim() } : null);
	change(Object.fromEntries(pairs({ app: part("app"), device: part("device") }).filter(([, limit]) => limit)));
};
