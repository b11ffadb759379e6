"""Hydra's composition in a fraction of its time: which files in which order, and what a setting means, is Hydra's own.

Only the merge of the files is done here, on plain data, and each file and each setting is parsed once in a process.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.defaults_list import Overrides, create_defaults_list
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf._utils import get_yaml_loader
from omegaconf.errors import OmegaConfBaseException

from dpbench.config.omegaconf_fast import MISSING, NotPlain, below, has, is_plain, over, with_setting
from dpbench.files import Node
from dpbench.resources import conf_dir

VERSION = "1.3"  # of Hydra's rules
HEADER = 512  # characters of a file in which Hydra looks for its package


def merge(config_name: str, overrides: Sequence[str], own: Path | None) -> Node:
    """What Hydra's `compose` returns, over the project's files and then those of the folder `own`; so are its errors.

    It is plain data, with the interpolations as they are written, and shared: nobody may change it. Lines and files
    that set anything of Hydra's own node are left to it.
    """
    version.setbase(VERSION)
    try:
        return _merged(config_name, overrides, own)
    except OmegaConfBaseException as error:  # as Hydra has it
        raise ConfigCompositionException().with_traceback(sys.exc_info()[2]) from error
    except NotPlain:
        return _plain(_by_hydra(config_name, overrides, own))


def _merged(config_name: str, overrides: Sequence[str], own: Path | None) -> Node:
    parsed = [_parsed(one) for one in overrides]
    if any(_is_hydras(one.key_or_group) or _is_hydras(one.package) for one in parsed):
        raise NotPlain
    ConfigLoaderImpl.validate_sweep_overrides_legal(parsed, RunMode.RUN, from_shell=False)
    settings = Overrides(_Files(own), parsed).config_overrides
    groups = tuple(line for line, one in zip(overrides, parsed, strict=True) if one not in settings)
    config = _files_merged(config_name, groups) if own is None else _files_merged.__wrapped__(config_name, groups, own)
    try:
        return _with_settings(config, settings)
    except NotPlain:
        merged = OmegaConf.create(dict(config))
        OmegaConf.set_struct(merged, True)
        ConfigLoaderImpl._apply_overrides_to_config(settings, merged)
        return _plain(merged)


@lru_cache(1000)
def _files_merged(config_name: str, groups: tuple[str, ...], own: Path | None = None) -> Node:
    """What the files say that settings of groups, such as dataset=adult, lead to."""
    files, chosen = _Files(own), [_parsed(line) for line in groups]
    config: Node = {}
    for default in create_defaults_list(files, config_name, chosen, prepend_hydra=False, skip_missing=False).defaults:
        config = over(config, _embedded(files.load_config(str(default.config_path)), default.package))
    return config


def _is_hydras(key: str | None) -> bool:
    """Whether a key, group or package is of Hydra's own settings."""
    return re.match(r"hydra\b", key or "") is not None


def _embedded(file: ConfigResult | None, package: str | None) -> Node:
    """What the file says, below the keys of its package."""
    plain = file.plain if isinstance(file, _PlainResult) else None
    names = package if file is None or package is not None else file.header["package"]
    if not isinstance(plain, dict) or "hydra" in plain or _is_hydras(names):
        raise NotPlain
    return below(names, plain) if names else plain


def _with_settings(config: Node, settings: Sequence[Override]) -> Node:
    for one in settings:
        key, value = one.key_or_group, one.value()
        if one.package is not None or one.is_delete() or "${" in str(one.input_line):
            raise NotPlain
        if one.is_add() and not isinstance(value, (dict, list)) and has(config, key):
            raise NotPlain
        config = with_setting(config, key, value, add=one.is_add() or one.is_force_add())
    return config


def _plain(config: DictConfig) -> Node:
    found = OmegaConf.to_container(config, resolve=False)
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


class _PlainResult(ConfigResult):
    """A config file that is also there as plain data, without its defaults."""

    plain: Any


class _Files(ConfigRepository):
    """The project's files and those of the user's own folder, for one composition. What it loads is shared."""

    def __init__(self, own: Path | None = None) -> None:
        self.sources = [
            FileConfigSource("main", f"file://{folder}") for folder in (conf_dir(), own and own.resolve()) if folder
        ]
        self.found: dict[str, ConfigResult | None] = {}

    def load_config(self, config_path: str) -> ConfigResult | None:
        """What the file holds; the same text is parsed once. Errors are Hydra's, which name the file."""
        if config_path not in self.found:
            source = self._find_object_source(config_path, ObjectType.CONFIG)
            self.found[config_path] = None if source is None else self._load(source, config_path)
        return self.found[config_path]

    def _load(self, source: ConfigSource, config_path: str) -> ConfigResult | None:
        try:
            text = Path(source.path, ConfigSource._normalize_file_name(config_path)).read_text(encoding="utf-8")
            return _loaded(config_path, text)
        except Exception:
            return super().load_config(config_path)


@lru_cache(1000)
def _loaded(config_path: str, text: str) -> _PlainResult:
    """Of plain data OmegaConf checks no more than Hydra reads: the defaults, and whether there is anything else."""
    said = yaml.load(text, Loader=_yaml_loader())
    plain = {key: value for key, value in said.items() if key != "defaults"} if isinstance(said, dict) else said
    if isinstance(said, dict) and is_plain(said):
        said = {"defaults": said["defaults"], "else": bool(plain) or MISSING} if "defaults" in said else {}
    config = OmegaConf.create({} if said is None else said)
    file = _PlainResult("", "", config, ConfigSource._get_header_dict(text[:HEADER]), defaults_list=[])
    file.plain = plain
    if said and "defaults" in said:
        files = _Files()
        file.defaults_list = files._create_defaults_list(config_path, files._extract_defaults_list(config_path, config))
    return file


@cache
def _yaml_loader() -> Any:
    """OmegaConf's loader, which reads no dates and no key twice, over the parser in C where there is one."""
    python = get_yaml_loader()
    if not yaml.__with_libyaml__:
        return python
    from yaml._yaml import CParser

    def start(self: Any, stream: Any) -> None:
        CParser.__init__(self, stream)
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    return type("Loader", (CParser, python), {"__init__": start})


def _parsed(override: str) -> Override:
    """A setting as Hydra reads it; its functions may draw at random, all else is read once."""
    return _parsed_once(override) if "(" not in override else _parsed_once.__wrapped__(override)


@lru_cache(10_000)
def _parsed_once(override: str) -> Override:
    return OverridesParser.create().parse_overrides([override])[0]


def _by_hydra(config_name: str, overrides: Sequence[str], own: Path | None) -> DictConfig:
    """The whole composition as Hydra makes it."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    from dpbench.config.composition import quoted

    searched = [f"hydra.searchpath=[{quoted(f'file://{own.resolve()}')}]"] if own else []
    with initialize_config_dir(str(conf_dir()), version_base=VERSION):
        loader = GlobalHydra.instance().config_loader()
        if isinstance(loader, ConfigLoaderImpl):
            loader.repository = _WithoutCommandLine(loader.config_search_path)
        return compose(config_name, overrides=[*overrides, *searched])


class _WithoutCommandLine(ConfigRepository):
    """Hydra's own settings come without launcher, sweeper and logging, which are for its own command line."""

    def load_config(self, config_path: str) -> ConfigResult | None:
        found: ConfigResult | None = super().load_config(config_path)
        if found is not None and config_path == "hydra/config":
            found.defaults_list = []
        return found
