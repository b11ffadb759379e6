"""The same seed gives the same release in any process, whatever order Python gives the elements of a set."""

import hashlib
import os
import subprocess
import sys

SCRIPT = """
import hashlib, numpy as np
from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.mechanisms.aim import aim
from dpbench.mechanisms.mst import mst
from dpbench.mechanisms.mwem_pgm import mwem_pgm
from dpbench.privacy.budget import Budget
rows = np.random.default_rng(3).integers(0, [3, 4, 2, 5], size=(500, 4))
rows[:, 1] = (rows[:, 0] + rows[:, 1] // 3) % 4
for mechanism, last in ((aim, 5), (mst, 9), (mwem_pgm, 5)):
    sizes = {"c": 3, "a": 4, "b": 2, "d": last}
    domain = Domain(tuple(Attribute.categorical(name, range(size)) for name, size in sizes.items()))
    release = mechanism(Table(domain, rows), Budget(1.0), np.random.default_rng(11))
    data, arrays = release.to_parts()
    print(hashlib.sha256(repr(data).encode() + b"".join(a.tobytes() for a in arrays.values())).hexdigest())
"""


def test_same_seed_same_release_in_any_process():
    digests = set()
    for hash_seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(tuple(done.stdout.split()))
    assert len(digests) == 1
    assert [len(digest) for digest in digests.pop()] == [len(hashlib.sha256().hexdigest())] * 3
