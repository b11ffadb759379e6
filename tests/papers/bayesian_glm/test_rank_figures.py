"""Rank histograms and ECDF differences: by hand, their bands against simulation, and what they catch."""

import numpy as np
import pytest
from report.made_up import drawing, footnote, make_score, make_trial

from dpbench.papers.bayesian_glm import binned, cumulated, simultaneous
from dpbench.report.frames.frame import trial_frame
from dpbench.report.kinds import draw_figure

LABELS = {"aim/logistic_rows": "Private"}
SPEC = {"metric": "sbc_rank", "title": "Ranks", "name": "fig"}


def ranked(ranks, repetition=0, **changes):
    score = make_score("sbc_rank", 0.5, "none", columns=["a", "b"], ranks=ranks, draws=99)
    given = {"epsilon": 1.0, "metrics": ["sbc_rank"], "scores": [score]} | changes
    return make_trial("aim", "logistic_rows", repetition=repetition, **given)


def test_points_by_hand():
    edges, over_expected, _, _ = binned(np.array([0, 4, 5, 99]), 99)
    assert (edges[1], over_expected[0], over_expected[1], over_expected[19]) == (0.05, 10, 5, 5)
    z, difference, _, _ = cumulated(np.array([0, 4, 5, 99]), 99)
    assert (z[0], z[-1]) == (0.01, 0.99)
    assert difference[[0, 3, 4, 5]] == pytest.approx([0.24, 0.21, 0.45, 0.69])


def test_bands_hold_uniform_ranks_as_often_as_they_say():
    """2,000 sets of 200 ranks: within 5 standard errors of 0.95 (error rate below 1e-5), but for discreteness."""
    counts = np.random.default_rng(1).multinomial(200, np.full(100, 0.01), size=2000)
    low, high = simultaneous(200, 99)
    below = counts.cumsum(axis=1)[:, :-1]
    assert ((low <= below) & (below <= high)).all(axis=1).mean() == pytest.approx(0.95, abs=0.025)
    _, _, low, high = binned(np.arange(200) // 2, 99)
    value = counts.reshape(-1, 20, 5).sum(axis=2) / 10
    assert 0.945 < ((low <= value) & (value <= high)).mean() < 0.98


def test_a_posterior_that_is_too_narrow_leaves_the_band():
    """Normal posteriors of half the deviation: the ranks of 200 truths pile up at both ends."""
    rng = np.random.default_rng(0)
    for sd, caught in [(0.5, True), (1.0, False)]:
        ranks = (sd * rng.normal(size=(200, 99)) < rng.normal(size=(200, 1))).sum(axis=1)
        _, difference, low, high = cumulated(ranks, 99)
        assert ((difference < low) | (difference > high)).any() == caught


@pytest.mark.parametrize("kind", ["rank_histogram", "rank_ecdf"])
def test_ranks_of_all_repetitions_are_drawn_in_a_panel_each(kind):
    trials = [ranked([0, 50], 0), ranked([99, 10], 1), ranked([1, 2], 0, dataset="other")]
    lost = make_trial("aim", "logistic_rows", repetition=2, epsilon=1.0, metrics=["sbc_rank"], status="unconverged")
    figure, drawn = drawing(
        draw_figure(trial_frame([*trials, lost]), LABELS, SPEC | {"kind": kind, "panels": {"other": "Other"}})
    )
    assert [axes.get_title() for axes in figure.axes] == ["Other", "adult"]
    assert drawn.groupby("panel")["ranks"].first().to_dict() == {"adult": 4, "other": 2}
    reported = footnote(figure)
    assert "95%" in reported and "Private 1 of 4" in reported
    assert draw_figure(trial_frame([lost]), LABELS, SPEC | {"kind": kind}).drawn.empty
