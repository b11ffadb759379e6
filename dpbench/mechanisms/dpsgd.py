"""DP-SGD of a linear model from 0, with Poisson sampling (Abadi et al. 2016; DD-SSP, section 3.6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known
from dpbench.privacy.budget import Budget
from dpbench.privacy.calibration import sampled_multiplier
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import sampled_gaussian
from dpbench.privacy.recording import Rows
from dpbench.releases import Coefficients, Release

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SPARSE, SPARSE_SAMPLE = 1 / 4, 1 / 16  # products of rows with fewer entries than these shares are faster if sparse
ENGINES = {"native": "dpbench.mechanisms.dpsgd", "opacus": "dpbench.mechanisms._opacus"}


def squared_slope(scores: Floats, y: Floats) -> Floats:
    """d/ds (s - y)^2."""
    return 2 * (scores - y)


def logistic_slope(scores: Floats, y: Floats) -> Floats:
    """d/ds log(1 + exp(-y s))."""
    from scipy.special import expit

    slope: Floats = -y * expit(-y * scores)
    return slope


SLOPES: Mapping[str, Callable[[Floats, Floats], Floats]] = {"squared": squared_slope, "logistic": logistic_slope}


@dataclass(frozen=True)
class Setting:
    """The hyperparameters of one run, all public. `batch_size` None is the whole table.

    `expected_rows` declares about how many rows the table has. It stands for n, which is private where neighbours add
    or remove a row: a wrong one costs accuracy, not privacy.

    Raises `UserError` for a value out of range.
    """

    batch_size: int | None
    clip: float
    epochs: int
    learning_rate: float
    expected_rows: int

    def __post_init__(self) -> None:
        for name in ("batch_size", "clip", "epochs", "learning_rate", "expected_rows"):
            value, whole = getattr(self, name), name not in ("clip", "learning_rate")
            if value is None and name == "batch_size":
                continue
            allowed = "a whole number of at least 1" if whole else "a finite number greater than 0"
            kinds = int if whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < math.inf:
                raise UserError(f"DP-SGD: {name} must be {allowed}, not {value!r}")
        if self.batch_size is not None and self.batch_size > self.expected_rows:
            raise UserError(
                f"DP-SGD: batch_size = {self.batch_size} is larger than expected_rows = {self.expected_rows}; "
                "make it smaller, or null for the whole table"
            )

    @property
    def batch(self) -> int:
        """The expected number of rows of a sample."""
        return self.batch_size or self.expected_rows

    @property
    def rate(self) -> float:
        """The probability of a row to be in a sample."""
        return self.batch / self.expected_rows

    @property
    def steps(self) -> int:
        """T, the least number of steps that makes so many epochs."""
        return -(-self.epochs * self.expected_rows // self.batch)


def dpsgd(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    batch_size: int | None,
    clip: float,
    epochs: int,
    learning_rate: float,
    expected_rows: int,
    loss: str | None = None,
    engine: str = "native",
) -> Release:
    """One run of DP-SGD with hyperparameters that were declared in advance: T noisy steps from theta = 0.

    **Source** DD-SSP, section 3.6 and G.2; Abadi et al. (2016), Algorithm 1.
    **Privacy** Add/remove. Each step releases the sum of clipped gradients of a Poisson sample of rate
    q = batch_size / expected_rows: l2 sensitivity C = `clip`, noise N(0, (sigma C)^2). sigma is the least that makes T
    steps (eps, delta)-DP by composition of privacy loss distributions; at q = 1 by the closed form. The number of steps
    is public; only `opacus` fails depending on the rows: without any.
    **Shapes** X (n, p), y (n,) as `design` encodes them; theta (p,). No bound on ||x||_2 is needed.
    **Departures** 1. n is private, so q, T = ceil(epochs expected_rows / batch_size) and the divisor of a step, the
    expected size of a sample, come from the declared `expected_rows`, and the whole table is q = 1.
    2. The paper does not state its loss, start or sampling: here the loss of a row is (y - x'theta)^2 or
    log(1 + exp(-y x'theta)), without a penalty, theta starts at 0, and the last theta is released.

    `loss`: `squared` or `logistic`, see `loss_for`. `engine`: `native` or `opacus`, which draw from the same
    distribution. Raises `UserError` for hyperparameters out of range, an unknown loss or engine, a logistic loss of a
    target that is not -1 and +1, or a budget that no noise meets.
    """
    setting = Setting(batch_size, clip, epochs, learning_rate, expected_rows)
    loss = loss_for(design, loss)
    check_known("engine", engine, ENGINES)
    multiplier = sampled_multiplier(budget.epsilon, budget.delta, setting.rate, setting.steps)
    ledger = Ledger()
    run = import_module(ENGINES[engine]).descend
    theta = run(rng, ledger, *design.encode(train), loss=loss, settings=[setting], multiplier=multiplier)
    return Release(train.domain, budget, ledger, (Coefficients(theta[:, 0]),))


def loss_for(design: Design, loss: str | None) -> str:
    """The loss by name; None is `logistic` for a target of two levels and `squared` for any other.

    Raises `UserError` for an unknown one, or a logistic one of a target that is not -1 and +1.
    """
    if loss is None:
        return "logistic" if design.binary else "squared"
    check_known("loss", loss, SLOPES)
    if loss == "logistic" and not design.binary:
        raise UserError(
            f"DP-SGD: loss=logistic needs a target of two levels, which {design.target!r} is not; use loss=squared"
        )
    return loss


def sparse_of(X: Floats) -> csr_array | None:
    """X with its zeros left out, if that makes products with it faster."""
    from scipy.sparse import csr_array

    return csr_array(X) if np.count_nonzero(X) < SPARSE * X.size else None


def descend(
    rng: np.random.Generator,
    ledger: Ledger,
    X: Floats,
    y: Floats,
    *,
    loss: str,
    settings: Sequence[Setting],
    multiplier: float,
    sparse: csr_array | None = None,
) -> Floats:
    """Theta (p, k): k runs of one rate, number of steps and noise multiplier, side by side on the same samples.

    Each column has the distribution of a run alone; the columns are not independent, as they share their samples. So
    the ledger gets T steps of one sampled Gaussian, which releases k sums of gradients, each in units of its C: its l2
    sensitivity is sqrt k. The gradient of row i is c_i x_i, so that its clipped norm needs no more than |c_i| ||x_i||.
    `sparse`: `sparse_of(X)`, made once for all runs on a table; without it products are of X itself.
    """
    rate, steps, k = settings[0].rate, settings[0].steps, len(settings)
    clips = np.array([setting.clip for setting in settings])
    step_sizes = np.array([setting.learning_rate for setting in settings]) * clips / settings[0].batch
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))[:, None]
    features = X if sparse is None or (rate < 1 and sparse.nnz > SPARSE_SAMPLE * X.size) else sparse
    theta = np.zeros((X.shape[1], k))

    def clipped_gradients(rows: Rows) -> Floats:  # sum_i c_i x_i min(1, C / (|c_i| ||x_i||)) / C, (p, k)
        x = features if isinstance(rows, slice) else features[rows]
        c = SLOPES[loss](x @ theta, y[rows, None])
        c /= np.maximum(clips, np.abs(c) * norms[rows])
        gradients: Floats = x.T @ c
        return gradients

    for noisy in sampled_gaussian(
        rng,
        ledger,
        len(X),
        clipped_gradients,
        sensitivity=math.sqrt(k),
        multiplier=multiplier / math.sqrt(k),
        rate=rate,
        count=steps,
        label="clipped gradients",
    ):
        theta -= step_sizes * noisy
    return theta
