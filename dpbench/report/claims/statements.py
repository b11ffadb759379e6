"""A paper's claims that one method is better than, no worse than or similar to another, checked on paired trials.

The other one may be the same method at another setting, or a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from dpbench.config.specs import Margin, Statement
from dpbench.errors import UserError, check_known
from dpbench.report.frames.frame import LEVEL, reach
from dpbench.report.frames.settings import metric_rows

RELATIONS = {
    "better": "agrees if the interval lies above 0, disagrees if it lies below",
    "not_worse": "agrees if the interval lies above -margin, disagrees if it lies below",
    "similar": "agrees if the interval lies within ±margin, disagrees if it lies outside",
    "ahead": "agrees if the interval of the share lies above 1/2, disagrees if it lies below; a method without an "
    "estimate is behind one that has one",
    "always": "agrees if the method is better in every repetition, disagrees if it is not in any of them; a fit whose "
    "chains did not converge is not better",
    "higher": "agrees if the interval lies above 0, disagrees if it lies below",
    "lower": "agrees if the interval lies above 0, disagrees if it lies below",
}
SHARES = AHEAD, ALWAYS = "ahead", "always"  # the relations about the share of repetitions in which one is better
LOST = {AHEAD: ("no_estimate",), ALWAYS: ("no_estimate", "unconverged")}  # statuses that rank below any value
SIGNS = {"higher": 1, "lower": -1}  # of the relations that do not ask which is better
WITHOUT_MARGIN = ("better", *SIGNS)
VERDICTS = AGREES, DISAGREES, OPEN, NOT_RUN = "agrees", "disagrees", "cannot tell", "not run"
Place = float | str  # a value of x
Known = Mapping[tuple[str, ...], pd.Series]  # by panel, method and calibration
NONE = pd.Series(index=pd.MultiIndex.from_arrays([[], []], names=["x", "repetition"]), dtype="float64")
_READ = ["mechanism", "model", "calibration", "panel", "x", "repetition", "value", "direction", "status"]
COLUMNS = [
    "panel", "calibration", "x", "pairs", "difference", "se", "low", "high", "margin", "verdict"
]  # fmt: skip


class Outcome(TypedDict):
    """The mean of paired differences, or a share of the pairs, with its interval and the verdict."""

    pairs: int
    difference: float
    se: float
    low: float
    high: float
    margin: float
    verdict: str


def compare(
    frame: pd.DataFrame, statement: Statement, metric: str, margin: Margin, labels: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """One row per panel, calibration of the baseline and x: the paired difference and its verdict.

    `frame` is `placed` as for the figure that shows the claim; the statement may select values of x by `at`, a list of
    numbers or texts, or one for each panel. Else they are those of each panel. With `baseline_at` the baseline's values
    at this x are compared with the method's at each other, and with `baseline_panel` those of this panel with the
    method's on each other: repetitions on different data are independent, so that any pairs of them will do. A method
    is "mechanism/model", or a label of several (`labels`: see `_named`); the baseline may be a number. `metric` may be
    any that `metric_rows` knows.

    `difference` is the mean over repetitions (which share their split) of how much better `statement["method"]` is
    than `statement["baseline"]`, in the unit of the metric and positive where it is better (higher, lower: where the
    relation says so); `low` and `high` are the ends of Student's interval of `LEVEL`. A repetition counts where both
    have a finite value; with fewer than two the verdict is "cannot tell", with no trial of either method "not run". The
    column `margin` is `margin["absolute"]`, or `margin["part"]` times the mean of the finite values of the method
    `margin["of"]`, and 0 for the relations `WITHOUT_MARGIN`; if it is not finite, the verdict is "cannot tell".

    The mean is not informative for errors with heavy tails or for methods that often have no estimate. For the relation
    "ahead" `difference` is the share of repetitions in which the method is better, `low` and `high` are the exact
    interval of Clopper and Pearson (1934), and the margin is 1/2: a sign test. A trial that ended with `no_estimate`
    ranks below any that has a value. Ties, and repetitions in which neither has an estimate, count for neither. The
    relation "always" has the same share and interval, and the margin 1; a trial that is `unconverged` ranks below any
    that has a value, too.

    Raises `UserError` for an unknown relation or if the trials of one method differ in their settings.
    """
    relation = str(statement["relation"])
    check_known("relation", relation, RELATIONS)
    rows = metric_rows(frame, metric)[_READ]
    start, number = statement.get("baseline_at"), _number_of(statement)
    sign = SIGNS.get(relation, 1 if (rows["direction"] == "higher").any() else -1)
    if relation in SHARES:
        rows = rows.assign(value=rows["value"].mask(rows["status"].isin(LOST[relation]), -sign * np.inf))
    rows = _named(rows, statement, labels or {})
    known = _known(rows, [statement["method"], statement["baseline"], margin.get("of", "")])
    of = statement["baseline"] if number is None else statement["method"]
    calibrations = sorted({own for _, method, own in known if method == of}, reverse=True)
    compared = []
    elsewhere = statement.get("baseline_panel")
    for name, here in rows.groupby("panel")["x"]:
        panel = str(name)
        if panel == elsewhere:
            continue
        places = _places(statement, panel, here)
        for calibration in calibrations or [""]:
            method = _values(_under(known, panel, statement["method"], calibration), statement["method"], places)
            own = known.get((elsewhere or panel, str(statement["baseline"]), calibration), NONE)
            own = own if start is None else own[own.index.get_level_values("x") == start].rename({start: np.inf})
            baseline = _values(own, str(statement["baseline"]), places)
            baseline = baseline if number is None else pd.Series(number, index=method.index)
            differences = dict(list((sign * (method - baseline)).groupby(level="x")))
            run = set(method.index.unique("x")) & set(baseline.index.unique("x"))
            for x in places:
                found = differences.get(x, pd.Series(dtype="float64"))
                if relation in SHARES:
                    outcome = _share(found, relation)
                else:
                    allowed = 0.0 if relation in WITHOUT_MARGIN else _margin(known, panel, margin, calibration, x)
                    outcome = paired_outcome(found, relation, allowed)
                if x not in run:
                    outcome["verdict"] = NOT_RUN
                compared.append({"panel": panel, "calibration": calibration, "x": x, **outcome})
    return pd.DataFrame(compared, columns=COLUMNS)


def _number_of(statement: Statement) -> float | None:
    """The number with which a method is compared in place of another one."""
    return float(statement["baseline"]) if isinstance(statement["baseline"], int | float) else None


def _places(statement: Statement, panel: str, here: pd.Series) -> list[Place]:
    """The values of x that are compared on a panel, which has the values `here`, in their order."""
    asked = statement.get("at")
    asked = asked.get(panel, []) if isinstance(asked, Mapping) else asked
    found = set(here[np.isfinite(here)]) - {statement.get("baseline_at")} if asked is None else asked
    return sorted(x if isinstance(x, str) else float(x) for x in found)


def _named(rows: pd.DataFrame, statement: Statement, labels: Mapping[str, str]) -> pd.DataFrame:
    """The rows with their `method`, "mechanism/model". Where the statement names a label, all models with it are one
    method, whose value in a repetition is their mean: without those that have no estimate, NaN if another has no value.
    """
    methods = rows["mechanism"] + "/" + rows["model"]
    names = methods.map(dict(labels))
    several = names.isin([statement["method"], statement["baseline"]])
    rows = rows.assign(method=methods.mask(several, names))
    if not several.any():
        return rows
    ran = rows[several & (rows["status"] != "no_estimate")]
    cells = ran.assign(lost=ran["value"].isna()).groupby(["panel", "method", "calibration", "x", "repetition"])
    means = cells.agg(value=("value", "mean"), lost=("lost", "any")).reset_index()
    return pd.concat([rows[~several], means.assign(value=means["value"].mask(means["lost"]))], ignore_index=True)


def _known(rows: pd.DataFrame, methods: Sequence[object]) -> Known:
    """The value at each x and repetition of these methods."""
    groups = rows[rows["method"].isin(list(methods))].groupby(["panel", "method", "calibration"])
    return {tuple(map(str, key)): own.set_index(["x", "repetition"])["value"] for key, own in groups}


def _under(known: Known, panel: str, method: str, calibration: str) -> pd.Series:
    """The method's values under this calibration, or its only one, or the tight one."""
    own = [one for where, name, one in known if (where, name) == (panel, method)]
    chosen = calibration if calibration in own else "tight" if len(own) > 1 else "".join(own)
    return known.get((panel, method, chosen), NONE)


