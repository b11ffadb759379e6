"""Gaussian DP of steps whose privacy loss is bounded: eps-DP ones, and the exponential mechanism."""

from __future__ import annotations

import math


def pure_mu(epsilon: float) -> float:
    """The least mu for which eps-DP implies mu-Gaussian DP (Liu et al. 2022, Theorem 5.1; BinAgg, Prop. 2.1(ii)).

    mu = -2 Phi^-1(1 / (1 + e^eps)) = 2 sqrt 2 erf^-1(tanh(eps / 2)) <= sqrt(pi / 2) eps.

    >>> round(pure_mu(1.0), 6), round(pure_mu(1e-9) / 1e-9, 6)
    (1.232035, 1.253314)
    """
    from scipy.special import erfinv, ndtri_exp

    if epsilon < 1:  # the second form keeps all digits of a small eps, the first those of a large one
        return 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2)))
    return -2 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))


def pure_epsilon(mu: float) -> float:
    """The eps for which `pure_mu(eps) = mu`: an eps-DP step within a Gaussian-DP budget."""
    from scipy.special import log_ndtr

    if mu < 1:
        return 2 * math.atanh(math.erf(mu / (2 * math.sqrt(2))))
    return float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))


def bounded_range_mu(epsilon: float) -> float:
    """The least mu for which an eps-bounded-range mechanism is mu-Gaussian DP: pure_mu(eps / 2), about 0.63 eps.

    Bounded range (Durfee and Rogers 2019): for some t the privacy loss of two neighbours lies in [t - eps, t]. The
    exponential mechanism with weights exp(eps u / (2 sensitivity)) has it, since a neighbour moves all logits by at
    most eps / 2 up or down. Permute-and-flip does not: scores 0, 0 against s, -s give a range of eps + log(2 - e^-eps).

    Proof. Let the neighbours give P and Q. For every convex phi, E_Q phi(dP/dQ) is largest, the mean of dP/dQ being 1,
    where dP/dQ takes the ends e^t and e^(t - eps) only (Dong, Durfee and Rogers 2020): with probability p the first
    under P, q under Q. The trade-off function of this binary pair has one corner, (q, 1 - p), and G_mu, which is
    convex, lies below if it does in the corner: Phi^-1(1 - q) - mu <= Phi^-1(1 - p), or mu >= Phi^-1(p) - Phi^-1(q).
    Now e^t = p / q and e^(t - eps) = (1 - p) / (1 - q), so the logits of p and q differ by eps, and Phi^-1(p) -
    Phi^-1(q) is the integral over an interval of length eps of the derivative of s -> z(s) = Phi^-1(logistic(s)):

        z'(s) = Phi(z) Phi(-z) / phi(z) = [integral over w > z of (2 Phi(w) - 1) phi(w)] / [the same of w phi(w)].

    It is even, and falls as z > 0 grows, because (2 Phi(w) - 1) / w falls in w > 0. So the interval around 0 is the
    worst: t = eps / 2, p = 1 - q = 1 / (1 + e^(-eps / 2)), the pair of an (eps / 2)-DP step.
    """
    return pure_mu(epsilon / 2)


def bounded_range_epsilon(mu: float) -> float:
    """The eps for which `bounded_range_mu(eps) = mu`."""
    return 2 * pure_epsilon(mu)
