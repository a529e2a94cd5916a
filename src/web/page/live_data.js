// live_data.js: what is known of each run, followed by asking for what is new.
// One /api/state tells how large the files are; only what grew is fetched.

import { isNumber } from "./live_text.js";

const MOST_BYTES = 3e6; // of metrics to hold: more are thinned out
const MOST_UPDATES = 40000;
const MOST_SAMPLES = 200;

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(answer.status + " " + path);
  return answer.text();
}

// The lines of an answer: the first is the server's own.
function parseLines(text) {
  const lines = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    try {
      const value = JSON.parse(line);
      if (value && typeof value === "object") lines.push(value);
    } catch {
      // not a line of a run: somebody wrote into its file
    }
  }
  return { head: lines[0] || {}, lines: lines.slice(1) };
}

function number(value) {
  return isNumber(value) ? value : NaN;
}

export class Run {
  constructor(index) {
    this.index = index;
    this.state = {};
    this.plan = null;
    this.planStamp = null;
    this.warnings = [];
    this.warningsNext = 0;
    this.samples = [];
    this.samplesNext = -1;
    this.samplesFile = null;
    this.tasks = [];
    this.tasksNext = 0;
    this.forget();
  }

  forget() {
    this.next = 0;
    this.file = null;
    this.every = 1;
    this.updates = {
      step: [], loss: [], lr: [], norm: [], ms: [], skipped: [], time: [],
    };
    this.evals = [];
    this.version = (this.version || 0) + 1;
  }

  get name() {
    return this.state.name || "run " + this.index;
  }

  // ---- what is derived ----

  tokensOf(step) {
    return step * ((this.plan && this.plan.update_tokens) || NaN);
  }

