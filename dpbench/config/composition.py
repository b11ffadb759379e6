"""Hydra merges the config files and the settings of a line; its errors become one message of ours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from dpbench.config.omegaconf_fast import NotPlain, over, with_setting
from dpbench.config.omegaconf_fast import resolved as without_interpolations
from dpbench.config.registry import PARTS, check_own_files, choices, experiments_of, folder_of, read_yaml, yaml_error
from dpbench.config.values import check_values, checked_type
from dpbench.data.dataset import KEYS
from dpbench.errors import UserError, bounded, shown, unknown
from dpbench.files import Json, Node
from dpbench.targets import use_folder

GROUPS = {"dataset": "adult_synth", "mechanism": "[exact]", "model": "[linear_statistics]", "metric": "[mse]"}
GROUPS |= {"sample": "full", "limits": "full", "experiment": "quickstart", "as": "authors"}  # each with an example
LOOP = "an interpolation (${...}) is circular"
LONGEST_SETTING, LONGEST_EXAMPLE, MOST_SETTINGS = 5000, 300, 200


def composed(overrides: Sequence[str], config_dir: Path | None = None) -> Json:
    """What Hydra makes of the settings, as plain data. Raises `UserError` if it cannot."""
    return resolved(merged(overrides, config_dir), {}, overrides, config_dir)


def merged(overrides: Sequence[str], config_dir: Path | None = None, config_name: str = "config") -> Node:
    """The files and settings as Hydra merges them, with interpolations as they were written. Raises `UserError`.

    `config_name` is the file that names all others.
    """
    from dpbench.config.hydra_merge import merge

    _check_settings(overrides)
    searched = [found for item in overrides for found in _located(item, config_dir)]
    if config_dir is not None:
        if not config_dir.is_dir():
            raise UserError(f"--config-dir {shown(str(config_dir))}: no such folder")
        use_folder(config_dir)
        check_own_files(config_dir)
    with _explaining(overrides, config_dir):
        return merge(config_name, searched, config_dir)


def with_dataset(config: Node, name: str) -> Node:
    """What `merged` made of a line without a data set (~dataset), with one of the project below what it says of it."""
    return {**config, "dataset": over(_dataset(name), config.get("dataset") or {})}


@cache
def _dataset(name: str) -> Node:
    """The node of a data set, as its file and those that it builds on give it."""
    found: Node = merged([], config_name=f"dataset/{name}")["dataset"]
    return found


def resolved(config: Node, point: Node, overrides: Sequence[str], config_dir: Path | None = None) -> Json:
    """What `merged` made of `overrides`, with the further settings of `point`, as plain data. Raises `UserError`."""
    with _explaining([*overrides, *(f"{name}={value}" for name, value in point.items())], config_dir):
        found = filled_in(config, point)
    plain = {str(key): value for key, value in found.items()}
    _drop_settings_of_others(plain, overrides)
    _check_as(plain, overrides, config_dir)
    check_values(plain)
    _check_dataset(plain.get("dataset"))
    if "experiment" in plain:
        raise UserError(
            'the experiment sets nothing: its file must begin with the line "# @package _global_", so that it '
            "sets values of the whole configuration"
        )
    return plain


def filled_in(config: Node, point: Node) -> Node:
    """The configuration with the settings of `point`, and what its interpolations name in their place."""
    from omegaconf import OmegaConf

    try:
        found = config
        for name, value in point.items():
            found = with_setting(found, name, value, add=isinstance(value, dict))  # its names are checked later
        return without_interpolations(found)
    except NotPlain:
        made = OmegaConf.create(dict(config))
        OmegaConf.set_struct(made, True)
        for name, value in point.items():
            OmegaConf.update(made, name, value, force_add=isinstance(value, dict))
        resolved: Any = OmegaConf.to_container(made, resolve=True)
        return dict(resolved)


def _drop_settings_of_others(plain: Json, overrides: Sequence[str]) -> None:
    """Where the line names the parts of a group, or `as`, what the files set for others of its parts is left out."""
    for group in PARTS:
        nodes, mine = plain.get(group), rf"[+~]*{group}\.(\w+)"
        if isinstance(nodes, dict) and any(item.startswith((f"{group}=", "as=")) for item in overrides):
            kept = {found[1] for item in overrides if (found := re.match(mine, item))}
            plain[group] = {
                name: node
                for name, node in nodes.items()
                if name in kept or not isinstance(node, dict) or "_target_" in node
            }


def _check_as(plain: Node, overrides: Sequence[str], config_dir: Path | None) -> None:
    """A config of `as` for none of the grid's parts would give what is declared another name."""
    for item in overrides:
        found = re.fullmatch(r"as=\[?(\w+)\]?", item.strip())
        path = choices("as", config_dir).get(found[1]) if found else None
        if path:
            settings = read_yaml(path)
            names = [(group, name) for group in PARTS for name in settings.get(group) or {}]
            if set(settings) <= set(PARTS) and not any(name in (plain.get(group) or {}) for group, name in names):
                raise UserError(f"{item} sets nothing of this grid: it is for {', '.join(name for _, name in names)}")


