"""`Budget` (what may be spent) and `Ledger` (the noise that was really drawn)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dpbench.errors import UserError
from dpbench.privacy.pure import bounded_range_mu, pure_mu

RELATIONS = ("add_remove", "replace")
NORMS = {
    "gaussian": "l2",
    "laplace": "l1",
    "exponential": "linf",
    "permute_and_flip": "linf",
    "objective": "l2",
    "projection": "l2",
    "pure": "none",
    "claimed": "none",
    "exact": "none",
}
ROUNDING = 1e-9  # relative, of a sum of costs


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta)-DP between neighbouring tables; epsilon = inf asks for no privacy at all.

    `relation`: `add_remove` one record (n is private) or `replace` one (n is public).
    """

    epsilon: float
    delta: float = 1e-5
    relation: str = "add_remove"

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise UserError(f"epsilon must be greater than 0, not {self.epsilon}")
        if not 0 < self.delta < 1:
            raise UserError(f"delta must lie between 0 and 1, both excluded, not {self.delta}")
        if self.relation not in RELATIONS:
            raise UserError(f"relation must be one of {', '.join(RELATIONS)}, not {self.relation!r}")

    @property
    def n_public(self) -> bool:
        """Whether a mechanism may use the exact number of rows."""
        return self.relation == "replace"


@dataclass(frozen=True)
class Event:
    """`count` draws of one kind of noise.

    `sensitivity` bounds the change of the noised quantity between neighbours, in the norm of the kind (`NORMS`).
    `multiplier` is the noise's scale divided by the sensitivity: the standard deviation (gaussian), the scale b
    (laplace), or 2/eps (exponential mechanism and permute-and-flip with weights exp(eps u / (2 sensitivity))).
    `rate` is the probability with which each record took part in a draw (Poisson sampling; gaussian only).
    `objective` is the Gaussian linear term of a perturbed objective: `sensitivity` bounds the gradient of one record,
    and `offset` is the privacy loss that the change of variables adds, whatever was drawn.
    `projection` is `count` Gaussian combinations of the rows of [A; w I]: `sensitivity` bounds the l2 norm of a row of
    A, and w is multiplier * sensitivity.
    `pure` is a step that is eps-DP as a whole, whatever it drew, and `claimed` is what code says of itself that we
    cannot verify; their multiplier is 1/eps.
    `delta` is the probability with which the condition of a projection fails, or the delta that is claimed.
    `exact` is a value that was read without noise.
    """

    kind: str
    label: str
    sensitivity: float
    multiplier: float
    count: int = 1
    rate: float = 1.0
    offset: float = 0.0
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in NORMS:
            raise ValueError(f"unknown kind of noise {self.kind!r}")
        if not (self.sensitivity > 0 and math.isfinite(self.sensitivity)):
            raise ValueError(f"{self.label}: sensitivity must be positive and finite, not {self.sensitivity}")
        if self.kind != "exact" and not self.multiplier > 0:
            raise ValueError(f"{self.label}: noise multiplier must be positive, not {self.multiplier}")
        if not 0 < self.rate <= 1 or (self.rate < 1 and self.kind != "gaussian"):
            raise ValueError(f"{self.label}: a sampling rate lies in (0, 1], and is 1 but for gaussian: {self.rate}")
        if self.offset < 0 or (self.offset and self.kind != "objective"):
            raise ValueError(f"{self.label}: an offset is positive, and belongs to objective only: {self.offset}")
        if not 0 <= self.delta < 1 or (self.delta and self.kind not in ("projection", "claimed")):
            raise ValueError(
                f"{self.label}: a delta lies in [0, 1), and belongs to projection or claimed: {self.delta}"
            )

    @property
    def rho(self) -> float:
        """The zCDP cost of one draw (Bun and Steinke 2016; Cesar and Rogers 2021 for the exponential mechanism).

        Sampling is left out, which only lowers the cost. Infinite for the kinds that are no zCDP.
        """
        if self.kind in ("exact", "objective", "projection", "claimed"):
            return math.inf
        return (0.5 if self.kind != "permute_and_flip" else 2.0) / self.multiplier**2

    @property
    def mu(self) -> float:
        """The Gaussian DP of one draw: the least mu, but for Laplace noise, of which only its eps-DP is used.

        Sampling is left out, which only lowers mu. Infinite for the kinds that are no Gaussian DP.
        """
        if self.kind == "gaussian":
            return 1 / self.multiplier
        if self.kind == "exponential":
            return bounded_range_mu(2 / self.multiplier)
        pure = {"pure": 1.0, "laplace": 1.0, "permute_and_flip": 2.0}
        return pure_mu(pure[self.kind] / self.multiplier) if self.kind in pure else math.inf

    def to_dict(self) -> dict[str, Any]:
        """As plain data, the norm written out."""
        return {**asdict(self), "norm": NORMS[self.kind]}


