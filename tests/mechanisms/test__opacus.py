"""DP-SGD by Opacus: the distribution of the native engine, and an event in the ledger before anything is drawn."""

import numpy as np
import pytest
from scipy import stats

from dpbench.mechanisms import _opacus, dpsgd
from dpbench.privacy.ledger import Ledger


def run(engine, X, y, setting, seed, ledger=None):
    ledger = Ledger() if ledger is None else ledger
    rng = np.random.default_rng(seed)
    return engine(rng, ledger, X, y, loss="logistic", settings=[setting], multiplier=1.5)[:, 0]


@pytest.mark.slow
def test_both_engines_have_one_law():
    """Two-sample Kolmogorov-Smirnov of 300 runs of 10 steps in three directions, level 1e-4 each."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 2))
    y = np.where(X[:, 0] + rng.normal(size=50) > 0, 1.0, -1.0)
    setting = dpsgd.Setting(25, 0.4, 5, 2.0, 50)
    native, opacus = (
        np.array([run(engine, X, y, setting, seed) for seed in range(300)])
        for engine in (dpsgd.descend, _opacus.descend)
    )
    for direction in ([1, 0], [0, 1], [1, -1]):
        assert stats.ks_2samp(native @ direction, opacus @ direction).pvalue > 1e-4


def test_the_ledger_has_the_event_of_all_steps_also_where_the_run_fails():
    """Opacus refuses a table without rows."""
    ledgers = [Ledger(), Ledger()]
    setting = dpsgd.Setting(25, 0.4, 5, 2.0, 50)
    run(dpsgd.descend, np.ones((50, 2)), np.ones(50), setting, 0, ledgers[0])
    with pytest.raises(ValueError, match="positive"):
        run(_opacus.descend, np.ones((0, 2)), np.ones(0), setting, 0, ledgers[1])
    assert ledgers[0].events == ledgers[1].events
