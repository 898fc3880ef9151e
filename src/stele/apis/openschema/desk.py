"""Where requests are served: one tenant and namespace, one caller, and the steps that several endpoints share."""

from __future__ import annotations

import time

import msgspec

from stele.apis.openschema import entities as api
from stele.apis.openschema import translate
from stele.apis.openschema.options import OpenSchemaOptions
from stele.apis.openschema.places import schema_id_in
from stele.apis.openschema.translate import DIALECT, Draft
from stele.core import queries
from stele.core.commands import Command, Outcome
from stele.core.decide.decision import check_name
from stele.core.model import DEFAULT_NAMESPACE, Namespace, SchemaKind, Subject, SubjectKey, Version, VersionState
from stele.core.state import State
from stele.core.traversal import list_versions_of_entry
from stele.errors import (
    ContentNotFound,
    InvalidName,
    InvalidRequest,
    SubjectNotFound,
    UnresolvedReference,
    VersionNotFound,
)
from stele.service.registry import Registry
from stele.service.schemas import PreparedSchema


class Office(msgspec.Struct, frozen=True):
    """What all requests share."""

    registry: Registry
    options: OpenSchemaOptions


class Desk:
    """Serves one request for one caller; space is None where the request names no tenant or namespace."""

    def __init__(self, office: Office, actor: str, space: str | None) -> None:
        self.registry = office.registry
        self.options = office.options
        self._actor = actor
        self.space = space

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name."""
        return await self.registry.execute(command, actor=self._actor, via=DIALECT)

    # --- finding ----------------------------------------------------------------------------------------------------

    def key(self, state: State, name: str) -> SubjectKey:
        """The subject of a name: where the request says, else in the default space, else wherever there is one.

        Raises `InvalidName`, `InvalidRequest` when there are several.
        """
        if not name.strip():
            raise InvalidName(name, "is no name")
        space = DEFAULT_NAMESPACE if self.space is None else self.space
        key = SubjectKey(space, name)
        if self.space is not None or self._shown(state, key) is not None:
            return key
        found = [place.name for place in self.spaces(state) if self._shown(state, SubjectKey(place.name, name))]
        if len(found) > 1:
            raise InvalidRequest(f"there are {len(found)} subjects '{name}': say of which tenant and namespace")
        return SubjectKey(found[0], name) if found else key

    def _shown(self, state: State, key: SubjectKey) -> Subject | None:
        subject = state.find_subject(key)
        return subject if subject is not None and translate.is_shown(subject) else None

    def spaces(self, state: State) -> list[Namespace]:
        """The spaces a request is about."""
        if self.space is None:
            return queries.visible_namespaces(state)
        place = state.find_namespace(self.space)
        return [] if place is None else [place]

    async def subject(self, name: str) -> tuple[State, Subject]:
        """A subject. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        return state, self.subject_in(state, name)

    def subject_in(self, state: State, name: str) -> Subject:
        """As `subject`, in a state."""
        found = self._shown(state, self.key(state, name))
        if found is None:
            raise SubjectNotFound(name)
        return found

    async def version(self, name: str, number: int | None) -> tuple[State, Version]:
        """A live version, None is the latest. Raises `SubjectNotFound`, `VersionNotFound`."""

        def look(state: State) -> tuple[State, Version]:
            return state, live_version(state, self.subject_in(state, name), number)

        return await self.registry.read_or_catch_up(look)

    async def by_id(self, text: str) -> tuple[State, Version]:
        """The version an id stands for: the first live one, else the first there was. Raises `ContentNotFound`."""
        space, gid = schema_id_in(text, self.space)

        def look(state: State) -> tuple[State, Version]:
            rows = sorted(list_versions_of_entry(queries.get_schema_entry(state, space, gid)), key=lambda row: row.seq)
            live = [row for row in rows if row.state is VersionState.ACTIVE]
            if not rows:
                raise ContentNotFound(text)
            return state, (live or rows)[0]

        return await self.registry.read_or_catch_up(look)

    # --- schemas in -------------------------------------------------------------------------------------------------

    async def prepared(self, state: State, draft: Draft, newest: Version | None) -> PreparedSchema:
        """A draft as a schema; where it refers to others, to those the newest version refers to.

        Raises what parsing raises.
        """
        prepare = self.registry.parser.prepare_schema
        try:
            prepared = await prepare(state, draft.format, draft.text)
        except UnresolvedReference:
            if newest is None or not newest.schema.attachments.references:
                raise
            prepared = await prepare(state, draft.format, draft.text, newest.schema.attachments.references)
        return prepared._replace(document=msgspec.structs.replace(prepared.document, custom_format=draft.custom_format))

    def draft(self, given: api.SchemaIn, newest: Version | None) -> Draft:
        """See `translate.draft_of`. Raises `TooLarge` for much beside the schema, `InvalidName`."""
        self.require_small(given.name, given.comment, given.validator, given.serialization)
        lane: SchemaKind | None = None if newest is None else newest.kind
        draft = translate.draft_of(given, lane)
        check_name(draft.custom_format)
        return draft

    def require_small(self, *texts: str | None) -> None:
        """Raise `TooLarge` when what surrounds a schema is longer than a schema may be."""
        self.registry.limits.check_text("".join(text or "" for text in texts).encode())


def live_version(state: State, subject: Subject, number: int | None) -> Version:
    """A live version of a subject; None is the latest. Raises `VersionNotFound`."""
    if not subject.versions:
        raise VersionNotFound(translate.LATEST if number is None else number)
    return queries.get_version(state, subject.key, number)


def now_after(before: int) -> int:
    """Milliseconds since 1970, later than a time before even where the clock is not."""
    return max(time.time_ns() // 1_000_000, before + 1)
