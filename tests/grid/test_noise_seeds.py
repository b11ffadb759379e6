"""Each stored release has noise of its own, of the size that its ledger says."""

import numpy as np
from scipy import stats

from dpbench.grid.releases import read_release
from dpbench.grid.store import Store
from dpbench.releases import SufficientStatistics


def stored(results):
    """Key, X'X and the standard deviation of its noise, of every release."""
    store = Store(results, "grid")
    for identity, entry in sorted(store.releases.scan().items()):
        release = read_release(store, identity, entry.place)
        statistics = release.release[SufficientStatistics]
        yield release.record["key"], statistics.xtx, statistics.xtx_sd


def test_no_two_releases_share_their_noise(bench):
    """24 releases of ssp against the exact moments of their split: all different, and together standard normal.

    Kolmogorov-Smirnov at level 1e-5: the seeds may hang on a salt that is secret.
    """
    assert bench.run("mechanism=[exact,ssp]", "calibration=[tight,paper]", "epsilon=[0.5,1]", "repetitions=6") == 0
    found = list(stored(bench.results))
    exact = {key["repetition"]: xtx for key, xtx, _ in found if key["mechanism"]["name"] == "exact"}
    upper = np.triu_indices(len(exact[0]))
    noise = np.array(
        [(xtx - exact[key["repetition"]])[upper] / sd for key, xtx, sd in found if key["mechanism"]["name"] == "ssp"]
    )
    assert len(noise) == 24
    distance = np.abs(noise[:, None] - noise[None]).max(axis=2) + np.eye(len(noise))
    assert distance.min() > 1e-6
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-5
