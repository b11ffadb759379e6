"""Sums of a table onto many of its scopes, and a table as a sum of many, compared with numpy, one scope at a time.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.sums

Cliques as AIM meets them, with as many scopes of up to four attributes, drawn with a fixed seed. Milliseconds of the
fastest of `--times` runs, and the ratio; nothing is asserted.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from benchmarks.noise import seconds

CLIQUES = {  # name -> sizes, scopes
    "Dutch, nine attributes": ((2, 12, 8, 2, 3, 6, 12, 4, 2), 26),
    "Dutch, six attributes": ((2, 12, 8, 3, 4, 2), 8),
    "Adult, three attributes": ((32, 15, 42), 3),
}


def row(name: str, shape: tuple[int, ...], scopes: int, times: int) -> None:
    """The line of one clique."""
    from dpbench.inference.sums import Addition, Summation
    from dpbench.inference.trees import bits

    rng = np.random.default_rng(0)
    table, target = rng.random(shape), np.empty(shape)
    below = [m for m in range(1, 2 ** len(shape) - 1) if m.bit_count() <= 4]
    masks = rng.choice(below, min(scopes, len(below)), replace=False).tolist()
    outs = [np.empty([shape[i] for i in bits(mask)]) for mask in masks]
    summation, addition = (
        kind(array, range(len(shape)), shape) for kind, array in ((Summation, table), (Addition, target))
    )
    for mask, out in zip(masks, outs, strict=True):
        summation.emit(mask, out)
        addition.attach(mask, rng.random(out.shape))
    gone = [tuple(i for i in range(len(shape)) if not mask >> i & 1) for mask in masks]
    wide = [
        term.table.reshape([n if term.mask >> i & 1 else 1 for i, n in enumerate(shape)]) for term in addition.inputs
    ]

    def sums() -> None:
        for axes, out in zip(gone, outs, strict=True):
            np.add.reduce(table, axis=axes, out=out)

    def adds() -> None:
        np.add(wide[0], wide[1], out=target)
        for term in itertools.islice(wide, 2, None):
            np.add(target, term, out=target)

    for what, plain, shared in (("sums onto", sums, summation.write), ("sum of", adds, addition.fill)):
        shared()
        before, now = 1e3 * seconds(plain, times), 1e3 * seconds(shared, times)
        print(f"{name:<26}{table.size:>9,}{what:>12}{len(masks):>4}{before:>10.3f}{now:>10.3f}{before / now:>8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    print(f"{'clique':<26}{'cells':>9}{'':>12}{'':>4}{'numpy ms':>10}{'ms':>10}{'ratio':>8}")
    for name, (shape, scopes) in CLIQUES.items():
        row(name, shape, scopes, options.times)


if __name__ == "__main__":
    main()
