"""What a `_target_` may name: functions of the kind's own layer, or of the user's folder; nothing else is imported."""

import sys

import pytest

from dpbench.errors import UserError
from dpbench.targets import own_folder, resolve, use_folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_parts.py").write_text("def mine(): return 1\nvalue = 5\n")
    use_folder(tmp_path)
    yield tmp_path
    use_folder(None)


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
