"""Write results/arena/tables/recommendation.csv: what `dpbench recommend` names on tables that are not in the arena.

Compared with the results of all methods there (`experiment=arena_check_regression`, `arena_check_classification`), and
with the one method that is the best over all tables of the arena. Errors are those of `dpbench recommend`: `times` is
the error of the method that it names first, as a multiple of the least one, `overall_times` that of the best over all,
and `trivial_times` that of the trivial answer. `worth` is whether it says that a method beats the trivial answer, and
`beats` whether the first one does.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from dpbench.commands.recommend import SHOWN, known_of
from dpbench.commands.recommend_question import NEEDS, Asked, Own
from dpbench.config import compose
from dpbench.files import write_file
from dpbench.report.recommendation import CLOSE, Size, ranked
from dpbench.report.text import csv_text

RESULTS = Path(__file__).parents[1] / "results"
CHECKS = {"coefficients": "arena_check_regression", "classifier": "arena_check_classification"}


def rows(need: str, check: str) -> Iterator[dict[str, object]]:
    """A row for each table and epsilon of the check."""
    ours, arena = (compose([f"experiment={name}", f"results={RESULTS}"]) for name in (check, NEEDS[need][0]))
    nothing = Own("", Size(1, 1, 1), (), ())
    found, known = (known_of(Asked(need, [one], nothing), None)[0] for one in (ours, arena))
    overall = ranked(known.evidence.errors)[0]
    for (name, epsilon), errors in found.evidence.errors.iterrows():
        size, least = found.sizes[name], errors.min()
        near = known.nearest(size, epsilon)
        order = [name for name in known.ordered(size, epsilon) if not known.gives_mean(name)]
        taken = known.paying(order[:SHOWN], near.index, known.amount(size, epsilon))
        first, trivial = (taken or order)[0], found.evidence.trivial[name]
        yield {
            "need": need, "dataset": name, "rows": size.rows, "columns": size.columns, "epsilon": epsilon,
            "first": first, "worth": bool(taken), "times": errors[first] / least, "best": errors.idxmin(),
            "overall": overall, "overall_times": errors[overall] / least, "trivial_times": trivial / least,
            "beats": bool(errors[first] < trivial),
        }  # fmt: skip


if __name__ == "__main__":
    found = pd.DataFrame([row for need, check in CHECKS.items() for row in rows(need, check)])
    print(found.to_string(index=False))
    near = (found[["times", "overall_times"]] <= CLOSE).groupby(found["need"]).sum()
    print(near.assign(cases=found.groupby("need").size()).to_string())
    print(write_file(RESULTS / "arena" / "tables" / "recommendation.csv", csv_text(found)))
