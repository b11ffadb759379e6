"""Stored audits are read back, the largest bound of each kind, and damaged ones are told."""

from dataclasses import replace

import pytest

from dpbench.errors import UserError
from dpbench.grid.audits import AuditRecord, read_audits, store_audit

RECORD = AuditRecord(
    *("ssp", "tight", "replace", 1.0, 1e-5, 1.0, 0.4, "Gaussian DP", 0.95, 400, "without a record", {"a": 1}),
    *("0" * 40, False),
)


def test_the_largest_bound_of_a_mechanism_and_budget_counts(tmp_path):
    assert read_audits(tmp_path) == {}
    more, other = replace(RECORD, estimate="one run", measured=0.6), replace(RECORD, epsilon=2.0)
    paths = {store_audit(tmp_path, one) for one in (RECORD, more, other)}
    assert len(paths) == 3
    assert read_audits(tmp_path) == {more.key: more, other.key: other}
    store_audit(tmp_path, replace(more, measured=0.1))  # takes the place of the older one
    assert read_audits(tmp_path)[RECORD.key] == RECORD


def test_a_damaged_record_is_told(tmp_path):
    store_audit(tmp_path, RECORD).write_text("{}")
    with pytest.raises(UserError, match="delete it"):
        read_audits(tmp_path)
