import json
from dataclasses import replace

from dpbench.config import Paper, compose
from dpbench.report.frames.results import Results
from dpbench.report.paper import write_manifest

from .made_up import make_trial


def test_a_manifest_names_command_commits_notes_and_what_differs_from_the_paper(tmp_path):
    facts = [{"what": "trials", "value": 5, "ours": "repetitions", "where": "Figure 3"}]
    paper = Paper("a_paper", "A paper", {"figures": []}, {"protocol": facts})
    experiment = compose(["experiment=quickstart"])
    old = {"commit": "old", "dirty": False, "versions": {}, "threads": 1, "cpu": "x"}
    trials = [make_trial(), replace(make_trial(repetition=1), release_provenance=old)]
    results = [Results(experiment, trials, ["sample: smoke"]), Results(replace(experiment, name="absent"), [])]
    found = json.loads(write_manifest(paper, results, tmp_path).read_text())
    assert found["draw"] == "dpbench figures paper=a_paper" and list(found["experiments"]) == ["quickstart"]
    assert found["experiments"]["quickstart"] == {
        "run": "dpbench run experiment=quickstart",
        "trials": 2,
        "releases by commit": {"abc": 1, "old": 1},
        "trials by commit": {"abc": 2},
        "notes": ["sample: smoke"],
        "differs": ["trials: 2, paper 5"],
    }
