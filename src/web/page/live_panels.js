// live_panels.js: what isn't a chart: how far the run is, samples, settings,
// warnings, and in what several runs differ.

import { el, shown, isNumber, loss, short, count, whole, bytes, duration,
  percent, clock } from "./live_text.js";

const PHASES = { start: "starting", train: "training", eval: "evaluating",
  sample: "sampling", save: "saving", done: "done", stopped: "stopped",
  failed: "failed" };

export function phaseOf(run) {
  const progress = run.state.progress;
  if (!run.state.there) return "waiting for its folder";
  if (!progress) return run.updates.step.length ? "over" : "waiting";
  if (run.state.running || ["done", "stopped", "failed"]
    .includes(progress.phase)) return PHASES[progress.phase] || "running";
  return "gone"; // killed: it had no time to say so
}

function lastOf(list) {
  return list.length ? list[list.length - 1] : NaN;
}

function tile(name, value, note) {
  return el("div", { class: "tile" }, el("dt", {}, name),
    el("dd", {}, value, note ? el("small", {}, note) : null));
}

// The evaluation with the lowest validation loss; null: there is none.
function bestOf(run) {
  return run.evals.reduce((low, one) =>
    isNumber(one.val) && !(low && low.val <= one.val) ? one : low, null);
}

// Behind a validation loss: bits per byte of the same evaluation, its step.
function bitsAt(one) {
  return (isNumber(one.bpb) ? loss(one.bpb) + " bits per byte " : "") +
    "at step " + whole(one.step);
}

// ---- now ----

export function drawNow(section, run) {
  const progress = run.state.progress || {};
  const steps = isNumber(progress.step) ? progress.step :
    lastOf(run.updates.step) + 1;
  const most = progress.max_iters || (run.plan && run.plan.max_iters) || NaN;
  const phase = phaseOf(run);
  section.replaceChildren(
    el("div", { class: "headline" },
      el("h1", {}, shown(run.name)),
      el("span", { class: "pill " + phase.split(" ")[0] }, phase),
      el("p", { class: "model" }, modelText(run))),
    progressBar(run, steps, most, progress),
    el("dl", { class: "tiles" }, ...tiles(run, progress)));
}

function modelText(run) {
  const model = run.plan && run.plan.model;
  if (!model) return "";
  return [count(model.parameters) + " parameters", model.layers + " layers",
    model.heads + " heads", model.channels + " channels", "context " +
    model.context, shown(run.plan.device || "")].join(" · ");
}

function progressBar(run, steps, most, progress) {
  const share = isNumber(most) && most > 0 ? Math.min(1, steps / most) : 0;
  const within = isNumber(progress.share) && run.state.running ?
    progress.share : 0;
  const bar = el("div", { class: "progress", role: "progressbar",
    "aria-label": "Updates", "aria-valuemin": 0, "aria-valuemax": most,
    "aria-valuenow": steps, "aria-valuetext": whole(steps) + " of " +
      whole(most) + " updates" }, el("i"));
  bar.firstChild.style.width = 100 * share + "%";
  const inner = el("div", { class: "progress thin", role: "progressbar",
    "aria-label": "Within this step", "aria-valuemin": 0,
    "aria-valuemax": 100, "aria-valuenow": Math.round(100 * within) },
  el("i"));
  inner.firstChild.style.width = 100 * within + "%";
  return el("div", { class: "far" },
    el("p", {}, el("b", {}, "step " + whole(steps)), " of " + whole(most),
      el("span", {}, percent(share) + (run.state.running ? ", " +
        duration(progress.seconds_left) + " left" : ""))), bar, inner);
}

function tiles(run, progress) {
  const u = run.updates;
  const last = run.evals[run.evals.length - 1];
  const best = bestOf(run);
  const tokens = run.plan ? run.plan.update_tokens : NaN;
  const speed = run.state.running && progress.tokens_per_second > 0 ?
    progress.tokens_per_second : tokens / (lastOf(u.ms) / 1000);
  const held = ["train", "eval", "sample", "save"].reduce((most, phase) =>
    Math.max(most, progress["held_" + phase + "_bytes"] || 0), 0);
  const skipped = u.skipped.filter(Boolean).length;
  return [
    tile("loss", loss(lastOf(u.loss)), "update " + whole(lastOf(u.step))),
    tile("validation loss", last ? loss(last.val) : "–", last ? "± " +
      loss(last.valError) + ", " + bitsAt(last) : "none yet"),
    tile("best validation loss", best ? loss(best.val) : "–",
      best ? bitsAt(best) : ""),
    tile("tokens/s", count(speed), count(run.tokensOf(lastOf(u.step) + 1)) +
      " so far"),
    tile("share of the peak", percent(progress.mfu),
      isNumber(progress.peak_flops) && progress.peak_flops > 0 ? "of " +
        short(progress.peak_flops) + "FLOP/s" : ""),
    tile("learning rate", short(lastOf(u.lr)), ""),
    tile("gradient norm", short(lastOf(u.norm)), skipped ? skipped +
      " skipped" : ""),
    tile("memory", held > 0 ? bytes(held) : "–", run.plan &&
      isNumber(run.plan.budget_bytes) ? "of " + bytes(run.plan.budget_bytes) :
      ""),
  ];
}

// ---- tasks ----

