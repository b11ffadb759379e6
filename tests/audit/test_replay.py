"""Every mechanism in conf/ reads the private rows through its noise only, and broken ones are caught."""

import copy
import math
from functools import cache, partial, wraps

import numpy as np
import pytest
from mechanisms.helpers import DELTA, DESIGNS, PARTS, counts, maker, rows

from dpbench.audit.neighbours import odd_tables
from dpbench.audit.replay import check_replay, exemption
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError
from dpbench.mechanisms import (
    adaptive,
    adassp,
    aim,
    dpsgd_search,
    fitting,
    jlt,
    objpert,
    privtree,
    query_search,
    snsynth,
    ssp,
)
from dpbench.mechanisms.dpsgd import dpsgd
from dpbench.mechanisms.pep import pep
from dpbench.privacy import noise
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import DiscreteGaussian
from dpbench.privacy.events import ExponentialMechanism, Gaussian, PureDP
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.recording import record
from dpbench.releases import Release, SufficientStatistics

LONG = (
    *("gem", "gem_pub", "gem_small", "dpgd", "dpgd_wide", "aim_mixture", "residual_planner_mixture"),
    *("mwem_past_best", "mwem_past_search"),
)
EPSILONS = (0.5, 20.0)  # the noise is most of an answer, or almost none


def cases(relations=1):
    """Every mechanism, on every kind of table that it takes, between the neighbours that it states.

    Not marked slow: the last of these kinds, which has the most kinds of attributes, with the first of these
    `relations`; of the searches over settings, which are one mechanism over many, those over MWEM; of configs of one
    function the quickest.
    """
    for name, part in PARTS.items():
        kinds = [
            kind
            for kind, design in DESIGNS.items()
            if (design.binary or not part.labels) and (design.counted or not counts(part))
        ]
        for kind in kinds:
            for i, relation in enumerate(part.relations or ["add_remove"]):
                search = part.target.endswith(".query_search") and not name.startswith("mwem_")
                quick = kind == kinds[-1] and i < relations and not search and name not in LONG
                marks = [] if quick else [pytest.mark.slow]
                yield pytest.param(part, kind, relation, id=f"{name}-{kind}-{relation}", marks=marks)


def reason_of(make, table):
    """Why it is exempt; it is not where its noise says that there is no estimate."""
    try:
        return exemption(make(table))
    except NoEstimateError:
        return None


@pytest.fixture
def without_worker(monkeypatch):
    """The networks of smartnoise-synth give back their training rows: only their ledger is wanted here."""
    monkeypatch.setattr(snsynth, "_python", lambda: None)
    monkeypatch.setattr(snsynth, "_work", lambda python, spec, values, timeout: (values[: spec["rows"]], 1.0))


def at_an_epsilon():
    """The cases at each epsilon. Not marked slow: of two relations each at one of the two."""
    for case in cases(relations=2):
        part, _, relation = case.values
        for epsilon in EPSILONS:
            elsewhere = len(part.relations) == 2 and part.relations.index(relation) != EPSILONS.index(epsilon)
            marks = case.marks or ([pytest.mark.slow] if elsewhere else [])
            yield pytest.param(*case.values, epsilon, id=f"{case.id}-{epsilon}", marks=marks)


@pytest.mark.parametrize(("part", "kind", "relation", "epsilon"), list(at_an_epsilon()))
def test_whatever_is_read_of_the_rows_is_noised_and_within_its_sensitivity(
    part, kind, relation, epsilon, without_worker
):
    for change in [{"calibration": name} for name in part.calibrations] if part.takes("calibration") else [{}]:
        make = maker(part, kind, epsilon, relation=relation, **change)
        if reason := recorded(part.name, 3)[0]:
            pytest.skip(f"{part.name} is not replayed: {reason}")
        assert check_replay(make, rows(kind, 1000), relation=relation) == []


