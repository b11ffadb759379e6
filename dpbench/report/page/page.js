// Charts read the numbers of the link that downloads them, when they come into view; the boxes choose their rows.
// Tables and lists are filtered by the style sheet alone.
(() => {
  const form = document.getElementById("filters");
  const drawn = [];
  const chosen = name => [...form.querySelectorAll(`[name=${name}]:checked`)];

  function rowsOf(figure, panel) {
    const methods = chosen("m").map(box => box.value), epsilons = chosen("e").map(box => +box.dataset.text);
    return figure.rows.filter(row =>
      Object.entries(panel.where).every(([name, value]) => row[name] === value) &&
      (!methods.length || !figure.methods[row.series] || methods.includes(figure.methods[row.series])) &&
      (!epsilons.length || !isFinite(row[figure.epsilon]) || epsilons.includes(row[figure.epsilon])));
  }

  async function draw(place, figure, panel) {
    const spec = {...panel.spec, data: {name: "rows", values: rowsOf(figure, panel)}};
    const {view} = await vegaEmbed(place, spec, {mode: "vega-lite", renderer: "svg", actions: false});
    drawn.push({view, figure, panel});
  }

  const seen = new IntersectionObserver(entries => entries.filter(one => one.isIntersecting).forEach(({target}) => {
    seen.unobserve(target);
    target.draw();
  }), {rootMargin: "300px"});

  for (const charts of document.querySelectorAll("[data-chart]")) {
    const name = charts.dataset.chart, text = document.getElementById(`${name}-data`).href;
    const figure = JSON.parse(document.querySelector(`[data-of="${name}"]`).textContent);
    let rows;
    Object.defineProperty(figure, "rows", {get: () => rows ??= vega.read(
      decodeURIComponent(text.slice(text.indexOf(",") + 1)),
      {type: "csv", parse: Object.fromEntries(figure.numbers.map(number => [number, "number"]))})});
    charts.hidden = false;
    charts.parentElement.classList.add("drawn");
    charts.querySelectorAll(".chart").forEach((place, index) => {
      place.draw = () => draw(place, figure, figure.panels[index]);
      seen.observe(place);
    });
  }

  function filter() {
    for (const {view, figure, panel} of drawn) {
      view.change("rows", vega.changeset().remove(() => true).insert(rowsOf(figure, panel))).runAsync();
    }
    const cells = document.querySelectorAll(".cell");
    const shown = [...cells].filter(cell => getComputedStyle(cell).display !== "none").length;
    document.getElementById("shown").textContent = `${shown} of ${cells.length} cells of trials shown`;
  }
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter));
})();
