"""`Budget` (what may be spent) and `Ledger` (the noise that was really drawn)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dpbench.errors import UserError

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


class Ledger:
    """The events of one release, in the order in which they were drawn. Only `privacy.noise` adds to it."""

    def __init__(self, events: Iterable[Event | RandomSearch] = ()) -> None:
        self._events = list(events)

    @property
    def events(self) -> tuple[Event | RandomSearch, ...]:
        """All that was drawn so far."""
        return tuple(self._events)

    def record(self, event: Event | RandomSearch) -> None:
        """Append one event."""
        self._events.append(event)

    def to_list(self) -> list[dict[str, Any]]:
        """As plain data (JSON-ready); `from_list` reads it back."""
        return [event.to_dict() for event in self._events]

    @classmethod
    def from_list(cls, data: Iterable[Mapping[str, Any]]) -> Ledger:
        """The ledger that `to_list` described."""
        return cls(RandomSearch.from_dict(item) if item["kind"] == "random_search" else _event(item) for item in data)


def _event(data: Mapping[str, Any]) -> Event:
    return Event(**{key: value for key, value in data.items() if key != "norm"})