@pytest.mark.parametrize(("part", "kind", "relation"), list(cases()))
def test_neither_does_anything_depend_on_the_support_or_on_few_rows(part, kind, relation, without_worker):
    few = {"teachers": 4} if part.takes("teachers") else {}
    few |= {"batch_size": 4} if part.name == "dpsgd_minibatch" else {}
    make = maker(part, kind, 4.0, relation=relation, **few)
    for table in odd_tables(rows(kind, 300)).values():
        if part.target.endswith(".snsynth") or not part.private:
            pytest.skip("it is not private, or its noise is the claim of a third party")
        assert check_replay(make, table, relation=relation) == []


WITH_DISCRETE_NOISE = ["ssp_intervals", "adassp", "binagg", "binagg_centred", "mst", "mwem_pgm", "aim"]


@pytest.mark.parametrize(
    "name",
    [*WITH_DISCRETE_NOISE, *("gaussian_marginals", "residual_planner", "aim_grem", "tab_pe", "margnet", "rap_pp")],
)
def test_discrete_noise_is_all_that_is_drawn_and_keeps_the_budget(name):
    part = PARTS[name]
    for relation in part.relations:
        make = maker(part, "numeric", 0.5, relation=relation, noise="discrete")
        assert check_replay(make, rows("numeric", 300), relation=relation) == []
        ledger = make(rows("numeric", 300)).ledger
        assert {type(event) for event in ledger.events} <= {DiscreteGaussian, ExponentialMechanism, PureDP}
        assert 0.49 < spent(ledger, DELTA).epsilon <= 0.5 * (1 + 1e-9)


@cache
def recorded(name, seed):
    """Why it is exempt, and what it drew in a run."""
    kind = "both" if counts(PARTS[name]) else "categorical"
    with record() as tape:
        reason = reason_of(maker(PARTS[name], kind, 1.0, seed=seed), rows(kind, 1000))
    return reason, tape


def test_only_what_is_not_private_or_claimed_by_others_is_left_out(without_worker):
    reasons = {}
    for name, part in PARTS.items():
        reasons[name], _ = recorded(name, 3)
        assert (reasons[name] == "it is not private") == (not part.private and name != "zero")  # zero reads no row
        assert (reasons[name] == "its noise is the claim of a third party") == part.target.endswith(".snsynth")
    assert sum(reason is None for reason in reasons.values()) > len(reasons) / 2


@pytest.mark.parametrize("name", PARTS)
def test_another_generator_draws_another_noise(name, without_worker):
    """No mechanism has a seed of its own: no two of its answers have the same noise under two generators.

    Where nothing is measured, other queries are selected.
    """
    part, told, selected = PARTS[name], [], []
    if not part.private:
        pytest.skip("it is not private")
    for seed in (3, 4):
        reason, tape = recorded(name, seed)
        if reason:
            pytest.skip(reason)
        kinds = ("gaussian", "gaussian_batch", "laplace", "projection", "objective")
        told.append([e.answer for e in tape if e.event and e.event.to_dict()["kind"] in kinds])
        selected.append(str([e.answer for e in tape if isinstance(e.event, ExponentialMechanism)]))
    assert told[0] or selected[0] != selected[1]
    assert not any(np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-9) for a, b in zip(*told, strict=False))


# --- broken mechanisms are caught ----------------------------------------------------------------------------------


def halved(rng, ledger, value, **settings):
    """Half of the noise that the ledger says."""
    return value + (noise.gaussian(rng, ledger, value, **settings) - value) / 2


def recorded_only(function, label):
    """Noise that is drawn and not used, for draws of this label."""

    def draw(rng, ledger, value, **settings):
        noisy = function(rng, ledger, value, **settings)
        return np.asarray(value) if settings["label"] == label else noisy

    return draw


@wraps(pep)
def made_twice(train, budget, rng, **settings):
    """A release of which the first try is in no ledger."""
    pep(train, budget, rng.spawn(1)[0], **settings)
    return pep(train, budget, rng, **settings)


