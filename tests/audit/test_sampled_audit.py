"""An audit stays under what a right ledger says, and finds a wrong one."""

import numpy as np
import pytest

from dpbench.audit.neighbours import random_table
from dpbench.audit.sampled_audit import audit, not_audited
from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.privacy import discrete, noise
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SufficientStatistics

DELTA, RUNS = 1e-5, 1500
DOMAIN = Domain((Attribute.binned("a", -3, 1, 4), Attribute.binned("b", 0, 2, 4), Attribute.categorical("c", "xyz")))


class Silent(np.random.Generator):
    """A generator whose Gumbel noise was forgotten."""

    def gumbel(self, loc=0.0, scale=1.0, size=None):
        return np.zeros(size)


class Quiet(np.random.Generator):
    """A generator whose normal noise is smaller than it should be."""

    def normal(self, loc=0.0, scale=1.0, size=None):
        return super().normal(loc, 0.6 * scale, size)


def rows(n=40):
    return random_table(DOMAIN, n, 0, numbers=True)


def mechanism(answer, generator=np.random.default_rng):
    """`answer` (table, rng, ledger) as a mechanism of a table and a seed."""

    def make(table: Table, seed: int) -> Release:
        ledger = Ledger()
        told = np.atleast_1d(np.asarray(answer(table, generator(seed), ledger), dtype=float))
        part = SufficientStatistics(np.eye(len(told)), told, 0.0, 1.0)
        return Release(table.domain, Budget(10.0, DELTA), ledger, (part,))

    return make


def total(sensitivity, multiplier=0.5, of=lambda t: t.numbers["a"].sum()):
    """A sum with Gaussian noise; |a| <= 3."""
    return lambda t, rng, ledger: noise.gaussian(
        rng, ledger, of(t), sensitivity=sensitivity, multiplier=multiplier, label="sum"
    )


def discrete_total(sensitivity):
    """The same with discrete noise."""
    return total(sensitivity, of=lambda t: discrete.single(lambda _: t.numbers["a"].sum()))


def counts(table):
    return np.concatenate([np.bincount(table.codes[:, j], minlength=4) for j in range(3)]).astype(float)


def histograms(sensitivity):
    return lambda t, rng, ledger: noise.gaussian(
        rng, ledger, counts(t), sensitivity=sensitivity, multiplier=0.6, label="counts"
    )


def laplace(sensitivity):
    return lambda t, rng, ledger: noise.laplace(
        rng, ledger, counts(t), sensitivity=sensitivity, multiplier=0.5, label="counts"
    )


def selected(sensitivity, choose=noise.exponential_mechanism):
    """One of two, many times: the score of the first is a count."""

    def answer(table, rng, ledger):
        scores = [len(table) - 40.0, 0.0]
        for k in range(4):
            choose(rng, ledger, scores, sensitivity=sensitivity, epsilon=0.5, label=f"choice {k}")
        return 0.0

    return answer


def sampled(rate, declared):
    """Steps on samples of the rows; the ledger may have another rate."""

    def answer(table, rng, ledger):
        def query(chosen):
            return np.array([float(len(table.numbers["a"][chosen]))])

        steps = noise.sampled_gaussian(
            rng, ledger, len(table), query, sensitivity=1.0, multiplier=1.0, rate=rate, count=6, label="steps"
        )
        told = [float(step[0]) for step in steps]
        if declared != rate:
            (event,) = ledger.events
            ledger._events[:] = [type(event)(event.label, 1.0, 1.0, 6, declared)]
        return told[0]

    return answer


def minimiser(sensitivity, slope=3.0):
    """The minimum of (theta - sum of slopes)^2 / 2 with a linear term."""

    def answer(table, rng, ledger):
        drift = slope * np.array([float(len(table)), 0.0])
        return noise.perturbed_minimiser(
            rng,
            ledger,
            lambda theta: theta - drift,
            lambda b: drift - b,
            size=2,
            sensitivity=sensitivity,
            multiplier=2.0,
            offset=0.0,
            label="minimum",
        )

    return answer


def ten_columns(table, rng, ledger):
    """Sums of ten columns with values at 1, each with the noise that one of them needs."""
    value = np.full(10, float(len(table)))
    return noise.gaussian(rng, ledger, value, sensitivity=1.0, multiplier=0.8, label="sums")


def publicly_seeded(table, rng, ledger):
    return total(3.0, 1.0)(table, np.random.default_rng(0), ledger)


def not_sampled(table, rng, ledger):
    """Steps that are paid for as on samples, but take all rows."""

    def query(chosen):
        return np.array([float(len(table))])

    distribution = {"sensitivity": 1.0, "multiplier": 1.0, "rate": 0.05, "count": 6}
    steps = list(noise.sampled_gaussian(rng, ledger, len(table), query, **distribution, label="steps"))
    return float(steps[0][0])


def not_split(table, rng, ledger):
    """Four answers on all rows, paid for as if each had rows of its own."""
    told = [total(3.0, 0.8)(table, rng, ledger) for _ in range(4)]
    del ledger._events[1:]
    return told[0]


def scaled_by_the_rows(table):
    """A sum in units of the largest number, of many small ones and perhaps one at its bound."""
    small = np.where(table.numbers["b"] < 2, table.numbers["b"] / 10, 2.0)
    return float(np.sum(small / np.max(small)))


def signs(table):
    return float(np.sum(np.where(table.numbers["a"] > -1, 1.0, -1.0)))