@contextmanager
def _explaining(overrides: Sequence[str], config_dir: Path | None) -> Iterator[None]:
    """Errors of Hydra and of what it reads as one `UserError`."""
    import yaml
    from hydra.errors import HydraException, OverrideParseException
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except OverrideParseException as error:
        raise _unreadable(error.override, str(error)) from error
    except (HydraException, OmegaConfBaseException) as error:
        raise _explained(error, overrides, config_dir) from error
    except yaml.YAMLError as error:
        raise yaml_error(error) from error
    except RecursionError as error:
        raise UserError(f"the configuration is nested too deep, or {LOOP}") from error
    except ValueError as error:
        raise _no_group_value(error, overrides) from error
    except Exception as error:  # Hydra passes on any error that a file or a value causes in its code
        raise UserError(f"the settings cannot be read: {_line(f'{type(error).__name__}: {error}')}") from error


def _check_settings(overrides: Sequence[str]) -> None:
    if len(overrides) > MOST_SETTINGS:
        raise UserError(f"{len(overrides)} settings are given; at most {MOST_SETTINGS} are read: put them in a file")
    for item in overrides:
        if len(item) > LONGEST_SETTING or item.count("[") + item.count("{") + item.count("(") > 500:
            raise UserError(f"a setting of {len(item):,} characters is too long: {shown(item)}; put it in a file")
        _check_one(item)


def _check_one(override: str) -> None:
    """Hydra would merge several configs of these groups into one that is none of them."""
    found = re.fullmatch(r"\+*(dataset|sample|limits|experiment|as)=\[?([^][{}]*,[^][{}]*)\]?", override.strip())
    if not found:
        return
    group, names = found[1], [name.strip() for name in found[2].split(",") if name.strip()]
    if len(names) > 1:
        many = f"sweep.{group}=[{','.join(names)}] runs the grid on each of them"
        if group == "experiment":
            many = f"each is a run of its own: first {group}={names[0]}"
        raise UserError(f"{shown(override)}: {group} takes the name of one config; {many}")


def _check_dataset(node: Any) -> None:
    """The keys that every data set has are of their types; what else its loader reads is for the loader to check."""
    for key, kind in KEYS.items():
        if isinstance(node, dict) and key in node:
            checked_type(f"dataset.{key}", node[key], kind)


def _located(override: str, config_dir: Path | None) -> list[str]:
    """The setting as Hydra takes it: experiment=linreg_adult names the file linreg_adult.yaml in any folder, a sweep
    may be over settings that none was over before, and numbers of repetitions replace all those that were set.

    >>> _located("experiment=linreg_adult", None), _located("sweep={seed:[0,1]}", None)
    (['experiment=dd_ssp/linreg_adult'], ['+sweep={seed:[0,1]}'])
    >>> _located("repetitions={aim:2,others:1}", None)
    ['repetitions=1', 'repetitions={aim:2,others:1}']
    """
    if re.match(r"sweep[.=]", override):
        return [f"+{override}"]
    key, _, name = override.partition("=")
    if key == "repetitions" and name.startswith("{"):
        return ["repetitions=1", override]  # one map would be merged with the other
    path = choices("experiment", config_dir).get(name) if key.lstrip("+") == "experiment" else None
    return [f"{key}={folder_of(path)}{name}" if path else override]


def quoted(text: str) -> str:
    """Any text in Hydra's syntax."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def hydra_text(value: Any) -> str:
    """A value in Hydra's syntax, as it stands in a setting.

    >>> hydra_text([0, 1.5]), hydra_text(None), hydra_text("adult"), hydra_text({"bins": 2})
    ('[0,1.5]', 'null', 'adult', '{bins:2}')
    >>> hydra_text("my table.csv")
    "'my table.csv'"
    """
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{hydra_text(item)}' for key, item in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{','.join(map(hydra_text, value))}]"
    text = "null" if value is None else str(value)
    return text if not isinstance(value, (str, Path)) or re.fullmatch(r"[\w.*+-]+", text) else quoted(text)


def _unreadable(given: str, text: str) -> UserError:
    """The message for a setting that is not in Hydra's syntax."""
    if "override_grammar" not in text:
        return UserError(f"the settings cannot be read: {_line(text)}")
    key, sign, value = given.partition("=")
    if not sign:
        return UserError(f"{shown(given)} is no setting: those look like name=value")
    return UserError(
        f"the setting {shown(given)} cannot be read: text with accents, brackets or such signs needs quotes within "
        f"quotes, such as {_with_quotes(key, value)}, and a list is such as [0.1,1]"
    )


