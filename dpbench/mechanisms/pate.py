"""PATE: teachers vote on the labels of public rows, and a student learns them (Papernot et al. 2017, 2018)."""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, unknown
from dpbench.privacy.accounting import check_calibration, gaussian_mu, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.privacy.calibration import check_finite, least_multiplier
from dpbench.privacy.events import Laplace
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian, laplace, unpaid
from dpbench.privacy.renyi import ORDERS, RenyiCurve, renyi_epsilon
from dpbench.releases import Coefficients, Release

AGGREGATORS = ("laplace", "gnmax")
LABEL = "votes"


def pate(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    public: Table | None,
    teachers: int,
    expected_rows: int,
    aggregator: str = "gnmax",
    calibration: str = "tight",
    delta: float | None = None,
    C: float = 1.0,
    iterations: int = 10_000,
    data_dependent: bool = False,
) -> Release:
    """The coefficients of a student: logistic regression on public rows, whose labels k teachers voted for.

    **Source** Papernot et al. (2017, 2018); "Bounding the Excess Risk for Linear Models" (Zhou et al. 2024), D.2. Each
    teacher is a logistic regression on its own part of the training rows; those and the student are fitted by LBFGS.
    **Privacy** Add/remove or replace: in both one record is in one part, so that one teacher may change its vote on
    each of the T public rows. The votes for the two classes of a row change by 1 each (l1: 2, l2: sqrt 2). As they add
    up to k, those for the second class are all that there is to release, and they change by 1.
    `laplace`, `tight`: Laplace noise on them, the least with which T answers are (eps, delta)-DP. `paper`: noise
    of scale 1/gamma on the votes for each class, with 4 T gamma^2 + 2 gamma sqrt(2 T log(1/delta)) = eps (Papernot et
    al. 2017; the authors' code takes delta = 1e-5). `gnmax`: Gaussian noise of deviation sigma on the votes for each
    class, which has the distribution of noise of deviation sigma / sqrt 2 on those for the second. The T answers are T
    / sigma^2 zCDP and one Gaussian of l2 sensitivity sqrt T: `paper` and `tight` give them the eps of the one and of
    the other. The student is post-processing. No budget protects the public rows; their targets are not read.
    **Shapes** X (n, p), y (n,) as `design` encodes them, y = -1 or +1; coefficients (p,), the intercept last.
    **Departures** 1. Where n is private, each row draws its part: with parts of equal size a record that is removed
    would move others to another teacher. Where n is public, parts are of equal size but for one row.

    `public`: T rows. `expected_rows` declares about how many training rows there are. `delta`: that of the published
    gamma, if it is not the budget's. `C`: of the l2 penalty, as in scikit-learn.
    `data_dependent`: compute the cost on these very votes (`votes_rdp`), which is private itself: the release names it
    among its `nonprivate_inputs`, and nothing is calibrated by it.
    Raises `UserError` for a target that is not -1 and +1, a design without intercept, no public rows, more teachers
    than rows, or another setting out of range.
    """
    check_calibration(calibration)
    check_finite(budget.epsilon)
    _check_settings(design, aggregator, data_dependent, C=C, iterations=iterations, delta=delta)
    _check_teachers(teachers, len(train) if budget.relation == "replace" else expected_rows, budget.relation)
    if public is None or not len(public):
        raise UserError("pate needs public rows for its teachers to label; set sample.public_rows, such as 100")
    if public.domain != train.domain:
        raise UserError("pate needs public rows that have all attributes of the private ones")
    X, y = design.encode(train)
    questions, _ = design.encode(public)
    part = _parts(len(train), teachers, budget.relation, rng)
    votes = np.zeros(len(questions))
    for teacher in range(teachers):
        mine = part == teacher
        votes += questions @ _fitted(X[mine], y[mine], C, iterations) > 0
    ledger, diagnostics = Ledger(), {}
    taken = [f"the features of {len(questions)} public rows, which no budget protects"]
    if aggregator == "laplace":
        margins = _laplace(rng, ledger, votes, teachers, budget, calibration, delta or budget.delta)
    else:
        margins, sd = _gnmax(rng, ledger, votes, teachers, budget, calibration)
    if data_dependent:
        curve = votes_rdp(unpaid(votes, label="votes without noise"), teachers, sd)
        event = RenyiCurve(LABEL, tuple(ORDERS), tuple(curve))
        diagnostics["data_dependent_epsilon"] = renyi_epsilon([event], budget.delta)
        taken.append("data_dependent_epsilon among the diagnostics: a function of the votes without noise")
    student = _fitted(questions, np.where(margins > 0, 1.0, -1.0), C, iterations)
    return Release(train.domain, budget, ledger, (Coefficients(student),), diagnostics, tuple(taken))


