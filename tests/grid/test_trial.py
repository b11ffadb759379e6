"""One release and the trials on it, as their supervisor sees them: who is asked, and what is recorded."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from dpbench.config import compose
from dpbench.data.domain import Attribute, Domain
from dpbench.errors import UserError, WorkersLostError
from dpbench.grid import trial
from dpbench.grid.fits import write_fit
from dpbench.grid.plan import make_plan
from dpbench.grid.process import Reply
from dpbench.grid.records import Failure, spent_to_dict
from dpbench.grid.release_claims import Claims
from dpbench.grid.releases import write_release
from dpbench.grid.store import Store
from dpbench.models.fit import Fit
from dpbench.privacy.accounting import spent
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Release, SufficientStatistics

SPENT = {"epsilon": 1.0, "delta": 1e-5, "rho": 0.1, "mu": None, "ex_post": None}
FACTS = {"spent": SPENT, "provenance": {"commit": "old"}, "nonprivate_inputs": ["bounds"], "arrays_sha256": "ab"}
PLACE = ("a", 0, 1)
SCORE = {"name": "mse", "value": 0.5, "unit": "", "direction": "lower"}


class Office:
    """A supervisor's processes, which answer as they are told."""

    def __init__(self, bench):
        self.asked = []
        self.replies = {
            "release": Reply("done", seconds={"release": 2.0}, peak_mb=50.0, answer={**FACTS, "place": PLACE}),
            "model": Reply("done", seconds={"model": 0.5}, peak_mb=70.0, answer={"notes": {"rank": 3}, "place": PLACE}),
            "metrics": Reply("done", seconds={"metrics": 0.1}, peak_mb=60.0, answer={"scores": [SCORE]}),
        }
        self.rows = self.model = self
        self.plan = make_plan(compose(bench.settings("mechanism=[adassp]", "repetitions=1", "metric=[mse]")))
        self.item, self.store = self.plan.releases[0], Store(bench.results, "grid")
        self.store.prepare()
        self.store_release()
        commit = {"commit": "new"}
        self.context = trial.Context(self.store, self.plan.settings, commit, Claims(self.store), {}, pool=self)

    def store_release(self, multiplier=100.0, **recorded):
        """Store a release with one Gaussian, as a process that makes one does; what it cost."""
        key, ledger = self.item.key, Ledger()
        gaussian(np.random.default_rng(0), ledger, np.zeros(2), sensitivity=1.0, multiplier=multiplier, label="sums")
        statistics = SufficientStatistics(np.eye(2), np.ones(2), 1.0, 1.0)
        release = Release(Domain((Attribute.categorical("a", "uv"),)), key.budget, ledger, (statistics,))
        cost = spent(ledger, key.budget.delta)
        record = {"spent": {**spent_to_dict(cost), **recorded}, "provenance": {}, "runtime": {}}
        write_release(self.store, key, release, record, self.store.releases.next_turn(key.id))
        return cost

    @contextmanager
    def pair(self):
        yield self

    def ask(self, message, requests, within):
        self.asked += [message["do"] for _ in requests]
        return [replace(self.replies[message["do"]]) for _ in requests]

    def run(self, **context):
        outcome = trial.run_batch([self.item], replace(self.context, **context))
        self.context.claims.give_back(outcome.claimed)
        return next(self.store.read_trials(self.item.trials[:1]), None)


@pytest.fixture
def office(bench):
    return Office(bench)


def test_a_trial_records_scores_costs_and_what_each_phase_took(office):
    found = office.run()
    assert office.asked == ["release", "model", "metrics"]
    assert (found.status, found.phase, found.error) == ("done", None, None)
    assert found.key == office.item.trials[0]
    assert [(score.name, score.value) for score in found.scores] == [("mse", 0.5)]
    assert (found.notes, found.nonprivate_inputs) == ({"rank": 3}, ("bounds",))
    assert (found.provenance["commit"], found.release_provenance["commit"]) == ("new", "old")
    runtime = found.runtime
    assert (runtime.release_seconds, runtime.release_peak_mb, runtime.peak_mb) == (2.0, 50.0, 70.0)
    assert (runtime.model_seconds, runtime.metrics_seconds) == (0.5, 0.1)


def test_what_a_release_took_is_left_out_where_it_depends_on_a_secret(office):
    office.item = replace(office.item, hide_runtime=True)
    office.replies["metrics"].peak_mb = 1e6  # the process that made the release
    runtime = office.run().runtime
    assert (runtime.release_seconds, runtime.release_peak_mb, runtime.peak_mb) == (None, None, 70.0)


def test_what_a_release_took_is_left_out_where_its_ledger_says_that_it_is_secret(office):
    office.replies["release"].answer["hidden"] = True
    office.replies["metrics"].peak_mb = 1e6
    runtime = office.run().runtime
    assert (runtime.release_seconds, runtime.release_peak_mb, runtime.peak_mb) == (None, None, 70.0)


