// live.js: the page: one view of all charts, panels of the chosen run.

import { el, shown, loss, short, count, duration, whole, isNumber, percent }
  from "./live_text.js";
import { followAll } from "./live_data.js";
import { Chart } from "./live_chart.js";
import { spikes } from "./live_scale.js";
import { drawLine } from "./live_line.js";
import { drawNow, drawTasks, drawSamples, drawConfig, drawDiffer, drawWarnings,
  phaseOf }
  from "./live_panels.js";

const byId = (id) => document.getElementById(id);
let runs = [];
let chosen = 0;
const hidden = new Set();

// ---- what all charts share ----

const view = {
  axis: "step", smooth: 0.8, log: false, range: null, whole: [0, 1],
  axisName() {
    return { step: "step", tokens: "tokens", time: "time" }[this.axis];
  },
  axisText(value) {
    if (this.axis === "time") return duration(value);
    return this.axis === "tokens" ? count(value) : whole(value);
  },
  zoomTo(range) {
    if (range) {
      const [a, b] = this.whole;
      range = [Math.max(a, range[0]), Math.min(b, range[1])];
      if (!(range[1] - range[0] > (b - a) * 1e-5)) return;
      if (range[0] <= a && range[1] >= b) range = null;
    }
    this.range = range;
    byId("reset").disabled = range === null;
    drawCharts();
  },
  zoomBy(factor, at) {
    const [a, b] = this.range || this.whole;
    const middle = at === null || at === undefined ? (a + b) / 2 : at;
    this.zoomTo([middle - (middle - a) * factor, middle + (b - middle) *
      factor]);
  },
  moveBy(distance) {
    if (!this.range) return;
    const [a, b] = this.range;
    const [low, high] = this.whole;
    const by = Math.min(high - b, Math.max(low - a, distance));
    this.zoomTo([a + by, b + by]);
  },
};

function xOf(run, step) {
  if (view.axis === "tokens") return run.tokensOf(step);
  return view.axis === "time" ? run.timeOf(step) : step;
}

function xsOf(run) {
  if (view.axis === "time") return run.updates.time;
  return view.axis === "tokens" ?
    run.updates.step.map((step) => run.tokensOf(step)) : run.updates.step;
}

// ---- charts ----

const charts = {};

function makeCharts() {
  const place = byId("charts");
  const make = (key, wish) => charts[key] = new Chart(place, view, wish);
  make("loss", { title: "Loss", log: true, y: loss,
    about: "Loss of each update, and of the evaluations with their standard " +
      "errors." });
  make("norm", { title: "Gradient norm", small: true, log: true, y: short,
    about: "Before clipping; spikes and skipped updates are marked." });
  make("speed", { title: "Tokens per second", small: true, y: count,
    tick: count });
  make("peak", { title: "Share of the peak", small: true, y: percent,
    tick: (value) => Number((100 * value).toPrecision(3)) + " %" });
  make("lr", { title: "Learning rate", small: true, y: short });
}

function nameOf(run, what) {
  return runs.length > 1 ? shown(run.name) + " " + what : what;
}

function visible() {
  return runs.filter((run) => !hidden.has(run.index));
}

function lineOf(run, what, y, smooth) {
  return { name: nameOf(run, what), kind: "line", run: run.index,
    x: xsOf(run), y, smooth };
}

function evalsOf(run, what, value, error, solo) {
  return { name: nameOf(run, what), kind: "points", run: run.index, solo,
    x: run.evals.map((one) => xOf(run, one.step)),
    y: run.evals.map((one) => one[value]),
    error: run.evals.map((one) => one[error]) };
}

function lossSeries(run) {
  const bits = run.evals.map((one) => one.bpb);
  const series = [lineOf(run, "train", run.updates.loss, true),
    { ...evalsOf(run, "validation", "val", "valError", runs.length === 1),
      also: bits.some(isNumber) ? { name: "bits per byte", y: bits } : null }];
  if (runs.length === 1)
    series.push({ ...evalsOf(run, "train, evaluated", "train", "trainError"),
      run: 4 });
  return series;
}

function normSeries(run) {
  const xs = xsOf(run);
  const { norm, skipped } = run.updates;
  const jumps = spikes(norm, 3);
  const lost = skipped.flatMap((is, i) => is ? [i] : []);
  return [lineOf(run, "gradient norm", norm, true),
    { name: nameOf(run, "spikes"), kind: "marks", shape: "spike",
      run: run.index, x: jumps.map((i) => xs[i]),
      y: jumps.map((i) => norm[i]) },
    { name: nameOf(run, "skipped"), kind: "marks", shape: "cross",
      run: run.index, x: lost.map((i) => xs[i]), y: lost.map(() => 0) }];
}

function speedOf(run) {
  const tokens = run.plan ? run.plan.update_tokens : NaN;
  return run.updates.ms.map((ms) => tokens / ms * 1000);
}

function peakOf(run) {
  const flops = run.plan ? run.plan.update_flops : NaN;
  const peak = (run.state.progress && run.state.progress.peak_flops) ||
    (run.plan && run.plan.peak_flops) || NaN;
  return run.updates.ms.map((ms) => flops / ms * 1000 / peak);
}

