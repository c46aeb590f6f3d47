// Pushes over time, a lane for each app, as SVG. Wide: time goes right. Narrow: time goes down.

import { LEGEND, hms, h, known, number, pairs, s, shortId, shortTopic, whyOf, wordOf } from "./kit.js";

const LEFT = 96, MOST_MARKS = 240;
const RANK = Object.keys(LEGEND);
const SPANS = [1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 240, 720, 1440, 10080].map((minutes) => minutes * 60e3);
const TICKS = [5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 86400].map((seconds) => seconds * 1e3);
const PATHS = { visible: "M-7-4q0-3 3-3h8q3 0 3 3v8q0 3-3 3h-8q-3 0-3-3z", ride: "M0-9L9 0L0 9L-9 0Z", refill: "M0-8L8 6L-8 6Z", connect: "M-6-6h12v6l-6 6l-6-6z",
	replaced: "M-5-5L5 5M5-5L-5 5", expired: "M-6-6h12v12h-12zM-6 6L6-6", resend: "M6 0A6 6 0 1 1 2-5.6M2-9L2-2L7-5", fault: "M2-9L-6 2H0L-2 9L6-2H0Z", change: "M-5 9V-8H6L3-4L6 0H-5" };

const shape = (mark) => (PATHS[mark] ? s(`path.shape.${mark}`, { d: PATHS[mark] }) : s(`circle.shape.${mark}`, { r: 6.5 }));
export const icon = (mark) => s("svg", { viewBox: "-10 -9 20 18", "aria-hidden": true }, shape(mark));
export const legend = () => pairs(LEGEND).map(([mark, text]) => h("span", icon(mark), text));

