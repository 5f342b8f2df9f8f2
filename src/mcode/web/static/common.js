// What all pages share: asking the API, making elements from text, filters, the re-ranking, the keys.
// Data only ever becomes text nodes: nothing from a table can become markup.

export const byId = (id) => document.getElementById(id);

export const el = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
};

// A text of the user's: its own direction, so that right-to-left marks do not turn what stands around it.
export const own = (text) => el("bdi", {}, String(text));

export const said = (sentence) =>
  sentence.split("`").map((part, at) => (at % 2 ? el("code", {}, own(part)) : document.createTextNode(part)));

export const meter = (share) => {
  const svg = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const drawn = svg("svg", { class: "share", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
  drawn.append(svg("rect", { class: "track", width: 100, height: 8, rx: 4 }));
  drawn.append(svg("rect", { class: "fill", width: Math.max(0, Math.min(100, 100 * share)), height: 8, rx: 4 }));
  return drawn;
};

export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

let toastTimer = 0;
export const toast = (text) => {
  byId("toast").textContent = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { byId("toast").textContent = ""; }, 4000);
};

export class Refused extends Error {
  constructor(status, sentence) { super(sentence); this.status = status; }
}

// A request that changes something may be sent again after a lost connection: its key makes it count once.
export const ask = async (method, path, body, retries = 3) => {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const answer = await fetch(path, {
        method,
        headers: body === undefined ? {} : { "Content-Type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const kind = answer.headers.get("content-type") || "";
      const content = kind.includes("json") ? await answer.json() : await answer.text();
      if (!answer.ok) throw new Refused(answer.status, content.error || `the server answered ${answer.status}`);
      return content;
    } catch (error) {
      if (error instanceof Refused || attempt >= retries) throw error;
      toast("The server does not answer; trying again …");
      await new Promise((done) => setTimeout(done, 300 * 2 ** attempt));
    }
  }
};

export const tell = (error) => toast(error instanceof Refused ? error.message : "The server does not answer.");

// --- filters -------------------------------------------------------------------------------------------------------

const form = byId("filter");

export const readFilter = () => {
  const given = new FormData(form);
  const filter = { status: given.get("status") };
  if (given.get("response")) filter.response = Number(given.get("response"));
  if (given.get("kind")) filter.kind = given.get("kind");
  if (Number(given.get("at_least"))) filter.at_least = Number(given.get("at_least")) / 100;
  if (given.get("text").trim()) filter.text = given.get("text").trim();
  return filter;
};

const writeFilter = (filter) => {
  form.elements.status.value = filter.status || "open";
  const place = filter.response === undefined || filter.response === null ? "" : String(filter.response);
  if (place && ![...form.elements.response.options].some((option) => option.value === place)) {
    form.elements.response.append(el("option", { value: place }, `response ${place}`));
  }
  form.elements.response.value = place;
  form.elements.kind.value = filter.kind || "";
  form.elements.at_least.value = Math.round(100 * (filter.at_least || 0));
  form.elements.text.value = filter.text || "";
  showThreshold();
};

const showThreshold = () => { form.querySelector("output").value = `${form.elements.at_least.value} %`; };

export const query = (filter) => new URLSearchParams(Object.entries(filter).map(([name, value]) => [name, String(value)])).toString();

let views = [];
const showViews = () => {
  const chosen = byId("views").value;
  byId("views").replaceChildren(el("option", { value: "" }, "none"), ...views.map((view) => el("option", { value: view.name }, view.name)));
  byId("views").value = views.some((view) => view.name === chosen) ? chosen : "";
  byId("forget-view").hidden = !byId("views").value;
};

// Sets the filter up from the address; `changed` is called with every new filter.
export const startFilter = (project, changed) => {
  for (const response of project.responses) {
    form.elements.response.append(el("option", { value: response.place }, `${response.name} (${response.open})`));
  }
  const given = new URLSearchParams(location.search);
  writeFilter({
    status: given.get("status") || "open",
    response: given.has("response") ? Number(given.get("response")) : null,
    kind: given.get("kind"),
    at_least: Number(given.get("at_least")) || 0,
    text: given.get("text"),
  });
  views = project.views;
  showViews();
  const apply = () => {
    const filter = readFilter();
    history.replaceState(null, "", `${location.pathname}?${query(filter)}`);
    changed(filter);
  };
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); form.elements.text.blur(); });
  form.elements.at_least.addEventListener("input", showThreshold);
  byId("views").addEventListener("change", () => {
    const view = views.find((one) => one.name === byId("views").value);
    byId("forget-view").hidden = !view;
    writeFilter(view ? view.filter : {});
    apply();
  });
  byId("save-view").addEventListener("click", () => byId("view-dialog").showModal());
  byId("view-dialog").addEventListener("close", async () => {
    const name = byId("view-name").value.trim();
    if (byId("view-dialog").returnValue !== "save" || !name) return;
    try {
      await ask("PUT", `/api/views/${encodeURIComponent(name)}`, { filter: readFilter() });
      views = [...views.filter((view) => view.name !== name), { name, filter: readFilter() }];
      showViews();
      byId("views").value = name;
      byId("forget-view").hidden = false;
      toast(`Saved as “${name}”.`);
    } catch (error) { tell(error); }
  });
  byId("forget-view").addEventListener("click", async () => {
    const name = byId("views").value;
    try {
      await ask("DELETE", `/api/views/${encodeURIComponent(name)}`);
      views = views.filter((view) => view.name !== name);
      showViews();
    } catch (error) { tell(error); }
  });
  return readFilter();
};

