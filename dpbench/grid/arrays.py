"""Arrays as bytes, to the bit and in their layout in memory, on which sums depend in their last bits.

What is read may come from anyone: it is arrays of numbers or of text of fixed width, and takes no more memory than its
declared shapes do.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from dpbench.errors import ContractError

SMALL = 2**16  # bytes of arrays that are not worth compressing
MOST = 2**30  # bytes of the arrays of one record
KINDS = "biufSU"  # of numpy's types; an object would be an address in memory
Arrays = dict[str, np.ndarray[Any, Any]]


def packed(arrays: Mapping[str, np.ndarray[Any, Any]]) -> tuple[list[list[Any]], bytes]:
    """Name, type, shape and order of each array, JSON-ready, and the bytes of all, compressed if they are many.

    Raises `ContractError` for arrays that `unpacked` would refuse.
    """
    for name, array in arrays.items():
        if array.dtype.kind not in KINDS:
            raise ContractError(f"{name} must be an array of numbers or of text of fixed width, not of {array.dtype}")
    if (size := sum(array.nbytes for array in arrays.values())) > MOST:
        raise ContractError(f"a release or fit may have arrays of {MOST:,} bytes at most, not of {size:,}")
    about = [[name, array.dtype.str, list(array.shape), _order(array)] for name, array in arrays.items()]
    body = b"".join(array.tobytes(_order(array)) for array in arrays.values())
    return about, body if len(body) < SMALL else zlib.compress(body)


def unpacked(about: list[list[Any]], body: bytes) -> Arrays:
    """The arrays, which cannot be written to. Raises `ValueError` or `TypeError` for what `packed` does not make."""
    sizes = [_size(dtype, shape) for _, dtype, shape, _ in about]
    whole, arrays, start = _whole(body, sum(sizes)), {}, 0
    for (name, dtype, shape, order), size in zip(about, sizes, strict=True):
        view: np.ndarray[Any, Any] = np.ndarray(tuple(shape), dtype, whole, start, order=order)
        arrays[name], start = np.array(view, order="A"), start + size  # a copy: aligned as arrays are
        arrays[name].setflags(write=False)
    return arrays


def _size(dtype: object, shape: list[Any]) -> int:
    """The bytes of an array."""
    if not isinstance(dtype, str) or np.dtype(dtype).kind not in KINDS:
        raise ValueError(f"arrays of the type {dtype!r}")
    if not all(type(length) is int and 0 <= length <= MOST for length in shape):
        raise ValueError("an array of an impossible shape")
    return int(np.dtype(dtype).itemsize * math.prod(shape))


def _whole(body: bytes, size: int) -> bytes:
    """The bytes of all arrays, which must be as many as their shapes say."""
    if size > MOST:
        raise ValueError(f"arrays of more than {MOST:,} bytes")
    if size >= SMALL:
        decoder = zlib.decompressobj()
        try:
            body = decoder.decompress(body, size + 1)  # no more, whatever it unpacks to
        except zlib.error as error:
            raise ValueError(str(error)) from error
    if len(body) != size:
        raise ValueError("arrays of other sizes than their shapes say")
    return body


def _order(array: np.ndarray[Any, Any]) -> Literal["C", "F"]:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
