"""Conversions between (eps, delta)-DP, zCDP and Gaussian DP, and what a ledger has spent.

`tight` conversions are the least that is true; `paper` ones are the closed forms that papers print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpbench.errors import UserError
from dpbench.privacy.budget import Event, Ledger

CALIBRATIONS = ("tight", "paper")
LARGEST_PLD_EPSILON = 50.0  # a privacy loss distribution takes memory in proportion; beyond this zCDP alone is used


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The exact delta(eps) of a mu-Gaussian-DP mechanism (Dong, Roth, Su 2019, Corollary 1; Paper 1, Prop. 2.1(i)).

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
    return _root(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, 1.0, rising=False)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-Gaussian DP implies (eps, delta)-DP: the analytic calibration of the Gaussian
    mechanism, whose noise multiplier is 1/mu (Balle and Wang 2018, Theorem 8).
    """
    if math.isinf(epsilon):
        return math.inf
    return _root(lambda mu: gaussian_delta(epsilon, mu) - delta, 0.0, 1.0, rising=True)


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

    least = 1e-300
    t = _root(slope, least, 1.0, rising=True) if slope(least) < 0 else least
    log = t * ((1 + t) * rho - epsilon) + t * math.log(t) - (1 + t) * math.log1p(t)
    return math.exp(min(log, 0.0))


def zcdp_epsilon(rho: float, delta: float, calibration: str = "tight") -> float:
    """The eps of rho-zCDP at delta; `paper`: rho + 2 sqrt(rho log(1/delta)) (Bun and Steinke 2016, Prop. 1.3)."""
    if math.isinf(rho):
        return math.inf
    if calibration == "paper":
        return rho + 2 * math.sqrt(rho * math.log(1 / delta))
    if zcdp_delta(rho, 0.0) <= delta:
        return 0.0
    return _root(lambda epsilon: zcdp_delta(rho, epsilon) - delta, 0.0, 1.0, rising=False)


def zcdp_rho(epsilon: float, delta: float, calibration: str = "tight") -> float:
    """The largest rho for which `zcdp_epsilon(rho, delta, calibration) <= epsilon`."""
    if math.isinf(epsilon):
        return math.inf
    if calibration == "paper":
        log = math.log(1 / delta)
        return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2
    return _root(lambda rho: zcdp_delta(rho, epsilon) - delta, 0.0, 1.0, rising=True)


def objective_epsilon(multiplier: float, offset: float, delta: float) -> float:
    """The eps of objective perturbation at delta: offset + the eps of (1 / multiplier)-Gaussian DP.

    It holds for a loss f(y theta.x) with f' <= 0 everywhere, |f'| ||x|| <= L, and neighbours that add or remove one
    record (x, y). Theta minimises sum f + lambda/2 ||theta||^2 + b.theta, b ~ N(0, sigma^2 I), multiplier = sigma / L.
    Where the table D with b gives theta, its neighbour D' gives it with c = b + s u, u = y x, and s lies between 0 and
    L / ||x|| for one direction, between -L / ||x|| and 0 for the other. The privacy loss at theta is

        (||c||^2 - ||b||^2) / (2 sigma^2) + log |det J(D)| / |det J(D')|,

    J being the Hessian of the objective. The first term, (2 s b.u + s^2 ||u||^2) / (2 sigma^2), is convex in s, so at
    most the larger of its values at the ends: max(0, m Z + m^2 / 2) with m = L / sigma and Z = +-b.u / (sigma ||u||),
    a standard normal. The second is at most log(1 + beta / lambda) =: offset, beta >= f'' ||x||^2, because J(D) and
    J(D') differ by a matrix of rank one and both are at least lambda I. For eps >= offset the cut at 0 does not matter,
    and delta(eps) is at most that of m-Gaussian DP at eps - offset.

    Redberg, Koskela and Wang (2023, Theorem 3.1) have twice this delta: |Z| stands for Z where f' may have either sign.
    """
    return offset + gaussian_epsilon(1 / multiplier, delta)


def _root(f: Callable[[float], float], low: float, high: float, *, rising: bool) -> float:
    """The root of a monotone f above `low`, on the side where the privacy claim holds (f <= 0)."""
    from scipy.optimize import brentq

    sign = 1 if rising else -1
    while sign * f(high) < 0:
        low, high = high, 2 * high
    if math.isinf(high):
        return low
    root = float(brentq(f, low, high, xtol=1e-300, rtol=1e-13, maxiter=1000))
    step = 2e-16  # brentq may end on either side of the root: step to the side that keeps the claim
    while f(root) > 0:
        root, step = root * (1 - sign * step), 2 * step
    return root


@dataclass(frozen=True)
class Spent:
    """What a ledger cost: the least eps known at `delta`, rho (zCDP), and mu (Gaussian DP; None if not Gaussian)."""

    epsilon: float
    delta: float
    rho: float
    mu: float | None


def spent(ledger: Ledger, delta: float) -> Spent:
    """The guarantee that the noise in the ledger gives, by composition of all its events.

    Gaussian events compose exactly, mu^2 = sum 1/multiplier^2. With other events the smaller of two true bounds is
    taken: zCDP (exponential mechanism: eps^2/8; Laplace, permute-and-flip: eps^2/2) and a privacy loss distribution
    (`dp-accounting`; selections enter as eps-DP). An objective stands alone: see `objective_epsilon`.

    Raises `ValueError` for an objective among other events: their composition is not known here.
    """
    events = ledger.events
    if any(event.kind == "objective" for event in events):
        if len(events) > 1 or events[0].count > 1:
            raise ValueError("an objective event cannot be composed with others")
        return Spent(objective_epsilon(events[0].multiplier, events[0].offset, delta), delta, math.inf, None)
    rho = math.fsum(event.count * event.rho for event in events)
    if all(event.kind == "gaussian" for event in events):
        mu = math.sqrt(2 * rho)
        return Spent(gaussian_epsilon(mu, delta), delta, rho, mu)
    epsilon = zcdp_epsilon(rho, delta)
    if epsilon <= LARGEST_PLD_EPSILON:
        epsilon = min(epsilon, _pld_epsilon(events, delta))
    return Spent(epsilon, delta, rho, None)


def _pld_epsilon(events: Sequence[Event], delta: float) -> float:
    """eps at delta of the composed events, by a pessimistic privacy loss distribution."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    gaussian = math.sqrt(math.fsum(event.count / event.multiplier**2 for event in events if event.kind == "gaussian"))
    parts: list[tuple[Any, int]] = []
    if gaussian > 0:  # all Gaussian events are one
        parts.append((pld.from_gaussian_mechanism(1 / gaussian), 1))
    counts: dict[tuple[bool, float], int] = {}
    for event in events:
        if event.kind != "gaussian":
            key = (event.kind == "laplace", event.multiplier)
            counts[key] = counts.get(key, 0) + event.count
    for (laplace, multiplier), count in counts.items():
        pure = pld.common.DifferentialPrivacyParameters(2 / multiplier, 0.0)
        parts.append((pld.from_laplace_mechanism(multiplier) if laplace else pld.from_privacy_parameters(pure), count))
    whole = parts[0][0].self_compose(parts[0][1])
    for part, count in parts[1:]:
        whole = whole.compose(part.self_compose(count))
    return float(whole.get_epsilon_for_delta(delta))


def check_calibration(calibration: str) -> None:
    """`UserError` unless `calibration` is one of `CALIBRATIONS`."""
    if calibration not in CALIBRATIONS:
        raise UserError(f"calibration must be one of {', '.join(CALIBRATIONS)}, not {calibration!r}")
