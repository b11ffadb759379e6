"""The library of a page's charts is put together once, and a file that somebody else wrote is not taken for it."""

import pytest

from dpbench.report.page import vega as module
from dpbench.report.page.compressed import packed


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder of downloads; and the scripts that were put together."""
    made = []
    monkeypatch.setenv("DPBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "bundle", lambda: made.append("vega") or "vega")
    yield tmp_path / "cache", made
    module.vega.cache_clear()


def again():
    module.vega.cache_clear()  # as in another process
    return module.vega()


def test_it_is_put_together_once(cache):
    _, made = cache
    assert again() == again() == packed("vega")
    assert made == ["vega"]


def test_a_file_that_somebody_else_wrote_or_that_was_cut_is_made_anew(cache):
    folder, made = cache
    again()
    (path,) = folder.iterdir()
    signed = path.read_text().split("\n")[0]
    for text in (f"{signed}\n{packed('theirs')}", packed("theirs"), ""):
        path.write_text(text)
        assert again() == packed("vega")
    assert len(made) == 4


def test_without_a_folder_to_keep_it_in_it_is_made_each_time(cache):
    folder, made = cache
    folder.write_text("not a folder")
    assert again() == again() == packed("vega")
    assert len(made) == 2
