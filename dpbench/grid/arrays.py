"""Arrays as bytes, to the bit and in their layout in memory, on which sums depend in their last bits."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

SMALL = 2**16  # bytes of arrays that are not worth compressing
Arrays = dict[str, np.ndarray[Any, Any]]


def packed(arrays: Mapping[str, np.ndarray[Any, Any]]) -> tuple[list[list[Any]], bytes]:
    """Name, type, shape and order of each array, JSON-ready, and the bytes of all, compressed if they are many."""
    about = [[name, array.dtype.str, list(array.shape), _order(array)] for name, array in arrays.items()]
    body = b"".join(array.tobytes(_order(array)) for array in arrays.values())
    return about, body if len(body) < SMALL else zlib.compress(body)


def unpacked(about: list[list[Any]], body: bytes) -> Arrays:
    """The arrays, which cannot be written to."""
    sizes = [np.dtype(dtype).itemsize * math.prod(shape) for _, dtype, shape, _ in about]
    whole, arrays, start = body if sum(sizes) < SMALL else zlib.decompress(body), {}, 0
    for (name, dtype, shape, order), size in zip(about, sizes, strict=True):
        view: np.ndarray[Any, Any] = np.ndarray(tuple(shape), dtype, whole, start, order=order)
        arrays[name], start = np.array(view, order="A"), start + size  # a copy: aligned as arrays are
        arrays[name].setflags(write=False)
    return arrays


def _order(array: np.ndarray[Any, Any]) -> Literal["C", "F"]:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
