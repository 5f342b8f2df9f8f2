import { ask, byId, el, meter, newKey, own, said, startFilter, startKeys, startRerank, tell, toast, watchRerank } from "/static/common.js";

const STATUS = { open: "to review", corrected: "corrected", kept: "kept as it is", skipped: "skipped", conflict: "in conflict" };
const VERDICT = { accept: "accepted the repair", change: "changed by hand", keep: "kept it as it is", skip: "skipped it", undo: "took back a verdict" };
const SAID = { accept: "Repair accepted", change: "Change saved", keep: "Kept as it is", skip: "Skipped" };
const card = byId("card");

let project = null;
let filter = {};
let row = null; // the row on screen
let draft = new Map(); // responses changed by hand: place -> code
let before = []; // rows that were on screen before
let busy = false;

// --- one row -------------------------------------------------------------------------------------------------------

const recorded = (response) => response.observed;
const valueNow = (response) => (draft.has(response.place) ? draft.get(response.place) : response.current);
const wantedCode = new Map();

const show = (next, { remember = true } = {}) => {
  if (row && remember && (!next || next.row !== row.row)) before = [...before.slice(-49), row.row];
  row = next;
  draft = new Map();
  byId("verdicts").hidden = row === null;
  if (row === null) { showNothing(); return; }
  wantedCode.clear();
  for (const change of row.repair) wantedCode.set(change.place, change.code);
  draw();
  card.classList.remove("fresh");
  requestAnimationFrame(() => card.classList.add("fresh"));
  window.scrollTo({ top: 0 });
  card.focus({ preventScroll: true });
  document.title = `${row.id} · ${project.source}`;
};

const showNothing = () => {
  const all = filter.status === "open" && Object.keys(filter).length === 1;
  card.replaceChildren(el("div", { class: "finished" },
    el("h2", {}, all ? "All rows are reviewed." : "No row of this filter is left."),
    el("p", { class: "muted" }, all ? "Export the corrected table, or re-rank to look further." : "Rows that others are looking at are left to them."),
    el("p", {}, el("a", { class: "button", href: "/overview" }, "Overview"), " ", el("a", { class: "button", href: "/api/export/table", download: true }, "Corrected table"))));
  byId("beside").replaceChildren();
  document.title = `Review · ${project.source}`;
};

const draw = () => {
  card.replaceChildren(...[head(), warnings(), el("p", { class: "sentence" }, said(row.sentence)), proposal(), why(), responses()].flat().filter(Boolean));
  byId("beside").replaceChildren(context(), record());
  drawButtons();
};

const head = () => el("div", { class: "head" },
  el("h2", { id: "row-title" }, el("span", { class: "muted" }, project.id_name, " "), own(row.id), " ",
    row.status === "open" ? "" : el("span", { class: `state ${row.status}` }, STATUS[row.status])),
  el("p", { class: "sure", title: "How likely the row is wrong" }, meter(row.error_probability), ` ${row.error_text} likely wrong`));

const warnings = () => [
  row.held_by ? el("p", { class: "warning" }, own(row.held_by), " is looking at this row.") : null,
  row.status === "conflict" ? el("p", { class: "warning" }, "Two reviewers disagree: see the record. Your verdict decides.") : null,
];

const proposal = () => {
  if (!row.repair.length) return el("p", { class: "proposal none muted" }, "No change of the responses makes this row more ordinary.");
  const changes = row.repair.flatMap((change, at) => [at ? ", " : "", el("code", {}, own(change.name)), " ", own(change.before), " → ", el("b", { class: "expected" }, own(change.after))]);
  return el("p", { class: "proposal" }, el("b", {}, "Proposed: "), changes, ". ",
    el("span", { class: "small" }, `All responses together: ${row.odds_before} likely as recorded, ${row.odds_after} after.`));
};

const explained = () => row.responses.filter((response, at) => response.evidence.length && (at === 0 || wantedCode.has(response.place)));

// The evidence of the response named first is open; that of the others is a click away, so that the responses stay in sight.
const why = () => explained().map((response, at) => {
  const title = ["Why ", el("code", {}, own(response.name)), " looks wrong"];
  const pieces = [
    response.sentence && response.sentence !== row.sentence ? el("p", { class: "muted" }, said(response.sentence)) : null,
    el("ul", { class: "evidence" }, response.evidence.map(evidence)),
  ];
  if (at) return el("details", { class: "why" }, el("summary", {}, title), pieces);
  return el("section", {}, el("h2", {}, title), pieces,
    el("p", { class: "note" }, "+ (green) speaks for the expected value, − (red) for the recorded one."));
});

