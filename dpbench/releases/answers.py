"""The answers of a release to the queries of a workload of marginals."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.inference.queries import QueryWorkload

from .distribution import Distribution
from .marginals import Marginals
from .release import Release
from .rows import SyntheticRows


def answers_of(release: Release, cliques: tuple[Clique, ...], n: int) -> Floats:
    """The answers (m,) to all cells of these marginals, as parts of one; n is the total of the released marginals.

    Those of its own marginals if it has all of these, else of its distribution, else of its rows. Raises
    `ContractError` for a release of none of them.
    """
    released = release.get(Marginals)
    if released is not None and all(clique in released.tables for clique in cliques):
        return np.concatenate([released.tables[clique].ravel() for clique in cliques]) / n
    if (distribution := release.get(Distribution)) is not None:
        tables = distribution.answer(cliques)
        return np.concatenate([tables[clique].ravel() for clique in cliques]) / distribution.model.total
    return QueryWorkload(release.domain.sizes, cliques).of_rows(release[SyntheticRows].table.codes)
