"""Hydra merges the config files and the settings of a line; its complaints become one message of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpbench.config.registry import check_own_files, choices, yaml_error
from dpbench.config.values import check_values, checked_type
from dpbench.errors import UserError, bounded, shown, unknown
from dpbench.resources import conf_dir
from dpbench.targets import use_folder

DATASET = {
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
    "card": "dict | None",
}
GROUPS = {"dataset": "adult_synth", "mechanism": "[exact]", "model": "[linear_statistics]", "metric": "[mse]"}
GROUPS |= {"limits": "full", "experiment": "quickstart"}  # each with an example
LOOP = "an interpolation (${...}) leads to itself"
LONGEST_SETTING, MOST_SETTINGS = 5000, 200


def composed(overrides: Sequence[str], config_dir: Path | None = None) -> dict[str, Any]:
    """What Hydra makes of the settings, as plain data. Raises `UserError` if it cannot."""
    import yaml
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    _check_settings(overrides)
    searched = list(overrides)
    if config_dir is not None:
        if not config_dir.is_dir():
            raise UserError(f"--config-dir {shown(str(config_dir))}: no such folder")
        use_folder(config_dir)
        check_own_files(config_dir)
        searched.append(f"hydra.searchpath=[{_quoted(f'file://{config_dir.resolve()}')}]")
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            config = OmegaConf.to_container(hydra_compose("config", overrides=searched), resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise _explained(error, overrides, config_dir) from error
    except yaml.YAMLError as error:
        raise yaml_error(error) from error
    except RecursionError as error:
        raise UserError(f"the configuration is nested too deep, or {LOOP}") from error
    except ValueError as error:
        if "Config group override" in str(error):
            named = [item for item in overrides if item.split("=")[0] in GROUPS]
            given = next((item for item in named if re.search(r"=(null|true|false|[\d.+-]+\w*)$", item)), "limits")
            group = given.split("=")[0]
            hint = f"a group takes the name of one of its configs, such as {group}={GROUPS[group]}"
            raise UserError(f"{given[:100]}: {hint}") from error
        raise UserError(f"the settings cannot be read: {_line(str(error))}") from error
    except Exception as error:  # Hydra lets through whatever a file or a value makes its own code raise
        raise UserError(f"the settings cannot be read: {_line(f'{type(error).__name__}: {error}')}") from error
    plain = {str(key): value for key, value in config.items()} if isinstance(config, dict) else {}
    check_values(plain)
    _check_dataset(plain.get("dataset"))
    if "experiment" in plain:
        raise UserError(
            'the experiment sets nothing: its file must begin with the line "# @package _global_", so that it '
            "speaks of the whole configuration"
        )
    return plain


def _check_settings(overrides: Sequence[str]) -> None:
    if len(overrides) > MOST_SETTINGS:
        raise UserError(f"{len(overrides)} settings are given; at most {MOST_SETTINGS} are read: put them in a file")
    for item in overrides:
        if len(item) > LONGEST_SETTING or item.count("[") + item.count("{") + item.count("(") > 500:
            raise UserError(f"a setting of {len(item):,} characters is too long: {shown(item)}; put it in a file")


def _check_dataset(node: Any) -> None:
    """The keys that every data set has are of their types; what else its loader reads is for the loader to check."""
    for key, kind in DATASET.items():
        if isinstance(node, dict) and key in node:
            checked_type(f"dataset.{key}", node[key], kind)


def _quoted(text: str) -> str:
    """A text in Hydra's syntax, whatever is in it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _explained(error: Exception, overrides: Sequence[str], config_dir: Path | None) -> UserError:
    """Hydra's complaint in one line, with the nearest known names."""
    text = str(error)
    missing = re.search(r"Could not (?:find|load) '(\w+)/([^']+)'", text)
    if missing and missing[1] == "experiment" and (words := missing[2].split("/"))[0] in GROUPS:
        hint = f"'- override /{words[0]}: {'/'.join(words[1:])}'"
        return UserError(f"the defaults of an experiment must say {hint}, not '- {words[0]}: {'/'.join(words[1:])}'")
    if missing:
        return unknown(missing[1], missing[2], choices(missing[1], config_dir))
    twice = re.search(r"To override a value use '(override [^']+)'", text) or re.search(
        r"Multiple values for (\w+)", text
    )
    if twice:
        hint = twice[1] if twice[1].startswith("override") else f"override /{twice[1]}: NAME"
        return UserError(f"the defaults of an experiment must say 'override' to change a group: '- {_slash(hint)}'")
    if "Recursive interpolation" in text:
        return UserError(f"{LOOP}: {_line(text)}")
    key = re.search(r"Could not override '([^']+)'", text) or re.search(r"Key '([^']+)' is not in struct", text)
    if key:
        return _no_such_key(key[1], overrides, config_dir)
    return UserError(f"the settings cannot be read: {_line(text)}")


def _slash(hint: str) -> str:
    """Hydra's hint, with the slash that an experiment file needs.

    >>> _slash("override dataset: adult")
    'override /dataset: adult'
    """
    return re.sub(r"^override /?", "override /", hint)


def _no_such_key(key: str, overrides: Sequence[str], config_dir: Path | None) -> UserError:
    """The message for a setting that the configuration does not have."""
    if not overrides:
        return UserError(f"the configuration has no {key!r}")
    given = next((item for item in overrides if key in item), key)
    words = key.split(".")
    known = [*composed([], config_dir), "experiment"]
    if words[0] not in known:
        return unknown("setting", key, known)
    if words[0] in ("mechanism", "model", "metric") and len(words) > 1:
        if words[1] not in choices(words[0], config_dir):
            return unknown(words[0], words[1], choices(words[0], config_dir))
        if not any(re.match(rf"{words[0]}=.*\b{words[1]}\b", item) for item in overrides):
            return UserError(
                f"cannot set {shown(given)}: is {words[1]} in the grid? {words[0]}=[...,{words[1]}] adds it. If it is, "
                f"a + in front adds a parameter that its config leaves out (dpbench show {words[0]}={words[1]})"
            )
    return UserError(
        f"cannot set {shown(given)}: this configuration has no {shown(key)}; `dpbench run --show` prints what "
        f"it has, and a + in front (+{given[:100]}) adds a parameter that it leaves at its default"
    )


def _line(text: str) -> str:
    """The first lines of a library's message in one."""
    return bounded(" ".join(line.strip() for line in text.splitlines()[:3])[:600])
