"""What a reader finds in the packed parts of a page."""

import base64
import gzip
import json
import re


def unpacked(text, name):
    """What the link of this id downloads."""
    found = re.search(rf'id="{name}" [^>]*href="data:application/gzip;base64,([^"]*)"', text)
    return gzip.decompress(base64.b64decode(found[1])).decode()


def cells(text):
    """What the cells of a page show."""
    return json.loads(unpacked(text, "trials-data"))["cells"]


def words(cell):
    """The words of an opened cell, its trials excepted."""
    found = [f"{cell['dataset']}, {cell['method']}, ε = {cell['epsilon']}"]
    found += [f"{name} {'; '.join(term for term, _ in terms)}" for name, terms in cell["facts"]]
    if cell["ledger"]:
        found += [f"{cell['ledger']['whose']}:", *(": ".join(filter(None, line)) for line in cell["ledger"]["lines"])]
    return " ".join([*found, f"{len(cell['trials']['trial'])} of {cell['total']} trials:"])


def with_cells(text):
    """The page with the words of all its cells."""
    return "\n".join([text, *map(words, cells(text))])
