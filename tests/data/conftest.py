"""Fixtures of the data layer: dataset nodes as Hydra composes them, and the real files where a mirror has them."""

import os
from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from dpbench.config.composition import filled_in, merged
from dpbench.data.dataset import Dataset
from dpbench.data.fetch import verify

Node = Callable[..., dict[str, Any]]


@lru_cache
def composed(name: str, *overrides: str) -> dict[str, Any]:
    config = merged([f"dataset.{override}" for override in overrides], config_name=f"dataset/{name}")
    return filled_in(config, {})["dataset"]


def compose_node(name: str, *overrides: str) -> dict[str, Any]:
    return deepcopy(composed(name, *overrides))


@pytest.fixture
def node() -> Node:
    """node("adult", "drop=[education]") -> the dataset's config as plain data."""
    return compose_node


@pytest.fixture
def adult(node: Node) -> dict[str, Any]:
    """Adult's node, where its files are at hand; nothing is downloaded."""
    config = node("adult")
    if any(state == "absent" for _, state, _ in verify(Dataset.of(config).sources)):
        pytest.skip("Adult's files are in no folder of DPBENCH_DATA_MIRRORS")
    return config


@pytest.fixture
def adult_hd() -> Path:
    """The folder of the file that DD-SSP starts from."""
    for folder in os.environ.get("DPBENCH_DATA_MIRRORS", "").split(os.pathsep):
        if folder and (Path(folder) / "adult_hd" / "adult.csv.gz").is_file():
            return Path(folder) / "adult_hd"
    pytest.skip("adult_hd/adult.csv.gz is in no folder of DPBENCH_DATA_MIRRORS")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache at <places>/cache, no mirrors, no proxy, no second attempt."""
    monkeypatch.setenv("DPBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DPBENCH_DATA_MIRRORS", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("dpbench.data.fetch.RETRIES", 0)
    return tmp_path
