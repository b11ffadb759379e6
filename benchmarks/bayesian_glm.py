"""CPU seconds of Bayesian GLMs: moments, and noise-aware posteriors by NUTS, compared with a direct implementation of
the model.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.bayesian_glm [--direct]

The moments of 4 x 1,000 points at d = 10; fits of 4 x 2,000 draws at d = 5 and 10, the first with compilation (if
JAX_COMPILATION_CACHE_DIR is an empty folder), the second on other data. `--direct` compares one at d = 2 with the model
that has latent sums and loops over all monomials: more features take minutes to compile. Prints one line per number,
with its target; nothing is asserted.
"""

from __future__ import annotations

import sys
import time
from itertools import product

import numpy as np

ROWS, NOISE, BOUND, TRIES = 2000, 50.0, 9.0, 20


def cpu_seconds(measure):
    start = time.process_time()
    found = measure()
    return time.process_time() - start, found


def moments_of_points(d=10, chains=4, points=1000):
    from dpbench.models.glm_moments import moments
    from dpbench.models.nuts import prepared_jax

    jax = prepared_jax()
    rng = np.random.default_rng(0)
    W = rng.normal(size=(chains, points, d, d + 3))
    thetas, Sigmas = jax.numpy.array(rng.normal(size=(chains, points, d))), jax.numpy.array(W @ W.swapaxes(-1, -2) / d)
    for method in ("taylor", "quadrature"):

        def distinct(theta, Sigma, method=method):
            """The mean, and the lower triangle of the covariance: the full one is mostly the time to write 135 MB."""
            mean, covariance = moments(theta, Sigma, "logistic", method)
            return mean, covariance[np.tril_indices(len(mean))]

        compiled = jax.jit(jax.vmap(distinct))

        def chain_by_chain(compiled=compiled):
            for theta, Sigma in zip(thetas, Sigmas, strict=True):
                jax.block_until_ready(compiled(theta, Sigma))

        chain_by_chain()
        best = min(cpu_seconds(chain_by_chain)[0] for _ in range(TRIES))
        print(f"moments of {chains} x {points} points at d = {d}, {method}: {1000 * best:.0f} ms (target: 50)")


def data_of(family, d, seed):
    from dpbench.inference.glm_statistics import sum_statistics
    from dpbench.models.glm_posterior import SCALE

    rng = np.random.default_rng(seed)
    W, theta = rng.normal(size=(d, 3 * d)), rng.normal(size=d)
    theta *= 1.5 / np.linalg.norm(theta)
    X = rng.multivariate_normal(np.zeros(d), W @ W.T / (3 * d * d), size=ROWS)
    y = 2.0 * (rng.random(ROWS) < 1 / (1 + np.exp(-X @ theta))) - 1
    y = rng.poisson(np.logaddexp(0, X @ theta)).astype(float) if family == "poisson" else y
    values = sum_statistics(X, y, family)
    return values + NOISE * rng.normal(size=len(values)), np.full(len(values), NOISE**2), float(ROWS), 0.0, BOUND, SCALE


def fits(family, d, bars):
    from dpbench.models.glm_posterior import SCALE, start_of, statistics_density, theta_of
    from dpbench.models.nuts import laplace, nuts
    from dpbench.models.posterior_fit import ess_bulk, r_hat

    def fit(seed):
        data = data_of(family, d, seed)
        density = statistics_density(family, d, "quadrature")
        around = laplace(density, start_of(*data[:3], BOUND, SCALE, family, d), data)
        return nuts(density, around, data, np.random.default_rng(seed), chains=4, draws=2000, warmup=1000)

    for seed, (name, bar) in enumerate(zip(("first", "again"), bars, strict=True)):
        seconds, (draws, diverged, _) = cpu_seconds(lambda seed=seed: fit(seed))
        theta = theta_of(draws[..., :d], BOUND)
        ess = ess_bulk(theta).min()
        print(
            f"{family}, d = {d}, {name}: {seconds:.1f} s (target: {bar}), R-hat {r_hat(theta).max():.3f}, "
            f"ESS {ess:.0f}, {ess / seconds:.0f} a second, {diverged.sum()} divergences"
        )


def direct(d=2, draws=2000):
    """The model as in the paper: s is latent, and each moment is a sum over its pairings in a loop."""
    from dpbench.inference.glm_statistics import triangle
    from dpbench.models.nuts import prepared_jax
    from dpbench.models.posterior_fit import ess_bulk

    jax = prepared_jax()
    import numpyro
    from numpyro.distributions import HalfNormal, LKJCholesky, MultivariateNormal, Normal
    from numpyro.infer import MCMC, NUTS

    values, variances, rows, *_ = data_of("logistic", d, 0)
    pairs = list(zip(*(one.tolist() for one in triangle(d)), strict=True))
    entries = [((i,), 1) for i in range(d)] + [(pair, 0) for pair in pairs]

    def pairings(Sigma, left):
        if not left:
            return 1.0
        first, *rest = left
        return sum(Sigma[first, one] * pairings(Sigma, rest[:k] + rest[k + 1 :]) for k, one in enumerate(rest))

    def expected(theta, Sigma, indices, odd):
        if not odd:
            return pairings(Sigma, list(indices))
        linear = sum(theta[n] * pairings(Sigma, [*indices, n]) for n in range(d)) / 2
        cubes = product(range(d), repeat=3)
        return linear - sum(theta[list(n)].prod() * pairings(Sigma, [*indices, *n]) for n in cubes) / 24

    def model():
        theta = numpyro.sample("theta", Normal(np.zeros(d), 1.0).to_event(1))
        tau = numpyro.sample("tau", HalfNormal(2.5 * np.ones(d)).to_event(1))
        root = tau[:, None] * numpyro.sample("omega", LKJCholesky(d, 2.0))
        Sigma = root @ root.T
        mean = jax.numpy.stack([expected(theta, Sigma, one, a) for one, a in entries])
        both = [[expected(theta, Sigma, one + two, a != b) for two, b in entries] for one, a in entries]
        covariance = jax.numpy.array(both) - mean[:, None] * mean
        s = numpyro.sample("s", MultivariateNormal(rows * mean, rows * covariance))
        numpyro.sample("z", Normal(s, np.sqrt(variances)).to_event(1), obs=values)

    mcmc = MCMC(NUTS(model), num_warmup=draws, num_samples=draws, num_chains=4, progress_bar=False)
    seconds, _ = cpu_seconds(lambda: jax.block_until_ready(mcmc.run(jax.random.key(0))))
    ess = ess_bulk(np.asarray(mcmc.get_samples(group_by_chain=True)["theta"])).min()
    print(
        f"logistic, d = {d}, direct implementation, 4 x {draws} draws: {seconds:.1f} s, ESS {ess:.0f}, "
        f"{ess / seconds:.2f} a second"
    )


if __name__ == "__main__":
    moments_of_points()
    fits("logistic", 5, (60, 15))
    fits("poisson", 5, (60, 15))
    fits("logistic", 10, (300, 300))
    if "--direct" in sys.argv:
        fits("logistic", 2, (60, 15))
        direct()
