"""The layers: a module imports only from its own layer or one to its left."""

import ast

import pytest

from dpbench.resources import PACKAGE

LAYERS = [
    "data",
    "privacy",
    "inference",
    "releases",
    "audit",
    "mechanisms",
    "models",
    "metrics",
    "grid",
    "report",
    "commands",
    "papers",  # comes in by configs alone
]
ANYWHERE = {"errors", "files", "resources", "targets", "__version__"}
BELOW_GRID = {"config", "contracts"}  # what the grid runs, and what it may be; grid, report and commands may read it


def imports(path):
    """The layers and modules of the package that a file imports from, relative imports too."""
    here = ["dpbench", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = here[: len(here) + 1 - node.level] if node.level else []
            module = [*module, *(node.module or "").split(".")] if node.module else module
            names = module[1:2] or [alias.name for alias in node.names]
            yield from names if module[0] == "dpbench" else []
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("dpbench."))


def files(*layers):
    """All files of these layers, those of their sub-packages too."""
    return [path for layer in layers for path in (PACKAGE / layer).rglob("*.py")]


def test_a_module_imports_only_from_the_left():
    for place, layer in enumerate(LAYERS):
        allowed = set(LAYERS[: place + 1]) | ANYWHERE
        if place >= LAYERS.index("grid"):
            allowed |= BELOW_GRID
        for path in files(layer):
            assert set(imports(path)) <= allowed, path


def test_configs_and_contracts_import_nothing_that_runs_or_draws():
    allowed = set(LAYERS[: LAYERS.index("grid")]) | ANYWHERE | BELOW_GRID
    for path in [*files("config"), PACKAGE / "contracts.py"]:
        assert set(imports(path)) <= allowed, path


def test_models_and_the_report_never_see_the_real_rows():
    for path in files("models", "report"):
        text = path.read_text()
        assert "load_dataset" not in text, path
        assert "import Split" not in text, path


def test_every_folder_of_the_package_is_a_layer_or_named_beside_them():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= {*LAYERS, "config"}


@pytest.mark.parametrize(
    ("place", "text", "found"),
    [
        ("report/figures/one.py", "from ...grid import store", {"grid"}),
        ("report/figures/one.py", "from ..frames import frame", {"report"}),
        ("report/one.py", "from . import text\nfrom .. import models", {"report", "models"}),
        (
            "data/one.py",
            "import dpbench.privacy.noise, numpy\nfrom dpbench import __version__",
            {"privacy", "__version__"},
        ),
    ],
)
def test_imports_are_found_however_they_are_written(tmp_path, monkeypatch, place, text, found):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text(text)
    assert set(imports(tmp_path / place)) == found
