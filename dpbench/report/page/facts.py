"""The facts on the trials of a cell: target and spent budget, settings and provenance."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dpbench.config.schema import Parameters
from dpbench.grid.audits import AuditRecord
from dpbench.grid.provenance import Provenance
from dpbench.grid.records import PartKey, ReleaseKey, Trial
from dpbench.grid.seeds import canonical
from dpbench.report.footnotes import SLACK
from dpbench.report.frames.by_setting import unfinished
from dpbench.report.frames.ledgers import Events, Grounds, ex_post, grounds_of
from dpbench.report.tables.runs import AUDITED, measured
from dpbench.report.text import in_ranges, number

_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][^\s'\"/\\:,;]+){2,}")


class Term(NamedTuple):
    """The text of a fact, and the place of its full text in the register (0 for none)."""

    text: str
    place: int = 0


class Register:
    """Texts that many cells share, each once: data, mechanisms, models and provenance, with all their settings."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def term(self, text: str, full: str) -> Term:
        """The short text, which links to the full one."""
        return Term(text, self.places.setdefault(full, len(self.places) + 1))


def marks_of(group: Sequence[Trial], events: Events | None) -> Iterator[str]:
    """Cautions shown before the cell is opened."""
    if any(trial.status != "done" for trial in group):
        yield "failures"
    if max(map(overspent, group)) > SLACK:
        yield "spent more than the target"
    if any(unfinished(trial.notes.get("unfinished")) for trial in group):
        yield "programmes stopped by their time limit"
    if any(trial.nonprivate_inputs for trial in group) and math.isfinite(group[0].key.release.budget.epsilon):
        yield "non-private inputs"
    if grounds_of(group, events) is Grounds.CLAIM:
        yield "privacy claimed, not proven"


def overspent(trial: Trial) -> float:
    """The ratio of spent to target epsilon; 0 where unknown."""
    target = trial.key.release.budget.epsilon
    return trial.spent.epsilon / target if trial.spent is not None and math.isfinite(target) else 0.0


def inputs_of(group: Sequence[Trial]) -> tuple[str, ...]:
    """What was taken from the rows outside the privacy budget."""
    return tuple(in_ranges(sorted({str(name) for trial in group for name in trial.nonprivate_inputs})))


def facts_of(
    group: Sequence[Trial], events: Events | None, audits: Sequence[AuditRecord], register: Register
) -> Iterator[tuple[str, list[Term]]]:
    """The target, spent and measured budget, the settings, the code and the machine."""
    key = group[0].key
    release, budget = key.release, key.release.budget
    private = math.isfinite(budget.epsilon)
    if private:
        target = f"ε = {number(budget.epsilon)}, δ = {number(budget.delta)}"
        yield "Target", [Term(f"{target}, neighbours {budget.relation.replace('_', '/')}")]
        yield "Spent", [Term(_spent(group))]
        yield "Measured ε ≥", [register.term(measured(group, audits), AUDITED)]
        yield "Basis of the cost", [Term(_grounds(group, events))]
    else:
        yield "Target", [Term("none: a reference that is not private")]
    if inputs := inputs_of(group):
        yield "Non-private inputs", [register.term(short(name.partition(": ")[0]), name) for name in inputs]
    yield "Data", [register.term(str(release.dataset["name"]), _data(release))]
    yield "Mechanism", [_part("Mechanism", release.mechanism, register)]
    yield "Model", [_part("Model", key.fit.model, register)]
    releases = Counter(_made(trial.release_provenance or trial.provenance, register) for trial in group)
    trials = Counter(_made(trial.provenance, register) for trial in group)
    yield "Releases by", list(releases)
    if trials.keys() != releases.keys():
        yield "Trials by", list(trials)
    if failures := Counter(_failure(trial) for trial in group if trial.error is not None):
        yield "Failures", [Term(text) for text in _alike(failures)]


def _data(release: ReleaseKey) -> str:
    """The data set with its settings, the checksums of its files, and the rows requested."""
    data = release.dataset
    sources = [f"{name} (sha256 {str(digest)[:12]})" for name, digest in data.get("sources", {}).items()]
    split = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sorted(release.split.items()))
    texts = [f"{data['name']}{_parameters(data.get('parameters') or {})}", *sources, split, f"seed {release.seed}"]
    return _redacted(f"Data: {'; '.join(texts)}")


