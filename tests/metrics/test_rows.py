"""The quality of rows in a grid: the scores of `dpbench evaluate`, on a split."""

import math

import numpy as np
import pytest

from dpbench.data.encode import Design
from dpbench.data.table import Split
from dpbench.metrics import rows
from dpbench.metrics.distinguish import distinguish
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.metrics.quality import conclusions, efficacy
from dpbench.metrics.similarity import similarity
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SyntheticRows


@pytest.fixture
def tables(small_table):
    return small_table.take(np.arange(1500)), small_table.take(np.arange(1500, 1900))


def evaluation(train, test, made, target="grade", protocol="split"):
    release = Release(train.domain, Budget(math.inf), Ledger(), (SyntheticRows(made),))
    return Evaluation(
        Fit(np.zeros(1)), release, Reference(Split(train, test, protocol=protocol), Design(train.domain, target))
    )


def noisy(table, share, rng):
    """The rows with a share of the values of each attribute shuffled."""
    codes = table.codes.copy()
    for column in codes.T:
        some = rng.random(len(column)) < share
        column[some] = rng.permutation(column[some])
    return type(table)(table.domain, codes)


def test_the_scores_are_those_of_evaluate(tables):
    train, test = tables
    made = noisy(train, 0.5, np.random.default_rng(0))
    own, design = evaluation(train, test, made), Design(train.domain, "grade", classes=True)
    near = similarity(train, made, (), train.domain.names)
    assert rows.two_way(own).value == pytest.approx(near["two_way", ()])
    assert rows.three_way(own).value == pytest.approx(near["three_way", ()])
    assert rows.auc_trees(own).value == distinguish(train, made, np.random.default_rng(0))["auc_trees", ()]
    trained = efficacy(made, test, design, np.random.default_rng(0))
    assert rows.efficacy_trees(own).value == trained["efficacy_trees", ()]
    assert rows.findings(own).value == conclusions(train, [made], design)[0]["findings", ()]


def test_rows_that_keep_more_of_the_real_ones_score_better(tables):
    train, test = tables
    near, far = (evaluation(train, test, noisy(train, share, np.random.default_rng(1))) for share in (0.1, 1.0))
    for metric in (rows.two_way, rows.three_way, rows.auc_trees, rows.efficacy_trees, rows.findings):
        better, worse = metric(near), metric(far)
        sign = 1 if better.direction == "higher" else -1
        assert sign * better.value > sign * worse.value, metric.__name__


def test_distances_are_from_the_rows_that_the_mechanism_saw(tables):
    train, test = tables
    both = type(train)(train.domain, np.concatenate([train.codes, test.codes]))
    assert rows.two_way(evaluation(train, test, both, protocol="authors")).value == 0
    assert rows.two_way(evaluation(train, test, both)).value > 0


def test_a_target_of_several_levels_has_an_accuracy_and_no_findings(tables):
    train, test = tables
    own = evaluation(train, test, train, target="grade")
    several = Evaluation(
        own.fit, own.release, Reference(own.reference.split, Design(train.domain, "work", classes=True))
    )
    assert math.isnan(rows.findings(several).value) and 0 < rows.efficacy_trees(several).value < 1
