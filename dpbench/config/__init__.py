"""From a line such as `experiment=linreg_adult epsilon=[0.1,1]` to one validated `Experiment`; nothing runs here.

`registry` finds the config files, `composition` lets Hydra merge them, `experiment` checks what came out, `parts` the
mechanisms, models and metrics in it, `reports` what is to be drawn; `schema` and `specs` hold the types.
"""

from dpbench.config.composition import composed, hydra_text, quoted
from dpbench.config.experiment import compose
from dpbench.config.parts import every_part, part_of
from dpbench.config.registry import choices
from dpbench.config.reports import paper_of
from dpbench.config.schema import Experiment, Kind, Limits, Paper, Part, Sample
from dpbench.config.sizes import declared_rows, left_for_training
from dpbench.config.values import checked_name

__all__ = [
    "Experiment",
    "Kind",
    "Limits",
    "Paper",
    "Part",
    "Sample",
    "checked_name",
    "choices",
    "compose",
    "composed",
    "declared_rows",
    "every_part",
    "hydra_text",
    "left_for_training",
    "paper_of",
    "part_of",
    "quoted",
]