def _spent(group: Sequence[Trial]) -> str:
    costs = [trial.spent for trial in group if trial.spent is not None]
    if not costs:
        return "unknown: no release"
    most = max(costs, key=lambda cost: cost.epsilon)
    least = min(cost.epsilon for cost in costs)
    text = f"ε = {number(most.epsilon)} at δ = {number(most.delta)}"
    if least < most.epsilon / SLACK:
        text = f"ε = {number(least)} to {number(most.epsilon)} at δ = {number(most.delta)}"
    text += f", ρ = {most.rho:.4g} (zCDP)" if math.isfinite(most.rho) else ""
    return text + (f", μ = {most.mu:.4g} (Gaussian DP)" if most.mu is not None else "")


def _grounds(group: Sequence[Trial], events: Events | None) -> str:
    """The basis of the spent budget, in words."""
    grounds = grounds_of(group, events)
    if grounds is not Grounds.FILTER:
        return str(grounds)
    return (
        f"{grounds}; the noise drawn amounts to ε = {ex_post(group):.4g} at most, as if it had been fixed "
        "in advance (ex post: no guarantee)"
    )


def _part(kind: str, part: PartKey, register: Register) -> Term:
    version = f", version {part.version}" if part.version else ""
    return register.term(part.name, f"{kind}: {part.name}{_parameters(part.parameters)}{version}")


def _parameters(values: Parameters) -> str:
    parameters = ", ".join(
        f"{name}={value if isinstance(value, str) else canonical(value)}"
        for name, value in sorted(values.items())
        if value is not None
    )
    return f" ({_redacted(parameters)})" if parameters else ""


def _made(record: Provenance, register: Register) -> Term:
    """The commit that made a release or trial; with the processor and the versions of the libraries."""
    commit = str(record["commit"] or "no checkout")
    dirty = " with uncommitted changes" if record["dirty"] else ""
    versions = [f"{name} {version}" for name, version in sorted(record["versions"].items())]
    threads = f"{record['threads']} thread{'' if record['threads'] == 1 else 's'}"
    code = [f"commit {commit}{dirty}", str(record["cpu"]), threads, *versions]
    return register.term(f"{commit[:12]}{dirty}", f"Made by: {', '.join(code)}")


def _failure(trial: Trial) -> str:
    """The type of the error and, on public rows, its text: on private rows the text may contain their values."""
    where = f" in {trial.phase}" if trial.phase else ""
    text = trial.error.message if trial.error and trial.public else ""
    kind = trial.error.type if trial.error else ""
    summary = f"{trial.status.replace('_', ' ')}{where}: {kind}"
    return f"{summary}: {_redacted(text)[:200]}" if text else summary


def _alike(failures: Counter[str]) -> list[str]:
    """The most frequent failures with their counts, grouped if they differ only in numbers.

    >>> _alike(Counter({"3 bins are left": 2, "no rows": 1, "4 bins are left": 1}))
    ['3 × 3 bins are left, and the like', '1 × no rows']
    """
    groups: dict[str, list[str]] = {}
    for text, _ in failures.most_common():
        groups.setdefault(re.sub(r"[0-9.]+", "#", text), []).append(text)
    counts = Counter({tuple(texts): sum(failures[text] for text in texts) for texts in groups.values()})
    return [
        f"{count} × {texts[0]}{', and the like' if len(texts) > 1 else ''}" for texts, count in counts.most_common(5)
    ]


def _redacted(text: str) -> str:
    """The text with only the last name of each path: the folders above it are private.

    >>> _redacted("cannot read /home/me/my.csv: no such file")
    'cannot read my.csv: no such file'
    """
    return _PATH.sub(lambda found: re.split(r"[/\\]", found[0])[-1], text)


def short(value: object) -> str:
    """A value in at most 80 characters."""
    text = number(value) if isinstance(value, float) else value if isinstance(value, str) else canonical(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
