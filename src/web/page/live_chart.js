// live_chart.js: a chart of lines over a shared x axis: drawn as SVG, with a
// cursor, zoom by pointer and keyboard, and its numbers as a table.

import { el, svg, isNumber, short } from "./live_text.js";
import { ticks, columns, smoothed, extent } from "./live_scale.js";

const MARGIN = { left: 58, right: 22, top: 12, bottom: 26 };
const MOST_ROWS = 1000;

// view: what all charts share: { axis, smooth, log, range, zoomTo(range) };
// wish: { title, small, log, y (how a value reads), tick (on the axis),
// about }.
export class Chart {
  constructor(parent, view, wish) {
    this.view = view;
    this.wish = wish;
    this.series = [];
    this.cursor = null;
    this.drag = null;
    this.width = 600;
    this.height = wish.small ? 190 : 330;
    this.build(parent);
    this.listen();
  }

  build(parent) {
    const id = "chart-" + wishId(this.wish.title);
    this.picture = svg("svg", { tabindex: 0, role: "img", class: "plot",
      "aria-labelledby": id + "-title " + id + "-summary" });
    this.legend = el("ul", { class: "legend" });
    this.tip = el("div", { class: "tip", "aria-hidden": true, hidden: true });
    this.readout = el("output", { class: "unseen", "aria-live": "polite" });
    this.summary = el("p", { class: "unseen", id: id + "-summary" });
    this.table = el("div", { class: "scroll", tabindex: 0, role: "region",
      "aria-label": this.wish.title + " as a table" });
    this.details = el("details", { class: "numbers" },
      el("summary", {}, "Numbers"), this.table);
    this.frame = el("div", { class: "frame" }, this.picture, this.tip);
    parent.append(el("section", { class: "card chart" +
      (this.wish.small ? " small" : ""), id,
      "aria-labelledby": id + "-title" },
    el("div", { class: "chart-head" },
      el("h2", { id: id + "-title" }, this.wish.title), this.legend),
    this.frame, this.summary, this.readout, this.details));
    new ResizeObserver(() => this.resize()).observe(this.frame);
    this.details.addEventListener("toggle", () => this.fillTable());
  }

  resize() {
    const width = Math.round(this.frame.clientWidth);
    if (width > 0 && width !== this.width) {
      this.width = width;
      this.draw();
    }
  }

  // series: [{ name, kind: "line" | "points" | "marks", run, solo, x, y,
  // error, also, shape }]; also: what is said beside each value and not drawn:
  // { name, y }
  show(series) {
    this.series = series;
    this.draw();
    this.fillTable();
  }

  // ---- scales ----

  scale() {
    const { left, right, top, bottom } = MARGIN;
    const range = this.view.range || this.view.whole;
    const log = this.view.log && this.wish.log;
    const drawn = this.series.filter((one) => one.kind !== "marks");
    let [low, high] = extent(drawn, range, log);
    if (log) [low, high] = [Math.log10(low), Math.log10(high)];
    const pad = (high - low || Math.abs(high) || 1) * 0.06;
    low -= low === 0 ? 0 : pad;
    high += pad;
    const wide = this.width - left - right;
    const tall = this.height - top - bottom;
    const span = range[1] - range[0] || 1;
    return {
      range, log, low, high,
      x: (value) => left + (value - range[0]) / span * wide,
      y: (value) => top + tall - ((log ? Math.log10(value) : value) - low) /
        (high - low) * tall,
      back: (pixel) => range[0] + (pixel - left) / wide * span,
    };
  }

  // ---- drawing ----

  draw() {
    const scale = this.scale();
    this.last = scale;
    const plot = svg("g", { "clip-path": "url(#" + this.clipId() + ")" });
    for (const one of this.series) plot.append(...this.drawSeries(one, scale));
    this.over = svg("g", { class: "over" });
    this.picture.setAttribute("viewBox", "0 0 " + this.width + " " +
      this.height);
    this.picture.setAttribute("height", this.height);
    this.picture.replaceChildren(this.clip(), ...this.grid(scale), plot,
      this.over);
    this.drawCursor();
    this.drawLegend();
    this.sayWhatIsThere();
  }

