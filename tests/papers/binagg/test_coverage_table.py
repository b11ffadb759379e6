import math
from dataclasses import replace

import numpy as np
import pytest
from report.made_up import make_score, make_trial

from dpbench.config import compose
from dpbench.papers.binagg import LEVEL, PACKAGE, coverage_table
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.results import Results, frame_of
from dpbench.report.frames.settings import placed, settings_of

LABELS = {"binagg/own": "BinAgg", "binagg/naive": "BinAgg, naive"}
SPEC = {"x": "release.dataset.parameters.coefficients_seed", "method": "BinAgg", "naive": "BinAgg, naive"}
TRUTH = [1.0, 2.0]
PUBLISHED = {"where": "Table 1", "repetitions": 4, "digit": 0.001, "rows": [[0, 0.8, 0.5, 0.1, 1.0, 0.5], [9] * 6]}


def trials_of(model, errors, half, draw=0, calibration="tight", status="done", start=0):
    """One repetition per error, of both coefficients, with intervals of this half-width around the estimate."""
    trials = []
    for place, error in enumerate(errors, start=start):
        estimate = np.add(TRUTH, error)
        score = make_score(
            "coverage", 1.0, "none", columns=["x1", "x2"], population=TRUTH, coefficients=estimate.tolist(),
            lower=(estimate - half).tolist(), upper=(estimate + half).tolist(),
        )  # fmt: skip
        trials.append(
            make_trial(
                "binagg",
                model,
                repetition=place,
                calibration=calibration,
                metrics=["coverage"],
                scores=[score],
                data={"coefficients_seed": draw},
                status=status,
            )
        )
        trial = trials[-1]
        level = replace(trial.key.fit.model, parameters={"level": 0.95})
        trials[-1] = replace(trial, key=replace(trial.key, fit=replace(trial.key.fit, model=level)))
    return trials


def table(trials, published=None):
    return coverage_table(placed(trial_frame(trials, [*settings_of(SPEC), LEVEL]), SPEC), LABELS, SPEC, published or {})


ERRORS = (-0.1, 0.1, -0.1, 0.1)
TRIALS = trials_of("own", ERRORS, half=0.2) + trials_of("naive", (-0.1, 0.02, 0.01, 0.1), half=0.05)


def numbers(made, **chosen):
    """Our numbers by quantity."""
    rows = made.tidy[made.tidy["series"] != PACKAGE]
    for column, value in chosen.items():
        rows = rows[rows[column] == value]
    return rows.set_index("quantity")


def test_each_number_is_that_of_the_stored_intervals():
    rows = numbers(table(TRIALS), coefficient="x1")
    sd = np.std(ERRORS, ddof=1)
    assert rows.loc["bias", "value"] == pytest.approx(0)
    assert rows.loc["bias", "se"] == pytest.approx(sd / 2)
    assert rows.loc["empirical SD", "value"] == pytest.approx(sd)
    assert rows.loc["empirical SD", "se"] == pytest.approx(sd / math.sqrt(6))
    assert rows.loc["theoretical SD", "value"] == pytest.approx(0.2 / 1.959964)
    assert rows.loc["naive theoretical SD", "value"] == pytest.approx(0.05 / 1.959964)
    assert rows.loc["coverage", "value"] == 1.0
    assert rows.loc["coverage", "se"] == pytest.approx(math.sqrt(0.75 * 0.25 / 4)), "the next of so few may miss"
    assert rows.loc["naive coverage", "value"] == 0.5 and rows.loc["naive coverage", "se"] == pytest.approx(0.25)


def test_where_keeps_the_trials_of_one_setting_even_one_that_the_table_reads_by_itself():
    others = []
    for one in trials_of("own", (0.3, 0.3), half=0.01, start=10):
        model = replace(one.key.fit.model, parameters={"level": 0.5})
        others.append(replace(one, key=replace(one.key, fit=replace(one.key.fit, model=model))))
    spec = {**SPEC, "where": {LEVEL: 0.95}}
    frame = frame_of([Results(compose([]), TRIALS + others)], spec, [LEVEL])
    rows = numbers(coverage_table(frame, LABELS, spec, {}), coefficient="x1")
    assert rows.loc["coverage", "value"] == 1.0 and rows.loc["coverage", "count"] == len(ERRORS)


def test_naive_numbers_are_of_the_naive_trials_and_published_ones_of_none():
    made = table(TRIALS, PUBLISHED)
    assert made.header[3:] == ["published", "BinAgg"] and {column for _, column in made.trials} == {4}
    for (row, _), ids in made.trials.items():
        of = TRIALS[4:] if made.rows[row][1].startswith("naive") else TRIALS[:4]
        assert sorted(ids) == sorted(trial.id for trial in of)


