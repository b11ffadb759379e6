"""The worker: what it reads and writes, with a stand-in for smartnoise-synth, and all in the library's environment."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dpbench.config import part_of
from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms import snsynth as module
from dpbench.mechanisms.snsynth import SYNTHESIZERS, snsynth
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows
from dpbench.resources import PACKAGE

BUDGET = Budget(1.0, 1e-5)
PYTHON = Path(os.environ.get(module.VARIABLE, PACKAGE.parent / ".venv-snsynth" / "bin" / "python"))

DOMAIN = Domain(
    (
        Attribute.binned("age", 0, 100, 10),
        Attribute.categorical("sex", ["m", "f", "i"]),
        Attribute.discrete("rings", range(1, 6)),
        Attribute.categorical("site", ["here"]),
    )
)


def table(n=40):
    rng = np.random.default_rng(3)
    ages, codes = rng.uniform(0, 100, n), rng.integers(0, (10, 3, 5, 1), (n, 4))
    codes[:, 0] = (ages / 10).astype(np.int64)
    return Table(DOMAIN, codes, {"age": ages})


def run(train, *, synthesizer="dpgan", settings=None, rows=30, timeout=60, budget=BUDGET, seed=0):
    rng = np.random.default_rng(seed)
    return snsynth(train, budget, rng, synthesizer=synthesizer, settings=settings or {}, rows=rows, timeout=timeout)


# --- without the library ----------------------------------------------------------------------------------------------

SPEC = {
    "synthesizer": "dpgan", "settings": {"epochs": 2}, "epsilon": 0.5, "delta": 1e-5, "seed": 7, "rows": 3,
    "columns": [{"name": "age", "lower": 0, "upper": 100}, {"name": "sex", "levels": 3}, {"name": "site", "levels": 1}],
}  # fmt: skip
LIBRARY = """
import json, random, sys, types
from pathlib import Path
import numpy as np, torch

class Encoder:
    def __init__(self, **given):
        self.given = given

class Table:
    def __init__(self, parts):
        self.told = [[type(part).__name__, part.given] for part in parts]
    def fit(self, rows):
        self.shown = rows

class OneHot(Encoder): pass
class MinMax(Encoder): pass
class Label(Encoder): pass

class Synthesizer:
    @classmethod
    def create(cls, name, **settings):
        one = cls()
        one.told = {"name": name, "settings": settings}
        return one
    def fit(self, data, transformer, preprocessor_eps):
        if FAILS:
            raise ValueError("epsilon is too small")
        print("epoch 1")
        torch.manual_seed(0)  # as the library's CTGANs do
        kinds = [type(value).__name__ for value in data[0]]
        self.told |= {"rows": data, "kinds": kinds, "parts": transformer.told, "shown": transformer.shown}
        self.told |= {"preprocessor_eps": preprocessor_eps}
        Path(FOLDER, "told.json").write_text(json.dumps(self.told))
        for loss in ([0.5, 0.25], [1.5, 0.75]):
            sys.modules["snsynth.pytorch.nn"].pategan.moments_acc(torch.tensor(loss))
    def sample(self, rows):
        return [(torch.rand(1).item(), random.random(), np.random.rand()) for _ in range(rows)]

def module(name, **content):
    sys.modules[name] = made = types.ModuleType(name)
    vars(made).update(content)

gans = [types.SimpleNamespace(moments_acc=lambda loss: loss) for _ in range(2)]
module("snsynth", Synthesizer=Synthesizer)
module("snsynth.transform", LabelTransformer=Label, MinMaxTransformer=MinMax, OneHotEncoder=OneHot)
module("snsynth.transform.table", TableTransformer=Table)
module("snsynth.pytorch")
module("snsynth.pytorch.nn", patectgan=gans[0], pategan=gans[1])
module("opacus", PrivacyEngine=type("PrivacyEngine", (), {"attach": lambda self, optimizer: None}))
"""


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    """The worker's process on three rows, whose import of the library finds the stand-in; its folder."""

    @cache
    def work(seed=7, *, again=False, fails=False):
        tmp_path = tmp_path_factory.mktemp("worked")
        (tmp_path / "spec.json").write_text(json.dumps({**SPEC, "seed": seed}))
        np.save(tmp_path / "train.npy", np.array([[10.0, 0, 0], [20.5, 1, 0], [30.0, 1, 0]]))
        start = f"FAILS, FOLDER = {fails}, {str(tmp_path)!r}\n{LIBRARY}\nimport runpy\n"
        start += f"sys.argv[1:] = ['--spec', {str(tmp_path / 'spec.json')!r}]\n"
        start += f"runpy.run_path({str(module.WORKER)!r}, run_name='__main__')"
        done = subprocess.run([sys.executable, "-I", "-c", start], capture_output=True, text=True, check=False)
        return done, tmp_path

    return work


def test_the_library_gets_the_rows_the_budget_and_an_encoding_of_the_declared_levels(worked):
    done, folder = worked()
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    told = json.loads((folder / "told.json").read_text())
    assert told["name"] == "dpgan" and told["settings"] == {"epochs": 2, "epsilon": 0.5, "delta": 1e-5}
    assert told["rows"] == [[10.0, 0, 0], [20.5, 1, 0], [30.0, 1, 0]] and told["kinds"] == ["float", "int", "int"]
    assert told["parts"] == [["MinMax", {"lower": 0, "upper": 100}], ["OneHot", {}], ["OneHot", {}]]
    assert told["shown"] == [[0, 0, 0], [0, 1, 0], [0, 2, 0]], "every level, though no row has the third"
    assert told["preprocessor_eps"] == 0


