"""Cases of diffprivlib (see worker.py)."""

import warnings

import numpy as np
from worker import Tape, main, replayed, scored

warnings.simplefilter("ignore")


def column(*values, rows=1000):
    """Zeros, and these in the end."""
    return np.r_[np.zeros(rows - len(values)), values]


def linear(given):
    """Bounds are given, the rest is as installed. The last record is (1, 1) in place of (0, 0)."""
    from diffprivlib.models import LinearRegression

    def score(table):
        model = LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1))
        return -np.abs(model.fit(table[:, None], table).coef_[0])

    return scored(score, column(0), column(1), given.runs)


def linear_steps(given):
    """The same without an intercept, by its noise: the value under each Laplace mechanism, and its scale."""
    from diffprivlib.mechanisms import Laplace, LaplaceFolded
    from diffprivlib.models import LinearRegression

    tape, rng = Tape(given.delta), np.random.default_rng(given.seed)

    def randomise(mechanism, value):
        scale = mechanism.sensitivity / mechanism.epsilon
        return float(tape.noisy("laplace", value, scale, rng.laplace(scale=scale) if scale else 0.0))

    for kind in (Laplace, LaplaceFolded):
        kind.randomise = randomise

    def run(table):
        LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False).fit(table[:, None], table)

    return replayed(tape, run, column(1, 0), column(1, 1))


def linear_outside(given):
    """Without an intercept, by a record outside of the bounds that were given."""
    from diffprivlib.models import LinearRegression

    def score(table):
        model = LinearRegression(epsilon=1.0, bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False)
        return np.abs(model.fit(np.r_[np.ones(100), 1.0][:, None], table).coef_[0])

    return scored(score, column(0, rows=101), column(1e5, rows=101), given.runs)


def linear_no_bounds(given):
    """As installed: bounds are read off the rows, with a PrivacyLeakWarning, and stay in the model."""
    from diffprivlib.models import LinearRegression

    def score(table):
        return LinearRegression(epsilon=1.0).fit(table[:, None], table).bounds_X[1][0]

    return scored(score, column(1, 1), column(1, 10), given.runs)


def logistic(given):
    """The norm of the rows is given. A record at the bound is in the place of one at 0."""
    from diffprivlib.models import LogisticRegression

    labels = np.arange(20) % 2

    def score(table):
        return -np.abs(LogisticRegression(epsilon=1.0, data_norm=100.0).fit(table[:, None], labels).coef_[0, 0])

    return scored(score, column(0, rows=20), column(100, rows=20), given.runs)


def logistic_classes(given):
    """The classes are read off the labels: a record has one of its own."""
    from diffprivlib.models import LogisticRegression

    rows = column(1, rows=20)[:, None]

    def score(labels):
        return len(LogisticRegression(epsilon=1.0, data_norm=1.0).fit(rows, labels).classes_)

    labels = np.arange(20) % 2
    return scored(score, labels, np.r_[labels[:-1], 2], given.runs)


main(
    {
        "linear": linear,
        "linear_steps": linear_steps,
        "linear_outside": linear_outside,
        "linear_no_bounds": linear_no_bounds,
        "logistic": logistic,
        "logistic_classes": logistic_classes,
    },
    "diffprivlib",
    "scikit-learn",
    "numpy",
)
