import json
import logging

import pytest

from dpbench.grid import log_file as module
from dpbench.grid.log_file import MOST_WARNINGS, sealed, unsealed, warn


def test_a_record_is_read_back_and_is_plain_json():
    record = {"id": "a", "value": [0.1, "b"], "none": None}
    line = sealed(record)
    assert unsealed(line.encode()) == record
    assert record.items() <= json.loads(line).items()
    assert line.index("\n") == len(line) - 1


@pytest.mark.parametrize("change", [lambda text: text.replace("0.1", "0.2"), lambda text: text[:-5], lambda text: ""])
def test_what_was_edited_cut_or_emptied_does_not_count(change):
    assert unsealed(change(sealed({"id": "a", "value": 0.1})).encode()) is None


def test_each_damaged_file_is_named_once_and_of_many_the_first(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(module, "_NAMED", {})
    caplog.set_level(logging.WARNING)
    for i in range(MOST_WARNINGS + 5):
        for _ in range(2):
            warn(tmp_path / f"{i}.json", "is damaged")
    assert sum("is damaged" in record.message for record in caplog.records) == MOST_WARNINGS
    assert sum("holds more such files" in record.message for record in caplog.records) == 1
