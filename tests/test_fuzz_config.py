"""Whatever stands on the line or in a config file: an exit code of 0 or 2, no traceback, a message that can be read."""

import importlib
import io
import os
import random
import signal
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from dpbench.cli import main

SECONDS, LINES, CHARACTERS = 10, 20, 4000
DEEP = "[" * 400 + "]" * 400
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + k)}: &{chr(98 + k)} [{', '.join(['*' + chr(97 + k)] * 10)}]\n" for k in range(9)
)
VALUES = [
    "null", "0", "-1", "1", "1e400", "-inf", ".inf", "inf", "nan", ".nan", "1e18", "9" * 5000, "0x" + "f" * 5000,
    "true", "''", "' '", "x", "x" * 4000, "[]", "{}", "[null]", "[[]]", "[1,a,null]", "{a:1}", "{a:{b:{c:1}}}",
    "[1,1]", "1,2,3", "range(0,1000000000)", "choice(1,2)", "glob(*)", "${name}", "${epsilon}", "${nothing}",
    "${oc.env:HOME}", "${", "}", "[", "'", "\\n", "é", "../../x", "/", "2024-01-01", "1:1:1", "1_000", "0o17",
    "sweep", "adult", "[adult]", "os.system", "[os.system]", "builtins.print", "dpbench.mechanisms", "${limits}",
    DEEP,
]  # fmt: skip
KEYS = [
    "dataset", "mechanism", "model", "metric", "sample", "limits", "experiment", "name", "title", "epsilon", "delta",
    "mu", "seed", "relation", "repetitions", "calibration", "sweep", "design", "design.target", "+design.exact",
    "jobs", "shards", "slurm", "slurm.time", "+slurm.x", "report", "report.labels", "report.metrics", "report.figures",
    "results", "sample.train_rows", "sample.test_rows", "sample.public_rows", "sample.split",
    "limits.seconds", "limits.memory_mb", "limits.model_mb",
    "dataset.name", "dataset._target_", "dataset.attributes", "dataset.target", "dataset.drop", "dataset.card",
    "+dataset.bounds", "+dataset.sources", "dataset.shipped", "+dataset.domain", "mechanism.adassp",
    "mechanism.adassp._target_", "mechanism.adassp.failure", "mechanism.adassp._offers_", "+mechanism.adassp._x_",
    "mechanism.aim.alpha", "+mechanism.aim", "model.linear_rows", "model.linear_rows._needs_", "metric.mse",
    "metric.mse._target_", "+x", "+hydra", "hydra.job", "",
]  # fmt: skip
BODIES = [
    "", "x", "- 1", "5", "null", "{", "a: [", "a: b: c", "\t- x", "a: 1\na: 2", "? x", "!!python/object:os.system x",
    DEEP, "a: &a [*a]", BOMB, "\x00", "a: ${b}\nb: ${a}", "name: ${title}\ntitle: ${name}", "defaults: 5",
    "defaults: [x]", "defaults:\n  - override /dataset: nothing", "defaults:\n  - dataset: adult", "epsilon: .inf",
    "seed: " + "9" * 5000, "mechanism: 5", "mechanism: {aim: {alpha: 0.5}}", "report: null", "report: {figures: [5]}",
    "limits: []", "limits: null", "sweep: {seed: [" + "1, " * 3000 + "]}", "sweep: {x: 1}", "design: 5",
    "dataset: [1]", "dataset: null", "slurm: [x]", "report: {figures: [{name: a, metric: msee}]}",
    "report: {figures: [{name: a, metric: mse, yscal: log}]}", "report: {figures: [{name: ../a, metric: mse}]}",
    "report: {figures: [{name: a, kind: pie}]}", "name: ../../x", "delta: n**-9999", "repetitions: 10000000",
    "epsilon: [" + "1.5, " * 20000 + "]", "unheard_of: 1",
]  # fmt: skip
PART_BODIES = [
    "{}", "_target_: 5", "_target_: [a]", "_target_: null", "_target_: os", "_target_: os.system", "_target_: print",
    "_target_: subprocess.run", "_target_: builtins.exec", "_target_: dpbench.cli.main",
    "_target_: dpbench.mechanisms.ssp", "_target_: dpbench.mechanisms.ssp.nothing",
    "_target_: dpbench.mechanisms.ssp.np", "_target_: broken.f", "_target_: leaves.f", "_target_: odd.f",
    "_target_: odd.g", "_target_: odd.value", "_target_: ..", "_target_: a..b",
    "{_target_: dpbench.mechanisms.ssp.ssp, _offers_: 5}", "{_target_: dpbench.mechanisms.ssp.ssp, _offers_: [cake]}",
    "{_target_: dpbench.mechanisms.ssp.ssp, _version_: 1}",
    "{_target_: dpbench.mechanisms.ssp.ssp, _relations_: [x]}", "{_target_: dpbench.mechanisms.ssp.ssp, 5: 6}",
    "{_target_: dpbench.mechanisms.ssp.ssp, x: ${x}}", "{_target_: dpbench.mechanisms.ssp.ssp, _relations_: none}",
    "{_target_: dpbench.mechanisms.ssp.ssp, _unpaid_: [x]}", "{_target_: dpbench.mechanisms.ssp.ssp, _private_: false}",
    "{_target_: dpbench.mechanisms.ssp.ssp, _label_: {rows: 5}}",
    "{_target_: dpbench.mechanisms.ssp.ssp, calibration: []}",
]  # fmt: skip
DATASET_BODIES = [
    "_target_: os.system", "attributes: {_target_: subprocess.run}", "attributes: 5", "attributes: null",
    "attributes: []", "attributes: {y: 5}", "attributes: {y: {bounds: 5}}", "attributes: {y: {levels: null}}",
    "sources: 5", "sources: [5]", "sources: {_target_: subprocess.run}", "sources: {x: 1}", "card: 5",
    "card: {rows: x}", "drop: 5", "target: [y]", "attributes: {y: {bounds: [0, 1], bins: 1000000000}}",
    "attributes: {y: {values: {from: 0, to: 1e15}}}", "name: 5", "name: null", "outside: 5", "bounds: [x]",
    "public: maybe", "attributes: {y: {levels: [a, a]}}",
]  # fmt: skip
DATASET = {
    "_target_": "dpbench.data.tabular.load_csv",
    "name": "mine",
    "path": "none.csv",
    "target": "y",
    "attributes": "{y: {levels: [a, b]}}",
}


