"""Seeds by axis: each generator depends only on what it serves, never on the order or place of execution."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.errors import UserError

SALT = "DPBENCH_SALT"
SALT_BYTES = 32
MAKING_SECONDS, MAKING_LOOKS = 1.0, 20  # for another process to write the salt that it has just made
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text.

    >>> canonical({"b": 1, "a": [0.5]})
    '{"a":[0.5],"b":1}'
    """
    return _CANONICAL(value)


def digest(value: Any) -> str:
    """The first 16 hex digits of the sha256 of the canonical JSON."""
    return digest_of_text(canonical(value))


def digest_of_text(text: str) -> str:
    """The same of a text that is canonical JSON."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digests(start: str, ends: Iterable[str]) -> Iterator[str]:
    """`digest_of_text` of texts that begin alike: what they begin with is hashed once.

    >>> [*digests('{"a":', ["1}", "2}"])] == [digest({"a": 1}), digest({"a": 2})]
    True
    """
    begun = hashlib.sha256(start.encode())
    for end in ends:
        text = begun.copy()
        text.update(end.encode())
        yield text.hexdigest()[:16]


def generator(axis: str, value: Any) -> np.random.Generator:
    """The generator of one axis ('split', 'sampler', ...) at one value of it."""
    return _generator(hashlib.sha256(canonical([axis, value]).encode()).digest())


def noise_generator(key: Any, *, public: bool) -> np.random.Generator:
    """The generator of a release's noise. Its key is stored with the results, so that anybody could draw the noise
    again and subtract it: where the rows are not public, it takes the secret salt as well.
    """
    if public:
        return generator("noise", key)
    return _generator(hmac.digest(secret_salt(), canonical(["noise", key]).encode(), "sha256"))


def secret_key(axis: str) -> bytes:
    """The key (32 bytes) of one axis of what only the salt may give, such as the split of private rows."""
    return hmac.digest(secret_salt(), canonical(["key", axis]).encode(), "sha256")


def keyed(sha256: str) -> str:
    """A checksum of private rows as it may be stored: without the salt nobody can try guesses of the rows on it."""
    return hmac.new(secret_salt(), sha256.encode(), "sha256").hexdigest()


def signature(what: str, content: str) -> str:
    """By which this user knows again what they wrote, a text of this kind: nobody who lacks the salt can make it."""
    return hmac.new(secret_salt(), f"{what}\0{content}".encode(), "sha256").hexdigest()


def _generator(seed: bytes) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(seed, "big"))


# --- the salt ------------------------------------------------------------------------------------------------------


def salt_file() -> Path:
    """The file of the secret salt: DPBENCH_SALT, else dpbench/salt in XDG_STATE_HOME or ~/.local/state."""
    return _file(os.environ.get(SALT), os.environ.get("XDG_STATE_HOME"), os.environ.get("HOME"))


@lru_cache(maxsize=4)
def _file(chosen: str | None, state: str | None, home: str | None) -> Path:
    if chosen:
        return Path(chosen)
    return Path(state or Path(home or Path.home()) / ".local" / "state") / "dpbench" / "salt"


def secret_salt() -> bytes:
    """The secret salt of this user, made at first use, in a file that nobody else may read.

    Raises `UserError` if the file cannot be made or read, is damaged, or may be read by others.
    """
    return _salt(salt_file())


@lru_cache(maxsize=4)
def _salt(path: Path) -> bytes:
    try:
        if not path.exists():
            _make_salt(path)
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UserError(f"{path} holds the secret that protects private results, and others may read it: chmod 600")
        salt = bytes.fromhex(_written(path))
    except (OSError, ValueError) as error:
        raise UserError(
            f"the secret salt {path}, which noise for private data needs, cannot be used ({error}); restore it, name "
            f"another file in {SALT}, or take it away to have a new one made (stored results then cannot be continued)"
        ) from error
    if len(salt) != SALT_BYTES:
        raise UserError(f"the secret salt {path} must hold {SALT_BYTES} bytes in hex, not {len(salt)}; restore it")
    return salt


def _written(path: Path) -> str:
    """The text of a salt; one that another process is just making is waited for."""
    for _ in range(MAKING_LOOKS):
        if text := path.read_text(encoding="ascii"):
            return text
        time.sleep(MAKING_SECONDS / MAKING_LOOKS)
    return ""


def _make_salt(path: Path) -> None:
    """Written aside and linked into place, so that of several processes the first one's salt is everybody's; where
    there are no links, in its place, where only the first one can make it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write_salt(aside)
        try:
            os.link(aside, path)
        except FileExistsError:
            pass
        except OSError:
            with suppress(FileExistsError):
                _write_salt(path)
    finally:
        aside.unlink(missing_ok=True)


def _write_salt(path: Path) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(secrets.token_hex(SALT_BYTES))
        file.flush()
        os.fsync(file.fileno())
