"""The posterior of a linear regression given noisy moments, by Gibbs sampling (Bernstein and Sheldon 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpbench.data.domain import Codes, Floats
from dpbench.data.encode import Design
from dpbench.errors import UserError, check_known, check_positive
from dpbench.models.bayesian_statistics import NOISE
from dpbench.models.fit import Fit
from dpbench.models.posterior_fit import posterior_fit
from dpbench.privacy.events import Gaussian
from dpbench.releases import Release, SufficientStatistics

TRIES = 20  # of drawing moments that are positive definite, before the last ones are kept
LEAST = 1e-6  # of a row's largest moment: the least mean eigenvalue of moments that were made positive definite
JITTER = 1e-10  # of a variance, so that a covariance that is positive definite is so in double precision


def bayesian_linear(
    release: Release,
    *,
    design: Design,
    rng: np.random.Generator,
    expected_rows: int,
    noise: str = "aware",
    prior_rows: float = 0.01,
    chains: int = 2,
    draws: int = 1500,
    warmup: int = 300,
    level: float = 0.95,
) -> Fit:
    """Draws of theta from the posterior given noisy moments of (x, y), where the moments S themselves are unknown.

    In turn: theta and sigma^2 given S; mean and covariance of the features given S; S given these and the release, a
    normal distribution N(n M, n V) times that of the noise. M and V are the mean and the covariance of the products of
    one row's (x, y), with normal features: V_(ij, kl) = M_ik M_jl + M_il M_jk - 2 m_i m_j m_k m_l, m the mean.

    **Source** Bernstein and Sheldon 2019, "Differentially Private Bayesian Linear Regression", NeurIPS, arXiv
    1910.13153: its Gibbs sampler on sufficient statistics, with a normal prior of the features that is updated. Read:
    the abstract, and parts of the authors' code (gbernstein6/private_bayesian_regression).
    **Privacy** Post-processing. `expected_rows` is a declared n, which the paper takes to be public.
    **Shapes** `draws` (chains * 1,000, p) in the order of `Design.columns`.
    **Departures** 1. The noise is Gaussian, as `ssp_intervals` draws it, with the scales in its ledger; the paper's is
    Laplace noise, whose variances are sampled. 2. V is a closed form. 3. Moments are drawn anew until they are positive
    definite; the authors draw until the residual sum is positive, and take the nearest such matrix. 4. `shifted` moves
    theta and S together, without which the chains hardly move where the noise is larger than the sampling error of S.
    5. The priors, in units w of the largest absolute values: theta ~ N(0, sigma^2 diag(w)^-2 / `prior_rows`), sigma^2 ~
    inverse gamma(1, `prior_rows` ||Y||^2), Sigma ~ inverse Wishart(d + 2, diag(w)^2 / 3), and the mean ~ N(0, Sigma).
    6. Without an intercept the mean of the features is taken to be 0.

    `noise`: "aware", or "naive", which treats the noisy moments as exact, once they are made positive definite.

    Raises `UserError` for a setting out of range or a release without a y'y of its own noise, and `UnconvergedError`.
    """
    check_known("noise", noise, NOISE)
    check_positive("bayesian_linear", prior_rows=prior_rows, draws=draws, warmup=warmup)
    if chains < 2:
        raise UserError(f"bayesian_linear needs at least 2 chains, to compute R-hat, not {chains}")
    if expected_rows <= (p := len(design.columns)):
        raise UserError(f"bayesian_linear: expected_rows must be greater than {p}, not {expected_rows}")
    noisy, variances = _moments(release, design, expected_rows)
    model, found = _Model(design, expected_rows, prior_rows), np.empty((chains, draws, p))
    for chain in range(chains):
        spread = np.triu(np.sqrt(variances) * rng.normal(size=noisy.shape))
        S = model.positive(noisy + (spread + np.triu(spread, 1).T if noise == "aware" else 0.0))
        for step in range(-warmup, draws):
            theta, sigma2 = model.coefficients(rng, S)
            if noise == "aware":
                theta, S = model.shifted(rng, theta, sigma2, S, noisy, variances)
                mean, root = model.row(theta, sigma2, *model.features(rng, S))
                S = model.moments(rng, mean, root, noisy, variances, S)
            if step >= 0:
                found[chain, step] = theta
    return posterior_fit(found, level=level, notes={"noise": noise})


def _moments(release: Release, design: Design, n: int) -> tuple[Floats, Floats]:
    """The noisy moments (q, q) of (x, y) and the variances of their noise; an intercept's square is n, without any."""
    found, p = release[SufficientStatistics], len(design.columns)
    scales = [event.sd for event in release.ledger.events if event.label == "y'y" and isinstance(event, Gaussian)]
    if found.yty is None or len(scales) != 1:
        raise UserError("bayesian_linear needs moments with a y'y of its own noise: mechanism=ssp_intervals has them")
    noisy = np.block([[found.xtx, found.xty[:, None]], [found.xty[None, :], np.array([[found.yty]])]])
    sds = np.full((p + 1, p + 1), found.xtx_sd)
    sds[p, :], sds[:, p], sds[p, p] = found.xty_sd, found.xty_sd, scales[0]
    if design.intercept:
        noisy[p - 1, p - 1], sds[p - 1, p - 1] = n, 0.0
    return noisy, sds**2


