"""The histogram of margins by hand, and as a run stores it."""

import math

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.grid.store import Store
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.metrics.margins import margins_inside
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release
from dpbench.report.frames.frame import trial_frame

DOMAIN = Domain((Attribute.discrete("x", [-1, 0, 0.5, 1]), Attribute.categorical("y", ["no", "yes"])))


def evaluation(x, y, theta: float, target: str = "y") -> Evaluation:
    rows = Table(DOMAIN, np.array([x, y]).T)
    release = Release(DOMAIN, Budget(math.inf), Ledger())
    return Evaluation(Fit(np.array([theta])), release, Reference(Split(rows, rows), Design(DOMAIN, target, False)))


@pytest.mark.parametrize(
    ("theta", "inside", "bins"),
    [
        (6.0, 1.0, {(6, 6.25): 2, (0, 0.25): 1, (3, 3.25): 1, (-6, -5.75): 1}),
        (6.1, 2 / 5, {(6, 6.25): 2, (0, 0.25): 1, (3, 3.25): 1, (-6.25, -6): 1}),
        (40.0, 1 / 5, {(15, math.inf): 3, (0, 0.25): 1, (-math.inf, -15): 1}),
    ],
)
def test_by_hand(theta, inside, bins):
    # y x theta, for x = -1, -1, 0, 0.5, 1 with the labels -1, -1, -1, 1, -1
    score = margins_inside(evaluation([0, 0, 1, 2, 3], [0, 0, 0, 1, 0], theta))
    assert (score.value, score.direction) == (inside, "none")
    edges = [-math.inf, *score.detail["edges"], math.inf]
    assert (edges[1], edges[-2], len(edges)) == (-15, 15, 123)
    found = {(low, high): n for low, high, n in zip(edges, edges[1:], score.detail["counts"], strict=False) if n}
    assert found == bins
    assert len(score.detail["counts"]) == 122


def test_a_target_of_many_values_is_refused():
    with pytest.raises(ValueError, match="'x' does not have two levels; leave out metrics of classification"):
        margins_inside(evaluation([0, 1], [0, 1], 1.0, target="x"))


def test_a_run_stores_the_histogram_with_the_number_and_the_report_reads_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = "dataset=adult_synth dataset.target=sex sample=smoke limits=smoke"
    line += " mechanism=[objpert] model=[released_coefficients]"
    more = "metric=[auc,margins_inside] calibration=[tight,paper] epsilon=1 repetitions=1 jobs=1"
    assert main(["run", *line.split(), *more.split(), f"results={tmp_path}"]) == 0
    trials = [*Store(tmp_path, "grid").all_trials()]
    assert len(trials) == 2
    for trial in (trial.to_dict() for trial in trials):
        auc, margins = trial["scores"]
        assert sorted(auc) == ["direction", "name", "unit", "value"]
        assert sum(margins["detail"]["counts"]) == 500  # sample=smoke
    frame = trial_frame(trials)
    assert sorted(frame["metric"]) == ["auc", "auc", "margins_inside", "margins_inside"]
    assert frame["value"].between(0, 1).all()
