"""Users with passwords and groups, from files that may change while the server runs."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import Final, NamedTuple

import structlog

from stele.errors import InvalidRequest
from stele.server.authentication.credentials import UserPassword
from stele.server.authentication.password_file import (
    read_groups,
    read_passwords,
    read_pravega_passwords,
    require_hashers,
    verify_password,
)
from stele.service.watched_file import WatchedFile

_logger = structlog.get_logger("stele.server")

_NOBODY: Final = "$2b$10$" + "." * 53
"""Hash to compare with when there are no users: well-formed, but the hash of no known password."""


class User(NamedTuple):
    """A user as in the files: the hash of its password and its groups."""

    password_hash: str
    groups: frozenset[str] = frozenset()


class UserFiles:
    """The users of some files, read again when one changes. When a changed file is invalid, the users stay unchanged.

    Args:
        passwords: Lines `user:hash`, as `htpasswd -B` writes them; None: there is no such file.
        groups: Lines `group: user user …`; None: users have no groups.
        pravega: Pravega's file of users, whose passwords count; None: there is no such file.

    Raises:
        InvalidRequest: A file cannot be read or is malformed, or two files have a user of the same name.
        NotInstalled: A package that verifies passwords is missing.
    """

    def __init__(self, passwords: Path | None, groups: Path | None = None, pravega: Path | None = None) -> None:
        require_hashers()
        self._passwords = passwords
        self._groups = groups
        self._pravega = pravega
        self._files = [WatchedFile(path) for path in (passwords, groups, pravega) if path is not None]
        self._mark = token_bytes(16)
        self._users: Mapping[str, User] = self._read_users()

    def find_user(self, name: str) -> User | None:
        """Return a user as currently in the files."""
        for file in self._files:
            if file.has_changed():
                self._read_again()
        return self._users.get(name)

    def check_password(self, credentials: UserPassword) -> User | None:
        """Return the user if the name and the password are right, else None. Takes long, in C code.

        An unknown name takes as long as a known one: the hash of another user is computed for it.
        """
        own = self.find_user(credentials.user)
        fits = verify_password(
            own.password_hash if own else self._choose_stand_in(credentials.user), credentials.password
        )
        return own if fits else None

    def _choose_stand_in(self, name: str) -> str:
        """Return the hash to compute for an unknown name, the same one each time.

        With a changing hash, repeated attempts would take an average time and reveal that the name is unknown.
        """
        users = list(self._users.values())
        number = int.from_bytes(blake2b(name.encode(), key=self._mark, digest_size=8).digest(), "big")
        return users[number % len(users)].password_hash if users else _NOBODY

    def _read_again(self) -> None:
        try:
            self._users = self._read_users()
        except InvalidRequest as error:
            _logger.error("users not read", reason=str(error))

    def _read_users(self) -> dict[str, User]:
        hashes = read_passwords(self._passwords) if self._passwords is not None else {}
        others = read_pravega_passwords(self._pravega) if self._pravega is not None else {}
        groups = read_groups(self._groups) if self._groups is not None else {}
        if both := sorted(hashes.keys() & others.keys()):
            raise InvalidRequest(f"{both[0]} is a user in password_file and in pravega_acl: remove one of them")
        return {name: User(text, groups.get(name, frozenset())) for name, text in (hashes | others).items()}
