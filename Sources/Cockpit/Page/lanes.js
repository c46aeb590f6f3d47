// The lanes: pushes over time, one lane an app, as SVG. Wide: time goes right. Narrow: time goes down.

import { LEGEND, clockText, known, reasonOf, s, shortId, shortTopic, wordOf } from "./kit.js";

const LEFT = 96, GAP = 16;
const RANK = ["expired", "ride", "held", "away", "refill", "replaced", "resend", "connect", "visible", "direct"];
const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 240, 720, 1440, 2880, 10080].map((minutes) => minutes * 60e3);

/** The shape of a kind of mark around 0, 0. */
export function shape(mark) {
  const path = (d) => s("path", { class: `shape ${mark}`, d });
  switch (mark) {
    case "visible": return s("rect", { class: "shape visible", x: -7, y: -7, width: 14, height: 14, rx: 3 });
    case "ride": return path("M0-9L9 0L0 9L-9 0Z");
    case "refill": return path("M0-8L8 6L-8 6Z");
    case "connect": return path("M-6-6h12v6l-6 6l-6-6z");
    case "replaced": return path("M-5-5L5 5M5-5L-5 5");
    case "expired": return path("M-6-6h12v12h-12zM-6 6L6-6");
    case "away": return s("rect", { class: "shape away", x: -6, y: -6, width: 12, height: 12, rx: 6, "stroke-dasharray": "3 2.5" });
    case "resend": return s("path", { class: "shape resend", d: "M6 0A6 6 0 1 1 2-5.6M2-9L2-2L7-5" });
    default: return s("circle", { class: `shape ${mark}`, r: mark === "held" ? 6.5 : 7 });
  }
}
export const icon = (mark) => s("svg", { width: 20, height: 18, viewBox: "-10 -9 20 18", "aria-hidden": "true" }, shape(mark));
export const legend = () => Object.entries(LEGEND).map(([mark, text]) => {
  const item = document.createElement("span");
  item.append(icon(mark), text);
  return item;
});

const text = (x, y, content, props = {}) => s("text", { x, y, text: content, ...props });
const middle = { "text-anchor": "middle" };

function describe(entry) {
  return `${clockText(entry.t)} ${entry.life.kind} ${shortId(entry.life.uniqueId)}, ${shortTopic(entry.life.topic)}: ` +
    `${wordOf(entry)}, ${reasonOf(entry)}`;
}
function markGroup(entries, x, y, selected) {
  const entry = entries.length > 1
    ? entries.reduce((best, e) => (RANK.indexOf(e.mark) < RANK.indexOf(best.mark) ? e : best)) : entries[0];
  const on = entries.some((e) => e.life.uniqueId === selected);
  const group = s("g", { class: "mark" + (on ? " on" : ""), transform: `translate(${x} ${y})`,
    "data-push": entry.life.uniqueId, "data-mark": entry.mark });
  if (entries.length > 1) group.setAttribute("data-zoom", `${entries[0].t} ${entries.at(-1).t}`);
  if (on) group.append(s("circle", { class: "ring", r: 12 }));
  group.append(s("rect", { class: "hit", x: -11, y: -20, width: 22, height: 32 }), shape(entry.mark),
    s("title", { text: entries.length > 1 ? `${entries.length} marks, ${describe(entries[0])} …` : describe(entry) }));
  return group;
}

/** The part of time to show. */
export function windowOf({ entries, now, at, span, phone }) {
  const end = at ?? now;
  let future = 0;
  if (phone && at == null) {
    for (const entry of entries.slice(-100)) {
      if (isWaiting(entry) && entry.step.until > now) future = Math.max(future, entry.step.until - now);
    }
  }
  if (!span) {
    const past = entries.filter((entry) => entry.t <= end);
    const oldest = past.length ? past[Math.max(0, past.length - (phone ? 24 : 40))].t : end;
    span = SPANS.find((size) => size * .88 >= end - oldest) ?? SPANS.at(-1);
  }
  const ahead = Math.max(span * (at == null ? .06 : .25), future && future < span * .8 ? future * 1.12 : 0);
  return { from: end + ahead - Math.max(span, ahead * 1.5), to: end + ahead, span };
}
const isWaiting = (entry) => (entry.mark === "held" || entry.mark === "away") && entry.life.entries.at(-1) === entry;

function lanesOf(entries, phone, most) {
  const counts = new Map((phone?.apps ?? []).map((app) => [app.topic, 0]));
  for (const { life } of entries) counts.set(life.topic, (counts.get(life.topic) ?? 0) + 1);
  const topics = [...counts.keys()];
  if (topics.length > most) topics.sort((a, b) => counts.get(b) - counts.get(a));
  const shown = topics.slice(0, most).sort();
  const names = shown.map(shortTopic);
  return { shown, more: topics.length - shown.length,
    name: (topic) => (names.filter((name) => name === shortTopic(topic)).length > 1 ? topic : shortTopic(topic)) };
}

