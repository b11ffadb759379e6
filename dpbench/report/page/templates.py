"""The HTML templates of this folder."""

from __future__ import annotations

from pathlib import Path

import jinja2


def template(name: str) -> jinja2.Template:
    """A template of this folder, which may include its styles and its script."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return made.get_template(name)
