"""Which version an identity names, and when code is compared with golden outputs."""

from dataclasses import replace

import pytest

from dpbench.cli import main
from dpbench.config.parts import part_of
from dpbench.grid import golden, versions
from dpbench.grid.code import code_of
from dpbench.targets import use_folder

SSP, AIM = "dpbench.mechanisms.ssp.ssp", "dpbench.mechanisms.aim.aim"


@pytest.fixture
def compared(monkeypatch, tmp_path):
    """Which parts were compared; those of `differs` compute something else."""
    monkeypatch.setenv("DPBENCH_CACHE", str(tmp_path))
    seen, differs = [], set()

    def compare(names):
        seen.append(names)
        return {name: "statistics: 1, it was 2" if name in differs else "" for name in names}

    monkeypatch.setattr(versions, "_compare", compare)
    compare.seen, compare.differs = seen, differs
    return compare


def edited(monkeypatch, *targets):
    """As if the code of these targets had been edited since it was compared."""
    stored = dict(golden.compared_code())
    monkeypatch.setattr(golden, "compared_code", lambda: {**stored, **dict.fromkeys(targets, "before")})


def version(name, group="mechanism", config_dir=None):
    (found,) = versions.versions_of([part_of(group, name, config_dir)]).values()
    return found


def test_code_that_was_compared_is_not_compared_again(compared):
    assert version("ssp") == "1" and not compared.seen


def test_an_edit_that_changes_no_output_leaves_the_version_and_is_compared_once(compared, monkeypatch, caplog):
    edited(monkeypatch, SSP)
    assert version("ssp") == version("ssp") == "1"
    assert compared.seen == [["mechanism/ssp", "mechanism/ssp_intervals"]]
    assert "the code of mechanism/ssp" in caplog.text


def test_an_edit_that_changes_an_output_is_another_version_of_that_part_alone(compared, monkeypatch, caplog):
    edited(monkeypatch, SSP, AIM)
    compared.differs.add("mechanism/ssp")
    assert version("ssp") == f"1+{code_of(SSP)}"
    assert (version("ssp_intervals"), version("aim")) == ("1", "3")
    assert "mechanism/ssp computes something else" in caplog.text


def test_what_cannot_be_compared_without_a_package_is_compared_when_it_is_there(compared, monkeypatch):
    edited(monkeypatch, SSP)
    monkeypatch.setattr(versions, "_compare", dict.fromkeys)
    assert version("ssp") == f"1+{code_of(SSP)}"
    monkeypatch.setattr(versions, "_compare", compared)
    assert version("ssp") == "1" and len(compared.seen) == 1


@pytest.fixture
def own(tmp_path):
    folder = tmp_path / "own"
    (folder / "mechanism").mkdir(parents=True)
    (folder / "parts.py").write_text(
        "from dpbench.mechanisms.ssp import ssp\n\ndef mine(train, budget, rng, *, design):\n"
        "    return ssp(train, budget, rng, design=design)\n"
    )
    (folder / "mechanism" / "mine.yaml").write_text("mine:\n  _target_: parts.mine\n  _offers_: [statistics]\n")
    use_folder(folder)
    yield folder
    use_folder(None)


def test_a_function_of_ones_own_has_a_digest_and_that_of_the_parts_that_it_calls(own, compared, monkeypatch):
    before = version("mine", config_dir=own)
    edited(monkeypatch, SSP)
    assert version("mine", config_dir=own) == before
    compared.differs.add("mechanism/ssp")
    (versions.cache_dir() / "compared.json").unlink()
    assert version("mine", config_dir=own) != before


def test_a_declared_version_stands_for_the_code_of_ones_own(own):
    path = own / "mechanism" / "mine.yaml"
    path.write_text(path.read_text() + "  _version_: 3\n")
    before = version("mine", config_dir=own)
    (own / "parts.py").write_text((own / "parts.py").read_text().replace("return ssp", "return 2 * ssp"))
    assert version("mine", config_dir=own) == before == "declared 3"


def test_a_part_of_the_project_takes_no_declared_version(own, capsys):
    (own / "mechanism" / "mine.yaml").write_text(f"mine:\n  _target_: {SSP}\n  _version_: 3\n")
    assert main(["show", "mechanism=mine", "--config-dir", str(own)]) == 2
    assert "_version_ is for a function of your own" in capsys.readouterr().err


def test_a_part_by_another_name_counts_all_versions_of_its_function(own, monkeypatch):
    (own / "mechanism" / "mine.yaml").write_text(f"mine:\n  _target_: {SSP}\n  _offers_: [statistics]\n")
    stored = dict(golden.stored())
    one = stored["mechanism/ssp"]
    twice = replace(one, versions=(*one.versions, {}))
    monkeypatch.setattr(golden, "stored", lambda: {**stored, "mechanism/ssp": twice})
    assert version("mine", config_dir=own) == version("ssp") == "2"
    assert version("ssp_intervals") == "1"


def test_show_names_the_version(capsys):
    assert main(["show", "mechanism=ssp"]) == 0
    assert f"({SSP}, version 1)" in capsys.readouterr().out
