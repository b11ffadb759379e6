"""What `dpbench check` asks of a kind of figure or table, as pairs like those of `commands.plugins`."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from typing import Any

from dpbench.commands.plugins import Source
from dpbench.config.reports import kinds
from dpbench.grid.mechanism_check import Check
from dpbench.grid.tiny import ROWS

LABELS = {"exact/linear_statistics": "public", "ssp/linear_statistics": "SSP"}
EXAMPLES = {"metric": "mse", "method": "SSP", "less": "SSP", "values": [ROWS, ROWS]}
EXAMPLES |= dict.fromkeys(("x", "panel", "setting"), "release.split.train_rows")
BY_TYPE: dict[str, object] = {"str": "text", "float": 1.0, "int": 1, "bool": True, "list": [], "dict": {}}


def check_kind(name: str, source: Source) -> Iterator[Check]:
    """A kind of figure or table draws made-up trials, the same each time, and leaves the frame as it was."""
    from dpbench.report.kinds import draw_figure, make_table

    kind = next(kind for kind in kinds().values() if (kind.group, kind.name) == (source.group, name))
    assert kind.function is not None
    yield "its config and its signature", []
    spec: Any = {"name": "checked", "kind": name, "title": "Checked"}
    spec |= {key: EXAMPLES.get(key, BY_TYPE[type_.split("|")[0].strip()]) for key, type_ in kind.required.items()}
    frame = _frame([str(spec[key]) for key in ("x", "panel", "setting") if key in spec], kind.reads)
    before = frame.copy(deep=True)
    made = [
        make_table(frame, LABELS, spec, {}).tidy if kind.group == "table" else draw_figure(frame, LABELS, spec, "")[1]
        for _ in range(2)
    ]
    yield f"it draws {spec}", []
    yield "the same trials give the same", [] if made[0].equals(made[1]) else ["they give another one"]
    yield "it leaves the frame as it was", [] if frame.equals(before) else ["it wrote into it"]
    if kind.group == "figure":
        draw_figure(frame, LABELS, spec, "")[0].savefig(io.BytesIO(), format="png")
        yield "the figure can be saved", []


def _frame(settings: Sequence[str], reads: Sequence[str]) -> Any:
    """A made-up frame of trials: two mechanisms, two epsilons and three repetitions."""
    import pandas as pd

    from dpbench.report.frames.frame import COLUMNS

    rows = []
    for mechanism, epsilon in (("exact", math.inf), ("ssp", 0.5), ("ssp", 1.0)):
        for repetition in range(3):
            row: dict[str, object] = {column: "" if kind == "str" else 0.0 for column, kind in COLUMNS.items()}
            row |= {"trial": f"{mechanism}{epsilon}{repetition}", "dataset": "adult", "mechanism": mechanism}
            row |= {"model": "linear_statistics", "epsilon": epsilon, "delta": 1e-5, "repetition": repetition}
            row |= {"status": "done", "metric": "mse", "value": 0.1 + 0.01 * repetition, "direction": "lower"}
            row |= {"train_rows": ROWS, "test_rows": "100", "relation": "add_remove", "spent_epsilon": epsilon}
            row |= {"x": epsilon, "panel": "adult", "nonprivate_inputs": (), "detail": None}
            row |= dict.fromkeys([*settings, *reads], float(ROWS))
            rows.append(row)
    return pd.DataFrame(rows).astype(COLUMNS)