@dataclass(frozen=True)
class _Model:
    """The conditional distributions. S (q, q) are moments of (x, y), q = p + 1, of which d features are random."""

    design: Design
    n: int
    prior_rows: float

    @cached_property
    def widths(self) -> Floats:
        """The largest absolute values (q,) of x and y."""
        x = np.maximum(*map(np.abs, self.design.box))
        return np.append(np.where(x > 0, x, 1.0), self.design.y_bound or 1.0)

    @property
    def random(self) -> int:
        """d: the intercept, which is the last feature, is a constant."""
        return len(self.design.columns) - int(self.design.intercept)

    @cached_property
    def entries(self) -> tuple[Codes, Codes]:
        """The places of the free moments: the upper triangle without the square of an intercept."""
        i, j = np.triu_indices(len(self.design.columns) + 1)
        free = (i != self.random) | (j != self.random) if self.design.intercept else np.ones(len(i), dtype=bool)
        return i[free], j[free]

    @cached_property
    def pairs(self) -> tuple[Codes, Codes, Codes]:
        """Of any two free moments (k, k): where the firsts, the seconds, and the first with the second meet in M."""
        (i, j), q = self.entries, len(self.design.columns) + 1
        return i[:, None] * q + i, j[:, None] * q + j, i[:, None] * q + j

    def positive(self, S: Floats) -> Floats:
        """S with eigenvalues of at least n `LEAST`, in units of the widths."""
        unit = np.outer(self.widths, self.widths)
        values, vectors = np.linalg.eigh(S / unit)
        found: Floats = (vectors * np.maximum(values, self.n * LEAST)) @ vectors.T * unit
        return found

    def coefficients(self, rng: np.random.Generator, S: Floats) -> tuple[Floats, float]:
        """theta and sigma^2 given S: normal and inverse gamma."""
        precision = S[:-1, :-1] + np.diag(self.prior_rows * self.widths[:-1] ** 2)
        root = np.linalg.cholesky(precision)
        half = np.linalg.solve(root, S[:-1, -1])
        rest = self.prior_rows * self.widths[-1] ** 2 + (S[-1, -1] - half @ half) / 2
        sigma2 = float(rest / rng.gamma(1 + self.n / 2))
        theta: Floats = np.linalg.solve(root.T, half + np.sqrt(sigma2) * rng.normal(size=len(half)))
        return theta, sigma2

    def shifted(
        self, rng: np.random.Generator, theta: Floats, sigma2: float, S: Floats, noisy: Floats, variances: Floats
    ) -> tuple[Floats, Floats]:
        """theta and S of the targets y + x'delta in place of y, or what they were.

        The distribution of S given the parameters is the same for all delta, and so is the volume. Delta is drawn from
        the noise of X'y, and accepted by that of y'y and the prior of theta.
        """
        xx, xy, yy, prior = S[:-1, :-1], S[:-1, -1], S[-1, -1], self.prior_rows * self.widths[:-1] ** 2
        target = noisy[:-1, -1] + np.sqrt(variances[:-1, -1]) * rng.normal(size=len(xy))
        delta = np.linalg.solve(xx, target - xy)
        moved, other = theta + delta, yy + delta @ (xy + target)
        log = ((noisy[-1, -1] - yy) ** 2 - (noisy[-1, -1] - other) ** 2) / (2 * variances[-1, -1])
        log += prior @ (theta**2 - moved**2) / (2 * sigma2)
        if np.log(rng.random()) >= log:
            return theta, S
        S = S.copy()
        S[:-1, -1] = S[-1, :-1] = target
        S[-1, -1] = other
        return moved, S

    def features(self, rng: np.random.Generator, S: Floats) -> tuple[Floats, Floats]:
        """The mean (d,) and a root (d, d) of the covariance of the features given S: normal and inverse Wishart."""
        d, rows = self.random, 1 + self.n
        scale, centre = S[:d, :d] + np.diag(self.widths[:d] ** 2 / 3), np.zeros(d)
        if self.design.intercept:
            centre = S[:d, d] / rows
            scale = scale - rows * np.outer(centre, centre)
        bartlett = np.tril(rng.normal(size=(d, d)), -1) + np.diag(np.sqrt(rng.chisquare(d + 2 + self.n - np.arange(d))))
        root = np.linalg.solve(bartlett, np.linalg.cholesky(scale).T).T
        if self.design.intercept:
            centre = centre + root @ rng.normal(size=d) / np.sqrt(rows)
        return centre, root

    def row(self, theta: Floats, sigma2: float, mean: Floats, root: Floats) -> tuple[Floats, Floats]:
        """The mean (q,) and a root (q, d + 1) of the covariance of (x, y)."""
        d, q = self.random, len(theta) + 1
        x, whole = np.ones(q - 1), np.zeros((q, d + 1))
        x[:d], whole[:d, :d] = mean, root
        whole[-1] = np.append(theta[:d] @ root, np.sqrt(sigma2))
        return np.append(x, x @ theta), whole

    def moments(
        self, rng: np.random.Generator, mean: Floats, root: Floats, noisy: Floats, variances: Floats, S: Floats
    ) -> Floats:
        """S given the distribution of a row and the noisy moments; the S before if none is positive definite.

        A draw s of N(n M, n V), moved by n V (n V + noise)^-1 towards what was released less a draw of the noise. With
        C = root root', V is the covariance of root A root' + m u' + u m', for u of N(0, C) and a symmetric A whose
        entries have the variance 1, and 2 on the diagonal.
        """
        squares, noise = np.outer(mean, mean), variances[self.entries]
        M, products = root @ root.T + squares, squares[self.entries]
        firsts, seconds, crossed = (M.take(places) for places in self.pairs)
        total = firsts * seconds
        total += crossed * crossed.T
        total -= np.outer(2 * products, products)
        total *= self.n
        total[np.diag_indices(len(noise))] = total.diagonal() * (1 + JITTER) + noise
        factor = cho_factor(total.T, overwrite_a=True, check_finite=False)
        for _ in range(TRIES):
            A, u = rng.normal(size=(root.shape[1],) * 2), root @ rng.normal(size=root.shape[1])
            sums = root @ (A + A.T) @ root.T / np.sqrt(2) + np.outer(mean, u) + np.outer(u, mean)
            s = (self.n * M + np.sqrt(self.n) * sums)[self.entries]
            target = noisy[self.entries] - np.sqrt(noise) * rng.normal(size=len(noise))
            drawn = noisy.copy()
            drawn[self.entries] = target - noise * cho_solve(factor, target - s, check_finite=False)
            drawn.T[self.entries] = drawn[self.entries]
            if np.linalg.eigvalsh(drawn)[0] > 0:
                return drawn
        return S
