import math

import numpy as np
import pytest
from made_up import LABELS, make_score, make_trial

from dpbench.report.frame import setting_of, trial_frame
from dpbench.report.metric_by_setting import metric_by_setting, placed, settings_of
from dpbench.report.statements import compare

ROWS, FEATURES = "release.split.train_rows", "release.dataset.parameters.features"
SPEC = {"name": "by_rows", "metric": "mse", "x": ROWS, "title": "By rows", "xlabel": "rows n", "yscale": "log"}


def sweep(dataset="simulation", features=(1, 10), sizes=(100, 1000)):
    """The error of a method is `level` / n and features times more; delta and the seed of the mechanism go with n."""
    levels = {("exact", None): 1.0, ("ssp", "tight"): 8.0, ("ssp", "paper"): 4.0, ("aim", None): 2.0}
    return [
        make_trial(
            mechanism, "linear_marginals" if mechanism == "aim" else "linear_statistics",
            epsilon="inf" if mechanism == "exact" else 3 + 1 / n, delta=1 / n, repetition=repetition,
            mse=d * level / n * (1 + 0.1 * repetition), calibration=calibration, dataset=dataset, rows=n,
            data={"features": d, "feature_bounds": [0, 2]}, parameters={"expected_rows": n},
            status="no_estimate" if mechanism == "aim" and n == 100 and repetition else "done",
            spent=6.0 if calibration == "paper" else None,
        )
        for d in features for n in sizes for (mechanism, calibration), level in levels.items() for repetition in (0, 1)
    ]  # fmt: skip


def draw(trials, **changes):
    spec = SPEC | changes
    return metric_by_setting(trial_frame(trials, settings_of(spec)), LABELS, spec)


def footnote(figure):
    return " ".join(figure.get_supxlabel().split())


@pytest.mark.parametrize(
    "path, value",
    [
        (ROWS, 300),
        ("release.dataset.parameters.feature_bounds.1", 8),
        ("release.dataset.parameters.feature_bounds", "0:8"),
        ("release.mechanism.parameters.theta", None),
        ("fit.bins", 40),
    ],
)
def test_a_setting_is_named_by_its_path(path, value):
    assert setting_of(make_trial(rows=300, data={"feature_bounds": [0, 8]}, fit={"bins": 40}), path) == value


def test_mu_is_that_of_the_asked_budget():
    # the delta of 1-Gaussian DP at eps = 1: Phi(-1/2) - e Phi(-3/2)
    trial = make_trial(epsilon=1.0, delta=0.1269367)
    assert setting_of(trial, "release.budget.mu") == 1.0


def test_settings_that_are_asked_for_tell_cells_apart_and_are_no_variants():
    trials = [make_trial(parameters={"theta": theta}, repetition=k) for theta in (0.0, -70.0) for k in (0, 1)]
    path = "release.mechanism.parameters.theta"
    assert set(trial_frame(trials)["variant"]) == {"theta=0.0", "theta=-70.0"}
    frame = trial_frame(trials, [path])
    assert set(frame["variant"]) == {""} and set(frame[path]) == {0.0, -70.0}
    mixed = [*trials, make_trial(parameters={"theta": 0.0, "ratio": 2})]
    assert "ratio=2" in set(trial_frame(mixed, [path])["variant"])


def test_notes_of_a_fit_do_not_hide_a_mixture_of_settings():
    trials = [make_trial(parameters={"theta": theta}, fit={"bins": place}) for place, theta in enumerate((0.0, 1.0))]
    assert set(trial_frame(trials, ["fit.bins"])["variant"]) == {"theta=0.0", "theta=1.0"}


def test_x_is_the_setting_and_a_panel_each_value_of_another():
    figure, drawn = draw(sweep(), panel=FEATURES, panels={10: "d = 10", 1: "d = 1"})
    assert [axes.get_title() for axes in figure.axes] == ["d = 10", "d = 1"]
    assert [list(axes.get_xticks()) for axes in figure.axes] == [[100, 1000]] * 2
    assert figure.axes[0].get_xlabel() == "rows n"
    cell = drawn[(drawn["panel"] == "10") & (drawn["series"] == "SSP (paper)") & (drawn[ROWS] == 1000)]
    assert cell["mean"].item() == pytest.approx(10 * 4 / 1000 * 1.05) and cell["count"].item() == 2
    assert len(drawn) == 2 * 2 * 4, "one point a panel, size and series, though delta and parameters go with the size"


