"""Intervals for DD-SSP: their coverage where the model is true, and what they follow."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, pairs
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.grid.store import Store
from dpbench.mechanisms.exact import exact_table
from dpbench.mechanisms.mst import mst
from dpbench.mechanisms.ssp import ssp
from dpbench.models.bootstrap import _intervals, linear_marginals_bootstrap
from dpbench.models.linear import linear_marginals, solve
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Marginals, SyntheticRows

DOMAIN = Domain(
    (
        Attribute.categorical("work", ["private", "public", "none"]),
        Attribute.binned("age", 16, 96, 4),
        Attribute.discrete("grade", range(1, 6)),
        Attribute.categorical("sex", ["f", "m"]),
    )
)
DESIGN = Design(DOMAIN, "grade")
NO_NOISE = np.random.default_rng(0)


def population() -> np.ndarray:
    """A tree, work - age - grade - sex, as the table (3, 4, 5, 2) of its probabilities."""
    age = np.array([0.3, 0.3, 0.2, 0.2])
    work = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.6, 0.3], [0.1, 0.2, 0.7]])  # given age
    distance = np.abs(np.arange(4)[:, None] * 4 / 3 - np.arange(5))
    grade = 0.6 ** (2 * distance) / (0.6 ** (2 * distance)).sum(axis=1, keepdims=True)  # given age
    sex = np.array([[0.8, 0.2], [0.7, 0.3], [0.5, 0.5], [0.3, 0.7], [0.2, 0.8]])  # given grade
    return np.einsum("a,aw,ag,gs->wags", age, work, grade, sex)


def drawn(n: int, rng: np.random.Generator) -> Table:
    p = population()
    cells = rng.choice(p.size, size=n, p=p.ravel())
    return Table(DOMAIN, np.stack(np.unravel_index(cells, p.shape), axis=1).astype(np.int64))


def true_coefficients() -> np.ndarray:
    p = population()
    axes = {name: i for i, name in enumerate(DOMAIN.names)}
    marginals = {
        pair: p.sum(axis=tuple(i for i in range(4) if i not in (axes[pair[0]], axes[pair[1]])))
        for pair in pairs(DOMAIN)
    }
    return solve(*DESIGN.moments(marginals)).coefficients


def release(n: int, epsilon: float, seed: int):
    rng = np.random.default_rng(seed)
    return mst(drawn(n, rng), Budget(epsilon), rng, tolerance=1e-4)


def fitted(made, seed: int = 0, **settings):
    """MST measures a tree, which the population is: what the other pairs add is not missing."""
    settings = {"unmeasured": "ignore"} | settings
    return linear_marginals_bootstrap(made, design=DESIGN, rng=np.random.default_rng(seed), **settings)


def width(fit) -> float:
    return float(np.mean(fit.intervals[:, 1] - fit.intervals[:, 0]))


def covered(intervals: np.ndarray) -> np.ndarray:
    truth = true_coefficients()
    return (intervals[:, 0] <= truth) & (truth <= intervals[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_where_the_model_is_true_and_its_pairs_are_measured_the_coverage_is_the_level(epsilon):
    """200 tables of 3,000 rows; each of 5 coefficients within 4 standard errors of 0.9: errs one time in 3,000."""
    hits, tree = [], {("work", "age"), ("age", "grade"), ("grade", "sex")}
    for seed in range(200):
        made = release(3000, epsilon, seed)
        assert {tuple(pair) for pair in made.diagnostics["tree"]} == tree
        hits.append(covered(fitted(made, seed, replicates=19).intervals))
    assert np.all(np.abs(np.mean(hits, axis=0) - 0.9) < 4 * math.sqrt(0.9 * 0.1 / 200))


@pytest.mark.slow
def test_more_rows_a_larger_epsilon_and_a_lower_level_give_narrower_intervals():
    widest = width(fitted(release(3000, 1.0, 1)))
    assert width(fitted(release(3000, 1.0, 1), level=0.5)) < 0.6 * widest
    assert width(fitted(release(3000, 8.0, 1))) < 0.8 * widest
    assert width(fitted(release(12000, 1.0, 1))) < 0.6 * widest


def test_coefficients_are_those_of_dd_ssp_and_the_notes_tell_what_was_measured():
    made = release(3000, 1.0, 1)
    fit = fitted(made, replicates=19)
    assert np.array_equal(fit.coefficients, linear_marginals(made, design=DESIGN).coefficients)
    assert (fit.notes["measured_pairs"], fit.notes["pairs"]) == (3, 6)
    assert fit.notes["rank"] == 5


def test_there_are_no_intervals_where_a_pair_was_not_measured_unless_it_is_ignored():
    made = release(3000, 1.0, 1)
    with pytest.raises(NoEstimateError, match="3 of 6 pairs of attributes were not measured"):
        fitted(made, replicates=19, unmeasured="refuse")
    two, rng = Domain(DOMAIN.attributes[1:3]), np.random.default_rng(0)
    measured = mst(Table(two, drawn(3000, rng).codes[:, 1:3]), Budget(1.0), rng, tolerance=1e-4)
    fit = linear_marginals_bootstrap(measured, design=Design(two, "grade"), rng=rng, replicates=19)
    assert fit.intervals.shape == (2, 2) and fit.notes["measured_pairs"] == fit.notes["pairs"] == 1


def test_the_same_generator_gives_the_same_intervals():
    made = release(3000, 1.0, 1)
    ends = [fitted(made, seed, replicates=19).intervals for seed in (3, 3, 4)]
    assert ends[0].tobytes() == ends[1].tobytes()
    assert not np.array_equal(ends[0], ends[2])


def test_the_number_of_synthetic_rows_does_not_change_the_width():
    made = release(3000, 1.0, 1)
    more = replace(
        made,
        parts=(made[Marginals], SyntheticRows(Table(DOMAIN, np.repeat(made[SyntheticRows].table.codes, 3, axis=0)))),
    )
    assert width(fitted(more)) == pytest.approx(width(fitted(made)), rel=0.15)


@pytest.mark.slow
def test_pivotal_mirrors_percentile_and_normal_is_about_the_estimate():
    made = release(3000, 1.0, 1)
    wide, narrow = (
        fitted(made, level=level).intervals + fitted(made, level=level, method="percentile").intervals[:, ::-1]
        for level in (0.9, 0.5)
    )
    assert np.allclose(wide, wide[:, :1]) and np.allclose(wide, narrow)  # theta + theta', at all ends
    normal = fitted(made, method="normal")
    assert np.allclose(normal.intervals.mean(axis=1), normal.coefficients)
    assert width(normal) == pytest.approx(width(fitted(made)), rel=0.25)


def test_the_quantiles_of_19_replicates_at_level_0_9_are_the_least_and_the_largest():
    """The (B + 1) q-th smallest: 20 * 0.05 = 1 and 20 * 0.95 = 19."""
    theta_b = np.random.default_rng(0).permutation(19.0 + np.arange(19))[:, None]
    theta, centre = np.array([30.0]), np.array([27.0])
    assert _intervals(theta, centre, theta_b, 0.9, "percentile").tolist() == [[19.0, 37.0]]
    assert _intervals(theta, centre, theta_b, 0.9, "pivotal").tolist() == [[20.0, 38.0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "bca"}, "unknown method 'bca'"),
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"level": 0.9, "replicates": 18}, "at least 19 replicates, not 18"),
        ({"tolerance": 0.0}, "tolerance must be greater than 0"),
        ({"iterations": 0}, "iterations must be at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        fitted(release(3000, 1.0, 1), **settings)


HEIGHT = Gaussian("marginal height", 1.0, 5.0)


def quieter(part):
    """The part, its marginals with half the noise that was drawn."""
    is_marginals = isinstance(part, Marginals)
    return replace(part, noise=tuple((r, s / 2) for r, s in part.noise)) if is_marginals else part


def test_a_release_that_cannot_be_simulated_is_refused():
    table, rng = drawn(500, np.random.default_rng(0)), np.random.default_rng(1)
    made = release(3000, 1.0, 1)
    refused = {
        "no marginal was measured with noise": exact_table(table, Budget(math.inf), rng),
        "offers statistics by": ssp(table, Budget(1.0), rng, design=DESIGN),
        "offers marginals by": replace(made, parts=(made[Marginals],)),
        "do not have the noise of its ledger": replace(made, ledger=Ledger([*made.ledger.events, HEIGHT])),
        "measured marginals of the release do not": replace(made, parts=tuple(map(quieter, made.parts))),
        "by engine mixture": replace(made, diagnostics={**made.diagnostics, "engine": "mixture"}),
    }
    for message, one in refused.items():
        with pytest.raises(UserError, match=message):
            fitted(one)


SMALL = ["workclass", "fnlwgt", "education", "marital-status", "occupation", "relationship", "race", "capital-gain"]


def run(folder: Path, *more: str) -> int:
    return main(
        [
            *("run", "dataset=adult_synth", "sample=smoke", "limits=smoke"),
            *("mechanism=[mst]", "model=[linear_marginals_bootstrap]"),
            *("model.linear_marginals_bootstrap.replicates=19", "model.linear_marginals_bootstrap.unmeasured=ignore"),
            *("repetitions=1", "jobs=1", f"results={folder}"),
            *(f"dataset.drop=[{','.join(SMALL)},capital-loss,hours-per-week,native-country]", *more),
        ]
    )


def test_in_a_grid_the_intervals_follow_from_the_key_whatever_else_is_asked(tmp_path):
    details = []
    for folder, metrics in (("one", "coverage"), ("two", "mse,coverage")):
        assert run(tmp_path / folder, f"metric=[{metrics}]") == 0
        (trial,) = Store(tmp_path / folder, "grid").all_trials()
        details += [score.detail for score in trial.scores if score.name == "coverage"]
    assert details[0] == details[1]
    assert set(details[0]["columns"]) == {"age", "sex=Male", "income>50K=>50K", "(intercept)"}


def test_no_config_gives_the_generator(tmp_path, capsys):
    assert run(tmp_path, "+model.linear_marginals_bootstrap.rng=1") == 2
    assert "unknown parameter of model.linear_marginals_bootstrap 'rng'" in capsys.readouterr().err