def _parts(n: int, teachers: int, relation: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """The teacher (n,) of each row."""
    if relation == "add_remove":
        return rng.integers(teachers, size=n)
    return rng.permutation(np.arange(n) % teachers)


def _fitted(X: Floats, y: Floats, C: float, iterations: int) -> Floats:
    """The coefficients (p,) of logistic regression by scikit-learn's LBFGS; the last column of X (n, p) is constant.

    Rows of one class say that class, with log odds (n + 1/2) / (1/2) and no slopes; no row says the first class.
    """
    from sklearn.linear_model import LogisticRegression

    if abs(total := y.sum()) == len(y):
        return np.append(np.zeros(X.shape[1] - 1), np.sign(total) * math.log(2 * len(y) + 1))
    solver = LogisticRegression(C=C, max_iter=iterations)
    with warnings.catch_warnings(action="ignore"):  # of convergence: it would tell of the rows
        solver.fit(X[:, :-1], y)
    return np.append(solver.coef_[0], solver.intercept_)


def _laplace(
    rng: np.random.Generator,
    ledger: Ledger,
    votes: Floats,
    teachers: int,
    budget: Budget,
    calibration: str,
    delta: float,
) -> Floats:
    """The noisy votes (T,) for the second class in excess of half of all votes, or of the noisy votes for the first."""
    if calibration == "paper":
        slope = math.sqrt(2 * len(votes) * math.log(1 / delta))
        gamma = budget.epsilon / (slope + math.sqrt(slope**2 + 4 * len(votes) * budget.epsilon))
        noise = {"sensitivity": 2.0, "multiplier": 1 / (2 * gamma)}
        both = np.stack([teachers - votes, votes], axis=1)
        return np.concatenate([np.diff(laplace(rng, ledger, pair, **noise, label=LABEL)) for pair in both])
    multiplier = least_multiplier(budget.epsilon, budget.delta, Laplace(LABEL, 1.0, 1.0, len(votes)))
    noise = {"sensitivity": 1.0, "multiplier": multiplier}
    return np.array([laplace(rng, ledger, one, **noise, label=LABEL) for one in votes]) - teachers / 2


def _gnmax(
    rng: np.random.Generator, ledger: Ledger, votes: Floats, teachers: int, budget: Budget, calibration: str
) -> tuple[Floats, float]:
    """The noisy votes (T,) for the second class in excess of half of all votes, and the deviation of their noise."""
    mu = gaussian_mu(budget.epsilon, budget.delta)
    if calibration == "paper":
        mu = math.sqrt(2 * zcdp_rho(budget.epsilon, budget.delta))
    sensitivity = math.sqrt(len(votes))
    noisy = gaussian(rng, ledger, votes, sensitivity=sensitivity, multiplier=1 / mu, label=LABEL)
    return noisy - teachers / 2, sensitivity / mu


def votes_rdp(votes: Floats, teachers: int, sd: float, orders: Floats = ORDERS) -> Floats:
    """The Renyi DP, at each of the orders, of the labels that Gaussian noise of this `sd` makes of just these votes.

    A label is one of two, the second with probability Phi((v - k/2) / sd) where v of k teachers vote for it. So the
    Renyi divergence of its distribution at v from those at v - 1 and v + 1, which one teacher can make of v, is known;
    the larger is summed over the `votes` (T,). Papernot et al. (2018), Theorem 6, bounds it for any number of classes.
    """
    from scipy.special import log_ndtr, logsumexp

    def distributions(v: Floats) -> Floats:  # the logarithms of the probabilities (2, T)
        z = (np.clip(v, 0, teachers) - teachers / 2) / sd
        return np.stack([log_ndtr(-z), log_ndtr(z)])

    a, here = orders[:, None, None], distributions(votes)
    logs = [logsumexp(a * here + (1 - a) * distributions(other), axis=1) for other in (votes - 1, votes + 1)]
    total: Floats = np.maximum(np.max(logs, axis=0), 0.0).sum(axis=1) / (orders - 1)
    return total


def _check_settings(
    design: Design,
    aggregator: str,
    data_dependent: bool,
    *,
    C: float,
    iterations: int,
    delta: float | None,
) -> None:
    """Raises `UserError` for a setting out of range, or a design that the classifiers cannot have."""
    if aggregator not in AGGREGATORS:
        raise unknown("aggregator", aggregator, AGGREGATORS)
    if data_dependent and aggregator != "gnmax":
        raise UserError("pate: data_dependent=true is for aggregator=gnmax alone")
    if not design.binary:
        raise UserError(f"pate needs a target of two levels, -1 and +1; {design.target!r} has other values")
    if not design.intercept:
        raise UserError("pate: its classifiers have an intercept; set design.intercept=true")
    if not (0 < C < math.inf and iterations >= 1 and (delta is None or 0 < delta < 1)):
        raise UserError(
            "pate: C must be greater than 0, iterations at least 1, and delta null or between 0 and 1, both "
            f"excluded; they are {C:g}, {iterations} and {delta}"
        )


def _check_teachers(teachers: int, rows: int, relation: str) -> None:
    """Raises `UserError` for no teacher, or more than there are rows, by what is public of them."""
    if teachers < 1:
        raise UserError(f"pate: teachers must be at least 1, not {teachers}")
    if teachers > rows:
        known = "training rows there are" if relation == "replace" else "rows are declared by expected_rows"
        raise UserError(f"pate: {teachers} teachers are more than the {rows} {known}; lower teachers")
