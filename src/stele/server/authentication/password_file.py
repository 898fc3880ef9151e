"""Hashes of passwords: reads the files that contain them, and verifies passwords.

Apache's `htpasswd` writes bcrypt; argon2id is supported as well. Pravega's file of users has PBKDF2 with HMAC-SHA-256:
the text `iterations:salt:key`, written in hexadecimal digits. The salt and the key in that text are hexadecimal digits,
too.

Source: docs/protocols/pravega.md#the-file-of-users.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import pbkdf2_hmac
from hmac import compare_digest
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from stele.apis.pravega.acl_file import parse_acl_users
from stele.errors import InvalidRequest, NotInstalled

_BCRYPT: Final = re.compile(r"\$2[aby]\$(?:0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}")
_ARGON2ID: Final = re.compile(
    r"\$argon2id\$v=19\$m=\d{1,7},t=\d{1,2},p=\d{1,2}\$[A-Za-z0-9+/]{10,}\$[A-Za-z0-9+/]{10,}"
)
_HEXADECIMAL: Final = re.compile(r"(?:[0-9a-fA-F]{2}){40,1000}")
_PBKDF2: Final = re.compile(
    rb"(?P<iterations>[1-9][0-9]{0,6}):(?P<salt>(?:[0-9a-f]{2}){8,64}):(?P<key>(?:[0-9a-f]{2}){16,64})"
)
_BCRYPT_BYTES: Final = 72
"""Bytes of a password that bcrypt uses; `htpasswd` cuts off the rest, too."""


def read_passwords(path: Path) -> dict[str, str]:
    """Return hashes by user. Raises `InvalidRequest` with the number of the line."""
    hashes: dict[str, str] = {}
    for number, line in enumerate(read_text("password_file", path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, text = line.strip().partition(":")
        if not user or not _is_slow_hash(text):
            raise InvalidRequest(
                f"password_file: line {number} of {path} is not `user:hash` with a hash of bcrypt (`htpasswd -B`) or"
                " argon2id"
            )
        hashes[user] = text
    return hashes


def read_pravega_passwords(path: Path) -> dict[str, str]:
    """Return the hashes in Pravega's file of users, by user. Users without a hash are left out.

    Raises `InvalidRequest` for a hash of an unknown kind, with the name of the user.
    """
    try:
        users = parse_acl_users(read_text("pravega_acl", path))
    except InvalidRequest as error:
        raise InvalidRequest(f"pravega_acl: {path}: {error}") from None
    for user in users:
        text = user.password_hash
        if text and not _is_slow_hash(text) and _parse_pbkdf2(text) is None:
            raise InvalidRequest(
                f"pravega_acl: {path}: the hash of {user.name} is neither Pravega's own nor bcrypt or argon2id"
            )
    return {user.name: user.password_hash for user in users if user.password_hash}


def read_groups(path: Path) -> Mapping[str, frozenset[str]]:
    """Return the groups by user, from a file of lines `group: user user …`, as in Apache's `AuthGroupFile`.

    Several lines of one group are combined. Raises `InvalidRequest` with the number of the line.
    """
    groups: dict[str, set[str]] = {}
    for number, line in enumerate(read_text("group_file", path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, users = line.partition(":")
        if not name.strip() or not colon:
            raise InvalidRequest(f"group_file: line {number} of {path} is not `group: user user …`")
        for user in users.split():
            groups.setdefault(user, set()).add(name.strip())
    return {user: frozenset(names) for user, names in groups.items()}


def read_text(setting: str, path: Path) -> str:
    """Return the text of a file that a setting names. Raises `InvalidRequest`."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{setting}: {path}: {getattr(error, 'strerror', None) or error}") from None


def require_hashers() -> None:
    """Raise `NotInstalled` unless the packages that verify passwords are installed."""
    for package, title in (("bcrypt", "bcrypt"), ("argon2", "argon2-cffi")):
        if find_spec(package) is None:
            raise NotInstalled(title, "access")


def verify_password(text: str, password: bytes) -> bool:
    """Return whether a password matches a hash."""
    if text.startswith("$argon2id$"):
        from argon2.exceptions import VerificationError
        from argon2.low_level import Type, verify_secret

        try:
            return verify_secret(text.encode("ascii"), password, Type.ID)
        except VerificationError:
            return False
    derived = _parse_pbkdf2(text)
    if derived is not None:
        key = pbkdf2_hmac("sha256", password, derived.salt, derived.iterations, len(derived.key))
        return compare_digest(key, derived.key)
    import bcrypt

    has_nul = b"\0" in password  # other implementations cut the password off there
    fits = bcrypt.checkpw(password.replace(b"\0", b" ")[:_BCRYPT_BYTES], text.encode("ascii"))
    return fits and not has_nul


class _DerivedKey(NamedTuple):
    """A key that PBKDF2 derived from a password, and its parameters."""

    iterations: int
    salt: bytes
    key: bytes


def _is_slow_hash(text: str) -> bool:
    return (_BCRYPT.fullmatch(text) or _ARGON2ID.fullmatch(text)) is not None


def _parse_pbkdf2(text: str) -> _DerivedKey | None:
    match = _PBKDF2.fullmatch(bytes.fromhex(text)) if _HEXADECIMAL.fullmatch(text) else None
    if match is None:
        return None
    salt, key = (bytes.fromhex(match[name].decode("ascii")) for name in ("salt", "key"))
    return _DerivedKey(int(match["iterations"]), salt, key)
