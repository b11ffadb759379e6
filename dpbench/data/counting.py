"""The counts of the cells of many marginals, in one pass over the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Clique, Floats

AT_ONCE = 2**14  # rows, so that their codes in a marginal's attributes fit a processor's cache


def counted(
    codes: NDArray[np.integer[Any]],
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
    weights: Floats | None = None,
) -> dict[Clique, Floats]:
    """The counts of each clique's cells, of the sizes of its attributes; or the sums of the rows' `weights` (n,).

    **Shapes** `codes` (n, d) in the order of `sizes`. Weighted rows are summed all at once, in their order, so that
    the sums do not depend on `AT_ONCE`.

    >>> counted(np.array([[0, 1], [1, 1], [1, 1]]), {"a": 2, "b": 2}, [("a", "b")])[("a", "b")].tolist()
    [[0.0, 1.0], [0.0, 2.0]]
    """
    index = {name: j for j, name in enumerate(sizes)}
    shapes = [tuple(sizes[name] for name in clique) for clique in cliques]
    tables = [np.zeros(math.prod(shape)) for shape in shapes]
    order = sorted(range(len(cliques)), key=lambda i: [index[name] for name in cliques[i]])
    step = max(AT_ONCE, *(table.size for table in tables)) if weights is None and tables else max(len(codes), 1)
    for start in range(0, len(codes), step):
        columns = np.ascontiguousarray(codes[start : start + step].T, dtype=np.intp)
        cells = [np.zeros(columns.shape[1], dtype=np.intp)]  # of the first k attributes, which the next one may share
        last: Clique = ()
        for i in order:
            clique, table = cliques[i], tables[i]
            shared = next((k for k, (a, b) in enumerate(zip(clique, last, strict=False)) if a != b), len(last))
            del cells[min(shared, len(clique)) + 1 :]
            for name in clique[len(cells) - 1 :]:
                cells.append(cells[-1] * sizes[name])
                cells[-1] += columns[index[name]]
            table += np.bincount(cells[-1], weights=weights, minlength=table.size)
            last = clique
    return {clique: table.reshape(shape) for clique, table, shape in zip(cliques, tables, shapes, strict=True)}
