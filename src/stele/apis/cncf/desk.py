"""Where requests are served: finding groups, schemas and versions, and changing groups.

One desk serves one request for one caller, under the base URI the caller knows the registry by.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

import msgspec
from litestar.di import NamedDependency

from stele.apis.cncf import entities as api
from stele.apis.cncf import translate, uris
from stele.apis.cncf.access import Permission
from stele.apis.cncf.names import group_of, id_in, new_id, space_of
from stele.apis.cncf.options import CncfOptions
from stele.apis.cncf.translate import DIALECT, GroupWish
from stele.apis.http.paths import decode_segment
from stele.core import queries
from stele.core.commands import (
    ChangeSettings,
    Command,
    CreateNamespace,
    DeleteMode,
    DeleteNamespace,
    DeleteSubject,
    DeleteVersion,
    EndIncarnations,
    Outcome,
    SubjectsPresent,
)
from stele.core.model import DEFAULT_NAMESPACE, Namespace, SettingsLevel, SubjectKey, Version
from stele.core.state import State
from stele.errors import (
    AlreadyExists,
    Conflict,
    ContentNotFound,
    Forbidden,
    NamespaceNotFound,
    PreconditionFailed,
    SubjectNotFound,
)
from stele.service.registry import Registry
from stele.service.validators import require_known

_UID = re.compile(r"[0-9a-fA-F]{32}\Z")

T = TypeVar("T")


class Office(msgspec.Struct, frozen=True):
    """What all requests share."""

    registry: Registry
    options: CncfOptions


class Desk:
    """Serves one request for one caller."""

    def __init__(self, office: Office, actor: str, base: str) -> None:
        self.registry = office.registry
        self.base = base
        self._authorize = office.options.authorize
        self._actor = actor

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name."""
        return await self.registry.execute(command, actor=self._actor, via=DIALECT)

    def may(self, group: str, permission: Permission = Permission.READ) -> bool:
        """Whether the caller has a permission on a group."""
        return self._authorize(self._actor, group, permission)

    def allowed(self, segment: str, permission: Permission = Permission.READ) -> str:
        """The id of a group the caller may do that with. Raises `Forbidden`, `InvalidName`."""
        group = id_in(segment)
        if not self.may(group, permission):
            raise Forbidden(f"{self._actor or 'anonymous'} may not {permission.value} the group '{group}'")
        return group

    # --- groups -----------------------------------------------------------------------------------------------------

    async def groups(self) -> list[str]:
        """Ids of all groups, also of those the caller may not read."""
        state = await self.registry.fresh_state()
        return sorted(group_of(space.name) for space in queries.visible_namespaces(state) if _is_shown(space))

    async def space(self, group: str) -> tuple[State, Namespace]:
        """The present state, and a group in it. Raises `SpaceNotFound`."""
        state = await self.registry.fresh_state()
        space = state.find_namespace(space_of(group))
        if space is None or not _is_shown(space):
            raise NamespaceNotFound(f"The group '{group}' does not exist.")
        return state, space

    async def describe(self, segment: str) -> api.SchemaGroup:
        """A group; to a caller who may not read it, that it exists. Raises `SpaceNotFound`, `InvalidName`."""
        group = id_in(segment)
        state, space = await self.space(group)
        if not self.may(group):
            return api.SchemaGroup(group)
        return translate.group_out(state, space, self.registry.parser.list_format_names())

    async def put(self, group: str, wish: GroupWish, *, anew: bool, condition: str = "") -> bool:
        """Create a group or change the one there is; whether it was created.

        anew refuses one that is there, condition one whose entity tag is another one. Raises `AlreadyExists`,
        `PreconditionFailed`, `Conflict` where the format would change under schemas, `InvalidName`, `UnknownPolicy`.
        """
        if wish.policy is not None:
            require_known(wish.policy.validators)
        name = space_of(group)
        while True:
            state = await self.registry.fresh_state()
            space = state.find_namespace(name)
            exists = space is not None and _is_shown(space)
            if condition and not (exists and space is not None and translate.etag_of(space) == condition):
                raise PreconditionFailed(f"the group '{group}' is not the one with that entity tag")
            if exists and anew:
                raise AlreadyExists(f"the group '{group}' exists already")
            if exists and space is not None:
                await self._change(state, space, wish)
                return False
            new_id(group)
            policy = wish.policy or (translate.policy_of_new_group(state, name) if name != DEFAULT_NAMESPACE else None)
            if policy is not None:  # First, so that nothing is registered in between under another one.
                await self.execute(ChangeSettings(SettingsLevel(name), {"policy": policy}))
            try:
                await self.execute(_created(name, None, wish))
            except AlreadyExists:
                continue
            return True

    async def _change(self, state: State, space: Namespace, wish: GroupWish) -> None:
        own, wanted = translate.language_of_group(space), wish.language
        if own != wanted and queries.list_subjects(state, [space]):
            raise Conflict(f"the format of '{group_of(space.name)}' cannot change while it holds schemas")
        command = _created(space.name, space, wish)
        told = (space.format, space.description, space.labels or None, space.dialect_data or None)
        if told != (command.format, command.description, command.labels, command.dialect_data) or not space.explicit:
            await self.execute(command)
        before = state.settings_at(SettingsLevel(space.name))
        if wish.policy is not None and (before is None or before.policy != wish.policy):
            await self.execute(ChangeSettings(SettingsLevel(space.name), {"policy": wish.policy}))

    async def delete_group(self, group: str) -> None:
        """Delete a group with all that is in it. Raises `SpaceNotFound`, `InUse`, `Conflict` for the default one."""
        _, space = await self.space(group)
        if space.name == DEFAULT_NAMESPACE:
            raise Conflict(f"the group '{group}' is always there: its schemas can be deleted, it cannot")
        await self.execute(DeleteNamespace(space.name, SubjectsPresent.END_INCARNATIONS))

    async def delete_schemas(self, group: str) -> None:
        """Delete all schemas of a group, or none. Raises `SpaceNotFound`, `InUse`."""
        _, space = await self.space(group)
        await self.execute(EndIncarnations(space.name))

    # --- schemas and versions ---------------------------------------------------------------------------------------

    async def schemas(self, group: str) -> list[str]:
        """Ids of the schemas of a group, sorted. Raises `SpaceNotFound`."""
        state, space = await self.space(group)
        return [subject.key.name for subject in queries.list_subjects(state, [space])]

    async def ordinals(self, group: str, schema: str) -> list[int]:
        """Numbers of the versions of a schema, ascending. Raises `SpaceNotFound`, `SubjectNotFound`."""
        state, space = await self.space(group)
        rows = queries.list_versions(state.find_subject(SubjectKey(space.name, schema)))
        if not rows:
            raise SubjectNotFound(schema)
        return [row.version_number for row in rows]

    async def version(self, group: str, schema: str, ordinal: int | None = None) -> tuple[State, Version]:
        """A version, None is the latest. Raises `SpaceNotFound`, `SubjectNotFound`, `VersionNotFound`."""
        key = SubjectKey(space_of(group), schema)
        if ordinal is not None:
            return await self._look(lambda state: queries.get_version(state, key, ordinal))
        state, _ = await self.space(group)
        newest = queries.latest_version(state.find_subject(key))
        if newest is None:
            raise SubjectNotFound(schema)
        return state, newest

    async def by_id(self, text: str) -> tuple[State, Version]:
        """A version by its `Schema-Id`, one whose schema is deleted too: data may have it. Raises `ContentNotFound`."""
        if not _UID.match(text):
            raise ContentNotFound(text)

        def look(state: State) -> Version:
            found = queries.find_version_by_uid(state, int(text, 16))
            if found is None:
                raise ContentNotFound(text)
            return found

        return await self._look(look)

    async def by_uri(self, uri: str) -> tuple[State, Version]:
        """A version by its URI, or by the path that reads it here. Raises `ContentNotFound`."""
        if len(uri) > uris.LONGEST:
            raise ContentNotFound(f"{uri[:100]}…")
        return await self._look(lambda state: self._at(state, uri))

    async def _look(self, query: Callable[[State], Version]) -> tuple[State, Version]:
        version = await self.registry.read_or_catch_up(query)
        return self.registry.state, version

    def _at(self, state: State, uri: str) -> Version:
        for possible in uris.possible_ids(uri):
            named = queries.find_version_by_origin(state, possible)
            if named is not None and uri in self._uris(named):
                return named
        place = uris.place_of(uri)
        if place is not None:
            key = SubjectKey(space_of(place.group), place.schema)
            rows = queries.list_versions(state.find_subject(key))
            found = next((row for row in rows if row.version_number == place.ordinal), None)
            if found is not None and self._is_home(found, place.base):
                return found
        raise ContentNotFound(uri)

    def _uris(self, version: Version) -> set[str]:
        """The URIs of a version with an id: under its authority, or under whatever this API is called."""
        authority = translate.authority_of(version.subject)
        bases = {authority} if authority else {self.base, uris.origin_of(f"{self.base}/")}
        return {uris.joined(base, origin_uri(version)) for base in bases}

    def _is_home(self, version: Version, base: str) -> bool:
        """Whether what comes before the path of a version in a URI means this registry or the schema's authority."""
        authority = translate.authority_of(version.subject)
        here = uris.origin_of(f"{self.base}/").rstrip("/")
        local = base in {"", "/"} or f"{base}/".startswith(f"{here}/") or base == self.base
        return local or (not origin_uri(version) and uris.joined(authority, "") in {base, f"{base}/", f"{base}:"})

    def link(self, *segments: str) -> str:
        """The URL of a path here, from segments as requests have them."""
        return "/".join((self.base, *(quote(decode_segment(segment), safe="$") for segment in segments)))

    def uri_of(self, version: Version) -> str:
        """The URI of a version."""
        reference = origin_uri(version) or self.path_of(version)
        return uris.joined(translate.authority_of(version.subject) or self.base, reference)

    def path_of(self, version: Version) -> str:
        """Where a version is read, below the base URI."""
        key = version.subject.key
        return uris.implied_id(group_of(key.namespace), key.name, version.version_number)

    # --- deleting ---------------------------------------------------------------------------------------------------

    async def delete_schema(self, group: str, schema: str) -> None:
        """Delete a schema with all versions; one of the same id starts anew. Raises `SubjectNotFound`, `InUse`."""
        await self.ordinals(group, schema)
        await self.execute(DeleteSubject(SubjectKey(space_of(group), schema), DeleteMode.END_INCARNATION))

    async def delete_version(self, group: str, schema: str, ordinal: int) -> None:
        """Delete a version; with the last one goes the schema. Raises `VersionNotFound`, `InUse`."""
        key = SubjectKey(space_of(group), schema)
        while True:
            state, _ = await self.version(group, schema, ordinal)
            if len(queries.list_versions(state.find_subject(key))) > 1:
                await self.execute(DeleteVersion(key, ordinal))
                return
            try:
                await self.execute(DeleteSubject(key, DeleteMode.END_INCARNATION, expected_latest=ordinal))
            except PreconditionFailed:
                continue
            return


AtDesk = NamedDependency[Desk]


def origin_uri(version: Version) -> str:
    """The id a version was registered with, '' when its path is its id."""
    return (version.attributes.origin_uri if version.attributes is not None else None) or ""


def _is_shown(space: Namespace) -> bool:
    """Not the default group while nothing was ever put there, nor one that is deleted."""
    return not space.hidden and bool(space.explicit or space.highest_schema_id or space.subjects)


def _created(name: str, before: Namespace | None, wish: GroupWish) -> CreateNamespace:
    """The command that makes a group as wished, keeping what other dialects say about it."""
    language = wish.language
    told = translate.kept(before.dialect_data).get("format", "") if before is not None else ""
    same = before is not None and translate.language_of_group(before) == language
    own = translate.kept_of(language, wish.written or (told if same else "")) if language is not None else {}
    others = {
        dialect: members for dialect, members in ((before and before.dialect_data) or {}).items() if dialect != DIALECT
    }
    return CreateNamespace(
        name,
        replace=before is not None,
        format=language.format if language is not None else "",
        description=wish.description if wish.description is not None else before.description if before else "",
        labels=wish.properties or None,
        dialect_data={**others, DIALECT: own} if own else others or None,
    )
