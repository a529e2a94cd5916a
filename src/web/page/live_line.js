// live_line.js: the line: what each program of a run takes, by class: as it was
// planned, and what was in memory when it ran; what the process was seen to
// hold, and the budget.

import { el, svg, bytes, isNumber, shown } from "./live_text.js";

const PHASES = { train: "train", groups: "train", update: "train",
  eval: "eval", sample: "sample", save: "save" };

// Of the arena, what a program leaves to the others.
const REST = "rest of the arena";

function list(value) {
  return Array.isArray(value) ? value.map((one) => Number(one) || 0) : [];
}

// What was in memory of each class when a program ran; null: not seen yet.
function actualOf(progress, name) {
  const all = progress && progress.actual;
  const own = all && typeof all === "object" && Object.hasOwn(all, name) &&
    all[name];
  return own && typeof own === "object" ? new Map(Object.entries(own)
    .map(([key, size]) => [key, isNumber(size) && size > 0 ? size : 0])) : null;
}

// The rows of the picture: { name, parts: [[class, planned, actual]...], total,
// actual, held }.
function rowsOf(plan, progress) {
  const programs = Array.isArray(plan.programs) ? plan.programs : [];
  return programs.map((name, at) => {
    const parts = Object.entries(plan.classes || {})
      .map(([key, row]) => [key, list(row)[at] || 0]);
    if (!plan.has_own_memory) {
      parts.push(["reserve", Number(plan.reserve_bytes) || 0]);
      parts.push(["files in memory", Number(plan.files_bytes) || 0]);
      parts.push(["live page", Number(plan.live_bytes) || 0]);
    }
    const actual = actualOf(progress, name);
    parts.push([REST, 0]);
    for (const part of parts) part.push(actual ? actual.get(part[0]) || 0 : 0);
    const held = progress ? progress["held_" + PHASES[name] + "_bytes"] : 0;
    return {
      name: String(name), parts,
      total: parts.reduce((sum, part) => sum + part[1], 0),
      actual: actual ? parts.reduce((sum, part) => sum + part[2], 0) : NaN,
      held: !plan.has_own_memory && held > 0 ? held : NaN,
    };
  });
}

export function drawLine(section, run, width) {
  const title = section.querySelector("h2");
  const plan = run && run.plan;
  if (!plan || !plan.classes || !Array.isArray(plan.programs)) {
    section.replaceChildren(title, el("p", { class: "none" },
      "This run wrote no plan.json: `plimsoll plan` says what it takes."));
    return;
  }
  const rows = rowsOf(plan, run.state.progress);
  const budget = isNumber(plan.budget_bytes) ? plan.budget_bytes : NaN;
  const open = section.querySelector("details");
  section.replaceChildren(title, verdict(plan, rows, budget),
    picture(rows, budget, width), legend(rows),
    table(rows, budget, Boolean(open && open.open)));
}

function verdict(plan, rows, budget) {
  const most = Math.max(...rows.map((row) => row.total));
  const held = Math.max(...rows.map((row) => row.held || 0));
  const text = [bytes(most) + " planned"];
  if (held > 0) text.push(bytes(held) + " held so far");
  if (isNumber(budget))
    text.push("budget " + bytes(budget) + (most <= budget ? ", " +
      bytes(budget - most) + " to spare" : ""));
  return el("p", { class: "verdict" }, text.join(" · "),
    plan.budget_from ? el("span", { class: "origin" }, " " +
      shown(plan.budget_from)) : null);
}

// ---- the picture ----

function picture(rows, budget, width) {
  const most = Math.max(...rows.map((row) => Math.max(row.total,
    row.held || 0, row.actual || 0)));
  const near = isNumber(budget) && budget < 2.2 * most;
  const end = near ? Math.max(budget, most) * 1.04 : most * 1.18;
  const left = width < 520 ? 56 : 76, right = 12, top = 40;
  const high = 24, step = 46;
  const x = (value) => left + value / end * (width - left - right);
  const height = top + rows.length * step + 6;
  const node = svg("svg", { class: "line", viewBox: "0 0 " + width + " " +
    height, height, role: "img", "aria-label": spoken(rows, budget) });
  if (isNumber(budget))
    node.append(...mark(near ? x(budget) : width - right - 16, near, top,
      height, budget, left));
  rows.forEach((row, i) =>
    node.append(...drawRow(row, top + i * step, high, x, width - right)));
  return node;
}