@dataclass(frozen=True)
class RandomSearch:
    """K independent runs, of which the one with the best private score was released (Papernot and Steinke 2021).

    K has the truncated negative binomial law of Definition 1 there: P(K = k) is in proportion to
    (1 - gamma)^k prod_{l < k} (l + eta) / (l + 1), k = 1, 2, ..., eta > -1, 0 < gamma < 1 (eta = 0: the logarithmic
    law, k's weight being (1 - gamma)^k / k). Each run drew the noise of one of the `alternatives`. Which of them, and
    K, are not recorded: the theorem's guarantee is that of an output whose number of runs stays secret.
    """

    label: str
    eta: float
    gamma: float
    alternatives: tuple[tuple[Event, ...], ...]

    def __post_init__(self) -> None:
        if not (self.eta > -1 and 0 < self.gamma < 1):
            raise ValueError(f"{self.label}: eta > -1 and 0 < gamma < 1 are needed, not {self.eta} and {self.gamma}")
        if any(event.kind != "gaussian" for events in self.alternatives for event in events):
            raise ValueError(f"{self.label}: the noise of a run must be gaussian")

    @property
    def mean(self) -> float:
        """E[K] (Papernot and Steinke 2021, Definition 1)."""
        if self.eta == 0:
            return (1 / self.gamma - 1) / -math.log(self.gamma)
        return self.eta * (1 - self.gamma) / (self.gamma * -math.expm1(self.eta * math.log(self.gamma)))

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        alternatives = [[event.to_dict() for event in events] for events in self.alternatives]
        return {"kind": "random_search", **asdict(self), "alternatives": alternatives}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RandomSearch:
        """What `to_dict` described."""
        alternatives = tuple(tuple(map(_event, events)) for events in data["alternatives"])
        return cls(data["label"], data["eta"], data["gamma"], alternatives)


@dataclass(frozen=True)
class Filter:
    """A bound on all that a ledger may hold, whose events may be chosen, and paid for, as earlier answers suggest.

    `unit` is `mu`: the whole is limit-Gaussian DP as long as the sum of mu_i^2 is at most limit^2 (Koskela, Tobaben and
    Honkela 2023; Smith and Thakurta 2022). Or `rho`: limit-zCDP while the sum of rho_i is at most limit (Feldman and
    Zrnic 2021, for every order of Renyi DP; Whitehouse, Ramdas, Rogers and Wu 2023).
    """

    unit: str
    limit: float

    def __post_init__(self) -> None:
        if self.unit not in ("mu", "rho") or not 0 < self.limit < math.inf:
            raise ValueError(f"a filter has a positive, finite limit on mu or rho, not {self.limit} on {self.unit!r}")

    def refuses(self, costs: Iterable[float]) -> bool:
        """Whether draws of these costs exceed the limit together, by more than rounding."""
        limit = self.limit**2 if self.unit == "mu" else self.limit
        return math.fsum(costs) > limit * (1 + ROUNDING)

    def cost(self, event: Event | RandomSearch) -> float:
        """mu^2 or rho of an event, all of its draws together."""
        if isinstance(event, RandomSearch):
            return math.inf
        return event.count * (event.mu**2 if self.unit == "mu" else event.rho)


class Ledger:
    """The events of one release, in the order in which they were drawn. Only `privacy.noise` adds to it.

    `filter` bounds what may be drawn, where the noise is chosen as the mechanism goes.
    """

    def __init__(self, events: Iterable[Event | RandomSearch] = ()) -> None:
        self._events = list(events)
        self._filter: Filter | None = None
        self._costs: list[float] = []  # of the events, by the filter

    @property
    def events(self) -> tuple[Event | RandomSearch, ...]:
        """All that was drawn so far."""
        return tuple(self._events)

    @property
    def filter(self) -> Filter | None:
        """The filter under which everything is drawn, if there is one."""
        return self._filter

    def open_filter(self, unit: str, limit: float) -> None:
        """From now on the ledger refuses what exceeds `limit`, in all, of `unit`: `mu` or `rho` (see `Filter`).

        Raises `ValueError` if it has a filter, or any event: what was drawn before was not filtered.
        """
        if self._filter is not None or self._events:
            raise ValueError("a filter is opened once, and before the first draw")
        self._filter = Filter(unit, limit)

    def record(self, event: Event | RandomSearch) -> None:
        """Append one event. Raises `ValueError`, and appends nothing, if that exceeds the filter."""
        if self._filter is not None:
            costs = [*self._costs, self._filter.cost(event)]
            if self._filter.refuses(costs):
                raise ValueError(f"{event.label}: this exceeds the filter, {self._filter.unit} <= {self._filter.limit}")
            self._costs = costs
        self._events.append(event)

    def to_list(self) -> list[dict[str, Any]]:
        """As plain data (JSON-ready), the filter first; `from_list` reads it back."""
        opened = [{"kind": "filter", **asdict(self._filter)}] if self._filter else []
        return [*opened, *(event.to_dict() for event in self._events)]

    @classmethod
    def from_list(cls, data: Iterable[Mapping[str, Any]]) -> Ledger:
        """The ledger that `to_list` described. Raises `ValueError` for events that exceed its filter."""
        ledger = cls()
        for item in data:
            if item["kind"] == "filter":
                ledger.open_filter(item["unit"], item["limit"])
            else:
                ledger.record(RandomSearch.from_dict(item) if item["kind"] == "random_search" else _event(item))
        return ledger


def _event(data: Mapping[str, Any]) -> Event:
    return Event(**{key: value for key, value in data.items() if key != "norm"})
