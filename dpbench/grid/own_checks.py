"""The checks of own mechanisms before a run: each once for its code, in a process of its own that sees no rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from dpbench.config import Limits
from dpbench.data.encode import Design
from dpbench.files import Json
from dpbench.grid.plan import Plan, ReleaseItem, Setting
from dpbench.grid.process import Child
from dpbench.grid.seeds import canonical, signature
from dpbench.grid.store import Store
from dpbench.grid.trial_log import Log
from dpbench.targets import is_shipped

SECONDS = 600.0  # that a check may take
SHOWN = 3  # problems in the message of a trial
NOT_CHECKED = "not checked by dpbench check, whether it reads the rows through its noise alone"
LEFT_OUT = f"{NOT_CHECKED} (--unchecked)"
STOPPED = f"{NOT_CHECKED}: it stopped on made-up tables"


@dataclass(frozen=True)
class Finding:
    """What came of the check of a mechanism: what is `wrong`, and `stopped`, why it came to no end."""

    id: str
    mechanism: str
    wrong: tuple[str, ...] = ()
    stopped: str = ""


def unchecked(plan: Plan) -> Plan:
    """The plan, whose releases by own mechanisms say that these were not checked, and are so made without a check."""
    groups = (replace(one, item=_noted(one.item, LEFT_OUT)) if _own(one.item) else one for one in plan.groups)
    return replace(plan, groups=tuple(groups))


def check_own(items: Iterable[ReleaseItem], plan: Plan, store: Store) -> tuple[list[ReleaseItem], dict[str, str]]:
    """The items, which say where the check of an own mechanism came to no end; and why releases are refused, by id.

    What was found is kept in the folder `checks` of the results, by what the check depends on: the code and the
    parameters of the mechanism, what it offers, the relation, and whether the target has two levels; signed with the
    salt, so that what a stranger's folder says of a mechanism is not believed. A mechanism with which something is
    wrong makes no release: that its ledger says what it cost is what all results rest on.
    Raises `StoreError` if nothing can be written.
    """
    checked, refused, known = list[ReleaseItem](), dict[str, str](), dict[str, Finding]()
    for item in items:
        if not _own(item) or any(text.startswith(NOT_CHECKED) for text in item.nonprivate_inputs):
            checked.append(item)
            continue
        setting = plan.settings[item.setting]
        request = _request(item, setting, plan.codes[item.key.mechanism.target])
        identity = signature("check", canonical(request))
        if identity not in known:
            known[identity] = _finding(identity, request, setting, store)
        found = known[identity]
        checked.append(_noted(item, STOPPED) if found.stopped else item)
        if found.wrong:
            name = item.key.mechanism.name
            refused[item.key.id] = f"dpbench check mechanism={name} finds what is wrong: {_in_short(found.wrong)}"
    return checked, refused


def _in_short(wrong: Sequence[str]) -> str:
    """The first place at which each problem was found, of `SHOWN` problems; how many more there are.

    >>> _in_short(["on one table: it reads a file", "on another: it reads a file", "on another: it writes"])
    'on one table: it reads a file; on another: it writes; 1 more'
    """
    first = {text.partition(": ")[2]: text for text in reversed(wrong)}
    shown = [text for text in wrong if text in first.values()][:SHOWN]
    more = len(wrong) - len(shown)
    return "; ".join([*shown, *([f"{more} more"] if more else [])])


def _own(item: ReleaseItem) -> bool:
    return not is_shipped(item.key.mechanism.target)


def _noted(item: ReleaseItem, note: str) -> ReleaseItem:
    return replace(item, nonprivate_inputs=tuple(dict.fromkeys([*item.nonprivate_inputs, note])))


def _request(item: ReleaseItem, setting: Setting, code: str) -> Json:
    key = item.key
    design = Design(setting.dataset.domain, **item.trials[0].fit.design)
    return {
        "mechanism": key.mechanism.to_dict(),
        "code": code,
        "offers": list(item.offers),
        "relations": [key.budget.relation],
        "private": math.isfinite(key.budget.epsilon),
        "labels": design.binary,
    }


def _finding(identity: str, request: Json, setting: Setting, store: Store) -> Finding:
    """What is kept of this check, or else what comes of it now."""
    folder = store.root / "checks"
    log = Log(folder)
    log.scan()
    for record in log.records([identity]):
        return Finding(identity, record["mechanism"], tuple(record["wrong"]), record["stopped"])
    child = Child()
    try:
        limits = Limits(**{**vars(setting.limits), "seconds": min(setting.limits.seconds, SECONDS)})
        (reply,) = child.ask({"do": "mechanism", "store": [str(store.root), store.name]}, [request], limits)
    finally:
        child.stop()
        child.close()
    stopped = reply.error.message if reply.error is not None else ""
    found = Finding(identity, request["mechanism"]["name"], tuple(reply.answer.get("wrong", ())), stopped)
    with store.writing(folder):
        folder.mkdir(exist_ok=True)
        log.append(asdict(found))
    return found
