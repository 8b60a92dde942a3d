// The page: everything it shows comes from the API, with the token that was entered. Text from the server is put into the page
// as text and never as HTML.

import { verifyReceipt } from "/page/verifier.js";

const byId = (id) => document.getElementById(id);
let token = "";
let models = [];
/** The request whose preview is shown; null while none is. */
let previewed = null;
/** Counts what ends a preview, so that an answer that comes later is not shown. */
let edits = 0;
let lastReceipt = null;
let watching;

/** Calls the API; a problem becomes an error whose message can be shown. */
async function call(path, { method = "GET", body, key, accept = "application/json" } = {}) {
  const headers = { Accept: accept };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ title: `the server answered ${response.status}` }));
  const error = new Error([problem.title, problem.detail, problem.advice].filter(Boolean).join(": "));
  error.status = response.status;
  throw error;
}

const callJson = async (path, options) => (await call(path, options)).json();

function notice(text, bad = false) {
  byId("notice").textContent = text;
  byId("notice").classList.toggle("bad", bad);
}

/** Runs what a person asked for, and shows what went wrong. */
async function attempt(work) {
  try {
    notice("");
    await work();
  } catch (error) {
    if (error.status === 401) {
      byId("sign-in").hidden = false;
      byId("token").focus();
    }
    notice(error.message, true);
  }
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function facts(list, pairs) {
  list.replaceChildren();
  for (const [name, value] of pairs) {
    if (value === undefined || value === null) continue;
    list.append(element("dt", name), element("dd", String(value)));
  }
}

const number = (value) => (value === null || value === undefined ? "unknown" : value === 0 ? "0" : Math.abs(value) < 1e-3 ? value.toExponential(1) : value.toLocaleString("en"));

async function loadModels() {
  models = (await callJson("/v1/models")).models;
  byId("sign-in").hidden = true;
  const rows = models.map((model) => {
    const row = element("tr");
    row.append(
      element("th", model.name, { scope: "row" }),
      element("td", model.family),
      element("td", number(model.rows), { class: "number" }),
      element("td", number(model.forgotten), { class: "number" }),
      element("td", number(model.bound), { class: "number" }),
      element("td", number(model.exports_in_use), { class: "number" }),
      element("td", time(model.changed_at)),
      element("td", policy(model.policy), { class: "words" }),
    );
    return row;
  });
  byId("model-rows").replaceChildren(...rows);
  for (const select of [byId("model"), byId("log-model"), byId("audit-model")]) {
    const chosen = select.selectedIndex < 0 ? null : select.value;
    select.replaceChildren(...models.map((model) => element("option", model.name, { value: model.name })));
    if (select === byId("model")) select.append(element("option", "all models", { value: "" }));
    if ([...select.options].some((option) => option.value === chosen)) select.value = chosen;
    else if (select === byId("model")) dismissPreview();
  }
  await Promise.all([loadWaiting(), loadLog(), loadAudit()]);
}

const time = (text) => text.slice(0, 19).replace("T", " ");

/** When forgotten rows are overwritten, and when parameters may be published. */
function policy(rules) {
  if (!rules) return "unknown";
  const overwritten = rules.settle_after > 1 ? `rows are overwritten after ${rules.settle_after} or ${rules.settle_within_seconds} s` : "rows are overwritten at once";
  return rules.minimum_batch > 1 ? `${overwritten}; exports wait for ${rules.minimum_batch} requests` : overwritten;
}

/** A link that fetches with the token, which a plain link cannot carry, and saves what came. */
function fileLink(text, path, name, accept) {
  const link = element("a", text, { href: path });
  link.addEventListener("click", (event) => {
    event.preventDefault();
    attempt(async () => {
      const address = URL.createObjectURL(await (await call(path, { accept })).blob());
      element("a", "", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    });
  });
  return link;
}

/** Links to what shows that a receipt is in the log. `named` says which receipt, for those who hear the page. */
function receiptFiles(id, named) {
  const path = `/v1/receipts/${encodeURIComponent(id)}`;
  const link = (text, rest, name, accept) => {
    const made = fileLink(text, path + rest, name, accept);
    made.append(element("span", ` of ${named}`, { class: "spoken" }));
    return made;
  };
  return [
    link("Receipt", "", `${id}.cose`, "application/cose"),
    link("Proofs of inclusion and consistency", "/proofs", `${id}.proofs.json`, "application/json"),
    link("Evidence pack", "/evidence", `${id}.evidence.zip`, "application/zip"),
  ];
}

async function loadWaiting() {
  const { erasures } = await callJson("/v1/erasures");
  byId("nothing-waits").hidden = erasures.length > 0;
  const items = erasures.map((open) => {
    const item = element("li", `${open.id}, ${open.model ?? "all models"}: ${open.status.replace("_", " ")}`);
    if (open.status === "awaiting_approval") {
      const approve = element("button", `Approve ${open.id}`);
      approve.addEventListener("click", () =>
        attempt(async () => {
          const model = open.model ? `?model=${encodeURIComponent(open.model)}` : "";
          show(await callJson(`/v1/erasures/${encodeURIComponent(open.id)}/approval${model}`, { method: "POST" }));
          await loadModels();
        }),
      );
      item.append(element("br"), approve);
    }
    return item;
  });
  byId("waiting-list").replaceChildren(...items);
}

async function loadLog() {
  const model = byId("log-model").value;
  if (!model) return;
  const known = models.find((found) => found.name === model);
  const from = Math.max(0, (known?.receipts ?? 0) - 200);
  const page = await callJson(`/v1/log/receipts?model=${encodeURIComponent(model)}&from=${from}&limit=200`);
  const items = page.receipts.toReversed().map((receipt) => {
    const item = element("li");
    const received = receipt.times.received_at;
    item.append(
      element("time", time(received), { datetime: received }),
      `${receipt.sequence}: ${receipt.kind}, ${receipt.outcome.replace("_", " ")}` + (receipt.rows.removed ? `, ${receipt.rows.removed} rows` : ""),
    );
    const files = element("span", undefined, { class: "files" });
    files.append(...receiptFiles(receipt.id, `receipt ${receipt.sequence}`));
    item.append(files);
    return item;
  });
  byId("timeline").replaceChildren(...items);
  let sum = 0;
  plot(byId("plot-forgotten"), page.receipts.map((receipt) => (sum += receipt.rows.removed ?? 0)), String);
  const bounds = page.receipts.map((receipt) => receipt.bound?.distance).filter((value) => value > 0);
  plot(byId("plot-bound"), bounds.map(Math.log10), (power) => (10 ** power).toExponential(1));
  const waits = page.receipts.filter((receipt) => receipt.times.forgotten_at);
  plot(byId("plot-latency"), waits.map(({ times }) => Date.parse(times.forgotten_at) - Date.parse(times.received_at)), String);
}

async function loadAudit() {
  const model = byId("audit-model").value;
  if (!model) return;
  const audit = await callJson(`/v1/models/${encodeURIComponent(model)}/audit`).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });
  byId("audit-told").textContent = audit
    ? `On record since ${time(audit.recorded_at)}, receipt ${audit.receipt}.`
    : "No audit is on record. The command makes one: efface audit MODEL --sample 20 --record";
  const pictures = (audit?.figures ?? []).map(({ caption, svg }) => {
    const figure = element("figure", undefined, { class: "drawn" });
    // Parsing runs no script, and the content security policy allows none of its own.
    figure.append(element("figcaption", caption), new DOMParser().parseFromString(svg, "text/html").querySelector("svg"));
    return figure;
  });
  byId("audit-pictures").replaceChildren(...pictures);
  const rows = (audit?.results ?? []).map((result) => {
    const row = element("tr");
    const passed = result.passed === undefined || result.passed === null ? "a measurement" : result.passed ? "yes" : "no";
    row.append(element("th", result.test, { scope: "row" }), element("td", number(result.value), { class: "number" }), element("td", passed));
    return row;
  });
  byId("audit-rows").replaceChildren(...rows);
  byId("audit-table").hidden = rows.length === 0;
}

