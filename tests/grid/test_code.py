"""The digest of a function of the user's own: of what it computes with, and of nothing else in its module."""

import pytest

from dpbench.grid.code import code_of, function_digest
from dpbench.targets import FOLDER

MINE = '''
"""Own parts."""
import numpy as np
from helpers import noise
import more
from dpbench.mechanisms.ssp import ssp

SCALE = 2.0
TABLE = {}
TABLE["a"] = 1
COLOURS = ["red"]

def scaled(x):
    """Twice."""
    return SCALE * x

def mine(train, budget, rng):
    """What it does."""
    if not train:
        raise ValueError(f"no rows in {train}: give some")
    print("at work")
    made = ssp(train, budget, rng)
    return noise(scaled(made), TABLE) + more.deep.value

def scatter(frame):
    return COLOURS, frame
'''
HELPERS = "FACTOR = 3\ndef noise(x, y): return x * FACTOR\ndef unused(): return 1\n"


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "__init__.py").write_text("from . import deep\n")
    (tmp_path / "more" / "deep.py").write_text("value = 1\n")
    return tmp_path


def edited(own, name, old, new):
    """The digests before and after an edit."""
    before = function_digest("mine.mine")
    path = own / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return before, function_digest("mine.mine")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("mine.py", "return noise(", "return 2 * noise("),
        ("mine.py", "SCALE = 2.0", "SCALE = 2.0000001"),
        ("mine.py", "SCALE * x", "x"),
        ("mine.py", 'TABLE["a"] = 1', 'TABLE["a"] = 2'),
        ("mine.py", "if not train", "if train"),
        ("helpers.py", "FACTOR = 3", "FACTOR = 4"),
        ("helpers.py", "x * FACTOR", "x"),
        ("more/deep.py", "value = 1", "value = 2"),
        ("mine.py", "from helpers import noise", "from more import noise"),
    ],
)
def test_an_edit_of_what_it_computes_with_is_another_version(own, name, old, new):
    before, after = edited(own, name, old, new)
    assert before != after


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("mine.py", "return COLOURS, frame", "return frame"),
        ("mine.py", '"red"', '"blue"'),
        ("mine.py", "What it does.", "What it did."),
        ("mine.py", "give some", "add some"),
        ("mine.py", "at work", "working"),
        ("mine.py", "SCALE = 2.0", "# why\nSCALE = 2.0"),
        ("helpers.py", "return 1", "return 2"),
    ],
)
def test_figures_messages_comments_and_other_functions_are_not(own, name, old, new):
    before, after = edited(own, name, old, new)
    assert before == after


def test_parts_of_the_project_that_it_calls_are_named(own):
    _, used = function_digest("mine.mine")
    assert used == ("dpbench.mechanisms.ssp.ssp",)


@pytest.mark.parametrize(("old", "new"), [("give some", "add some"), ('"red"', '"blue"'), ("at work", "working")])
def test_the_whole_digest_on_which_private_noise_depends_has_every_statement(own, old, new):
    before = code_of("mine.mine")
    (own / "mine.py").write_text(MINE.replace(old, new))
    assert code_of("mine.mine") != before


def test_a_text_that_a_function_of_ones_own_is_given_is_no_message(own):
    """Even if the function is called `error`: what it does may depend on it."""
    changed = "    error(train, 'weak')\n    made ="
    (own / "mine.py").write_text(MINE.replace("    made =", changed))
    before = function_digest("mine.mine")
    (own / "mine.py").write_text(MINE.replace("    made =", changed.replace("weak", "strong")))
    assert function_digest("mine.mine") != before
