import { ask, byId, el, newKey, own, query, said, startFilter, startKeys, tell, toast } from "/static/common.js";

const STATUS = { open: "to review", corrected: "corrected", kept: "kept as it is", skipped: "skipped", conflict: "in conflict" };
const DOES = { accept: "accept the repair of", keep: "keep as they are", skip: "skip" };
let filter = {};
let after = null;
let shown = null; // the preview that the dialog shows

const line = (row) => el("tr", {},
  el("th", { scope: "row" }, el("a", { href: `/?${query({ ...filter, row: row.row })}` }, own(row.id))),
  el("td", { class: "number" }, row.error_text),
  el("td", {}, own(row.response_name)),
  el("td", {}, own(row.observed)),
  el("td", {}, own(row.expected)),
  el("td", {}, row.kind_text),
  el("td", {}, el("span", { class: `state ${row.status}` }, STATUS[row.status])),
  el("td", {}, said(row.sentence)));

const load = async (more) => {
  try {
    const asked = more ? { ...filter, limit: 50, after } : { ...filter, limit: 50 };
    const page = await ask("GET", `/api/rows?${query(asked)}`);
    const lines = page.rows.map(line);
    if (more) byId("rows").append(...lines); else byId("rows").replaceChildren(...lines);
    after = page.after;
    byId("more").hidden = !after;
    byId("count").textContent = page.count === 1 ? "1 row" : `${page.count.toLocaleString("en")}${page.count === 10000 ? " or more" : ""} rows`;
    byId("bulk-show").disabled = !page.count;
  } catch (error) { tell(error); }
};

byId("more").addEventListener("click", () => load(true));

const preview = async () => {
  const kind = byId("bulk-kind").value;
  try { shown = { kind, filter, ...(await ask("POST", "/api/bulk/preview", { kind, filter })) }; } catch (error) { tell(error); return; }
  const rows = shown.rows === 1 ? "1 row" : `${shown.rows.toLocaleString("en")} rows`;
  byId("bulk-text").textContent = `This will ${DOES[kind]} ${rows}.`
    + (shown.left_out ? ` ${shown.left_out.toLocaleString("en")} are left out: others are looking at them, or they have no repair.` : "");
  byId("bulk-changes").replaceChildren(...shown.changes.map((one) => el("li", {}, el("code", {}, own(one.name)), " becomes ", el("b", { class: "expected" }, own(one.after)), one.rows === 1 ? " in 1 row" : ` in ${one.rows.toLocaleString("en")} rows`)));
  byId("bulk-do").disabled = !shown.rows;
  byId("bulk-do").textContent = shown.rows ? `Judge ${rows}` : "Nothing to judge";
  byId("bulk-dialog").returnValue = "";
  byId("bulk-dialog").showModal();
};

byId("bulk-show").addEventListener("click", preview);
byId("bulk-dialog").addEventListener("close", async () => {
  if (byId("bulk-dialog").returnValue !== "do" || !shown) return;
  const { kind, stamp } = shown;
  try {
    const answer = await ask("POST", "/api/bulk", { kind, filter: shown.filter, stamp, key: newKey() });
    toast(`${answer.judged.toLocaleString("en")} rows judged.`);
    await load(false);
  } catch (error) {
    tell(error);
    if (error.status === 409) await preview();
  }
});

const undo = async () => {
  try {
    const answer = await ask("POST", "/api/undo", { key: newKey() });
    toast(answer.undone ? `${answer.undone === 1 ? "1 verdict" : `${answer.undone.toLocaleString("en")} verdicts`} taken back.` : "There is nothing to undo.");
    await load(false);
  } catch (error) { tell(error); }
};
byId("undo").addEventListener("click", undo);

startKeys({ u: undo, "/": () => byId("filter").elements.text.focus() });
filter = startFilter(await ask("GET", "/api/project"), (changed) => { filter = changed; load(false); });
await load(false);
