"""`Release`: what a mechanism makes public, with the ledger of its noise. It holds no true value and not n."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dpbench.data.domain import Clique, Codes, Domain, Floats
from dpbench.data.table import Table
from dpbench.privacy.budget import Budget, Ledger

KINDS = ("statistics", "marginals", "rows", "coefficients", "bins")
Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class SufficientStatistics:
    """Noisy X'X (p, p), symmetric but perhaps indefinite, and X'y (p,), with the standard deviations of their noise.

    `ridge` is the multiple of the identity that the mechanism asks to be added to X'X (AdaSSP's lambda; else 0).
    `yty` is a noisy y'y, where it was released too.
    """

    xtx: Floats
    xty: Floats
    xtx_sd: float
    xty_sd: float
    ridge: float = 0.0
    yty: float | None = None


@dataclass(frozen=True)
class BinSums:
    """K bins of the box of a `Design`'s features, with noisy counts and sums of the rows in each (Paper 1, Alg. 1, 2).

    `lower`, `upper` (K, p): the edges. `counts` (K,) int64. `sums` (K, p) of x and `targets` (K,) of y, with the
    standard deviations of their noise given the counts, `sums_sd` (K, p) and `targets_sd`.
    """

    lower: Floats
    upper: Floats
    counts: Codes
    sums: Floats
    targets: Floats
    sums_sd: Floats
    targets_sd: float


@dataclass(frozen=True)
class Release:
    """The public output of one run of a mechanism: one or more of `KINDS`.

    `marginals`: clique -> counts of the shape of the clique. `rows`: synthetic rows. `statistics`, `coefficients` (p,)
    and `bins`: of a `Design`.
    `diagnostics` is plain data about the run that depends on the private rows only through the release's noise.
    `nonprivate_inputs` names what the run took from the private rows without paying for it.
    """

    domain: Domain
    budget: Budget
    ledger: Ledger
    statistics: SufficientStatistics | None = None
    marginals: Mapping[Clique, Floats] | None = None
    rows: Table | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    nonprivate_inputs: tuple[str, ...] = ()
    coefficients: Floats | None = None
    bins: BinSums | None = None

    @property
    def offers(self) -> tuple[str, ...]:
        """Which of `KINDS` the release holds."""
        return tuple(kind for kind in KINDS if getattr(self, kind) is not None)

    def to_parts(self) -> tuple[dict[str, Any], Arrays]:
        """The release as JSON-ready data and arrays; `from_parts` reads them back."""
        data: dict[str, Any] = {
            "domain": self.domain.to_list(),
            "budget": {**vars(self.budget), "epsilon": json_number(self.budget.epsilon)},
            "ledger": self.ledger.to_list(),
            "diagnostics": dict(self.diagnostics),
            "nonprivate_inputs": list(self.nonprivate_inputs),
        }
        arrays: Arrays = {}
        if self.statistics is not None:
            arrays |= {"xtx": self.statistics.xtx, "xty": self.statistics.xty}
            data["statistics"] = {name: getattr(self.statistics, name) for name in ("xtx_sd", "xty_sd", "ridge", "yty")}
        if self.marginals is not None:
            data["marginals"] = [list(clique) for clique in self.marginals]
            arrays |= {f"marginal_{i}": table for i, table in enumerate(self.marginals.values())}
        if self.rows is not None:
            widest = max(self.rows.domain.sizes.values()) - 1
            arrays["rows"] = self.rows.codes.astype(np.min_scalar_type(widest))
            data["numbers"] = list(self.rows.numbers)
            arrays |= {f"numbers_{i}": column for i, column in enumerate(self.rows.numbers.values())}
        if self.coefficients is not None:
            arrays["coefficients"] = self.coefficients
        if self.bins is not None:
            arrays |= {f"bins_{name}": np.asarray(value) for name, value in vars(self.bins).items()}
        return data, arrays

    @classmethod
    def from_parts(cls, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> Release:
        """The release that `to_parts` took apart."""
        domain = Domain.from_list(data["domain"])
        statistics = marginals = rows = bins = None
        if "statistics" in data:
            statistics = SufficientStatistics(arrays["xtx"], arrays["xty"], **data["statistics"])
        if "marginals" in data:
            marginals = {tuple(clique): arrays[f"marginal_{i}"] for i, clique in enumerate(data["marginals"])}
        if "rows" in arrays:
            numbers = {name: arrays[f"numbers_{i}"] for i, name in enumerate(data.get("numbers", ()))}
            rows = Table(domain, arrays["rows"].astype(np.int64), numbers)
        if "bins_counts" in arrays:
            parts: dict[str, Any] = {part.name: arrays[f"bins_{part.name}"] for part in fields(BinSums)}
            bins = BinSums(**{**parts, "targets_sd": float(parts["targets_sd"])})
        budget = Budget(**{**data["budget"], "epsilon": float(data["budget"]["epsilon"])})
        ledger = Ledger.from_list(data["ledger"])
        inputs, coefficients = tuple(data["nonprivate_inputs"]), arrays.get("coefficients")
        return cls(domain, budget, ledger, statistics, marginals, rows, data["diagnostics"], inputs, coefficients, bins)


def json_number(value: float) -> float | str:
    """The number, or its name ('inf', 'nan') where JSON has none: `float` reads both back.

    >>> json_number(0.5), json_number(float("inf"))
    (0.5, 'inf')
    """
    return float(value) if np.isfinite(value) else str(float(value))
