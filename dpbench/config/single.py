"""One release instead of a grid: the settings of a line that `dpbench run` knows too, for one mechanism and budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dpbench.config.composition import composed
from dpbench.config.parts import parts_of
from dpbench.config.schema import Parameters, Part
from dpbench.config.sizes import delta_of, epsilons_of, sample_of
from dpbench.config.values import listed
from dpbench.data.dataset import Dataset
from dpbench.errors import UserError, shown
from dpbench.files import Node
from dpbench.privacy.budget import Budget

READ = (
    *("dataset", "mechanism", "model", "epsilon", "delta", "mu", "relation", "calibration", "noise", "design"),
    *("limits", "sample"),  # of which parameters of mechanisms are taken: model_mb, the declared number of rows
)
NEEDED = ("dataset", "mechanism")


Item = TypeVar("Item")


@dataclass(frozen=True)
class Single:
    """A mechanism under a budget, and the models that its release is for; none named: none.

    `parameters`: of the mechanism, where the line gives a calibration. `delta_power`: delta as it was given, if that is
    a power of the number of rows. `design`: the settings of `Design`; its target may be None.
    """

    dataset: Dataset
    mechanism: Part
    parameters: Parameters
    models: tuple[Part, ...]
    budget: Budget
    delta_power: str | None
    design: Node


def single(overrides: Sequence[str], config_dir: Path | None = None) -> Single:
    """The release of these settings. Raises `UserError` for those of a grid, and for several of what is one here."""
    names = {item.lstrip("+~").partition("=")[0].partition(".")[0]: item for item in overrides}
    for name, item in names.items():
        if name not in READ:
            raise UserError(f"{shown(item)}: a release takes {', '.join(READ)}; {name} is for dpbench run")
    if missing := [name for name in NEEDED if name not in names]:
        example = "dpbench release dataset=csv dataset.path=my.csv dataset.domain=my.yaml mechanism=aim epsilon=1"
        raise UserError(f"name the {' and the '.join(missing)} of the release, such as {example} --out folder")
    config = composed(overrides, config_dir)
    dataset, sample = Dataset.of(config["dataset"]), sample_of(config["sample"])
    delta = delta_of(config["delta"], dataset, sample)
    mechanism = _one("mechanism", parts_of("mechanism", config, config_dir))
    calibration = _one("calibration", listed(config["calibration"]))
    own = mechanism.takes("calibration") and "calibration" not in mechanism.parameters and "calibration" in names
    return Single(
        dataset=dataset,
        mechanism=mechanism,
        parameters={"calibration": calibration} if own else {},
        models=parts_of("model", config, config_dir) if "model" in names else (),
        budget=Budget(_one("epsilon", epsilons_of(config, delta)), delta, str(config["relation"])),
        delta_power=config["delta"] if isinstance(config["delta"], str) else None,
        design=config["design"],
    )


def _one(name: str, given: Sequence[Item]) -> Item:
    if len(given) != 1:
        raise UserError(
            f"a release has one {name}, not {len(given)}: {', '.join(str(getattr(x, 'name', x)) for x in given)}"
        )
    return given[0]
