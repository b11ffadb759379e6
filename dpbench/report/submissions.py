"""Submissions to the leaderboards: one file each, an export of a method's trials whose header says whose it is.

They come from anyone: what a file says is checked when it is read, and nothing in it is executed.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path

from dpbench.config import choices
from dpbench.config.labels import shipped_labels
from dpbench.config.parts import declared_parts
from dpbench.errors import MALFORMED, UserError, shown
from dpbench.files import Json, read_xz, write_file
from dpbench.grid.records import Trial, TrialKey, spent_to_dict
from dpbench.grid.spending import OverspentError, check_cost, cost_of_record
from dpbench.report.export_file import SUFFIX, Cell, load_export, write_export
from dpbench.report.frames.ledgers import LedgerOf, no_ledgers
from dpbench.targets import is_shipped

FOLDER = "submissions"  # in the results
MOST_BYTES, MOST_TRIALS = 5 * 2**20, 100_000  # of a file
ELSEWHERE = "elsewhere"  # the target of a method that was not run here, and the name of its model
STATUSES = ("done", "failed", "timeout", "oom", "no_estimate", "unconverged")
TEXTS = {  # what the texts of a header may be, and how a message says it
    "method": (r"\w[\w .,+&'()/-]{0,59}", "a name of at most 60 letters, digits and .,+&'()/-"),
    "who": (r"\w[\w .,'&()@-]{0,99}", "a name of at most 100 letters, digits and .,'&()@-"),
    "link": (r"(https?://[\w.-]+(/[\w./~%?=&#:+,@-]{0,300})?)?", "an address, https://..."),
    "experiment": (r"\w{1,60}", "the name of an experiment"),
    "protocol": (r"[\w .-]{1,60}", "the name of a protocol"),
    "dpbench": (r"[\w.+-]{1,30}", "a version"),
    "commit": (r"([0-9a-f]{40})?", "a commit"),
}
MARKS = ("self-reported, not run here", "self-reported", "recomputed")  # how far numbers can be relied on
ROUNDING = 1e-9  # of a score at the end of its range
NAME = r"\w[\w.-]{0,59}"  # of a part, a data set, a relation
PATH = re.compile(r"(?<![\w/:.<>%^])/(?:[\w.@+-]+/)+[\w.@+-]*|\b[A-Za-z]:\\\\|\bfile:")


@dataclass(frozen=True)
class About:
    """Whose method it is and what is known of its numbers.

    `departs`: in what they depart from the protocol. `recomputed`: how many of the trials were run again, with the same
    scores, before the file was written; `ran_here`: whether dpbench ran them at all. `dpbench`, `commit`: the version
    that wrote the file.
    """

    method: str
    who: str
    experiment: str
    protocol: str
    dpbench: str
    link: str = ""
    departs: tuple[str, ...] = ()
    ran_here: bool = True
    recomputed: int = 0
    commit: str = ""

    def __post_init__(self) -> None:
        for name, (pattern, what) in TEXTS.items():
            given = getattr(self, name)
            if not isinstance(given, str) or not re.fullmatch(pattern, given):
                raise UserError(f"{name} must be {what}, not {shown(given)}")
        if not all(isinstance(text, str) and re.fullmatch(r"[\w .,:*=+-]{1,200}", text) for text in self.departs):
            raise UserError(f"departs must be short texts, not {shown(self.departs)}")
        if type(self.ran_here) is not bool or type(self.recomputed) is not int or self.recomputed < 0:
            raise UserError("ran_here must be true or false, and recomputed a number")

    @classmethod
    def of(cls, data: Json) -> About:
        """What a header says. Raises `UserError`."""
        if not isinstance(data, dict) or not {one.name for one in fields(cls)} >= data.keys():
            raise UserError(f"the header has no submission, or says what is not known: {shown(data)}")
        return cls(**{**data, "departs": tuple(data.get("departs", ()))})

    @property
    def name(self) -> str:
        """The name of its file and page."""
        return re.sub(r"[^a-z0-9]+", "_", self.method.lower()).strip("_") or "method"

    @property
    def mark(self) -> str:
        """How far its numbers can be relied on: one of `MARKS`."""
        return MARKS[1 + bool(self.recomputed) if self.ran_here else 0]

    @property
    def follows(self) -> str:
        """The protocol, and in what it was departed from."""
        return ", departs in: ".join(filter(None, [self.protocol, "; ".join(self.departs)]))


@dataclass(frozen=True)
class Submission:
    """A method and its trials."""

    about: About
    cells: Sequence[Cell]

    @cached_property
    def ids(self) -> frozenset[str]:
        """The identities of its trials."""
        return frozenset(name for cell in self.cells for name in cell.ids)


def place_of(key: TrialKey) -> Json:
    """What numbers of different methods must share to be compared: rows, splits, seed, budget and design."""
    release = key.release
    rows = {"dataset": dict(release.dataset), "split": dict(release.split), "seed": release.seed}
    return {**rows, "budget": dict(vars(release.budget)), "design": dict(key.fit.design)}


def metrics_of(key: TrialKey) -> dict[str, Json]:
    """The metrics by their names, whatever their versions."""
    return {metric.name: metric.unversioned().to_dict() for metric in key.metrics}


def write_submission(about: About, trials: Sequence[Trial], folder: Path, ledger_of: LedgerOf = no_ledgers) -> Path:
    """Write the file of a method into `folder`; its path. Raises `UserError` if `read_submission` would not accept it,
    or for what the folder has already, and then writes nothing.
    """
    header = {"submission": {**asdict(about), "departs": list(about.departs)}}
    with tempfile.TemporaryDirectory(prefix="dpbench-") as aside:
        made = write_export(trials, Path(aside), ledger_of, about.name + SUFFIX, header)
        submission, path = read_submission(made), folder / made.name
        if path.exists():
            _check_replaces(path, about)
        _check_distinct([*(one for one in _submissions(folder) if one.about.name != about.name), submission])
        return write_file(path, made.read_bytes())


def _check_replaces(path: Path, about: About) -> None:
    """Raises `UserError` for a file that is somebody else's, or whose numbers can be relied on more."""
    there = read_submission(path).about
    if there.who != about.who or MARKS.index(there.mark) > MARKS.index(about.mark):
        said = (f"{one.mark} by {one.who}" for one in (there, about))
        raise UserError(f"{path} is {' and would become '.join(said)}: delete it first if that is meant")


