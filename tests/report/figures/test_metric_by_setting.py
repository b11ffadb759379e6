import math

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.report.claims.statements import compare
from dpbench.report.figures.lines import CATEGORY_DODGE
from dpbench.report.figures.metric_by_setting import metric_by_setting
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import note_of, placed, setting_of, settings_of

from ..made_up import LABELS, drawing, footnote, lines_of, make_score, make_trial

ROWS, FEATURES = "release.split.train_rows", "release.dataset.parameters.features"
SPEC = {"name": "by_rows", "metric": "mse", "x": ROWS, "title": "By rows", "xlabel": "rows n", "yscale": "log"}


def sweep(dataset="simulation", features=(1, 10), sizes=(100, 1000)):
    """The error of a method is `level` / n and features times more; delta and the seed of the mechanism go with n."""
    levels = {("exact", None): 1.0, ("ssp", "tight"): 8.0, ("ssp", "paper"): 4.0, ("aim", None): 2.0}
    return [
        make_trial(
            mechanism, "linear_marginals" if mechanism == "aim" else "linear_statistics",
            epsilon=math.inf if mechanism == "exact" else 3 + 1 / n, delta=1 / n, repetition=repetition,
            mse=d * level / n * (1 + 0.1 * repetition), calibration=calibration, dataset=dataset, rows=n,
            data={"features": d, "feature_bounds": [0, 2]}, parameters={"expected_rows": n},
            status="no_estimate" if mechanism == "aim" and n == 100 and repetition else "done",
            spent=6.0 if calibration == "paper" else None,
        )
        for d in features for n in sizes for (mechanism, calibration), level in levels.items() for repetition in (0, 1)
    ]  # fmt: skip


def draw(trials, **changes):
    spec = SPEC | changes
    return drawing(metric_by_setting(placed(trial_frame(trials, settings_of(spec)), spec), LABELS, spec))


@pytest.mark.parametrize(
    "path, value",
    [
        (ROWS, 300),
        ("release.dataset.parameters.feature_bounds.1", 8),
        ("release.dataset.parameters.feature_bounds", "0:8"),
        ("release.mechanism.parameters.theta", None),
    ],
)
def test_a_setting_is_named_by_its_path(path, value):
    assert setting_of(make_trial(rows=300, data={"feature_bounds": [0, 8]}).key, path) == value


def test_a_note_of_a_fit_is_named_by_its_path():
    assert note_of(make_trial(notes={"bins": 40}), "notes.bins") == 40
    assert note_of(make_trial(status="failed"), "notes.bins") is None


def test_mu_is_that_of_the_asked_budget():
    # the delta of 1-Gaussian DP at eps = 1: Phi(-1/2) - e Phi(-3/2)
    trial = make_trial(epsilon=1.0, delta=0.1269367)
    assert setting_of(trial.key, "release.budget.mu") == 1.0


def test_settings_that_are_asked_for_distinguish_cells_and_are_no_variants():
    trials = [make_trial(parameters={"theta": theta}, repetition=k) for theta in (0.0, -70.0) for k in (0, 1)]
    path = "release.mechanism.parameters.theta"
    assert set(trial_frame(trials)["variant"]) == {"theta=0.0", "theta=-70.0"}
    frame = trial_frame(trials, [path])
    assert set(frame["variant"]) == {""} and set(frame[path]) == {0.0, -70.0}
    mixed = [*trials, make_trial(parameters={"theta": 0.0, "ratio": 2})]
    assert "ratio=2" in set(trial_frame(mixed, [path])["variant"])


def test_notes_of_a_fit_do_not_hide_a_mixture_of_settings():
    trials = [make_trial(parameters={"theta": theta}, notes={"bins": place}) for place, theta in enumerate((0.0, 1.0))]
    assert set(trial_frame(trials, ["notes.bins"])["variant"]) == {"theta=0.0", "theta=1.0"}


