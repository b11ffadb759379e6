"""The GANs of smartnoise-synth 1.0.8 (BinAgg, section 5.2) and its AIM, which run in a Python environment of their own.

Its MST and MWEM are not adapted: an audit found that they do not keep their promise (docs/packages.md).
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dpbench.data.coding import code_frame
from dpbench.data.domain import Attribute, Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known
from dpbench.files import Json, Node
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import claimed
from dpbench.releases import Release, SyntheticRows
from dpbench.resources import PACKAGE

WORKER = PACKAGE / "mechanisms" / "_snsynth_worker.py"
VARIABLE = "DPBENCH_SNSYNTH_PYTHON"
ROWS_PER_TEACHER = 1000  # of PATE-GAN, fixed in the library

_GAN = ("latent_dim", "batch_size", "binary")
_CTGAN = (
    *("embedding_dim", "generator_dim", "discriminator_dim", "generator_lr", "generator_decay"),
    *("discriminator_lr", "discriminator_decay", "batch_size", "pac", "loss"),
)
_PATE = ("teacher_iters", "student_iters")


@dataclass(frozen=True)
class Synthesizer:
    """The settings that the library reads, what it claims, and the inputs that it uses unpaid.

    `unpaid_levels` are used only where an attribute is categorical. `binned`: numbers are given as their bins.
    """

    settings: tuple[str, ...]
    claim: str
    unpaid: tuple[str, ...] = ("the number of training rows",)
    unpaid_levels: tuple[str, ...] = ()
    binned: bool = False


_OVERSHOOT = "training ends once the account is above epsilon, not before"
_OPACUS = f"the Renyi account that Opacus 0.14 keeps for Poisson samples; {_OVERSHOOT}"
_MOMENTS = f"the moments account of PATE; {_OVERSHOOT}"
_FREQUENCIES = "the frequencies of the levels, which condition training and sampling"

SYNTHESIZERS = {
    "dpgan": Synthesizer(
        (*_GAN, "epochs"),
        f"{_OPACUS}; its batches are no Poisson samples: each epoch shuffles the rows and cuts them in equal parts",
    ),
    "dpctgan": Synthesizer(
        (*_CTGAN, "epochs", "sigma", "max_per_sample_grad_norm"),
        f"{_OPACUS}; its batches are no Poisson samples: rows are drawn with replacement, from those of one level of "
        "a categorical attribute where there is one",
        unpaid_levels=(_FREQUENCIES,),
    ),
    "pategan": Synthesizer(
        (*_GAN, *_PATE),
        f"{_MOMENTS}; teachers have consecutive blocks of rows, so that one row more or less can change all of them",
    ),
    "patectgan": Synthesizer(
        (*_CTGAN, *_PATE, "regularization", "sample_per_teacher", "noise_multiplier", "moments_order"),
        f"{_MOMENTS}; void: all teachers and the student are one network, trained on the rows without noise",
        unpaid=("the number of training rows", "the training rows: the generator's critic sees them without noise"),
        unpaid_levels=(_FREQUENCIES,),
    ),
    "aim": Synthesizer(
        ("degree", "max_cells", "max_model_size", "rounds"),
        "zCDP for a record more or less, where a marginal moves by 1: its noise and selections add up to it, and no "
        "fault was found in an audit (docs/packages.md)",
        unpaid=(),
        binned=True,
    ),
}


def snsynth(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    synthesizer: str,
    settings: Node,
    rows: int,
    timeout: float | None = None,
) -> Release:
    """Synthetic rows of smartnoise-synth: of its GANs `dpgan`, `dpctgan`, `pategan` and `patectgan`, or of its `aim`.

    **Source** BinAgg, section 5.2, Tables 3 and 5: DP-GAN (Xie et al. 2018), PATE-GAN (Jordon et al. 2018), and their
    variants with the conditional generator of CTGAN (Xu et al. 2019); AIM (McKenna et al. 2022, after the code of
    private-pgm). All as smartnoise-synth 1.0.8 implements them.
    **Privacy** The library's claim for a record more or less: the ledger enters (epsilon, delta) as `claimed`.
    `diagnostics["accounted_epsilon"]` is what the noise of the run costs by the library's own account.
    `diagnostics["claim"]` and `nonprivate_inputs` say what concerns a run.
    *GANs*: reading the code says that the claim does not hold as it stands. All four use the exact number of rows, and
    stop only once their own account is above epsilon. `dpgan` and `dpctgan` account for Poisson samples, which theirs
    are not. `dpctgan` and `patectgan` read the frequencies of categorical levels unpaid. In `patectgan` all teachers
    and the student are one network, trained on the rows without noise: it has no guarantee at all. Ganev, Annamalai
    and De Cristofaro (2024, arXiv 2406.13985) audit six implementations of PATE-GAN, and find that all leak more than
    they claim.
    *AIM*: reading the code found no fault. A marginal, whose l2 norm moves by 1, has Gaussian noise; a score, whose
    weight times its l1 norm moves by at most the largest weight, has the exponential mechanism; the last round spends
    what is left of rho, which OpenDP's conversion finds for (epsilon, delta). The total is estimated from the noisy
    marginals; n is read for the default number of rows only, which is not used here. Where a record is replaced all
    of this costs more, so that the claim is for add_remove alone. A replay on one pair of neighbours is in
    docs/packages.md.
    **Shapes** The release holds `rows` rows, with numbers for the numeric attributes; of AIM with bins alone.
    **Departures** 1. Bounds, bins and levels are the declared ones, which costs no budget; the library would spend some
    on bounds, and read the levels off the rows. 2. The library takes no seed, sets PyTorch's to 0 in its CTGANs, and
    lets Opacus set a random one; OpenDP's Gaussian noise, which AIM has, takes none. Here all noise follows from
    `rng`, and AIM's is NumPy's of the same scale. 3. A batch is at most the table, as an even number.

    `settings`: what the library's class takes. `rows`: the declared number of rows, as n is private. `timeout`: the
    most seconds for it all, where the caller sets no limit of its own. `pategan` needs 1,000 training rows. AIM's
    `max_model_size` limits the sum of its marginals, in MB, and not the model, which can be larger by far: it is for
    few attributes.

    Raises `UserError` for settings out of range, too few rows, a missing environment, or an error of the library.
    """
    _check(synthesizer, settings, budget, rows, timeout, train)
    python, found = _python(), SYNTHESIZERS[synthesizer]
    spec = {
        "synthesizer": synthesizer,
        "settings": {
            k: min(value, len(train) // 2 * 2) if k == "batch_size" else value for k, value in settings.items()
        },
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "seed": int(rng.integers(2**32)),
        "rows": rows,
        "columns": [_column(attribute, binned=found.binned) for attribute in train.domain.attributes],
    }
    ledger = Ledger()
    claimed(ledger, budget.epsilon, budget.delta, label=f"{synthesizer} of smartnoise-synth")
    given = train.codes.astype(np.float64) if found.binned else _values(train)
    values, accounted = _work(python, spec, given, timeout)
    if found.binned:
        synthetic = Table(train.domain, values.astype(np.int64))
    else:
        synthetic = _table(train.domain, values, synthesizer)
    levels = any(not attribute.numeric for attribute in train.domain.attributes)
    unpaid = (*found.unpaid, *(found.unpaid_levels if levels else ()))
    diagnostics = {"claim": found.claim, "accounted_epsilon": accounted}
    return Release(train.domain, budget, ledger, (SyntheticRows(synthetic),), diagnostics, unpaid)


def _check(synthesizer: str, settings: Node, budget: Budget, rows: int, timeout: float | None, train: Table) -> None:
    """Refuse what the library would refuse late, or not at all."""
    n, d = train.codes.shape
    check_known("synthesizer", synthesizer, SYNTHESIZERS)
    for name in settings:
        check_known(f"setting of {synthesizer}", name, SYNTHESIZERS[synthesizer].settings)
    if not math.isfinite(budget.epsilon):
        raise UserError(f"{synthesizer} needs a finite epsilon")
    if rows < 1 or (timeout is not None and not timeout > 0):
        raise UserError(f"{synthesizer}: rows and timeout must be positive, not {rows} and {timeout}")
    if synthesizer == "pategan" and n < ROWS_PER_TEACHER:
        raise UserError(f"pategan needs at least {ROWS_PER_TEACHER} training rows, one teacher for each, not {n}")
    if synthesizer == "aim" and (rounds := settings.get("rounds")) is not None and rounds < d:
        raise UserError(f"aim: rounds must be at least {d}, one for each attribute, not {rounds}")
    if n < 2:
        raise UserError(f"{synthesizer} needs at least 2 training rows, not {n}")


def _python() -> Path:
    """The interpreter of the environment that has smartnoise-synth."""
    named = os.environ.get(VARIABLE)
    python = Path(named) if named else PACKAGE.parent / ".venv-snsynth" / "bin" / "python"
    if not python.is_file():
        raise UserError(
            f"smartnoise-synth needs a Python environment of its own, and there is no {python}; "
            f"make it with `make snsynth`, or name the python of one that has the library in {VARIABLE}"
        )
    return python


def _work(python: Path, spec: Json, values: Floats, timeout: float | None) -> tuple[Floats, float]:
    """The worker's rows (rows, d), and the epsilon of the library's own account. What it prints is dropped."""
    name = spec["synthesizer"]
    with TemporaryDirectory(prefix="dpbench-") as folder:
        file, error = Path(folder, "spec.json"), Path(folder, "error.txt")
        file.write_text(json.dumps(spec), encoding="utf-8")
        np.save(file.with_name("train.npy"), values)
        # -P keeps this folder off the worker's path: this module has the name of the library
        command = [str(python), "-s", "-P", str(WORKER), "--spec", str(file)]
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
                env={**own, "PYTHONHASHSEED": "0"},  # the library iterates over sets
            )
        except subprocess.TimeoutExpired:
            raise UserError(
                f"{name} did not end within {timeout:g} s; raise mechanism.{name}.timeout, or lower its settings"
            ) from None
        if done.returncode:
            said = error.read_text(encoding="utf-8") if error.exists() else done.stderr.strip()[-500:]
            raise UserError(f"{name} of smartnoise-synth failed (exit code {done.returncode}): {said}")
        with np.load(file.with_name("result.npz")) as result:
            return result["rows"], float(result["epsilon"])


# --- a table as numbers, and back ----------------------------------------------------------------------------------


def _column(attribute: Attribute, *, binned: bool) -> Json:
    """What the worker must know of a column: the bounds of its numbers, or the number of its levels or bins."""
    if binned or attribute.bounds is None:
        return {"name": attribute.name, "levels": attribute.size}
    if attribute.missing:
        raise UserError(
            f"attribute {attribute.name!r}: smartnoise-synth knows no missing numbers; drop it, or their rows"
        )
    return {"name": attribute.name, "lower": attribute.bounds[0], "upper": attribute.bounds[1]}


def _values(table: Table) -> Floats:
    """(n, d): numbers, or the middle of the bin where they are not known; codes of categorical attributes."""
    columns: list[Any] = []
    for attribute in table.domain.attributes:
        codes = table.column(attribute.name)
        bins = np.array(attribute.values)[codes] if attribute.numeric else codes
        columns.append(table.numbers.get(attribute.name, bins))
    return np.column_stack(columns).astype(np.float64)


def _table(domain: Domain, values: Floats, synthesizer: str) -> Table:
    """The table that `_values` turned into numbers; numbers out of bounds are moved to the nearest bound."""
    import pandas as pd

    columns = {
        attribute.name: column if attribute.numeric else np.array(attribute.levels)[column.astype(np.int64)]
        for attribute, column in zip(domain.attributes, values.T, strict=True)
    }
    return code_frame(pd.DataFrame(columns), domain, outside="clip", where=f"rows of {synthesizer}")
