import numpy as np
import pytest

from dpbench.report.frames.frame import summarise, trial_frame
from dpbench.report.picture.save import save_figure

from ..made_up import SPEC, draw, footnote, make_grid, make_score, make_trial, picture


def test_what_is_drawn_are_the_means_and_errors_of_the_frame():
    trials = make_grid()
    _, drawn = draw(trials)
    cells = summarise(trial_frame(trials))
    assert sorted(drawn["mean"]) == sorted(cells.loc[cells["metric"] == "mse", "mean"])
    np.testing.assert_allclose(drawn["high"] - drawn["mean"], drawn["se"])


def test_a_panel_per_data_set_and_delta():
    trials = [make_trial(), make_trial(delta=1e-6), make_trial(dataset="taxi"), make_trial("exact", epsilon=np.inf)]
    figure, _ = draw(trials)
    assert [axes.get_title() for axes in figure.axes] == ["adult, δ = 1e-06", "adult, δ = 1e-05", "taxi"]
    assert ["public" in axes.get_legend_handles_labels()[1] for axes in figure.axes] == [True, True, False]


@pytest.mark.parametrize(
    "trials",
    [
        [make_trial("exact", epsilon=np.inf)],
        [make_trial(status="failed")],
        [make_trial(mse=-1.0)],
        [make_trial(mse=0.0), make_trial(repetition=1, mse=0.3)],
        [make_trial(metrics=["r2"], scores=[make_score("r2", 1.0)])],
    ],
    ids=["reference only", "all failed", "negative on a log axis", "bar down to zero", "no such metric"],
)
def test_scarce_trials_are_drawn_all_the_same(trials, tmp_path):
    assert len(save_figure(picture(trials), tmp_path, "scarce")) == 2


def test_declared_panels_give_titles_and_order_also_to_a_single_one():
    trials = [make_trial(), make_trial(dataset="taxi")]
    titles = {"taxi": "Taxi (2020)", "adult": "Adult", "fire": "Fire"}
    figure, drawn = draw(trials, panels=titles)
    assert [axes.get_title() for axes in figure.axes] == ["Taxi (2020)", "Adult"]
    assert "Each data set: up to 50,000 training" in footnote(figure)
    assert list(drawn["panel"]) == ["taxi", "adult"]
    figure, _ = draw(trials[:1], panels=titles)
    assert (figure.axes[0].get_title(), figure.get_suptitle()) == (f"{SPEC['title']}\nAdult", "")
    assert "Adult: up to 50,000 training" in footnote(figure)
    figure, _ = draw(
        trials[:1], panels=titles, title="A title that is too long to stand above a single panel and a legend"
    )
    above = ["A title that is too long to stand above", "a single panel and a legend", "Adult"]
    assert (figure.axes[0].get_title().split("\n"), figure.get_suptitle()) == (above, "")
