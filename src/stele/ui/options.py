"""Options of the pages, and what they show of the server around them."""

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
"""Cookie of somebody who logged in."""


class LogIn(Protocol):
    """Begins and ends sessions of people who log in to the pages."""

    @property
    def takes_passwords(self) -> bool:
        """Whether people have user names and passwords."""
        ...

    @property
    def takes_tokens(self) -> bool:
        """Whether people have API keys or tokens."""
        ...

    @property
    def seconds(self) -> int:
        """How long a session lasts at most."""
        ...

    async def begin(self, user: str, secret: str, port: int, address: str) -> str:
        """Return the value of a new cookie for credentials. Raises `Unauthenticated`, `Unavailable`."""
        ...

    async def end(self, headers: Headers) -> None:
        """End the session of a request, if it has one."""
        ...

    def has_session(self, headers: Headers) -> bool:
        """Return whether a request brings the cookie of a session that goes on."""
        ...


class SettingRow(msgspec.Struct, frozen=True):
    """A setting of the server, for people.

    name         of the setting
    value        in force, as text; what may be secret is hidden
    origin       who set it: `flag`, `environment`, `file`, `program`, or nobody (`default`)
    description  what it is
    """

    name: str
    value: str
    origin: str
    description: str


class DialectRow(msgspec.Struct, frozen=True):
    """A dialect of the server, for people.

    name     in settings and metrics
    title    for people
    paths    what its paths begin with
    openapi  path of its OpenAPI document
    """

    name: str
    title: str
    paths: Sequence[str]
    openapi: str


class ClientWord(msgspec.Struct, frozen=True):
    """What one kind of client calls something of a version.

    word   the dialect's word for it, such as `schema id`
    value  what it is there
    """

    word: str
    value: str


class ClientView(msgspec.Struct, frozen=True):
    """How clients of one dialect see a version.

    dialect  its title
    words    what they call it
    path     under which they read it, as a URL path; '' where they cannot
    """

    dialect: str
    words: Sequence[ClientWord]
    path: str


def _describe_nothing(state: State, version: Version) -> Sequence[ClientView]:
    return ()


ImportVersions = Callable[[Registry, Sequence[ImportedVersion]], Awaitable[Sequence[ImportRefusal]]]
"""Imports versions in the caller's name, of subjects in IMPORT mode, and returns those that are refused."""


async def _import_nothing(registry: Registry, rows: Sequence[ImportedVersion]) -> Sequence[ImportRefusal]:
    raise Unavailable("these pages are served without the API that imports versions")


class UiOptions(NamedTuple):
    """Options of one deployment of the pages.

    read_only          whether pages offer no change and refuse those that are sent
    log_in             begins and ends sessions; None: nobody can log in
    environment        name shown on every page; '' shows none
    environment_color  colour of its strip, `#rrggbb`; '' is the accent colour
    public_url         base URI of the server as browsers see it; '' is that of each request
    max_request_bytes  longest request body
    store              kind of the store, such as `sqlite`
    pipelines          folder with the checkpoints of pipelines; '' for none
    settings           those of the server
    dialects           those of the server
    describe_version   tells how clients of each dialect see a version
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
