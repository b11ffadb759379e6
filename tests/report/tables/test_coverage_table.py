import math
from dataclasses import replace

import numpy as np
import pytest

from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import placed, settings_of
from dpbench.report.tables.coverage_table import LEVEL, coverage_table

from ..made_up import make_score, make_trial

LABELS = {"binagg/own": "BinAgg", "binagg/naive": "BinAgg, naive"}
SPEC = {"x": "release.dataset.parameters.coefficients_seed", "method": "BinAgg", "naive": "BinAgg, naive"}
TRUTH = [1.0, 2.0]
PUBLISHED = {"where": "Table 1", "repetitions": 4, "digit": 0.001, "rows": [[0, 0.6, 0.5, 0.1, 1.0, 0.5], [9] * 6]}


def trials_of(model, errors, half, draw=0, calibration="tight", status="done", start=0):
    """A repetition an error, of both coefficients, with intervals of this half-width around the estimate."""
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
    rows = made.tidy
    for column, value in chosen.items():
        rows = rows[rows[column] == value]
    return rows.set_index("column")


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
    assert rows.loc["naive coverage", "value"] == 0.5 and rows.loc["naive coverage", "se"] == pytest.approx(0.25)


def test_a_row_a_draw_calibration_and_coefficient():
    made = table(TRIALS + trials_of("own", ERRORS, 0.2, draw=1) + trials_of("own", ERRORS, 0.2, calibration="paper"))
    assert [line[:3] for line in made.rows] == [
        [draw, f"BinAgg ({calibration})", name]
        for draw, calibration in (("0", "paper"), ("0", "tight"), ("1", "tight"))
        for name in ("x1", "x2")
    ]
    assert made.rows[0][-1] == "not run", "the naive interval was run under the tight calibration only"


def test_the_published_numbers_stand_beside_by_coefficient_with_verdicts():
    made = table(TRIALS, PUBLISHED)
    first, second = (numbers(made, coefficient=name)["verdict"] for name in ("x1", "x2"))
    assert first["bias"] == "within", "its standard error is less than a tenth of the published SD"
    assert first["theoretical SD"] == "lower"
    assert first["naive coverage"] == "not precise enough", "2 of 4 may be any coverage"
    assert set(second) == {"lower"}
    assert "paper 0.5: not precise enough" in made.rows[0][-1]


def test_trials_without_an_estimate_are_counted_and_left_out():
    lost = trials_of("own", (0.0,), 0.2, status="no_estimate", start=4)
    made = table(TRIALS + lost)
    assert set(numbers(made, coefficient="x1").loc[["bias", "coverage"], "count"]) == {4}
    assert any("No value (failed, no estimate or not finite): BinAgg 1 of 5" in text for text in made.told)
