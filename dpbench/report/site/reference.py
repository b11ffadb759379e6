"""The reference of the command line, of the settings and of the Python interface, from the code."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import dpbench
from dpbench.config.catalogue import catalogue
from dpbench.report.site.documents import Checkout
from dpbench.report.site.methods import as_markdown
from dpbench.report.site.rendering import Site, code, plain, table

GROUPS = ("dataset", "mechanism", "model", "metric", "sample", "limits", "experiment", "as", "figure", "table")
COMMAND = re.compile(r"^ {4}(\w+)", re.MULTILINE)  # as the help lists them


def write_reference(site: Site, checkout: Checkout) -> None:
    """Write the three pages."""
    site.write("reference/commands.md", "\n\n".join(_commands()))
    site.write("reference/settings.md", "\n\n".join(_settings(checkout)))
    site.write("reference/python.md", "\n\n".join(_python()))


def _commands() -> Iterator[str]:
    text = _help()
    yield "# The command line"
    yield code(text, "text")
    for name in COMMAND.findall(text.partition("commands:")[2]):
        yield f"## dpbench {name}"
        yield code(_help(name), "text")


def _help(*command: str) -> str:
    """What `dpbench COMMAND --help` prints."""
    line, environment = [sys.executable, "-m", "dpbench", *command, "--help"], {**os.environ, "COLUMNS": "100"}
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout


def _settings(checkout: Checkout) -> Iterator[str]:
    yield "# Settings"
    yield (
        "Every value can be set on the command line, in Hydra's syntax: "
        "`dpbench run epsilon=[0.1,1] sample.train_rows=2000`. These are the defaults."
    )
    yield code((checkout.root / "conf" / "config.yaml").read_text(encoding="utf-8"), "yaml")
    for group in GROUPS:
        rows = [[_name(group, one.name), plain(one.about)] for one in catalogue(group)]
        yield f"## {group}"
        yield f"`dpbench show {group}=NAME` shows one with its parameters."
        yield table(["name", "what it is"], rows)


def _name(group: str, name: str) -> str:
    return f"[`{name}`](../methods/{name}.md)" if group == "mechanism" else f"`{name}`"


def _python() -> Iterator[str]:
    yield "# The Python interface"
    yield "What `import dpbench` has; [From Python](../docs/python.md) has examples."
    for name in dpbench.__all__:
        one = getattr(dpbench, name)
        if inspect.isfunction(one):
            yield f"## dpbench.{name}"
            yield code(f"dpbench.{name}{inspect.signature(one)}", "python")
            yield as_markdown(inspect.getdoc(one) or "")
        elif inspect.isclass(one):
            yield f"## dpbench.{name}"
            yield as_markdown(inspect.getdoc(one) or "")
