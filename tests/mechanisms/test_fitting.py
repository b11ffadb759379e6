"""Engines by name, the currency of costs, and what is refused before anything is drawn."""

import math

import pytest

from dpbench.errors import UserError
from dpbench.inference import JunctionTree
from dpbench.inference.mbi_engine import Mbi
from dpbench.inference.mixture import ProductMixture
from dpbench.mechanisms.fitting import Costs, check_model, check_settings, check_sigma, engine_of, table_mb
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import ExponentialMechanism, Gaussian
from dpbench.privacy.ledger import Ledger

DELTA = 1e-5


def test_an_engine_has_the_settings_that_were_given_and_its_own_otherwise():
    assert engine_of("native", iterations=9, tolerance=0.1) == JunctionTree(9, 0.1)
    assert engine_of("mbi", iterations=9) == Mbi(9)
    assert engine_of("mixture", iterations=9, components=7) == ProductMixture(7, 9)
    assert engine_of("mixture", iterations=9) == ProductMixture(iterations=9)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("natives", {}, "unknown engine 'natives'"),
        ("native", {"components": 3}, "engine 'native' has no components; .* choose engine=mixture"),
        ("mbi", {"tolerance": 0.1}, "engine 'mbi' has no tolerance; .* choose engine=native or mixture"),
    ],
)
def test_a_setting_that_the_engine_does_not_have_is_refused(name, settings, message):
    with pytest.raises(UserError, match=message):
        engine_of(name, iterations=9, **settings)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_what_is_split_by_costs_is_spent_in_full(calibration, relation):
    """Half on three measurements, half on two selections, under the filter of the whole."""
    costs, ledger = Costs.of("aim", Budget(1.0, DELTA, relation), calibration), Ledger()
    costs.open_filter(ledger)
    sigma, epsilon = costs.sigma(costs.total / 2, 3), costs.epsilon(costs.total / 2, 2)
    assert costs.of_measurements(sigma, 3) == pytest.approx(costs.total / 2)
    assert costs.of_selection(epsilon) == pytest.approx(costs.total / 4)
    ledger.record(Gaussian("marginals", costs.l2, sigma / costs.l2, 3))
    ledger.record(ExponentialMechanism("selection", costs.l1, epsilon, 2))
    with pytest.raises(ValueError, match="exceeds the filter"):
        ledger.record(Gaussian("more", 1.0, 1e3))
    assert spent(ledger, DELTA).epsilon == pytest.approx(1.0, rel=1e-6)
    whole = gaussian_mu(1.0, DELTA) ** 2 / 2 if calibration == "tight" else zcdp_rho(1.0, DELTA)
    assert costs.total == pytest.approx(whole)


def test_what_cannot_begin_is_refused():
    for epsilon in (math.inf, 1e101):
        with pytest.raises(UserError, match="aim needs a finite epsilon"):
            Costs.of("aim", Budget(epsilon, DELTA), "tight")
    with pytest.raises(UserError, match="unknown calibration"):
        Costs.of("aim", Budget(1.0, DELTA), "loose")
    with pytest.raises(UserError, match="rows must be at least 1, not 0"):
        check_settings("aim", tolerance=None, rows=0)
    with pytest.raises(UserError, match="tolerance must be greater than 0"):
        check_settings("aim", tolerance=0.0)
    with pytest.raises(UserError, match="outside the range of the arithmetic"):
        check_sigma("aim", 1e-10)
    with pytest.raises(UserError, match="the tree has 2 MB, the limit is 1 MB"):
        check_model("aim", "the tree", 2.0, 1.0)
    assert table_mb({"a": 1024, "b": 128}, ("a", "b")) == 1.0