  clipId() {
    return "clip-" + wishId(this.wish.title);
  }

  clip() {
    return svg("clipPath", { id: this.clipId() }, svg("rect", {
      x: MARGIN.left, y: 0, height: this.height,
      width: Math.max(1, this.width - MARGIN.left - MARGIN.right) }));
  }

  grid(scale) {
    const parts = [];
    const bottom = this.height - MARGIN.bottom;
    const many = Math.max(2, Math.floor(this.width / 110));
    for (const value of ticks(scale.low, scale.high, this.wish.small ? 4 : 6)) {
      const real = scale.log ? 10 ** value : value;
      const y = scale.y(real);
      parts.push(svg("path", { class: "grid", d: "M" + MARGIN.left + " " + y +
        "H" + (this.width - MARGIN.right) }),
      svg("text", { class: "tick", x: MARGIN.left - 8, y: y + 4,
        "text-anchor": "end" }, (this.wish.tick || short)(real)));
    }
    for (const value of ticks(scale.range[0], scale.range[1], many)) {
      const x = scale.x(value);
      parts.push(svg("path", { class: "grid", d: "M" + x + " " + MARGIN.top +
        "V" + bottom }),
      svg("text", { class: "tick", x, y: bottom + 18,
        "text-anchor": "middle" }, this.view.axisText(value)));
    }
    parts.push(svg("path", { class: "base", d: "M" + MARGIN.left + " " +
      bottom + "H" + (this.width - MARGIN.right) }));
    return parts;
  }

  drawSeries(one, scale) {
    const look = "run" + one.run % 8 + (one.solo ? " solo" : "");
    if (one.kind === "marks") return this.drawMarks(one, scale, look);
    if (one.kind === "points") return this.drawPoints(one, scale, look);
    const wide = this.width - MARGIN.left - MARGIN.right;
    const raw = columns(one.x, one.y, scale, wide);
    if (!one.smooth || this.view.smooth === 0)
      return [svg("path", { class: "curve " + look, d: path(raw) })];
    const calm = smoothed(one.y, this.view.smooth);
    return [svg("path", { class: "curve faint " + look, d: path(raw) }),
      svg("path", { class: "curve " + look,
        d: path(columns(one.x, calm, scale, wide)) })];
  }

  drawPoints(one, scale, look) {
    const parts = [];
    const line = [];
    one.x.forEach((value, i) => {
      if (!isNumber(one.y[i]) || (scale.log && one.y[i] <= 0)) return;
      const x = scale.x(value), y = scale.y(one.y[i]);
      line.push([x, y]);
      const error = one.error ? one.error[i] : NaN;
      if (isNumber(error) && !(scale.log && one.y[i] <= error))
        parts.push(svg("path", { class: "error " + look,
          d: "M" + x + " " + scale.y(one.y[i] - error) + "V" +
            scale.y(one.y[i] + error) }));
      if (one.x.length <= 200)
        parts.push(svg("circle", { class: "dot " + look, cx: x, cy: y,
          r: 3.2 }));
    });
    parts.unshift(svg("path", { class: "curve dashed " + look,
      d: path([line]) }));
    return parts;
  }

  // Along the lower edge (skipped) or at their place (spikes).
  drawMarks(one, scale, look) {
    const bottom = this.height - MARGIN.bottom;
    return one.x.map((value, i) => {
      const x = scale.x(value);
      const d = one.shape === "cross" ?
        "M" + (x - 4) + " " + (bottom - 11) + "l8 8m0 -8l-8 8" :
        "M" + x + " " + (scale.y(one.y[i]) - 6) + "l-5 -9h10z";
      return svg("path", { class: "flag " + one.shape + " " + look, d },
        svg("title", {}, one.name + " at " + this.view.axisText(value)));
    });
  }

