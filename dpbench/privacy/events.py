"""Events of a ledger: the noise that was drawn, one class a kind, each with its cost.

A cost is that of one draw; `count` draws compose. `rho` is that of zero-concentrated DP (Bun and Steinke 2016), `mu`
that of Gaussian DP, infinite where an event has none. A `multiplier` is the scale of the noise divided by the
sensitivity, which bounds the change of the noised value between neighbours in the norm of the class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpbench.data.domain import Floats
from dpbench.files import Json
from dpbench.privacy.pure import bounded_range_mu, pure_mu

# Fields of these names, in any event.
POSITIVE = ("sensitivity", "multiplier", "epsilon", "count", "projections", "limit")


@dataclass(frozen=True)
class Event:
    """One noisy answer about the private rows, named by `label`. The subclasses define its noise and cost.

    `composes_with`: the kinds of event with which the cost composes, where it does not compose as zCDP or Gaussian DP.

    Raises `ValueError` for a field of `POSITIVE` that is not positive, or not finite, which a multiplier need not be,
    and for a delta outside [0, 1).
    """

    label: str
    kind: ClassVar[str]
    norm: ClassVar[str] = "none"
    composes_with: ClassVar[tuple[type[Event], ...] | None] = None

    def __post_init__(self) -> None:
        for name in POSITIVE:
            value = getattr(self, name, 1)
            if not (value > 0 and (math.isfinite(value) or name == "multiplier")):
                raise ValueError(f"{self.label}: {name} must be positive and finite, not {value}")
        delta = getattr(self, "delta", 0.0)
        if not 0 <= delta < 1:
            raise ValueError(f"{self.label}: a delta must lie in [0, 1), not {delta}")

    @property
    def count(self) -> int:
        """The number of draws."""
        return 1

    @property
    def rate(self) -> float:
        """The probability with which each record took part in a draw."""
        return 1.0

    @property
    def rho(self) -> float:
        """The zCDP of one draw. Sampling is left out, which only lowers the cost."""
        return math.inf

    @property
    def mu(self) -> float:
        """The Gaussian DP of one draw: the least mu, except for Laplace noise, where only its eps-DP is used.

        Sampling is left out, which only lowers mu.
        """
        return math.inf

    def rdp(self, orders: Floats) -> Floats:
        """The Renyi DP of all draws together, at each of the orders."""
        return self.count * self.rho * orders

    @property
    def once(self) -> Event:
        """One draw of it, without label and sensitivity: equal for events with the same privacy loss distribution."""
        raise ValueError(f"{self.label}: no privacy loss distribution is known for {self.kind!r}")

    def loss(self, interval: float) -> Any:
        """The privacy loss distribution of `once`, by dp-accounting, on a grid of this interval."""
        return self.once.loss(interval)

    def to_dict(self) -> dict[str, object]:
        """As plain data; `event_of` reads it back."""
        return {"kind": self.kind, **vars(self), "norm": self.norm}

    @classmethod
    def from_dict(cls, data: Json) -> Self:
        """The fields that `to_dict` wrote, lists as tuples."""
        given: Json = {k: tuple(value) if isinstance(value, list) else value for k, value in data.items()}
        return cls(**{key: value for key, value in given.items() if key not in ("kind", "norm")})


@dataclass(frozen=True)
class Gaussian(Event):
    """N(0, (multiplier * sensitivity)^2) in each entry; ||change||_2 <= sensitivity.

    `rate`: each record is in a draw with this probability, independently (Poisson sampling); the sensitivity is then
    that of a sampled record.
    """

    kind, norm = "gaussian", "l2"
    sensitivity: float
    multiplier: float
    count: int = 1
    rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.rate <= 1:
            raise ValueError(f"{self.label}: a sampling rate must lie in (0, 1], not {self.rate}")

    @property
    def sd(self) -> float:
        """The standard deviation of the noise."""
        return self.multiplier * self.sensitivity

    @property
    def rho(self) -> float:
        """1 / (2 multiplier^2)."""
        return 0.5 / self.multiplier**2

    @property
    def mu(self) -> float:
        """1 / multiplier."""
        return 1 / self.multiplier

    def rdp(self, orders: Floats) -> Floats:
        """At rate q < 1 for an added and for a removed record, and for integer orders: infinite at others.

        At order a one draw has 1 / (a - 1) times the logarithm of the sum over k = 0 .. a of binomial(a, k)
        (1 - q)^(a - k) q^k exp((k^2 - k) / (2 multiplier^2)) (Mironov, Talwar, Zhang 2019, section 3.3).
        """
        from scipy.special import gammaln, logsumexp

        def at(a: float) -> float:
            k = np.arange(a + 1)
            logs = gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1)
            logs += (a - k) * math.log1p(-self.rate) + k * math.log(self.rate) + (k**2 - k) / (2 * self.multiplier**2)
            return float(self.count * logsumexp(logs) / (a - 1))

        if self.rate == 1:
            return super().rdp(orders)
        return np.array([at(a) if a % 1 == 0 else math.inf for a in orders])

    @property
    def once(self) -> Gaussian:
        """With its rate."""
        return Gaussian("", 1.0, self.multiplier, rate=self.rate)

    def loss(self, interval: float) -> Any:
        """That of the mixture due to sampling, for an added and for a removed record."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_gaussian_mechanism(
            self.multiplier, sampling_prob=self.rate, value_discretization_interval=interval
        )