function drawRow(row, y, high, x, end) {
  const parts = [svg("text", { class: "name", x: x(0) - 10, y: y + 16,
    "text-anchor": "end" }, shown(row.name))];
  parts.push(...stack(row, 1, "planned", y, high, x),
    ...stack(row, 2, "actual", y + high + 2, 7, x));
  const room = end - x(row.total) > 72;
  parts.push(svg("text", { class: "sum",
    x: room ? x(row.total) + 8 : end, y: y + 16,
    "text-anchor": room ? "start" : "end" }, bytes(row.total)));
  if (isNumber(row.held))
    parts.push(svg("path", { class: "held", d: "M" + x(0) + " " +
      (y + high + 13) + "H" + x(row.held) + "m0 -3v6" },
    svg("title", {}, "held while it was seen: " + bytes(row.held))));
  return parts;
}

// One bar: the parts' planned bytes (1), or their actual ones (2).
function stack(row, column, what, y, height, x) {
  let from = 0;
  return row.parts.map((part, at) => [part[0], part[column], at])
    .filter((part) => part[1] > 0).map(([key, size, at]) => {
      const left = x(from);
      from += size;
      return svg("rect", { class: "part " + what + " mem" + at % 14, x: left, y,
        width: Math.max(0.5, x(from) - left), height },
      svg("title", {}, shown(key) + ": " + bytes(size) + " " + what));
    });
}

// Samuel Plimsoll's: a ring, and a line through it.
function mark(x, near, top, height, budget, left) {
  const text = "budget " + bytes(budget) + (near ? "" : " →");
  const before = x - left > 150;
  return [
    svg("path", { class: "budget" + (near ? "" : " far"), d: "M" + x + " " +
      (top - 8) + "V" + (height - 2) }),
    svg("circle", { class: "ring", cx: x, cy: top - 22, r: 8 }),
    svg("path", { class: "ring", d: "M" + (x - 14) + " " + (top - 22) +
      "h28" }),
    svg("text", { class: "budget-text", x: before ? x - 20 : x + 20,
      y: top - 17, "text-anchor": before ? "end" : "start" }, text),
  ];
}

function spoken(rows, budget) {
  return "Memory by program. " + rows.map((row) => row.name + ": " +
    bytes(row.total) + " planned" + (isNumber(row.actual) ? ", " +
      bytes(row.actual) + " actual" : "") + (isNumber(row.held) ? ", " +
      bytes(row.held) + " held" : "")).join("; ") +
    (isNumber(budget) ? ". Budget: " + bytes(budget) : "");
}

function legend(rows) {
  const used = rows[0].parts.map(([key], at) => [key, at])
    .filter(([, at]) => rows.some((row) => hasPart(row, at)));
  return el("ul", { class: "legend classes" },
    ...used.map(([key, at]) => el("li", {},
      el("span", { class: "box mem" + at % 14, "aria-hidden": true }),
      shown(key))),
    el("li", {}, el("span", { class: "actualkey", "aria-hidden": true }),
      "below each bar: actual, when it ran"),
    el("li", {}, el("span", { class: "heldkey", "aria-hidden": true }),
      "held by the process, at most"));
}

function hasPart(row, at) {
  return row.parts[at][1] > 0 || row.parts[at][2] > 0;
}

// ---- the numbers ----

function table(rows, budget, open) {
  const cell = (value) => el("td", { "data-value": value },
    value > 0 ? bytes(value) : "–");
  const line = (name, values, look) => el("tr", { class: look },
    el("th", { scope: "row" }, shown(name)), ...values.flat().map(cell));
  const body = rows[0].parts.map(([key], at) =>
    line(key, rows.map((row) => [row.parts[at][1], row.parts[at][2]])))
    .filter((_, at) => rows.some((row) => hasPart(row, at)));
  body.push(line("sum", rows.map((row) => [row.total, row.actual]), "total"));
  body.push(line("held at most", rows.map((row) => [NaN, row.held]), "total"));
  if (isNumber(budget))
    body.push(line("budget", rows.map(() => [budget, NaN]), "total"));
  return el("details", { class: "numbers", open },
    el("summary", {}, "Numbers"),
    el("div", { class: "scroll", tabindex: 0, role: "region",
      "aria-label": "Memory as a table" },
    el("table", {}, el("caption", {},
      "Bytes by class and program: planned, and in memory when it ran"),
      el("thead", {}, el("tr", {}, el("td"), ...rows.flatMap((row) =>
        ["planned", "actual"].map((what) =>
          el("th", { scope: "col" }, shown(row.name) + ", " + what))))),
      el("tbody", {}, ...body))));
}
