/* serve.js: the page of `plimsoll serve`. Sends prompts to /v1/completions as
 * any client does, and shows each token with its probability. What comes from
 * the model is only ever put into the page as text. */
"use strict";

const MOST_CHOICES = 10;
const byId = (id) => document.getElementById(id);
let running = null; /* the AbortController of the request under way */
let tokens = []; /* { text, logprob, top, element } */

/* ---- words ---- */

function say(text, isWrong) {
  byId("status").textContent = text || "\u00a0";
  byId("status").classList.toggle("wrong", Boolean(isWrong));
}

/* A token on one line: what wouldn't show is written. */
function visible(text) {
  return text.replace(/\n/g, "\u21b5").replace(/\t/g, "\u21e5")
    .replace(/ /g, "\u2423");
}

function percent(logprob) {
  const share = 100 * Math.exp(logprob);
  return share >= 0.1 ? share.toFixed(1) + " %" : "< 0.1 %";
}

/* ---- tokens ---- */

/* In five steps from likely to unlikely; 0: as good as certain. */
function unlikeliness(logprob) {
  const bounds = [-0.1, -0.7, -1.6, -3, -5];
  let step = 0;
  while (step < bounds.length && logprob < bounds[step])
    step++;
  return step;
}

/* Characters of a token whose bytes aren't text stand behind its last one. */
function shownText(piece) {
  return piece.text.startsWith("bytes:") ? "" : piece.text;
}

function describe(piece) {
  const name = piece.text.trim() === "" ? visible(piece.text) : piece.text;
  if (piece.logprob === null)
    return `\u201c${name}\u201d: the first token has no probability.`;
  return `\u201c${name}\u201d: ${percent(piece.logprob)}.`;
}

function row(text, logprob, isOwn) {
  const tr = document.createElement("tr");
  const meter = document.createElement("meter");
  for (const content of [visible(text), percent(logprob)]) {
    const td = document.createElement("td");
    td.textContent = content;
    tr.append(td);
  }
  meter.value = Math.exp(logprob);
  meter.textContent = percent(logprob);
  const td = document.createElement("td");
  td.append(meter);
  tr.append(td);
  tr.classList.toggle("own", isOwn);
  return tr;
}

/* What else might have stood in a token's place. */
function choose(piece) {
  for (const other of tokens) {
    other.element.classList.toggle("chosen", other === piece);
    other.element.tabIndex = other === piece ? 0 : -1;
  }
  byId("token").textContent = describe(piece);
  const rows = Object.entries(piece.top || {})
    .sort((a, b) => b[1] - a[1])
    .map(([text, logprob]) => row(text, logprob, text === piece.text));
  byId("choices").tBodies[0].replaceChildren(...rows);
  byId("choices").hidden = rows.length === 0;
}

function move(event) {
  const at = tokens.findIndex((t) => t.element === document.activeElement);
  const to = {
    ArrowRight: at + 1,
    ArrowLeft: at - 1,
    Home: 0,
    End: tokens.length - 1,
  }[event.key];
  if (at < 0 || to === undefined || !tokens[to])
    return;
  event.preventDefault();
  tokens[to].element.focus();
}

function addToken(piece, isPrompt) {
  const element = document.createElement("span");
  element.className = "token";
  if (isPrompt)
    element.classList.add("prompt");
  if (piece.logprob !== null)
    element.classList.add("u" + unlikeliness(piece.logprob));
  element.textContent = shownText(piece);
  element.tabIndex = tokens.length === 0 ? 0 : -1;
  piece.element = element;
  element.setAttribute("role", "button");
  element.setAttribute("aria-label", describe(piece));
  element.addEventListener("mouseenter", () => choose(piece));
  element.addEventListener("focus", () => choose(piece));
  element.addEventListener("click", () => element.focus());
  tokens.push(piece);
  byId("text").append(element);
}

/* The text of a part that no whole token has: of several, one character. */
function addRest(choice, had) {
  const own = tokens.slice(had).map(shownText).join("");
  if (choice.text.length > own.length && choice.text.startsWith(own) &&
      tokens.length > 0)
    tokens[tokens.length - 1].element.textContent +=
      choice.text.slice(own.length);
}