const evidence = (piece) => el("li", { class: piece.weight >= 0 ? "for" : "against" },
  el("span", { class: "what" }, el("span", { class: "kind" }, piece.kind), " ", own(piece.name), " = ", own(piece.value)),
  bar(piece.width),
  el("span", { class: "weight" }, `${piece.weight >= 0 ? "+" : "−"}${Math.abs(piece.weight).toFixed(2)}`));

const bar = (width) => {
  const inside = el("i");
  inside.style.width = `${width}%`;
  return el("span", { class: "track" }, inside);
};

const responses = () => el("section", {},
  el("h2", {}, "Responses"),
  el("table", { class: "responses" },
    el("thead", {}, el("tr", {}, el("td", { class: "digit" }), el("th", { scope: "col" }, "response"), el("th", { scope: "col" }, "value"),
      el("th", { scope: "col", class: "number" }, "likely"), el("th", { scope: "col", class: "number" }, "wrong"))),
    el("tbody", {}, row.responses.map((response, at) => el("tr", { class: response.suspicious ? "odd" : false },
      el("td", { class: "digit" }, at < 9 ? el("kbd", {}, String(at + 1)) : ""),
      el("th", { scope: "row" }, own(response.name)),
      el("td", {}, choice(response)),
      el("td", { class: "number" }, response.probability_text),
      el("td", { class: "number" }, response.error_text))))),
  row.n_responses > row.responses.length
    ? el("p", { class: "buttons" }, el("button", { type: "button", class: "plain small", onclick: showAll }, `Show all ${row.n_responses} responses`)) : null);

const choice = (response) => {
  const now = valueNow(response);
  return el("div", { class: `choice${now === recorded(response) ? "" : " changed"}`, role: "radiogroup", "aria-label": response.name },
    response.choices.map((text, code) => el("label", { class: code === response.expected && response.expected !== recorded(response) ? "wanted" : false, title: titleOf(response, code) },
      el("input", { type: "radio", name: `value-${response.place}`, checked: code === now, onchange: () => change(response, code) }),
      el("span", {}, own(text)))));
};

const titleOf = (response, code) =>
  [code === recorded(response) ? "recorded" : "", code === response.expected ? "expected" : ""].filter(Boolean).join(", ") || false;

const change = (response, code) => {
  if (code === response.current) draft.delete(response.place);
  else draft.set(response.place, code);
  const focused = document.activeElement?.name;
  const section = card.lastElementChild;
  section.replaceWith(responses());
  if (focused) card.querySelector(`input[name="${focused}"]:checked`)?.focus();
  drawButtons();
};

const context = () => el("section", { class: "panel" }, el("h2", {}, "Context"),
  el("table", { class: "context" }, el("tbody", {}, row.context.map((cell, at) => el("tr", {},
    el("th", { scope: "row" }, own(cell.column)),
    el("td", {}, cell.empty ? el("span", { class: "muted" }, "empty") : own(cell.value),
      cell.cut ? el("button", { type: "button", class: "quiet small", onclick: (event) => showCell(event, at) }, "Show all") : null))))));

const showCell = async (event, at) => {
  const place = event.currentTarget.closest("td");
  try { place.replaceChildren(own(await ask("GET", `/api/rows/${row.row}/cells/${at}`))); } catch (error) { tell(error); }
};

const record = () => el("section", { class: "panel" }, el("h2", {}, "Record"),
  row.record.length
    ? el("ol", { class: "entries" }, [...row.record].reverse().map((entry) => el("li", { class: entry.undone ? "undone" : entry.standing ? "standing" : false },
      el("b", {}, own(entry.who)), ` ${VERDICT[entry.kind]}`, entry.batch ? " with others" : "", " ",
      el("time", { class: "muted", datetime: entry.at }, entry.at.slice(0, 16).replace("T", " ")),
      entry.changes.length ? el("div", {}, entry.changes.flatMap((one, at) => [at ? ", " : "", el("code", {}, own(one.name)), " ", own(one.before), " → ", own(one.after)])) : null)))
    : el("p", { class: "muted" }, "No verdict yet."));

const drawButtons = () => {
  const edited = draft.size > 0;
  byId("accept-text").textContent = edited ? `Save ${draft.size === 1 ? "1 change" : `${draft.size} changes`}` : "Accept repair";
  byId("accept").disabled = !edited && !row?.repair.length;
};

const showAll = async () => {
  if (!row || row.responses.length >= row.n_responses) return;
  const kept = draft;
  try { row = await ask("GET", `/api/rows/${row.row}?every_response=true`); } catch (error) { tell(error); return; }
  draft = kept;
  draw();
};

// --- verdicts ------------------------------------------------------------------------------------------------------

const once = async (work) => {
  if (busy) return;
  busy = true;
  try { await work(); } catch (error) { tell(error); } finally { busy = false; }
};