def _with_quotes(key: str, value: str) -> str:
    """A setting as a shell and Hydra both read it, if it is short: text, or each text of a list, in quotes.

    >>> print(_with_quotes("dataset.target", "CO(GT)"), _with_quotes("dataset.drop", "[CO(GT),NOx]"))
    'dataset.target="CO(GT)"' 'dataset.drop=["CO(GT)","NOx"]'
    """
    if len(value) > LONGEST_EXAMPLE or re.search(r"[\\\"'{}]", value):
        key, value = key[:LONGEST_EXAMPLE], "été; 2024"
    listed = re.fullmatch(r"\[([^][]*)\]", value)
    texts = ",".join(f'"{text.strip()}"' for text in (listed[1].split(",") if listed else [value]))
    return f"'{key}=[{texts}]'" if listed else f"'{key}={texts}'"


def _explained(error: Exception, overrides: Sequence[str], config_dir: Path | None) -> UserError:
    """Hydra's message in one line, with the nearest known names."""
    text = str(error)
    missing = re.search(r"Could not (?:find|load) '(\w+)/([^']+)'", text)
    if missing:
        return _no_such_config(missing[1], missing[2], config_dir)
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


def _no_group_value(error: ValueError, overrides: Sequence[str]) -> UserError:
    """The message for a group that was given a number, true, false or null."""
    if "Config group override" not in str(error):
        return UserError(f"the settings cannot be read: {_line(str(error))}")
    named = [item for item in overrides if item.split("=")[0] in GROUPS]
    given = next((item for item in named if re.search(r"=(null|true|false|[\d.+-]+\w*)$", item)), "limits")
    group = given.split("=")[0]
    return UserError(f"{given[:100]}: a group takes the name of one of its configs, such as {group}={GROUPS[group]}")


def _no_such_config(group: str, name: str, config_dir: Path | None) -> UserError:
    """The message for a config that is not there; the defaults of an experiment lead here too."""
    known, (first, _, rest) = choices(group, config_dir), name.partition("/")
    if group == "experiment" and first in GROUPS:
        return UserError(
            f"the defaults of an experiment must say '- override /{first}: {rest}', not '- {first}: {rest}'"
        )
    if group == "experiment" and name in known:
        return UserError(
            f"the defaults of an experiment must say '- /experiment/{folder_of(known[name])}{name}', not '- {name}'"
        )
    if group == "experiment" and (those := experiments_of(name, config_dir)):
        return UserError(
            f"{name} is a group of experiments, each a run of its own: run {group}={those[0]}"
            f"{' or one of ' if those[1:] else ''}{', '.join(those[1:])}"
        )
    return unknown(group, name, known)


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
    known = [*composed([], config_dir), "experiment", "as"]
    if words[0] not in known:
        return unknown_setting(words[0], known)
    if words[0] in PARTS and len(words) > 1:
        if words[1] not in choices(words[0], config_dir):
            return unknown(words[0], words[1], choices(words[0], config_dir))
        if not any(re.match(rf"{words[0]}=.*\b{words[1]}\b", item) for item in overrides):
            return UserError(
                f"cannot set {shown(given)}: is {words[1]} in the grid? {words[0]}=[...,{words[1]}] adds it. If it is, "
                f"a + in front adds a parameter that its config leaves out (dpbench show {words[0]}={words[1]})"
            )
    return UserError(
        f"cannot set {shown(given)}: this configuration has no {shown(key)}; `dpbench run --show` shows what "
        f"it has, and a + in front (+{given[:100]}) adds a parameter that it leaves at its default"
    )


def unknown_setting(name: str, known: Collection[str]) -> UserError:
    """The message for a name that is none of the settings `known`."""
    if name in KEYS:
        return UserError(f"unknown setting {name!r}; that of the data set is dataset.{name}")
    return unknown("setting", name, known)


def _line(text: str) -> str:
    """The first lines of a library's message in one."""
    return bounded(" ".join(line.strip() for line in text.splitlines()[:3])[:600])
