// live_text.js: elements and texts. Whatever comes from a run goes through
// `shown` and into a text node: nothing is ever taken for HTML.

export function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const UNSEEN = new RegExp("[\\u0000-\\u0008\\u000b-\\u001f" +
  "\\u007f-\\u009f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]", "g");

// Control characters and those that turn the direction of a text around
// become signs that can be seen.
export function shown(text) {
  return String(text).replace(
    UNSEEN,
    (sign) => {
      const code = sign.charCodeAt(0);
      if (code < 0x20) return String.fromCharCode(0x2400 + code);
      if (code === 0x7f) return "\u2421";
      return "⟨U+" + code.toString(16).toUpperCase().padStart(4, "0") + "⟩";
    },
  );
}

// ---- numbers ----

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

export function whole(value) {
  return isNumber(value) ? Math.round(value).toLocaleString("en-US") : "–";
}

// As many digits as a loss needs.
export function loss(value) {
  return isNumber(value) ? value.toFixed(4) : "–";
}

export function short(value) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return scientific(value);
  return String(Number(value.toPrecision(4)));
}

function scientific(value) {
  const size = Math.abs(value);
  for (const [unit, sign] of [[1e12, " T"], [1e9, " G"], [1e6, " M"]])
    if (size >= unit) return Number((value / unit).toPrecision(3)) + sign;
  return value.toExponential(1).replace("e-0", "e-");
}

export function count(value) {
  if (!isNumber(value)) return "–";
  for (const [unit, sign] of [[1e12, " T"], [1e9, " G"], [1e6, " M"],
    [1e4, " k"]]) {
    const size = sign === " k" ? 1e3 : unit;
    if (Math.abs(value) >= unit)
      return Number((value / size).toPrecision(3)) + sign;
  }
  return Math.round(value).toLocaleString("en-US");
}

// Decimal units, as `plimsoll plan` has them: "1.85 GB".
export function bytes(value) {
  if (!isNumber(value)) return "–";
  let unit = 0, size = value;
  const units = ["B", "kB", "MB", "GB", "TB"];
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return (unit === 0 ? String(size) : size.toPrecision(3)) + " " + units[unit];
}

export function duration(seconds) {
  if (!isNumber(seconds) || seconds < 0) return "–";
  if (seconds < 60) return seconds.toFixed(seconds < 10 ? 1 : 0) + " s";
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes + " min " + Math.floor(seconds % 60) + " s";
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return hours + " h " + (minutes % 60) + " min";
  return Math.floor(hours / 24) + " d " + (hours % 24) + " h";
}

export function percent(share) {
  return isNumber(share) && share >= 0 ? (100 * share).toFixed(1) + " %" :
    "–";
}

export function clock(date) {
  return isNumber(date) ? new Date(date * 1000).toLocaleString() : "";
}
