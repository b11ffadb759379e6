"""Source files by name and pinned checksum: from a mirror, from the cache, or downloaded."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from dpbench.errors import UserError

MIRRORS = "DPBENCH_DATA_MIRRORS"
CACHE = "DPBENCH_CACHE"
RETRIES = 2  # further attempts after a failed or damaged download; pooch waits 1, 2, ... s between them
TIMEOUT = (10, 60)  # seconds to connect, and between two pieces of an answer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A file that we do not ship: `file` is "<dataset>/<name>"; `sha256` is of its uncompressed bytes.

    Raises `UserError` for a malformed name or checksum.
    """

    file: str
    url: str
    sha256: str

    def __post_init__(self) -> None:
        """Refuse a name that could leave the cache folder, and what is no checksum."""
        if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", self.file):
            raise UserError(f"a source's file must be <dataset>/<name>, such as adult/adult.data: {self.file!r}")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise UserError(f"{self.file}: sha256 must be 64 lower-case hex digits, not {self.sha256!r}")

    @property
    def dataset(self) -> str:
        """The first part of `file`."""
        return self.file.split("/")[0]

    @property
    def name(self) -> str:
        """The last part of `file`."""
        return self.file.split("/")[1]


def sources_of(config: Mapping[str, Any]) -> tuple[Source, ...]:
    """The files that a dataset's config says it is read from.

    Raises `UserError` for an entry without file, url or sha256.
    """
    entries = config.get("sources") or ()
    for entry in entries:
        if not isinstance(entry, Mapping) or set(entry) != {"file", "url", "sha256"}:
            raise UserError(f"each of a dataset's sources needs just file, url and sha256: {entry}")
    return tuple(Source(**{key: str(value) for key, value in entry.items()}) for entry in entries)


def cache_dir() -> Path:
    """The folder of downloads: DPBENCH_CACHE, else dpbench in XDG_CACHE_HOME or ~/.cache."""
    if chosen := os.environ.get(CACHE):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpbench"


def mirror_dirs() -> tuple[Path, ...]:
    """The folders of DPBENCH_DATA_MIRRORS, in order."""
    return tuple(Path(folder) for folder in os.environ.get(MIRRORS, "").split(os.pathsep) if folder)


def open_binary(path: Path) -> IO[bytes]:
    """The file opened for reading, decompressed if its name ends in .gz."""
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def sha256_of(path: Path) -> str:
    """The sha256 of the file's uncompressed bytes.

    Raises `OSError`, `EOFError` or `zlib.error` if it cannot be read to its end.
    """
    with open_binary(path) as stream:
        return hashlib.file_digest(cast(Any, stream), "sha256").hexdigest()


def fetch(source: Source, *, offline: bool = False, alternative: str | None = None) -> Path:
    """A file with the pinned checksum: the first such in the mirrors and the cache, else downloaded.

    The path may end in .gz; `open_binary` reads both. A file with another checksum is passed over. A download
    gets its final name in the cache only after its checksum is verified, so that processes may fetch at the
    same time. `alternative` names a dataset that ships with the project, for the message.

    Raises `UserError` naming the places tried if the file cannot be had, or if the cache cannot be written.
    """
    tried: list[str] = []
    for path in _candidates(source):
        state = _state(path, source)
        if state == "ok":
            return path
        tried.append(f"{path}: {state}")
        log.warning("%s: %s; not used", path, state)
    tried += [f"{folder} ({MIRRORS}): {_absence(folder)}" for folder in mirror_dirs()]
    tried += [] if mirror_dirs() else [f"{MIRRORS}: not set"]
    tried += [] if os.path.isfile(_cached(source)) else [f"{_cached(source)} (cache): not there"]
    if offline:
        tried.append(f"{source.url}: not tried (offline)")
        raise _absent(source, tried, alternative)
    try:
        return _download(source)
    except _DownloadError as error:
        tried.append(f"{source.url}: {error}")
        raise _absent(source, tried, alternative) from error