def _values(values: pd.Series, method: str, places: Sequence[Place]) -> pd.Series:
    """The values; those of a method without a finite x (a reference without epsilon, or a method without the setting)
    at every x.
    """
    if values.index.has_duplicates:
        raise UserError(f"{method} was run with several settings; its trials are not repetitions of each other")
    if len(values) and not any(isinstance(x, str) or np.isfinite(x) for x in values.index.unique("x")):
        values = pd.concat({x: values.droplevel("x") for x in places}, names=["x"]) if places else NONE
    return values


def _margin(known: Known, panel: str, margin: Margin, calibration: str, x: Place) -> float:
    """The `absolute` margin, or `part` of the mean of the finite values of the method `of`, under the calibration of
    `_under` and at this x if it was run there; NaN if it has none.
    """
    if "absolute" in margin:
        return float(margin["absolute"])
    found = _under(known, panel, margin["of"], calibration)
    here = found[found.index.get_level_values("x") == x]
    values = here if len(here) else found
    return float(margin["part"]) * abs(float(values[np.isfinite(values)].mean()))


def paired_outcome(differences: pd.Series, relation: str, margin: float) -> Outcome:
    """The mean of the paired differences with its interval, and the verdict."""
    finite = differences[np.isfinite(differences)]
    pairs = len(finite)
    mean = float(finite.mean()) if pairs else np.nan
    se = float(finite.std()) / np.sqrt(pairs) if pairs > 1 else np.nan
    half = float(reach(pairs)) * se
    low, high = mean - half, mean + half
    agrees = low > -margin and (relation != "similar" or high < margin)
    disagrees = high < -margin or (relation == "similar" and low > margin)
    verdict = OPEN if not np.isfinite(margin) else AGREES if agrees else DISAGREES if disagrees else OPEN
    return Outcome(pairs=pairs, difference=mean, se=se, low=low, high=high, margin=margin, verdict=verdict)


def _share(differences: pd.Series, relation: str) -> Outcome:
    """The share of the pairs that differ in which the method is better, with its interval, and the verdict."""
    ahead, behind = int((differences > 0).sum()), int((differences < 0).sum())
    tails = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    low = float(betaincinv(ahead, behind + 1, tails[0])) if ahead else 0.0
    high = float(betaincinv(ahead + 1, behind, tails[1])) if behind else 1.0
    share = ahead / (ahead + behind) if ahead + behind else np.nan
    if relation == ALWAYS:
        margin, verdict = 1.0, DISAGREES if behind else AGREES if ahead > 1 else OPEN
    else:
        margin, verdict = 0.5, AGREES if low > 0.5 else DISAGREES if high < 0.5 else OPEN
    return Outcome(
        pairs=ahead + behind, difference=share, se=np.nan, low=low, high=high, margin=margin, verdict=verdict
    )
