"""AIM at the edges of what may be asked: a right answer, or one clear message before any noise is drawn."""

import signal
import tracemalloc

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference import Counts
from dpbench.mechanisms.aim import aim
from dpbench.mechanisms.workload import cliques_of, closure
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, SyntheticRows
from dpbench.resources import MEMORY

DELTA = 1e-5
CELL_MB = 8 / 2**20


@pytest.fixture
def tiny_table():
    """400 rows of two attributes that depend on each other."""
    rng = np.random.default_rng(9)
    a = rng.integers(0, 3, 400)
    return table_of(np.stack([a, (a + rng.integers(0, 2, 400)) % 4], axis=1), a=3, b=4)


@pytest.fixture(autouse=True)
def never_endless():
    """Each test is stopped after 15 seconds of work."""

    def stop(*_):
        raise TimeoutError("AIM did not end within 15 seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 15)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def table_of(codes, **sizes):
    domain = Domain(tuple(Attribute.categorical(name, range(size)) for name, size in sizes.items()))
    return Table(domain, np.asarray(codes, dtype=np.int64).reshape(-1, len(sizes)))


def check(release):
    """Every answer is finite, not negative and sums to the total; so do the rows; and the budget is kept."""
    for clique, table in release[Marginals].tables.items():
        assert np.isfinite(table).all(), clique
        assert table.min() >= 0, clique
        assert table.sum() == pytest.approx(release.diagnostics["total"]), clique
    assert len(release[SyntheticRows].table) >= 1
    mu = gaussian_mu(release.budget.epsilon, release.budget.delta)
    assert release.ledger.filter.unit == "mu"
    assert release.ledger.filter.limit == pytest.approx(mu, rel=1e-12)
    assert sum(event.mu**2 for event in release.ledger.events) <= mu**2 * (1 + 1e-9)
    return release


def refused(table, budget, words, **parameters):
    """`UserError`, one line of it, with the generator as it was."""
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(UserError, match=words) as error:
        aim(table, budget, rng, **parameters)
    assert "\n" not in str(error.value)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("epsilon", [0.05, 10.0])
def test_an_attribute_of_ten_thousand_levels(epsilon):
    """Its pairs stay in the answers, right in total, and a precise budget finds the heavy cells among the many."""
    rng = np.random.default_rng(0)
    wide = np.minimum(rng.geometric(0.3, 20_000) - 1, 9_999) * 7
    table = table_of(np.stack([wide, wide % 3, rng.integers(0, 2, 20_000)], axis=1), wide=10_000, three=3, two=2)
    release = check(aim(table, Budget(epsilon, DELTA), np.random.default_rng(1), rows=1000))
    assert release[Marginals].tables["wide", "three"].shape == (10_000, 3)
    if epsilon > 1:
        truth = table.marginal(("wide", "three"))
        assert np.abs(release[Marginals].tables["wide", "three"] - truth).max() < 0.02 * len(table)


def test_ten_thousand_levels_that_no_pair_of_fits_the_limit():
    """The limit holds the one-way tables alone: the answers are those of independent attributes."""
    rng = np.random.default_rng(2)
    table = table_of(np.stack([rng.integers(0, 9_999, 500), rng.integers(0, 4, 500)], axis=1), wide=10_000, four=4)
    limit = 10_010 * CELL_MB
    release = check(aim(table, Budget(1.0, DELTA), np.random.default_rng(0), max_model_mb=limit, rows=100))
    assert release.diagnostics["model_mb"] <= limit
    pair = release[Marginals].tables["wide", "four"]
    independent = np.outer(pair.sum(axis=1), pair.sum(axis=0)) / pair.sum()
    np.testing.assert_allclose(pair, independent, atol=1e-6 * pair.sum())


@pytest.mark.parametrize("workload", [1, 2, 3, [["a", "b", "c"]], [["a"]]])
def test_a_workload_whose_smallest_model_is_over_the_limit_is_refused(workload):
    table = table_of(np.zeros((10, 3)), a=30, b=40, c=50)
    words = "a model of the one-way marginals alone .* raise mechanism.aim.max_model_mb"
    refused(table, Budget(1.0), words, workload=workload, max_model_mb=119 * CELL_MB)


@pytest.mark.parametrize("workload", [2, 3, [["a", "b", "c"]], [["b", "c"], ["a"]]])
def test_a_workload_of_which_only_the_singles_fit_is_still_answered(workload):
    rng = np.random.default_rng(3)
    table = table_of(rng.integers(0, [3, 4, 5], (300, 3)), a=3, b=4, c=5)
    limit = 12 * CELL_MB
    release = check(aim(table, Budget(1.0), np.random.default_rng(0), workload=workload, max_model_mb=limit))
    assert release.diagnostics["model_mb"] <= limit
    assert (
        set(release[Marginals].tables)
        == set(cliques_of(table.domain, workload))
        <= set(closure(list(release[Marginals].tables)))
    )
    assert all(len(r["clique"]) == 1 for r in release.diagnostics["rounds"])


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e4])
def test_a_marginal_of_zeros(epsilon):
    """No rows at all, and no rows in most of the levels: nothing is divided by nothing."""
    for codes in (np.zeros((0, 3)), np.tile([1, 2, 0], (400, 1)), np.tile([[0, 0, 0], [3, 3, 3]], (200, 1))):
        table = table_of(codes, a=4, b=4, c=4)
        release = check(aim(table, Budget(epsilon, DELTA), np.random.default_rng(4)))
        if epsilon == 1e4:
            for clique, answer in release[Marginals].tables.items():
                assert np.abs(answer - table.marginal(clique)).max() <= 1.0 + 1e-3 * len(table), clique


