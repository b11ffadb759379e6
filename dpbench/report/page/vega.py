"""The library that draws the charts of a page: Vega, Vega-Lite and Vega-Embed as one script."""

from __future__ import annotations

import hmac
from contextlib import suppress
from functools import cache

from dpbench.data.fetch import cache_dir
from dpbench.errors import UserError
from dpbench.files import write_file
from dpbench.grid.seeds import signature
from dpbench.report.page.compressed import packed


@cache
def vega() -> str:
    """The script, packed. Bundling it takes seconds, so it is kept with the downloads, by its versions.

    The file is signed with the user's secret salt: one that somebody else wrote is not put into a page.
    """
    import vl_convert as vl

    versions = (vl.get_vega_version(), vl.get_vegalite_versions()[-1], vl.get_vega_embed_version())
    name = f"vega-{'-'.join(versions)}.txt"
    path = cache_dir() / name
    with suppress(OSError, ValueError, UserError):
        signed, script = path.read_text().split("\n")
        if hmac.compare_digest(signed, signature(name, script)):
            return script
    script = packed(bundle())
    with suppress(UserError):  # no salt, or a folder that cannot be written to
        write_file(path, f"{signature(name, script)}\n{script}")
    return script


def bundle() -> str:
    """The script, made anew."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