def test_a_calibration_is_dashed_and_hollow_as_in_every_figure():
    figure, _ = draw(sweep(features=(1,)))
    lines = dict(zip(*figure.axes[0].get_legend_handles_labels()[::-1], strict=True))
    paper, tight = lines["SSP (paper)"].lines[0], lines["SSP (tight)"].lines[0]
    assert paper.get_markerfacecolor() == "white" and paper.get_linestyle() == "--"
    assert tight.get_linestyle() == "-" and tight.get_color() == paper.get_color()


def test_only_the_rows_of_where_are_shown():
    _, drawn = draw(sweep(), where={FEATURES: 1})
    assert drawn["mean"].max() < 10 * 1 / 100


def test_a_method_without_the_setting_is_a_line():
    trials = [make_trial(parameters={"theta": theta}) for theta in (1.0, 2.0)] + [make_trial("adassp")]
    _, drawn = draw(trials, x="release.mechanism.parameters.theta")
    assert dict(zip(drawn["series"], drawn["kind"], strict=True)) == {"SSP": "point", "AdaSSP": "line"}


def test_the_footnote_counts_what_is_lost_and_names_overspending():
    text = footnote(draw(sweep(), panel=FEATURES)[0])
    assert "100 to 1000 training rows at most" in text and "δ = 0.001 to 0.01" in text
    assert "No value (failed, no estimate or not finite): DD-SSP 2 of 8" in text
    assert "Spent ε exceeds the asked ε: SSP (paper) by up to 2 times" in text


def test_points_stay_within_the_axis_though_settings_are_far_apart():
    figure, drawn = draw(sweep(sizes=(10, 1000)))
    low, high = figure.axes[0].get_xlim()
    assert drawn["x"].between(low, high).all()


def test_claims_are_checked_at_each_value_with_the_margin_there():
    spec = SPEC | {"panel": FEATURES}
    rows = placed(trial_frame(sweep(), settings_of(spec)), spec)
    claim = {"method": "exact/linear_statistics", "baseline": "ssp/linear_statistics", "relation": "similar"}
    compared = compare(rows, claim, "mse", {"part": 0.5, "of": "exact/linear_statistics"})
    tight = compared[(compared["calibration"] == "tight") & (compared["dataset"] == "10")]
    assert list(tight["epsilon"]) == [100, 1000] and list(tight["pairs"]) == [2, 2]
    np.testing.assert_allclose(tight["margin"], [0.5 * 10 * 1.05 / 100, 0.5 * 10 * 1.05 / 1000])
    chosen = compare(rows, claim | {"at": [1000]}, "mse", {"part": 0.5, "of": "exact/linear_statistics"})
    assert set(chosen["epsilon"]) == {1000}


def test_data_sets_with_budgets_of_their_own_are_compared_at_their_mu():
    def score(mechanism, dataset, epsilon, delta, repetition, value):
        scores = [make_score("mse", value + repetition, "lower")]
        return make_trial(mechanism, epsilon=epsilon, delta=delta, dataset=dataset, repetition=repetition,
                          metrics=["mse"], scores=scores)  # fmt: skip

    budgets = {"a": (1.0, 0.1269367), "b": (3.0, 0.01)}
    trials = [
        score(mechanism, name, *budgets[name], repetition, value)
        for name in budgets for repetition in range(3) for mechanism, value in (("ssp", 2.0), ("adassp", 1.0))
    ]  # fmt: skip
    spec = {"metric": "mse", "x": "release.budget.mu"}
    claim = {"method": "adassp/linear_statistics", "baseline": "ssp/linear_statistics", "relation": "better", "at": [1]}
    rows = placed(trial_frame(trials, settings_of(spec)), spec)
    compared = compare(rows, claim, "mse", {}).set_index("dataset")
    assert compared.loc["a", "verdict"] == "agrees" and compared.loc["b", "verdict"] == "not run"
    assert math.isclose(compared.loc["a", "difference"], 1.0)