def repeated(rng, ledger, value, **settings):
    """The noise of the first draw once more."""
    return noise.gaussian(copy.deepcopy(rng) if settings["label"] == "X'y" else rng, ledger, value, **settings)


def doubled(rng, ledger, scores, **settings):
    return noise.exponential_mechanism(rng, ledger, 2 * np.asarray(scores), **settings)


def doubled_for_all(rng, ledger, scores, **settings):
    return noise.exponential_mechanisms(rng, ledger, 2 * np.asarray(scores), **settings)


def private_argmax(rng, ledger, scores, **settings):
    noise.exponential_mechanism(rng, ledger, scores, **settings)
    return int(np.argmax(scores))


def one_seed(rng, ledger, value, **settings):
    return noise.gaussian(np.random.default_rng(0), ledger, value, **settings)


def unrecorded(rng, ledger, value, **settings):
    return noise.gaussian(rng, Ledger(), value, **settings)


def longer_gradient(rng, ledger, gradient, minimise, **settings):
    """The gradient of an objective in which each record counts four times."""
    ridge = settings["sensitivity"] ** 2 / 4 / math.expm1(settings["offset"])
    return noise.perturbed_minimiser(
        rng, ledger, lambda theta: 4 * gradient(theta) - 3 * ridge * theta, minimise, **settings
    )


NOISELESS = "reads the rows without noise"
PLANTED = {  # module and function that is broken, mechanism and parameters, what is said
    "noise halved in the draw": (fitting, "gaussian", halved, "aim", {}, NOISELESS),
    "scores doubled": (aim, "exponential_mechanism", doubled, "aim", {}, "'selection' changes by"),
    "noise halved in the one loop": (adaptive, "gaussian", halved, "mwem_past", {}, NOISELESS),
    "its scores doubled": (adaptive, "exponential_mechanisms", doubled_for_all, "pep", {}, "'selection' changes by"),
    "the private argmax": (aim, "exponential_mechanism", private_argmax, "aim", {}, NOISELESS),
    "lambda_min not noised": (
        *(adassp, "gaussian", recorded_only(noise.gaussian, "lambda_min(X'X)"), "adassp", {}),
        NOISELESS,
    ),
    "one seed for all draws": (adassp, "gaussian", one_seed, "adassp", {}, "adds the same noise"),
    "draws outside of the ledger": (adassp, "gaussian", unrecorded, "adassp", {}, "its ledger does not hold"),
    "the test of JLT without noise": (
        *(jlt, "laplace", recorded_only(noise.laplace, "sigma_min(A)^2"), "jlt"),
        {"calibration": "paper", "ratio": 0.01},
        NOISELESS,
    ),
    "the score of a search without noise": (
        *(dpsgd_search, "gaussian", recorded_only(noise.gaussian, "score"), "dpsgd_random", {}),
        NOISELESS,
    ),
    "a run of a search that is made twice": (
        *(query_search, "METHODS", {"pep": made_twice}, "pep_search", {"gamma": 0.5}),
        "-zCDP in runs that may have",
    ),
    "the score of a search over queries without noise": (
        *(query_search, "gaussian", recorded_only(noise.gaussian, "score"), "pep_search", {"gamma": 0.5}),
        NOISELESS,
    ),
    "the scores of all runs, not named": (
        *(dpsgd_search, "unpaid", lambda value, label: value, "dpsgd_optimistic", {}),
        NOISELESS,
    ),
    "records that count four times": (objpert, "perturbed_minimiser", longer_gradient, "objpert", {}, "'b' changes by"),
    "a tree without noise": (privtree, "tree_laplace", lambda *_, **__: np.array, "binagg", {}, NOISELESS),
}


def problems_of(name, change):
    part = PARTS[name]
    make = maker(part, "categorical", 20.0, **dict(change))
    return check_replay(make, rows("categorical", 600), relation=part.relations[0])


of_shipped_code = cache(problems_of)


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_caught(mistake, monkeypatch):
    module, function, broken, name, change, said = PLANTED[mistake]
    change = tuple(change.items())
    assert of_shipped_code(name, change) == []
    monkeypatch.setattr(module, function, broken)
    problems = problems_of(name, change)
    assert any(said in problem for problem in problems), problems


