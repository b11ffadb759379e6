"""Stored audits are read back, one of each kind and budget, and damaged ones are told."""

from dataclasses import replace

import pytest

from dpbench.errors import UserError
from dpbench.grid.audits import AuditRecord, read_audits, store_audit

RECORD = AuditRecord(
    *("ssp", "tight", "replace", 1.0, 1e-5, 1.0, 0.4, "Gaussian DP", 0.95, 400, "without a record", {"a": 1}),
    *("dpbench audit", "0" * 40, False),
)


@pytest.mark.parametrize("changed", [{"estimate": "one run"}, {"epsilon": 2.0}, {"delta": 1e-6}, {"calibration": ""}])
def test_a_newer_record_takes_the_place_of_its_own_kind_alone(changed, tmp_path):
    assert read_audits(tmp_path) == []
    other, newer = replace(RECORD, **changed), replace(RECORD, measured=0.1)
    for one in (RECORD, other, newer):
        store_audit(tmp_path, one)
    assert sorted(read_audits(tmp_path), key=str) == sorted([newer, other], key=str)


def test_a_damaged_record_is_told(tmp_path):
    store_audit(tmp_path, RECORD).write_text("{}")
    with pytest.raises(UserError, match="delete it"):
        read_audits(tmp_path)
