"""What is found in the line of a record without parsing it is what the record says."""

import json
import math
from dataclasses import replace

import pytest

from dpbench.grid.line_fields import Scored, fields_of, fields_with_score
from dpbench.grid.log_file import content, sealed
from dpbench.grid.records import Failure, FitKey, PartKey, ReleaseKey, Runtime, Trial, TrialKey
from dpbench.grid.store import Store
from dpbench.grid.trial_log import Log
from dpbench.metrics.evaluation import Score
from dpbench.privacy.accounting import Spent
from dpbench.privacy.budget import Budget

RELEASE = ReleaseKey({"name": "csv"}, {"train_rows": 9}, 0, 0, PartKey("ssp", "m", {}, "1"), Budget(1.0))
KEY = TrialKey(FitKey(RELEASE, PartKey("linear", "m", {}, "1"), {}), ())
MSE, R2 = Score("mse", 0.1 + 0.2, "years^2", "lower"), Score("r2", -3e-17, "", "higher")
DONE = Trial("a", "b", KEY, "grid", "done", scores=(MSE, R2), spent=Spent(1.0, 1e-5, None, None, 0.5))
TRICKY = 'quotes ", "id": "x", "status": "failed" and brackets }], "of": [1, 2] and \\'
KNOWN = {  # trials whose score is found in the line, and others
    "plain": DONE,
    "infinite": replace(DONE, scores=(R2, replace(MSE, value=math.inf)), spent=replace(DONE.spent, epsilon=math.inf)),
    "not a number": replace(DONE, scores=(replace(MSE, value=math.nan),), runtime=Runtime(1.0, 2.0, None, 3.0)),
    "notes": replace(DONE, notes={"rank": 3, "solver": "direct", "sizes": [1, 2]}, spent=None),
}
OTHERS = {
    "failed": replace(DONE, status="failed", phase="model", scores=(), error=Failure("E", TRICKY)),
    "no such score": replace(DONE, scores=(R2,)),
    "another name": replace(DONE, scores=(replace(MSE, name="mse_unit"),)),
    "details": replace(DONE, scores=(replace(MSE, detail={"bins": [1, 2], "value": 5}),)),
    "tricky notes": replace(DONE, notes={"text": TRICKY, "id": "z", "status": "failed", "inner": {"id": "y"}}),
    "a tricky unit": replace(DONE, scores=(replace(MSE, unit=TRICKY),)),
}


def stored(folder, trial, times=1):
    """The store of this trial, and the content of its last line."""
    store = Store(folder, "grid")
    store.prepare()
    for _ in range(times):
        store.write_trial(trial)
    (path,) = store.trials_folder.iterdir()
    return Store(folder, "grid", "mse"), content(path.read_bytes().splitlines(keepends=True)[-1])


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("name", [*KNOWN, *OTHERS])
def test_a_line_tells_what_parsing_it_tells(tmp_path, name, times):
    trial = {**KNOWN, **OTHERS}[name]
    store, body = stored(tmp_path, trial, times)
    record = json.loads(body + b"}")
    found = fields_with_score(body, "mse")
    assert found is None or found[:4] == (record["id"], record["status"], times - 1, record["of"][0])
    assert (found is not None and found[4] is not None) == (name in KNOWN)
    scored, nothing = store.read_scores(KEY, ["a", "not stored"])
    expected = next((vars(score) for score in trial.scores if score.name == "mse"), None)
    spent = math.nan if trial.spent is None else trial.spent.epsilon
    assert nothing is None
    assert repr(normal(scored)) == repr(normal(Scored(trial.status, spent, expected)))


def normal(scored):
    score = scored.score and {name: scored.score.get(name) for name in ("name", "value", "unit", "direction", "detail")}
    return scored._replace(score=score)


def test_a_line_that_is_damaged_tells_nothing(tmp_path, caplog):
    store, _ = stored(tmp_path, DONE)
    (path,) = store.trials_folder.iterdir()
    path.write_text(path.read_text().replace('"value": 0.3', '"value": 0.2'))
    assert store.read_scores(KEY, ["a"]) == [None]
    assert "is damaged" in caplog.text


@pytest.mark.parametrize("value", ['"x"', "null", "0x1", "[1]", "1" * 5000])
def test_a_crafted_line_is_parsed_and_then_refused_or_right(tmp_path, value):
    _, body = stored(tmp_path, DONE)
    crafted = body.replace(b"0.30000000000000004", value.encode())
    found = fields_with_score(crafted, "mse")
    assert found is None or found[4] is None or found[4].score["value"] == float(value)


def test_records_that_share_nothing_are_parsed(tmp_path):
    assert fields_of(content(sealed({"id": "a", "status": "done"}).encode())) is None
    log = Log(tmp_path)
    log.append({"id": "a", "status": "done"})
    log.append({"id": "b", "status": "failed"}, {"common": 1})
    log.append({"id": "c", "status": "failed"}, {"common": 1})
    other = Log(tmp_path)
    assert {name: entry.status for name, entry in other.scan().items()} == {"a": "done", "b": "failed", "c": "failed"}
    assert [*other.shared("abcd")] == [{"common": 1}, {"id": "a", "status": "done"}]