const judge = (kind) => once(async () => {
  if (!row) return;
  const verdict = { key: newKey(), kind, seen: row.latest, next: { filter, after: afterNow() } };
  if (kind === "accept") verdict.values = row.repair.map((one) => ({ response: one.place, code: one.code }));
  if (kind === "change") {
    const all = new Map(row.responses.map((response) => [response.place, valueNow(response)]));
    verdict.values = [...all].map(([response, code]) => ({ response, code }));
  }
  const answer = await ask("POST", `/api/rows/${row.row}/verdicts`, verdict);
  const status = answer.recorded.status;
  toast(`${SAID[kind]}${status === "conflict" ? "; another reviewer disagrees" : ""}.`);
  showProgress(answer.progress);
  show(answer.next);
});

// A judged row that still fits the filter (all rows, or rows already judged) must not come again at once.
const afterNow = () => (row && filter.status !== "open" ? row.cursor : undefined);

const accept = () => {
  if (draft.size) return judge("change");
  if (row?.repair.length) return judge("accept");
  return toast("There is no repair to accept: keep the row, or change a response.");
};

const undo = () => once(async () => {
  const answer = await ask("POST", "/api/undo", { key: newKey() });
  showProgress(answer.progress);
  if (!answer.row) { toast("There is nothing to undo."); return; }
  toast(answer.undone > 1 ? `${answer.undone} verdicts taken back.` : "Verdict taken back.");
  show(answer.row);
});

const next = () => once(async () => {
  const answer = await ask("POST", "/api/next", { filter, after: row ? row.cursor : undefined });
  showProgress(answer.progress);
  if (row && !answer.row) { toast("This is the last row."); return; }
  if (row) ask("DELETE", `/api/rows/${row.row}/hold`).catch(() => {});
  show(answer.row);
});

const back = () => once(async () => {
  const at = before.pop();
  if (at === undefined) { toast("There is no row before."); return; }
  await open(at, { remember: false });
});

const open = async (at, options) => {
  await ask("POST", `/api/rows/${at}/hold`);
  show(await ask("GET", `/api/rows/${at}`), options);
};

const first = () => once(async () => {
  const answer = await ask("POST", "/api/next", { filter });
  showProgress(answer.progress);
  show(answer.row);
});

const flip = (number) => {
  const response = row?.responses[number - 1];
  if (response) change(response, (valueNow(response) + 1) % response.choices.length);
};

// --- progress ------------------------------------------------------------------------------------------------------

const showProgress = (progress) => {
  const { counts } = progress;
  byId("done").max = Math.max(1, progress.findings);
  byId("done").value = progress.reviewed;
  byId("n-reviewed").textContent = `${progress.reviewed.toLocaleString("en")} of ${progress.findings.toLocaleString("en")}`;
  for (const name of ["corrected", "kept", "skipped", "conflict"]) byId(`n-${name}`).textContent = counts[name].toLocaleString("en");
  byId("conflict-line").hidden = !counts.conflict;
  byId("n-left").textContent = progress.errors_left < 0.5 ? "< 1" : Math.round(progress.errors_left).toLocaleString("en");
};

const showFilterNote = () => { byId("filter-note").textContent = Object.keys(filter).length > 1 || filter.status !== "open" ? "in use" : ""; };

const wide = window.matchMedia("(min-width: 48rem)");
byId("filters").open = wide.matches;
wide.addEventListener("change", () => { byId("filters").open = wide.matches; });

byId("accept").addEventListener("click", accept);
byId("keep").addEventListener("click", () => judge("keep"));
byId("skip").addEventListener("click", () => judge("skip"));
byId("undo").addEventListener("click", undo);
byId("rerank").addEventListener("click", () => startRerank(first));

startKeys({
  a: accept,
  Enter: accept,
  k: () => judge("keep"),
  s: () => judge("skip"),
  u: undo,
  n: next,
  p: back,
  e: showAll,
  r: () => startRerank(first),
  "/": () => { byId("filters").open = true; byId("filter").elements.text.focus(); },
  Escape: () => { if (draft.size) { draft = new Map(); draw(); } },
  ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((digit) => [String(digit), () => flip(digit)])),
});

// The row on screen stays ours while somebody looks at it.
setInterval(() => { if (row && !document.hidden) ask("POST", `/api/rows/${row.row}/hold`, undefined, 0).catch(() => {}); }, 60000);

project = await ask("GET", "/api/project");
filter = startFilter(project, (changed) => { filter = changed; showFilterNote(); first(); });
showFilterNote();
showProgress(project.progress);
const asked = new URLSearchParams(location.search).get("row");
if (asked !== null && /^\d+$/.test(asked)) {
  await once(() => open(Number(asked)));
  if (!row) await first();
} else await first();
if ((await ask("GET", "/api/rerank")).state === "running") watchRerank(first);
