"""A user's own table in a folder, and a way to call the command line on it."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpbench.cli import main


class Workbench:
    """A folder with a CSV, its card and a results folder; `run` calls dpbench with these settings."""

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
            "limits.test_rows=50",
            "mechanism=[exact,adassp]",
            "repetitions=3",
            f"results={self.results}",
            *more,
        ]

    def run(self, *more: str) -> int:
        return main(["run", *self.settings("jobs=1", *more)])

    def trials(self, name: str = "grid") -> dict[str, dict]:
        """Stored trials by id, without what a rerun may change."""
        found = {}
        for path in (self.results / name / "trials").glob("*.json"):
            trial = json.loads(path.read_text())
            del trial["runtime"], trial["checksum"]
            found[path.stem] = trial
        return found


@pytest.fixture(scope="session")
def workbench() -> type[Workbench]:
    return Workbench


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Workbench(tmp_path)