def test_what_a_release_spent_is_computed_here_whatever_the_process_that_made_it_says(office):
    """It has run the code of the mechanism, which may have changed what computes there."""
    cost = office.store_release(50.0)
    assert office.run().spent == cost and cost.epsilon != SPENT["epsilon"]
    for multiplier, recorded, message in ((1e-3, {}, "the budget was"), (50.0, {"epsilon": 1e-3}, "by its ledger")):
        office.store_release(multiplier, **recorded)
        found = office.run(force=True)
        assert (found.status, found.phase, found.error.type) == ("failed", "budget", "OverspentError")
        assert message in found.error.message and found.spent is None
        assert office.asked[-1] == "release", "nobody may fit a model to it"


@pytest.mark.parametrize("where", ["release", "model", "metrics"])
def test_what_fails_is_recorded_with_its_phase_and_nobody_is_asked_after_it(office, where):
    office.replies[where] = Reply("failed", where, Failure("ValueError", "no"))
    found = office.run()
    assert (found.status, found.phase, found.error) == ("failed", where, Failure("ValueError", "no"))
    assert office.asked[-1] == where
    assert found.scores == ()


def test_a_fit_that_is_stored_is_scored_without_its_model(office):
    key = office.item.trials[0].fit
    record = {"arrays_sha256": "ab", "runtime": {"seconds": 9.0, "peak_mb": 80.0}}
    write_fit(office.store, key, Fit(np.ones(3), notes={"rank": 1}), record)
    found = office.run()
    assert office.asked == ["release", "metrics"]
    assert (found.notes, found.runtime.model_seconds, found.runtime.peak_mb) == ({"rank": 1}, 9.0, 80.0)
    office.run(force=True)
    assert office.asked[2:] == ["release", "model", "metrics"]


def test_a_trial_that_another_run_has_stored_is_not_run_again(office):
    office.run()
    office.run()
    assert office.asked == ["release", "model", "metrics"]
    office.run(retry_failed=True)
    assert len(office.asked) == 3
    office.replies["model"] = Reply("failed", "model", Failure("ValueError", "no"))
    office.run(force=True)
    assert office.asked[3:] == ["release", "model"]
    office.run()
    assert len(office.asked) == 5
    office.run(retry_failed=True)
    assert len(office.asked) == 7


def test_invalid_data_are_an_error_of_the_user(office):
    office.replies["check"] = Reply("done", answer={"user_error": "too few rows"})
    with pytest.raises(UserError, match="too few rows"):
        trial.check_data(office.plan, office.context)
    office.replies["check"] = Reply("failed", "setup", Failure("OSError", "gone"))
    with pytest.raises(UserError, match="csv cannot be loaded: gone"):
        trial.check_data(office.plan, office.context)


def test_what_was_printed_is_kept_with_what_was_made(office):
    def printed():
        office.store.printed.scan()
        return [office.store.read_printed(one.id) for one in (office.item.key, key.fit, key)]

    key = office.item.trials[0]
    office.run()
    assert not list((office.store.root / "printed").iterdir()), "nothing is nothing"
    for name, reply in office.replies.items():
        office.replies[name] = replace(reply, printed=f"a {name}\n")
    office.run(force=True)
    assert printed() == ["a release\n", "a model\n", "a metrics\n"]
    office.replies["release"] = replace(office.replies["release"], seconds={}, printed="")  # it was stored
    office.replies["metrics"] = replace(office.replies["metrics"], printed="")
    office.run(force=True)
    assert printed() == ["a release\n", "a model\n", ""]


def test_the_notes_hold_what_of_the_release_must_be_told_beside_those_of_the_fit(office):
    office.replies["release"].answer["reported"] = {"unfinished": 2}
    assert office.run().notes == {"unfinished": 2, "rank": 3}


def test_processes_that_die_at_loading_the_data_are_no_invalid_input(office):
    died = Reply("crashed", "setup", Failure("WorkerKilled", "the process was ended by SIGKILL"))
    office.replies["check"] = died
    with pytest.raises(WorkersLostError, match="ended by SIGKILL") as caught:
        trial.check_data(office.plan, office.context)
    assert caught.value.exit_code == 1 and office.asked == ["check"] * 2


def test_data_are_loaded_once_more_if_a_process_dies_at_it(office, monkeypatch):
    replies = [Reply("done"), Reply("crashed", "setup", Failure("WorkerKilled", "the process was ended by SIGKILL"))]
    monkeypatch.setattr(office, "ask", lambda *_: [replies.pop()])
    trial.check_data(office.plan, office.context)
    assert not replies
