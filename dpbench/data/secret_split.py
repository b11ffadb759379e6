"""The split of a table that is not public: a secret coin for each record decides whether it is for testing."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbench.data.table import Split, Table, TestRows
from dpbench.errors import UserError

Words = NDArray[np.uint64]
CHUNK = 2**14  # rows that are hashed at once, so that they stay in the cache of the processor
KEY_BYTES = 16
COINS = {"add_remove": "records", "replace": "positions"}  # what a row's coin depends on, by the neighbouring relation


def testing_part(test_rows: TestRows) -> float:
    """The probability that a row of a private table is for testing: for [0.2, 1000] the fraction, as n is not public.

    Raises `UserError` for a number of rows, which is impossible without knowing n.

    >>> testing_part(0.3), testing_part([0.2, 1000]), testing_part(0)
    (0.3, 0.2, 0.0)
    """
    part = test_rows[0] if isinstance(test_rows, Sequence) else test_rows
    if part >= 1:
        raise UserError(
            f"sample.test_rows={part:g}: of a table that is not public each row is for testing by its own coin, "
            "so that adding or removing a record moves no other; give a probability, such as sample.test_rows=0.2 "
            "(or dataset.public=true, if anyone may see the rows)"
        )
    return float(part)


def coin_splitter(table: Table, secret: bytes) -> Callable[[str, float, str], Split]:
    """A function of a name, the probability that a row is for testing, and what coins depend on (a value of `COINS`).

    Each row has a number of 64 bits, H(name, what the coin depends on), by SipHash-2-4 (Aumasson and Bernstein 2012)
    with keys drawn from `secret`. It is for testing if this is below probability * 2^64, else for training, and the
    rows of each part are in the order of their numbers. So all rows that are not for testing are for training.

    **Neighbours.** Fix the secret and the name. Let D and D' be neighbouring tables, T and T' their training tables.

    "records" (for add/remove): the number is of (content, j), where the row is the j-th of those with this content. Of
    k equal rows the coins are those of (content, 1) to (content, k), in whatever order they are in the file: the
    multiset T is a function of the multiset D. Adding a record with this content tosses the coin of (content, k + 1),
    and no other changes. So T' = T, or T' = T and this record: neighbours under add/remove, at most one record apart.
    The same holds for the test tables. It would not work under `replace`: where the removed and the new record have
    different coins, T and T' differ in size, and a mechanism that is private under `replace` treats the size as public.

    "positions" (for replace): the number depends on the row's place in the file. D and D' have the same length n and
    differ in one place, so that T and T' have the same places in the same order: equal size, and at most one record
    replaced. The size of T follows from n, which is public here.

    Both hold for each value of the secret, so that whatever is (eps, delta)-DP for T is so for D, even against an
    adversary who knows all rows but one, and even if the secret leaks; until then, which rows are in T remains unknown.
    Results for multisets are enough, though tables have an order: the order of T is that of secret numbers, and the
    mechanisms draw their samples and parts independently of the position of a record. Contents are compared by 128 bits
    of SipHash: the probability that two of 10^7 different rows are treated as equal is below 10^-24.
    """
    contents: list[Sequence[Words]] = []  # of the rows, when first needed

    def split_of(name: str, probability: float, coins: str) -> Split:
        if coins == COINS["replace"]:
            words: Sequence[Words] = [np.arange(len(table), dtype=np.uint64)]
        else:
            if not contents:
                contents.append(_contents(table, secret))
            (words,) = contents
        numbers = siphash(words, _key(secret, f"split {name}"))
        order = np.argsort(numbers, kind="stable")
        tests = int(np.searchsorted(numbers[order], np.uint64(int(probability * 2.0**64))))
        if tests == len(table) or (probability and not tests):
            raise UserError(
                f"sample.test_rows={probability:g}: the coins leave no row for {'training' if tests else 'testing'}; "
                "choose another probability"
            )
        return Split(table.take(order[tests:]), table.take(order[:tests]))

    return split_of


def siphash(words: Sequence[Words], key: bytes) -> Words:
    """SipHash-2-4 of n messages (n,), whose j-th 8 bytes are `words[j]` (n,), under a key of 16 bytes."""
    keys = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    found = np.empty(len(words[0]), dtype=np.uint64)
    end = np.uint64((8 * len(words)) % 256 << 56)
    for start in range(0, len(found), CHUNK):
        here = slice(start, start + CHUNK)
        state = [np.full(len(found[here]), k ^ np.uint64(c)) for k, c in zip(np.tile(keys, 2), _SIP, strict=True)]
        for word in (*(one[here] for one in words), end):
            state[3] ^= word
            _rounds(state, 2)
            state[0] ^= word
        state[2] ^= np.uint64(0xFF)
        _rounds(state, 4)
        found[here] = state[0] ^ state[1] ^ state[2] ^ state[3]
    return found


_SIP = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def _rounds(v: list[Words], times: int) -> None:
    """SipRound (Figure 2.1), in place."""
    for _ in range(times):
        for a, b, left in ((0, 1, 13), (2, 3, 16)):
            v[a] += v[b]
            v[b] = _rotated(v[b], left) ^ v[a]
        v[0] = _rotated(v[0], 32)
        for a, b, left in ((0, 3, 21), (2, 1, 17)):
            v[a] += v[b]
            v[b] = _rotated(v[b], left) ^ v[a]
        v[2] = _rotated(v[2], 32)


def _rotated(x: Words, left: int) -> Words:
    return (x << np.uint64(left)) | (x >> np.uint64(64 - left))


def _key(secret: bytes, what: str) -> bytes:
    return hmac.digest(secret, what.encode(), "sha256")[:KEY_BYTES]


def _contents(table: Table, secret: bytes) -> Sequence[Words]:
    """Words of each row: 128 bits of its content, and its index among the rows with this content."""
    words = [*_packed(table), *((column + 0.0).view(np.uint64) for column in table.numbers.values())]  # -0.0 is 0.0
    one, two = (siphash(words, _key(secret, f"content {half}")) for half in (1, 2))
    order = np.lexsort((two, one))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(one[order]) != 0) | (np.diff(two[order]) != 0)
    places = np.arange(len(order))
    nth = np.empty(len(order), dtype=np.uint64)
    nth[order] = places - np.maximum.accumulate(np.where(new, places, 0))
    return one, two, nth


def _packed(table: Table) -> list[Words]:
    """The codes of each row as digits of few numbers."""
    packed, space = list[Words](), 0
    for size, column in zip(table.domain.sizes.values(), table.codes.T, strict=True):
        if size > space:
            packed, space = [*packed, np.zeros(len(table), dtype=np.uint64)], 2**64
        packed[-1] = packed[-1] * np.uint64(size) + column.astype(np.uint64)
        space //= size
    return packed