/** Lanes for a wide page. Returns the SVG. */
export function drawWide(view) {
  const { entries, now, at, phone, selected, width, busy } = view;
  const { from, to, span } = windowOf(view);
  const right = width - 14, scale = (right - LEFT) / (to - from);
  const X = (t) => LEFT + (t - from) * scale;
  const inside = entries.filter((entry) => entry.t >= from && entry.t <= to);
  const near = entries.filter((entry) => entry.t < from && entry.t > from - span && (isWaiting(entry) ||
    entry.life.entries.at(-1).t >= from));
  const lanes = lanesOf(inside, phone, phone ? 12 : busy ? 5 : 7);
  const top = phone ? 66 : 30;
  const rows = new Map();
  const back = s("g"), lines = s("g"), arcs = s("g"), marks = s("g");
  let y = top;
  for (const topic of lanes.shown) {
    const kinds = ["visible", "silent"].filter((kind) => inside.some((e) => e.life.topic === topic && e.life.kind === kind));
    if (!kinds.length) kinds.push("silent");
    back.append(text(8, y + 30 + (kinds.length - 1) * 25, cut(lanes.name(topic), 13), { class: "n" }));
    for (const kind of kinds) {
      y += 26;
      rows.set(topic + kind, y);
      back.append(s("line", { class: "edge", x1: LEFT, x2: right, y1: y, y2: y }));
      if (kinds.length > 1) back.append(text(LEFT - 6, y - 6, kind, { class: "cap", "text-anchor": "end" }));
      y += 28;
    }
    y += 6;
  }
  if (lanes.more) back.append(text(8, y + 14, `and ${lanes.more} more apps, in the table`, { class: "cap" }));
  if (!lanes.shown.length) back.append(text(LEFT + 12, y + 26, "Nothing yet. Compose sends a push."));
  const bottom = Math.max(y, top + 40) + (lanes.more ? 20 : 0);
  ticks(back, from, to, X, bottom);
  if (phone) connection(back, view, X, from, Math.min(to, now));
  if (now < to) {
    const x = Math.max(LEFT, X(now));
    back.append(s("rect", { class: "future", x, y: 20, width: Math.max(0, right - x), height: bottom - 20 }));
    if (right - x > 44) back.append(text(x + 4, bottom - 6, "not yet", { class: "cap" }));
  }
  if (at != null) lines.append(s("line", { class: "at", x1: X(at), x2: X(at), y1: 20, y2: bottom }));

  const places = new Map();
  for (const [lane, rowY] of rows) {
    const row = inside.filter((entry) => entry.life.topic + entry.life.kind === lane);
    place(row, X, busy ? 24 : GAP, right).forEach(({ x, items }, index, all) => {
      items.forEach((entry) => places.set(entry, [x, rowY]));
      const group = markGroup(items, x, rowY, selected);
      if (at != null && items[0].t > at) group.classList.add("ghost");
      const next = all[index + 1]?.x ?? right + 30;
      const label = items.length > 1 ? `×${items.length}` : shortId(items[0].life.uniqueId);
      const crowded = label.length * 7 > next - x && index % 2;
      group.append(text(0, crowded ? -24 : -12, label, { class: "cap", ...middle }));
      const word = wordOf(items[0]);
      const before = x - (all[index - 1]?.x ?? 0);
      if (items.length === 1 && Math.min(next - x, before) > word.length * 5.6) {
        group.append(text(0, 21, word, { class: "word", ...middle }));
      }
      marks.append(group);
    });
  }
  let waits = 0;
  for (const entry of [...near, ...inside]) {
    if (entry.mark !== "held" && entry.mark !== "away") continue;
    const rowY = rows.get(entry.life.topic + entry.life.kind);
    if (rowY == null || ++waits > 120) continue;
    const follower = entry.life.entries[entry.life.entries.indexOf(entry) + 1];
    const end = follower ? places.get(follower)?.[0] ?? X(follower.t) : X(Math.min(now, to));
    const start = places.get(entry)?.[0] ?? LEFT - 8;
    const ended = follower && follower.step.step === "discarded";
    if (end - start > 18) wait(lines, start + 9, Math.min(right, end) - (follower ? 9 : 0), rowY, ended);
    if (!follower && entry.step.until > now && phone && at == null) {
      const free = Math.min(X(entry.step.until), right);
      wait(lines, end, free - 8, rowY, true);
      const ghost = s("g", { class: "ghost", transform: `translate(${free} ${rowY})` }, shape("held"),
        text(0, 21, `may go ${clockText(entry.step.until, false)}`, { class: "word",
          "text-anchor": free > right - 36 ? "end" : "middle" }));
      marks.append(ghost);
    }
  }
  let drawn = 0;
  for (const entry of inside.slice().reverse()) {
    if (entry.mark !== "ride" || !places.has(entry) || drawn > 60) continue;
    const [x, rowY] = places.get(entry);
    const carrier = known.lives.get(entry.step.carriedBy)?.entries.find((e) => e.t === entry.t && e.step.step === "sent");
    const target = places.get(carrier);
    if (!entry.step.carriedBy || (!phone && !target)) continue;
    drawn += 1;
    arc(arcs, entry, [x, rowY], target, right, drawn < 9 && (phone || !busy));
  }
  const svg = s("svg", { viewBox: `0 0 ${width} ${bottom + 6}`, height: bottom + 6, role: "img",
    "aria-label": `Timeline from ${clockText(from)} to ${clockText(to)}: ${inside.length} marks in ${lanes.shown.length} lanes. The table below has the same.` });
  svg.append(back, lines, arcs, marks);
  return svg;
}
const cut = (value, most) => (value.length > most ? value.slice(0, Math.max(1, most - 1)) + "…" : value);