def test_the_rows_and_the_librarys_own_epsilon_come_back(worked):
    _, folder = worked()
    with np.load(folder / "result.npz") as result:
        assert result["rows"].shape == (3, 3) and result["rows"].dtype == np.float64
        # moments 0.5 + 1.5 at order 1, 0.25 + 0.75 at order 2: the least of (moment + log(1/delta)) / order
        assert float(result["epsilon"]) == pytest.approx((1.0 + np.log(1e5)) / 2)


@pytest.mark.slow  # three processes that load PyTorch
def test_the_rows_follow_the_seed_whatever_seed_the_library_sets(worked):
    found = []
    for seed, again in ((7, False), (7, True), (8, False)):
        with np.load(worked(seed, again=again)[1] / "result.npz") as result:
            found.append(result["rows"])
    assert np.array_equal(found[0], found[1])
    assert (found[0] != found[2]).all(), "each of the three generators that the library draws from"


def test_an_error_of_the_library_is_written_where_it_is_looked_for(worked):
    done, folder = worked(fails=True)
    assert done.returncode == 1 and not (folder / "result.npz").exists()
    assert (folder / "error.txt").read_text() == "ValueError: epsilon is too small"


# --- with the library -------------------------------------------------------------------------------------------------

needs_library = pytest.mark.skipif(not PYTHON.is_file(), reason="make snsynth has not been run")


NETWORKS = [name for name in SYNTHESIZERS if name != "aim"]
FEW = {name: {"epochs": 2} if name in ("dpgan", "dpctgan") else {} for name in NETWORKS}


def trained(name, train, seed):
    settings = {**part_of("mechanism", name).parameters["settings"], **FEW[name]}
    budget = Budget(0.5, 1e-5)
    return run(train, synthesizer=name, settings=settings, budget=budget, rows=200, seed=seed, timeout=120)


@needs_library
@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_each_network_gives_the_same_rows_for_the_same_seed(name):
    releases = [trained(name, table(1100), seed) for seed in (1, 1, 2)]
    first, again, other = (release[SyntheticRows].table for release in releases)
    assert len(first) == 200
    assert len(np.unique(first.numbers["age"])) > 10
    assert np.array_equal(first.numbers["age"], again.numbers["age"])
    assert np.array_equal(first.codes, again.codes)
    assert not np.array_equal(first.numbers["age"], other.numbers["age"])
    assert 0.1 < releases[0].diagnostics["accounted_epsilon"] < 1.5


@needs_library
@pytest.mark.slow
@pytest.mark.parametrize("name", ["dpctgan", "patectgan"])
def test_a_conditional_gan_needs_no_categorical_attribute(name):
    rows = trained(name, table(1100).project(["age", "rings"]), 1)[SyntheticRows].table
    assert len(rows) == 200
    assert len(np.unique(rows.numbers["age"])) > 10


@needs_library
@pytest.mark.slow
def test_a_level_that_no_row_has_can_still_be_drawn():
    """The levels are the declared ones: their encoding does not show which of them occur."""
    train = table(200)
    codes = train.codes.copy()
    codes[:, 1] = 0
    rows = run(Table(DOMAIN, codes, train.numbers), settings={"epochs": 1}, rows=500)[SyntheticRows].table
    assert len(np.unique(rows.column("sex"))) == 3


PAIR = Domain((Attribute.binned("age", 0, 100, 4), Attribute.categorical("sex", ["m", "f", "i"])))


def aim(train, seed, budget):
    return run(train, synthesizer="aim", settings={"rounds": 4}, budget=budget, rows=400, seed=seed, timeout=300)


@pytest.fixture(scope="module")
def of_aim():
    """A table whose pair of attributes depends, and what AIM makes of it twice with one seed at a large epsilon."""
    ages = np.random.default_rng(5).uniform(0, 100, 2000)
    codes = np.column_stack([ages // 25, ages // 50]).astype(np.int64)  # nobody has the third level
    train = Table(PAIR, codes, {"age": ages})
    return train, [aim(train, 1, Budget(10.0, 1e-5)) for _ in range(2)]


@needs_library
@pytest.mark.slow
def test_aim_gives_the_same_rows_for_the_same_seed_near_the_real_pair(of_aim):
    """At epsilon 10 the noise of a cell is about 1 of 500 rows."""
    train, (first, again) = of_aim
    rows = first[SyntheticRows].table
    assert np.array_equal(rows.codes, again[SyntheticRows].table.codes)
    assert len(rows) == 400 and not rows.numbers
    real, made = (one.marginal(("age", "sex")) / len(one) for one in (train, rows))
    assert np.abs(real - made).sum() / 2 < 0.05


@needs_library
@pytest.mark.slow
def test_the_noise_of_aim_adds_up_to_its_claim_and_another_seed_gives_another(of_aim):
    train, (first, _) = of_aim
    assert first.diagnostics["accounted_epsilon"] == pytest.approx(10.0, rel=1e-3)
    rows = first[SyntheticRows].table
    assert not np.array_equal(rows.codes, aim(train, 2, Budget(10.0, 1e-5))[SyntheticRows].table.codes)


@needs_library
@pytest.mark.slow
def test_aim_can_draw_a_level_that_no_row_has(of_aim):
    """Of 400 rows at epsilon 0.01, whose noise is as large as the table."""
    rows = aim(of_aim[0], 1, Budget(0.01, 1e-5))[SyntheticRows].table
    assert len(np.unique(rows.column("sex"))) == 3


@needs_library
@pytest.mark.slow
def test_what_the_library_says_is_in_the_message():
    with pytest.raises(UserError, match=r"pategan of smartnoise-synth failed .*ValueError: .*epsilon"):
        run(table(1000), synthesizer="pategan", budget=Budget(0.01, 1e-5))
