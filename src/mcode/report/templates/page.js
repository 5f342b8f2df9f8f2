"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const compare = (a, b) => a.localeCompare(b, undefined, { numeric: true });

  const list = byId("list");
  if (list) {
    const cards = [...list.children];
    const text = new Map(cards.map((card) => [card, card.textContent.toLowerCase()]));
    const orders = {
      rank: (a, b) => a.dataset.rank - b.dataset.rank,
      error: (a, b) => b.dataset.error - a.dataset.error,
      probability: (a, b) => a.dataset.probability - b.dataset.probability,
      response: (a, b) => compare(a.dataset.response, b.dataset.response),
      id: (a, b) => compare(a.dataset.id, b.dataset.id),
    };
    const filter = () => {
      const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      const response = byId("response").value;
      const least = byId("threshold").valueAsNumber / 100;
      byId("threshold-text").value = `${byId("threshold").value} %`;
      let shown = 0;
      for (const card of cards) {
        const fits = words.every((word) => text.get(card).includes(word))
          && (!response || card.dataset.response === response)
          && Number(card.dataset.error) >= least;
        card.hidden = !fits;
        shown += fits;
      }
      byId("shown").textContent = `${shown} of ${cards.length} findings shown`;
    };
    const sort = () => list.append(...cards.sort((a, b) => orders[byId("sort").value](a, b) || orders.rank(a, b)));
    for (const id of ["search", "response", "threshold"]) byId(id).addEventListener("input", filter);
    byId("sort").addEventListener("change", sort);
    // A browser keeps what was typed when a page is loaded again.
    sort();
    filter();
  }

  const heads = [...document.querySelectorAll("#health thead th")];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "descending";
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = document.querySelector("#health tbody");
    const value = (row) => row.children[column].dataset.value;
    const order = column === 0 ? (a, b) => compare(value(b), value(a)) : (a, b) => value(b) - value(a);
    body.append(...[...body.children].sort((a, b) => (up ? -1 : 1) * order(a, b)));
  }));
})();
