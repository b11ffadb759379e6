"""What must hold of an experiment before a plan is made of it."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path

from dpbench.config.parts import declared_parts
from dpbench.config.schema import Experiment, Part
from dpbench.config.values import checked_type
from dpbench.errors import UserError, shown, unknown
from dpbench.privacy.budget import CALIBRATIONS, RELATIONS, Budget


def check_experiment(experiment: Experiment) -> None:
    """Budget, relation, calibrations, rows, and a model for every mechanism. Raises `UserError`."""
    if experiment.relation not in RELATIONS:
        raise unknown("relation", experiment.relation, RELATIONS)
    for epsilon in experiment.epsilons:
        Budget(epsilon, experiment.delta, experiment.relation)
    for calibration in experiment.calibrations:
        if calibration not in CALIBRATIONS:
            raise unknown("calibration", calibration, CALIBRATIONS)
    for label, values in (("epsilon", experiment.epsilons), ("calibration", experiment.calibrations)):
        if not values or len(set(values)) != len(values):
            raise UserError(f"{label} must list at least one value, and none twice: {shown(list(values))}")
    untested = [metric.name for metric in experiment.metrics if metric.test_rows]
    if untested and not experiment.sample.test_rows:
        raise UserError(
            f"sample.test_rows=0 leaves {', '.join(untested)} without test rows; give some, or name other metrics"
        )
    _check_protocol(experiment)
    _check_sample(experiment)
    _check_public(experiment)
    for mechanism in experiment.mechanisms:
        check_relation(mechanism, experiment.relation, experiment.config_dir)
        _check_calibration(mechanism, experiment)
        _check_models(mechanism, experiment)


def _check_protocol(experiment: Experiment) -> None:
    """No reference is fitted to the rows that it is tested on."""
    references = [mechanism.name for mechanism in experiment.mechanisms if not mechanism.private]
    if references and experiment.sample.protocol == "authors":
        raise UserError(
            f"sample.protocol=authors gives mechanisms the test rows too, and {', '.join(references)} would release "
            "them as they are: run a non-private reference under sample.protocol=split, on the same splits"
        )


def _check_sample(experiment: Experiment) -> None:
    """No part of a table that is not public has a fixed number of rows, and none is public."""
    from dpbench.data.secret_split import testing_part

    if experiment.dataset.public:
        return
    testing_part(experiment.sample.test_rows)
    if experiment.sample.public_rows:
        raise UserError(
            f"sample.public_rows={experiment.sample.public_rows}: the table is not public, and so none of its rows is; "
            "name public rows in dataset.public_data (or set dataset.public=true, if anyone may see them all)"
        )


def _check_calibration(mechanism: Part, experiment: Experiment) -> None:
    chosen = "calibration" in mechanism.parameters or not mechanism.takes("calibration")
    if not chosen and not set(mechanism.calibrations) & set(experiment.calibrations):
        raise UserError(
            f"mechanism {mechanism.name} has no calibration {', '.join(experiment.calibrations)}; it has "
            f"{', '.join(mechanism.calibrations)}"
        )


def _check_public(experiment: Experiment) -> None:
    """The public data of another data set are declared public, and over attributes that the private ones have."""
    from dpbench.data.load import fingerprint
    from dpbench.data.public import public_domain

    public = experiment.dataset.public_data
    if public is None:
        return
    name = public.get("name")
    checked_type("dataset.public_data.name", name, "str")
    if experiment.sample.public_rows:
        raise UserError(
            f"public rows are those of dataset.public_data ({name}) or sample.public_rows of the private ones, not both"
        )
    if not public.public:
        raise UserError(f"dataset.public_data: the rows of {name} are not public; set dataset.public_data.public=true")
    public_domain(experiment.dataset.domain, public.domain)
    rows = itemgetter("_target_", "sources", "parameters", "outside")
    if rows(fingerprint(experiment.dataset)) == rows(fingerprint(public)):
        raise UserError(f"dataset.public_data: {name} reads the same rows as dataset={experiment.dataset.name}")


def check_relation(mechanism: Part, relation: str, config_dir: Path | None = None) -> None:
    """`UserError` unless the mechanism proves its guarantee between neighbours of this relation."""
    if relation in mechanism.relations:
        return
    parts = declared_parts("mechanism", config_dir).values()
    proving = sorted(part.name for part in parts if not part.private or relation in part.relations)
    raise UserError(
        f"{mechanism.name} is private under {' and '.join(mechanism.relations)}, and not proven to be under "
        f"relation={relation}; mechanisms that are: {', '.join(proving)}"
    )


def _check_models(mechanism: Part, experiment: Experiment) -> None:
    """Some model reads what the mechanism offers."""
    if any(model.reads(mechanism.offers) for model in experiment.models):
        return
    parts = declared_parts("model", experiment.config_dir).values()
    fitting = sorted(part.name for part in parts if set(part.needs) & set(mechanism.offers))
    raise UserError(
        f"none of the models given ({', '.join(model.name for model in experiment.models)}) reads what "
        f"{mechanism.name} releases ({', '.join(mechanism.offers)}); models that do: {', '.join(fitting)}"
    )
