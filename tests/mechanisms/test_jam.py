"""JAM-PGM: its scores by hand, what a public round spends, its sensitivity, public rows that lack attributes."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference import JunctionTree, Measurement
from dpbench.mechanisms import jam as module
from dpbench.mechanisms.fitting import ENGINES
from dpbench.mechanisms.jam import jam
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, SyntheticRows

DELTA = 1e-5


def made(table, public, epsilon=1.0, seed=0, **settings):
    settings = {"workload": 2, "rounds": 6} | settings
    return jam(table, Budget(epsilon, DELTA, "replace"), np.random.default_rng(seed), public=public, **settings)


def independent(table):
    """The same one-way marginals, all attributes independent."""
    rng = np.random.default_rng(0)
    return Table(table.domain, np.column_stack([rng.permutation(column) for column in table.codes.T]))


def l1(one, other):
    return float(np.abs(one - other).sum())


@pytest.fixture
def rounds(monkeypatch):
    """What each round asked of the exponential mechanism, and the models before it, the first of which is not used."""
    asked, models = [], []

    class Recording(JunctionTree):
        def estimate(self, sizes, measurements, warm_start=None):
            models.append(super().estimate(sizes, measurements, warm_start))
            return models[-1]

        def update(self, sizes, measurements, model):
            models.append(super().update(sizes, measurements, model))
            return models[-1]

    own = module.exponential_mechanism

    def draw(rng, ledger, scores, **settings):
        asked.append((np.array(scores), settings["sensitivity"]))
        return own(rng, ledger, scores, **settings)

    monkeypatch.setitem(ENGINES, "native", Recording)
    monkeypatch.setattr(module, "exponential_mechanism", draw)
    return asked, models


def test_scores_are_what_a_marginal_of_either_kind_is_expected_to_gain(small_table, rounds):
    public = independent(small_table).take(np.arange(100))
    release = made(small_table, public, 0.2)
    pairs = list(combinations(small_table.domain.names, 2))
    candidates = sorted([(name,) for name in small_table.domain.names] + pairs)
    trace = release.diagnostics["rounds"]
    assert {one["public"] for one in trace} == {False, True}
    for t, ((scores, _), model, one) in enumerate(zip(*rounds, trace, strict=False)):
        error = {r: l1(small_table.marginal(r), model.answer([r])[r]) if t else 0.0 for r in candidates}
        noise = {r: math.sqrt(2 / math.pi) * one["sigma"] * small_table.marginal(r).size for r in candidates}
        public_error = {r: l1(small_table.marginal(r), 30 * public.marginal(r)) for r in candidates}
        by_hand = [error[r] - off[r] for off in (noise, public_error) for r in candidates]
        assert np.sort(scores) == pytest.approx(np.sort(by_hand), rel=1e-9, abs=1e-6)


def test_public_rows_are_taken_where_they_are_like_the_private_ones_and_not_where_they_are_not():
    """In the first round, of 10 seeds each: the scores of 1,000 levels leave another choice odds below 1e-6."""
    domain = Domain((Attribute.categorical("a", [f"level {i}" for i in range(1000)]),))
    table = Table(domain, np.arange(3000)[:, None] % 1000)
    constant = Table(domain, np.zeros_like(table.codes))
    for public, epsilon, expected in ((table.take(np.arange(1000)), 0.5, True), (constant, 10.0, False)):
        for seed in range(10):
            release = made(table, public, epsilon, seed, workload=1, rounds=1)
            assert [one["public"] for one in release.diagnostics["rounds"]] == [expected]
            assert len(release.ledger.events) == (1 if expected else 2)
            off = l1(release[Marginals].tables[("a",)], table.marginal(("a",)))
            assert off < (1 if expected else 1500)


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_a_public_round_spends_its_selection_alone_and_leaves_the_rest_to_later_rounds(
    small_table, epsilon, calibration
):
    total = zcdp_rho(epsilon, DELTA) if calibration == "paper" else gaussian_mu(epsilon, DELTA) ** 2
    seen = set()
    for seed in range(5):
        release = made(small_table, independent(small_table), epsilon, seed, calibration=calibration)
        events, left = list(release.ledger.events), total
        for t, one in enumerate(release.diagnostics["rounds"]):
            costs = [event.rho if calibration == "paper" else event.mu**2 for event in events[:2]]
            assert events[0].kind == "exponential" and events[0].sensitivity == 4
            assert costs[0] == pytest.approx(0.2 * left / (6 - t), rel=1e-9)
            if not one["public"]:
                assert events[1].kind == "gaussian" and events[1].sensitivity == math.sqrt(2)
                assert costs[1] == pytest.approx(0.8 * left / (6 - t), rel=1e-9)
            spending = costs[: 1 if one["public"] else 2]
            del events[: len(spending)]
            left -= sum(spending)
            seen.add(one["public"])
        assert not events
        assert spent(release.ledger, DELTA).epsilon <= epsilon * (1 + 1e-9)
    assert seen == {False, True}


def test_a_record_may_change_a_score_by_four_as_declared(monkeypatch, rounds):
    """In the second round, from the same model: it comes nearer to the public rows and goes away from the model."""
    domain, (asked, _) = Domain((Attribute.categorical("a", "uv"),)), rounds

    def of(u, v):
        return Table(domain, np.array([[0]] * u + [[1]] * v))

    monkeypatch.setattr(module, "noisy_marginal", lambda *_, **__: Measurement(("a",), np.array([60.0, 40.0]), 1e-6))
    for table in (of(60, 40), of(61, 39)):
        made(table, of(80, 20), 1e6, workload=1, rounds=2)
    (_, (before, sensitivity), _, (after, _)) = asked
    assert np.abs(after - before).max() == pytest.approx(4, abs=1e-3)
    assert sensitivity == 4


def test_public_rows_may_lack_attributes(small_table):
    names = small_table.domain.names
    public = Table(Domain(small_table.domain.attributes[:2]), small_table.codes[:500, :2])
    release = made(small_table, public, 0.5, rounds=10)
    chosen = [tuple(one["clique"]) for one in release.diagnostics["rounds"] if one["public"]]
    assert chosen and all(set(r) <= set(names[:2]) for r in chosen)
    assert len(release[SyntheticRows].table) == len(small_table)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"public": None}, "jam needs public rows: set dataset.public_data"),
        ({"rounds": 0}, "jam: rounds must be at least 1, not 0"),
        ({"alpha": 1.0}, "jam: alpha must lie between"),
        ({"max_model_mb": 1e-6}, "the smallest model of a marginal, in the first of 6 rounds,"),
    ],
)
def test_what_cannot_begin_is_refused(small_table, settings, message):
    with pytest.raises(UserError, match=message):
        made(small_table, **{"public": small_table} | settings)
