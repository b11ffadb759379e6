"""Plug-ins that do what they should not: each is one failed trial with a message that names it, and stops nothing."""

import os
import signal
import subprocess
import sys
import time

import pytest

from dpbench.grid.store import Store

MECHANISMS = '''
import ctypes, mmap, os, signal, subprocess, sys, time
from dataclasses import dataclass, replace
import numpy as np
from dpbench.data.encode import Design
from dpbench.releases import Release
from dpbench.mechanisms.ssp import ssp
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import unperturbed

MB = 2**20

@dataclass(frozen=True)
class Carrier(Release):
    secret: object = None

def fork_and(do):
    pid = os.fork()
    if not pid:
        do()
        os._exit(0)
    return pid

def plugin(train, budget, rng, *, design: Design, how: str = "fine", note: str = "") -> Release:
    """Does what it is told."""
    good = ssp(train, budget, rng, design=design)
    if note:
        with open(note + str(os.getpid()), "w"):
            pass
    if how == "swallow":
        while True:
            try:
                while True:
                    pass
            except BaseException:
                continue
    elif how == "lapack":
        np.linalg.svd(np.random.default_rng(0).normal(size=(6000, 6000)))
    elif how == "blocks_alarm":
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
        time.sleep(60)
    elif how == "resident":
        kept = np.ones(600 * MB // 8)
        time.sleep(60)
    elif how == "shared":
        kept = mmap.mmap(-1, 800 * MB)
        np.frombuffer(kept, dtype=np.uint8)[:] = 1
        time.sleep(60)
    elif how == "in_grandchild":
        fork_and(lambda: (np.ones(600 * MB // 8), time.sleep(60)))
        time.sleep(60)
    elif how == "mapped":
        kept = mmap.mmap(-1, 3000 * MB), np.empty(3000 * MB // 8)
        time.sleep(0.5)
    elif how == "forks_share":
        kept = np.ones(100 * MB // 8)
        for pid in [fork_and(lambda: time.sleep(0.7)) for _ in range(4)]:
            os.waitpid(pid, 0)
    elif how == "exits":
        os._exit(3)
    elif how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "dies_before_its_fork":
        fork_and(lambda: time.sleep(60))
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "sys_exit":
        sys.exit(0)
    elif how == "interrupts":
        raise KeyboardInterrupt
    elif how == "generator_exit":
        raise GeneratorExit
    elif how == "key":
        {}["foo"]  # the line that must be named
    elif how == "path":
        open("/somewhere/private/rows.csv")
    elif how == "wide_message":
        raise RuntimeError("x" * 10**6)
    elif how == "carries":
        return Carrier(**vars(good), secret=train)
    elif how in ("np_int", "not_a_number", "array", "large"):
        values = {"np_int": np.int64(3), "not_a_number": float("nan"), "array": np.ones(3), "large": "x" * 2**21}
        return replace(good, diagnostics={"my_note": values[how]})
    elif how == "nothing":
        return None
    elif how == "other_epsilon":
        return ssp(train, Budget(100.0, budget.delta), rng, design=design)
    elif how == "other_delta":
        return ssp(train, Budget(budget.epsilon, 0.5), rng, design=design)
    elif how == "other_relation":
        return replace(good, budget=Budget(budget.epsilon, budget.delta, "replace"))
    elif how == "empty_ledger":
        return replace(good, ledger=Ledger())
    elif how == "reads":
        unperturbed(good.ledger, 1.0, label="the mean")
        return good
    elif how == "overspends":
        dear = ssp(train, Budget(2 * budget.epsilon, budget.delta), rng, design=design)
        return replace(dear, budget=budget)
    elif how == "says":
        print("a plug-in says this")
    elif how == "hangs":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
        pid = fork_and(lambda: time.sleep(60))
        for one in (child.pid, pid):
            with open(note + str(one), "w"):
                pass
        time.sleep(60)
    return good
'''

MODELS = '''
import gc, os
from dataclasses import dataclass
import numpy as np
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.models.fit import Fit
from dpbench.models.linear import linear_statistics

def plain(release, *, design: Design) -> Fit:
    """Refuses to work where rows can be found, or where the release is not what is stored."""
    found = [one for one in gc.get_objects() if isinstance(one, (Table, Split))]
    if found or hasattr(release, "secret"):
        raise RuntimeError("there are rows in this process")
    return linear_statistics(release, design=design)

def nested(release, *, design: Design) -> Fit:
    """A predictor that cannot be pickled."""
    return Fit(predictor=lambda X: X[:, 0])

def noted(release, *, design: Design) -> Fit:
    """A note that is not plain."""
    return Fit(coefficients=np.zeros(len(design.columns)), notes={"steps": np.int64(3)})

def dies(release, *, design: Design) -> Fit:
    """Takes its process down."""
    os.abort()

@dataclass
class Instance:
    """A function without a hash."""
    scale: float

    def __call__(self, release, *, design: Design) -> Fit:
        return plain(release, design=design)

instance = Instance(1.0)
'''


