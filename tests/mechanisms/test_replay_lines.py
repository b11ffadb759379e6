"""What is replayed runs every line of the mechanisms that reads rows, and the lines that it does not run are named."""

import ast
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import dpbench.mechanisms
from dpbench.audit.neighbours import odd_tables
from dpbench.audit.replay import check_replay
from dpbench.errors import NoEstimateError
from mechanisms.helpers import DESIGNS, OPTIONS, PARTS, counts, maker, rows

FOLDER = Path(dpbench.mechanisms.__file__).parent
APART = {  # files that are no mechanism, or whose noise nobody here can replay
    *("__init__", "audit", "exact_audit", "one_run", "replay", "tables", "_opacus", "_snsynth_worker", "snsynth"),
    *("exact", "trivial", "best_mixture"),  # not private
}
NOT_RUN = {  # no row is read there
    "gem": [  # its steps on a GPU, of released measurements
        *(
            "return self.lowered_on_device(columns, a, gamma)",
            "from dpbench.inference.generator_descent import descend",
        ),
        *("sizes = list(self.queries.sizes.values())", "try:"),
        "steps = descend(self.generator, sizes, columns, a, gamma, self.rates(), self.most, self.resample)",
        *("except FloatingPointError as error:", "return self.generator.logits(), steps"),
    ],
    "gen": ["return sum(math.comb(features + 1, k) for k in range(1, degree + 1))"],  # what the paper counts
    "pep": [  # measurements that contradict each other
        *("D = np.maximum(D, FLOOR)", "D, total = D / D.sum(), 1.0", "masses = _masses(D, slabs)"),
    ],
    "intervals": ["plain = np.round(plain, attribute.decimals)"],  # of numbers that are released
    "residual_planner": ["return {}", "return {}, {}"],  # of nothing but a public n
    "objpert": ["size /= 2"],  # a step of Newton's method that went too far
    "privbayes": ["cells /= 2"],  # too many sets of parents
    "privsyn": [  # marginals that join noisy pairs
        *("(*clique, name)", "if len(covered & set(clique)) <= 2:", "joined.append(clique)", "covered |= set(clique)"),
    ],
    "query_search": [
        'where = "a parameter of the search" if name == "workload" else "in the grid"',  # a setting that is refused
        "continue",  # a run that diverged, of which its noisy answers tell
    ],
}


LONG = ("runs that diverge, unpaid", "z drawn anew", "a private score of labels")


@pytest.mark.parametrize(
    "option", [pytest.param(option, marks=[pytest.mark.slow] if option in LONG else []) for option in OPTIONS]
)
def test_options_that_no_config_has_read_the_rows_through_their_noise_only(option):
    name, kind, change = OPTIONS[option]
    part = PARTS[name]
    make = maker(part, kind, 4.0, **change)
    for table in [rows(kind, 300), *odd_tables(rows(kind, 300)).values()]:
        assert check_replay(make, table, relation=part.relations[0]) == []


def replayed():
    """Every private mechanism on the tables that the other tests replay it on."""
    for part in PARTS.values():
        if part.private and not part.target.endswith(".snsynth"):
            fits = [k for k, d in DESIGNS.items() if (d.binary or not part.labels) and (d.counted or not counts(part))]
            few = {"teachers": 4} if part.takes("teachers") else {"batch_size": 4} if part.takes("batch_size") else {}
            for relation in part.relations:
                for calibration in part.calibrations if part.takes("calibration") else [None]:
                    change = {"calibration": calibration} if calibration else {}
                    for table in [rows(fits[-1], 1000), *odd_tables(rows(fits[-1], 300)).values()]:
                        yield maker(part, fits[-1], 0.5, relation=relation, **few, **change), table
            if "noise" in part.parameters or part.takes("noise"):
                yield maker(part, "numeric", 0.5, noise="discrete"), rows("numeric", 300)
    for name, kind, change in OPTIONS.values():
        yield maker(PARTS[name], kind, 4.0, **change), rows(kind, 300)


def of_functions(source):
    """The lines of function bodies that run, without those that only refuse a setting."""

    def lines(code):
        inner = [lines(one) for one in code.co_consts if isinstance(one, types.CodeType)]
        return {line for _, _, line in code.co_lines() if line}.union(*inner)

    tree = ast.parse(source)
    bodies, left_out = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            body = node.body if isinstance(node.body, list) else [node.body]
            bodies |= {line for one in body for line in range(one.lineno, one.end_lineno + 1)}
            left_out |= {node.lineno}
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            left_out |= {line for one in node.body for line in range(one.lineno, one.end_lineno + 1)}
        if isinstance(node, ast.Raise):
            left_out |= set(range(node.lineno, node.end_lineno + 1))
    return (lines(compile(source, "", "exec")) & bodies) - left_out


def test_every_line_of_a_mechanism_is_replayed():
    run: dict[str, set[int]] = {}

    def trace(frame, event, _):
        path = frame.f_code.co_filename
        if not path.startswith(str(FOLDER)):
            return None
        run.setdefault(Path(path).stem, set()).add(frame.f_lineno)
        return trace

    for make, table in replayed():
        sys.settrace(trace)
        try:
            make(table, np.random.default_rng(3))
        except NoEstimateError:
            pass
        finally:
            sys.settrace(None)
    missed = {}
    for path in sorted(FOLDER.glob("*.py")):
        source = path.read_text()
        lines = sorted(of_functions(source) - run.get(path.stem, set())) if path.stem not in APART else []
        text = [source.splitlines()[line - 1].strip() for line in lines]
        missed |= {path.stem: text} if text else {}
    assert missed == NOT_RUN
