"""One release of a table and one fit of it, in this process: what is asked of both, before and after they run."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from dpbench.config import Part, every_part
from dpbench.config.parts import with_parameters
from dpbench.config.schema import Parameters
from dpbench.config.validation import check_relation
from dpbench.contracts import check_columns
from dpbench.data.domain import Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known
from dpbench.files import Node
from dpbench.grid.own_checks import NOT_CHECKED
from dpbench.grid.records import PartKey, ReleaseKey
from dpbench.grid.spending import check_cost, cost_of
from dpbench.models.fit import check_fit
from dpbench.models.fitted import Fitted
from dpbench.privacy.budget import RELATIONS, Budget
from dpbench.releases import Release, check_release
from dpbench.targets import is_shipped

DESIGN = "design"  # of a release that regresses, in its diagnostics: the settings of its `Design`


class Watched(np.random.Generator):
    """A generator that knows whether anything was drawn from it, or from those that it spawned."""

    def __init__(self, bit_generator: np.random.BitGenerator) -> None:
        super().__init__(bit_generator)
        self._unused = bit_generator.state
        self._spawned: list[Watched] = []

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """As many of its own kind."""
        self._spawned += [Watched(one) for one in self.bit_generator.spawn(n_children)]
        return list(self._spawned[-n_children:])

    @property
    def drawn(self) -> bool:
        """Whether anything was."""
        return self.bit_generator.state != self._unused or any(one.drawn for one in self._spawned)


def private_part(
    part: Part, relation: str, epsilon: float, parameters: Parameters, config_dir: Path | None = None
) -> Part:
    """The mechanism with these parameters. Raises `UserError` unless it is private under the relation at this epsilon,
    and needs nothing that only a grid has.
    """
    check_known("relation", relation, RELATIONS)
    check_relation(part, relation, config_dir)
    if part.private == math.isinf(epsilon):
        reason = (
            "epsilon must be finite" if part.private else "it releases the rows as they are: that is epsilon=math.inf"
        )
        raise UserError(f"mechanism {part.name}: {reason}")
    if part.takes("test"):
        raise UserError(f"mechanism {part.name} looks at test rows, which are not private: only dpbench.run has them")
    if part.takes("calibration"):
        parameters = {"calibration": part.parameters.get("calibration", part.calibrations[0]), **parameters}
        check_known("calibration", parameters["calibration"], part.calibrations)
    return with_parameters(part, parameters)


def design_of(part: Part, domain: Domain, settings: Node) -> Design:
    """How the rows become features and the target, by the settings of `Design`, if the part can predict it."""
    if settings.get("target") is None:
        raise UserError(f"{part.name} regresses: give the target, one of {', '.join(domain.names)}")
    design = Design(domain, **settings)
    if part.labels and not design.binary:
        raise UserError(f"{part.name} is for a target of two levels, which {design.target!r} is not")
    design.check_levels()
    return design


def make_release(
    part: Part,
    table: Table,
    budget: Budget,
    rng: np.random.Generator,
    design: Design | None = None,
    public: Table | None = None,
    inputs: tuple[str, ...] = (),
) -> Release:
    """The release of all rows of a table, checked, within its budget by its ledger; with these non-private inputs.

    Raises `OverspentError` or `ContractError` if it is not what the mechanism promises.
    """
    reads = design if part.takes("design") else None
    supplied: dict[str, Design | Table | None] = {"design": reads} if part.takes("design") else {}
    if part.takes("public"):
        supplied["public"] = public
    made = part.function(table, budget, rng, **supplied, **part.parameters)
    found = check_release(made, part.offers, budget, table.domain)
    diagnostics = found.diagnostics
    if reads is not None:
        check_columns(found, reads)
        made_for = {one.name: getattr(reads, one.name) for one in fields(Design) if one.name != "domain"}
        diagnostics = {**diagnostics, DESIGN: made_for}
    key = ReleaseKey({}, {}, 0, 0, PartKey(part.name, part.target, part.parameters), budget)
    check_cost(cost_of(found, key), key)
    own = () if is_shipped(part.target) else (NOT_CHECKED,)
    return replace(found, diagnostics=diagnostics, nonprivate_inputs=(*found.nonprivate_inputs, *own, *inputs))


def check_reads(model: Part, offers: tuple[str, ...], config_dir: Path | None = None) -> None:
    """Raises `UserError` for a model that reads none of what a release offers."""
    if not model.reads(offers):
        reading = [one.name for one in every_part("model", config_dir).values() if one.reads(offers)]
        raise UserError(
            f"{model.name} reads {' or '.join(model.needs)}, and here are {', '.join(offers)}; models that read "
            f"what there is: {', '.join(reading)}"
        )


def fit_release(
    model: Part,
    release: Release,
    settings: Node,
    rng: np.random.Generator,
    config_dir: Path | None = None,
) -> Fitted:
    """The model's fit of a release, for the design of these settings: post-processing.

    Raises `UserError` for a model that reads none of what the release offers, or cannot predict the target, and for a
    release for another target.
    """
    check_reads(model, release.offers, config_dir)
    made_for: Node = release.diagnostics.get(DESIGN, {})
    if made_for.get("target") not in (None, settings.get("target")):
        raise UserError(f"the release is for the target {made_for['target']!r}, not {settings.get('target')!r}")
    design = design_of(model, release.domain, {**settings, **made_for})
    parameters = {**model.parameters, "rng": rng} if model.takes("rng") else dict(model.parameters)
    fit = check_fit(model.function(release, design=design, **parameters), len(design.columns))
    return Fitted(model.name, fit, design, linked=is_linked(model))


def is_linked(model: Part) -> bool:
    """Whether a model of the project fits the logarithm of the mean of a count."""
    return model.target.startswith("dpbench.models.poisson.") or model.parameters.get("family") == "poisson"