/** Draws values from left to right, with the least and the largest written at the side. */
function plot(svg, values, label) {
  const space = "http://www.w3.org/2000/svg";
  svg.setAttribute("viewBox", "0 0 400 140");
  svg.replaceChildren();
  if (values.length === 0) return;
  const least = Math.min(...values);
  const most = Math.max(...values);
  const x = (at) => 50 + (340 * at) / (values.length - 1 || 1);
  const y = (value) => 125 - (110 * (value - least)) / (most - least || 1);
  const line = document.createElementNS(space, "path");
  line.setAttribute("d", values.map((value, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("") + (values.length === 1 ? "h4" : ""));
  svg.append(line);
  for (const value of least === most ? [least] : [least, most]) {
    const text = document.createElementNS(space, "text");
    text.setAttribute("x", "4");
    text.setAttribute("y", String(y(value) + 4));
    text.textContent = label(value);
    svg.append(text);
  }
}

function question() {
  const names = byId("names").value.trim();
  const rows = byId("kind").value === "rows";
  const body = rows ? { rows: names.split(/[\s,]+/).filter(Boolean) } : { subject: names };
  const model = byId("model").value;
  const path = model ? `/v1/models/${encodeURIComponent(model)}/erasures` : "/v1/erasures";
  const key = byId("key").value.trim() || crypto.randomUUID();
  return { path, body, key, model };
}

/** Describes a request: the number of rows, the person or the ids, the model. */
function wording({ body, model }, rows) {
  const shown = body.rows && (body.rows.length > 5 ? `${body.rows.slice(0, 5).join(", ")} and ${body.rows.length - 5} more` : body.rows.join(", "));
  const whose = body.rows ? `named ${shown}` : `of ${body.subject}`;
  return `${rows} ${rows === 1 ? "row" : "rows"} ${whose} in ${model || "all models"}`;
}

/** Removes the preview: what it says is not what the form asks any more, or was sent. */
function dismissPreview() {
  edits += 1;
  previewed = null;
  byId("preview").hidden = true;
}

function showPreview(request, answer) {
  const rows = answer.models.reduce((sum, part) => sum + (part.forgotten ?? 0), 0);
  const preview = Object.fromEntries(answer.models.filter((part) => part.preview).map((part) => [part.model, part.preview]));
  byId("preview-title").textContent = `What would happen to ${wording(request, rows)}`;
  byId("confirm").textContent = rows > 0 ? `Erase ${wording(request, rows)}` : `Record that there are ${wording(request, "no")}`;
  facts(byId("preview-facts"), summary({ ...answer, id: request.key }));
  previewed = { ...request, body: { ...request.body, preview } };
  byId("preview").hidden = false;
  byId("confirm").focus();
}

function summary(answer) {
  const pairs = [["Reference", answer.id], ["Status", answer.status.replace("_", " ")]];
  for (const part of answer.models) {
    const of = answer.models.length > 1 ? `${part.model}: ` : "";
    pairs.push(
      [`${of}outcome`, part.problem ? part.problem.detail : part.outcome?.replace("_", " ")],
      [`${of}rows`, part.forgotten],
      [`${of}claim`, part.claim],
      [`${of}distance to retraining, at most`, part.bound === undefined ? undefined : number(part.bound)],
      [`${of}largest leverage`, part.leverage === undefined ? undefined : part.leverage.toFixed(3)],
      [`${of}parameters move by`, part.moved === undefined ? undefined : `${(100 * part.moved).toPrecision(2)} % of their norm`],
      [`${of}exports ${answer.status === "dry_run" ? "that will be withdrawn" : "withdrawn"}`, part.withdrawn],
      [`${of}receipt`, part.receipt?.id],
      [`${of}proof of the person (keep it, it is shown once)`, part.subject_opening],
    );
  }
  return pairs;
}

function show(answer) {
  byId("outcome").hidden = false;
  facts(byId("outcome-facts"), summary(answer));
  lastReceipt = answer.models.find((part) => part.receipt) ?? null;
  byId("check").hidden = lastReceipt === null;
  const items = answer.models.filter((part) => part.receipt).map((part) => {
    const item = element("li");
    item.append(...receiptFiles(part.receipt.id, `the receipt of ${part.model}`));
    return item;
  });
  byId("outcome-files").replaceChildren(...items);
  watch(answer);
}

/** Asks again until a request that is being done, or waits for somebody, is done. */
function watch(answer) {
  clearTimeout(watching);
  if (answer.status !== "running" && answer.status !== "awaiting_approval") return;
  watching = setTimeout(async () => {
    const now = await callJson(`/v1/erasures/${encodeURIComponent(answer.id)}`).catch(() => answer);
    if (now.status === answer.status) return watch(answer);
    show(now);
    if (now.status !== "running" && now.status !== "awaiting_approval") attempt(loadModels);
  }, 1000);
}

const PINNED = "efface-trusted-key";

/** Keeps the key of the form in this browser, or forgets it, as its box says. */
function pin() {
  if (byId("pin").checked) localStorage.setItem(PINNED, byId("trusted-key").value.trim());
  else localStorage.removeItem(PINNED);
}

async function judge(keys, bytes) {
  const found = await verifyReceipt(keys, bytes);
  const verdict = byId("verdict");
  verdict.className = found.verified ? "good" : "bad";
  verdict.textContent = found.verified
    ? `Verified. Receipt ${found.receipt.id} of ${found.receipt.origin}: ${found.receipt.kind}, ${found.receipt.outcome}, ` +
      `${found.receipt.rows.removed} rows removed, number ${found.receipt.sequence} of ${found.log_size} in the log. Signed by ${found.key}.`
    : `Not verified: ${found.fault}`;
  verdict.scrollIntoView({ block: "nearest" });
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  dismissPreview();
  token = byId("token").value.trim();
  byId("token").value = "";
  attempt(loadModels);
});
byId("kind").addEventListener("change", () => {
  byId("names-label").textContent = byId("kind").value === "rows" ? "Row ids, separated by spaces or lines" : "Person";
});
for (const change of ["input", "reset"]) byId("erasure").addEventListener(change, dismissPreview);
byId("erasure").addEventListener("submit", (event) => {
  event.preventDefault();
  dismissPreview();
  byId("outcome").hidden = true;
  const since = edits;
  attempt(async () => {
    const request = question();
    const answer = await callJson(request.path, { method: "POST", body: { ...request.body, dry_run: true } });
    if (since === edits) showPreview(request, answer);
  });
});
byId("cancel").addEventListener("click", dismissPreview);
byId("confirm").addEventListener("click", () => {
  const request = previewed;
  dismissPreview();
  if (request === null) return;
  attempt(async () => {
    show(await callJson(request.path, { method: "POST", body: request.body, key: request.key }));
    await loadModels();
  });
});
byId("check").addEventListener("click", () =>
  attempt(async () => {
    const bytes = new Uint8Array(await (await call(lastReceipt.receipt.url, { accept: "application/cose" })).arrayBuffer());
    if (!byId("trusted-key").value.trim()) {
      const { keys } = await callJson(`/v1/log/keys?model=${encodeURIComponent(lastReceipt.model)}`);
      byId("trusted-key").value = keys.at(-1);
      notice("The key was told by the server. Compare it with the one that you know.");
    }
    await judge(byId("trusted-key").value, bytes);
  }),
);
byId("verification").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const bytes = new Uint8Array(await byId("receipt-file").files[0].arrayBuffer());
    pin();
    await judge(byId("trusted-key").value, bytes);
  });
});
byId("pin").addEventListener("change", pin);
byId("trusted-key").value = localStorage.getItem(PINNED) ?? "";
byId("pin").checked = byId("trusted-key").value !== "";
byId("log-model").addEventListener("change", () => attempt(loadLog));
byId("audit-model").addEventListener("change", () => attempt(loadAudit));
attempt(loadModels);