// --- re-ranking ----------------------------------------------------------------------------------------------------

const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

export const watchRerank = async (finished) => {
  byId("rerank").disabled = true;
  byId("rerank-state").hidden = false;
  for (;;) {
    let job;
    try { job = await ask("GET", "/api/rerank"); } catch (error) { tell(error); break; }
    byId("rerank-text").textContent = job.state === "running" ? `${job.stage} ${job.total > 1 ? `${job.done} of ${job.total}` : ""}` : job.message;
    if (job.state === "running" && job.total > 0) byId("rerank-bar").value = job.done / job.total;
    else byId("rerank-bar").removeAttribute("value");
    if (job.state !== "running") {
      byId("rerank-bar").hidden = true;
      toast(job.message);
      if (job.state === "done") finished();
      break;
    }
    byId("rerank-bar").hidden = false;
    await wait(0.4);
  }
  byId("rerank").disabled = false;
};

export const startRerank = async (finished) => {
  if (byId("rerank").disabled) return;
  try { await ask("POST", "/api/rerank"); } catch (error) { tell(error); return; }
  await watchRerank(finished);
};

// --- keys, help, name ----------------------------------------------------------------------------------------------

const typing = (target) => target instanceof Element && target.closest("input:not([type=radio]):not([type=range]), select, textarea, dialog[open]");

// `keys` maps a key to what it does; nothing happens while somebody writes or a dialog is open.
export const startKeys = (keys) => {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(event.target) && !event.target.closest("dialog")) { event.target.blur(); return; }
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary, [tabindex='0']")) return;
    const act = keys[key] || (key === "?" ? showHelp : null);
    if (!act) return;
    event.preventDefault();
    act(event);
  });
};

const showHelp = () => byId("help").showModal();
byId("show-help").addEventListener("click", showHelp);
byId("rename")?.addEventListener("click", () => byId("name-dialog").showModal());
byId("name-dialog").addEventListener("close", async () => {
  const name = byId("name-input").value.trim();
  if (byId("name-dialog").returnValue !== "save" || !name) return;
  try {
    const answer = await ask("POST", "/api/reviewer", { name });
    byId("who").replaceChildren(own(answer.who));
  } catch (error) { tell(error); }
});
if (!document.querySelector("script[src='/static/review.js'], script[src='/static/list.js']")) startKeys({});
