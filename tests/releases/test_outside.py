"""A mechanism in a user's own folder that releases kinds there are: what it gains without a line more."""

import pytest

from dpbench.cli import main
from dpbench.grid.store import Store

CODE = '''
from dpbench.inference import JunctionTree, Measurement
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Distribution, Marginals, Release, SyntheticRows


def independent(train, budget, rng, *, rows: int = 200):
    """Noisy one-way marginals, and a model that takes the attributes for independent."""
    ledger, domain = Ledger(), train.domain
    multiplier = len(domain.names) ** 0.5 / gaussian_mu(budget.epsilon, budget.delta)
    measured = []
    for name in domain.names:
        truth = train.marginal((name,))
        noisy = gaussian(rng, ledger, truth, sensitivity=1.0, multiplier=multiplier, label=f"marginal {name}")
        measured.append(Measurement((name,), noisy, multiplier))
    model = JunctionTree(iterations=50).estimate(domain.sizes, measured)
    pairs = [(a, b) for a in domain.names for b in domain.names if domain.index(a) < domain.index(b)]
    noise = tuple((m.clique, m.sigma) for m in measured)
    distribution = Distribution(model)
    synthetic = SyntheticRows(distribution.sample(domain, rows, rng))
    return Release(domain, budget, ledger, (Marginals(model.answer(pairs), noise), synthetic, distribution))
'''
CONFIG = "independent:\n  _target_: independent.independent\n  _offers_: [marginals, rows, distribution]\n  rows: 200\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "independent.py").write_text(CODE)
    (tmp_path / "mechanism").mkdir()
    (tmp_path / "mechanism" / "independent.yaml").write_text(CONFIG)
    return tmp_path


def test_it_passes_its_check(folder, capsys):
    assert main(["check", "mechanism=independent", "--config-dir", str(folder)]) == 0, capsys.readouterr().out


def test_its_rows_are_drawn_several_times_and_its_fits_are_compared_with_the_same_model_without_noise(folder):
    """Regression on rows and on marginals: without noise they are the same least squares."""
    line = [
        *("run", "dataset=adult_synth", "limits=smoke", "sample=smoke", "mechanism=[independent]", "epsilon=[1]"),
        *("model=[linear_marginals,linear_rows]", "metric=[mse,excess_mse]", "repetitions=1", "draws=3", "jobs=1"),
    ]
    assert main([*line, f"results={folder}", "--config-dir", str(folder)]) == 0
    trials = [trial.to_dict() for trial in Store(folder, "grid").all_trials()]
    found = {}
    for trial in trials:
        scores = {score["name"]: score["value"] for score in trial["scores"]}
        found.setdefault(trial["key"]["model"]["name"], []).append(scores)
    assert {name: len(scores) for name, scores in found.items()} == {"linear_marginals": 1, "linear_rows": 3}
    assert len({scores["mse"] for scores in found["linear_rows"]}) == 3
    without = {scores["mse"] - scores["excess_mse"] for all_of_it in found.values() for scores in all_of_it}
    assert max(without) - min(without) < 1e-9, "least squares on the training rows and on their marginals are one"
    assert all(scores["excess_mse"] > 0 for scores in found["linear_rows"])
