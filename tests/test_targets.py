"""What a `_target_` may name: functions of the kind's own layer, or of the user's folder; nothing else is imported."""

import sys

import pytest

from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.targets import config_folder, own_folder, resolve, use_folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_parts.py").write_text("def mine(): return 1\nvalue = 5\n")
    use_folder(tmp_path)
    yield tmp_path
    use_folder(None)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that brings a mechanism: its entry point `theirs`, and one of a package that is gone."""
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dpbench.config_dir]\ntheirs = theirs.parts\ngone = gone\n")
    folder = tmp_path / "theirs" / "parts"
    (folder / "mechanism").mkdir(parents=True)
    (tmp_path / "theirs" / "__init__.py").write_text("raise SystemExit('imported')")
    (folder / "their_code.py").write_text("def nothing(train, budget, rng): ...\n")
    (folder / "mechanism" / "nothing.yaml").write_text("nothing: {_target_: their_code.nothing, _offers_: [rows]}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_a_package_brings_a_folder_under_the_name_of_its_entry_point(package, capsys):
    assert main(["show", "mechanism=nothing", "--config-dir", "theirs"]) == 0
    assert "their_code.nothing" in capsys.readouterr().out and own_folder() == package.resolve()
    with pytest.raises(UserError, match="elsewhere: no such folder, and no installed package brings one of that name"):
        config_folder("elsewhere")
    with pytest.raises(UserError, match="the package gone, which is to hold it, is not there"):
        config_folder("gone")


def test_a_function_of_the_kinds_own_layer():
    assert resolve("mechanism", "dpbench.mechanisms.ssp.ssp").__name__ == "ssp"


def test_a_function_of_the_users_folder_while_it_is_in_use(folder):
    assert own_folder() == folder.resolve() and resolve("model", "my_parts.mine")() == 1
    (other := folder / "other").mkdir()
    (other / "my_parts.py").write_text("def mine(): return 2\n")
    use_folder(other)
    assert resolve("model", "my_parts.mine")() == 2, "a name means the file that is there now"
    use_folder(None)
    with pytest.raises(UserError, match="or in a folder that --config-dir names"):
        resolve("model", "my_parts.mine")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("os.system", "'os.system' is not allowed"),
        ("dpbench.grid.store.sealed", "must be a function of a module in dpbench.mechanisms"),
        ("dpbench.models.linear.linear_rows", "must be a function of a module in dpbench.mechanisms"),
        ("dpbench.mechanisms.ssp.nothing", "has no function 'nothing'"),
        ("dpbench.mechanisms.ssp.np", "is module, not a function"),
        ("dpbench.mechanisms.ssp.gaussian_mu", "name the module that defines it"),
        ("my_parts.value", "'value' of .* is int, not a function"),
        ("broken.f", "cannot be imported: ZeroDivisionError"),
        ("json.f", "is hidden by another module of that name"),
        (5, "must name a function, such as my_module.my_function"),
        ("..", "must name a function"),
    ],
)
def test_anything_else_is_refused(folder, target, message):
    (folder / "broken.py").write_text("1 / 0")
    (folder / "json.py").write_text("f = print")
    with pytest.raises(UserError, match=message):
        resolve("mechanism", target, "where")


def test_what_is_refused_is_not_imported(folder):
    with pytest.raises(UserError):
        resolve("mechanism", "antigravity.geohash")
    assert "antigravity" not in sys.modules