  drawLegend() {
    const alone = this.series.filter((one) => one.kind !== "marks").length < 2;
    this.legend.replaceChildren(...this.series
      .filter((one) => one.kind === "marks" ? one.x.length : !alone)
      .map((one) => el("li", { class: "run" + one.run % 8 + " key-" +
        (one.shape || one.kind) + (one.solo ? " solo" : "") },
      el("span", { class: "swatch", "aria-hidden": true }), one.name +
        (one.kind === "marks" ? " (" + one.x.length + ")" : ""))));
  }

  sayWhatIsThere() {
    const parts = this.series.filter((one) => one.kind !== "marks")
      .map((one) => {
        const last = one.y.length ? one.y[one.y.length - 1] : NaN;
        return one.name + ": " + one.x.length + " values, the last is " +
          this.wish.y(last) + this.alsoAt(one, one.y.length - 1);
      });
    this.summary.textContent = (this.wish.about || "") + " " +
      parts.join("; ") + ".";
  }

  alsoAt(one, i) {
    return one.also && isNumber(one.also.y[i]) ? ", " +
      this.wish.y(one.also.y[i]) + " " + one.also.name : "";
  }

  // ---- the numbers ----

  fillTable() {
    if (!this.details.open) return;
    const range = this.view.range || this.view.whole;
    this.table.replaceChildren(...this.series
      .filter((one) => one.kind !== "marks")
      .map((one) => this.tableOf(one, range)));
  }

