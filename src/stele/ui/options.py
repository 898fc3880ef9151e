"""Options of the pages, and what they show of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from stele.core.model import Version
from stele.core.state import State
from stele.errors import Unavailable
from stele.protocol.confluent import ImportedVersion, ImportRefusal
from stele.service.access import Headers
from stele.service.registry import Registry

NAME: Final = "ui"
SEGMENTS: Final = ("ui",)
COOKIE: Final = "stele_session"
"""Name of the session cookie of a logged-in user."""


class LogIn(Protocol):
    """Begins and ends sessions of users who log in to the pages."""

    @property
    def takes_passwords(self) -> bool:
        """Whether users can log in with a name and a password."""
        ...

    @property
    def takes_tokens(self) -> bool:
        """Whether users can log in with an API key or a token."""
        ...

    @property
    def seconds(self) -> int:
        """Maximum length of a session, in seconds."""
        ...

    async def begin(self, user: str, secret: str, port: int, address: str) -> str:
        """Return the value of a new cookie for credentials. Raises `Unauthenticated`, `Unavailable`."""
        ...

    async def end(self, headers: Headers) -> None:
        """End the session of a request, if it has one."""
        ...

    def has_session(self, headers: Headers) -> bool:
        """Return whether a request has the cookie of a session that is still open."""
        ...


class SettingRow(msgspec.Struct, frozen=True):
    """A setting of the server, as a page shows it.

    name         name of the setting
    value        value in force, as text; values that may be secret are hidden
    origin       where the value comes from: `flag`, `environment`, `file`, `program` or `default`
    description  meaning of the setting
    """

    name: str
    value: str
    origin: str
    description: str


class DialectRow(msgspec.Struct, frozen=True):
    """A dialect of the server, as a page shows it.

    name     name in settings and metrics
    title    name for people
    paths    beginnings of its paths
    openapi  path of its OpenAPI document
    """

    name: str
    title: str
    paths: Sequence[str]
    openapi: str


class ClientWord(msgspec.Struct, frozen=True):
    """The name that clients of one dialect use for an attribute of a version.

    word   the dialect's name for it, such as `schema id`
    value  its value
    """

    word: str
    value: str


class ClientView(msgspec.Struct, frozen=True):
    """A version as clients of one dialect see it.

    dialect  title of the dialect
    words    attributes of the version, with the names of the dialect
    path     URL path under which clients read it; '' if they cannot
    """

    dialect: str
    words: Sequence[ClientWord]
    path: str


def _describe_nothing(state: State, version: Version) -> Sequence[ClientView]:
    return ()


ImportVersions = Callable[[Registry, Sequence[ImportedVersion]], Awaitable[Sequence[ImportRefusal]]]
"""Imports versions of subjects in IMPORT mode with the rights of the caller, and returns the refused ones."""


async def _import_nothing(registry: Registry, rows: Sequence[ImportedVersion]) -> Sequence[ImportRefusal]:
    raise Unavailable("these pages are served without the API that imports versions")


class UiOptions(NamedTuple):
    """Options of one deployment of the pages.

    read_only          whether the pages offer no changes and reject those that are sent
    log_in             begins and ends sessions; None: users cannot log in
    environment        name shown on every page; '' shows none
    environment_color  colour of its strip, `#rrggbb`; '' is the accent colour
    public_url         base URI of the server as browsers see it; '' is that of each request
    max_request_bytes  maximum size of a request body, in bytes
    store              kind of the store, such as `sqlite`
    pipelines          folder with the checkpoints of pipelines; '' for none
    settings           settings of the server
    dialects           dialects of the server
    describe_version   returns how clients of each dialect see a version
    import_versions    imports versions with their numbers and ids
    """

    read_only: bool = False
    log_in: LogIn | None = None
    environment: str = ""
    environment_color: str = ""
    public_url: str = ""
    max_request_bytes: int = 16 * 1024 * 1024
    store: str = "memory"
    pipelines: str = ""
    settings: Sequence[SettingRow] = ()
    dialects: Sequence[DialectRow] = ()
    describe_version: Callable[[State, Version], Sequence[ClientView]] = _describe_nothing
    import_versions: ImportVersions = _import_nothing
