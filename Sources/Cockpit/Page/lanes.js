// Pushes over time, a lane for each app, as SVG. Wide: time goes right. Narrow: time goes down.

import { LEGEND, clockText, h, known, reasonOf, s, shortId, shortTopic, wordOf } from "./kit.js";

const LEFT = 96;
const RANK = ["expired", "ride", "held", "away", "refill", "replaced", "resend", "connect", "visible", "direct"];
const SPANS = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 240, 720, 1440, 2880, 10080].map((minutes) => minutes * 60e3);
const TICKS = [5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 86400, 604800].map((seconds) => seconds * 1e3);
const PATHS = { visible: "M-7-4q0-3 3-3h8q3 0 3 3v8q0 3-3 3h-8q-3 0-3-3z", ride: "M0-9L9 0L0 9L-9 0Z", refill: "M0-8L8 6L-8 6Z",
  connect: "M-6-6h12v6l-6 6l-6-6z", replaced: "M-5-5L5 5M5-5L-5 5", expired: "M-6-6h12v12h-12zM-6 6L6-6", resend: "M6 0A6 6 0 1 1 2-5.6M2-9L2-2L7-5" };

const shape = (mark) => (PATHS[mark] ? s(`path.shape.${mark}`, { d: PATHS[mark] }) : s(`circle.shape.${mark}`, { r: 6.5 }));
export const icon = (mark) => s("svg", { width: 20, height: 18, viewBox: "-10 -9 20 18", "aria-hidden": true }, shape(mark));
export const legend = () => Object.entries(LEGEND).map(([mark, text]) => h("span", icon(mark), text));

const cut = (text, most) => (text.length > most ? text.slice(0, Math.max(1, most - 1)) + "…" : text);
const words = (x, y, text, kind = "", anchor = "start") => s("text" + kind, { x, y, "text-anchor": anchor }, text);
const line = (kind, x1, y1, x2, y2) => s("line." + kind, { x1, y1, x2, y2 });
const laneOf = ({ life }) => life.topic + life.kind;
const followerOf = (entry) => entry.life.entries[entry.life.entries.indexOf(entry) + 1];
const isHeld = ({ mark }) => mark === "held" || mark === "away";
// The mark of the push that carried this one.
const carrierOf = ({ mark, step, t }) => mark === "ride" && step.carriedBy &&
  known.lives.get(step.carriedBy)?.entries.find((entry) => entry.t === t && entry.step.step === "sent");

function markGroup(items, x, y, selected) {
  const entry = items.reduce((best, item) => (RANK.indexOf(item.mark) < RANK.indexOf(best.mark) ? item : best));
  const on = items.some(({ life }) => life.uniqueId === selected);
  const about = `${clockText(entry.t)} ${entry.life.kind} ${shortId(entry.life.uniqueId)}, ${entry.life.topic}: ${wordOf(entry)}, ${reasonOf(entry)}`;
  return s("g.mark", { transform: `translate(${x} ${y})`, "data-push": entry.life.uniqueId, "data-mark": entry.mark,
    "data-zoom": items.length > 1 && `${items[0].t} ${items.at(-1).t}` },
  on && s("circle.ring", { r: 12 }), s("rect.hit", { x: -11, y: -20, width: 22, height: 32 }), shape(entry.mark),
  s("title", items.length > 1 ? `${items.length} marks, among them ${about}` : about));
}

// From when to when. Without a chosen span: what holds the last marks, and when held ones may go.
function windowOf({ entries, now, at, span, phone }) {
  const end = at ?? now;
  let future = 0;
  if (phone && at == null) {
    for (const entry of entries.slice(-100)) if (isHeld(entry) && !followerOf(entry)) future = Math.max(future, (entry.step.until ?? 0) - now);
  }
  if (!span) {
    const past = entries.filter(({ t }) => t <= end), oldest = past.at(phone ? -24 : -40)?.t ?? past[0]?.t ?? end;
    span = SPANS.find((size) => size >= Math.max(end - oldest, future * 1.4)) ?? SPANS.at(-1);
  }
  const ahead = Math.max(span * (at == null ? .05 : .25), future <= span ? future * 1.08 : 0);
  return { from: end - span, to: end + ahead, span };
}

function lanesOf(entries, phone, most) {
  const counts = new Map((phone?.apps ?? []).map((app) => [app.topic, 0]));
  for (const { life } of entries) counts.set(life.topic, (counts.get(life.topic) ?? 0) + 1);
  const topics = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, most).sort();
  return { topics, more: counts.size - topics.length };
}