def test_xy_with_the_noise_of_xx_is_caught(monkeypatch):
    """Its exact value plus noise that was drawn for another one: nothing was drawn for an event of the ledger."""

    def reused(rng, ledger, value, *, label, sensitivity, multiplier):
        settings = {"label": label, "sensitivity": sensitivity, "multiplier": multiplier}
        if label != "X'y":
            told = noise.gaussian(rng, ledger, value, **settings)
            reused.z = (told - value).ravel()[: len(value)] / (multiplier * sensitivity) if np.ndim(value) else None
            return told
        ledger.record(Gaussian(label, sensitivity, multiplier))
        return value + multiplier * sensitivity * reused.z[: len(value)]

    make = maker(PARTS["adassp"], "numeric", 1.0)
    for module in (ssp, adassp):
        monkeypatch.setattr(module, "gaussian", reused)
    problems = check_replay(make, rows("numeric"))
    assert any(NOISELESS in problem for problem in problems)
    assert any("no function of privacy.noise has drawn" in problem for problem in problems)


def mean_release(table: Table, rng, *, sensitivity: float = 1.0, n: bool = False, bounds: bool = False) -> Release:
    """The number of rows with noise, and whatever of the rows the arguments let through."""
    ledger = Ledger()
    reach = float(table.column("a").max(initial=0)) + 1 if bounds else 1.0
    total = noise.gaussian(rng, ledger, [len(table)], sensitivity=sensitivity * reach, multiplier=2.0, label="n")
    statistics = SufficientStatistics(np.outer(total, total), total, 2.0, 2.0)
    diagnostics = {"rows": len(table)} if n else {}
    return Release(table.domain, Budget(1.0), ledger, (statistics,), diagnostics)


def test_bounds_read_off_the_rows_and_a_true_number_among_the_diagnostics_are_caught():
    assert check_replay(mean_release, rows("both")) == []
    (problem, *_) = check_replay(partial(mean_release, bounds=True), rows("both"))
    assert "sensitivity=4.0" in problem
    (problem, *_) = check_replay(partial(mean_release, n=True), rows("both"))
    assert "diagnostics changed" in problem
    (problem,) = check_replay(partial(mean_release, sensitivity=0.25), rows("both"))
    assert problem == "'n' changes by 4 times the sensitivity in the ledger, without a record"


def test_where_one_record_is_replaced_n_may_be_read_and_a_sum_changes_twice():
    def make(table: Table, rng, sensitivity: float) -> Release:
        ledger, y = Ledger(), DESIGNS["numeric"].encode(table)[1]
        told = noise.gaussian(rng, ledger, [y.sum()], sensitivity=sensitivity, multiplier=2.0, label="sum")
        statistics = SufficientStatistics(np.eye(1), told / max(len(table), 1), 2.0, 2.0)
        return Release(table.domain, Budget(1.0), ledger, (statistics,))

    table = rows("numeric")
    last = DESIGNS["numeric"].encode(table)[1][-1]
    furthest = max(9 - last, last + 2)
    assert check_replay(partial(make, sensitivity=furthest), table, relation="replace") == []
    assert check_replay(partial(make, sensitivity=0.99 * furthest), table, relation="replace")
    assert any(NOISELESS in problem for problem in check_replay(partial(make, sensitivity=20.0), table))


def test_noise_that_an_engine_draws_itself_is_named():
    """Opacus takes no empty table, so n is held fixed."""

    def make(table, rng):
        settings = {"batch_size": 50, "clip": 0.5, "epochs": 1, "learning_rate": 0.1, "expected_rows": 100}
        return dpsgd(table, Budget(1.0), rng, design=DESIGNS["both"], engine="opacus", **settings)

    problems = check_replay(make, rows("both"), relation="replace")
    assert any("no function of privacy.noise has drawn" in problem for problem in problems)
