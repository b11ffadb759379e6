"""Fixtures of the data layer: dataset nodes as Hydra composes them, and the real files where a mirror has them."""

import os
from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from dpbench.data.dataset import Dataset
from dpbench.data.fetch import verify
from dpbench.resources import conf_dir

Node = Callable[..., dict[str, Any]]


@lru_cache
def composed(name: str, *overrides: str) -> dict[str, Any]:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = compose(f"dataset/{name}", overrides=[f"dataset.{override}" for override in overrides])
    return OmegaConf.to_container(config.dataset, resolve=True)


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
