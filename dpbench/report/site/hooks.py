"""What mkdocs does to each page of the site, besides: leaves out white space, a twelfth of its bytes."""

from __future__ import annotations

import re
from typing import Any

KEPT = re.compile(r"(<pre.*?</pre>|<script.*?</script>)", re.DOTALL)
BLANK = re.compile(r"\s*\n\s*")


def on_post_page(output: str, **_: Any) -> str:
    """The page with one line end for any white space that has one, but in code and scripts.

    >>> on_post_page("<p>\\n   a\\n\\n</p><pre>\\n  b</pre>")
    '<p>\\na\\n</p><pre>\\n  b</pre>'
    """
    parts = KEPT.split(output)
    return "".join(part if place % 2 else BLANK.sub("\n", part) for place, part in enumerate(parts))