const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const words = (x, y, text, kind = "", anchor = "start") => s("text" + kind, { x, y, "text-anchor": anchor }, text);
const line = (kind, x1, y1, x2, y2) => s("line." + kind, { x1, y1, x2, y2 });
const group = (kind, x, y, ...kids) => s("g" + kind, { transform: `translate(${x} ${y})` }, ...kids);
const picture = (width, height, about, ...kids) => s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${about}. The table below has the same.` }, ...kids);
const laneOf = ({ life }) => life.topic + life.kind;
const nextOf = (entry) => entry.life.entries[entry.life.entries.indexOf(entry) + 1];
const isHeld = ({ mark }) => mark === "held" || mark === "away";
const waitKind = (next) => (next?.step.step === "discarded" ? "wait.ended" : "wait");
// The mark of the push that carried this one.
const carrierOf = ({ step, t }) => known.lives.get(step.carriedBy)?.entries.find((entry) => entry.t === t && entry.step.step === "sent");
const arc = ({ life, step }, d, ...kids) => s("g.arc-group", { "data-from": life.uniqueId, "data-to": step.carriedBy }, s("path.arc", { d }), ...kids);

function markGroup(items, x, y, push, ...kids) {
	const entry = items.reduce((best, item) => (RANK.indexOf(item.mark) > RANK.indexOf(best.mark) ? item : best)), { life: { uniqueId, kind, topic }, mark, t } = entry;
	return group(".mark", x, y, { "data-push": uniqueId || null }, s("title", `${hms(t)} ${uniqueId && `${kind} ${shortId(uniqueId)}, ${topic}: `}${wordOf(entry)}, ${whyOf(entry)}`),
		push && items.some((item) => item.life.uniqueId === push) && s("circle.ring", { r: 12 }), s("rect.hit", { x: -11, y: -20, width: 22, height: 32 }), shape(mark), ...kids);
}

// How much happened in each slice of time: bars in the colours of the marks, a path for each.
export function bars(entries, X, base, height) {
	const slices = [], paths = {};
	for (const { t, mark } of entries) {
		const slice = (slices[Math.floor(X(t) / 6)] ??= { sum: 0 });
		slice[mark] = (slice[mark] ?? 0) + 1;
		slice.sum++;
	}
	const most = slices.reduce((top, { sum }) => Math.max(top, sum), 1);
	slices.forEach((slice, index) => {
		let y = base;
		for (const mark of RANK) {
			if (!slice[mark]) continue;
			const tall = Math.max(1.5, slice[mark] / most * height);
			paths[mark] = `${paths[mark] ?? ""}M${index * 6} ${y.toFixed(1)}v${-tall.toFixed(1)}h5v${tall.toFixed(1)}z`;
			y -= tall;
		}
	});
	return pairs(paths).map(([mark, d]) => s(`path.bar.${mark}`, { d }));
}

// From when to when. Without a chosen span: what holds the last marks, and when held ones may go.
function windowOf({ entries, now, at, span, phone }) {
	const end = at || now, last = entries.findLastIndex(({ t }) => t <= end), oldest = entries[Math.min(last, Math.max(0, last - 29))]?.t ?? end;
	const future = phone && !at ? Math.max(0, ...entries.slice(-100).map((entry) => (isHeld(entry) && !nextOf(entry) ? (entry.step.until ?? 0) - now : 0))) : 0;
	span ||= SPANS.find((size) => size >= Math.max(end - oldest, future * 1.4)) ?? SPANS.at(-1);
	return { from: end - span * 1.04, to: end + Math.max(span * (at ? .25 : .05), future <= span && future * 1.08) };
}

function topicsOf(entries, phone, most) {
	const counts = new Map((phone?.apps ?? []).map((app) => [app.topic, 0]));
	for (const { life } of entries) counts.set(life.topic, (counts.get(life.topic) ?? 0) + 1);
	const topics = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, most).sort();
	return [topics, counts.size - topics.length];
}

export const drawLanes = (view) => (view.width < 560 ? drawNarrow : drawWide)(view);

function drawWide(view) {
	const { entries, now, at, phone, push, width, busy } = view, { from, to } = windowOf(view);
	const right = width - 14, X = (t) => LEFT + (Math.max(from, Math.min(to, t)) - from) * (right - LEFT) / (to - from);
	const inside = entries.filter(({ t }) => t >= from && t <= to), [topics, more] = topicsOf(inside, phone, phone ? 12 : 7);
	const back = s("g"), arcs = s("g"), marks = s("g"), lanes = Map.groupBy(inside, laneOf), rows = new Map(), places = new Map();
	let y = phone ? 66 : 26;
	for (const topic of topics) {
		const kinds = ["visible", "silent"].filter((kind) => kind === "silent" || lanes.has(topic + kind));
		back.append(words(8, y + 5 + kinds.length * 25, cut(shortTopic(topic), 12), ".n"));
		for (const kind of kinds) {
			rows.set(topic + kind, y += 27);
			back.append(line("edge", LEFT, y, right, y));
			if (kinds[1]) back.append(words(LEFT - 6, y + 4, kind, "", "end"));
			y += 27;
		}
		y += 4;
	}
	if (more) back.append(words(8, y += 14, `${more} more apps in the table`));
	if (!topics[0]) back.append(words(LEFT + 12, y + 26, "Nothing yet. Compose sends a push."));
	const bottom = Math.max(y + 6, 100), tick = TICKS.find((size) => (to - from) / size <= 9) ?? TICKS.at(-1);
	for (let t = Math.ceil(from / tick) * tick; t <= to; t += tick) back.append(line("edge", X(t), 20, X(t), bottom), words(X(t), 13, hms(t, tick < 60e3), "", "middle"));
	if (phone) connection(back, view, X);
	if (now < to) back.append(s("rect.future", { x: X(now), y: 20, width: right - X(now), height: bottom - 20 }), right - X(now) > 44 ? words(X(now) + 4, bottom - 6, "not yet") : "");
	if (at) back.append(line("at", X(at), 20, X(at), bottom));

	for (const [lane, rowY] of rows) {
		const items = lanes.get(lane) ?? [], row = place(items, X, right);
		if (row.length > (busy ? 9 : MOST_MARKS / rows.size)) {
			marks.append(...bars(items, X, rowY + 10, 20), words(right, rowY - 13, `${number(items.length)} marks`, "", "end"));
			rows.delete(lane);
			continue;
		}
		row.forEach(({ x, items }, index, all) => {
			for (const entry of items) places.set(entry, [x, rowY]);
			const room = Math.min((all[index + 1]?.x ?? right + 30) - x, x - (all[index - 1]?.x ?? 0)), word = wordOf(items[0]);
			const label = items[1] ? `×${items.length}` : shortId(items[0].life.uniqueId);
			marks.append(markGroup(items, x, rowY, push, words(0, index % 2 && room < label.length * 7 + 4 ? -24 : -12, label, "", "middle"),
				!items[1] && room > word.length * 5.6 + 8 && words(0, 21, word, "", "middle")));
		});
	}
	for (const entry of entries.slice(-1000)) {
		if (!isHeld(entry) || !(phone || entry.life.uniqueId === push)) continue;
		const rowY = rows.get(laneOf(entry)), next = nextOf(entry), { until } = entry.step;
		if (entry.t > to || !rowY || next?.t < from) continue;
		const end = next ? (places.get(next)?.[0] ?? right) - 9 : X(now), free = X(until);
		back.append(line(waitKind(next), (places.get(entry)?.[0] ?? LEFT - 8) + 9, rowY, end, rowY));
		if (next || at || !(until > now)) continue;
		back.append(line("wait.ended", end, rowY, free - 8, rowY));
		marks.append(group(".ghost", free, rowY, shape("held"), words(0, 21, `may go ${hms(until, false)}`, "", free > right - 40 ? "end" : "middle")));
	}
	const taken = [];
	for (const [entry, [x, y1]] of [...places].sort(([a], [b]) => b.t - a.t)) {
		const { carriedBy } = entry.step, target = carriedBy && places.get(carrierOf(entry));
		if (!carriedBy || !(target || phone) || arcs.childElementCount > 60) continue;
		const turn = x > right - 180 ? -1 : 1, [x2, y2] = target ?? [x, y1 + 30], down = y2 > y1 ? 1 : -1, bend = (26 + Math.min(40, Math.abs(y2 - y1) / 5)) * turn;
		const textX = (x + x2) / 2 + bend * .8 + 6 * turn, textY = (y1 + y2) / 2 + 4;
		const isFree = !taken.some(([x3, y3]) => Math.abs(textX - x3) < 170 && Math.abs(textY - y3) < 14);
		if (isFree) taken.push([textX, textY]);
		arcs.append(arc(entry, `M${x + 5 * turn} ${y1 + 6 * down}C${x + bend} ${y1 + 22 * down} ${x2 + bend} ${y2 - 22 * down} ${x2 + 6 * turn} ${y2 - 8 * down}`,
			isFree && words(textX, textY, `rode along with ${shortId(carriedBy)}`, ".arc-text", turn > 0 ? "start" : "end")));
	}
	return picture(width, bottom, `${hms(from)} to ${hms(to)}, ${inside.length} marks in ${topics.length} lanes`, back, marks, arcs);
}

// Moves marks apart a little; what still does not fit is shown as one.
function place(row, X, right) {
	const found = [], gap = 16;
	for (const entry of row) {
		const x = X(entry.t), last = found.at(-1);
		if (last?.x > x) last.items.push(entry);
		else found.push({ x: Math.max(x, (last?.x ?? 0) + gap), items: [entry] });
	}
	for (let i = found.length - 1, x = right; found[i]?.x > x; i--, x -= gap) found[i].x = x;
	return found;
}

function connection(back, { links, phone, now }, X) {
	let open = phone.connected, end = X(now);
	back.append(words(8, 46, "phone", ".n"));
	for (const { what, time } of [{ what: "start", time: 0 }, ...links.filter((link) => /connected$/.test(link.what))].toReversed()) {
		const x = X(time);
		if (time) open = what === "connected";
		back.append(line(open ? "conn" : "wait.ended", x, 42, end, 42), end - x > 80 ? words(x + 4, 60, open ? "connected" : "away") : "");
		open = !open;
		end = x;
	}
}

// A column for each app, a row for each mark, newest first.
function drawNarrow({ entries, phone, at, push, width }) {
	const shown = entries.filter(({ t }) => !at || t <= at).slice(-30).reverse(), [topics, more] = topicsOf(shown, phone, 4);
	if (more) topics.push("others");
	const column = (index) => 74 + 38 * index, X = ({ life }) => column(topics.includes(life.topic) ? topics.indexOf(life.topic) : topics.length - 1);
	const rows = new Map(shown.map((entry, index) => [entry, 44 + index * 40])), bottom = 60 + shown.length * 40, textX = column(topics.length) - 8, most = (width - textX) / 6.7, back = s("g"), marks = s("g");
	topics.forEach((topic, index) => back.append(words(column(index), 14, cut(shortTopic(topic), 6), ".n", "middle"), line("edge", column(index), 22, column(index), bottom)));
	for (const [entry, y] of rows) {
		const x = X(entry), next = nextOf(entry), carrier = carrierOf(entry);
		marks.append(markGroup([entry], x, y, push, s("rect.hit", { x: -x, y: -20, width, height: 40 }), words(4 - x, 4, hms(entry.t)),
			words(textX - x, -2, cut(`${shortId(entry.life.uniqueId)} ${wordOf(entry)}`, most), ".n"), words(textX - x, 13, cut(whyOf(entry), most * 1.1))));
		if (isHeld(entry)) back.append(line(waitKind(next), x, y - 9, x, rows.has(next) ? rows.get(next) + 9 : 24));
		if (!rows.has(carrier)) continue;
		const x2 = X(carrier), y2 = rows.get(carrier), down = y2 > y ? 9 : -9, side = x === x2 ? x + 30 : 0;
		back.append(arc(entry, `M${x} ${y + down}C${side || x} ${(y + y2) / 2} ${side || x2} ${(y + y2) / 2} ${x2} ${y2 - down}`));
	}
	return picture(width, bottom, `The last ${shown.length} marks, newest first`, back, marks);
}
