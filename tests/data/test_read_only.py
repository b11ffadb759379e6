"""A mechanism of one's own that writes into its rows changes nothing for the others."""

import contextlib

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.grid.store import Store

WRITES = {
    "codes": "train.codes[:] = 0",
    "numbers": "train.numbers['age'][:] = 16.0",
    "mapping": "train.numbers['age'] = 0 * train.codes[:, 0]",
    "matrices": "design.matrices['sex'][:] = 7.0",
}
PLUG_IN = """
def vandal(train, budget, rng, *, design):
    \"\"\"Writes into what it was given.\"\"\"
    {write}
"""


def scores(folder):
    trials = [trial.to_dict() for trial in Store(folder, "grid").all_trials()]
    return {
        (trial["key"]["release"]["mechanism"]["name"], trial["key"]["release"]["repetition"]): (
            trial["status"],
            trial["scores"],
            (trial["error"] or {}).get("message"),
        )
        for trial in trials
    }


def run(folder, *more):
    settings = ["model=[linear_statistics]", "metric=[mse]", "repetitions=2", "sample=smoke", "limits=smoke", "jobs=1"]
    table = ["dataset=csv", "dataset.path=my.csv", "dataset.domain=my.yaml", "dataset.target=grade"]
    rng = np.random.default_rng(0)
    rows = zip(rng.integers(16, 100, 300), rng.choice(["f", "m"], 300), rng.integers(1, 6, 300), strict=True)
    (folder / "my.csv").write_text("age,sex,grade\n" + "".join(f"{a},{s},{g}\n" for a, s, g in rows))
    (folder / "my.yaml").write_text(
        "age: {bounds: [16, 100], bins: 4}\nsex: {levels: [f, m]}\ngrade: {values: [1, 2, 3, 4, 5]}\n"
    )
    with contextlib.chdir(folder):
        return main(["run", *table, *settings, "+design.exact=true", "results=results", *more])


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    assert run(folder, "mechanism=[exact]") == 0
    return scores(folder / "results")


@pytest.mark.parametrize("what", WRITES)
def test_writing_into_the_rows_is_an_error_and_changes_no_other_trial(what, alone, tmp_path):
    own = tmp_path / "own"
    (own / "mechanism").mkdir(parents=True)
    (own / f"vandal_{what}.py").write_text(PLUG_IN.format(write=WRITES[what]))
    (own / "mechanism" / "vandal.yaml").write_text(
        f"vandal:\n  _target_: vandal_{what}.vandal\n  _offers_: [statistics]\n"
    )
    assert run(tmp_path, "mechanism=[vandal,exact]", "--config-dir", str(own), "--unchecked") == 1
    together = scores(tmp_path / "results")
    assert len(alone) == 2 and len(together) == 4
    assert {key: together[key] for key in alone} == alone
    for key in together.keys() - alone.keys():
        status, _, message = together[key]
        assert status == "failed" and ("read-only" in message or "item assignment" in message)
