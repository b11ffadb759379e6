// Tables are sorted and filtered, charts are drawn, and what a permalink leads into is opened.
(() => {
  const value = (row, at) => {
    const cell = row.cells[at], text = cell.dataset.v ?? cell.textContent.trim();
    return text === "" ? Infinity : isNaN(text) ? text : +text;
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));

  function sort(table, head, at) {
    const down = head.getAttribute("aria-sort") === "ascending", body = table.tBodies[0];
    for (const one of head.parentElement.cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map(row => [value(row, at), row]).sort(([a], [b]) => down ? compare(b, a) : compare(a, b));
    body.append(...rows.map(([, row]) => row));
  }

  function element(name, attributes, ...content) {
    const made = Object.assign(document.createElement(name), attributes);
    made.append(...content);
    return made;
  }

  function filters(table) {
    const rows = [...table.tBodies[0].rows], tests = [], count = element("output", {});
    const form = element("form", {className: "filters"});
    const apply = () => {
      for (const row of rows) row.hidden = !tests.every(test => test(row));
      count.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} rows`;
    };
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const name = head.textContent.trim(), kind = head.dataset.filter;
      if (kind === "choice") {
        const texts = [...new Set(rows.map(row => row.cells[at].textContent.trim()))];
        if (texts.length < 2) return;
        const select = element("select", {ariaLabel: name}, element("option", {value: ""}, "all"), ...texts.map(one => element("option", {value: one}, one)));
        tests.push(row => !select.value || row.cells[at].textContent.trim() === select.value);
        form.append(element("label", {}, name, select));
      } else if (kind === "range") {
        const ends = ["from", "to"].map(end => element("input", {type: "number", min: 0, ariaLabel: `${name} ${end}`}));
        tests.push(row => (!ends[0].value || value(row, at) >= +ends[0].value) && (!ends[1].value || value(row, at) <= +ends[1].value));
        form.append(element("label", {}, `${name} from`, ends[0]), element("label", {}, `${name} to`, ends[1]));
      }
    });
    form.append(count);
    form.addEventListener("input", apply);
    form.addEventListener("submit", event => event.preventDefault());
    table.closest(".scroll").before(form);
    apply();
  }

  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");  // a dialog, which the theme gives no name
  for (const table of document.querySelectorAll("table.sorted")) {
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      if (head.classList.contains("plain")) return;
      const button = element("button", {type: "button"}, head.textContent.trim());
      button.addEventListener("click", () => sort(table, head, at));
      head.replaceChildren(button);
    });
    if (table.classList.contains("filtered")) filters(table);
  }

  for (const chart of window.vegaEmbed ? document.querySelectorAll(".chart") : []) {
    const spec = JSON.parse(chart.nextElementSibling.textContent);
    window.vegaEmbed(chart, spec, {mode: "vega-lite", renderer: "svg", actions: false})
      .then(() => chart.querySelector("svg").setAttribute("aria-hidden", "true"));  // its frame has the words
  }

  // a permalink leads into what may be closed
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement.closest("details")) if (at.tagName === "DETAILS") at.open = true;
    target?.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();
})();