def test_a_measurement_of_zeros_alone():
    """The workload's one attribute has one level that no row takes; its total is noise about nothing."""
    table = table_of(np.zeros((0, 2)), one=1, b=2)
    for workload in ([["one"]], [["one", "b"]]):
        release = check(aim(table, Budget(1.0), np.random.default_rng(5), workload=workload))
        assert release.diagnostics["total"] >= 1


TINY = [(1e-300, 0.5), (1e-300, 1e-5), (1e-100, 1e-5), (1e-60, 0.5), (1e-30, 1e-5), (1e-12, 1e-100), (1e-6, 1e-300)]
TINIEST = [(1e-300, 1e-300), (1e-60, 1e-100), (1e-30, 1e-100)]  # here rho itself is 0 in double precision


@pytest.mark.parametrize(("epsilon", "delta"), [*TINY, *TINIEST])
def test_an_epsilon_too_small_for_any_signal(tiny_table, epsilon, delta):
    """Either sigma is refused, or the answers are noise: finite, and no more than the budget spent."""
    refused_or_right(tiny_table, Budget(epsilon, delta))


@pytest.mark.parametrize("epsilon", [1e8, 1e12, 1e20, 1e125, 1e200, 1e290, 1e308])
def test_an_epsilon_so_large_that_sigma_underflows(tiny_table, epsilon):
    """Either sigma is refused, or the answers are the true ones."""
    release = refused_or_right(tiny_table, Budget(epsilon, DELTA))
    if release:
        for clique, answer in release[Marginals].tables.items():
            assert np.abs(answer - tiny_table.marginal(clique)).max() < 0.01 * len(tiny_table), clique


def refused_or_right(table, budget):
    rng = np.random.default_rng(6)
    before = rng.bit_generator.state
    try:
        return check(aim(table, budget, rng, rows=200))
    except UserError as error:
        assert "epsilon" in str(error)
        assert rng.bit_generator.state == before
        return None


@pytest.mark.parametrize("rounds", [5, 1000, 10**6, 10**9])
def test_any_number_of_rounds_ends(small_table, rounds):
    """However small the share of a round: sigma is halved while nothing is learnt, so that the rounds stay few."""
    release = check(aim(small_table, Budget(0.5, DELTA), np.random.default_rng(7), rounds=rounds, rows=200))
    assert 1 <= len(release.diagnostics["rounds"]) <= 200


def test_one_attribute_of_one_level():
    release = check(aim(table_of(np.zeros((90, 1)), one=1), Budget(1.0), np.random.default_rng(8), workload=1))
    assert release[Marginals].tables["one",].shape == (1,)
    assert abs(release.diagnostics["total"] - 90) < 30


@pytest.mark.parametrize("engine", ["native", "mixture"])
def test_a_marginal_over_the_limit_is_answered_but_never_looked_at(monkeypatch, engine):
    """100 x 100 cells against a limit of 5,000: its counts are not taken, and nobody can select it."""
    rng = np.random.default_rng(10)
    codes = np.stack([rng.integers(0, 100, 900), rng.integers(0, 100, 900), rng.integers(0, 3, 900)], axis=1)
    counted, marginal, cells = [], Table.marginal, Counts._cells
    monkeypatch.setattr(Table, "marginal", lambda table, r: counted.append(r) or marginal(table, r))
    named = lambda mask: tuple(name for i, name in enumerate("abc") if mask >> i & 1)  # noqa: E731
    monkeypatch.setattr(Counts, "_cells", lambda counts, mask: counted.append(named(mask)) or cells(counts, mask))
    own = {"components": 3} if engine == "mixture" else {}
    limit = 5_000 * CELL_MB
    release = check(
        aim(
            table_of(codes, a=100, b=100, c=3),
            Budget(1.0),
            np.random.default_rng(0),
            max_model_mb=limit,
            engine=engine,
            **own,
        )
    )
    assert set(counted) == {("a",), ("b",), ("c",), ("a", "c"), ("b", "c")}
    assert list(release[Marginals].tables) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert release[Marginals].tables["a", "b"].shape == (100, 100)


def test_more_non_zero_cells_than_memory_holds_are_refused(monkeypatch):
    """45 pairs of 10,000 cells: 16 bytes for each of the cells that rows may be in, and the places of the rows."""
    table = table_of(np.random.default_rng(0).integers(0, 100, (9_000, 10)), **{f"x{i}": 100 for i in range(10)})
    monkeypatch.setenv(MEMORY, "7")
    words = "the non-zero cells of the 55 candidate marginals may take more than the limit of 7 MB; lower the degree"
    refused(table, Budget(1.0), words, answers=False)


def test_four_way_marginals_are_never_held_together():
    """70 marginals of 160,000 cells are 85 MB; the release and the rounds need no more than a few of them."""
    table = table_of(np.random.default_rng(0).integers(0, 20, (500, 8)) // 4, **{f"x{i}": 20 for i in range(8)})
    tracemalloc.start()
    release = check(aim(table, Budget(0.5), np.random.default_rng(0), workload=4, answers=False, max_model_mb=2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20
    assert not release[Marginals].tables
    assert len(release[Marginals].noise) == 8 + len(release.diagnostics["rounds"])


def test_a_workload_that_memory_cannot_hold_is_refused(monkeypatch):
    """A pair of 100,000 levels each has 80 GB. The limit is that of the process, as a grid tells it."""
    table = table_of(np.zeros((10, 2)), a=100_000, b=100_000)
    words = r"the workload's marginals have 7.63e\+04 MB, and 5 times that while they are made; the limit is 4096 MB"
    monkeypatch.setenv(MEMORY, "4096")
    refused(table, Budget(1.0), words)
    monkeypatch.undo()
    assert check(aim(table, Budget(1.0), np.random.default_rng(0), workload=1))
