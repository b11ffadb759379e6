"""Conversions between (eps, delta)-DP, zCDP and Gaussian DP, and the cost of a ledger.

A conversion gives the smallest valid value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpbench.errors import check_known
from dpbench.privacy.events import (
    Claimed,
    DepthExponential,
    Event,
    Gaussian,
    GlmObjectivePerturbation,
    Laplace,
    ObjectivePerturbation,
    PermuteAndFlip,
)
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.pld import composed_epsilon, tractable
from dpbench.privacy.projections import Projection, TwoSidedProjection, projection_epsilon, two_sided_epsilon
from dpbench.privacy.renyi import RandomSearch, random_search_epsilon, renyi_epsilon
from dpbench.privacy.root_finding import root

SOLVER_DELTA = 1e-3  # of delta: for the Gaussian noise added to a perturbed objective


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The exact delta(eps) of a mu-Gaussian-DP mechanism (Dong, Roth, Su 2019, Corollary 1; BinAgg, Prop. 2.1(i)).

    Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2).
    """
    from scipy.special import log_ndtr, ndtr

    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(min(epsilon + log_ndtr(-mu / 2 - epsilon / mu), 0.0)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least eps >= 0 for which a mu-Gaussian-DP mechanism is (eps, delta)-DP."""
    if math.isinf(mu):
        return math.inf
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    return root(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, 1.0, rising=False)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-Gaussian DP implies (eps, delta)-DP: the analytic calibration of the Gaussian
    mechanism, whose noise multiplier is 1/mu (Balle and Wang 2018, Theorem 8).
    """
    if math.isinf(epsilon):
        return math.inf
    return root(lambda mu: gaussian_delta(epsilon, mu) - delta, 0.0, 1.0, rising=True)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least delta that rho-zCDP gives at eps by its Renyi bound (Canonne, Kamath, Steinke 2020, Prop. 12).

    min over alpha > 1 of exp((alpha - 1)(alpha rho - eps)) / (alpha - 1) * (1 - 1/alpha)^alpha.
    """
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return 1.0

    def slope(t: float) -> float:  # of the logarithm, at alpha = 1 + t; increasing in t
        return (2 * t + 1) * rho - epsilon + math.log(t) - math.log1p(t)

    least = 1e-12  # every alpha gives a bound; one nearer to 1 gives no delta below 1 - 1e-10
    t = root(slope, 1e-300, 1.0, rising=True) if slope(least) < 0 else least
    log = t * ((1 + t) * rho - epsilon) + t * math.log(t) - (1 + t) * math.log1p(t)
    return math.exp(min(log, 0.0))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The least eps at which `zcdp_delta(rho, eps)` is at most delta."""
    if math.isinf(rho):
        return math.inf
    if zcdp_delta(rho, 0.0) <= delta:
        return 0.0
    return root(lambda epsilon: zcdp_delta(rho, epsilon) - delta, 0.0, 1.0, rising=False)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho for which `zcdp_epsilon(rho, delta) <= epsilon`."""
    if math.isinf(epsilon):
        return math.inf
    return root(lambda rho: zcdp_delta(rho, epsilon) - delta, 0.0, 1.0, rising=True)


def objective_epsilon(multiplier: float, offset: float, delta: float) -> float:
    """The eps at delta of logistic regression by objective perturbation, neighbours adding or removing one record.

    Theta minimises sum f(y theta.x) + lambda/2 ||theta||^2 + b.theta, f(s) = log(1 + exp(-s)), ||x|| <= L,
    b ~ N(0, (multiplier L)^2 I), offset = log(1 + kappa / 4), kappa = L^2 / lambda. With g the eps of
    (1 / multiplier)-Gaussian DP, two bounds hold, and the smaller is returned:

        offset + g     and     max(g, kappa).

    Proof. Where the table D with b gives theta, its neighbour D' gives it with c = b +- t u, u = y x and t = |f'(y
    theta.x)| in (0, 1). The privacy loss at theta is (||c||^2 - ||b||^2) / (2 sigma^2) + log |det J(D)| / |det
    J(D')|, J being the Hessian of the objective. With a = ||u|| / sigma, Z = +-b.u / (sigma ||u||), a standard
    normal, and G = a Z + a^2 / 2, the first term is t a Z + t^2 a^2 / 2 <= t G. The Hessians differ by a matrix of
    rank one, f'' u u', with f'' = t (1 - t), and both are at least lambda I: the second term is at most log(1 + t (1
    - t) kappa). So the loss is at most max(0, G) + offset, which is the first bound. It is also at most t G + t (1 -
    t) kappa, and if kappa <= eps at most t (2 - t) max(eps, G) <= max(eps, G): delta(eps) is at most that of
    a-Gaussian DP, which grows with a <= 1 / multiplier. That is the second bound: from lambda = L^2 / eps on, the
    change of variables costs nothing.

    It holds for the exact minimiser over all of R^p, the logistic loss, and adding or removing a record; not for
    replacing one, other losses, constraints, or a solver's error. Redberg, Koskela and Wang (2023) bound losses whose
    f' may have either sign and is not tied to f'': |Z| stands for Z, -log(1 - kappa / 4) is added, and lambda is above
    L^2 / 4. At the noise and the ridge of the second bound, theirs is 1.3 to 1.4 eps (delta 1e-5, eps 0.05 to 2).
    """
    gaussian = gaussian_epsilon(1 / multiplier, delta)
    return min(offset + gaussian, max(gaussian, 4 * math.expm1(offset)))


def glm_objective_epsilon(multiplier: float, offset: float, delta: float) -> float:
    """The eps at delta of a generalised linear model by objective perturbation, neighbours adding or removing a record.

    Theta minimises F(theta) + b.theta over all of R^p, F(theta) = sum_i f_i(x_i.theta) + lambda/2 ||theta||^2, for
    convex f_i with slopes |f_i'| ||x_i|| <= L that are Lipschitz, f_i'' ||x_i||^2 <= beta; b ~ N(0, (multiplier L)^2
    I), offset = log(1 + beta / lambda). With a = 1 / multiplier, Z a standard normal and e = eps - offset,

        delta(eps) = E max(0, 1 - exp(e - a^2 / 2 - a |Z|)),

    which is 2 g(e) if e >= a^2 / 2, g being `gaussian_delta` of mu = a, and 1 - h + 2 h g(a^2 / 2), h = exp(e - a^2 /
    2), otherwise. So eps is the offset and what does not depend on it.

    Proof. b = -grad F(theta), where grad F is strongly monotone and Lipschitz: theta and b determine each other, and
    theta has the density of b there times |det J|, J the Hessian of F, which exists almost everywhere (Rademacher). A
    neighbour's b differs by g = f'(x.theta) x, of length t <= L, and its J by f''(x.theta) x x', so that, J being at
    least lambda I in the smaller table, the determinants' logarithms differ by log(1 + f'' x'J^-1 x) <= offset. The
    privacy loss is (||b -+ g||^2 - ||b||^2) / (2 sigma^2) and this: at most t |Z| / sigma + t^2 / (2 sigma^2) + offset,
    Z = b.x / (sigma ||x||), which grows in t. What is in max(0, .) grows with the loss. If e >= a^2 / 2 it is 0 for
    |Z| <= (e - a^2 / 2) / a, and each of the two tails gives the Gaussian mechanism's delta; else it is never 0, and
    E(1 - exp(-a |Z|)) = 2 g(a^2 / 2).

    This is Theorem 3.1 of Redberg, Koskela and Wang 2023, arXiv 2401.00583 (as their code has it: `compute_delta` of
    utilities/utils.py), with log(1 + beta / lambda) for their |log(1 - beta / lambda)|. It holds for slopes of either
    sign and losses whose slope has kinks; for the logistic loss `objective_epsilon` is less.
    """
    if math.isinf(multiplier):
        return offset
    mu = 1 / multiplier

    def loss_delta(e: float) -> float:
        if e >= mu**2 / 2:
            return 2 * gaussian_delta(e, mu)
        h = math.exp(e - mu**2 / 2)
        return 1 - h + 2 * h * gaussian_delta(mu**2 / 2, mu)

    if loss_delta(0.0) <= delta:
        return offset
    return offset + root(lambda e: loss_delta(e) - delta, 0.0, 1.0, rising=False)


@dataclass(frozen=True)
class Spent:
    """The cost of a release: the smallest known eps at `delta`, rho (zCDP), and mu (Gaussian DP; None where none is
    known).

    Under a filter these are the filter's guarantee, whatever was drawn, and `ex_post` is the eps of the noise actually
    drawn, as if it had been fixed in advance: not a guarantee. Without a filter `ex_post` is None.
    """

    epsilon: float
    delta: float
    rho: float
    mu: float | None
    ex_post: float | None = None


def spent(ledger: Ledger, delta: float) -> Spent:
    """The guarantee of the ledger's filter, or, without one, that of the noise in the ledger.

    Without a filter the noise must have been fixed in advance, and all events compose. Gaussian ones do exactly, mu^2 =
    sum 1/multiplier^2. With others the smallest of three valid bounds is taken: Gaussian DP (`Event.mu`), zCDP
    (`Event.rho`), both for a sampled Gaussian as if all rows took part, and a privacy loss distribution (see
    `pld.composed_epsilon`). With a curve of Renyi DP it is the Renyi DP of all events (`renyi.renyi_epsilon`). An
    objective (`objective_epsilon`), a random search (`renyi.random_search_epsilon`) and a claim compose with nothing
    else, but a projection may be combined with Laplace and Gaussian events, a point of some depth with Laplace events,
    and an objective with Gaussian ones.

    Raises `ValueError` for one of these among other events: their composition is not supported.
    """
    drawn = _spent_on_events(ledger, delta)
    if ledger.filter is None:
        return drawn
    limit = ledger.filter.limit
    if ledger.filter.unit == "mu":
        return Spent(gaussian_epsilon(limit, delta), delta, ledger.filter.rho, limit, drawn.epsilon)
    return Spent(zcdp_epsilon(limit, delta), delta, limit, None, drawn.epsilon)


def spent_rho(ledger: Ledger) -> float:
    """The rho of `spent` alone, which costs no time, of a ledger whose events compose."""
    return _rho(ledger.events) if ledger.filter is None else ledger.filter.rho


def _rho(events: Sequence[Event]) -> float:
    return math.fsum(event.count * event.rho for event in events)


def _spent_on_events(ledger: Ledger, delta: float) -> Spent:
    events = ledger.events
    alone = [event for event in events if event.composes_with is not None]
    if alone:
        rest = [event for event in events if event.composes_with is None]
        return Spent(_epsilon_alone(alone[0], [*alone[1:], *rest], delta), delta, math.inf, None)
    rho = _rho(events)
    mu = math.sqrt(math.fsum(event.count * event.mu**2 for event in events))
    sampled = any(event.rate < 1 for event in events)
    bounds = [gaussian_epsilon(mu, delta)]
    if sampled or not all(isinstance(event, Gaussian) for event in events):
        bounds.append(zcdp_epsilon(rho, delta))
        if tractable(events, min(bounds)):
            bounds.append(composed_epsilon(events, delta))
        if math.isinf(min(bounds)):
            bounds.append(renyi_epsilon(events, delta))
    return Spent(min(bounds), delta, rho, None if sampled or math.isinf(mu) else mu)


def _epsilon_alone(event: Event, rest: Sequence[Event], delta: float) -> float:
    """eps of one random search or claim, of one projection with Laplace or Gaussian events, of one point of some depth
    with Laplace events, or of one objective with Gaussian ones.

    By basic composition. A projection whose condition fails with probability at most its delta costs the eps of the
    Laplace events and its own, together with the Gaussian events (`projection_delta`), at the rest of delta; an
    objective costs the eps of the Gaussian events at `SOLVER_DELTA` of delta and its own at the rest.
    """
    if not all(isinstance(other, event.composes_with or ()) and other.rate == 1 for other in rest):
        raise ValueError("an objective, a random search, a claim or a projection cannot be composed with other events")
    match event:
        case RandomSearch():
            return random_search_epsilon(event, delta)
        case ObjectivePerturbation():
            part = SOLVER_DELTA * delta if rest else 0.0
            cost = glm_objective_epsilon if isinstance(event, GlmObjectivePerturbation) else objective_epsilon
            own = cost(event.multiplier, event.offset, delta - part)
            return own + spent(Ledger(rest), part).epsilon
        case DepthExponential() if event.delta <= delta:
            pure = (other.scale for other in rest if isinstance(other, (Laplace, PermuteAndFlip)))
            return event.epsilon + math.fsum(other.count / scale for other, scale in zip(rest, pure, strict=True))
        case Claimed():
            return event.epsilon if event.delta <= delta else math.inf
        case Projection() if event.delta < delta:
            tested = math.fsum(other.count / other.multiplier for other in rest if isinstance(other, Laplace))
            mu = math.sqrt(math.fsum(other.count * other.mu**2 for other in rest if isinstance(other, Gaussian)))
            of_rows = two_sided_epsilon if isinstance(event, TwoSidedProjection) else projection_epsilon
            return tested + of_rows(event.multiplier, event.projections, delta - event.delta, mu)
    return math.inf


def together(costs: Sequence[Spent]) -> Spent:
    """The joint cost of several releases of one table: the guarantee against an adversary who sees all of them.

    Their mu (Gaussian DP) and rho (zCDP) compose, mu^2 and rho by their sums, at the largest delta. Releases whose rho
    is infinite, or gives a much looser bound than their epsilon (noise on samples), add their epsilon and delta (basic
    composition): the largest rho to an epsilon first, as many of them as give the least epsilon in all.
    """
    ordered = sorted(costs, key=lambda cost: cost.rho / cost.epsilon if cost.epsilon else 0.0)
    steps = [place for place in range(len(costs)) if place == 0 or ordered[place] != ordered[place - 1]]
    return min(
        (_together(ordered[:step], ordered[step:]) for step in [*steps, len(costs)]), key=lambda cost: cost.epsilon
    )


def _together(composed: Sequence[Spent], rest: Sequence[Spent]) -> Spent:
    delta = max((cost.delta for cost in composed), default=0.0)
    mus, rho = [cost.mu for cost in composed if cost.mu is not None], math.fsum(cost.rho for cost in composed)
    mu = math.sqrt(math.fsum(mu**2 for mu in mus)) if len(mus) == len(composed) else None
    bounds = [zcdp_epsilon(rho, delta)] if composed else [0.0]
    bounds += [gaussian_epsilon(mu, delta)] if mu else []
    epsilon = min(bounds) + math.fsum(cost.epsilon for cost in rest)
    delta += math.fsum(cost.delta for cost in rest)
    return Spent(epsilon, delta, math.inf if rest else rho, None if rest else mu)


def check_calibration(calibration: str, *more: str) -> None:
    """Raises `UserError` unless `calibration` is "tight", "paper" or one of `more`."""
    check_known("calibration", calibration, ("tight", "paper", *more))
