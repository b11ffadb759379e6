"""Seeds by axis: each generator depends only on what it serves, never on the order or place of execution."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text.

    >>> canonical({"b": 1, "a": [0.5]})
    '{"a":[0.5],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """The first 16 hex digits of the sha256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def generator(axis: str, value: Any) -> np.random.Generator:
    """The generator of one axis ('split', 'noise', ...) at one value of it."""
    seed = hashlib.sha256(canonical([axis, value]).encode()).digest()
    return np.random.default_rng(int.from_bytes(seed, "big"))