/** Moves marks apart a little; those that still do not fit are shown as one. */
function place(row, X, gap, right) {
  const found = [];
  for (const entry of row) {
    const x = Math.min(X(entry.t), right), last = found.at(-1);
    if (!last || x - last.x >= gap) found.push({ x, items: [entry] });
    else if (last.x + gap - x <= gap * 2 && gap < 20) found.push({ x: last.x + gap, items: [entry] });
    else last.items.push(entry);
  }
  const over = (found.at(-1)?.x ?? 0) - right;
  if (over > 0) for (let i = found.length - 1, x = right; i >= 0 && found[i].x > x; i--, x -= gap) found[i].x = x;
  return found;
}
function wait(parent, x1, x2, y, ended) {
  if (x2 - x1 > 3) parent.append(s("line", { class: "wait" + (ended ? " ended" : ""), x1, x2, y1: y, y2: y }));
}
function arc(parent, entry, [x, y], target, right, named) {
  const words = entry.step.carriedBy ? `rode along with ${shortId(entry.step.carriedBy)}` : "";
  const turn = x > right - 180 ? -1 : 1;
  const [x2, y2] = target ?? [x, y + 30];
  const down = y2 > y ? 1 : -1;
  const bend = 26 + Math.min(40, Math.abs(y2 - y) / 5);
  const group = s("g", { class: "arc-group", "data-from": entry.life.uniqueId, "data-to": entry.step.carriedBy });
  group.append(s("path", { class: "arc", d: `M${x + 5 * turn} ${y + 6 * down}C${x + bend * turn} ${y + 22 * down} ${x2 + bend * turn} ${y2 - 22 * down} ${x2 + 6 * turn} ${y2 - 8 * down}` }),
    s("title", { text: `${shortId(entry.life.uniqueId)} ${words}` }));
  if (named) {
    group.append(text((x + x2) / 2 + (bend * .8 + 6) * turn, (y + y2) / 2 + 4, words,
      { class: "arc-text", "text-anchor": turn > 0 ? "start" : "end" }));
  }
  parent.append(group);
}
function ticks(parent, from, to, X, bottom) {
  const step = [5e3, 10e3, 30e3, 60e3, 300e3, 600e3, 1800e3, 3600e3, 10800e3, 21600e3, 86400e3, 172800e3, 604800e3]
    .find((size) => (to - from) / size <= 9) ?? 604800e3;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    parent.append(s("line", { class: "edge", x1: X(t), x2: X(t), y1: 20, y2: bottom }),
      text(X(t), 13, step >= 86400e3 ? new Date(t).toISOString().slice(5, 10) : clockText(t, step < 60e3), { class: "cap", ...middle }));
  }
}
function connection(parent, { links, phone }, X, from, until) {
  let open = phone.connected, end = until;
  parent.append(text(8, 46, "phone", { class: "n" }));
  const bar = (t1, t2) => {
    const a = X(Math.max(from, t1)), b = X(t2);
    if (b - a < 1) return;
    parent.append(open ? s("rect", { class: "conn", x: a, y: 37, width: b - a, height: 10, rx: 3 })
      : s("line", { class: "gap", x1: a, x2: b, y1: 42, y2: 42 }));
    if (b - a > 80) parent.append(text(a + 4, 60, open ? "connected" : "away", { class: "cap" }));
  };
  for (const link of links.slice().reverse()) {
    if (link.what !== "connected" && link.what !== "disconnected") continue;
    if (link.time <= from) break;
    open = link.what === "connected";
    if (link.time < end) {
      bar(link.time, end);
      end = link.time;
    }
    open = !open;
  }
  bar(from, end);
}

