"""Source files (`Source`) by name and pinned checksum: from a mirror, the cache or a download; tables in zip files."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from dpbench.errors import AbsentDataError, UserError

if TYPE_CHECKING:
    from dpbench.data.dataset import Dataset

MIRRORS = "DPBENCH_DATA_MIRRORS"
CACHE = "DPBENCH_CACHE"
RETRIES = 2  # further attempts after a failed or damaged download; pooch waits 1, 2, ... s between them
TIMEOUT = (10, 60)  # seconds to connect, and between two pieces of an answer
log = logging.getLogger(__name__)


def sort_rows(content: bytes) -> bytes:
    """The lines of a CSV file: its first, the header, and then the rows sorted, each line ended by a newline.

    Empty lines and further copies of the header are left out, so that files can be joined end to end.
    """
    header, *rows = content.splitlines() or [b""]
    return b"\n".join([header, *sorted(row for row in rows if row not in (b"", header)), b""])


def zip_state(path: Path, member: str) -> str:
    """ "ok" for an undamaged zip file with the member; else a description of the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            if member not in archive.namelist():
                return f"a zip file without {member}; it holds {', '.join(archive.namelist()[:8])}"
            return "ok" if archive.testzip() is None else "a damaged zip file"
    except (zipfile.BadZipFile, EOFError, zlib.error):
        return f"no usable zip file but {described(path)}"


def join_members(path: Path, members: Iterable[str]) -> None:
    """The zip file at `path` replaced by the table of its members; any other file is left to be refused by its
    checksum.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [archive.read(member) for member in members]
    except (zipfile.BadZipFile, zlib.error, KeyError):
        return
    path.write_bytes(sort_rows(b"\n".join(parts)))


def described(path: Path) -> str:
    """A description of a wrong download."""
    with path.open("rb") as stream:
        start = stream.read(1024).lstrip().lower()
    kind = "an HTML page" if start.startswith((b"<!doctype html", b"<html")) else "a file"
    return f"{kind} of {path.stat().st_size:,} bytes"


@dataclass(frozen=True)
class Source:
    """A file that we do not ship: `file` is "<dataset>/<name>"; `sha256` is of its uncompressed bytes.

    With `members`, the file is a table joined from these CSV members of the zip file at `url`. Its rows may then be in
    any order: `sha256` is of its bytes after `sort_rows`.

    Where no checksum is known, `sha256` is empty and the file is a zip file: any that contains the undamaged member
    `holds` is accepted, and the checksum of the downloaded one is kept next to it. `fetched_by` are the arguments with
    which `dpbench data fetch` gets the file, for messages.

    Raises `UserError` for a malformed name or checksum.
    """

    file: str
    url: str
    sha256: str
    members: tuple[str, ...] = ()
    holds: str = ""
    fetched_by: str = ""

    def __post_init__(self) -> None:
        """Refuse a name that could leave the cache folder, and an invalid checksum."""
        if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)+", self.file):
            raise UserError(f"a source's file must be <dataset>/<name>, such as adult/adult.data: {self.file!r}")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256) and (self.sha256 or not self.holds):
            raise UserError(f"{self.file}: sha256 must be 64 lower-case hex digits, not {self.sha256!r}")

    @property
    def name(self) -> str:
        """The last part of `file`."""
        return self.file.split("/")[-1]


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

    The path may end in .gz; `open_binary` reads both. A file with another checksum is ignored. A download gets
    its final name in the cache only after its checksum is verified, so that processes may fetch at the
    same time. Where no checksum is known, a zip file is searched for by its full name, and checked by its members.
    `alternative` names a dataset that ships with the project, for the message.

    Raises `UserError` naming the places tried if the file is in none of them, or if the cache cannot be written.
    """
    tried: list[str] = []
    for path in _candidates(source):
        state = _state(path, source)
        if state == "ok":
            return path
        tried.append(f"{path}: {state}")
        log.warning("%s: %s; not used", path, state)
    for folder in mirror_dirs():
        tried.append(f"{folder} ({MIRRORS}): no {'usable file of that name' if folder.is_dir() else 'such folder'}")
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