def test_x_is_the_setting_and_a_panel_each_value_of_another():
    figure, drawn = draw(sweep(), panel=FEATURES, panels={10: "d = 10", 1: "d = 1"})
    assert [axes.get_title() for axes in figure.axes] == ["d = 10", "d = 1"]
    assert [list(axes.get_xticks()) for axes in figure.axes] == [[100, 1000]] * 2
    assert figure.axes[0].get_xlabel() == "rows n"
    cell = drawn[(drawn["panel"] == "10") & (drawn["series"] == "SSP (paper)") & (drawn["x"] == 1000)]
    assert cell["mean"].item() == pytest.approx(10 * 4 / 1000 * 1.05) and cell["count"].item() == 2
    assert len(drawn) == 2 * 2 * 4, "one point per panel, size and series, though delta and parameters go with the size"


def test_only_the_rows_of_where_are_shown():
    _, drawn = draw(sweep(), where={FEATURES: 1})
    assert drawn["mean"].max() < 10 * 1 / 100


def test_a_method_without_the_setting_is_a_line():
    trials = [make_trial(parameters={"theta": theta}) for theta in (1.0, 2.0)] + [make_trial("adassp")]
    _, drawn = draw(trials, x="release.mechanism.parameters.theta")
    assert dict(zip(drawn["series"], drawn["kind"], strict=True)) == {"SSP": "point", "AdaSSP": "line"}


def test_points_stay_within_the_axis_though_settings_are_far_apart():
    figure, _ = draw(sweep(sizes=(10, 1000)))
    low, high = figure.axes[0].get_xlim()
    assert all(low < place < high for line in lines_of(figure).values() for place in line.get_xdata())


def test_claims_are_checked_at_each_value_with_the_margin_there():
    spec = SPEC | {"panel": FEATURES}
    rows = placed(trial_frame(sweep(), settings_of(spec)), spec)
    claim = {"method": "exact/linear_statistics", "baseline": "ssp/linear_statistics", "relation": "similar"}
    compared = compare(rows, claim, "mse", {"part": 0.5, "of": "exact/linear_statistics"})
    tight = compared[(compared["calibration"] == "tight") & (compared["panel"] == "10")]
    assert list(tight["x"]) == [100, 1000] and list(tight["pairs"]) == [2, 2]
    np.testing.assert_allclose(tight["margin"], [0.5 * 10 * 1.05 / 100, 0.5 * 10 * 1.05 / 1000])
    chosen = compare(rows, claim | {"at": [1000]}, "mse", {"part": 0.5, "of": "exact/linear_statistics"})
    assert set(chosen["x"]) == {1000}


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
    compared = compare(rows, claim, "mse", {}).set_index("panel")
    assert compared.loc["a", "verdict"] == "agrees" and compared.loc["b", "verdict"] == "not run"
    assert math.isclose(compared.loc["a", "difference"], 1.0)


def test_medians_have_bars_from_quartile_to_quartile_and_tell_how_many_have_an_estimate():
    errors = [0.1, 0.2, 0.3, 0.4, 1000.0]
    trials = [make_trial(rows=100, repetition=place, mse=error) for place, error in enumerate(errors)]
    trials += [make_trial(rows=100, repetition=5, status="no_estimate"), make_trial(rows=200, mse=0.5)]
    figure, drawn = draw(trials, statistic="median")
    first, second = drawn.to_dict("records")
    assert [first[name] for name in ("median", "low", "high", "count", "failed")] == [0.3, 0.2, 0.4, 5, 1]
    assert (second["median"], second["low"], second["high"]) == (0.5, 0.5, 0.5)
    assert not {"mean", "se"} & set(drawn)
    assert [text.get_text() for text in figure.axes[0].texts] == ["5"], "not at the point that stands for all"
    (bar, _) = figure.axes[0].collections[0].get_segments()
    np.testing.assert_allclose(bar[:, 1], [0.2, 0.4])
    assert any("from quartile to quartile" in text.get_text() for text in figure.texts)


def test_medians_of_no_estimates_are_an_empty_panel():
    figure, drawn = draw([make_trial(rows=100, status="no_estimate")], statistic="median")
    assert drawn["median"].isna().all()
    assert [text.get_text() for text in figure.axes[0].texts] == ["no trial has a score"]


