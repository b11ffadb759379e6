"""What `dpbench audit` measured, kept with the results: one small file per mechanism, budget and kind of attack."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from dpbench.config.schema import Parameters
from dpbench.errors import UserError
from dpbench.files import write_file

FOLDER = "audit"  # below `results`


@dataclass(frozen=True)
class AuditRecord:
    """The lower bound `measured` on eps at `delta`, of that confidence, for what was asked and what the ledger `spent`.

    `runs`: of the mechanism in each of an attack's tables or neighbours, seeds from 1 on; `found`: what the attack saw.
    `parameters`: those of the mechanism. `command`: the line that audited it, among others maybe. `commit`: of the
    code, None outside a checkout; `dirty`: was it changed since? `canaries`: their kind, where an attack has any.
    `code`: the digest of the mechanism's code (`identity.code_of`).
    """

    mechanism: str
    calibration: str
    relation: str
    epsilon: float
    delta: float
    spent: float
    measured: float
    estimate: str
    confidence: float
    runs: int
    found: str
    parameters: Parameters
    command: str
    commit: str | None
    dirty: bool | None
    canaries: str = ""
    code: str = ""


def store_audit(results: Path, record: AuditRecord) -> Path:
    """Write the record in place of an older one of its kind; its path."""
    budget = (record.relation, f"{record.epsilon:g}", f"{record.delta:g}")
    parts = (record.mechanism, record.calibration, *budget, record.estimate, record.canaries)
    name = "-".join(part.replace(" ", "_") for part in parts if part)
    return write_file(results / FOLDER / f"{name}.json", json.dumps(asdict(record), indent=1) + "\n")


def read_audits(results: Path) -> list[AuditRecord]:
    """All that are stored. Raises `UserError` for a damaged file."""
    found = []
    for path in sorted((results / FOLDER).glob("*.json")):
        try:
            found.append(AuditRecord(**json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{path} is not what `dpbench audit --store` writes ({error}); delete it") from None
    return found
