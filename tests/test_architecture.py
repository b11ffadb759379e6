"""The layers: a module imports only from its own layer or one to its left."""

import ast

from dpbench.resources import PACKAGE

LAYERS = ["data", "privacy", "inference", "mechanisms", "models", "metrics", "grid", "report", "commands"]
ANYWHERE = {"errors", "resources", "targets", "__version__"}
BELOW_GRID = {"config", "contracts"}  # what the grid runs, and what it may be; grid, report and commands may read it


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpbench"):
            rest = node.module.split(".")[1:]
            yield from [rest[0]] if rest else [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield path.parent.name
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("dpbench."))


def test_a_module_imports_only_from_the_left():
    for place, layer in enumerate(LAYERS):
        allowed = set(LAYERS[: place + 1]) | ANYWHERE
        if place >= LAYERS.index("grid"):
            allowed |= BELOW_GRID
        for path in (PACKAGE / layer).glob("*.py"):
            assert set(imports(path)) <= allowed, path


def test_configs_and_contracts_import_nothing_that_runs_or_draws():
    allowed = set(LAYERS[: LAYERS.index("grid")]) | ANYWHERE | BELOW_GRID
    for path in [*(PACKAGE / "config").glob("*.py"), PACKAGE / "contracts.py"]:
        assert set(imports(path)) - {"report"} <= allowed, path  # of the report only a type


def test_models_and_the_report_never_see_the_real_rows():
    for layer in ("models", "report"):
        for path in (PACKAGE / layer).glob("*.py"):
            text = path.read_text()
            assert "load_dataset" not in text, path
            assert "import Split" not in text, path
