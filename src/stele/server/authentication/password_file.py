"""Users and hashes of their passwords, in the file that Apache's `htpasswd` writes: bcrypt, and argon2id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from secrets import token_bytes
from typing import Final

import structlog

from stele.errors import InvalidRequest, NotInstalled
from stele.server.authentication.credentials import UserPassword
from stele.service.watched_file import WatchedFile

_logger = structlog.get_logger("stele.server")

_BCRYPT = re.compile(r"\$2[aby]\$(?:0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}")
_ARGON2ID = re.compile(r"\$argon2id\$v=19\$m=\d{1,7},t=\d{1,2},p=\d{1,2}\$[A-Za-z0-9+/]{10,}\$[A-Za-z0-9+/]{10,}")
_NOBODY: Final = "$2b$10$" + "." * 53
"""Compared with when the file has no user at all: well-formed, and the hash of no known password."""
_BCRYPT_BYTES: Final = 72
"""What bcrypt takes of a password; `htpasswd` cuts off the rest, too."""


class PasswordFile:
    """The users of a file, read again when it changes. A file that became unreadable leaves the users as they are.

    Raises `InvalidRequest` at first for a file that cannot be read or has another kind of hash, `NotInstalled`.
    """

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path)
        self._mark = token_bytes(16)
        self._hashes: Mapping[str, str] = read_passwords(path)

    def find_hash(self, user: str) -> str | None:
        """Return the hash of a user's password as the file has it now."""
        if self._file.has_changed():
            try:
                self._hashes = read_passwords(self._file.path)
            except InvalidRequest as error:
                _logger.error("password file not read", reason=str(error))
        return self._hashes.get(user)

    def check_password(self, given: UserPassword) -> str | None:
        """Return the hash that fits a name and a password, None if they are wrong. Takes a while, in C.

        A name that is not in the file costs as much as one that is: the hash of another user is computed for it.
        """
        own = self.find_hash(given.user)
        fits = verify_password(own or self._choose_stand_in(given.user), given.password)
        return own if fits and own is not None else None

    def _choose_stand_in(self, user: str) -> str:
        """Return the same line for the same name: repeated trials show no mean of several costs."""
        hashes = list(self._hashes.values())
        number = int.from_bytes(blake2b(user.encode(), key=self._mark, digest_size=8).digest(), "big")
        return hashes[number % len(hashes)] if hashes else _NOBODY


def read_passwords(path: Path) -> dict[str, str]:
    """Return hashes by user. Raises `InvalidRequest` with the number of the line, `NotInstalled`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"password_file: {path}: {getattr(error, 'strerror', None) or error}") from None
    hashes: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, text = line.strip().partition(":")
        if not user or not (_BCRYPT.fullmatch(text) or _ARGON2ID.fullmatch(text)):
            raise InvalidRequest(
                f"password_file: line {number} of {path} is not `user:hash` with a hash of bcrypt (`htpasswd -B`) or"
                " argon2id"
            )
        hashes[user] = text
    for package, title in (("bcrypt", "bcrypt"), ("argon2", "argon2-cffi")):
        if find_spec(package) is None:
            raise NotInstalled(title, "access")
    return hashes


def verify_password(text: str, password: bytes) -> bool:
    """Return whether a hash is that of a password."""
    if text.startswith("$argon2id$"):
        from argon2.exceptions import VerificationError
        from argon2.low_level import Type, verify_secret

        try:
            return verify_secret(text.encode("ascii"), password, Type.ID)
        except VerificationError:
            return False
    import bcrypt

    has_nul = b"\0" in password  # where other implementations end
    fits = bcrypt.checkpw(password.replace(b"\0", b" ")[:_BCRYPT_BYTES], text.encode("ascii"))
    return fits and not has_nul
