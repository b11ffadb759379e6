"""What a design, a report and a paper's published values consist of: YAML that is checked once, typed by its keys.

A kind of figure or table of the user's own may have further keys, which its config lists.
"""

from __future__ import annotations

from typing import Any, NotRequired, Required, TypedDict


class DesignSettings(TypedDict, total=False):
    """How rows become features and a target: the arguments of `data.encode.Design` that are given."""

    target: Required[str]
    intercept: bool
    categorical: str
    scaled: bool
    exact: bool
    classes: bool


class AnySpec(TypedDict, total=False):
    """The keys that a figure or table of any kind may have. `show`: labels of methods. `panels`: their titles.
    `best_setting`: of each method's settings only the best at each x, by the metric (see `report.frames.settings`).
    `calibrations`: of a mechanism that has some of these, they alone are drawn.
    """

    name: str
    kind: str
    title: str
    caption: str
    experiments: list[str]
    published: str | PublishedTable  # its name, until it is looked up
    show: list[str]
    panels: dict[Any, str]
    symbol: str
    best_setting: bool
    calibrations: list[str]


class Spec(AnySpec, total=False):
    """A figure or table: also the keys of the project's kinds (conf/figure, conf/table)."""

    metric: str
    against: str
    epsilon: Any  # a number, or a list of those of a kind that draws several
    x: str
    panel: str
    where: dict[str, Any]
    statistic: str
    xlabel: str
    ylabel: str
    xscale: str
    yscale: str
    xlim: list[float]
    ylim: list[float] | dict[Any, list[float]]
    lines: list[Any]
    bands: list[dict[str, Any]]
    rates: dict[str, str]
    relative: dict[str, list[str]]
    gain: dict[str, list[str]]
    categories: dict[Any, Any]
    pooled: bool
    bounds: list[float]
    inside: str
    radius: float
    fits: list[Fit]
    distances: bool
    method: str | list[str]
    naive: str
    setting: str
    values: list[Any]
    less: str
    level: float
    each: str
    beside: dict[str, str]
    ranks: list[Ranks]
    ratios: list[list[str]]
    whose: dict[str, dict[str, str]]


class Fit(TypedDict, total=False):
    """A polynomial of a figure: how it was constructed, and what is published of it."""

    degree: Required[int]
    construction: Required[str]
    iterations: int
    as_published: bool
    error: float
    coefficients: list[float]


class Ranks(TypedDict):
    """The mean rank of a method among others."""

    method: str
    among: list[str]


class Report(TypedDict):
    """What is drawn of an experiment or a paper. `panels`: data set -> title; `labels`: "mechanism/model" -> label;
    `without_details`: the experiments of a paper whose scores have details that none of its figures reads.
    """

    metrics: list[str]
    figures: list[Spec]
    panels: dict[str, str]
    without_details: list[str]
    labels: dict[str, str]


class Margin(TypedDict, total=False):
    """The smallest difference that counts: `absolute`, or a `part` of the metric of the method `of`."""

    absolute: float
    part: float
    of: str
    reason: str


Exceptions = TypedDict("Exceptions", {"except": list[str]}, total=False)  # no name that a class may have


class Statement(Exceptions, total=False):
    """A claim of a paper, where it stands, and the figure and methods by which it is checked (see `report.claims`).

    `experiments`, `metric`, `panel`, `panels`, `x` and `symbol`: in place of the figure's. `margin`: in place of the
    metric's.
    """

    claim: Required[str]
    where: Required[str]
    figure: Required[str]
    method: Required[str]
    baseline: Required[str | float]
    relation: Required[str]
    baseline_at: float | str
    baseline_panel: str
    at: list[float | str] | dict[str, list[float | str]]
    only: list[str]
    experiments: list[str]
    metric: str
    margin: Margin
    panel: str
    panels: dict[float | str, str]
    x: str
    symbol: str


class PublishedTable(TypedDict, total=False):
    """The numbers of a table: `rows` as its kind reads them, `digit` a unit of the last one published."""

    where: str
    source: str
    repetitions: int
    digit: Any
    rows: Any
    method: str
    package: PublishedTable


class PublishedFact(TypedDict):
    """A setting of a paper; `ours`: its place in an experiment; `only`: the experiments that it concerns.

    With `grid` the values are those that the paper tried.
    """

    what: str
    value: Any
    ours: str
    where: str
    grid: NotRequired[bool]
    only: NotRequired[list[str]]


class PublishedDataset(TypedDict):
    """A data set as a paper describes it; `names`: of this project's data sets for it."""

    name: str
    names: list[str]
    rows: int
    attributes: int
    targets: list[str]
    listed: list[str]


class PublishedTime(TypedDict, total=False):
    """Seconds of a release, a number or the lowest and highest."""

    experiment: Required[str]
    mechanism: Required[str]
    epsilon: float
    seconds: Required[Any]
    stated: Required[str]
    where: Required[str]


class PublishedTimes(TypedDict):
    """The run times that a paper states, and the processor that it names."""

    processor: str
    times: list[PublishedTime]


class Published(TypedDict, total=False):
    """What a paper publishes that is compared with results of this project (conf/published)."""

    protocol: list[PublishedFact]
    datasets: list[PublishedDataset]
    runtimes: PublishedTimes
    tables: dict[str, PublishedTable]
    margins: dict[str, Margin]
    statements: list[Statement]
