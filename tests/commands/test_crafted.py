"""A results folder of a stranger, whose checksums hold: `verify` and `export` name what is wrong with it."""

import hashlib
import json
import lzma
import resource
import shutil
import subprocess
import sys
import zlib

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.files import ROOM
from dpbench.grid.log_file import sealed, unsealed
from dpbench.grid.store import Store
from dpbench.report.export_file import write_export as written_export

SECONDS = 60  # for a command, whatever it meets
MEMORY = 6 * 2**30  # bytes of addresses that it may use


@pytest.fixture(scope="module")
def whole(workbench, tmp_path_factory):
    bench = workbench(tmp_path_factory.mktemp("stored"))
    assert bench.run("mechanism=[adassp]", "repetitions=1") == 0
    return bench.results


@pytest.fixture
def stored(bench, whole):
    shutil.copytree(whole, bench.results)
    return bench


BOTH = """
import json, sys
from dpbench.cli import main
for line in json.loads(sys.argv[1]):
    print(main(line), end="\\0", flush=True)
"""


@pytest.fixture
def command(stored, capsys):
    """Commands: of each its exit code, and what it prints. `apart`: in another process, with some memory and time."""

    def run(*lines, apart=False):
        lines = [[*line, f"results={stored.results}"] for line in lines]
        if apart:
            done = subprocess.run(
                [sys.executable, "-c", BOTH, json.dumps(lines)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=SECONDS,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
            )
            assert done.returncode == 0, done.stdout
            return [(int(said.split()[-1]), said) for said in done.stdout.split("\0")[:-1]]
        capsys.readouterr()
        done = []
        for line in lines:
            code = main(line)
            said = capsys.readouterr()
            done.append((code, said.out + said.err))
        return done

    return run


def craft(bench, arrays=None, body=None, change=lambda record: None):
    """Write the release anew, with other arrays or bytes, and all its checksums; its id."""
    (log,) = (bench.results / "releases").glob("*.jsonl")
    lines, found = [], ""
    for line in log.read_bytes().splitlines(keepends=True):
        record = unsealed(line)
        if "id" in record:
            found = record["id"]
            if arrays is not None:
                record["arrays"] = arrays
            if body is not None:
                log.with_suffix(".bin").write_bytes(body)
                record["body"] = [0, len(body), hashlib.sha256(body).hexdigest()]
            change(record)
        lines.append(sealed(record).encode())
    log.write_bytes(b"".join(lines))
    return found


def is_named(command, identity, apart=False):
    (code, said), (exported, said_of_it) = command(["verify"], ["export", "--release", identity], apart=apart)
    assert code == 1 and f"1 releases are damaged: {identity}" in said, said
    assert exported == 2 and "holds no release" in said_of_it, said_of_it


@pytest.mark.parametrize("dtype", ["|O", "O,i4", "(2,)O", "V8", "M8[s]", "nonsense", ["f8"], None])
def test_only_arrays_of_numbers_and_of_text_are_read(stored, command, dtype):
    """Of type |O their bytes would be addresses of objects, of which Python runs whatever stands there."""
    pointers = np.arange(1, 5, dtype=np.int64).tobytes() * 4
    release = craft(stored, [["statistics.xtx", dtype, [2, 2], "C"]], pointers[:32])
    is_named(command, release, apart=dtype == "|O")


@pytest.mark.parametrize(
    "shape", [[2, 3], [-2, -2], [10**30, 0], [2.0, 2], ["2", 2], [2**40], 4, None, [True, 4], [2**31, 2**31, 0]]
)
def test_arrays_have_the_size_of_their_bytes(stored, command, shape):
    is_named(command, craft(stored, [["statistics.xtx", "<f8", shape, "C"]], bytes(32)))


@pytest.mark.parametrize("numbers", [2**17, 3 * 2**27])
def test_compressed_arrays_unpack_to_their_declared_size_which_is_bounded(stored, command, numbers):
    """A bomb of 3 GB, with the shape of a megabyte, and with its own."""
    packer = zlib.compressobj()
    first, again = (packer.compress(bytes(2**24)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    checksum = ((192 * 2**24) % 65521 << 16) + 1  # Adler's, of zeros
    bomb = first + 191 * again + packer.flush()[:-4] + checksum.to_bytes(4)
    is_named(command, craft(stored, [["statistics.xtx", "<f8", [numbers], "C"]], bomb), apart=True)


def test_a_release_whose_parts_do_not_fit_is_named(stored, command):
    def swapped(record):
        for one in record["arrays"]:
            one[0] = {"statistics.xtx": "statistics.xty", "statistics.xty": "statistics.xtx"}[one[0]]

    craft(stored, change=swapped)
    ((code, said),) = command(["verify"])
    assert code == 1 and "1 releases are damaged" in said


@pytest.mark.parametrize(
    "content", [{"of": [1, 10**15]}, {"of": 7}, {"body": [0, 10**15, "0"]}, {"id": [1]}, {"turn": "1"}, {"release": 5}]
)
def test_a_record_that_says_nothing_of_use_is_named(stored, command, content):
    craft(stored, change=lambda record: record.update(content))
    ((code, said),) = command(["verify"])
    assert code == 1 and "1 releases are damaged" in said, said


@pytest.mark.parametrize("text", ['{"a": ' + "[" * 100_000, '{"a": 1' + "0" * 5000, '{"a": \udcff'])
def test_a_line_that_is_no_json_is_named_though_its_checksum_holds(stored, command, text):
    body = text.encode(errors="surrogateescape")
    line = body + b', "checksum": "' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'
    (log,) = (stored.results / "grid" / "trials").glob("*.jsonl")
    log.write_bytes(log.read_bytes() + line)
    ((code, said),) = command(["verify"])
    assert code == 1 and "1 trials are damaged" in said, said


def write_export(bench, content, name="dd_ssp"):
    (bench.results / name).mkdir(parents=True)
    (bench.results / name / "trials.jsonl.xz").write_bytes(content)


def is_refused(command, problem="", apart=False):
    (code, said), (exported, said_of_it) = command(["verify"], ["export", "paper=dd_ssp"], apart=apart)
    assert code == 1 and "dd_ssp/trials.jsonl.xz: something is wrong" in said and problem in said, said
    assert "grid: 1 trials, no problem found" in said, "the others are checked all the same"
    assert exported == 2 and "is damaged or of another version" in said_of_it, said_of_it


@pytest.mark.parametrize(
    "lines",
    [
        ["[]"],
        ["{}"],
        ["5", "{}"],
        [],
        ["[" * 100_000],
        ['{"format": 1, "cells": 1}', "[]"],
        ['{"format": 1, "cells": 1, "ledgers": "x"}', "{}"],
    ],
)
def test_an_export_of_something_else_is_refused(stored, command, lines):
    write_export(stored, lzma.compress("".join(f"{line}\n" for line in lines).encode()))
    is_refused(command)


def test_an_export_that_unpacks_to_far_more_is_refused(stored, command):
    packer = lzma.LZMACompressor(preset=0)
    write_export(stored, b"".join(packer.compress(b" " * ROOM) for _ in range(2)) + packer.flush())
    is_refused(command, "times its size", apart=True)


def test_an_export_of_more_trials_than_it_lists_is_refused(stored, command):
    path = written_export(Store(stored.results, "grid").all_trials(), stored.folder)
    header, cell = lzma.decompress(path.read_bytes()).decode().splitlines()
    for count in (10**12, "1", 1.0, None):
        many = json.dumps({**json.loads(cell), "count": count})
        write_export(stored, lzma.compress(f"{header}\n{many}\n".encode()), "dd_ssp")
        is_refused(command)
        (stored.results / "dd_ssp" / "trials.jsonl.xz").unlink()
        (stored.results / "dd_ssp").rmdir()
