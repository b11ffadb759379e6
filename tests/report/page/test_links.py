"""The numbers of tables lead to the cells of the trials that they are of, and to no other."""

import re
from dataclasses import replace

import pytest

from dpbench.config import Paper, compose
from dpbench.report.frames.results import Results
from dpbench.report.page import page
from dpbench.report.page.page import add_links, save_trials, write_experiment_page, write_paper_page
from dpbench.report.page.text_blocks import blocks
from dpbench.report.page.trial_cells import Cells

from ..made_up import LABELS, make_trial
from .reading import cells, words

EPSILON, DELTAS = "release.budget.epsilon", (1e-5, 1e-6)
EPSILONS = (0.1, 1.0)
CURVE = {"name": "curve", "kind": "polynomial", "radius": 6, "fits": [{"degree": 2, "construction": "series"}]}
FIGURE = {"name": "figure", "metric": "mse", "title": "Against epsilon", "experiments": ["by_epsilon"]}
ROUNDS = {
    "name": "by_rounds", "kind": "comparison_table", "title": "By rounds", "metric": "mse",
    "x": "release.mechanism.parameters.rounds", "experiments": ["by_rounds"],
}  # fmt: skip
COMPARED = {
    "name": "compared", "kind": "comparison_table", "title": "Compared", "metric": "mse", "x": EPSILON,
    "where": {"release.budget.delta": 1e-5}, "experiments": ["by_epsilon"],
}  # fmt: skip
METHODS = {
    "name": "methods", "kind": "comparison_table", "title": "Methods", "metric": "mse",
    "where": {"release.budget.delta": 1e-5, EPSILON: 1.0}, "experiments": ["by_epsilon"],
}  # fmt: skip
COST = {
    "name": "cost", "kind": "method_difference_table", "title": "Cost", "metric": "mse", "x": EPSILON, "less": "SSP",
    "where": {"release.budget.delta": 1e-5}, "experiments": ["by_epsilon"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_library(monkeypatch):
    monkeypatch.setattr(page, "vega", lambda: "")


@pytest.fixture(scope="module")
def results():
    """Every cell has an error of its own; the rounds of one experiment are the epsilons of the other."""
    own = iter(range(1, 1000))

    def pair(*given, **settings):
        error = next(own) ** 2 / 10000
        return [make_trial(*given, **settings, repetition=place, mse=error) for place in range(2)]

    by_epsilon = [
        trial
        for data in ("adult", "taxi")
        for delta in DELTAS
        for method in ("ssp", "adassp")
        for epsilon in EPSILONS
        for trial in pair(method, epsilon=epsilon, delta=delta, dataset=data)
    ]
    by_epsilon += [trial for data in ("adult", "taxi") for trial in pair("exact", epsilon="inf", dataset=data)]
    by_rounds = [trial for rounds in EPSILONS for trial in pair(epsilon=1.0, parameters={"rounds": rounds})]
    experiment = compose(["experiment=quickstart"])
    experiment = replace(experiment, report={**experiment.report, "labels": LABELS})
    return [
        Results(replace(experiment, name=name), trials)
        for name, trials in (("by_epsilon", by_epsilon), ("by_rounds", by_rounds))
    ]


@pytest.fixture(scope="module")
def text(results, tmp_path_factory):
    figures = [FIGURE, ROUNDS, COMPARED, METHODS, COST]
    report = {"panels": {"adult": "Adult", "taxi": "Adult"}, "labels": LABELS, "figures": figures}
    return page_of(report, results, tmp_path_factory.mktemp("page"))


def page_of(report, results, folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "vega", lambda: "")
        return write_paper_page(Paper("a", "A", report, {}), results, folder, lambda trial: None).read_text()


def section(text, name):
    found = text[text.index(f'id="{name}"') :]
    return found[: found.index("</section>")]


def numbers(text, name):
    """The numbers of a table and the places of the cells that each leads to."""
    body = section(text, name).partition("<tbody>")[2]
    found = [one for one in re.findall(r"<td[^>]*>(.*?)</td>", body) if re.search(r"\d", one)]
    return [(re.search(r"-?\d[\d.]*", re.sub(r"<[^>]*>", "", one))[0], re.findall(r'#c(\d+)"', one)) for one in found]


def cell(text, place):
    return words(cells(text)[int(place)])


def epsilon_tags(text, name):
    head = section(text, name).partition("<thead>")[2].partition("</thead>")[0]
    return {header: tags for tags, header in re.findall(r"<th([^>]*)>([^<]*)</th>", head)}


@pytest.mark.parametrize(
    ("name", "count"), [("figure", 18), ("compared", 10), ("by_rounds", 2), ("methods", 6), ("cost", 4)]
)
def test_every_number_of_a_table_leads_somewhere(text, name, count):
    found = numbers(text, name)
    assert len(found) == count and all(places for _, places in found)


@pytest.mark.parametrize("name", ["figure", "compared", "by_rounds", "methods"])
def test_a_number_leads_to_the_one_cell_that_it_is_of(text, name):
    """Even where rows have one name, since data sets have one title, and where heads look like budgets."""
    for number, places in numbers(text, name):
        assert len(places) == 1 and f"mse {number} ± 0 (2)" in cell(text, places[0])


def test_a_difference_leads_to_both_of_its_cells_its_own_first(text):
    for number, (own, other) in numbers(text, "cost"):
        ours, theirs = (float(re.search(r"mse (\S+) ±", cell(text, place))[1]) for place in (own, other))
        assert ours - theirs == pytest.approx(float(number), abs=1e-5)
        assert " SSP, " in cell(text, other) and " AdaSSP, " in cell(text, own)


def test_columns_are_filtered_by_the_epsilon_of_their_trials_whatever_their_heads_are(text):
    for name in ("compared", "cost"):
        tags = epsilon_tags(text, name)
        assert 'data-e="0"' in tags["0.1"] and 'data-e="1"' in tags["1"]
    assert "data-e" not in epsilon_tags(text, "compared")["inf"], "a reference is shown at every epsilon"
    rounds = epsilon_tags(text, "by_rounds")
    assert 'data-e="1"' in rounds["0.1"] and 'data-e="1"' in rounds["1"], "the budget is 1 in both"
    body = section(text, "compared").partition("<tbody>")[2]
    assert body.count('<td data-e="0">') == 6, "numbers are hidden with their column"


def test_columns_of_several_epsilons_have_none_and_rows_of_one_have_theirs(results, tmp_path):
    rows = {**METHODS, "where": {"release.budget.delta": 1e-5}, "panel": EPSILON, "name": "rows", "show": ["SSP"]}
    report = {"panels": {}, "labels": LABELS, "figures": [rows]}
    found = page_of(report, results, tmp_path)
    assert "data-e" not in epsilon_tags(found, "rows")["SSP"]
    body = section(found, "rows").partition("<tbody>")[2]
    assert re.findall(r"<tr[^>]*data-e=\"(\d)\"", body) == ["0", "1"]


def test_only_tables_that_lead_to_trials_are_said_to(text, results, tmp_path):
    assert text.count("A number of this table links to its trials") == 5
    several = "a number from several cells"
    assert several in section(text, "cost") and several not in section(text, "compared")
    alone = page_of({"panels": {}, "labels": LABELS, "figures": [CURVE]}, results, tmp_path)
    assert "links to its trials" not in alone


def test_the_tables_of_an_experiment_lead_to_its_trials(results, tmp_path):
    one = results[0]
    report = {**one.experiment.report, "metrics": ["mse", "r2"], "figures": [FIGURE]}
    one = replace(one, experiment=replace(one.experiment, report=report))
    found = write_experiment_page(one, tmp_path, lambda trial: None).read_text()
    assert found.count("A number of this table links to its trials") == 2
    for number in re.findall(r'<td[^>]*><a href="#(c\d+)">', found[found.index('id="provenance"') :]):
        assert f'id="{number}"' in found


# --- which cells ------------------------------------------------------------------------------------------------------


class Made:
    """A cell as links see it."""

    def __init__(self, experiment, epsilon=None):
        self.experiment, self.tags = experiment, {} if epsilon is None else {"data-e": epsilon}


def led(trials, places, cells, experiments=(), folder=None):
    (table,) = blocks("| a | b |\n| --- | --- |\n| x | 1 |")
    save_trials([{(0, 1): trials}], folder, "t")
    add_links([table], folder, "t", Cells(cells=cells, places=places), experiments)
    return table.links


@pytest.mark.parametrize(
    ("trials", "experiments", "places"),
    [
        (["a", "b"], [], [1]),  # one cell that holds both, not two
        (["a"], ["one"], [0]),
        (["a", "b"], ["one"], []),  # b is of another experiment alone
        (["c", "a"], [], [2, 0]),
        (["unknown"], [], []),
    ],
)
def test_few_cells_hold_all_trials_of_a_number_or_it_leads_nowhere(tmp_path, trials, experiments, places):
    cells = [Made("one"), Made("two"), Made("two")]
    found = led(trials, {"a": [0, 1], "b": [1], "c": [2]}, cells, experiments, tmp_path)
    assert found.cells.get((0, 1), []) == places


@pytest.mark.parametrize(("epsilons", "tag"), [(("3", None), {1: {"data-e": "3"}}), (("3", "4"), {}), ((None,), {})])
def test_a_difference_has_the_epsilon_that_its_cells_share(tmp_path, epsilons, tag):
    cells = [Made("one", epsilon) for epsilon in epsilons]
    names = [str(place) for place in range(len(cells))]
    assert led(names, {name: [int(name)] for name in names}, cells, (), tmp_path).columns == tag


def test_a_document_without_stored_trials_has_no_links(tmp_path):
    found = blocks("| a | b |\n| --- | --- |\n| x | 1 |")
    add_links(found, tmp_path, "none", Cells(), [])
    assert not found[0].links.cells
