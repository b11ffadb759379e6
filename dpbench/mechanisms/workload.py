"""Workloads of marginals: which cliques, their downward closure and their weights (DD-SSP, Definition 2.10)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np

from dpbench.data.domain import Clique, Domain
from dpbench.errors import UserError, check_known, check_positive, shown
from dpbench.resources import memory_mb

Workload = int | Mapping[str, int | None] | Sequence[Sequence[str]]
BYTES_A_CLIQUE = 120  # at least: a tuple of names, and its place in a list


def cliques_of(domain: Domain, workload: Workload) -> tuple[Clique, ...]:
    """The workload's cliques, names in the domain's order: all k-way ones for an integer k, else those listed.

    `{degree: k, up_to: true, max_cells: m}` has all marginals of up to k attributes (of exactly k, without `up_to`)
    that have m cells at most (of any size, without `max_cells`). `marginals: r` keeps r of them, drawn by `seed`.

    Raises `UserError` for a k outside [1, number of attributes], no cliques, an unknown name or setting.
    """
    if isinstance(workload, Mapping):
        chosen = _chosen(workload)
        cliques = _up_to(domain, chosen.degree, chosen.up_to, chosen.max_cells)
        return cliques if chosen.marginals is None else _drawn(cliques, chosen.marginals, chosen.seed)
    if isinstance(workload, int):
        return _up_to(domain, workload)
    listed = (tuple(domain.names[i] for i in sorted({domain.index(name) for name in clique})) for clique in workload)
    cliques = tuple(dict.fromkeys(clique for clique in listed if clique))
    if not cliques:
        raise UserError("the workload is empty: give k for all k-way marginals, or a list of lists of attributes")
    return cliques


@dataclass(frozen=True)
class _Chosen:
    """A workload by its settings: see `cliques_of`."""

    degree: int
    up_to: bool = False
    max_cells: int | None = None
    marginals: int | None = None
    seed: int = 0


def _chosen(workload: Mapping[str, int | None]) -> _Chosen:
    """The settings of a workload, each of its type."""
    for name in workload:
        check_known("setting of the workload", str(name), [one.name for one in fields(_Chosen)])
    degree, up_to = workload.get("degree"), workload.get("up_to", False)
    if type(degree) is not int or type(up_to) is not bool:
        raise UserError("the workload needs a degree, a whole number; up_to is true or false")
    numbers = {}
    for name, least in (("max_cells", 1), ("marginals", 1), ("seed", 0)):
        value = workload.get(name)
        if value is not None:
            if type(value) is not int or not least <= value < 2**32:
                raise UserError(f"workload.{name} must be a whole number of at least {least}, not {value!r}")
            numbers[name] = value
    return _Chosen(degree, up_to, **numbers)


def _drawn(cliques: Sequence[Clique], marginals: int, seed: int) -> tuple[Clique, ...]:
    """So many of the cliques, each set of them as likely, in their order.

    The generator is the one that the published workloads were drawn with (iterative-dp, `RandomState.choice`): no
    other draws ADULT*'s 64 marginals.
    """
    if marginals > len(cliques):
        raise UserError(f"workload.marginals={marginals:,}: there are {len(cliques):,} such marginals")
    chosen = np.random.RandomState(seed).choice(len(cliques), marginals, replace=False)
    return tuple(cliques[i] for i in sorted(chosen))


def _up_to(domain: Domain, degree: int, up_to: bool = False, max_cells: int | None = None) -> tuple[Clique, ...]:
    """All cliques of so many attributes, or of up to so many, with so many cells at most."""
    if not 1 <= degree <= len(domain.names):
        raise UserError(f"workload={degree}: all k-way marginals need k between 1 and {len(domain.names)}")
    _check_number(len(domain.names), degree)
    found = [r for k in range(1 if up_to else degree, degree + 1) for r in combinations(domain.names, k)]
    cliques = tuple(r for r in found if max_cells is None or math.prod(domain.shape(r)) <= max_cells)
    if not cliques:
        least = min(math.prod(domain.shape(r)) for r in found)
        raise UserError(f"workload.max_cells={max_cells:,}: the smallest of the marginals has {least:,} cells")
    return cliques


def _check_number(d: int, degree: int) -> None:
    """Raises `UserError` for more marginals than this process can list, with the largest degree that it can."""
    limit = memory_mb()

    def mb(k: int) -> float:
        return math.comb(d, k) * BYTES_A_CLIQUE / 2**20

    if mb(degree) > limit:
        fits = max((k for k in range(1, degree) if mb(k) <= limit), default=1)
        raise UserError(
            f"workload={degree}: a list of the {math.comb(d, degree):,} marginals of {degree} of {d} attributes has "
            f"{mb(degree):,.0f} MB, without their cells; the limit is {limit:,.4g} MB: degree {fits} would fit, with "
            f"{math.comb(d, fits):,} marginals; or name the marginals that you need, or raise limits.memory_mb"
        )


def distinct_cliques(mechanism: str, domain: Domain, workload: Workload) -> tuple[Clique, ...]:
    """`cliques_of`, for mechanisms whose noise depends on how often a marginal is asked for.

    Raises `UserError`, besides, for a listed marginal that was listed before, in whatever order of its attributes.
    """
    cliques = cliques_of(domain, workload)
    if not isinstance(workload, int | Mapping) and len(workload) > len(cliques):
        times = Counter(tuple(sorted(set(clique), key=domain.index)) for clique in workload)
        twice = next((clique for clique, count in times.items() if count > 1), ())
        raise UserError(
            f"{mechanism}: the workload names the marginal ({', '.join(twice)}) {times[twice]} times; name it once, "
            "and give it a larger weight (weights) if it matters more"
        )
    return cliques


def weights_of(mechanism: str, cliques: Sequence[Clique], given: Sequence[float] | None) -> dict[Clique, float]:
    """The weight of each marginal, in the order of the workload; 1 for all if none are given.

    Raises `UserError` unless there is one for each, and all are greater than 0.
    """
    if given is None:
        return dict.fromkeys(cliques, 1.0)
    if len(given) != len(cliques) or not all(isinstance(one, int | float) and math.isfinite(one) for one in given):
        raise UserError(
            f"{mechanism}: weights must be one finite number for each of the {len(cliques):,} marginals of the "
            f"workload, in its order, not {shown(list(given))}"
        )
    for clique, one in zip(cliques, given, strict=True):
        check_positive(mechanism, **{f"the weight of ({', '.join(clique)})": one})
    return dict(zip(cliques, map(float, given), strict=True))


def closure(workload: Sequence[Clique]) -> tuple[Clique, ...]:
    """W+: every non-empty subset of a clique of the workload, smaller ones first."""
    subsets = (part for clique in workload for k in range(len(clique)) for part in combinations(clique, k + 1))
    return tuple(sorted(dict.fromkeys(subsets), key=len))


def weights(candidates: Sequence[Clique], workload: Sequence[Clique]) -> dict[Clique, int]:
    """w_r = sum over s in W of |r and s| (DD-SSP, Algorithm 2, line 8; every c_s is 1)."""
    times = Counter(name for s in workload for name in s)
    return {r: sum(times[name] for name in r) for r in candidates}
