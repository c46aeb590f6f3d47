// Pushes over time, a lane for each app, as SVG. Wide: time goes right, or the order where marks would pile up. Narrow: down.

import { LEGEND, day, hms, h, known, lengthOf, moment, nameOf, number, pairs, partOf, s, shortId, shortTopic, some, whyOf, wordOf } from "./kit.js";

const LEFT = 96, MOST_MARKS = 240, PITCH = 26;
const RANK = Object.keys(LEGEND);
const SPANS = [1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 240, 360, 720, 1440, 10080].map((minutes) => minutes * 60e3);
const TICKS = [5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 86400].map((seconds) => seconds * 1e3);
const PATHS = { visible: "M-7-4q0-3 3-3h8q3 0 3 3v8q0 3-3 3h-8q-3 0-3-3z", ride: "M0-9L9 0L0 9L-9 0Z", refill: "M0-8L8 6L-8 6Z", connect: "M-6-6h12v6l-6 6l-6-6z",
	replaced: "M-5-5L5 5M5-5L-5 5", expired: "M-6-6h12v12h-12zM-6 6L6-6", resend: "M6 0A6 6 0 1 1 2-5.6M2-9L2-2L7-5", fault: "M2-9L-6 2H0L-2 9L6-2H0Z", change: "M-5 9V-8H6L3-4L6 0H-5",
	refused: "M-3.5-8.5h7l5 5v7l-5 5h-7l-5-5v-7zM-4 0h8" };

const shape = (mark) => (PATHS[mark] ? s(`path.shape.${mark}`, { d: PATHS[mark] }) : s(`circle.shape.${mark}`, { r: 6.5 }));
export const icon = (mark) => s("svg", { viewBox: "-10 -10 20 20", "aria-hidden": "true" }, shape(mark));
export const legend = () => pairs(LEGEND).map(([mark, text]) => h("span", icon(mark), text));

const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const words = (x, y, text, kind = "", anchor = "start") => s("text" + kind, { x, y, "text-anchor": anchor === "start" ? null : anchor }, text);
const line = (kind, x1, y1, x2, y2) => s("line." + kind, { x1, y1, x2, y2 });
const group = (kind, x, y, ...kids) => s("g" + kind, { transform: `translate(${x.toFixed(1)} ${y})` }, ...kids);
const picture = (width, height, about, ...kids) => s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": `${about}. The table below has the same.` }, ...kids);
const opens = (from, to, about) => ({ "data-zoom": `${from}-${to}`, role: "button", tabindex: 0, "aria-label": about });
const topicOf = ({ life, mark }) => (mark === "refused" ? mark : life.topic);
const laneOf = (entry) => topicOf(entry) + (entry.mark === "refused" ? "silent" : entry.life.kind);
// What is to come is told in seconds.
const second = (t) => Math.ceil(t / 1000) * 1000;
const isHeld = ({ mark }) => mark === "held" || mark === "away";
const waitKind = (next) => (next?.step.step === "discarded" ? "wait.ended" : "wait");
// The mark of the push that carried this one.
const carrierOf = ({ step, t }) => known.lives.get(step.carriedBy)?.entries.find((entry) => entry.t === t && entry.step.step === "sent");
const arc = ({ life, step }, d, ...kids) => s("g.arc-group", { "data-from": life.uniqueId, "data-to": step.carriedBy }, s("path.arc", { d }), ...kids);

// Labels do not overlap: who asks first has the place, and who finds none is left out.
const pen = new OffscreenCanvas(1, 1).getContext("2d");
function labels(right) {
	const taken = [];
	function put(parent, x, y, text, kind = "", anchor = "middle") {
		pen.font = `${kind ? 600 : 400} 11px system-ui, "DejaVu Sans", sans-serif`;
		const wide = pen.measureText(text).width + 4, half = wide / 2;
		if (anchor === "middle") x = Math.min(x, right - half);
		const left = x - (anchor === "middle" ? half : anchor === "end" ? wide : 0) - 2, top = y - 10, end = left + wide + 2, bottom = y + 3;
		if (!text || taken.some(([x1, y1, x2, y2]) => left < x2 && x1 < end && top < y2 && y1 < bottom)) return false;
		taken.push([left, top, end, bottom]);
		parent.append(words(x, y, text, kind, anchor));
		return true;
	}
	return { put, block: (x, y) => taken.push([x - 9, y - 9, x + 9, y + 9]) };
}