  tableOf(one, range) {
    let rows = [];
    one.x.forEach((x, i) => {
      if (x >= range[0] && x <= range[1]) rows.push(i);
    });
    const all = rows.length;
    const every = Math.ceil(all / MOST_ROWS);
    if (every > 1) rows = rows.filter((_, i) => i % every === 0);
    const head = [this.view.axisName(), one.name];
    const cells = [one.y];
    if (one.error) {
      head.push("standard error");
      cells.push(one.error);
    }
    if (one.also) {
      head.push(one.also.name);
      cells.push(one.also.y);
    }
    return el("table", { "data-series": one.name, "data-every": every },
      el("caption", {}, one.name + (every > 1 ? ", every " + every +
        "th of " + all + " values: zoom in for the others" : "")),
      el("thead", {}, el("tr", {},
        ...head.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...rows.map((i) => el("tr", {},
        el("th", { scope: "row" }, this.view.axisText(one.x[i])),
        ...cells.map((cell) => el("td", { "data-value": cell[i] },
          this.wish.y(cell[i])))))));
  }

  // ---- cursor ----

  setCursor(x) {
    this.cursor = x;
    this.drawCursor();
  }

  drawCursor() {
    if (!this.over) return;
    this.over.replaceChildren();
    this.tip.hidden = this.cursor === null;
    if (this.drag) this.drawDrag();
    if (this.cursor === null) return;
    const x = this.last.x(this.cursor);
    this.over.append(svg("path", { class: "cursor", d: "M" + x + " " +
      MARGIN.top + "V" + (this.height - MARGIN.bottom) }));
    const rows = [this.view.axisName() + " " + this.view.axisText(this.cursor)];
    for (const one of this.series) {
      const i = nearest(one.x, this.cursor);
      if (i < 0 || one.kind === "marks") continue;
      rows.push(one.name + " " + this.wish.y(one.y[i]) + (one.error &&
        isNumber(one.error[i]) ? " ± " + this.wish.y(one.error[i]) : "") +
        this.alsoAt(one, i));
      if (isNumber(one.y[i]))
        this.over.append(svg("circle", { class: "dot run" + one.run % 8 +
          (one.solo ? " solo" : ""), r: 4, cx: this.last.x(one.x[i]),
        cy: this.last.y(one.y[i]) }));
    }
    this.tip.replaceChildren(...rows.map((row) => el("div", {}, row)));
    const left = x > this.width / 2 ? x - this.tip.offsetWidth - 12 : x + 12;
    this.tip.style.transform = "translate(" + Math.round(left) + "px, 14px)";
    this.spoken = rows.join(", ");
  }

  drawDrag() {
    const [a, b] = this.drag.map((value) => this.last.x(value));
    this.over.append(svg("rect", { class: "drag", x: Math.min(a, b),
      width: Math.abs(a - b), y: MARGIN.top,
      height: this.height - MARGIN.top - MARGIN.bottom }));
  }

  // ---- pointer and keys ----

  at(event) {
    const box = this.picture.getBoundingClientRect();
    return this.last.back((event.clientX - box.left) * this.width / box.width);
  }

  listen() {
    const on = (name, act) => this.picture.addEventListener(name, act);
    on("pointermove", (event) => this.moved(event));
    on("pointerleave", () => this.drag || this.setCursor(null));
    on("pointerdown", (event) => this.pressed(event));
    on("pointerup", (event) => this.released(event));
    on("pointercancel", () => this.endDrag());
    on("dblclick", () => this.view.zoomTo(null));
    on("keydown", (event) => this.key(event));
    on("blur", () => this.setCursor(null));
    this.picture.addEventListener("wheel", (event) => this.wheeled(event),
      { passive: false });
  }

  moved(event) {
    if (this.drag) this.drag[1] = this.at(event);
    this.setCursor(this.at(event));
  }

  pressed(event) {
    if (event.button !== 0 || event.pointerType === "touch") return;
    this.drag = [this.at(event), this.at(event)];
    this.picture.setPointerCapture(event.pointerId);
  }

  released() {
    const drag = this.drag;
    this.endDrag();
    if (!drag) return;
    const [a, b] = drag.map((value) => this.last.x(value));
    if (Math.abs(a - b) > 6)
      this.view.zoomTo([Math.min(...drag), Math.max(...drag)]);
  }

  endDrag() {
    this.drag = null;
    this.drawCursor();
  }

  // Over a page the wheel scrolls; over a chart that was chosen it zooms.
  wheeled(event) {
    if (document.activeElement !== this.picture && !event.ctrlKey) return;
    event.preventDefault();
    this.view.zoomBy(event.deltaY < 0 ? 0.8 : 1.25, this.at(event));
  }

  key(event) {
    const acts = {
      "+": () => this.view.zoomBy(0.5, this.cursor),
      "=": () => this.view.zoomBy(0.5, this.cursor),
      "-": () => this.view.zoomBy(2, this.cursor),
      "0": () => this.view.zoomTo(null),
      Escape: () => this.view.zoomTo(null),
      ArrowLeft: () => this.step(event.shiftKey, -1),
      ArrowRight: () => this.step(event.shiftKey, 1),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  step(moves, sign) {
    const [a, b] = this.view.range || this.view.whole;
    if (moves) {
      this.view.moveBy(sign * (b - a) / 4);
      return;
    }
    const from = this.cursor === null ? (sign > 0 ? a : b) : this.cursor;
    const next = from + sign * (b - a) / 100;
    this.setCursor(Math.min(b, Math.max(a, next)));
    this.readout.textContent = this.spoken;
  }
}

function wishId(title) {
  return title.toLowerCase().replace(/[^a-z]+/g, "-");
}

function nearest(list, value) {
  let low = 0, high = list.length - 1;
  if (high < 0) return -1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (list[middle] <= value) low = middle;
    else high = middle;
  }
  return Math.abs(list[low] - value) <= Math.abs(list[high] - value) ?
    low : high;
}

// Pieces of lines as an SVG path.
function path(pieces) {
  return pieces.map((piece) => piece.map(([x, y], i) => (i ? "L" : "M") +
    x.toFixed(1) + " " + y.toFixed(1)).join("")).join("");
}