def test_an_unknown_statistic_is_refused():
    with pytest.raises(UserError, match="unknown statistic 'mode'"):
        draw([make_trial(rows=100)], statistic="mode")


def test_bars_are_95_per_cent_intervals_where_asked_for():
    """Of 2 repetitions they are 12.7 standard errors long, Student's t at 0.975 with 1 degree of freedom."""
    trials = [make_trial(rows=100, repetition=i, mse=value) for i, value in enumerate([0.4, 0.6])]
    figure, drawn = draw(trials, statistic="mean_95")
    (point,) = drawn.to_dict("records")
    assert point["mean"] == pytest.approx(0.5)
    assert point["high"] - point["mean"] == pytest.approx(12.706 * 0.1, rel=1e-3)
    assert "95 % interval" in footnote(figure)


def test_a_rate_has_its_own_shape_from_the_first_point_on():
    rates = {"the rate": "dpbench.metrics.excess_risk.lower_bound"}
    trials = [trial for trial in sweep(features=(1,)) if trial.key.release.mechanism.name == "ssp"]
    figure, drawn = draw(trials, rates=rates)
    x, y = lines_of(figure)["the rate"].get_data()
    assert (x[0], x[-1]) == (100, 1000)
    assert y[0] == drawn.loc[drawn["x"] == 100, "mean"].iloc[0]
    assert y[-1] / y[0] == pytest.approx((math.log(100) / math.log(1000)) ** 3)
    with pytest.raises(UserError, match="rates: elsewhere"):
        draw(trials, rates={"elsewhere": "math.log"})


MODELS = {"linear_rows": "on rows", "linear_marginals": "on some marginals", "linear_statistics": "on statistics"}
BY_MODEL = {"x": "model.name", "categories": MODELS, "yscale": "linear"}


def by_model(models=("linear_marginals", "linear_rows")):
    return [
        make_trial("aim", model, repetition=k, calibration=name, mse=mean + 0.1 * k)
        for model in models for name, mean in (("tight", 0.2), ("paper", 0.5)) for k in range(2)
    ]  # fmt: skip


def test_models_are_categories_of_one_series_in_the_order_of_their_names():
    figure, drawn = draw([*by_model(), *by_model(["zeroes"])], **BY_MODEL)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["on rows", "on some\nmarginals", "zeroes"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["AIM-Synth (tight)", "AIM-Synth (paper)"]
    tight = drawn[drawn["series"] == "AIM-Synth (tight)"]
    assert tight["category"].to_list() == ["on rows", "on some marginals", "zeroes"]
    assert tight["model"].to_list() == ["linear_rows", "linear_marginals", "zeroes"]
    assert tight["mean"].to_list() == pytest.approx([0.25] * 3) and (drawn["count"] == 2).all()
    assert not {"x", "kind"} & set(drawn), "the numbers that stand for categories are nobody's"


def test_categories_are_evenly_apart_side_by_side_and_no_line_joins_them():
    figure, _ = draw(by_model(list(MODELS)), **BY_MODEL)
    (axes,) = figure.axes
    tight, paper = (
        axes.transData.transform(np.column_stack(line.get_data()))[:, 0]
        for line in axes.lines
        if line.get_marker() not in ("_", "None")
    )
    assert np.diff(tight)[0] == pytest.approx(np.diff(tight)[1]) and (paper > tight).all()
    np.testing.assert_allclose(paper - tight, CATEGORY_DODGE * np.diff(tight)[0])
    assert {line.get_linestyle() for line in axes.lines} == {"None"}


def test_words_that_are_no_models_may_be_categories_too():
    trials = [make_trial(data={"mode": mode}) for mode in ("fast", "slow")] + [make_trial("adassp")]
    path = "release.dataset.parameters.mode"
    figure, drawn = draw(trials, x=path, categories={"slow": "slow one", "fast": "fast one"})
    assert drawn.groupby("series")["category"].apply(list)["SSP"] == ["slow one", "fast one"]
    assert lines_of(figure)["AdaSSP"].get_linestyle() == "-", "a method without the setting is a line"
