"""The ledgers of the page: a trial's own where its release is available, else that of the first of its cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from dpbench.files import Json
from dpbench.grid.records import Trial
from dpbench.grid.seeds import canonical
from dpbench.report.frames.ledgers import Events, FirstLedger, LedgerOf, no_ledgers
from dpbench.report.page.facts import short
from dpbench.report.text import span

MANY = 3  # draws of one kind; more are shown in one line, with their ranges
PLAIN = {"count": 1, "rate": 1, "norm": "none"}  # defaults, which are not shown


@dataclass(frozen=True)
class ShownLedger:
    """The ledger that a cell shows: `events`, and `whose` they are. `own`: the place of each listed trial's ledger,
    None where it is not available; `first`: the release of an export that is shown instead.
    """

    whose: str
    events: Events
    own: Sequence[int | None]
    first: Mapping[str, object] | None = None


@dataclass
class Ledgers:
    """All ledgers of the page, each once: `events`. `kept`: those of exports, by the releases for which they are
    shown.
    """

    ledger_of: LedgerOf = no_ledgers
    kept: Mapping[str, FirstLedger] = field(default_factory=dict)
    events: list[Events] = field(default_factory=list)
    _draws: dict[str, tuple[int, Mapping[str, object]]] = field(default_factory=dict)
    _places: dict[tuple[int, ...], int] = field(default_factory=dict)
    _own: dict[str, int | None] = field(default_factory=dict)

    @property
    def data(self) -> Json:
        """The distinct draws, and the places of each ledger's draws among them: releases share most."""
        draws = [event for _, event in self._draws.values()]
        return {"draws": draws, "ledgers": [list(places) for places in self._places]}

    def shown_for(self, listed: Sequence[Trial]) -> ShownLedger | None:
        """The ledger for the trials that a cell lists; None where none is available."""
        own = [self._of(trial) for trial in listed]
        made = {trial.release_id: place for trial, place in zip(listed, own, strict=True) if trial.spent is not None}
        for trial, place in zip(listed, own, strict=True):
            if place is not None:
                made.pop(trial.release_id, None)
                return ShownLedger(_whose(trial.key.release.repetition, place, made.values()), self.events[place], own)
        first = next((self.kept[trial.release_id] for trial in listed if trial.release_id in self.kept), None)
        if first is None:
            return None
        place = self._put(first.events)
        about = {"release": first.release, "repetition": first.repetition, "ledger": place}
        return ShownLedger(_whose(first.repetition, place, made.values()), first.events, own, about)

    def _of(self, trial: Trial) -> int | None:
        """The place of the ledger of a trial's own release."""
        name = trial.release_id
        if name not in self._own:
            events, first = self.ledger_of(trial), self.kept.get(name)
            if events is None and first is not None and first.release == name:
                events = first.events
            self._own[name] = None if events is None else self._put(events)
        return self._own[name]

    def _put(self, events: Events) -> int:
        draws = tuple(self._draws.setdefault(canonical(event), (len(self._draws), event))[0] for event in events)
        place = self._places.setdefault(draws, len(self.events))
        if place == len(self.events):
            self.events.append(events)
        return place


def _whose(repetition: int, shown: int, others: Iterable[int | None]) -> str:
    """Such as "Ledger of the release of repetition 0; of the others listed: 2 the same, 1 not stored"."""
    counts = Counter("not stored" if one is None else "the same" if one == shown else "different" for one in others)
    rest = ", ".join(f"{counts[how]} {how}" for how in ("the same", "different", "not stored") if counts[how])
    return f"Ledger of the release of repetition {repetition}" + (f"; of the others listed: {rest}" if rest else "")


def lines_of(events: Events) -> Iterator[tuple[str, str]]:
    """The draws of a ledger: what they measured, and their noise. Equal ones are grouped, and so are many of one
    kind.
    """
    kinds: dict[str, dict[str, list[Mapping[str, object]]]] = defaultdict(dict)
    for event in events:
        drawn = {name: value for name, value in event.items() if name not in ("kind", "label")}
        kinds[str(event["kind"])].setdefault(canonical(drawn), []).append(event)
    for kind, alike in kinds.items():
        for group in alike.values() if len(alike) <= MANY else [list(chain(*alike.values()))]:
            names = list(dict.fromkeys(str(event["label"]) for event in group if event.get("label")))
            count = f"{len(group)} × " if len(group) > 1 else ""
            what = short(", ".join(names)) if len(names) > 1 else "".join(names)
            yield what, f"{count}{kind.replace('_', ' ')}{_ranges(group)}"


def _ranges(group: Events) -> str:
    """The fields of some draws of one kind, each with its values or their range."""
    parts = []
    for name in dict.fromkeys(name for event in group for name in event if name not in ("kind", "label")):
        values = [event[name] for event in group if name in event]
        if any(value != PLAIN.get(name) for value in values):
            numbers = [value for value in values if isinstance(value, (int, float))]
            every = len(numbers) == len(values)
            text = span(numbers, 6) if every else ", ".join(dict.fromkeys(map(short, values)))
            parts.append(f"{name.replace('_', ' ')} {short(text)}")
    return f": {', '.join(parts)}" if parts else ""
