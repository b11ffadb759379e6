"""Tiny tables and settings for every mechanism in conf/, and shipped code with a line of it changed."""

import inspect
import sys
import types

import numpy as np

from dpbench.audit.neighbours import random_table
from dpbench.config import Part, every_part
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.mechanisms.query_search import METHODS
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SufficientStatistics

PARTS = every_part("mechanism")
DELTA = 1e-3
SMALL = {
    "expected_rows": 400,
    "batch_sizes": [None, 100],
    "batch_size": 100,
    "clips": [0.5, 1.0],
    "learning_rates": [0.1, 1.0],
    "rows": 50,
    "iterations": 8,
    "leapfrogs": 6,
    "gap": 0.5,
    "nodes": 1,
    "teachers": 6,  # an even number can tie
    "models": 60,
    "features": 1,
    "steps": 30,
    "samples": 5,
    "projections": 3,
    "rounds": 3,
    "components": 20,
    "latent": 3,
    "hidden": [5],
    "pretraining": 1,
    "grid": {"rounds": [2, 3]},
    "gamma": 0.3,
    "tables": 3,
    "warmup": 10,
    "population": 20,
    "generations": 30,
    "halfspaces": 30,
    "doublings": 1,
}
EPOCHS = [1, 4]  # where several are listed
DOMAINS = {
    "numeric": Domain(
        (Attribute.binned("a", -1, 7, 5), Attribute.binned("b", 2, 3, 3), Attribute.binned("y", -2, 9, 4))
    ),
    "categorical": Domain(
        (Attribute.categorical("a", "uvw"), Attribute.categorical("b", "st"), Attribute.categorical("y", ["no", "yes"]))
    ),
    "both": Domain(
        (Attribute.binned("a", -1, 7, 4), Attribute.categorical("b", "stu"), Attribute.discrete("y", [0, 1, 5]))
    ),
}
DOMAINS["binary"] = Domain(tuple(Attribute.categorical(name, "uv") for name in "aby"))  # for options alone
DESIGNS = {
    "numeric": Design(DOMAINS["numeric"], "y", scaled=False, exact=True),
    "categorical": Design(DOMAINS["categorical"], "y"),
    "both": Design(DOMAINS["both"], "y", exact=True),
}


def rows(kind: str, n: int = 150) -> Table:
    return random_table(DOMAINS[kind], n, 0, numbers=kind == "numeric")


def maker(part: Part, kind: str, epsilon: float, *, relation: str | None = None, seed: int = 3, **change):
    """The mechanism as a function of table and generator, between the first of the neighbours that it states."""
    parameters = {**part.parameters, **{k: v for k, v in SMALL.items() if k in part.parameters}, **change}
    if isinstance(parameters.get("epochs"), list):  # of a search
        parameters["epochs"] = EPOCHS
    if "shared" in parameters:  # by all runs of a search
        of_method = {k for k in inspect.signature(METHODS[parameters["method"]]).parameters if k not in SMALL["grid"]}
        parameters["shared"] = {**parameters["shared"], **{k: SMALL[k] for k in of_method & {*SMALL}}}
    if part.takes("design"):
        parameters["design"] = DESIGNS[kind]
    for other in filter(part.takes, ("public", "test")):
        parameters[other] = rows(kind, 40)
    budget, function = Budget(epsilon, DELTA, relation or part.relations[0]), part.function
    return lambda table, rng=None: function(table, budget, rng or np.random.default_rng(seed), **parameters)


def answering(answer, budget: Budget):
    """A mechanism, of a table and a seed, whose noise `answer(table, rng, ledger)` draws; it releases a stub."""

    def make(table, seed):
        ledger = Ledger()
        answer(table, np.random.default_rng(seed), ledger)
        return Release(table.domain, budget, ledger, (SufficientStatistics(np.eye(1), np.zeros(1), 0.0, 1.0),))

    return make


def counts(part: Part) -> bool:
    """Whether the mechanism takes counts only."""
    return part.parameters.get("family") == "poisson"


def mistake(monkeypatch, module, changes):
    """Each text of the module, which it has once, is another one: for itself and for whoever imported from it."""
    source = inspect.getsource(module)
    for old, new in changes.items():
        assert source.count(old) == 1, f"{module.__name__} has {source.count(old)} times {old!r}"
        source = source.replace(old, new)
    wrong = types.ModuleType(module.__name__)
    wrong.__dict__.update(__file__=module.__file__, __package__=module.__package__)
    with monkeypatch.context() as here:
        here.setitem(sys.modules, module.__name__, wrong)  # where dataclasses look for it
        exec(compile(source, module.__file__, "exec"), wrong.__dict__)
    users = [user for name, user in sys.modules.items() if name.startswith("dpbench.mechanisms")]
    for name, made in vars(wrong).items():
        if getattr(made, "__module__", "") == module.__name__:
            shipped = getattr(module, name)
            for user in users:
                if vars(user).get(name) is shipped:
                    monkeypatch.setattr(user, name, made)


RATES = {"rounds": [2, 3], "rate": [1e-3, 1e30]}
OPTIONS = {  # settings at which lines run that no config of conf/ runs: mechanism, kind of table, settings
    "the newest answer of a query": ("mwem_past", "categorical", {"repeated": "newest", "rounds": 8}),
    "few bins": ("binagg", "numeric", {"max_bins": 2}),
    "no bin is kept": ("binagg", "numeric", {"calibration": "authors", "least_count": 10_000}),
    "pretrained on the worst": ("gem_pub", "categorical", {"patience": 1, "pretraining": 30, "rate": 0.5}),
    "z drawn anew": ("gem_small", "categorical", {"resample": True}),
    "no error is left": ("gem_small", "categorical", {"iterations": 60, "rate": 0.03}),
    "its own votes": ("pate", "categorical", {"data_dependent": True, "teachers": 4}),
    "labels": ("dpsgd_test_error", "categorical", {}),
    "a perturbed logistic loss": ("amp", "categorical", {}),
    "a point of large depth": ("tukey_em", "numeric", {"models": 100}),
    "a feature chosen before": ("kendall_tukey_em", "numeric", {"models": 100}),
    "the odds of labels": ("mean_target", "categorical", {}),
    "a private score of labels": ("dpsgd_random", "categorical", {}),
    "runs that diverge, unpaid": ("gem_small_best", "categorical", {"grid": RATES, "shared": {"cosine": False}}),
    "listed cliques": ("aim", "categorical", {"workload": [["a", "b"], ["y"]]}),
    "parents by information": ("privbayes", "both", {"score": "I"}),
    "information of two levels": ("privbayes", "binary", {"score": "I"}),
    "parents that determine": ("privbayes", "binary", {"score": "F"}),
    "drawn candidates": ("privmrf", "both", {"candidates": 2, "theta": 0.1}),
    "Laplace noise, with weights": (
        "gaussian_marginals",
        "categorical",
        {"distribution": "laplace", "workload": [["a", "b"], ["y"]], "weights": [1.0, 2.0]},
    ),
    "the least largest variance, consistent": (
        "residual_planner",
        "categorical",
        {"objective": "max_variance", "reconstruction": "least_squares"},
    ),
    "a distribution at the end": ("aim_grem", "categorical", {"reconstruction": "mixture"}),
    "rows for each level": ("tab_pe", "both", {"label": "b"}),
    "halfspaces by class": ("rap_pp", "both", {"targets": ["b"]}),
    "drawn cliques": ("mst", "categorical", {"workload": {"degree": 2, "up_to": True, "marginals": 4}}),
}
