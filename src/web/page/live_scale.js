// live_scale.js: the arithmetic of charts. Pure.

import { isNumber } from "./live_text.js";

// Round values between low and high, about `count` of them.
export function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((many) => many * power >= rough) * power;
  const values = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++)
    values.push(Number((i * step).toPrecision(12)));
  return values;
}

// An average that forgets, without the pull of its beginning to zero; what
// isn't a number is passed over.
export function smoothed(values, weight) {
  let sum = 0, scale = 0;
  return values.map((value) => {
    if (!isNumber(value)) return NaN;
    sum = weight * sum + (1 - weight) * value;
    scale = weight * scale + (1 - weight);
    return sum / scale;
  });
}

// The pixels of a line: no more than the lowest, the highest and the last value
// of each column. Gaps begin new pieces.
export function columns(xs, ys, scale, wide) {
  const pieces = [];
  let piece = null, column = null;
  const [from, to] = scale.range;
  const first = Math.max(0, firstAtLeast(xs, from) - 1);
  const last = Math.min(xs.length - 1, firstAtLeast(xs, to));
  const flush = () => {
    if (column) piece.push(...column.points());
    column = null;
  };
  for (let i = first; i <= last; i++) {
    if (!isNumber(ys[i]) || (scale.log && ys[i] <= 0)) {
      flush();
      piece = null;
      continue;
    }
    const x = scale.x(xs[i]), y = scale.y(ys[i]);
    if (!piece) pieces.push(piece = []);
    if (column && Math.floor(x) !== column.at) flush();
    if (!column) column = new Column(Math.floor(x));
    column.add(x, y);
  }
  flush();
  return wide > 0 ? pieces : [];
}

class Column {
  constructor(at) {
    this.at = at;
    this.all = [];
  }

  add(x, y) {
    if (this.all.length < 3) {
      this.all.push([x, y]);
      return;
    }
    this.all.push([x, y]);
    this.all.sort((a, b) => a[1] - b[1]);
    this.all.splice(1, this.all.length - 2);
    this.all.push([x, y]);
  }

  points() {
    return this.all.sort((a, b) => a[0] - b[0]);
  }
}

export function firstAtLeast(list, value) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The lowest and highest value of what is drawn within the range.
export function extent(series, range, log) {
  let low = Infinity, high = -Infinity;
  for (const one of series)
    for (let i = 0; i < one.x.length; i++) {
      const y = one.y[i];
      if (one.x[i] < range[0] || one.x[i] > range[1] || !isNumber(y) ||
          (log && y <= 0)) continue;
      const error = one.error && isNumber(one.error[i]) && !log ?
        one.error[i] : 0;
      low = Math.min(low, y - error);
      high = Math.max(high, y + error);
    }
  if (low > high) return log ? [0.1, 1] : [0, 1];
  return [low, high];
}

// Values that stand out: more than `times` the median of those before.
export function spikes(values, times) {
  const found = [];
  const window = [];
  values.forEach((value, i) => {
    if (!isNumber(value)) return;
    if (window.length >= 16) {
      const sorted = [...window].sort((a, b) => a - b);
      if (value > times * sorted[sorted.length >> 1]) found.push(i);
    }
    window.push(value);
    if (window.length > 48) window.shift();
  });
  return found;
}
