"""Searches for the hyperparameters of query release: what each ledger holds, what each chooses, what is refused."""

import json
import math
from dataclasses import replace
from functools import wraps

import numpy as np
import pytest

from dpbench.config import compose
from dpbench.config.registry import declared
from dpbench.errors import NoEstimateError, UserError
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms import query_search as module
from dpbench.mechanisms.pep import pep
from dpbench.mechanisms.query_search import METHODS, query_search, settings_of
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.accounting import spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import ZCDP, Gaussian
from dpbench.privacy.renyi import RandomSearch
from dpbench.releases import SyntheticRows
from dpbench.releases.release_type import answers_of
from mechanisms.helpers import PARTS

DELTA = 1e-6
GRID = {"rounds": [2, 30], "projections": [1, 20]}


def search(table, tuning, *, epsilon=1.0, seed=0, method="pep", grid=GRID, **change):
    rng = np.random.default_rng(seed)
    settings = {"shared": {"rows": 50}, "workload": 2, **change}
    return query_search(
        table, Budget(epsilon, DELTA, "replace"), rng, method=method, tuning=tuning, grid=grid, **settings
    )


def max_error(table, release):
    cliques = cliques_of(table.domain, 2)
    true = QueryWorkload(table.domain.sizes, cliques).of_rows(table.codes)
    return np.abs(true - answers_of(release, cliques, len(table))).max()


def test_the_optimistic_release_is_the_best_of_all_runs_and_its_ledger_holds_that_one(small_table):
    release = search(small_table, "optimistic")
    alone = [
        pep(small_table, Budget(1.0, DELTA, "replace"), own, workload=2, rows=50, **setting)
        for setting, own in zip(settings_of(GRID), np.random.default_rng(0).spawn(4), strict=True)
    ]
    errors = [max_error(small_table, one) for one in alone]
    best = int(np.argmin(errors))
    assert release.diagnostics["setting"] == settings_of(GRID)[best]
    assert max_error(small_table, release) == min(errors) < max(errors)
    assert release.ledger.events == alone[best].ledger.events
    assert spent(release.ledger, DELTA).rho == pytest.approx(zcdp_rho(1.0, DELTA))
    assert "max errors of 4 runs, of which all but the released one are unpaid" in release.nonprivate_inputs[0]


def test_the_random_search_is_paid_in_full_and_says_nothing_of_the_number_of_runs(small_table):
    releases = [search(small_table, "random_search", seed=seed, gamma=0.2) for seed in range(3)]
    for release in releases:
        (event,) = release.ledger.events
        assert isinstance(event, RandomSearch)
        ((run, score),) = event.alternatives
        assert isinstance(run, ZCDP) and isinstance(score, Gaussian)
        assert score.sensitivity == 1 / len(small_table)
        assert score.rho == pytest.approx(0.1 * (score.rho + run.rho))
        assert 0.999 <= spent(release.ledger, DELTA).epsilon <= 1.0
        assert release.nonprivate_inputs == ()
        assert set(release.diagnostics) == {"setting", "score"}
    assert len({json.dumps(release.ledger.to_list()) for release in releases}) == 1


def test_a_run_of_the_random_search_draws_what_its_alternative_says(small_table, monkeypatch):
    """No more, and all of it, whatever the setting: else that of the runs would depend on what is searched."""
    rhos = []

    @wraps(pep)
    def watched(*given, **settings):
        release = pep(*given, **settings)
        rhos.append(spent(release.ledger, DELTA).rho)
        return release

    monkeypatch.setitem(METHODS, "pep", watched)
    release = search(small_table, "random_search", seed=1, gamma=0.1)
    (event,) = release.ledger.events
    assert len(rhos) > 3
    np.testing.assert_allclose(rhos, event.alternatives[0][0].limit, rtol=1e-8)


@pytest.mark.parametrize("tuning", module.TUNINGS)
def test_the_best_setting_is_found_where_noise_is_small(tuning, small_table):
    """Two rounds measure two queries. All of 10 runs on average have two with probability .09; the seed is fixed."""
    release = search(small_table, tuning, epsilon=500.0, grid={"rounds": [2, 30, 3]}, gamma=0.1)
    assert release.diagnostics["setting"] == {"rounds": 30}
    assert max_error(small_table, release) < 0.05


def test_runs_that_diverge_are_passed_over(small_table, monkeypatch):
    @wraps(pep)
    def diverges(*given, rounds, **settings):
        if rounds == 30:
            raise NoEstimateError("diverged")
        return pep(*given, rounds=rounds, **settings)

    monkeypatch.setitem(METHODS, "pep", diverges)
    for tuning in module.TUNINGS:
        assert search(small_table, tuning, seed=3, gamma=0.05).diagnostics["setting"]["rounds"] == 2
        with pytest.raises(NoEstimateError, match="pep gave a distribution"):
            search(small_table, tuning, grid={"rounds": [30]}, gamma=0.5)