def submissions_in(results: Path) -> list[Submission]:
    """Those in a folder of results. Raises `UserError` for the first that cannot be used."""
    found = _submissions(results / FOLDER)
    _check_distinct(found)
    return found


def _submissions(folder: Path) -> list[Submission]:
    return [read_submission(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]


def _check_distinct(submissions: Sequence[Submission]) -> None:
    """Raises `UserError` for a trial that two of them have."""
    for one, other in combinations(submissions, 2):
        if shared := one.ids & other.ids:
            raise UserError(
                f"{len(shared)} trials of {other.about.method} are those of {one.about.method} under another name, such"
                f" as {min(shared)}: submit them once, or run yours in a folder of its own"
            )


def read_submission(path: Path) -> Submission:
    """The submission in a file. Raises `UserError`, which names the file and what is wrong with it."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"it has more than {MOST_BYTES:,} bytes")
        text = read_xz(path).decode()
        if found := PATH.search(text):
            raise UserError(f"it names a path of a machine: {shown(found.group())}")
        about = About.of(json.loads(text.partition("\n")[0]).get("submission"))
        cells = load_export(path)
        for problem in _problems(about, cells):
            raise UserError(problem)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except MALFORMED as error:
        raise UserError(f"{path} is no submission that can be used: {error}") from error
    if path.name != about.name + SUFFIX:
        raise UserError(f"{path} must be called {about.name}{SUFFIX}, as its method is")
    return Submission(about, cells)


def _problems(about: About, cells: Sequence[Cell]) -> Iterator[str]:
    """What is wrong with its name and its trials."""
    if _plain(about.method) in _taken():
        yield f"{about.method} is the name of a method that the leaderboards have: give yours another --method name"
    trials = [trial for cell in cells for trial in cell.trials]
    if not 0 < len(trials) <= MOST_TRIALS:
        yield f"it must have 1 to {MOST_TRIALS:,} trials"
    if len({trial.id for trial in trials}) < len(trials):
        yield "a trial is there twice"
    if about.recomputed > len(trials):
        yield f"{about.recomputed} trials were run again, and it has {len(trials)}"
    for cell in cells:
        yield from _of_key(cell.key)
    for trial in trials:
        yield from _of_trial(trial, about)
    for cell in cells:
        yield from _of_ledger(cell)


def _plain(name: str) -> str:
    """A name without what a reader may overlook."""
    return re.sub(r"[\s_-]+", "", name.casefold())


@cache
def _taken() -> frozenset[str]:
    """The names of the project's mechanisms and methods."""
    return frozenset(map(_plain, (*choices("mechanism"), *shipped_labels())))


@cache
def _ranges() -> dict[str, tuple[float, float]]:
    """Between which the values of each metric are."""
    return {name: (metric.least, metric.most) for name, metric in declared_parts("metric").items()}


def _of_key(key: TrialKey) -> Iterator[str]:
    """What is wrong with the names and the method."""
    parts = {"mechanism": key.release.mechanism, "model": key.fit.model}
    texts = [key.release.dataset["name"], key.release.budget.relation, *(metric.name for metric in key.metrics)]
    for text in (*texts, *(part.name for part in parts.values())):
        if not isinstance(text, str) or not re.fullmatch(NAME, text):
            yield f"no name: {shown(text)}"
    if not math.isfinite(key.release.budget.epsilon):
        yield f"{key.release.mechanism.name} is not private"
    own = [group for group, part in parts.items() if not is_shipped(part.target)]
    if not own:
        yield f"{parts['mechanism'].name} with {parts['model'].name} is a method of the project, not one of its own"
    for group, part in parts.items():
        if (group in own) == (part.name in choices(group)):
            yield f"{part.name} is the name of another {group} than {shown(part.target)}: give yours another name"


def _of_trial(trial: Trial, about: About) -> Iterator[str]:
    """What is wrong with a trial."""
    numbers = [*vars(trial.runtime).values(), trial.key.release.repetition]
    if not all(value is None or (isinstance(value, (int, float)) and value >= 0) for value in numbers):
        yield f"trial {trial.id} has a run time, memory or repetition that is no number: {shown(numbers)}"
    if trial.status not in STATUSES:
        yield f"trial {trial.id} has the status {shown(trial.status)}"
    if trial.experiment != about.experiment:
        yield f"trial {trial.id} is of {shown(trial.experiment)}, not of {about.experiment}"
    if not trial.public:
        yield f"trial {trial.id} is on private rows, which its scores reveal"
    for score in trial.scores:
        least, most = _ranges().get(score.name, (-math.inf, math.inf))
        if score.value < least - ROUNDING or score.value > most + ROUNDING:
            yield f"trial {trial.id} has {score.name} = {score.value:g}, which is always within [{least:g}, {most:g}]"
    if not about.ran_here:
        return
    if trial.status == "done" and trial.spent is None:
        yield f"trial {trial.id} has no recorded cost"
    if trial.spent is not None and trial.phase != "budget":
        try:
            check_cost(trial.spent, trial.key.release)
        except OverspentError as error:
            yield f"trial {trial.id}: {error}"


def _of_ledger(cell: Cell) -> Iterator[str]:
    """Whether the ledger that a cell shows costs what its trial says."""
    for trial in cell.trials:
        if cell.ledger is not None and trial.release_id == cell.ledger.release and trial.spent is not None:
            record = {"release": {"ledger": list(cell.ledger.events)}, "spent": spent_to_dict(trial.spent)}
            try:
                cost_of_record(record, trial.key.release)
            except OverspentError as error:
                yield f"trial {trial.id}: {error}"
