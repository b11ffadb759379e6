"""`Ledger`: the noise actually drawn for a release, and the `Filter` that bounds it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from dpbench.files import Json
from dpbench.privacy import events as kinds
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.discrete import DiscreteGaussian
from dpbench.privacy.events import Event
from dpbench.privacy.projections import Projection, TwoSidedProjection
from dpbench.privacy.renyi import RandomSearch, RenyiCurve

ROUNDING = 1e-9  # relative, of a sum of costs
_EVENTS = (
    *(kinds.Gaussian, kinds.Laplace, kinds.PureDP, kinds.ExponentialMechanism, kinds.PermuteAndFlip, kinds.ZCDP),
    *(kinds.ObjectivePerturbation, kinds.GlmObjectivePerturbation, kinds.DepthExponential),
    *(kinds.Claimed, kinds.Exact),
    *(BatchGaussian, DiscreteGaussian, Projection, TwoSidedProjection, RandomSearch, RenyiCurve),
)
EVENTS: dict[str, type[Event]] = {event.kind: event for event in _EVENTS}


@dataclass(frozen=True)
class Filter:
    """A bound on the total cost of a ledger, whose events and costs may be chosen adaptively.

    `unit` is `mu`: the total is limit-Gaussian DP as long as the sum of mu_i^2 is at most limit^2 (Koskela, Tobaben and
    Honkela 2023; Smith and Thakurta 2022). Or `rho`: limit-zCDP while the sum of rho_i is at most limit (Feldman and
    Zrnic 2021, for every order of Renyi DP; Whitehouse, Ramdas, Rogers and Wu 2023).
    """

    unit: str
    limit: float

    def __post_init__(self) -> None:
        if self.unit not in ("mu", "rho") or not 0 < self.limit < math.inf:
            raise ValueError(f"a filter needs a positive, finite limit on mu or rho, not {self.limit} on {self.unit!r}")

    def refuses(self, costs: Iterable[float]) -> bool:
        """Whether draws of these costs exceed the limit together, by more than rounding."""
        limit = self.limit**2 if self.unit == "mu" else self.limit
        return math.fsum(costs) > limit * (1 + ROUNDING)

    @property
    def rho(self) -> float:
        """The rho of zCDP that the limit is, or implies."""
        return self.limit**2 / 2 if self.unit == "mu" else self.limit

    def cost(self, event: Event) -> float:
        """mu^2 or rho of an event, all of its draws together."""
        return event.count * (event.mu**2 if self.unit == "mu" else event.rho)


class Ledger:
    """The events of one release, in the order in which they were drawn. Only `privacy.noise` adds to it.

    `filter` bounds the total cost where the noise is chosen adaptively.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events = list(events)
        self._filter: Filter | None = None
        self._costs: list[float] = []  # of the events, by the filter

    @property
    def events(self) -> tuple[Event, ...]:
        """All that was drawn so far."""
        return tuple(self._events)

    @property
    def filter(self) -> Filter | None:
        """The filter under which everything is drawn, if there is one."""
        return self._filter

    def open_filter(self, unit: str, limit: float) -> None:
        """From now on the ledger refuses events whose total exceeds `limit` in `unit`: `mu` or `rho` (see `Filter`).

        Raises `ValueError` if it has a filter or any event, since earlier draws were not filtered.
        """
        if self._filter is not None or self._events:
            raise ValueError("a filter can be opened only once, before the first draw")
        self._filter = Filter(unit, limit)

    def record(self, event: Event) -> None:
        """Append one event. Raises `ValueError`, and appends nothing, if that exceeds the filter."""
        if self._filter is not None:
            costs = [*self._costs, self._filter.cost(event)]
            if self._filter.refuses(costs):
                raise ValueError(f"{event.label}: this exceeds the filter, {self._filter.unit} <= {self._filter.limit}")
            self._costs = costs
        self._events.append(event)

    def to_list(self) -> list[dict[str, object]]:
        """As plain data (JSON-ready), the filter first; `from_list` reads it back."""
        opened = [{"kind": "filter", **asdict(self._filter)}] if self._filter else []
        return [*opened, *(event.to_dict() for event in self._events)]

    @classmethod
    def from_list(cls, data: Iterable[Json]) -> Ledger:
        """The ledger that `to_list` wrote. Raises `ValueError` for unknown events, or a total that exceeds its
        filter.
        """
        ledger = cls()
        for item in data:
            if item["kind"] == "filter":
                ledger.open_filter(item["unit"], item["limit"])
            else:
                ledger.record(event_of(item))
        return ledger


def event_of(data: Json) -> Event:
    """The event that `to_dict` wrote. Raises `ValueError` for an unknown kind or values out of range."""
    if data["kind"] not in EVENTS:
        raise ValueError(f"unknown kind of event {data['kind']!r}; known: {', '.join(EVENTS)}")
    return EVENTS[data["kind"]].from_dict(data)