@pytest.mark.parametrize("tuning", module.TUNINGS)
@pytest.mark.parametrize(
    ("method", "shared"),
    [
        ("pmw_pub", {}),
        ("pep_pub", {}),
        ("gem_pub", {"latent": 3, "hidden": [4], "components": 8, "iterations": 2, "pretraining": 1}),
    ],
)
def test_methods_with_public_rows_are_given_these(method, shared, tuning, small_table):
    given = {"method": method, "grid": {"rounds": [2, 3]}, "shared": {"rows": 50, **shared}, "gamma": 0.5}
    public = small_table.take(np.arange(30))
    release = search(small_table, tuning, public=public, **given)
    assert any("public rows, which no budget protects" in text for text in release.nonprivate_inputs)
    assert spent(release.ledger, DELTA).epsilon <= 1.0 + 1e-9
    held = {tuple(row) for row in release[SyntheticRows].table.codes}
    assert method == "gem_pub" or held <= {tuple(row) for row in public.codes}
    with pytest.raises(UserError, match=f"{method} needs public rows"):
        search(small_table, tuning, **given)


@pytest.mark.parametrize("tuning", module.TUNINGS)
def test_programmes_that_were_ended_are_counted_in_the_best_run_alone(tuning, small_table, monkeypatch):
    """Each run says its own number: that of the setting, of which the best is known where noise is small."""

    @wraps(pep)
    def ended(*given, rounds, **settings):
        release = pep(*given, rounds=rounds, **settings)
        return replace(release, diagnostics={**release.diagnostics, "unfinished": rounds})

    monkeypatch.setitem(METHODS, "pep", ended)
    found = search(small_table, tuning, epsilon=500.0, grid={"rounds": [2, 30, 3]}, gamma=0.1).diagnostics
    assert found["unfinished"] == 30


def test_the_published_grids_are_of_parameters_that_the_methods_have():
    names = [name for name, node in declared("mechanism").items() if node["_target_"].endswith(".query_search")]
    assert len(names) == 14
    for name in names:
        part = PARTS[name]
        method = PARTS[part.parameters["method"]]
        for parameter in (*part.parameters["grid"], *part.parameters["shared"]):
            assert method.takes(parameter)
        if part.parameters["tuning"] == "random_search":
            mean = RandomSearch("", part.parameters["eta"], part.parameters["gamma"], ()).mean
            assert mean == pytest.approx(math.prod(map(len, part.parameters["grid"].values())), rel=0.02)
            assert part.hide_runtime


def test_the_output_of_gem_is_chosen_by_a_grid_that_is_paid_for_or_marked_as_unpaid(small_table):
    """The four of the authors' code, as docs/query_release.md has them."""
    both, grid = ("gem_small_search", "gem_small_best"), []
    for name in both:
        grid += [f"mechanism.{name}.grid.rounds=[2]", f"+mechanism.{name}.grid.ema=[0,0.5,0.9,0.99]"]
    line = [f"mechanism=[{','.join(both)}]", "relation=replace", *grid, "mechanism.gem_small_search.gamma=0.25"]
    small = {"shared": {"latent": 4, "hidden": [4], "components": 8, "iterations": 2, "rows": 50}, "workload": 2}
    for part in compose([*line, "model=[released_answers]", "metric=[query_error_max]"]).mechanisms:
        settings = {**part.parameters, **small}
        release = query_search(small_table, Budget(1.0, DELTA, "replace"), np.random.default_rng(0), **settings)
        unpaid = any("4 runs" in text and "unpaid" in text for text in release.nonprivate_inputs)
        assert unpaid == (part.name == "gem_small_best") and release.diagnostics["setting"].keys() == {"rounds", "ema"}
        assert isinstance(release.ledger.events[0], RandomSearch) == (part.name == "gem_small_search")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "aim"}, "unknown method"),
        ({"tuning": "best"}, "unknown tuning"),
        ({"grid": {}}, "grid must map parameters of the method to lists"),
        ({"grid": {"rounds": 5}}, r"grid\.rounds must list at least one value, not 5"),
        ({"grid": {"rounds": [0]}}, "rounds must be"),
        ({"grid": {"round": [5]}}, "unknown parameter of pep 'round'; did you mean 'rounds'"),
        ({"shared": {"rounds": 3}}, "rounds is in the grid: leave it out of shared"),
        ({"method": "pep_pub", "shared": {"public": None}}, "unknown parameter of pep_pub 'public'"),
        ({"epsilon": math.inf}, "needs a finite epsilon"),
    ],
)
def test_what_is_refused(change, message, small_table):
    with pytest.raises(UserError, match=message):
        search(small_table, **{"tuning": "random_search", **change})
