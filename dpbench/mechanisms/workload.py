"""Workloads of marginals: which cliques, their downward closure and their weights (Paper 0, Definition 2.10)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from dpbench.data.domain import Clique, Domain
from dpbench.errors import UserError


def cliques_of(domain: Domain, workload: int | Sequence[Sequence[str]]) -> tuple[Clique, ...]:
    """The workload's cliques: all k-way ones for an integer k, else those listed; names in the domain's order.

    Raises `UserError` for a k outside [1, number of attributes], an empty list or an unknown name.
    """
    if isinstance(workload, int):
        if not 1 <= workload <= len(domain.names):
            raise UserError(f"workload={workload}: all k-way marginals need k between 1 and {len(domain.names)}")
        return tuple(combinations(domain.names, workload))
    listed = (tuple(domain.names[i] for i in sorted({domain.index(name) for name in clique})) for clique in workload)
    cliques = tuple(dict.fromkeys(clique for clique in listed if clique))
    if not cliques:
        raise UserError("the workload is empty: give k for all k-way marginals, or a list of lists of attributes")
    return cliques


def closure(workload: Sequence[Clique]) -> tuple[Clique, ...]:
    """W+: every non-empty subset of a clique of the workload, smaller ones first."""
    subsets = (part for clique in workload for k in range(len(clique)) for part in combinations(clique, k + 1))
    return tuple(sorted(dict.fromkeys(subsets), key=len))


def weights(candidates: Sequence[Clique], workload: Sequence[Clique]) -> dict[Clique, int]:
    """w_r = sum over s in W of |r and s| (Paper 0, Algorithm 2, line 8; every c_s is 1)."""
    return {r: sum(len(set(r) & set(s)) for s in workload) for r in candidates}