// Each task as it was asked last, and the time before.
export function drawTasks(section, run) {
  const title = section.querySelector("h2");
  const found = new Map();
  section.hidden = !run.tasks.length;
  for (const line of run.tasks) {
    const name = String(line.task);
    const before = found.get(name);
    found.set(name, { line, before: before && before.line.step < line.step ?
      before.line : before && before.before });
  }
  const heads = ["task", "step", "acc", "±", "acc_norm", "perplexity",
    "centred", "before"];
  const rows = [...found.entries()].map(([name, { line, before }]) =>
    el("tr", {}, el("th", { scope: "row" }, shown(name)),
      ...[whole(line.step), loss(line.acc), loss(line.acc_stderr),
        loss(line.acc_norm), loss(line.perplexity), loss(line.centred),
        before ? loss(before.acc) : "–"].map((text) =>
        el("td", { class: "number" }, text))));
  section.replaceChildren(title, el("table", { class: "tasks" },
    el("thead", {}, el("tr", {}, ...heads.map((text) =>
      el("th", { scope: "col" }, text)))), el("tbody", {}, ...rows)));
}

// ---- samples ----

export function drawSamples(section, run) {
  const title = section.querySelector("h2");
  if (!run.samples.length) {
    section.replaceChildren(title, el("p", { class: "none" },
      "None: sample_interval = 500 lets a run write some every 500 updates."));
    return;
  }
  const steps = new Map();
  for (const sample of run.samples) {
    if (!steps.has(sample.step)) steps.set(sample.step, []);
    steps.get(sample.step).push(sample);
  }
  const saved = new Set(run.state.checkpoints || []);
  const groups = [...steps.entries()].reverse().map(([step, list], at) =>
    el("details", { open: at === 0, class: "step" },
      el("summary", {}, "step " + whole(step), el("span", { class: "note" },
        (saved.has(step) ? "checkpoint kept" : "") +
        (step === run.state.best ? ", the best so far" : ""))),
      ...list.map(sampleOf)));
  section.replaceChildren(title, ...groups);
}

function sampleOf(sample) {
  return el("blockquote", {}, el("mark", {}, shown(sample.prompt || "")),
    el("span", {}, shown(sample.text || "")),
    sample.cut ? el("small", {}, " (cut)") : null);
}

// ---- settings ----

// An object of somebody else's file: only its own keys count.
function valueOf(config, key) {
  return config && Object.hasOwn(config, key) && config[key] &&
    typeof config[key] === "object" ? config[key] : {};
}

export function drawConfig(section, runs, chosen) {
  const title = section.querySelector("h2");
  const old = section.querySelector("#all-keys");
  const all = old ? old.checked : false;
  const config = (chosen.plan && chosen.plan.config) || {};
  const keys = Object.keys(config).filter((key) => all ||
    valueOf(config, key).from !== "default");
  const box = el("input", { type: "checkbox", id: "all-keys" });
  box.checked = all;
  box.addEventListener("change", () => drawConfig(section, runs, chosen));
  section.replaceChildren(el("div", { class: "card-head" }, title,
    el("label", { class: "tick-box" }, box, " defaults, too")),
  keys.length ? el("div", { class: "scroll", tabindex: 0, role: "region",
      "aria-label": "Settings" }, el("table", { class: "keys" },
      el("thead", {}, el("tr", {}, ...["key", "value", "from"].map((text) =>
        el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...keys.map((key) => el("tr", {},
        el("th", { scope: "row" }, shown(key)),
        el("td", { class: "code" }, shown(valueOf(config, key).value ?? "")),
        el("td", {}, shown(valueOf(config, key).from ?? ""))))))) :
      el("p", { class: "none" }, "Nothing is known of them yet."));
}

// ---- what differs ----

export function drawDiffer(section, runs) {
  const title = section.querySelector("h2");
  section.hidden = runs.length < 2;
  if (section.hidden) return;
  const keys = new Set();
  for (const run of runs)
    for (const key of Object.keys((run.plan && run.plan.config) || {}))
      keys.add(key);
  const rows = [...keys].map((key) => [key, runs.map((run) =>
    String(valueOf(run.plan && run.plan.config, key).value ?? "–"))])
    .filter(([key, values]) => key !== "out_dir" &&
      new Set(values).size > 1);
  const row = (name, values, look) => el("tr", { class: look },
    el("th", { scope: "row" }, shown(name)),
    ...values.map((value) => el("td", { class: "code" }, shown(value))));
  section.replaceChildren(title, el("div", { class: "scroll", tabindex: 0,
    role: "region", "aria-label": "What differs" }, el("table",
    { class: "keys" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "key"),
      ...runs.map((run) => el("th", { scope: "col", class: "run" +
        run.index % 8 }, el("span", { class: "swatch",
        "aria-hidden": true }), shown(run.name))))),
    el("tbody", {}, ...rows.map(([key, values]) => row(key, values, "differs")),
      ...results(runs).map(([name, values]) => row(name, values, "total"))))),
  el("p", { class: "none", hidden: rows.length > 0 },
    "All settings are the same."));
}

function results(runs) {
  const best = runs.map((run) => bestOf(run) || {});
  return [
    ["best validation loss", best.map((one) => loss(one.val))],
    ...(best.some((one) => isNumber(one.bpb)) ? [["bits per byte of the best",
      best.map((one) => loss(one.bpb))]] : []),
    ["last loss", runs.map((run) => loss(lastOf(run.updates.loss)))],
    ["updates", runs.map((run) => whole(lastOf(run.updates.step) + 1))],
    ["training time", runs.map((run) => duration(lastOf(run.updates.time)))],
  ];
}

// ---- warnings ----

export function drawWarnings(section, run) {
  const title = section.querySelector("h2");
  const list = run.warnings.filter((one) => one.text).slice(-100).reverse();
  section.classList.toggle("warned", list.some((one) =>
    one.level === "warning"));
  section.replaceChildren(title, list.length ? el("ul", { class: "warned" },
    ...list.map((one) => el("li", { class: one.level === "warning" ?
      "warning" : "note" }, el("b", {}, one.level === "warning" ?
      "warning" : "note"), " ", shown(one.text),
    el("time", {}, clock(one.date))))) :
    el("p", { class: "none" }, "None."));
}