/** Lanes for a narrow page: a column an app, a row a mark, newest first. */
export function drawNarrow(view) {
  const { entries, phone, at, selected, width } = view;
  const shown = entries.filter((entry) => at == null || entry.t <= at).slice(-30).reverse();
  const lanes = lanesOf(shown, phone, 4);
  const columns = [...lanes.shown, ...(lanes.more ? ["others"] : [])];
  const X = (topic) => 74 + Math.max(0, columns.includes(topic) ? columns.indexOf(topic) : columns.length - 1) * 38;
  const Y = (index) => 44 + index * 40;
  const bottom = Y(shown.length) - 8, textX = 74 + columns.length * 38 - 8;
  const lines = s("g"), arcs = s("g"), marks = s("g");
  for (const topic of columns) {
    lines.append(text(X(topic), 14, cut(shortTopic(topic), 6), { class: "n cap", ...middle }),
      s("line", { class: "edge", x1: X(topic), x2: X(topic), y1: 22, y2: bottom }));
  }
  const rowOf = new Map(shown.map((entry, index) => [entry, index]));
  shown.forEach((entry, index) => {
    const x = X(entry.life.topic), y = Y(index);
    const group = markGroup([entry], x, y, selected);
    group.firstElementChild.before(s("rect", { class: "hit", x: -x, y: -20, width, height: 40 }));
    marks.append(group);
    const most = (width - textX) / 6.7;
    group.append(text(4 - x, 4, index && clockText(shown[index - 1].t) === clockText(entry.t) ? "" : clockText(entry.t), { class: "cap" }),
      text(textX - x, -2, cut(`${shortId(entry.life.uniqueId)} ${wordOf(entry)}`, most), { class: "n" }),
      text(textX - x, 13, cut(reasonOf(entry), most * 1.1), { class: "cap" }));
    if (entry.mark === "held" || entry.mark === "away") {
      const follower = entry.life.entries[entry.life.entries.indexOf(entry) + 1];
      const end = follower && rowOf.has(follower) ? Y(rowOf.get(follower)) + 9 : 24;
      lines.append(s("line", { class: "wait" + (follower?.step.step === "discarded" ? " ended" : ""), x1: x, x2: x, y1: y - 9, y2: end }));
    }
    const carrier = entry.mark === "ride" && known.lives.get(entry.step.carriedBy)?.entries
      .find((e) => e.t === entry.t && e.step.step === "sent");
    if (carrier && rowOf.has(carrier)) {
      const x2 = X(carrier.life.topic), y2 = Y(rowOf.get(carrier)), side = x2 > x ? 1 : -1;
      const group2 = s("g", { class: "arc-group", "data-from": entry.life.uniqueId, "data-to": entry.step.carriedBy });
      const mid = x2 === x ? `${x + 30} ${y} ${x2 + 30} ${y2}` : `${x + 6 * side} ${(y + y2) / 2} ${x2} ${(y + y2) / 2}`;
      group2.append(s("path", { class: "arc", d: `M${x} ${y + (y2 > y ? 9 : -9)}C${mid} ${x2} ${y2 + (y2 > y ? -9 : 9)}` }));
      arcs.append(group2);
    }
  });
  if (!shown.length) lines.append(text(8, 40, "Nothing yet. Compose sends a push."));
  const svg = s("svg", { viewBox: `0 0 ${width} ${Math.max(60, bottom)}`, height: Math.max(60, bottom), role: "img",
    "aria-label": `The last ${shown.length} marks, newest first. The table below has the same.` });
  svg.append(lines, arcs, marks);
  return svg;
}

/** How much happened when, for the scrubber. */
export function density(svg, entries, from, to) {
  const bins = new Array(100).fill(0);
  for (const entry of entries) bins[Math.min(99, Math.max(0, Math.floor((entry.t - from) / (to - from) * 100)))] += 1;
  const most = Math.max(1, ...bins);
  svg.setAttribute("viewBox", "0 0 100 26");
  svg.replaceChildren(...bins.flatMap((count, index) => (count
    ? [s("rect", { x: index + .15, width: .7, y: 26 - 3 - 22 * count / most, height: 3 + 22 * count / most })] : [])));
}