export function drawWide(view) {
  const { entries, now, at, phone, selected, width, busy } = view, { from, to, span } = windowOf(view);
  const right = width - 14, X = (t) => LEFT + (t - from) * (right - LEFT) / (to - from);
  const inside = entries.filter(({ t }) => t >= from && t <= to);
  const { topics, more } = lanesOf(inside, phone, phone ? 12 : busy ? 4 : 7);
  const [back, waits, arcs, marks] = [s("g"), s("g"), s("g"), s("g")];
  const rows = new Map(), places = new Map();
  let y = phone ? 66 : 26;
  for (const topic of topics) {
    const kinds = ["visible", "silent"].filter((kind) => inside.some(({ life }) => life.topic === topic && life.kind === kind));
    if (!kinds.length) kinds.push("silent");
    back.append(words(8, y + 5 + kinds.length * 25, cut(shortTopic(topic), 12), ".n"));
    for (const kind of kinds) {
      rows.set(topic + kind, y += 27);
      back.append(line("edge", LEFT, y, right, y));
      if (kinds.length > 1) back.append(words(LEFT - 6, y + 4, kind, "", "end"));
      y += 27;
    }
    y += 4;
  }
  if (more) back.append(words(8, y + 14, `${more} more apps in the table`));
  if (!topics.length) back.append(words(LEFT + 12, y + 26, "Nothing yet. Compose sends a push."));
  const bottom = Math.max(y, 100) + (more ? 20 : 0);
  const tick = TICKS.find((size) => (to - from) / size <= 9) ?? TICKS.at(-1);
  for (let t = Math.ceil(from / tick) * tick; t <= to; t += tick) {
    back.append(line("edge", X(t), 20, X(t), bottom), words(X(t), 13, clockText(t, tick < 60e3), "", "middle"));
  }
  if (phone) connection(back, view, X, from, Math.min(to, now));
  if (now < to) {
    const x = Math.max(LEFT, X(now));
    back.append(s("rect.future", { x, y: 20, width: right - x, height: bottom - 20 }));
    if (right - x > 44) back.append(words(x + 4, bottom - 6, "not yet"));
  }
  if (at != null) waits.append(line("at", X(at), 20, X(at), bottom));

  for (const [lane, rowY] of rows) {
    place(inside.filter((entry) => laneOf(entry) === lane), X, busy ? 24 : 16, right).forEach(({ x, items }, index, all) => {
      for (const entry of items) places.set(entry, [x, rowY]);
      const group = markGroup(items, x, rowY, selected), last = all[index - 1]?.x ?? 0, next = all[index + 1]?.x ?? right + 30;
      const label = items.length > 1 ? `×${items.length}` : shortId(items[0].life.uniqueId), word = wordOf(items[0]);
      if (at != null && items[0].t > at) group.classList.add("ghost");
      group.append(words(0, index % 2 && Math.min(next - x, x - last) < label.length * 7 + 4 ? -24 : -12, label, "", "middle"));
      if (items.length === 1 && Math.min(next - x, x - last) > word.length * 5.6 + 8) group.append(words(0, 21, word, "", "middle"));
      marks.append(group);
    });
  }
  let drawn = 0;
  for (const entry of entries) {
    const rowY = rows.get(laneOf(entry));
    if (!isHeld(entry) || entry.t < from - span || entry.t > to || !rowY || (!phone && entry.life.uniqueId !== selected)) continue;
    const follower = followerOf(entry);
    if (follower?.t < from || ++drawn > 120) continue;
    const end = follower ? (places.get(follower)?.[0] ?? right) - 9 : X(Math.min(now, to));
    waits.append(line(follower?.step.step === "discarded" ? "wait.ended" : "wait", (places.get(entry)?.[0] ?? LEFT - 8) + 9, rowY, end, rowY));
    if (follower || at != null || !(entry.step.until > now)) continue;
    const free = Math.min(X(entry.step.until), right);
    waits.append(line("wait.ended", end, rowY, free - 8, rowY));
    marks.append(s("g.ghost", { transform: `translate(${free} ${rowY})` }, shape("held"),
      words(0, 21, `may go ${clockText(entry.step.until, false)}`, "", free > right - 40 ? "end" : "middle")));
  }
  drawn = 0;
  for (const entry of inside.toReversed()) {
    const target = places.get(carrierOf(entry)), place = places.get(entry);
    if (place && entry.step.carriedBy && (target || phone) && ++drawn < 60) arcs.append(arc(entry, place, target, right, drawn < 9 && !busy));
  }
  return s("svg", { viewBox: `0 0 ${width} ${bottom + 6}`, height: bottom + 6, role: "img", "aria-label":
    `${clockText(from)} to ${clockText(to)}: ${inside.length} marks in ${topics.length} lanes. The table below has the same.` }, back, waits, arcs, marks);
}

// Moves marks apart a little; what still does not fit is shown as one.
function place(row, X, gap, right) {
  const found = [];
  for (const entry of row) {
    const x = X(entry.t), last = found.at(-1);
    if (last && last.x + gap > x && (last.x > x || gap > 20)) last.items.push(entry);
    else found.push({ x: last ? Math.max(x, last.x + gap) : x, items: [entry] });
  }
  for (let i = found.length - 1, x = right; i >= 0 && found[i].x > x; i--, x -= gap) found[i].x = x;
  return found;
}