class _Pure(Event):
    """A step that is eps-DP in each draw; for Laplace noise eps follows from its multiplier, its `scale`."""

    epsilon: float

    @property
    def scale(self) -> float:
        """1 / eps: the multiplier of Laplace noise of this eps."""
        return 1 / self.epsilon

    @property
    def rho(self) -> float:
        """eps^2 / 2."""
        return 0.5 / self.scale**2

    @property
    def mu(self) -> float:
        """`pure_mu(eps)`."""
        return pure_mu(1 / self.scale)

    @property
    def once(self) -> Event:
        """An eps-DP step."""
        return PureDP("", self.epsilon)


@dataclass(frozen=True)
class Laplace(_Pure):
    """Laplace noise of scale multiplier * sensitivity in each entry; ||change||_1 <= sensitivity."""

    kind, norm = "laplace", "l1"
    sensitivity: float
    multiplier: float
    count: int = 1

    @property
    def scale(self) -> float:
        """The multiplier."""
        return self.multiplier

    @property
    def once(self) -> Laplace:
        """With its multiplier alone."""
        return Laplace("", 1.0, self.multiplier)

    def loss(self, interval: float) -> Any:
        """That of the Laplace mechanism."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_laplace_mechanism(self.multiplier, value_discretization_interval=interval)


@dataclass(frozen=True)
class PureDP(_Pure):
    """A step that is eps-DP in total, whatever it drew; a record may change it by an l1 norm of 1."""

    kind, norm = "pure", "l1"
    epsilon: float
    count: int = 1

    def loss(self, interval: float) -> Any:
        """That of randomised response, the worst of all eps-DP steps."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        pure = pld.common.DifferentialPrivacyParameters(1 / self.scale, 0.0)
        return pld.from_privacy_parameters(pure, value_discretization_interval=interval)


@dataclass(frozen=True)
class PermuteAndFlip(_Pure):
    """One index by permute-and-flip at eps (McKenna and Sheldon 2020); no score changes by more than the sensitivity.

    It is eps-DP, and no better.
    """

    kind, norm = "permute_and_flip", "linf"
    sensitivity: float
    epsilon: float
    count: int = 1


@dataclass(frozen=True)
class ExponentialMechanism(PermuteAndFlip):
    """One index, drawn with weight exp(eps score / (2 sensitivity)): eps-DP of bounded range, which costs less."""

    kind = "exponential"

    @property
    def rho(self) -> float:
        """eps^2 / 8 (Cesar and Rogers 2021)."""
        return 0.125 / self.scale**2

    @property
    def mu(self) -> float:
        """`bounded_range_mu(eps)`."""
        return bounded_range_mu(1 / self.scale)


@dataclass(frozen=True)
class ZCDP(Event):
    """Several draws, chosen adaptively, that are limit-zCDP in total."""

    kind = "zcdp"
    limit: float

    @property
    def rho(self) -> float:
        """The limit."""
        return self.limit


@dataclass(frozen=True)
class ObjectivePerturbation(Event):
    """The minimiser of a convex objective with a linear term b ~ N(0, (multiplier * sensitivity)^2 I).

    `sensitivity` bounds the l2 norm of the gradient of one record's loss. `offset`: the privacy loss added by the
    change of variables, whatever was drawn (`accounting.objective_epsilon`).
    """

    kind, norm, composes_with = "objective", "l2", (Gaussian,)
    sensitivity: float
    multiplier: float
    offset: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.offset >= 0:
            raise ValueError(f"{self.label}: an offset must not be negative: {self.offset}")


@dataclass(frozen=True)
class GlmObjectivePerturbation(ObjectivePerturbation):
    """The same of other generalised linear models, at the cost `accounting.glm_objective_epsilon`.

    `offset` is log(1 + beta / lambda): beta bounds the Hessian of one record's loss, and lambda is the ridge.
    """

    kind = "glm_objective"


@dataclass(frozen=True)
class DepthExponential(Event):
    """One point by an exponential mechanism on a region that depends on the rows: (eps, delta)-DP where it is stable.

    A private test, Laplace noise on a distance, must have said so before; where it does so falsely, with probability
    delta, nothing is promised. With the test, and selections before it, it costs the sum of all eps at this delta
    (`mechanisms.tukey_em`).
    """

    kind, composes_with = "depth_exponential", (Laplace, PermuteAndFlip)
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Claimed(Event):
    """(eps, delta)-DP as claimed by third-party code for its own noise, which we cannot verify."""

    kind, composes_with = "claimed", ()
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Exact(Event):
    """A value that was read without noise."""

    kind = "exact"