def plugins(folder):
    """A user's folder with the plug-ins above; its mechanisms are named after what they do."""
    (folder / "mechanism").mkdir(parents=True)
    (folder / "model").mkdir()
    (folder / "own_mechanisms.py").write_text(MECHANISMS)
    (folder / "own_models.py").write_text(MODELS)
    for how in [word for word, *_ in CASES] + ["hangs"]:
        head = f"{how}:\n  _target_: own_mechanisms.plugin\n  _offers_: [statistics]\n  how: {how}\n"
        (folder / "mechanism" / f"{how}.yaml").write_text(head + '  note: ""\n')
    for name in ("plain", "nested", "noted", "dies", "instance"):
        text = f"own_{name}:\n  _target_: own_models.{name}\n  _needs_: statistics\n"
        (folder / "model" / f"own_{name}.yaml").write_text(text)
    return folder


CASES = [
    ("fine", "done", ""),
    ("swallow", "timeout", "stopped after the limit of 3 s (limits.seconds)"),
    ("lapack", "timeout", "limits.seconds"),
    ("blocks_alarm", "timeout", "limits.seconds"),
    ("resident", "oom", "the limit is 300 MB (limits.memory_mb)"),
    ("shared", "oom", "the limit is 300 MB (limits.memory_mb)"),
    ("in_grandchild", "oom", "the limit is 300 MB (limits.memory_mb)"),
    ("mapped", "done", ""),
    ("forks_share", "done", ""),
    ("exits", "crashed", "the process ended itself, with exit code 3"),
    ("killed", "crashed", "the process was ended by SIGKILL (exit code -9)"),
    ("segfault", "crashed", "the process was ended by SIGSEGV (exit code -11)"),
    ("dies_before_its_fork", "crashed", "SIGKILL"),
    ("sys_exit", "failed", "SystemExit: 0 (own_mechanisms.py:"),
    ("interrupts", "failed", "KeyboardInterrupt (own_mechanisms.py:"),
    ("generator_exit", "failed", "GeneratorExit (own_mechanisms.py:"),
    ("key", "failed", "KeyError: 'foo' (own_mechanisms.py:LINE)"),
    ("path", "failed", "FileNotFoundError: [Errno 2] No such file or directory: 'rows.csv' (own_mechanisms.py:"),
    ("wide_message", "failed", "xxx ... (cut)"),
    ("carries", "failed", "must return a"),
    ("np_int", "failed", "int64"),
    ("not_a_number", "failed", "diagnostics"),
    ("array", "failed", "ndarray"),
    ("large", "failed", "must have at most"),
    ("nothing", "failed", "must return a"),
    ("other_epsilon", "failed", "the budget of the release must be the requested one"),
    ("other_delta", "failed", "the budget of the release must be the requested one"),
    ("other_relation", "failed", "the budget of the release must be the requested one"),
    ("empty_ledger", "failed", "the ledger of the release is empty"),
    ("reads", "failed", "the release holds the mean without noise"),
    ("overspends", "failed", "the budget was 1"),
    ("says", "done", ""),
]


MEMORY = ("resident", "shared", "in_grandchild", "mapped", "forks_share")


@pytest.fixture(scope="module")
def ran(workbench, tmp_path_factory):
    """Runs of all `CASES`: the workbench, the finished processes and the trials by mechanism."""
    bench = workbench(tmp_path_factory.mktemp("bench"))
    own, done = plugins(bench.folder / "own"), []
    others = [name for name, *_ in CASES if name not in MEMORY]
    for names, limits in ((MEMORY, ["limits.seconds=60", "limits.memory_mb=300"]), (others, ["limits.seconds=3"])):
        settings = [f"mechanism=[{','.join(names)}]", "model=[own_plain]", "repetitions=1", "epsilon=1", "jobs=3"]
        done.append(run(bench.settings("--config-dir", str(own), *settings, *limits)))
    return bench, done, {trial["key"]["release"]["mechanism"]["name"]: trial for trial in bench.trials().values()}


def run(line):
    command = [sys.executable, "-m", "dpbench", "run", "--unchecked", *line]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_what_a_plugin_does_becomes_a_status_and_a_message(ran):
    _, _, trials = ran
    line = next(i for i, text in enumerate(MECHANISMS.splitlines(), 1) if "must be named" in text)
    expected = {how: (status, message.replace("LINE", str(line))) for how, status, message in CASES}
    messages = {how: trial["error"]["message"] if trial["error"] else "" for how, trial in trials.items()}
    statuses = {how: trial["status"] for how, trial in trials.items()}
    assert statuses == {how: status for how, (status, _) in expected.items()}, messages
    assert {how: one[1] for how, one in expected.items() if one[1] not in messages[how]} == {}, messages


def test_every_trial_is_stored_and_the_exit_code_is_1(ran):
    _, done, trials = ran
    assert len(trials) == len(CASES)
    assert [one.returncode for one in done] == [1, 1]
    assert not any(word in one.stderr for one in done for word in ("Traceback", "missing"))


