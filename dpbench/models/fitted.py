"""`Fitted`: what a model made of a release, in the terms of the table's attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpbench.data.coding import code_frame
from dpbench.data.domain import Attribute, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known
from dpbench.files import Json
from dpbench.models.fit import Fit

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Fitted:
    """What a model made of a release, in the terms of its attributes.

    `fit`: its numbers (`dpbench.models.fit.Fit`). `design`: how attributes become features; numbers are scaled to
    [-1, 1] over their declared bounds, and so is the target (`dpbench.data.encode.Design`). `linked`: of a model of the
    logarithm of the mean, as Poisson regression is, whose target is in its own unit.
    """

    model: str
    fit: Fit
    design: Design
    linked: bool = False

    @property
    def coefficients(self) -> pd.Series[float]:
        """The coefficients (p,) by feature, of scaled features and target; empty for a model that has none."""
        import pandas as pd

        columns = self.design.columns if len(self.fit.coefficients) else ()
        return pd.Series(self.fit.coefficients, index=columns, name=self.design.target)

    @property
    def intervals(self) -> pd.DataFrame:
        """The lower and upper end of each coefficient's confidence interval (p, 2).

        Raises `UserError` for a model that has none.
        """
        import pandas as pd

        if self.fit.intervals is None:
            raise UserError(f"{self.model} gives no intervals; dpbench list models says which do")
        return pd.DataFrame(self.fit.intervals, index=self.design.columns, columns=["lower", "upper"])

    def table(self) -> pd.DataFrame:
        """The coefficients, a row for each feature, on the scaled features and in the table's own units.

        Columns: `feature`; `estimate`, `standard_error`, `lower` and `upper` of the scaled ones; the same with the
        prefix `own_`. What the model does not give is NaN. A slope in own units is a multiple of the scaled one. The
        constant in own units is a combination of all coefficients: it has an error where the model gives their
        covariance or draws, and an interval where it gives draws. Empty for a model without coefficients.
        """
        import pandas as pd

        fit, columns = self.fit, self.coefficients.index
        if not len(columns):
            return pd.DataFrame(columns=["feature"])
        factors, constant = own_units(self.design, linked=self.linked)
        found: Json = {
            "feature": columns,
            "estimate": fit.coefficients,
            "standard_error": _errors(fit, np.eye(len(columns))),
        }
        found |= dict(zip(("lower", "upper"), _intervals(fit), strict=True))
        found["own_estimate"] = factors @ fit.coefficients
        found["own_standard_error"] = _errors(fit, factors)
        for name, ends in zip(("own_lower", "own_upper"), _intervals(fit), strict=True):
            found[name] = np.diag(factors) * ends
        if self.design.intercept:
            found["own_estimate"][-1] += constant
            found["own_lower"][-1] = found["own_upper"][-1] = np.nan
            if fit.draws is not None and (level := fit.notes.get("level")):
                ends = np.quantile(fit.draws @ factors[-1], [(1 - level) / 2, (1 + level) / 2])
                found["own_lower"][-1], found["own_upper"][-1] = constant + ends
        return pd.DataFrame(found)

    def predict(self, df: pd.DataFrame, outside_domain: str = "error") -> pd.Series[float]:
        """The predicted targets (m,) of rows with the features of the design; other columns are not looked at.

        A numeric target is in its own unit. Of one of two levels it is the score: the second level where it is above 0.

        Raises `UserError` for values outside the domain (see `release`).
        """
        import pandas as pd

        domain, target, features = self.design.domain, self.design.target, self.design.features
        check_known("outside_domain", outside_domain, ("error", "clip"))  # each row has a prediction
        rows = code_frame(df.filter(features), domain.project(features), outside_domain)
        codes = np.insert(rows.codes, domain.index(target), 0, axis=1)
        predicted = self.fit.predict(self.design.encode(Table(domain, codes, rows.numbers))[0])
        if (bounds := domain[target].bounds) is not None:
            predicted = bounds[0] + (predicted + 1) * self.design.target_scale
        return pd.Series(predicted, index=df.index, name=target)

    def __repr__(self) -> str:
        size = f"{len(self.design.columns)} features"
        return f"<{self.model} of {self.design.target} on {size}>"


def own_units(design: Design, *, linked: bool = False) -> tuple[Floats, float]:
    """F (p, p) and c: coefficients theta of the design are F theta in the table's own units, plus c for the constant.

    A feature that is a number x, with bounds of middle m and half width h, is (x - m) / h, and a target y is
    (y - m_y) / h_y: then y = m_y + h_y theta_0 + sum h_y theta_j (x_j - m_j) / h_j. A target of two levels is not
    scaled, nor is one whose logarithm is fitted (`linked`). Without a constant, as without scaling, F is diagonal.
    """
    scales, middles = np.ones(len(design.columns)), np.zeros(len(design.columns))
    target = design.domain[design.target]
    y_scale, y_middle = 1.0, 0.0
    if design.scaled:
        for place, name in enumerate(design.columns):
            if name in design.features and design.domain[name].numeric:
                middles[place], scales[place] = _middle_and_half(design.domain[name])
        if target.numeric and not linked:
            y_middle, y_scale = _middle_and_half(target)
    factors = np.diag(y_scale / scales)
    if design.intercept:
        factors[-1] -= y_scale * middles / scales
    return factors, y_middle


def _middle_and_half(attribute: Attribute) -> tuple[float, float]:
    assert attribute.bounds is not None
    lower, upper = attribute.bounds
    return (lower + upper) / 2, (upper - lower) / 2


def _errors(fit: Fit, factors: Floats) -> Floats:
    """The standard errors of F theta (p,), by the covariance of theta or its draws; NaN where there is neither."""
    if fit.covariance is not None:
        return np.asarray(np.sqrt(np.einsum("ij,jk,ik->i", factors, fit.covariance, factors)))
    if fit.draws is not None:
        return np.asarray(np.std(fit.draws @ factors.T, axis=0, ddof=1))
    return np.full(len(factors), np.nan)


def _intervals(fit: Fit) -> Floats:
    """The lower and the upper ends (2, p); NaN where the model gives none."""
    return np.full((2, len(fit.coefficients)), np.nan) if fit.intervals is None else np.asarray(fit.intervals.T)
