"""A release as one file in NumPy's format .npz: its arrays by name, and all else as JSON."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np

from dpbench.errors import MALFORMED, UserError

from .release_type import Release, check_release

PLAIN = "release.json"  # the array that holds the bytes of the JSON
MOST = 2**31  # bytes that are unpacked
BROKEN: tuple[type[Exception], ...] = (zipfile.BadZipFile, *MALFORMED)


def release_bytes(release: Release) -> bytes:
    """The content of the file; the same release gives the same bytes."""
    data, arrays = release.to_parts()
    plain = np.frombuffer(json.dumps(data).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **{PLAIN: plain}, **arrays)
    return file.getvalue()


def read_release(path: str | Path) -> Release:
    """The release of a file that `dpbench release` wrote, release.npz.

    Raises `UserError` for a file that cannot be read, or holds no release whose parts fit together.
    """
    try:
        with zipfile.ZipFile(path) as file:
            if sum(member.file_size for member in file.infolist()) > MOST:
                raise UserError(f"{path} would unpack to more than {MOST:,} bytes")
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        return check_release(Release.from_parts(json.loads(arrays.pop(PLAIN).tobytes()), arrays))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    except BROKEN as error:
        raise UserError(f"{path} is no release that dpbench wrote ({error})") from error