def test_messages_are_short_and_hold_no_folder_of_the_machine(ran):
    bench, _, trials = ran
    for trial in trials.values():
        assert len(trial["error"]["message"] if trial["error"] else "") < 2500
        assert str(bench.folder) not in str(trial["error"])
        assert "/somewhere" not in str(trial["error"]["message"] if trial["error"] else "")


def test_what_a_plugin_prints_is_kept_and_does_not_mix_with_what_the_run_says(ran):
    bench, done, trials = ran
    store = Store(bench.results, "grid")
    store.printed.scan()
    assert store.read_printed(trials["says"]["release_id"]) == "a plug-in says this\n"
    assert not [one for one in done if "a plug-in says this" in one.stdout + one.stderr]


def test_nothing_of_a_run_is_left_behind(ran):
    bench, _, _ = ran
    assert not living(str(bench.folder))


def living(text):
    """The processes with this text among their arguments."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline") as file:
                found += [int(name)] if text in file.read() else []
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("model", "status", "message"),
    [
        ("own_nested", "failed", "at the top level of a module"),
        ("own_noted", "failed", "int64"),
        ("own_dies", "crashed", "SIGABRT"),
    ],
)
def test_a_model_that_fails_fails_its_own_trials_only(bench, model, status, message):
    own = plugins(bench.folder / "own")
    line = ["--config-dir", str(own), "mechanism=[exact]", f"model=[own_plain,{model}]", "repetitions=2"]
    assert bench.run("--unchecked", *line) == 1
    found = [(trial["key"]["model"]["name"], trial["status"]) for trial in bench.trials().values()]
    assert sorted(found) == sorted([("own_plain", "done"), (model, status)] * 2)
    assert all(message in trial["error"]["message"] for trial in bench.trials().values() if trial["error"])


def test_an_own_function_may_be_an_instance_that_has_no_hash(bench):
    own = plugins(bench.folder / "own")
    line = ["--config-dir", str(own), "mechanism=[exact]", "model=[own_instance]", "repetitions=1"]
    assert bench.run("--unchecked", *line) == 0


@pytest.mark.slow
def test_imports_have_a_clock_of_their_own(bench, monkeypatch):
    """They may take longer than the function itself, but not for ever."""
    from dpbench.grid import limits

    own = plugins(bench.folder / "own")
    waits = "import os, time\nif 'DPBENCH_MEMORY_MB' in os.environ:\n    time.sleep(float(os.environ['WAIT']))\n"
    (own / "own_models.py").write_text(waits + MODELS)  # it does not wait where the run is composed
    settings = ["--config-dir", str(own), "mechanism=[exact]", "model=[own_plain]", "repetitions=1", "limits.seconds=4"]
    monkeypatch.syspath_prepend(str(own))
    monkeypatch.setattr(limits, "SETUP_SECONDS", 15.0)
    monkeypatch.setenv("WAIT", "60")
    assert bench.run(*settings) == 1
    (trial,) = bench.trials().values()
    assert (trial["status"], trial["phase"]) == ("timeout", "setup")
    assert "limits.seconds" not in trial["error"]["message"]
    monkeypatch.setenv("WAIT", "6")
    assert bench.run(*settings, "--retry-failed") == 0


@pytest.mark.parametrize("name", ["KILL", "TERM", "HUP", "INT"])
def test_processes_end_with_their_parent(bench, name):
    """Within 5 seconds, what they started included, whatever session it is in."""
    own, notes = plugins(bench.folder / "own"), bench.folder / "notes"
    notes.mkdir()
    settings = ["mechanism=[hangs]", f"mechanism.hangs.note={notes}/", "repetitions=4", "jobs=2"]
    line = [sys.executable, "-m", "dpbench", "run", "--unchecked"]
    line += bench.settings("--config-dir", str(own), *settings)
    line = ["env", "--default-signal=HUP,INT", *line]  # what runs in the background may have them ignored
    parent = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(list(notes.iterdir())) >= 6, 60)  # two workers, each with two processes of its own
    pids = [int(path.name) for path in notes.iterdir()]
    parent.send_signal(getattr(signal, f"SIG{name}"))
    start = time.monotonic()
    code = parent.wait(timeout=10)
    wait_for(lambda: not any(map(alive, pids)), 5 - (time.monotonic() - start))
    assert not [pid for pid in pids if alive(pid)]
    assert bench.trials() == {}
    assert code == (130 if name == "INT" else -getattr(signal, f"SIG{name}"))
    if name == "INT":
        told = parent.stderr.read()
        assert 0 < told.index("interrupted") < told.index("4 of 4 trials are missing")
    parent.stderr.close()


def wait_for(true, seconds):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.filterwarnings("ignore:1 tasks which were")  # of joblib, whose run ends early
def test_fail_fast_does_not_wait_for_what_is_under_way(bench, capsys):
    own = plugins(bench.folder / "own")
    settings = ["mechanism=[hangs,key]", "epsilon=1", "repetitions=1", "jobs=2", "--fail-fast", "--unchecked"]
    start = time.monotonic()
    assert bench.run("--config-dir", str(own), *settings) == 1
    assert time.monotonic() - start < 30
    assert "1 of 2 trials are missing" in capsys.readouterr().err
    assert len(bench.trials()) == 1