def unclipped(table):
    return float(np.sum(3 * table.numbers["a"]))


def squares(table):
    return float(np.sum(table.numbers["a"] ** 2))


RIGHT = {
    "sum": (total(3.0), "add_remove"),
    "sum, replaced": (total(4.0), "replace"),
    "discrete sum": (discrete_total(3.0), "add_remove"),
    "histograms": (histograms(3**0.5), "add_remove"),
    "histograms, replaced": (histograms(6**0.5), "replace"),
    "laplace": (laplace(3.0), "add_remove"),
    "selected": (selected(1.0), "add_remove"),
    "permute and flip": (selected(1.0, noise.permute_and_flip), "add_remove"),
    "sampled": (sampled(0.3, 0.3), "add_remove"),
    "minimiser": (minimiser(3.0), "add_remove"),
}
WRONG = {
    "the range for the largest norm": (total(2.0, of=lambda t: t.numbers["a"].sum()), "add_remove"),
    "one bound of two": (total(1.0), "add_remove"),
    "one bound of two, discrete": (discrete_total(1.0), "add_remove"),
    "neighbours that add for neighbours that replace": (total(2.4, of=lambda t: (t.numbers["a"] + 1).sum()), "replace"),
    "no clipping": (total(3.0, of=unclipped), "add_remove"),
    "a bound for its square": (total(3.0, of=squares), "add_remove"),
    "one histogram of three": (histograms(1.0), "add_remove"),
    "histograms between replaced records": (histograms(3**0.5), "replace"),
    "the l2 norm for Laplace noise": (laplace(1.0), "add_remove"),
    "a tenth of the sensitivity of a score": (selected(0.1), "add_remove"),
    "a tenth of the sensitivity of a score, permute and flip": (selected(0.1, noise.permute_and_flip), "add_remove"),
    "a smaller sampling rate": (sampled(0.9, 0.02), "add_remove"),
    "a smaller slope of a loss": (minimiser(0.5), "add_remove"),
    "each of ten columns alone": (ten_columns, "add_remove"),
    "noise of a public seed": (publicly_seeded, "add_remove"),
    "a batch that is no sample": (not_sampled, "add_remove"),
    "split after the answers": (not_split, "add_remove"),
    "bounds from the rows": (total(1.0, 1.0, of=scaled_by_the_rows), "add_remove"),
    "labels that flip": (total(1.0, of=signs), "replace"),
}


CHEAP = ["one bound of two", "each of ten columns alone", "noise of a public seed", "labels that flip"]


def some(names, quick):
    """The other names are of the slow suite."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", some(RIGHT, ["sum", "histograms, replaced", "minimiser"]))
def test_a_right_ledger_is_not_exceeded(name):
    """Each bound has confidence 1 - 1e-4; a seed is fixed."""
    answer, relation = RIGHT[name]
    found = audit(mechanism(answer), rows(), DELTA, relation=relation, runs=RUNS, confidence=0.9999)
    assert found.epsilon <= found.spent.epsilon
    assert found.mu is None or found.epsilon > 0.5 * found.spent.epsilon


@pytest.mark.parametrize("name", some(WRONG, CHEAP))
def test_a_mistake_is_found(name):
    answer, relation = WRONG[name]
    found = audit(mechanism(answer), rows(), DELTA, relation=relation, runs=RUNS, confidence=0.9999)
    assert found.epsilon > found.spent.epsilon


@pytest.mark.slow
def test_selection_without_noise_is_found():
    make = mechanism(selected(1.0), lambda seed: Silent(np.random.PCG64(seed)))
    found = audit(make, rows(), DELTA, runs=RUNS, confidence=0.9999)
    assert found.epsilon > found.spent.epsilon


def test_too_little_noise_is_found_and_the_neighbour_named():
    make = mechanism(total(3.0, 0.8), lambda seed: Quiet(np.random.PCG64(seed)))
    found = audit(make, rows(), DELTA, runs=RUNS, confidence=0.9999)
    assert found.epsilon > found.spent.epsilon
    assert found.neighbour == "with one more record" and found.runs == RUNS


def test_what_the_answers_do_not_tell_is_not_audited():
    def unpaid(table, rng, ledger):
        noise.unpaid([float(len(table))], label="n")
        return total(3.0)(table, rng, ledger)

    def exact(table, rng, ledger):
        return noise.unperturbed(ledger, [float(len(table))], label="n")

    assert not_audited(mechanism(total(3.0)), rows()) is None
    assert "not pay" in not_audited(mechanism(unpaid), rows())
    assert "not private" in not_audited(mechanism(exact), rows())
    assert not_audited(mechanism(sampled(0.3, 0.3)), rows()) is None
    assert "samples are secret" in not_audited(mechanism(sampled(0.3, 0.3)), rows(), "replace")

    def batches(table, rng, ledger):
        query, distribution = (
            lambda chosen: np.array([float(len(chosen))]),
            {"sensitivity": 1.0, "multiplier": 1.0, "count": 2},
        )
        steps = noise.batch_gaussian(
            rng, ledger, len(table), query, batch=5, replacement=False, label="steps", **distribution
        )
        return next(float(step[0]) for step in steps)

    assert "no likelihood is known here of its noise (gaussian_batch)" in not_audited(mechanism(batches), rows())


def test_too_few_runs_are_refused():
    with pytest.raises(ValueError, match="40 runs at least"):
        audit(mechanism(total(3.0)), rows(), DELTA, runs=39)
