"""A case of OpenDP (see worker.py). Its noise is drawn in Rust, so that it is by runs."""

import warnings

import numpy as np
from worker import main, scored

warnings.simplefilter("ignore")


def theil_sen(given):
    """One record more, at the end. The rows lie on a line in the middle, the last ones far above it.

    Of an odd number of rows the last one is left out, so that with one more there are two new pairs and one pair less.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    from opendp.extras.sklearn.linear_model import LinearRegression

    model = LinearRegression(dp.max_divergence(), x_bounds=[(0, 10)], y_bounds=(0, 10), scale=2.0, candidates_count=2)
    claimed = model.measurement.map(1)
    if claimed != 1.0:
        raise RuntimeError(f"the library asks {claimed} for one record, not 1")
    rows = np.array([[place / 100, 5.0] for place in range(20)] + [[5.0, 1e6], [5.1, 1e6]])

    def score(table):
        found = model.fit(table[:, :1], table[:, 1])
        return found.coef_[0] * 5 + found.intercept_

    return scored(score, rows[:-1], rows, given.runs)


main({"theil_sen": theil_sen}, "opendp", "numpy", "scikit-learn")