function arc(entry, [x, y], target, right, named) {
  const text = `rode along with ${shortId(entry.step.carriedBy)}`, turn = x > right - 180 ? -1 : 1;
  const [x2, y2] = target ?? [x, y + 30], down = y2 > y ? 1 : -1, bend = (26 + Math.min(40, Math.abs(y2 - y) / 5)) * turn;
  return s("g.arc-group", { "data-from": entry.life.uniqueId, "data-to": entry.step.carriedBy },
    s("path.arc", { d: `M${x + 5 * turn} ${y + 6 * down}C${x + bend} ${y + 22 * down} ${x2 + bend} ${y2 - 22 * down} ${x2 + 6 * turn} ${y2 - 8 * down}` }),
    named && words((x + x2) / 2 + bend * .8 + 6 * turn, (y + y2) / 2 + 4, text, ".arc-text", turn > 0 ? "start" : "end"));
}

function connection(parent, { links, phone }, X, from, until) {
  let open = phone.connected, end = until;
  const bar = (start) => {
    const x = X(Math.max(from, start)), width = X(end) - x;
    if (width > 1) parent.append(open ? s("rect.conn", { x, y: 37, width, height: 10, rx: 3 }) : line("wait.ended", x, 42, x + width, 42));
    if (width > 80) parent.append(words(x + 4, 60, open ? "connected" : "away"));
  };
  parent.append(words(8, 46, "phone", ".n"));
  for (const { what, time } of links.toReversed()) {
    if (time <= from || !/connected$/.test(what)) continue;
    open = what === "connected";
    bar(time);
    end = time;
    open = !open;
  }
  bar(from);
}

// A column for each app, a row for each mark, newest first.
export function drawNarrow({ entries, phone, at, selected, width }) {
  const shown = entries.filter(({ t }) => at == null || t <= at).slice(-30).reverse();
  const { topics, more } = lanesOf(shown, phone, 4);
  if (more) topics.push("others");
  const X = ({ life }) => 74 + 38 * (topics.includes(life.topic) ? topics.indexOf(life.topic) : topics.length - 1);
  const Y = (index) => 44 + index * 40, rows = new Map(shown.map((entry, index) => [entry, Y(index)]));
  const bottom = Math.max(60, Y(shown.length) - 8), textX = 66 + topics.length * 38, most = (width - textX) / 6.7;
  const [back, marks] = [s("g"), s("g")];
  topics.forEach((topic, index) => back.append(words(74 + index * 38, 14, cut(shortTopic(topic), 6), ".n", "middle"), line("edge", 74 + index * 38, 22, 74 + index * 38, bottom)));
  shown.forEach((entry, index) => {
    const x = X(entry), y = Y(index), follower = followerOf(entry), carrier = carrierOf(entry), time = clockText(entry.t);
    const group = markGroup([entry], x, y, selected);
    group.prepend(s("rect.hit", { x: -x, y: -20, width, height: 40 }));
    group.append(words(4 - x, 4, index && clockText(shown[index - 1].t) === time ? "" : time),
      words(textX - x, -2, cut(`${shortId(entry.life.uniqueId)} ${wordOf(entry)}`, most), ".n"), words(textX - x, 13, cut(reasonOf(entry), most * 1.1)));
    marks.append(group);
    if (isHeld(entry)) back.append(line(follower?.step.step === "discarded" ? "wait.ended" : "wait", x, y - 9, x, rows.has(follower) ? rows.get(follower) + 9 : 24));
    if (!rows.has(carrier)) return;
    const x2 = X(carrier), y2 = rows.get(carrier), down = y2 > y ? 9 : -9, mid = (y + y2) / 2;
    const bend = x === x2 ? `${x + 30} ${y} ${x + 30} ${y2}` : `${x} ${mid} ${x2} ${mid}`;
    marks.append(s("g.arc-group", { "data-from": entry.life.uniqueId, "data-to": entry.step.carriedBy }, s("path.arc", { d: `M${x} ${y + down}C${bend} ${x2} ${y2 - down}` })));
  });
  if (!shown.length) back.append(words(8, 40, "Nothing yet. Compose sends a push."));
  return s("svg", { viewBox: `0 0 ${width} ${bottom}`, height: bottom, role: "img", "aria-label":
    `The last ${shown.length} marks, newest first. The table below has the same.` }, back, marks);
}

// How much happened when, above the scrubber.
export function density(svg, entries, from, to) {
  const bins = new Array(100).fill(0);
  for (const { t } of entries) bins[Math.min(99, Math.floor((t - from) / (to - from) * 100))] += 1;
  const most = Math.max(1, ...bins);
  svg.replaceChildren(...bins.map((count, x) => s("rect", { x, width: .7, y: 23 - 22 * count / most, height: count && 26 })));
}