def verify(sources: Iterable[Source]) -> list[tuple[str, str, str]]:
    """(file, state, where) of each source; nothing is downloaded.

    The state is "ok", "absent", or what is wrong with the only files of that name.
    """
    found: list[tuple[str, str, str]] = []
    for source in sources:
        states = [(source.file, _state(path, source), str(path)) for path in _candidates(source)]
        best = [state for state in states if state[1] == "ok"] or states
        found.append(best[0] if best else (source.file, "absent", ""))
    return found


# --- places ----------------------------------------------------------------------------------------------


def _cached(source: Source) -> Path:
    return cache_dir() / source.file


def _candidates(source: Source) -> Iterator[Path]:
    """The files that may be the source: in the mirrors, at most one folder deep, then in the cache."""
    for folder in mirror_dirs():
        try:
            below = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        except OSError:
            below = []
        places = dict.fromkeys([source.file, source.name, *(f"{name}/{source.name}" for name in below)])
        for place in places:
            for path in (folder / place, folder / f"{place}.gz"):
                if os.path.isfile(path):  # False, not an error, where it may not be looked at
                    yield path
    if os.path.isfile(_cached(source)):
        yield _cached(source)


def _state(path: Path, source: Source) -> str:
    try:
        digest = sha256_of(path)
    except (OSError, EOFError, zlib.error) as error:
        return f"cannot be read ({error})"
    if digest == source.sha256:
        return "ok"
    return f"another sha256 ({digest[:12]}..., expected {source.sha256[:12]}...)"


def _absence(folder: Path) -> str:
    return "no usable file of that name" if folder.is_dir() else "no such folder"


def _absent(source: Source, tried: list[str], alternative: str | None) -> UserError:
    other = f", or use the data that ship with the project: dataset={alternative}" if alternative else ""
    return UserError(
        f"the data file {source.file} is not here. Tried:\n  "
        + "\n  ".join(tried)
        + f"\nRun `dpbench data fetch {source.dataset}` with a network connection, or name a folder that holds "
        f"{source.name} (or {source.name}.gz) in {MIRRORS}{other}."
    )


# --- download --------------------------------------------------------------------------------------------


class _DownloadError(Exception):
    """Why a download failed."""


def _download(source: Source) -> Path:
    """The source downloaded into the cache, under its final name only once it is verified."""
    import pooch
    import requests

    target = _cached(source)
    received: list[str] = []

    def receive(url: str, output: str, keeper: Any) -> None:
        pooch.HTTPDownloader(timeout=TIMEOUT)(url, output, keeper)
        received.append(_described(Path(output)))

    pooch.get_logger().setLevel("WARNING")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        keeper = pooch.create(
            path=cache_dir(),
            base_url="",
            registry={source.file: f"sha256:{source.sha256}"},
            urls={source.file: source.url},
            retry_if_failed=RETRIES,
        )
        return Path(keeper.fetch(source.file, downloader=receive))
    except requests.exceptions.RequestException as error:  # before OSError, which it is a kind of
        raise _DownloadError(f"the download failed ({_short(error)})") from error
    except ValueError as error:  # pooch: the checksum differs
        what = received[-1] if received else _short(error)
        raise _DownloadError(f"what came has another sha256 than expected: {what}; not kept") from error
    except OSError as error:
        raise UserError(
            f"{source.file} cannot be stored in the cache folder {cache_dir()}: {error.strerror or error}; "
            f"make room there, or set {CACHE} to a folder that can be written"
        ) from error


def _described(path: Path) -> str:
    """What a wrong download looks like."""
    with path.open("rb") as stream:
        start = stream.read(1024).lstrip().lower()
    kind = "an HTML page" if start.startswith((b"<!doctype html", b"<html")) else "a file"
    return f"{kind} of {path.stat().st_size:,} bytes"


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "..."
