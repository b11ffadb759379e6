"""Stored audits are read back, one of each kind and budget, and damaged ones are told."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpbench.commands.audit import ROUNDING
from dpbench.config.parts import declared_parts
from dpbench.errors import UserError
from dpbench.grid.audits import AuditRecord, read_audits, store_audit

RESULTS = Path(__file__).parents[2] / "results"
RECORD = AuditRecord(
    *("ssp", "tight", "replace", 1.0, 1e-5, 1.0, 0.4, "Gaussian DP", 0.95, 400, "without a record", {"a": 1}),
    *("dpbench audit", "0" * 40, False),
)


@pytest.mark.parametrize(
    "changed",
    [{"estimate": "one run"}, {"canaries": "corners"}, {"epsilon": 2.0}, {"delta": 1e-6}, {"calibration": ""}],
)
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


def test_of_the_audits_kept_here_those_of_patectgan_alone_exceed_a_ledger():
    kept = read_audits(RESULTS)
    assert {one.mechanism for one in kept if one.measured > one.spent * (1 + ROUNDING)} == {"patectgan"}
    assert all(one.commit and one.command and not one.dirty for one in kept)


WITHOUT = {
    *("tukey_em", "kendall_tukey_em", "tukey_em_published"),  # no estimate there; test_tukey_em.py has the divergence
    "snsynth_aim",  # audited as the package is installed (docs/packages.md)
}


def test_each_private_mechanism_has_an_audit_here_under_the_name_of_its_kind(tmp_path):
    kept = read_audits(RESULTS)
    private = {name for name, part in declared_parts("mechanism").items() if part.private}
    assert private - WITHOUT == {one.mechanism for one in kept}
    names = {store_audit(tmp_path, one).name for one in kept}
    assert names == {path.name for path in (RESULTS / "audit").iterdir()}