def fetch_all(config: Dataset) -> list[tuple[Source, Path]]:
    """The source files in a dataset's config, each with its path; see `fetch`.

    Raises `UserError` if it names none.
    """
    sources = config.sources
    if not sources:
        raise UserError(f"dataset={config.name} needs dataset.sources, the files that its rows are read from")
    offline, alternative = config.offline, config.alternative
    return [(source, fetch(source, offline=offline, alternative=alternative)) for source in sources]


def verify(sources: Iterable[Source]) -> list[tuple[str, str, str]]:
    """(file, state, where) of each source; nothing is downloaded.

    The state is "ok", "absent", or the defect of the only files of that name.
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
        by_name = [source.name, *(f"{name}/{source.name}" for name in below)]  # then the checksum decides
        places = dict.fromkeys([source.file, *(by_name if source.sha256 else ())])
        for place in places:
            for path in (folder / place, folder / f"{place}.gz"):
                if os.path.isfile(path):  # False, not an error, where it may not be looked at
                    yield path
    if os.path.isfile(_cached(source)):
        yield _cached(source)


def _state(path: Path, source: Source) -> str:
    try:
        expected = source.sha256 or _recorded(path)
        if not expected:
            return zip_state(path, source.holds)
        digest = _digest(path, source)
    except (OSError, EOFError, zlib.error) as error:
        return f"cannot be read ({error})"
    if digest == expected:
        return "ok"
    return f"another sha256 ({digest[:12]}..., expected {expected[:12]}...)"


def _record(path: Path) -> Path:
    """The path at which the checksum of a downloaded file is kept if none was known."""
    return path.with_name(f"{path.name}.sha256")


def _recorded(path: Path) -> str:
    return _record(path).read_text().strip() if _record(path).is_file() else ""


def _digest(path: Path, source: Source) -> str:
    if not source.members:
        return sha256_of(path)
    with open_binary(path) as stream:
        return hashlib.sha256(sort_rows(stream.read())).hexdigest()


def _absent(source: Source, tried: list[str], alternative: str | None) -> AbsentDataError:
    wanted = f"{source.name} (or {source.name}.gz)" if source.sha256 else source.file
    other = f", or use the data that ship with the project: dataset={alternative}" if alternative else ""
    if not source.sha256:
        other += ". Its checksum is not known, so a run can be planned only when the file is here"
    if source.members:
        other += f". It is {' and '.join(source.members)} of that zip file, joined; its rows may be in any order"
    return AbsentDataError(
        f"the data file {source.file} is not here. Tried:\n  "
        + "\n  ".join(tried)
        + f"\nRun `dpbench data fetch {source.fetched_by or source.file.split('/')[0]}` with a network connection, "
        f"or name a folder with {wanted} in {MIRRORS}{other}."
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
        received.append(described(Path(output)))
        if source.members:
            join_members(Path(output), source.members)
        if not source.sha256 and (state := zip_state(Path(output), source.holds)) != "ok":
            raise ValueError(state)

    pooch.get_logger().setLevel("WARNING")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not source.sha256 and not (target.is_file() and _state(target, source) == "ok"):  # pooch would keep it
            target.unlink(missing_ok=True)
            _record(target).unlink(missing_ok=True)
        keeper = pooch.create(
            path=cache_dir(),
            base_url="",
            registry={source.file: f"sha256:{source.sha256}" if source.sha256 else None},
            urls={source.file: source.url},
            retry_if_failed=RETRIES,
        )
        keeper.fetch(source.file, downloader=receive)
        if not source.sha256:
            _record(target).write_text(f"{sha256_of(target)}\n")
        return target
    except requests.exceptions.RequestException as error:  # before OSError, which it is a kind of
        raise _DownloadError(f"the download failed ({_short(error)})") from error
    except ValueError as error:  # pooch: the checksum differs; or ours, that a zip file is none
        if not source.sha256:
            raise _DownloadError(f"the downloaded data are {error}; not kept") from error
        what = received[-1] if received else _short(error)
        raise _DownloadError(f"the downloaded file has another sha256 than expected: {what}; not kept") from error
    except OSError as error:
        raise UserError(
            f"{source.file} cannot be stored in the cache folder {cache_dir()}: {error.strerror or error}; "
            f"free some space there, or set {CACHE} to a writable folder"
        ) from error


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "..."
