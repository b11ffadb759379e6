"""Seeds by axis: each generator depends only on what it serves, never on the order or place of execution."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.errors import UserError

SALT = "DPBENCH_SALT"
SALT_BYTES = 32
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


def keyed(sha256: str) -> str:
    """A checksum of private rows as it may be stored: without the salt nobody can try guesses of the rows on it."""
    return hmac.new(secret_salt(), sha256.encode(), "sha256").hexdigest()


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
        salt = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"the secret salt {path}, which noise for private data needs, cannot be used ({error}); restore it, name "
            f"another file in {SALT}, or take it away to have a new one made (stored results then cannot be continued)"
        ) from error
    if len(salt) != SALT_BYTES:
        raise UserError(f"the secret salt {path} must hold {SALT_BYTES} bytes in hex, not {len(salt)}; restore it")
    return salt


def _make_salt(path: Path) -> None:
    """Written aside and linked into place, so that of several processes the first one's salt is everybody's."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(SALT_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        aside.unlink(missing_ok=True)
