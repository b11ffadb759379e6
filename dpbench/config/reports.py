"""Reports: the kinds of figure and table, and what a report may ask of them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from dpbench.config.labels import labels, metric_label
from dpbench.config.registry import choices, declared, read_yaml
from dpbench.config.schema import Kind, Paper
from dpbench.config.specs import AnySpec, Published, Report, Spec
from dpbench.config.values import TYPES, check_keys, check_reserved, check_values, checked_name, checked_type
from dpbench.errors import UserError, shown, unknown
from dpbench.files import Json, Node
from dpbench.targets import own_folder

DEFAULT = "metric_by_epsilon"
GROUPS = ("figure", "table")
# Keys that every kind's spec may have, as they are written: what is published is then a name.
ANY = {name: one.__forward_arg__ for name, one in AnySpec.__annotations__.items()} | {"published": "str"}
GAIN = {"trivial": "list", "exact": "list"}  # methods, see `report.frames.settings.as_gains`
REPORT = {"metrics": "list", "figures": "list", "panels": "dict", "without_details": "list"}
OTHER_METRICS = ("seconds", "peak_mb", "spent_epsilon")  # shown as a metric, and stored with every trial


def kinds() -> dict[str, Kind]:
    """The kinds of figure and table of the project and of the user's own folder."""
    found = {}
    for group in GROUPS:
        nodes = declared(group, own_folder())
        for name, path in choices(group, own_folder()).items():
            found[name] = _kind(group, name, nodes.get(name), path)
    return found


def kind_of(spec: Spec) -> Kind:
    """The kind that a spec names, `DEFAULT` if none. Raises `UserError` for an unknown one."""
    name = str(spec.get("kind") or DEFAULT)
    known = {one: (group, path) for group in GROUPS for one, path in choices(group, own_folder()).items()}
    if name not in known:
        raise unknown("kind of figure", name, known)
    group, path = known[name]
    return _kind(group, name, read_yaml(path).get(name), path)


def _kind(group: str, name: str, node: Any, path: Path) -> Kind:
    where = f"{group}.{name}"
    if not isinstance(node, dict) or "_target_" not in node:
        raise UserError(f"{path} must hold '{name}:' with a _target_ below it")
    check_reserved(where, node, {"_target_": "str"})
    found: dict[bool, dict[str, str]] = {True: {}, False: {}}  # by whether it may be left out
    for key, kind in node.items():
        if str(key).startswith("_"):
            continue
        types = [one.strip() for one in str(kind).split("|")]
        for one in types:
            if one not in TYPES:
                raise unknown(f"type of {where}, key {key},", one, TYPES)
        found["None" in types][str(key)] = " | ".join(one for one in types if one != "None")
    return Kind(group, name, node["_target_"], required=found[False], optional=found[True])


def checked_report(report: Any, metrics: Collection[str], where: str = "report") -> Report:
    """The report with all its parts and the labels of all methods; `metrics` are the names of those there are.

    Raises `UserError` for a figure of an unknown kind or metric, with an unknown key, or without one it needs.
    """
    checked_type(where, report, "dict | None")
    found: Json = {"metrics": [], "figures": [], "panels": {}, "without_details": []}
    found |= {str(key): value for key, value in (report or {}).items() if value is not None}
    check_keys(f"key of {where}", where, found, REPORT)
    for metric in found["metrics"]:
        if metric not in metrics:
            raise unknown(f"metric of {where}", str(metric), metrics)
    found["labels"] = labels()
    found["figures"] = [
        _checked_spec(spec, f"{where}.figures.{place}", metrics) for place, spec in enumerate(found["figures"])
    ]
    names = [spec["name"] for spec in found["figures"]]
    if twice := next((one for one in names if names.count(one) > 1), None):  # the page's links lead to names
        raise UserError(f"{where}: two figures or tables are called {twice!r}; give each a name of its own")
    return cast(Report, found)


def _checked_spec(given: Any, where: str, metrics: Collection[str]) -> Spec:
    """One figure or table of a report, without the keys that are null; an axis has the label of its metric."""
    checked_type(where, given, "dict")
    spec = {str(key): value for key, value in given.items() if value is not None}
    where = f"{where} ({spec['name']})" if "name" in spec else where
    kind = kind_of(cast(Spec, spec))
    known = ANY | dict(kind.required) | dict(kind.optional)
    check_keys(f"key of {where}, a {kind.name}:", where, spec, known)
    for key in ("name", *(("title",) if kind.group == "table" else ()), *kind.required):
        if key not in spec:
            raise UserError(f"{where}: a {kind.name} needs {key}")
    checked_name(spec["name"])
    if spec.get("best_setting") and "metric" not in spec:
        raise UserError(f"{where}: best_setting chooses by a metric, and this has none")
    relative: Node = spec.get("relative", {})
    for metric in filter(None, [spec.get("metric"), spec.get("against"), *relative]):
        if metric not in metrics and metric not in OTHER_METRICS:
            raise unknown(f"metric of {where}", str(metric), metrics)
    check_keys(f"key of {where}.gain", f"{where}.gain", spec.get("gain", {}), GAIN)
    references = {key: spec[key] for key in ("relative", "gain") if spec.get(key)}
    methods = labels() if references else {}
    for key, named in references.items():
        for method in (str(method) for those in named.values() for method in those):
            if method not in methods:
                raise unknown(f"method of {where}.{key}", method, methods)
    for axis, key in (("ylabel", "metric"), ("xlabel", "against")):
        if key in spec and axis in kind.optional:
            spec.setdefault(axis, metric_label(spec[key]))
    return cast(Spec, spec)


def paper_of(name: str, config_dir: Path | None = None) -> Paper:
    """The paper of conf/paper/`name`.yaml, with conf/published/`name`.yaml. Raises `UserError` for an unknown name."""
    known = choices("paper", config_dir)
    if name not in known:
        raise unknown("paper", name, known)
    paper = read_yaml(known[name])
    file = choices("published", config_dir).get(name)
    published = read_yaml(file) if file else {}
    for values in (paper, published):
        check_values(values)
    checked_type(f"paper {name}: title", paper.get("title"), "str")
    report = checked_report(paper.get("report"), choices("metric", config_dir), f"paper {name}: report")
    experiments = choices("experiment", config_dir)
    for spec in report["figures"]:
        for one in spec.get("experiments") or []:
            if one not in experiments:
                raise unknown(f"experiment of figure {spec['name']}", shown(one).strip("'"), experiments)
    return Paper(checked_name(name), paper["title"], report, cast(Published, published))
