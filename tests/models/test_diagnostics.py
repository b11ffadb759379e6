"""R-hat and effective sample sizes: ArviZ's numbers, autoregressive chains, and chains that do not mix or move."""

import numpy as np
import pytest

from dpbench.models.posterior_fit import ess_bulk, ess_tail, r_hat


def autoregressive(chains, m, phi, apart=0.0, seed=0):
    """Chains of x_t = phi x_{t-1} + e_t, e_t of Student's t with 5 degrees of freedom, their means `apart`."""
    steps, x = np.random.default_rng(seed).standard_t(5, size=(chains, m)), np.zeros((chains, m))
    for t in range(1, m):
        x[:, t] = phi * x[:, t - 1] + steps[:, t]
    return (x + apart * np.arange(chains)[:, None])[..., None]


ARVIZ = [  # version 0.23.4: rhat, ess, ess(method="tail") of the same chains
    ((4, 1000, 0.5, 0.0), 1.0021333152163265, 1250.3106535486986, 2451.0810564128847),
    ((4, 999, 0.9, 0.0), 1.0116982283402, 257.19858024430386, 505.6057742801847),
    ((2, 500, -0.5, 0.0), 1.0040370984013007, 3000.0, 1069.192948396169),
    ((4, 250, 0.95, 0.5), 1.074982907495857, 42.07914312851571, 94.87960609431173),
    ((4, 100, 0.99, 3.0), 1.5091870184983243, 8.06540414938039, 16.285508224181655),
]


@pytest.mark.parametrize(("chains", "rhat", "bulk", "tail"), ARVIZ)
def test_the_definitions_are_those_of_arviz(chains, rhat, bulk, tail):
    draws = autoregressive(*chains)
    found = [float(one(draws)[0]) for one in (r_hat, ess_bulk, ess_tail)]
    assert found == pytest.approx([rhat, bulk, tail], rel=1e-9)


def test_a_chain_with_autocorrelation_phi_has_the_known_effective_size():
    """S (1 - phi) / (1 + phi), within 10%."""
    for phi in (0.0, 0.6, -0.4):
        draws = autoregressive(4, 20_000, phi, seed=1)
        assert ess_bulk(draws)[0] == pytest.approx(80_000 * (1 - phi) / (1 + phi), rel=0.1)
        assert r_hat(draws)[0] < 1.002


def test_chains_that_disagree_or_do_not_move_are_seen():
    apart = autoregressive(4, 500, 0.3, apart=1.0)
    wider = autoregressive(4, 500, 0.3) * np.array([1, 1, 1, 4])[:, None, None]
    assert r_hat(apart)[0] > 1.1
    assert r_hat(wider)[0] > 1.1  # by the distance from the median: all means are alike
    still = np.zeros((4, 500, 1))
    for draws in (still, still + np.arange(4)[:, None, None]):
        assert np.isinf(r_hat(draws)[0])
        assert ess_tail(draws)[0] == 0
    both = np.concatenate([autoregressive(4, 500, 0.3), still], axis=2)
    assert r_hat(both)[0] < 1.02
    assert np.isinf(r_hat(both)[1])
