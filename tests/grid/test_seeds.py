"""Seeds by axis, and the secret salt that keeps the noise of private data from being drawn again."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.grid import seeds

KEY = {"mechanism": "ssp", "repetition": 0}


@pytest.fixture
def salt(tmp_path, monkeypatch):
    path = tmp_path / "state" / "salt"
    monkeypatch.setenv(seeds.SALT, str(path))
    return path


def first(generator):
    return generator.normal()


def test_every_release_has_noise_of_its_own(salt):
    """Ten thousand keys: a first draw that came twice would be one seed for several releases."""
    keys = [{"mechanism": name, "repetition": i} for name in ("ssp", "adassp") for i in range(5000)]
    for public in (True, False):
        draws = np.array([first(seeds.noise_generator(key, public=public)) for key in keys])
        assert len(np.unique(draws)) == len(keys)
        assert abs(draws.mean()) < 5 / np.sqrt(len(keys))  # fails by chance once in two million
        assert abs(np.corrcoef(draws[:5000], draws[5000:])[0, 1]) < 5 / np.sqrt(5000)


def test_private_noise_cannot_be_drawn_from_what_is_stored(salt, monkeypatch):
    mine = first(seeds.noise_generator(KEY, public=False))
    assert mine != first(seeds.noise_generator(KEY, public=True))
    assert mine == first(seeds.noise_generator(KEY, public=False))
    monkeypatch.setenv(seeds.SALT, f"{salt}-of-another-user")
    assert mine != first(seeds.noise_generator(KEY, public=False))


def test_public_noise_is_that_of_the_committed_results():
    """A change here would make every committed result irreproducible."""
    assert first(seeds.noise_generator(KEY, public=True)) == first(seeds.generator("noise", KEY))
    assert first(seeds.noise_generator(KEY, public=True)) == 0.8145666129432427


def test_checksums_of_private_rows_are_keyed(salt, monkeypatch):
    mine = seeds.keyed("ab" * 32)
    assert len(mine) == 64
    assert mine == seeds.keyed("ab" * 32) != seeds.keyed("cd" * 32)
    monkeypatch.setenv(seeds.SALT, f"{salt}-of-another-user")
    assert seeds.keyed("ab" * 32) != mine


def test_the_salt_is_made_once_for_its_owner_alone(salt):
    seeds.secret_salt()
    assert stat.S_IMODE(os.stat(salt).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(salt.parent).st_mode) == 0o700
    assert bytes.fromhex(salt.read_text()) == seeds.secret_salt()
    assert [path.name for path in salt.parent.iterdir()] == ["salt"]


def test_processes_that_start_together_share_one_salt(salt):
    code = "from dpbench.grid.seeds import keyed; print(keyed('ab' * 32))"
    line = [sys.executable, "-c", code]
    processes = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    assert len({process.communicate()[0] for process in processes}) == 1


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [("ab" * 32, 0o644, "chmod 600"), ("ab", 0o600, "32 bytes"), ("not hex", 0o600, "restore it")],
)
def test_a_salt_that_cannot_be_trusted_is_refused(salt, content, mode, message):
    salt.parent.mkdir()
    salt.write_text(content)
    salt.chmod(mode)
    with pytest.raises(UserError, match=message):
        seeds.secret_salt()


def test_a_folder_that_cannot_be_written_is_one_message(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(seeds.SALT, str(tmp_path / "file" / "salt"))
    with pytest.raises(UserError, match="cannot be used"):
        seeds.secret_salt()


def test_the_first_salt_is_made_where_there_are_no_links_and_is_everybodys(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(seeds.os, "link", refused)
    monkeypatch.setenv(seeds.SALT, str(tmp_path / "state" / "salt"))
    salt = seeds.secret_salt()
    assert len(salt) == 32 and stat.S_IMODE((tmp_path / "state" / "salt").stat().st_mode) == 0o600
    seeds._make_salt(tmp_path / "state" / "salt")  # as of another process at once
    seeds._salt.cache_clear()
    assert seeds.secret_salt() == salt
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["salt"]
