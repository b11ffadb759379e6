// Charts read the numbers of the link that downloads them, when they come into view; the boxes choose what they show.
// Tables and lists are filtered by the style sheet alone.
(() => {
  const form = document.getElementById("filters");
  const drawn = [];
  const ticked = name => [...form.querySelectorAll(`[name=${name}]:checked`)];

  function choose({view, figure}) {
    const methods = ticked("m").map(box => box.value), epsilons = ticked("e").map(box => +box.dataset.text);
    const shown = figure.series.filter(one => !figure.methods[one] || methods.includes(figure.methods[one]));
    view.signal("shownSeries", methods.length ? shown : null);
    view.signal("shownEpsilons", epsilons.length ? epsilons : null);
    return view.runAsync();
  }

  async function draw(place, figure, panel, url) {
    const parse = Object.fromEntries(figure.numbers.map(name => [name, "number"]));
    const spec = {...panel.spec, data: {url, format: {type: "csv", parse}}};
    const {view} = await vegaEmbed(place, spec, {mode: "vega-lite", renderer: "svg", actions: false});
    drawn.push({view, figure});
    await choose({view, figure});
  }

  const seen = new IntersectionObserver(entries => entries.filter(one => one.isIntersecting).forEach(({target}) => {
    seen.unobserve(target);
    target.draw();
  }), {rootMargin: "300px"});

  for (const charts of document.querySelectorAll("[data-chart]")) {
    const name = charts.dataset.chart, url = document.getElementById(`${name}-data`).href;
    const figure = JSON.parse(document.querySelector(`[data-of="${name}"]`).textContent);
    charts.hidden = false;
    charts.parentElement.classList.add("drawn");
    charts.querySelectorAll(".chart").forEach((place, index) => {
      place.draw = () => draw(place, figure, figure.panels[index], url);
      seen.observe(place);
    });
  }

  function filter() {
    drawn.forEach(choose);
    const chosen = ["d", "m", "e"].map(name => [name, ticked(name).map(box => box.value)]).filter(([, some]) => some.length);
    const cells = [...document.querySelectorAll(".cell")];
    const shown = cells.filter(({dataset}) => chosen.every(([name, some]) => some.includes(dataset[name] ?? some[0])));
    document.getElementById("shown").textContent = `${shown.length} of ${cells.length} cells of trials shown`;
  }
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter));
})();