  // Seconds of training before `step`.
  timeOf(step) {
    const { step: steps, time, ms } = this.updates;
    let low = 0, high = steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle] < step) low = middle + 1;
      else high = middle;
    }
    if (low < steps.length) return time[low] - ms[low] / 1000;
    return steps.length ? time[steps.length - 1] : 0;
  }

  // ---- following ----

  async follow(state) {
    this.state = state;
    await this.followPlan();
    await this.followMetrics();
    await this.followSamples();
    await this.followTasks();
    await this.followWarnings();
  }

  async followPlan() {
    const stamp = this.state.plan ? this.state.plan.changed :
      "saved " + this.state.latest;
    if (stamp === this.planStamp) return;
    const path = this.state.plan ? "/api/plan" : "/api/saved";
    if (!this.state.plan && this.state.latest === null) return;
    try {
      const value = JSON.parse(await ask(path + "?run=" + this.index));
      this.plan = this.state.plan ? value : asPlan(value);
      this.planStamp = stamp;
      this.version++;
    } catch {
      // it is being written, or was removed: the next time will tell
    }
  }

  async followMetrics() {
    const bytes = this.state.metrics ? this.state.metrics.bytes : 0;
    if (bytes < this.next) this.forget();
    while (this.next === 0 && bytes / this.every > MOST_BYTES) this.every *= 2;
    while (this.next < bytes) {
      const { head, lines } = parseLines(await ask("/api/metrics?run=" +
        this.index + "&from=" + this.next + "&every=" + this.every));
      if ((this.file !== null && head.file !== this.file) ||
          head.from !== this.next) {
        this.forget(); // it is another file: from its beginning, next time
        return;
      }
      this.file = head.file;
      for (const line of lines) this.take(line);
      if (lines.length) this.version++;
      if (!(head.next > this.next)) return;
      this.next = head.next;
    }
  }

  take(line) {
    if (!isNumber(line.step)) return;
    if ("loss" in line) this.takeUpdate(line);
    else if ("val_loss" in line) this.takeEval(line);
  }

  takeUpdate(line) {
    const u = this.updates;
    while (u.step.length && u.step[u.step.length - 1] >= line.step)
      for (const list of Object.values(u)) list.pop();
    const before = u.step.length ? u.time[u.time.length - 1] : 0;
    const since = u.step.length ? line.step - u.step[u.step.length - 1] : 1;
    const ms = number(line.step_ms);
    u.step.push(line.step);
    u.loss.push(number(line.loss));
    u.lr.push(number(line.lr));
    u.norm.push(number(line.grad_norm));
    u.ms.push(ms);
    u.skipped.push(Boolean(line.skipped));
    u.time.push(before + (isNumber(ms) ? since * ms / 1000 : 0));
    if (u.step.length > MOST_UPDATES) this.thinOut();
  }

  takeEval(line) {
    while (this.evals.length &&
        this.evals[this.evals.length - 1].step >= line.step)
      this.evals.pop();
    this.evals.push({
      step: line.step,
      train: number(line.train_loss), trainError: number(line.train_error),
      val: number(line.val_loss), valError: number(line.val_error),
      bpb: number(line.val_bpb),
    });
  }

  thinOut() {
    this.every *= 2;
    const u = this.updates;
    const keep = u.step.map((step, i) => step % this.every === 0 ||
      u.skipped[i]);
    for (const key of Object.keys(u))
      u[key] = u[key].filter((_, i) => keep[i]);
  }

  async followSamples() {
    const bytes = this.state.samples ? this.state.samples.bytes : 0;
    if (bytes === 0 || bytes === this.samplesNext) return;
    const where = this.samplesNext > 0 && bytes > this.samplesNext ?
      "&from=" + this.samplesNext : "&tail=500000";
    const { head, lines } = parseLines(await ask("/api/samples?run=" +
      this.index + where));
    const anew = where.startsWith("&tail") || head.file !== this.samplesFile;
    this.samples = (anew ? [] : this.samples).concat(lines)
      .slice(-MOST_SAMPLES);
    this.samplesFile = head.file;
    this.samplesNext = head.next;
    this.version++;
  }

  // The last results are enough: how tasks went before is TensorBoard's.
  async followTasks() {
    const bytes = this.state.tasks ? this.state.tasks.bytes : 0;
    if (bytes === this.tasksNext) return;
    const { head, lines } = parseLines(await ask("/api/tasks?run=" +
      this.index + "&tail=200000"));
    this.tasks = lines.filter((line) => isNumber(line.step));
    this.tasksNext = head.next || 0;
    this.version++;
  }

  async followWarnings() {
    const bytes = this.state.warnings ? this.state.warnings.bytes : 0;
    if (bytes === this.warningsNext) return;
    const { head, lines } = parseLines(await ask("/api/warnings?run=" +
      this.index));
    this.warnings = lines;
    this.warningsNext = head.next || 0;
    this.version++;
  }
}

// What a run's checkpoint says, where it has no plan.json: of a run by an
// earlier version.
function asPlan(saved) {
  const config = {};
  const wereSet = new Set(saved.set || []);
  for (const [key, value] of Object.entries(saved.config || {}))
    config[key] = { value, from: wereSet.has(key) ? "set" : "default" };
  const size = (key) => Number((saved.config || {})[key]);
  return {
    config,
    max_iters: size("max_iters"),
    update_tokens: size("batch_size") * size("block_size") *
      size("gradient_accumulation_steps"),
  };
}

// Asks for ever; `tell` hears after each time, with an error or null.
export function followAll(tell) {
  const runs = [];
  async function once() {
    const state = JSON.parse(await ask("/api/state"));
    for (const [index, one] of state.runs.entries()) {
      if (!runs[index]) runs[index] = new Run(index);
      await runs[index].follow(one);
    }
    return state;
  }
  async function loop() {
    let error = null;
    try {
      await once();
    } catch (trouble) {
      error = trouble;
    }
    tell(runs, error);
    const going = runs.some((run) => run.state.running);
    const wait = document.hidden ? 10000 : error ? 3000 : going ? 1000 : 3000;
    setTimeout(loop, wait);
  }
  loop();
}