function findWhole() {
  let end = 0, begin = Infinity;
  for (const run of visible()) {
    const xs = xsOf(run);
    if (!xs.length) continue;
    begin = Math.min(begin, xs[0]);
    end = Math.max(end, xs[xs.length - 1]);
    const last = run.evals[run.evals.length - 1];
    if (last) end = Math.max(end, xOf(run, last.step) || 0);
    if (run.evals.length)
      begin = Math.min(begin, xOf(run, run.evals[0].step));
  }
  if (!isNumber(begin)) begin = 0;
  view.whole = [begin, end > begin ? end : begin + 1];
}

function drawCharts() {
  findWhole();
  const all = visible();
  charts.loss.show(all.flatMap(lossSeries));
  charts.norm.show(all.flatMap(normSeries));
  charts.speed.show(all.map((run) =>
    lineOf(run, "tokens/s", speedOf(run), true)));
  charts.peak.show(all.map((run) =>
    lineOf(run, "share", peakOf(run), true)));
  charts.lr.show(all.map((run) =>
    lineOf(run, "learning rate", run.updates.lr)));
}

// ---- runs ----

function drawRuns() {
  const nav = byId("runs");
  nav.hidden = runs.length < 2;
  if (nav.hidden || nav.children.length === runs.length) return;
  nav.replaceChildren(...runs.map((run) => {
    const box = el("input", { type: "checkbox", checked: true,
      "aria-label": "Show " + shown(run.name) + " in the charts" });
    const button = el("button", { type: "button", class: "run" +
      run.index % 8, "aria-pressed": run.index === chosen },
    el("span", { class: "swatch", "aria-hidden": true }), shown(run.name));
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(run.index);
      else hidden.add(run.index);
      drawCharts();
    });
    button.addEventListener("click", () => choose(run.index));
    return el("span", { class: "pick" }, box, button);
  }));
}

function choose(index) {
  chosen = index;
  document.querySelectorAll("#runs button").forEach((button, i) =>
    button.setAttribute("aria-pressed", String(i === chosen)));
  drawPanels();
}

function drawPanels() {
  const run = runs[chosen];
  drawNow(byId("now"), run);
  drawLineOf(run);
  drawDiffer(byId("differ"), runs);
  drawTasks(byId("tasks"), run);
  drawSamples(byId("samples"), run);
  drawConfig(byId("config"), runs, run);
  drawWarnings(byId("warnings"), run);
}

function drawLineOf(run) {
  const section = byId("line");
  const style = getComputedStyle(section);
  drawLine(section, run, Math.max(240, Math.floor(section.clientWidth -
    parseFloat(style.paddingLeft) - parseFloat(style.paddingRight))));
}

// ---- what is new ----

let drawn = "";
let told = null;

function tellNews(run) {
  const last = run.evals[run.evals.length - 1];
  const news = phaseOf(run) + (last ? ", step " + last.step +
    ": validation loss " + loss(last.val) + (isNumber(last.bpb) ? ", " +
      loss(last.bpb) + " bits per byte" : "") : "");
  const still = ["training", "evaluating", "saving", "sampling"];
  const quiet = still.includes(phaseOf(run)) ?
    news.slice(phaseOf(run).length) : news;
  if (quiet !== told) byId("told").textContent = news;
  told = quiet;
}

function hear(found, error) {
  const link = byId("link");
  link.textContent = error ? "not reachable, asking again" : "";
  document.body.classList.toggle("lost", Boolean(error));
  if (error || !found.length) return;
  runs = found;
  const run = runs[chosen];
  const version = runs.map((one) => one.version).join(" ");
  drawRuns();
  if (version !== drawn) {
    drawCharts();
    drawPanels();
  } else {
    drawNow(byId("now"), run);
    drawLineOf(run);
  }
  drawn = version;
  tellNews(run);
  document.title = (phaseOf(run) === "done" ? "✓ " : "") + shown(run.name) +
    ": " + loss(run.updates.loss[run.updates.loss.length - 1]) + " · Plimsoll";
}

// ---- controls ----

function listen() {
  byId("axis").addEventListener("change", (event) => {
    view.axis = event.target.value;
    view.zoomTo(null);
  });
  byId("smooth").addEventListener("input", (event) => {
    view.smooth = Number(event.target.value);
    byId("smoothed").textContent = view.smooth.toFixed(2);
    drawCharts();
  });
  byId("log").addEventListener("change", (event) => {
    view.log = event.target.checked;
    drawCharts();
  });
  byId("in").addEventListener("click", () => view.zoomBy(0.5));
  byId("out").addEventListener("click", () => view.zoomBy(2));
  byId("reset").addEventListener("click", () => view.zoomTo(null));
  addEventListener("resize", () => runs[chosen] && drawLineOf(runs[chosen]));
}

// The browser's storage may be closed to us: the choice is then this page's.
function remember(name) {
  try {
    if (name) localStorage.setItem("plimsoll-theme", name);
    return localStorage.getItem("plimsoll-theme");
  } catch {
    return name;
  }
}

function listenToTheme() {
  const button = byId("theme");
  const names = ["system", "light", "dark"];
  let name = names.includes(remember()) ? remember() : "system";
  const apply = () => {
    document.documentElement.dataset.theme = name;
    button.textContent = "Theme: " + name;
  };
  button.addEventListener("click", () => {
    name = names[(names.indexOf(name) + 1) % names.length];
    remember(name);
    apply();
  });
  apply();
}

// A token in the address has become a cookie: it needn't stay there.
function hideToken() {
  if (new URLSearchParams(location.search).has("token"))
    history.replaceState(null, "", location.pathname);
}

hideToken();
listenToTheme();
makeCharts();
listen();
followAll(hear);
