"""Small tables that any test may ask for, and a folder in which a user runs dpbench on a table of their own."""

import gc
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import ClassVar

import hypothesis
import numpy as np
import pytest
from _pytest.doctest import DoctestModule

from dpbench.cli import main
from dpbench.commands.stored_trials import ledgers
from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.grid.store import Store
from dpbench.report.export_file import write_export
from dpbench.targets import use_folder

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine fails no test
hypothesis.settings.load_profile("untimed")


gc.set_threshold(100_000, 20, 100)  # to look for garbage in what was imported took a tenth of the CPU time


def pytest_collection_finish() -> None:
    """What was imported stays."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Tests have no examples in their docstrings: to look for some takes as long as 50 tests."""
    return [one for one in (yield) if not isinstance(one, DoctestModule)]


@pytest.fixture(autouse=True)
def no_own_folder() -> Iterator[None]:
    """A folder of plug-ins that a test had in use is not there for the next one."""
    yield
    use_folder(None)


@pytest.fixture
def small_domain() -> Domain:
    return Domain(
        (
            Attribute.binned("age", 16, 100, 6, unit="years"),
            Attribute.categorical("work", ["private", "public", "none"]),
            Attribute.categorical("sex", ["f", "m"]),
            Attribute.discrete("grade", range(1, 6), unit="grades"),
        )
    )


@pytest.fixture
def small_table(small_domain: Domain) -> Table:
    """3,000 rows whose grade depends on the other attributes."""
    rng = np.random.default_rng(1)
    n = 3000
    age, work, sex = rng.integers(0, 6, n), rng.integers(0, 3, n), rng.integers(0, 2, n)
    grade = np.clip(np.round(0.5 * age + work - 0.5 * sex + rng.normal(0, 0.7, n)), 0, 4)
    return Table(small_domain, np.stack([age, work, sex, grade], axis=1).astype(np.int64))


class Workbench:
    """A folder with a CSV, its card and a results folder; `run` calls dpbench with these settings."""

    folders: pytest.TempPathFactory  # of this process
    made: ClassVar[dict[tuple[str, ...], "Workbench"]] = {}  # by what was run there, of which nobody changes anything

    def __init__(self, folder: Path) -> None:
        self.folder, self.results = folder, folder / "results"
        rng = np.random.default_rng(0)
        age, sex, grade = rng.integers(18, 90, 400), rng.integers(0, 2, 400), rng.integers(1, 6, 400)
        lines = [f"{a},{'fm'[s]},{g}" for a, s, g in zip(age, sex, grade, strict=True)]
        (folder / "my.csv").write_text("age,sex,grade\n" + "\n".join(lines) + "\n")
        (folder / "my.yaml").write_text(
            "age: {bounds: [16, 100], bins: 4, unit: years}\nsex: {levels: [f, m]}\ngrade: {values: [1, 2, 3, 4, 5]}\n"
        )

    def settings(self, *more: str) -> list[str]:
        return [
            "dataset=csv",
            f"dataset.path={self.folder}/my.csv",
            f"dataset.domain={self.folder}/my.yaml",
            "dataset.target=grade",
            "sample.test_rows=0.125",
            "mechanism=[exact,adassp]",
            "repetitions=3",
            f"results={self.results}",
            *more,
        ]

    def run(self, *more: str) -> int:
        return main(["run", *self.settings("jobs=1", *more)])

    def has_run(self, *more: str) -> None:
        """Be as after a `run` with these settings, which is made once for all tests of this process that begin so."""
        if more not in self.made:
            self.made[more] = Workbench(self.folders.mktemp("made"))
            assert self.made[more].run(*more) == 0
        shutil.copytree(self.made[more].results, self.results)

    def trials(self, name: str = "grid") -> dict[str, dict]:
        """Stored trials by id, without what a rerun may change."""
        found = {trial.id: trial.to_dict() for trial in Store(self.results, name).all_trials()}
        for trial in found.values():
            del trial["runtime"]
        return found

    def edit_trial(self, change: Callable[[str], str]) -> Path:
        """Change the line of the trial that was stored last; the file it stands in."""
        (path,) = (self.results / "grid" / "trials").iterdir()
        *lines, last = path.read_text().splitlines(keepends=True)
        path.write_text("".join([*lines, change(last)]))
        return path

    def keep_the_export_alone(self, name: str = "grid") -> None:
        """Export the trials with their ledgers, and remove what is not in a clean checkout."""
        store = Store(self.results, name)
        write_export(store.all_trials(), self.results / name, ledgers(store))
        for gone in (self.results / "releases", self.results / name / "trials"):
            shutil.rmtree(gone)

    def drop_trials(self, name: str = "grid") -> None:
        """Remove all stored trials, and leave the releases and fits."""
        for path in (self.results / name / "trials").iterdir():
            path.unlink()


@pytest.fixture(scope="session")
def workbench(tmp_path_factory) -> type[Workbench]:
    Workbench.folders = tmp_path_factory
    return Workbench


@pytest.fixture
def bench(tmp_path, monkeypatch, workbench):
    monkeypatch.chdir(tmp_path)
    return workbench(tmp_path)
