"""`Dataset`: what the config of a data set declares. Nothing of it is computed from rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict, TypeVar

from dpbench.data.declare import domain_from_config, read_domain_file
from dpbench.data.domain import Attribute, Domain
from dpbench.data.fetch import Source
from dpbench.errors import UserError, check_known, text_of
from dpbench.files import Json, Node
from dpbench.targets import resolve

KEYS = {  # of a data set, and the types of those that every loader reads alike; others are parameters of its loader
    "_target_": "Target",
    "name": "str | None",
    "attributes": "dict",
    "domain": "str | None",
    "target": "str | None",
    "drop": "list | None",
    "numeric": "list | None",
    "sources": "list | dict | None",
    "path": "str | None",
    "shipped": "str | None",
    "public": "bool",
    "public_data": "dict | None",
    "card": "dict | None",
    **dict.fromkeys(("encoding", "separator", "decimal", "thousands"), "str | None"),
    **dict.fromkeys(("header", "skip", "footer"), "int | None"),
    **dict.fromkeys(("outside", "alternative", "offline", "unpaid", "train_rows", "test_rows"), "Any"),
}
# How a user's file is written, where that is not the usual.
FORMAT = ("encoding", "separator", "decimal", "thousands", "header", "skip", "footer")
BOUNDS = ("declared", "data")
Item = TypeVar("Item")


class Card(TypedDict, total=False):
    """What a data set is and where it is from; `rows`: how many it has, where that is public."""

    title: str
    source: str
    licence: str
    rows: int
    notes: list[str]


@dataclass(frozen=True)
class Dataset:
    """A data set, made of the node of its config by `of`: its loader, its domain and sources, and whose rows it has.

    `loader`: the function that gives the rows (`_target_`). `drop`: attributes that are left out. `outside`: what
    becomes of a value outside its domain. `bounds`: "declared", or "data" for those of the rows, which is not private.
    `public_data`: another data set, whose rows need no privacy. `unpaid`: what its declaration took from the rows,
    which runs on them record. `path`, `shipped`: a CSV file of the user's, or of the project. `alternative`: one that
    ships, for files that are not here. `offline`: nothing is downloaded.

    `config` is the node itself, which plans store and workers are sent. A loader reads keys of its own from it, as
    `dataset["states"]`.
    """

    config: Node
    name: str
    loader: str | None
    target: str | None
    drop: tuple[str, ...]
    outside: str
    bounds: str
    public: bool
    public_data: Dataset | None
    unpaid: str | None
    card: Card
    path: str | None
    shipped: str | None
    alternative: str | None
    offline: bool

    @classmethod
    def of(cls, config: Node) -> Dataset:
        """The data set of a node. Raises `UserError` for `drop`, `bounds` or `public` that are none."""
        drop, public = config.get("drop") or [], config.get("public", False)
        if not isinstance(drop, (list, tuple)) or not all(isinstance(name, str) for name in drop):
            raise UserError(f"dataset.drop must be a list, such as dataset.drop=[education], not {drop!r}")
        if not isinstance(public, bool):
            raise UserError(f"dataset.public must be true or false, not {public!r}")
        bounds = str(config.get("bounds", "declared"))
        check_known("dataset.bounds", bounds, BOUNDS)
        other = config.get("public_data")
        return cls(
            config=config,
            name=str(config.get("name") or "?"),
            loader=config.get("_target_"),
            target=config.get("target"),
            drop=tuple(drop),
            outside=config.get("outside", "error"),
            bounds=bounds,
            public=public,
            public_data=cls.of(other) if isinstance(other, Mapping) else None,
            unpaid=config.get("unpaid"),
            card=config.get("card") or Card(),
            path=config.get("path"),
            shipped=config.get("shipped"),
            alternative=config.get("alternative"),
            offline=bool(config.get("offline")),
        )

    def __getitem__(self, key: str) -> Any:
        return self.config[key]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key of the config, such as one that only the loader knows."""
        return self.config.get(key, default)

    @property
    def parameters(self) -> Json:
        """What only the loader knows, and bounds that are those of the rows: part of what identifies them."""
        found = {key: value for key, value in self.config.items() if key not in (*KEYS, "bounds")}
        found |= {key: self.config[key] for key in FORMAT if self.config.get(key) is not None}
        return found if self.bounds == "declared" else {**found, "bounds": self.bounds}

    @property
    def load(self) -> Callable[[Dataset], Any]:
        """The function that `loader` names."""
        if not self.loader:
            raise UserError(f"dataset={self.name} has no _target_, the function that loads it")
        return resolve("dataset", self.loader, f"dataset={self.name}: _target_")

    @cached_property
    def domain(self) -> Domain:
        """The declared domain without the attributes of `drop`.

        Raises `UserError` for a bad declaration, an unknown name in `drop`, or a target that is not an attribute.
        """
        full, drop = self.full_domain, set(self.drop)
        if "attributes" in self.config:  # else `drop` may name columns that are not declared: the loader looks
            for name in self.drop:
                full.index(name)
        kept = [name for name in full.names if name not in drop]
        if not kept:
            raise UserError(f"dataset={self.name}: dataset.drop leaves no attribute")
        if self.target in drop:
            raise UserError(f"dataset.target={self.target} is also in dataset.drop; take it out of one of them")
        if self.target is not None:
            check_known("target", self.target, kept)
        return full.project(kept)

    @cached_property
    def full_domain(self) -> Domain:
        """The declared domain of all attributes, by `attributes` or in the file `domain`."""
        if "attributes" in self.config:
            given = self.config["attributes"]
            if isinstance(given, Mapping) and "_target_" in given:  # they depend on other keys of the node
                return Domain(self._computed("attributes", Attribute))
            return domain_from_config(given)
        if not self.config.get("domain"):
            raise UserError(
                f"dataset={self.name} needs dataset.domain, a YAML or JSON file that declares each attribute"
            )
        return read_domain_file(str(self.config["domain"]), self.config.get("numeric") or ())

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The files that the rows are read from, listed under `sources`, or by the `_target_` of `sources`.

        Raises `UserError` for an entry without file, url or sha256.
        """
        entries = self.config.get("sources") or ()
        if isinstance(entries, Mapping):
            return self._computed("sources", Source)
        found, name = [], str(self.config.get("name") or "")
        for entry in entries:
            if not isinstance(entry, Mapping) or set(entry) - {"members"} != {"file", "url", "sha256"}:
                raise UserError(
                    f"each of a dataset's sources needs file, url and sha256 only (and may have members): {entry}"
                )
            file, url, sha256 = (str(entry[key]) for key in ("file", "url", "sha256"))
            found.append(Source(file, url, sha256, tuple(entry.get("members") or ()), fetched_by=name))
        return tuple(found)

    def _computed(self, key: str, kind: type[Item]) -> tuple[Item, ...]:
        """The list that the `_target_` function of a key returns for the data set, each item of this kind.

        Raises `UserError` if it may not be called (see `dpbench.targets.resolve`), fails, or returns something else.
        """
        where, target = f"dataset={self.config.get('name')}: {key}._target_", self.config[key].get("_target_")
        function = resolve("dataset", target, where)
        try:
            items = tuple(function(self))
        except (TypeError, AttributeError, LookupError, ValueError) as error:
            raise UserError(f"{where} {target} failed: {text_of(error)}") from error
        if not all(isinstance(item, kind) for item in items):
            raise UserError(f"{where} {target} must return a list of {kind.__name__}")
        return items
