"""Code and data are part of what identifies a result."""

import pytest

from dpbench.data.dataset import Dataset
from dpbench.errors import UserError
from dpbench.grid.code import code_of, verify_code
from dpbench.grid.identity import dataset_key, verify_data
from dpbench.grid.seeds import SALT
from dpbench.targets import FOLDER

MINE = '''
"""A mechanism."""
from helpers import noise

def mine(train, budget, rng):
    """What it does."""
    import late
    return noise(train, "dpbench.inference.mixture")
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The user's own folder."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    return tmp_path


@pytest.fixture
def own(folder, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helpers.py").write_text("from deep import more\ndef noise(x, y): return x\n")
    (tmp_path / "deep.py").write_text("more = 1\n")
    (tmp_path / "late.py").write_text("later = 1\n")
    (tmp_path / "other.py").write_text("nothing = 1\n")
    return tmp_path


def code(own):
    return code_of("mine.mine")


@pytest.mark.parametrize("name", ["mine", "helpers", "deep", "late"])
def test_an_edit_of_a_module_or_of_what_it_imports_is_other_code(own, name):
    before = code(own)
    path = own / f"{name}.py"
    path.write_text(path.read_text() + "\nanother = 2\n")
    assert code(own) != before
    path.write_text(path.read_text().removesuffix("\nanother = 2\n"))
    assert code(own) == before


def test_comments_docstrings_spaces_and_foreign_modules_are_not_code(own):
    before = code(own)
    (own / "other.py").write_text("nothing = 2\n")
    text = MINE.replace("A mechanism", "The mechanism").replace("What it does", "More")
    (own / "mine.py").write_text(text.replace("return", "# why\n    return") + "\n\n\n")
    assert code(own) == before


def test_the_projects_own_modules_count_too(own):
    """Also one that is named in a string only, as the estimation engines are."""
    before = code(own)
    (own / "mine.py").write_text(MINE.replace("dpbench.inference.mixture", "dpbench.inference.mbi_engine"))
    with_engine = code(own)
    (own / "mine.py").write_text(MINE.replace("dpbench.inference.mixture", "some text"))
    assert len({before, with_engine, code(own)}) == 3


def test_a_relative_import_is_followed(folder):
    folder /= "pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("from . import two\ndef f(): return two.x\n")
    (folder / "two.py").write_text("x = 1\n")
    before = code_of("pack.one.f")
    (folder / "two.py").write_text("x = 2\n")
    assert code_of("pack.one.f") != before


@pytest.mark.parametrize("line", ["import pack.part", "from pack.part import part"])
def test_an_edit_of_the_package_of_a_module_is_other_code(own, line):
    (own / "pack").mkdir()
    (own / "pack" / "__init__.py").write_text("SCALE = 1\n")
    (own / "pack" / "part.py").write_text("def part(): return 1\n")
    (own / "mine.py").write_text(f"{line}\n{MINE}")
    before, of_part = code(own), code_of("pack.part.part")
    (own / "pack" / "__init__.py").write_text("SCALE = 1000\n")
    assert code(own) != before and code_of("pack.part.part") != of_part


def test_a_plan_of_other_code_is_refused(own):
    part, planned = ("mine", "mine.mine"), code(own)
    verify_code(*part, planned)
    (own / "deep.py").write_text("more = 2\n")
    with pytest.raises(UserError, match="is not that of the plan"):
        verify_code(*part, planned)


def test_two_mechanisms_of_the_project_have_codes_of_their_own():
    targets = [f"dpbench.mechanisms.{name}.{name}" for name in ("ssp", "adassp", "aim", "jlt")]
    assert len({code_of(target) for target in targets}) == 4


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv(SALT, str(tmp_path / "salt"))
    (tmp_path / "my.csv").write_text("age\n1\n2\n")
    (tmp_path / "my.yaml").write_text("age: {bounds: [0, 9], bins: 3}\n")
    return {
        "_target_": "dpbench.data.tabular.load_csv",
        "name": "csv",
        "path": str(tmp_path / "my.csv"),
        "domain": str(tmp_path / "my.yaml"),
    }


def test_the_checksum_of_private_rows_stands_keyed_in_the_key(config):
    private, public = dataset_key(Dataset.of(config)), dataset_key(Dataset.of({**config, "public": True}))
    assert private["sources"] != public["sources"]
    assert {name: value for name, value in private.items() if name != "sources"} == {
        name: value for name, value in public.items() if name != "sources"
    }


def test_data_that_changed_after_the_plan_are_refused(config, tmp_path):
    key = dataset_key(Dataset.of(config))
    verify_data(Dataset.of(config), key)
    (tmp_path / "my.csv").write_text("age\n1\n3\n")
    with pytest.raises(UserError, match="its sources changed after the plan was made"):
        verify_data(Dataset.of(config), key)


OWN_LOADER = """
from dpbench.data.coding import code_frame

def load(config):
    import pandas
    return code_frame(pandas.read_csv(config["file"]), config.domain)
"""


@pytest.mark.parametrize("public", [True, False])
def test_rows_of_a_loader_of_ones_own_are_identified_by_themselves(config, tmp_path, monkeypatch, public):
    """Whatever it reads: were two tables taken for one, the noise of both would be the same."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"own_rows_{public}.py").write_text(OWN_LOADER)
    del config["path"]
    config |= {"_target_": f"own_rows_{public}.load", "file": str(tmp_path / "my.csv"), "public": public}
    key = dataset_key(Dataset.of(config))
    assert dataset_key(Dataset.of(config)) == key
    (tmp_path / "my.csv").write_text("age\n1\n8\n")
    assert dataset_key(Dataset.of(config))["sources"] != key["sources"]
    with pytest.raises(UserError, match="its sources changed after the plan was made"):
        verify_data(Dataset.of(config), key)
