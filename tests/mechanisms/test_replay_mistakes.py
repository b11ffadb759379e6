"""Mistakes that show on few, equal or skewed rows, or in the noise itself, are caught; the shipped code has none."""

from functools import cache

import pytest

from dpbench.audit.neighbours import odd_tables
from dpbench.audit.replay import check_replay
from dpbench.mechanisms import adaptive, adassp, aim, dpsgd, mwem_pgm, pass_glm, pmw_pub, rap, ssp
from mechanisms.helpers import PARTS, maker, mistake, rows

NOISELESS = "reads the rows without noise"
SAME = 'the same noise to "upper triangle of X\'X" and to "X\'y"'
EQUAL = "from equal states of a generator"
ASKED = "        asked = Asked("
PICK = "pick = exponential_mechanism(\n            noise_rng,"
SPAWNED = "noise_rng, rows_rng = rng.spawn(2)\n"
XX = "    xtx = perturb_symmetric(rng,"
XY = "    xty = gaussian(rng, ledger, xy,"
COPY = "    import copy\n    same = copy.deepcopy(rng)\n"
LATER, NEGATED = "    xty = gaussian(same, ledger, xy,", "    xty = -gaussian(same, ledger, -xy,"

MISTAKES = {  # mechanism and parameters, module, changes of its text, what is said
    "answers zeroed where the truth is 0": (
        *("rap", {}, adaptive),
        {ASKED: f"        measured = np.where(true[picked] == 0, 0.0, measured)\n{ASKED}"},
        NOISELESS,
    ),
    "a support without what no private row has": (
        *("pmw_pub", {}, pmw_pub),
        {
            "    support = PublicRows.of(": (
                "    held = np.isin(public.codes[:, 0], train.codes[:, 0])\n"
                "    public = public.take(np.flatnonzero(held)) if held.any() else public\n"
                "    support = PublicRows.of("
            )
        },
        NOISELESS,
    ),
    "a score biased by the true cells that are not empty": (
        *("mwem_pgm", {}, mwem_pgm),
        {"[distance - counts.size(r) for": "[distance - counts.size(r) + len(counts.cells[r].flat) for"},
        "'selection' changes by",
    ),
    "a radius from the rows": (
        *("pass_glm_logistic", {}, pass_glm),
        {
            "    scales, plain, times_y = _scales(": (
                "    radius = float(max(np.linalg.norm(design.encode(train)[0], axis=1), default=radius)) or radius\n"
                "    scales, plain, times_y = _scales("
            )
        },
        NOISELESS,
    ),
    "gradients times the true size of a batch": (
        *("dpsgd", {"expected_rows": 8, "batch_size": 4}, dpsgd),
        {"        return gradients": "        return gradients * len(x) / settings[0].batch"},
        "'clipped gradients' changes by",
    ),
    "gradients divided by the true size of a batch": (
        *("dpsgd", {"expected_rows": 8, "batch_size": 4}, dpsgd),
        {"        return gradients": "        return gradients * settings[0].batch / max(len(x), 1)"},
        "'clipped gradients' changes by",
    ),
    "annealing by the true marginal": (
        *("aim", {"rounds": 12}, aim),
        {"np.abs(model.answer([r])[r] - before).sum()": "np.abs(train.marginal(r) - before).sum()"},
        NOISELESS,
    ),
    "all selections from one generator": (
        *("aim", {"rounds": 12}, aim),
        {PICK: PICK.replace("noise_rng", "np.random.default_rng(0)")},
        f"draws 'selection' and 'selection' {EQUAL}",
    ),
    "the one selection from one generator": (
        *("mwem_pgm", {"rounds": 1}, mwem_pgm),
        {PICK: PICK.replace("noise_rng", "np.random.default_rng(0)")},
        f"draws 'selection' and 'selection' {EQUAL}",
    ),
    "SSP: X'y with the noise of X'X, one draw later": (
        *("ssp", {}, ssp),
        {XX: f"{COPY}    same.normal()\n{XX}", XY: LATER},
        f"adds {SAME}",
    ),
    "SSP: X'y with minus the noise of X'X": (*("ssp", {}, ssp), {XX: COPY + XX, XY: NEGATED}, f"adds {SAME}"),
    "AdaSSP: X'y with the noise of X'X, one draw later": (
        *("adassp", {}, adassp),
        {XX: f"{COPY}    same.normal()\n{XX}", XY: LATER},
        f"adds {SAME}",
    ),
    "AdaSSP: X'y with minus the noise of X'X": (*("adassp", {}, adassp), {XX: COPY + XX, XY: NEGATED}, f"adds {SAME}"),
    "discrete noise that is used again": (
        *("ssp", {"noise": "discrete"}, ssp),
        {XX: COPY + XX, XY: LATER},
        EQUAL,
    ),
    "rows drawn by the noise's own generator": (
        *("aim", {"rounds": 12}, aim),
        {SPAWNED: "noise_rng = rows_rng = rng\n"},
        "uses the numbers that follow its noise: ",
    ),
    "rows drawn where the noise started": (
        *("aim", {"rounds": 12}, aim),
        {SPAWNED: "noise_rng, rows_rng = __import__('copy').deepcopy(rng), rng\n"},
        f"draws 'marginal a' and by rng.permutation {EQUAL}",
    ),
    "a search that starts where the noise does": (
        *("rap", {}, rap),
        {
            "noise_rng, start_rng, rows_rng = rng.spawn(3)": (
                "noise_rng, rows_rng = rng.spawn(2)\n    start_rng = __import__('copy').deepcopy(noise_rng)"
            )
        },
        f"and by rng.uniform {EQUAL}",
    ),
}


def problems(name, change):
    """On one odd table after the other."""
    make = maker(PARTS[name], "categorical", 4.0, **dict(change))
    for table in odd_tables(rows("categorical")).values():
        yield from check_replay(make, table, relation=PARTS[name].relations[0])


@cache
def of_shipped_code(name, change):
    return list(problems(name, change))


@pytest.mark.parametrize("named", MISTAKES)
def test_it_is_caught_on_odd_tables(named, monkeypatch):
    name, change, module, changes, said = MISTAKES[named]
    change = tuple(change.items())
    assert of_shipped_code(name, change) == []
    mistake(monkeypatch, module, changes)
    found = []
    assert any(found.append(problem) or said in problem for problem in problems(name, change)), found