function addChoice(choice, promptCount) {
  const had = tokens.length;
  const lists = choice.logprobs;
  if (!lists)
    return;
  lists.tokens.forEach((text, i) => addToken({
    text,
    logprob: lists.token_logprobs[i],
    top: lists.top_logprobs[i],
  }, tokens.length < promptCount));
  addRest(choice, had);
}

function clearTokens() {
  tokens = [];
  byId("text").replaceChildren();
  byId("choices").hidden = true;
  byId("token").textContent = "No token is chosen.";
}

/* ---- requests ---- */

function number(id) {
  const text = byId(id).value.trim();
  return text === "" ? null : Number(text);
}

function makeRequest(isScored) {
  const request = {
    prompt: byId("prompt").value,
    max_tokens: isScored ? 0 : number("max_tokens"),
    temperature: number("temperature"),
    top_k: number("top_k"),
    top_p: number("top_p"),
    seed: number("seed"),
    echo: true,
    logprobs: MOST_CHOICES,
    stream: !isScored,
    stream_options: { include_usage: true },
  };
  if (byId("stop").value !== "")
    request.stop = byId("stop").value.replace(/\\n/g, "\n");
  return request;
}

/* Calls `take` with each event of a stream. */
async function readEvents(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream())
    .getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done)
      return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data !== "[DONE]")
        take(JSON.parse(data));
    }
  }
}

async function complain(response) {
  let text = `${response.status} ${response.statusText}`;
  try {
    text = (await response.json()).error.message;
  } catch {
    /* an answer of another kind: its number says enough */
  }
  say(text, true);
}

function takePart(part, total) {
  for (const choice of part.choices) {
    addChoice(choice, total.prompt);
    total.reason = choice.finish_reason || total.reason;
  }
  total.usage = part.usage || total.usage;
}

function sumUp(total, seconds) {
  const scored = tokens.filter((t) => t.logprob !== null);
  const sum = scored.reduce((all, t) => all + t.logprob, 0);
  const mean = scored.length ? -sum / scored.length : 0;
  const written = total.usage ? total.usage.completion_tokens : 0;
  const why = total.reason === "stop" ? "It came to an end. " : "";
  say(why + `${tokens.length} tokens, ${written} of them written, in ` +
    `${seconds.toFixed(1)} s; ${mean.toFixed(3)} nats per token.`);
}

async function send(isScored) {
  const total = { prompt: isScored ? Infinity : 0 };
  const began = performance.now();
  running = new AbortController();
  const response = await fetch("v1/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(makeRequest(isScored)),
    signal: running.signal,
  });
  if (!response.ok) {
    await complain(response);
    return;
  }
  clearTokens();
  if (isScored)
    takePart(await response.json(), total);
  else
    await readEvents(response, (part) => takePart(part, total));
  if (total.usage)
    tokens.slice(0, total.usage.prompt_tokens)
      .forEach((t) => t.element.classList.add("prompt"));
  sumUp(total, (performance.now() - began) / 1000);
}

async function start(isScored) {
  if (running)
    return;
  say(isScored ? "Scoring" : "Writing");
  setBusy(true);
  try {
    await send(isScored);
  } catch (error) {
    const isStop = error.name === "AbortError";
    say(isStop ? "Stopped." : "The server doesn't answer.", !isStop);
  }
  running = null;
  setBusy(false);
}

function setBusy(isBusy) {
  byId("write").disabled = isBusy;
  byId("score").disabled = isBusy;
  byId("halt").disabled = !isBusy;
}

function halt() {
  if (running)
    running.abort();
}

async function showModel() {
  try {
    const [models, health] = await Promise.all([
      fetch("v1/models").then((r) => r.json()),
      fetch("health").then((r) => r.json()),
    ]);
    byId("model").textContent = `${models.data[0].id}: ${health.context} ` +
      `tokens of context, ${health.slots} texts at once`;
    const most = Math.min(64, Math.floor(health.context / 2));
    byId("max_tokens").value = String(most);
  } catch {
    say("The server doesn't answer.", true);
  }
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  start(false);
});
byId("score").addEventListener("click", () => start(true));
byId("halt").addEventListener("click", halt);
byId("text").addEventListener("keydown", move);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape")
    halt();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
    start(false);
});
showModel();
