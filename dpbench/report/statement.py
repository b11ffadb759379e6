"""The statement on one release: what it is, what it cost and what that means, in sentences for whoever must decide.

Its words are those of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees" (2025,
doi 10.6028/NIST.SP.800-226), and of OpenDP (arXiv 2207.10635): the unit of privacy, neighbouring tables, privacy loss,
composition, odometer.

With it goes the table of coefficients, on the scaled features and in the table's own units.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from dpbench.contracts import TextTable
from dpbench.data.domain import Attribute
from dpbench.grid.odometer import DECLARED, Entry, Sum
from dpbench.models.fitted import Fitted
from dpbench.privacy.accounting import Spent
from dpbench.releases import Release
from dpbench.report.page.text_blocks import blocks
from dpbench.report.text import markdown, markdown_table, mean_and_error, number

PRIORS = (0.01, 0.1, 0.5)  # of which the posterior is given
FALSE_ALARMS = (0.01, 0.05, 0.1)
ENTRY_HEADER = ("when (UTC)", "mechanism", "ε asked", "δ", "ε spent")
OUTSIDE = {
    "error": "A table with a value outside of them is refused.",
    "clip": "A number outside of its bounds counts as the nearest allowed one; any other value outside is refused.",
    "drop": "A row with a value outside of them is left out.",
}
ABSENT = " A missing value is a level or a bin of its own where that is declared, and else a value outside."
SCORES = (
    "The scores in quality.html and quality.csv compare the synthetic rows with the real ones exactly. No ε above "
    "covers them: they are for the owner of the table, and not for publication. Take both files out before this is "
    "handed on."
)
NOT_COVERED = (
    "What is inferred of a person from patterns of the whole population, which the release is meant to show.",
    "A person with several rows, or rows of several people that depend on each other: the unit of privacy is one row.",
    "Other outputs of the same table: scores and releases of dpbench run, releases in Python, other tools, copies. "
    "The sum above has those of dpbench release and dpbench data declare alone.",
    "Attacks on the last bits of noise in double precision, where the noise is not discrete (noise=discrete).",
    "Whether a release failed, how long it took, and who can read the table, the salt and the log themselves.",
)
HEADER = ("model", "feature", "scaled", "interval", "own units", "own interval")


@dataclass(frozen=True)
class Facts:
    """What a statement says in addition to the release itself. Nothing of it is computed from rows, but `left_out`.

    `table`: the name of the file, and `table_hash` its keyed checksum. `declared`: whether bounds, bins and levels were
    declared, not computed from the rows. `left_out`: what to say of rows that a value
    outside the domain left out. `odometer`: all releases of the table, this one among them. `about`: a sentence on the
    mechanism. `files`: what was written, and what each file is. `scores`: whether scores that read the real rows are
    among them.
    """

    table: str
    table_hash: str
    declared: bool
    outside: str
    drop: Sequence[str]
    left_out: str
    mechanism: str
    about: str
    when: str
    made_by: str
    files: Sequence[tuple[str, str]]
    odometer: Sum
    scores: bool = False


def statement(release: Release, cost: Spent, facts: Facts) -> str:
    """The statement in Markdown."""
    sections = {
        "": _opening(release, cost, facts),
        "What was released": _released(facts),
        "The guarantee": _guarantee(release, cost),
        "What this means for one person": _meaning(release.budget.relation, cost),
        "All releases of this table": _together(facts.odometer),
        "Bounds, bins and levels": _bounds(release, facts),
        "What was read without payment": _unpaid(release, facts),
        "What is not covered": [_list(NOT_COVERED)],
        "How to check it": _check(facts),
    }
    parts = ["# Privacy statement"]
    for title, lines in sections.items():
        parts += [*([f"## {title}"] if title else []), *lines]
    return "\n\n".join(parts) + "\n"


def statement_page(text: str) -> str:
    """The statement as an HTML page that needs nothing else."""
    body: list[str] = []
    for block in blocks(text):
        if block.kind == "heading":
            body.append(f"<h{block.level}>{html.escape(block.text)}</h{block.level}>")
        elif block.kind == "table":
            rows = [("th", block.header), *(("td", row) for row in block.rows)]
            cells = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) for tag, row in rows)
            body.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")
        else:
            tag = "li" if block.kind == "item" else "p"
            body.append(f"<{tag}>{html.escape(block.text)}</{tag}>")
    text = "\n".join(body)
    text = re.sub(r"(?:<li>.*</li>\n?)+", lambda items: f"<ul>\n{items[0]}</ul>\n", text)
    style = "body{max-width:50em;margin:2em auto;font:16px/1.5 sans-serif}table{border-collapse:collapse}"
    style += "td,th{border:1px solid #999;padding:.2em .6em;text-align:left;vertical-align:top}"
    head = f'<meta charset="utf-8"><title>Privacy statement</title><style>{style}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{text}\n</body></html>\n'


# --- what it means, in numbers ---------------------------------------------------------------------------------------


def posterior(prior: float, epsilon: float) -> float:
    """The most that whoever held a hypothesis on one person with probability `prior` believes it after the release:
    the odds grow by e^epsilon at most.

    >>> round(posterior(0.5, 1.0), 3)
    0.731
    """
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def right_guess(cost: Spent) -> float:
    """The largest probability of a right guess which of two neighbouring tables was used, each as likely as the other.

    1/2 + TV/2, with TV = 2 Phi(mu/2) - 1 under mu-Gaussian DP (Dong, Roth and Su 2019), and (e^eps - 1 + 2 delta) /
    (e^eps + 1) under (eps, delta)-DP (Kairouz, Oh and Viswanath 2015), which is 1 / (1 + e^-eps) where delta is 0.
    """
    from scipy.special import expit, ndtr

    plain = float(expit(cost.epsilon) + cost.delta * expit(-cost.epsilon))
    return min(plain, float(ndtr(cost.mu / 2))) if cost.mu is not None else plain


def detected(false_alarms: float, cost: Spent) -> float:
    """The largest probability that a test finds a person in the table that is in it, if it wrongly finds with this
    probability one that is not: the trade-off function of (eps, delta)-DP, or of mu-Gaussian DP.
    """
    from scipy.special import ndtr, ndtri

    factor = math.exp(-cost.epsilon)
    plain = min(
        cost.delta + false_alarms / factor if factor else 1.0, 1 - factor * (1 - cost.delta - false_alarms), 1.0
    )
    return min(plain, float(ndtr(ndtri(false_alarms) + cost.mu))) if cost.mu is not None else plain


# --- sections --------------------------------------------------------------------------------------------------------


def _opening(release: Release, cost: Spent, facts: Facts) -> list[str]:
    loss = f"ε = {number(cost.epsilon)} at δ = {number(cost.delta)}"
    total = facts.odometer.total
    several = f" All {len(facts.odometer.entries)} releases of the table together spent ε = {number(total.epsilon)}."
    return [
        markdown(
            f"The release described here was made from the table {facts.table} on {facts.when} with differential "
            f"privacy. It spent a privacy loss of {loss}, of ε = {number(release.budget.epsilon)} that was asked for."
        )
        + (several if len(facts.odometer.entries) > 1 else " No other release of the table is on record.")
    ]


def _released(facts: Facts) -> list[str]:
    mechanism = ": ".join(text for text in (facts.mechanism, facts.about) if text)
    used = "All rows that fit their declaration were used" if facts.left_out else "All rows of the table were used"
    return [
        markdown(
            f"The mechanism is {mechanism}. Its noise is from the operating system's entropy, and is not kept. {used}."
        ),
        _list([f"{name}: {what}" for name, what in facts.files]),
        markdown(
            f"The table is known by its keyed checksum {facts.table_hash} (HMAC-SHA-256; its owner alone has the key)."
        ),
    ]


def _guarantee(release: Release, cost: Spent) -> list[str]:
    asked = release.budget
    if asked.relation == "add_remove":
        unit = (
            "Neighbouring tables differ by adding or removing one row (unbounded differential privacy; in OpenDP's "
            "words, the symmetric distance is 1). The number of rows is private."
        )
    else:
        unit = (
            "Neighbouring tables differ in one row (bounded differential privacy; in OpenDP's words, the change-one "
            "distance is 1). The number of rows is public."
        )
    measures = [["ε asked", number(asked.epsilon)], ["ε spent", number(cost.epsilon)], ["δ", number(cost.delta)]]
    measures += [["ρ of zero-concentrated DP", number(cost.rho)]] if math.isfinite(cost.rho) else []
    measures += [["μ of Gaussian DP", number(cost.mu)]] if cost.mu is not None else []
    return [
        f"The unit of privacy is one row of the table. {unit}",
        "The release is (ε, δ)-differentially private between them, in the central model: who ran it saw the table, "
        "who reads it does not. What is computed from the release alone costs nothing more (post-processing).",
        markdown_table(["privacy loss", "value"], measures),
    ]


def _meaning(relation: str, cost: Spent) -> list[str]:
    other = "without that person" if relation == "add_remove" else "with somebody else in that person's place"
    beliefs = [[_percent(prior), _percent(posterior(prior, cost.epsilon))] for prior in PRIORS]
    tests = [[_percent(rate), _percent(detected(rate, cost))] for rate in FALSE_ALARMS]
    plain = 1 / (1 + math.exp(-cost.epsilon))
    by_epsilon = f" (by ε alone, 1/(1 + e^-ε) = {_percent(plain)})" if cost.mu is not None else ""
    basis = "the trade-off function of Gaussian DP at μ" if cost.mu is not None else "(ε, δ)-DP"
    return [
        f"Whatever anybody knew before: by the release their odds for or against any statement on one person change by "
        f"a factor of e^ε = {number(math.exp(min(cost.epsilon, 700)))} at most, compared with a release of a table "
        f"{other}. This may fail with a probability of about δ = {number(cost.delta)}.",
        markdown_table(["belief before", "belief after, at most"], beliefs),
        f"Who knows all other rows and guesses whether one person is in the table, for which the chances are even, is "
        f"right with a probability of {_percent(right_guess(cost))} at most{by_epsilon}; without a release, of 50 %.",
        f"A test for that with the following rate of false alarms finds a person that is in the table, by {basis}:",
        markdown_table(["false alarms", "found, at most"], tests),
    ]


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def entry_row(entry: Entry) -> list[str]:
    """A release in the odometer, under `ENTRY_HEADER`."""
    spent = "begun, not finished: counts in full" if entry.spent is None else number(entry.spent.epsilon)
    return [entry.when, entry.mechanism, number(entry.budget.epsilon), number(entry.budget.delta), spent]


def _together(odometer: Sum) -> list[str]:
    total = odometer.total
    limit = "No limit is set." if odometer.limit is None else f"The limit on ε is {number(odometer.limit)}."
    return [
        markdown_table(ENTRY_HEADER, [entry_row(entry) for entry in odometer.entries]),
        f"Together, by composition, they spent ε = {number(total.epsilon)} at δ = {number(total.delta)}. {limit} "
        "This sum is an odometer's, kept by the owner of the table. It holds for budgets that were chosen "
        "independently of earlier releases.",
    ]


def _bounds(release: Release, facts: Facts) -> list[str]:
    rows = [[one.name, *_declared(one)] for one in release.domain.attributes]
    dropped = f" Columns left out: {', '.join(facts.drop)}." if facts.drop else ""
    origin = "were declared, not computed from the rows" if facts.declared else "are in part computed from the rows"
    if any(entry.mechanism == DECLARED for entry in facts.odometer.entries):
        origin += f" (but for what a release named {DECLARED} above paid for)"
    absent = ABSENT if any(one.missing for one in release.domain.attributes) else ""
    share = f" This left out {facts.left_out}." if facts.left_out else ""
    return [
        f"Bounds, bins and levels {origin}. {OUTSIDE[facts.outside]}{share}{absent}{markdown(dropped)}",
        markdown_table(["column", "kind", "declared"], rows),
    ]


def _declared(one: Attribute) -> tuple[str, str]:
    """The kind of an attribute, and all that is declared of it."""
    unit = f" {one.unit}" if one.unit else ""
    absent = ", or missing" if one.missing else ""
    if not one.numeric:
        levels = one.levels[:-1] if one.missing else one.levels
        other = f" ({one.other} for all others)" if one.other else ""
        return f"{len(levels)} levels{absent}", ", ".join(levels) + other
    if one.discrete_values:
        return f"{len(one.values)} values{absent}", ", ".join(map(one.text, one.values)) + unit
    assert one.bounds is not None
    widths = [b - a for a, b in pairwise(one.edges)]
    equal = all(math.isclose(width, widths[0], rel_tol=1e-6) for width in widths)
    cut = f"bins of {widths[0]:.6g}" if equal else f"edges {', '.join(map(one.text, one.edges))}"
    return f"{len(one.values)} bins{absent}", f"[{one.text(one.bounds[0])}, {one.text(one.bounds[1])}]{unit}, {cut}"


def _unpaid(release: Release, facts: Facts) -> list[str]:
    found = [*release.nonprivate_inputs, *([SCORES] if facts.scores else [])]
    if not found:
        return ["Nothing: all that depends on the rows was paid for with the noise in the ledger."]
    return ["These were taken from the rows, or could not be checked, and no ε covers them:", _list(found)]


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"- {markdown(text)}" for text in texts)


def _check(facts: Facts) -> list[str]:
    return [
        "ledger.json lists each draw of noise with its sensitivity and multiplier. With what it holds as `about`, "
        "`Ledger` of `dpbench.privacy.ledger` and `spent` of `dpbench.privacy.accounting`, "
        "`spent(Ledger.from_list(about['ledger']), about['budget']['delta'])` gives the ε above again.",
        markdown(f"Made by {facts.made_by}."),
        "The words are those of NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees "
        "(doi 10.6028/NIST.SP.800-226), and of OpenDP (opendp.org).",
    ]


def coefficient_table(fits: Sequence[Fitted], about: Mapping[str, str], *, exact: bool) -> TextTable:
    """The coefficients of these fits, a row for each model and feature; `about` has a sentence on each model.

    `exact`: did the mechanism read numbers as they are in the table, not their bins?
    `tidy` has all digits: see `Fitted.table` for its columns.
    """
    tables = [one.table().assign(model=one.model) for one in fits]
    tidy = pd.concat(tables, ignore_index=True)
    tidy = tidy[["model", *(name for name in tidy.columns if name != "model")]]
    rows = [
        [
            row["model"],
            row["feature"],
            _estimate(row["estimate"], row["standard_error"]),
            _interval(row["lower"], row["upper"]),
            _estimate(row["own_estimate"], row["own_standard_error"]),
            _interval(row["own_lower"], row["own_upper"]),
        ]
        for _, row in tidy.iterrows()
    ]
    notes = ["Scaled: numbers from -1 to 1 over their declared bounds"]
    notes += ["Numbers were read as they are in the table" if exact else "Numbers were read as those of their bins"]
    notes += [text for one in fits for text in _notes(one, about.get(one.model, ""))]
    return TextTable(list(HEADER), rows, list(dict.fromkeys(notes)), tidy)


def _estimate(value: float, error: float) -> str:
    return number(value) if math.isnan(error) else mean_and_error(value, error)


def _interval(lower: float, upper: float) -> str:
    return "" if math.isnan(lower) else f"[{number(lower)}, {number(upper)}]"


def _notes(one: Fitted, about: str) -> list[str]:
    """What the numbers of a model are."""
    target = one.design.domain[one.design.target]
    unit = f" in {target.unit}" if target.unit else ""
    if one.linked:
        what = f"effects on the logarithm of the mean of {target.name}"
    elif target.numeric:
        what = f"{target.name}{unit} for one unit of a feature, or of a level against the first one"
    else:
        levels = f"{target.levels[-1]} against {target.levels[0]}"
        what = f"effects on the score of {target.name}, {levels} (its log-odds, if the model is logistic)"
    notes = [f"{one.model}: {about}. Own units: {what}"]
    if any(one.design.domain[name].dates for name in one.design.features):
        notes.append("Dates count in days since 1970-01-01")
    if (level := one.fit.notes.get("level")) is not None and one.fit.intervals is not None:
        notes.append(f"Intervals of {one.model}: {level:.0%}")
    elif one.fit.covariance is None and one.fit.draws is None:
        notes.append(f"{one.model} gives estimates alone, without errors")
    return notes
