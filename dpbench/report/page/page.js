// Charts are unpacked when they come into view, cells of trials when they are opened; the boxes choose what charts show.
// Tables and lists are filtered by the style sheet alone. A browser that cannot unpack shows the page without JavaScript.
(() => {
  const form = document.getElementById("filters");
  const drawn = [];
  const ticked = name => [...form.querySelectorAll(`[name=${name}]:checked`)];

  async function unpack(text) {
    const packed = new Blob([Uint8Array.from(atob(text), one => one.charCodeAt(0))]);
    return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  const once = make => { let made; return () => made ??= make(); };
  const packed = name => unpack(document.getElementById(`packed-${name}`).textContent);
  const download = link => link.unpacked ??= unpack(link.href.split(",")[1]);
  const figures = once(async () => JSON.parse(await packed("charts")));
  const trials = once(async () => JSON.parse(await download(document.getElementById("trials-data"))));
  const library = once(async () => {
    const script = document.createElement("script");
    script.textContent = await packed("library");
    document.head.append(script);
  });

  // --- charts ---------------------------------------------------------------------------------------------------------

  function choose({view, figure}) {
    const methods = ticked("m").map(box => box.value), epsilons = ticked("e").map(box => +box.dataset.text);
    const shown = figure.series.filter(one => !figure.methods[one] || methods.includes(figure.methods[one]));
    view.signal("shownSeries", methods.length ? shown : null);
    view.signal("shownEpsilons", epsilons.length ? epsilons : null);
    return view.runAsync();
  }

  async function draw(place, name, index) {
    const figure = (await figures())[name];
    await library();
    const {view} = await vegaEmbed(place, figure.panels[index].spec, {mode: "vega-lite", renderer: "svg", actions: false});
    drawn.push({view, figure});
    await choose({view, figure});
  }

  // --- trials and ledgers ---------------------------------------------------------------------------------------------

  function element(name, attributes, ...content) {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...content);
    return made;
  }

  const digits = value => typeof value === "number" ? String(+value.toPrecision(6)) : String(value);

  const line = (label, how) => element("li", {}, ...(label ? [element("b", {}, label), `: ${how}`] : [how]));

  function draws(events, of) {
    const lines = events.map(({kind, label, ...drawn}) => {
      const fields = Object.entries(drawn).map(([name, value]) => `${name} ${digits(value)}`).join(", ");
      return line(label, `${kind.replaceAll("_", " ")}: ${fields}`);
    });
    const title = element("summary", {}, `Every draw (${events.length}) of the release of ${of}`);
    return element("details", {}, title, element("ol", {class: "ledger"}, ...lines));
  }

  function factsShown(found) {
    const term = ([text, place]) => place ? element("a", {href: `#s${place}`}, text) : text;
    const joined = terms => terms.flatMap((one, at) => at ? ["; ", term(one)] : [term(one)]);
    return element("dl", {class: "facts"}, ...found.flatMap(([name, terms]) =>
      [element("dt", {}, name), element("dd", {}, ...joined(terms))]));
  }

  function ledgerShown(found, epsilon) {
    if (!found) return epsilon === "∞" ? [] : [element("p", {}, "No ledger is stored.")];
    const lines = found.lines.map(([label, how]) => line(label, how));
    return [element("p", {}, `${found.whose}:`), element("ol", {class: "ledger"}, ...lines)];
  }

  async function fill(cell) {
    const place = +cell.id.slice(1), data = await trials(), found = data.cells[place], {trials: columns, first} = found;
    const events = ledger => data.ledgers[ledger].map(draw => data.draws[draw]);
    const names = Object.keys(columns), own = new Map();
    const shown = (name, value) => name === "ledger" ? (value === null ? "not stored" : "below") : value ?? "";
    const row = cells => element("tr", {}, ...cells);
    const head = row(names.map(name => element("th", {scope: "col"}, name)));
    const rows = columns.trial.map((_, at) => row(names.map(name => element("td", {}, shown(name, columns[name][at])))));
    const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
    const frame = {class: "scroll", role: "group", tabindex: 0, "aria-label": `Trials of cell ${place + 1}`};
    (columns.ledger ?? []).forEach((ledger, at) => {
      if (ledger !== null) own.set(ledger, (own.get(ledger) ?? new Set()).add(columns.repetition[at]));
    });
    const opened = [...own].map(([ledger, of]) => draws(events(ledger), `repetition ${[...of].join(", ")}`));
    if (first) opened.push(draws(events(first.ledger), `repetition ${first.repetition}`));
    const count = `${columns.trial.length} of ${found.total} trial${found.total === 1 ? "" : "s"}:`;
    const listed = element("div", {class: "trials"}, element("div", frame, table), ...opened);
    const about = [factsShown(found.facts), ...ledgerShown(found.ledger, found.epsilon)];
    cell.replaceChildren(...about, element("p", {class: "small"}, count), listed);
  }

  // --- what is shown --------------------------------------------------------------------------------------------------

  function filter() {
    drawn.forEach(choose);
    const chosen = ["d", "m", "e"].map(name => [name, ticked(name).map(box => box.value)]).filter(([, some]) => some.length);
    const cells = [...document.querySelectorAll(".cell")];
    const shown = cells.filter(({dataset}) => chosen.every(([name, some]) => some.includes(dataset[name] ?? some[0])));
    document.getElementById("shown").textContent = `${shown.length} of ${cells.length} cells of trials shown`;
  }
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  if (!("DecompressionStream" in window)) return;
  document.getElementById("unfilled")?.remove();

  const seen = new IntersectionObserver(entries => entries.filter(one => one.isIntersecting).forEach(({target}) => {
    seen.unobserve(target);
    target.draw();
  }), {rootMargin: "300px"});

  for (const charts of document.querySelectorAll("[data-chart]")) {
    charts.hidden = false;
    charts.parentElement.classList.add("drawn");
    charts.querySelectorAll(".chart").forEach((place, index) => {
      place.draw = () => draw(place, charts.dataset.chart, index);
      seen.observe(place);
    });
  }

  document.addEventListener("toggle", ({target}) => {
    const cell = target.open && target.matches(".cell") && target.querySelector(".inside");
    if (cell && !cell.firstChild) fill(cell);
  }, true);

  for (const link of document.querySelectorAll("a.of")) {
    const [dataset, method, epsilon] = document.getElementById(link.hash.slice(1)).previousElementSibling.children;
    link.title = [dataset, method, epsilon].map(one => one.textContent).join(", ");
  }

  // not every browser opens what a link leads into
  function reveal() {
    const target = document.getElementById(location.hash.slice(1));
    for (let at = target; at; at = at.parentElement.closest("details")) at.open = true;
    target?.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  // what was packed is saved as plain text
  document.addEventListener("click", async event => {
    const link = event.target.closest("a.data");
    if (!link || link.href.startsWith("blob:")) return;
    event.preventDefault();
    link.href = URL.createObjectURL(new Blob([await download(link)]));
    link.download = link.download.replace(/\.gz$/, "");
    link.click();
  });
})();