def test_a_row_a_draw_quantity_and_coefficient_and_a_column_a_calibration():
    made = table(TRIALS + trials_of("own", ERRORS, 0.2, draw=1) + trials_of("own", ERRORS, 0.2, calibration="paper"))
    assert made.header[1:] == ["quantity", "coefficient", "BinAgg (tight)", "BinAgg (paper)"]
    places = [line[:3] for line in made.rows]
    assert places[:3] == [["0", "bias", "x1"], ["0", "bias", "x2"], ["0", "empirical SD", "x1"]]
    assert len(places) == 12 + 8, "the naive interval was run for the first draw only"
    line = made.rows[places.index(["0", "naive coverage", "x1"])]
    assert line[3:] == ["0.50 ± 0.25", "not run"], "and under the tight calibration only"


def test_the_published_numbers_are_shown_by_coefficient_with_verdicts():
    made = table(TRIALS, PUBLISHED)
    first, second = (numbers(made, coefficient=name)["verdict, published"] for name in ("x1", "x2"))
    assert first["bias"] == "within", "its standard error and interval are small compared with the published SD"
    assert first["theoretical SD"] == "lower"
    assert first["naive coverage"] == "not precise enough", "2 of 4 may be any coverage"
    assert set(second) == {"lower"}
    assert made.header[3] == "published"
    assert made.rows[-2][1:] == ["naive coverage", "x1", "0.5", "0.50 ± 0.25: not precise enough"]


PACKAGE_ROWS = {"where": "its commit", "repetitions": 4, "digit": [0.001] * 4 + [0.01] * 2}


def with_package(sd, published_sd):
    """The table of trials under `authors` and a package that gives this empirical SD of x1, and nothing else."""
    package = PACKAGE_ROWS | {"rows": [[None, sd, None, None, None, None]]}
    published = PUBLISHED | {"rows": [[0, published_sd, 0.5, 0.1, 1.0, 0.5]], "package": package}
    trials = [one for k in range(30) for one in trials_of("own", ERRORS, 0.2, calibration="authors", start=4 * k)]
    return table(trials, published)


def test_the_authors_package_has_a_column_and_what_it_agrees_with_is_reported():
    made = with_package(sd=0.1, published_sd=0.6)
    line = next(line for line in made.rows if line[1:3] == ["empirical SD", "x1"])
    assert made.header[3:] == ["published", "authors' package", "BinAgg (authors)"]
    assert line[3:5] == ["0.6", "0.1: lower"] and line[5].endswith(": lower; package: within")
    assert next(line for line in made.rows if line[1:3] == ["bias", "x1"])[3:5] == ["0", ""]
    reported = " ".join(made.footnotes)
    assert "of the authors' package: BinAgg (authors) 1 of 1, the publication 0 of 1;" in reported
    assert "The authors' package agrees (at least 90 %) with BinAgg (authors)" in reported
    assert "The authors' package does not agree (at most 50 %) with the publication" in reported


def test_a_package_that_agrees_with_the_publication_and_not_with_ours_is_reported():
    reported = " ".join(with_package(sd=0.6, published_sd=0.6).footnotes)
    assert "The authors' package agrees (at least 90 %) with the publication" in reported
    assert "The authors' package does not agree (at most 50 %) with BinAgg (authors)" in reported


def test_the_spread_of_the_package_is_ours_over_its_own_number_of_repetitions():
    """Ours are 120 and the package's 4, so that its standard error is sqrt(120 / 4) times as large."""
    tidy = with_package(sd=0.1, published_sd=0.6).tidy
    rows = tidy[(tidy["quantity"] == "empirical SD") & (tidy["coefficient"] == "x1")].set_index("series")
    assert rows["count"].to_dict() == {"BinAgg (authors)": 120, PACKAGE: 4}
    assert rows.loc[PACKAGE, "se"] == pytest.approx(rows.loc["BinAgg (authors)", "se"] * math.sqrt(30))


def test_trials_without_an_estimate_are_counted_and_left_out():
    lost = trials_of("own", (0.0,), 0.2, status="no_estimate", start=4)
    made = table(TRIALS + lost)
    assert set(numbers(made, coefficient="x1").loc[["bias", "coverage"], "count"]) == {4}
    assert any("No value (failed, no estimate or not finite): BinAgg 1 of 5" in text for text in made.footnotes)