@contextmanager
def limit(seconds):
    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def problem(line):
    """What is wrong with how a line ended; empty if nothing is."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with limit(SECONDS), redirect_stdout(out), redirect_stderr(err):
            code = main(line)
    except SystemExit as stop:
        code = stop.code
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    text = err.getvalue()
    if code not in (0, 2):
        return f"exit code {code}"
    if "Traceback" in text:
        return "a traceback"
    if len(text.splitlines()) >= LINES or len(text) > CHARACTERS:
        return f"a message of {len(text.splitlines())} lines, {len(text)} characters"
    return "" if code == 0 or text.strip() else "no message"


def lines(seed, count):
    """Settings drawn at random: a key with a value, deleted, or two of them."""
    chance = random.Random(seed)
    for _ in range(count):
        items = []
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            key, value = chance.choice(KEYS), chance.choice(VALUES)
            items.append(chance.choice([f"{key}={value}"] * 6 + [f"~{key}", f"+{key}={value}", f"{key}"]))
        yield items


def files(folder):
    """An own config file of each kind, and the line that reads it."""
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "leaves.py").write_text("raise SystemError('x' * 10000)\n")
    (folder / "odd.py").write_text("value = 5\ndef f(a, b): ...\ndef g(train, budget, rng, **more): ...\n")
    for group in ("experiment", "mechanism", "dataset", "sample", "limits", "paper", "figure"):
        (folder / group).mkdir()
    for body in BODIES:
        yield folder / "experiment" / "own.yaml", "# @package _global_\n" + body, ["run", "--dry-run", "experiment=own"]
    for body in ("name: own", "defaults:\n  - override /dataset: adult_synth\nname: own"):
        yield folder / "experiment" / "own.yaml", body, ["run", "--dry-run", "experiment=own"]
    for body in BODIES[:20]:
        yield folder / "mechanism" / "own.yaml", body, ["run", "--dry-run", "mechanism=[own]"]
        yield folder / "limits" / "own.yaml", body, ["run", "--dry-run", "limits=own"]
        yield folder / "sample" / "own.yaml", body, ["run", "--dry-run", "sample=own"]
        yield folder / "paper" / "own.yaml", body, ["figures", "paper=own", "results=none"]
        yield folder / "figure" / "own.yaml", body, ["show", "figure=own"]
    for body in PART_BODIES:
        yield (
            folder / "mechanism" / "own.yaml",
            f"own: {body}" if body[0] == "{" else f"own:\n  {body}",
            ["run", "--dry-run", "mechanism=[own]"],
        )
    for body in DATASET_BODIES:
        key = body.split(":")[0]
        node = {name: value for name, value in DATASET.items() if name != key}
        text = "".join(f"{name}: {value}\n" for name, value in node.items()) + body
        for line in (
            ["run", "--dry-run", "dataset=own"],
            ["data", "card", "own"],
            ["figures", "dataset=own", "name=x"],
        ):
            yield folder / "dataset" / "own.yaml", text, line


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in ("report", "run", "data", "list_and_show"):  # what is imported now does not count against the limit
        importlib.import_module(f"dpbench.commands.{command}")
    for name in ("PYTHONPATH", "DPBENCH_CONFIG_DIR"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def wrong(cases):
    found = [f"{' '.join(line)[:200]}: {what}" for line in cases if (what := problem(line))]
    return "\n".join(found[:40])


def test_settings_at_random(place):
    commands = [["run", "--dry-run"], ["run", "--show"], ["slurm", "--print"], ["figures"], ["data", "check"], ["show"]]
    cases = [[*commands[k % len(commands)], *items, "results=here"] for k, items in enumerate(lines(1, 120))]
    assert not wrong(cases)


@pytest.mark.slow
def test_many_more_settings_at_random(place):
    assert not wrong(["run", "--dry-run", *items, "results=here"] for items in lines(2, 3000))


def test_config_files_of_ones_own(place):
    found = []
    for path, body, line in files(place):
        path.write_text(body)
        what = problem([*line, "--config-dir", str(place)])
        path.unlink()
        if what:
            found.append(f"{path.parent.name} {body[:80]!r} {' '.join(line)}: {what}")
    assert not found, "\n".join(found)


def test_environment_and_plans(place, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "abc")
    assert not problem(["run", "--dry-run"])
    assert problem(["run", "--dry-run"]) == ""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for text in (
        "",
        "[",
        "5",
        "{}",
        "[" * 100_000,
        '{"format": 3}',
        '{"format": 3, "name": "../x", "releases": 0, "settings": []}',
    ):
        (place / "plan.jsonl").write_text(text)
        assert not problem(["run", "--dry-run", "--plan", "plan.jsonl"]), text[:40]