function markGroup(items, x, y, push, ...kids) {
	const entry = items.reduce((best, item) => (RANK.indexOf(item.mark) > RANK.indexOf(best.mark) ? item : best)), { life: { uniqueId, kind, topic, device }, mark, t } = entry;
	const many = items[1] && `${number(items.length)} marks, ${moment(items[0].t)} to ${moment(items.at(-1).t)}: open`;
	const about = many || `${moment(t)} ${uniqueId && `${kind} ${shortId(uniqueId)}, ${topic || "no app"}${device && `, ${nameOf(device)}`}: `}${wordOf(entry)}, ${whyOf(entry)}`;
	return group(".mark", x, y, many ? opens(items[0].t, items.at(-1).t, many) : { "data-push": uniqueId || null }, s("title", about),
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
function windowOf({ entries, end, span, held, untilOf }) {
	const oldest = entries[Math.max(0, entries.length - 30)]?.t ?? end, future = Math.max(0, ...held.map((entry) => (untilOf(entry) ?? 0) - end));
	span ||= SPANS.find((size) => size >= Math.max(end - oldest, future * 1.4)) ?? SPANS.at(-1);
	return { from: end - span * 1.04, to: end + Math.max(span * .05, future <= span && future * 1.08) };
}

function topicsOf(entries, phone, most) {
	const counts = new Map((phone?.apps ?? []).map((app) => [app.topic, 0]));
	for (const entry of entries) counts.set(topicOf(entry), (counts.get(topicOf(entry)) ?? 0) + 1);
	const rank = (topic) => (topic.includes(".") ? 0 : 1) + topic, topics = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, most);
	return [topics.sort((a, b) => (rank(a) < rank(b) ? -1 : 1)), counts.size - topics.length];
}

// Everything as of a moment: what came later is not there yet.
export function drawLanes(view) {
	const end = view.at || view.now, [first, last] = view.zoom ? view.zoom.split("-").map(Number) : [0, end];
	const entries = view.entries.filter(({ t }) => t >= first && t <= last && t <= end);
	const nextOf = (entry) => {
		const next = entry.life.entries[entry.life.entries.indexOf(entry) + 1];
		return next?.t <= end ? next : undefined;
	};
	const held = view.zoom ? [] : entries.slice(-1000).filter((entry) => isHeld(entry) && !nextOf(entry)).slice(-12);
	const untilOf = ({ step, life }) => (view.at ? null : life.waits?.until) ?? step.until, rideOf = ({ life }) => (view.at ? null : life.waits?.ride?.by);
	return (view.width < 560 ? drawNarrow : drawWide)({ ...view, entries, end, held, nextOf, untilOf, rideOf });
}

// By time: where a moment is, and marks that would touch in a lane are one.
function axisByTime({ from, to, right, lanes, end }) {
	const X = (t) => LEFT + (Math.max(from, Math.min(to, t)) - from) * (right - LEFT) / (to - from);
	return { X, isTight: [...lanes.values()].some((items) => items.some(({ t }, index) => index && X(t) - X(items[index - 1].t) < (wasOrder ? 18 : 15))),
		rowOf(items) {
			const found = [], gap = 16;
			for (const entry of items) {
				const x = X(entry.t), last = found.at(-1);
				if (last?.x > x) last.items.push(entry);
				else found.push({ x: Math.max(x, (last?.x ?? 0) + gap), items: [entry] });
			}
			for (let i = found.length - 1, x = X(end); found[i]?.x > x; i--, x -= gap) found[i].x = x;
			return found;
		} };
}
// By order: a column for each moment, in a lane one mark each; what held ones wait for stands behind.
function axisByOrder({ inside, waits, right, push }) {
	let columns = [];
	for (const entry of inside) {
		const last = columns.at(-1), lane = laneOf(entry);
		if (last?.t === entry.t && !last.lanes.has(lane)) last.lanes.set(lane, entry);
		else columns.push({ t: entry.t, lanes: new Map([[lane, entry]]) });
	}
	const room = right - LEFT - 12, most = Math.max(4, Math.floor(room / PITCH) - waits.length * 3), last = columns.slice(-most), place = new Map();
	// The chosen push is there, too, apart from the others.
	const mine = push && columns.findLast(({ lanes }) => [...lanes.values()].some(({ life }) => life.uniqueId === push));
	if (mine && !last.includes(mine)) last[0] = Object.assign(mine, { isApart: true });
	const earlier = columns.filter((column) => !last.includes(column));
	columns = [...last, ...waits.map((t) => ({ t }))];
	const pitch = Math.min(60, room / (columns.length + waits.length * 2));
	columns.forEach((column, index) => {
		const wait = index - columns.length + waits.length;
		column.x = LEFT + 6 + pitch * (index + .5 + (wait < 0 ? 0 : wait * 2 + 1.5));
		for (const entry of column.lanes?.values() ?? []) place.set(entry, column.x);
	});
	const X = (t, isFirst) => {
		const index = isFirst ? columns.findIndex((column) => column.t >= t) : columns.findLastIndex((column) => column.t <= t), column = columns[index];
		if (!column || isFirst && !index && earlier[0]) return isFirst && !column ? right : LEFT;
		const other = isFirst ? columns[index - 1]?.x ?? LEFT : columns[index + 1]?.x ?? column.x + pitch;
		return column.t === t ? column.x : (column.x + other) / 2;
	};
	return { X, columns, earlier, rowOf: (items) => items.filter((entry) => place.has(entry)).map((entry) => ({ x: place.get(entry), items: [entry] })) };
}

// Back to time only when there is a little more room than made it go: so it does not change with every second.
let wasOrder = false;
function drawWide(view) {
	const { entries, at, end, held, nextOf, untilOf, rideOf, phone, push, width, busy, span, zoom, axis: wish } = view, { from, to } = windowOf(view);
	const right = width - 14, inside = zoom || wish === "order" && !span ? entries : entries.filter(({ t }) => t >= from && t <= to), lanes = Map.groupBy(inside, laneOf);
	const byTime = axisByTime({ from, to, right, lanes, end }), isOrder = !!inside[0] && (!!zoom || wish === "order" || !wish && !span && byTime.isTight);
	// What waits in a lane that is not shown needs no room.
	const near = new Set(inside.slice(-Math.floor((right - LEFT) / PITCH)).map(topicOf));
	const times = held.filter((entry) => phone || near.has(topicOf(entry))).flatMap((entry) => [untilOf(entry), rideOf(entry) < untilOf(entry) && rideOf(entry)]);
	const waits = [...new Set(times.map(second))].filter((t) => t > end).sort((a, b) => a - b).slice(0, phone ? 4 : 2);
	const axis = isOrder ? axisByOrder({ inside, waits, right, push }) : byTime, { X } = axis, { put, block } = labels(width);
	const [topics, more] = topicsOf(isOrder ? axis.columns.flatMap(({ lanes }) => [...lanes?.values() ?? []]) : inside, phone, phone ? 12 : 7);
	const back = s("g"), arcs = s("g"), marks = s("g"), rows = new Map(), places = new Map(), drawn = [], top = isOrder ? 32 : 20;
	wasOrder = isOrder;
	let y = top + (phone ? 46 : 6);
	for (const topic of topics) {
		// What has a token of its own is never silent.
		const part = partOf(topic), kinds = ["visible", "silent"].filter((kind) => lanes.has(topic + kind) || kind === (part ? "visible" : "silent"));
		const short = part ?? shortTopic(topic), name = topics.some((other) => other !== topic && shortTopic(other) === short) ? topic.split(".").slice(-2).join(".") : short;
		if (put(back, 8, y + (part ? 24 : 5 + kinds.length * 25), cut(name, 12), ".n", "start")) back.lastChild.append(s("title", topic));
		if (part) put(back, 8, y + 38, cut(`of ${shortTopic(topic).split(" of ").at(-1)}`, 12), "", "start");
		for (const kind of kinds) {
			rows.set(topic + kind, y += 27);
			back.append(line("edge", LEFT, y, right, y));
			if (kinds[1]) put(back, LEFT - 6, y + 4, kind, "", "end");
			y += 27;
		}
		y += 4;
	}
	if (more) back.append(words(8, y += 14, `${some(more, "more app")} in the table`));
	const none = at < known.from ? "What was then is not here: only the newest pushes are." : "Nothing had happened yet.";
	if (!topics[0]) back.append(words(LEFT + 12, y + 26, at ? none : "Nothing to show."));
	const bottom = Math.max(y + 6, 100);
	isOrder ? orderTicks(back, axis, put, bottom, zoom) : timeTicks(back, { X, from, to, put, bottom });
	if (phone && !phone.missing) connection(back, view, X, top, put);
	if (!zoom) back.append(s("rect.future", { x: X(end), y: top, width: Math.max(0, right - X(end)), height: bottom - top }));
	if (at) back.append(line("at", X(at), top, X(at), bottom));
	for (const [lane, rowY] of rows) {
		const items = lanes.get(lane) ?? [], row = axis.rowOf(items);
		if (!isOrder && row.length > (busy ? 9 : MOST_MARKS / rows.size)) {
			const about = `${some(items.length, "mark")}: open`;
			marks.append(...bars(items, X, rowY + 10, 20), s("g.open", opens(items[0].t, items.at(-1).t, about), words(right, rowY - 13, about, "", "end")));
			rows.delete(lane);
			continue;
		}
		for (const { x, items } of row) {
			for (const entry of items) places.set(entry, [x, rowY]);
			block(x, rowY);
			drawn.push({ x, rowY, items });
		}
	}
	for (const entry of inside.slice(-1000)) {
		if (!isHeld(entry) || !(phone || held.includes(entry) || entry.life.uniqueId === push)) continue;
		const rowY = rows.get(laneOf(entry)), next = nextOf(entry), until = untilOf(entry), ride = rideOf(entry);
		// Over by order, before what is shown; or by time.
		if (!rowY || (isOrder ? next && !places.has(next) : next?.t < from)) continue;
		const x = next ? (places.get(next)?.[0] ?? right) - 9 : X(end), free = X(isOrder ? second(until) : until);
		back.append(line(waitKind(next), (places.get(entry)?.[0] ?? LEFT - 8) + 9, rowY, x, rowY));
		if (next || !(until > end)) continue;
		const hasRoom = (t) => t > end && (isOrder ? waits.includes(second(t)) : t <= to);
		back.append(line("wait.ended", x, rowY, hasRoom(until) ? free - 8 : right, rowY));
		if (hasRoom(until)) ghost(marks, put, { x: free, y: rowY, mark: "held", end, t: until, word: "may go", about: `${shortId(entry.life.uniqueId)} may go, if nothing takes it along before,` });
		if (hasRoom(ride) && second(ride) < second(until)) ghost(marks, put, { x: X(isOrder ? second(ride) : ride), y: rowY, mark: "ride", end, t: ride, word: "or rides", about: `${shortId(entry.life.uniqueId)} goes along with the keep-alive, at the latest` });
	}
	if (!zoom && right - X(end) > 44) put(back, X(end) + 4, bottom - 6, "not yet", "", "start");
	// Who is chosen has a name for certain; of the others the newest first.
	const isMine = ({ items }) => items.some(({ life }) => life.uniqueId && life.uniqueId === push);
	for (const { x, rowY, items } of drawn.sort((a, b) => isMine(b) - isMine(a) || b.items[0].t - a.items[0].t)) {
		marks.append(markGroup(items, x, rowY, push));
		put(marks, x, rowY - (isMine({ items }) ? 15 : 12), items[1] ? `×${items.length}` : shortId(items[0].life.uniqueId));
		put(marks, x, rowY + 21, !items[1] && wordOf(items[0]));
	}
	drawArcs(arcs, places, { phone, right, put });
	const about = `${isOrder ? "In their order, gaps named" : `${moment(from)} to ${moment(to)}`}: ${some(inside.length, "mark")} in ${some(topics.length, "lane")}`;
	return picture(width, bottom, about, back, marks, arcs);
}

// From what rode along to what carried it.
function drawArcs(arcs, places, { phone, right, put }) {
	for (const [entry, [x, y1]] of [...places].sort(([a], [b]) => b.t - a.t)) {
		const { carriedBy } = entry.step, target = carriedBy && places.get(carrierOf(entry));
		if (!carriedBy || !(target || phone) || arcs.childElementCount > 60) continue;
		const turn = x > right - 180 ? -1 : 1, [x2, y2] = target ?? [x, y1 + 30], down = y2 > y1 ? 1 : -1, bend = (26 + Math.min(40, Math.abs(y2 - y1) / 5)) * turn;
		const drawn = arc(entry, `M${x + 5 * turn} ${y1 + 6 * down}C${x + bend} ${y1 + 22 * down} ${x2 + bend} ${y2 - 22 * down} ${x2 + 6 * turn} ${y2 - 8 * down}`);
		arcs.append(drawn);
		put(drawn, (x + x2) / 2 + bend * .8 + 6 * turn, (y1 + y2) / 2 + 4, `rode along with ${shortId(carriedBy)}`, ".arc-text", turn > 0 ? "start" : "end");
	}
}
// What is still to come.
function ghost(marks, put, { x, y, mark, end, t, word, about }) {
	const text = `${word} ${moment(t, false)}`, wait = `in ${lengthOf(t - end)}`;
	marks.append(group(".ghost", x, y, s("title", `${about} ${moment(t, false)}, ${wait}`), shape(mark)));
	put(marks, x, y + 21, text);
	put(marks, x, y - 12, wait);
}

function timeTicks(back, { X, from, to, put, bottom }) {
	const tick = TICKS.find((size) => (to - from) / size <= 9) ?? TICKS.at(-1);
	for (let t = Math.ceil(from / tick) * tick; t <= to; t += tick) {
		back.append(line("edge", X(t), 20, X(t), bottom));
		put(back, X(t), 13, t % 86400e3 ? hms(t, tick < 60e3) : day(t));
	}
}
// The times of columns, and how long was nothing between them: the longest first, as many as have room.
function orderTicks(back, { columns, earlier }, put, bottom, zoom) {
	if (earlier[0]) {
		// Of one moment they are with the others, in the table alone.
		const isOne = zoom && earlier[0].t === columns.at(-1)?.t;
		const more = isOne ? s("g") : s("g.open", opens(earlier[0].t, earlier.at(-1).t, `${number(earlier.length)} earlier: open`));
		put(more, 8, 13, `◂ ${number(earlier.length)}${known.from ? "+" : ""} ${isOne ? "in the table" : "earlier"}`, ".n", "start");
		back.append(more);
	}
	const gaps = columns.map(({ t, x, lanes }, index) => ({ t, x, lanes, gap: index ? !columns[index - 1].isApart && t - columns[index - 1].t : Infinity, isNewDay: day(t) !== (index ? day(columns[index - 1].t) : known.today), middle: (columns[index - 1]?.x + x) / 2 }));
	for (const { t, x, gap, isNewDay, middle, lanes } of gaps.sort((a, b) => b.gap - a.gap)) {
		const isDated = isNewDay && day(t) !== known.today;
		if (put(back, isDated ? x - 8 : x, 13, isNewDay ? moment(t) : hms(t), "", isDated ? "start" : "middle")) back.append(line("edge", x, 18, x, bottom));
		if (middle && lanes && gap >= 1000) put(back, middle, 27, lengthOf(gap), ".gap");
	}
}

function connection(back, { links, phone, end }, X, top, put) {
	let open = phone.connected, x2 = X(end);
	const past = links.filter(({ what, time }) => /connected$/.test(what) && time <= end);
	if (past[0]) open = past.at(-1).what === "connected";
	back.append(words(8, top + 26, "phone", ".n"));
	// What was before the first that is known nobody knows: then nothing is drawn.
	for (const { what, time } of (past[0] ? past : [{ what: "start", time: 0 }]).toReversed()) {
		const x = Math.min(x2, X(time, what === "connected"));
		if (time) open = what === "connected";
		back.append(line(open ? "conn" : "wait.ended", x, top + 22, x2, top + 22));
		if (x2 - x > 80) put(back, x + 4, top + 40, open ? "connected" : "away", "", "start");
		open = !open;
		x2 = x;
	}
}

// A column for each app, a row for each mark, newest first; above them what is to come.
function drawNarrow({ entries, phone, push, width, end, held, nextOf, untilOf }) {
	const shown = entries.slice(-30).reverse(), [topics, more] = topicsOf(shown, phone, 4);
	const waits = held.filter((entry) => untilOf(entry) > end).sort((a, b) => untilOf(b) - untilOf(a)).slice(0, 3), start = 44 + waits.length * 40;
	if (more) topics.push("others");
	const column = (index) => 74 + 38 * index, X = (entry) => column(topics.includes(topicOf(entry)) ? topics.indexOf(topicOf(entry)) : topics.length - 1);
	const rows = new Map(shown.map((entry, index) => [entry, start + index * 40])), bottom = start + 16 + shown.length * 40, textX = column(topics.length) - 8, most = (width - textX) / 6.7, back = s("g"), marks = s("g");
	let before = known.today;
	topics.forEach((topic, index) => back.append(words(column(index), 14, cut(shortTopic(topic).replace(/^activity /, "LA "), 5), ".n", "middle"), line("edge", column(index), 22, column(index), bottom)));
	if (!shown[0]) back.append(words(8, 40, "Nothing to show."));
	waits.forEach((entry, index) => {
		const until = untilOf(entry), y = 44 + index * 40, x = X(entry);
		back.append(line("wait.ended", x, y + 9, x, (rows.get(entry) ?? bottom) - 9));
		marks.append(group(".ghost", x, y, shape("held"), words(4 - x, 4, hms(until)), words(textX - x, -2, cut(`${shortId(entry.life.uniqueId)} may go`, most), ".n"), words(textX - x, 13, cut(`in ${lengthOf(until - end)}`, most))));
	});
	for (const [entry, y] of rows) {
		const x = X(entry), next = nextOf(entry), carrier = carrierOf(entry);
		const last = before, today = day(entry.t);
		before = today;
		marks.append(markGroup([entry], x, y, push, s("rect.hit", { x: -x, y: -20, width, height: 40 }), words(4 - x, 4, hms(entry.t)), today !== last && words(4 - x, 17, today.slice(5), ".gap"),
			words(textX - x, -2, cut(`${shortId(entry.life.uniqueId)} ${wordOf(entry)}`, most), ".n"), words(textX - x, 13, cut(whyOf(entry), most * 1.1))));
		if (isHeld(entry)) back.append(line(waitKind(next), x, y - 9, x, rows.has(next) ? rows.get(next) + 9 : start - 20));
		if (!rows.has(carrier)) continue;
		const x2 = X(carrier), y2 = rows.get(carrier), down = y2 > y ? 9 : -9, side = x === x2 ? x + 30 : 0;
		back.append(arc(entry, `M${x} ${y + down}C${side || x} ${(y + y2) / 2} ${side || x2} ${(y + y2) / 2} ${x2} ${y2 - down}`));
	}
	return picture(width, bottom, `The last ${some(shown.length, "mark")}, newest first`, back, marks);
}
