"""Where requests are served: one cluster and tenant, one caller, and the steps that several endpoints share."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stele.apis.rocketmq import translate
from stele.apis.rocketmq.faults import SameSchema
from stele.apis.rocketmq.options import RocketmqOptions
from stele.apis.rocketmq.translate import DIALECT, MOST_VERSIONS, Language, Place
from stele.core import queries
from stele.core.commands import (
    ChangeBindings,
    Command,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    Equality,
    Outcome,
    RegisterSchema,
    Registration,
    SubjectDefaults,
)
from stele.core.digests import digest_key
from stele.core.model import (
    NO_ATTACHMENTS,
    RECORD_ID_VERSION_BITS,
    Binding,
    Numbering,
    Subject,
    SubjectKey,
    Version,
    VersionState,
)
from stele.core.policy import BACKWARD, Policy
from stele.core.state import State
from stele.core.traversal import find_version
from stele.errors import (
    AlreadyExists,
    BindingNotFound,
    ContentNotFound,
    InvalidName,
    MalformedSchema,
    PreconditionFailed,
    SubjectNotFound,
    TooLarge,
    UnresolvedReference,
)
from stele.service.registry import Registry
from stele.service.schemas import PreparedSchema

_EQUAL_BY = ("normalized", "rabin")
"""Digests by which a text is looked up, closest first: white space, then what makes no difference to data."""


class Office(msgspec.Struct, frozen=True):
    """What all requests share."""

    registry: Registry
    options: RocketmqOptions


class Desk:
    """Serves one request for one caller."""

    def __init__(self, office: Office, actor: str, place: Place) -> None:
        self.registry = office.registry
        self._actor = actor
        self.place = place

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name."""
        return await self.registry.execute(command, actor=self._actor, via=DIALECT)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def bound(self, subject: str) -> tuple[State, Version]:
        """The record a subject is bound to. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        return state, self.bound_in(state, subject)

    def bound_in(self, state: State, subject: str) -> Version:
        """As `bound`, in a state."""
        binding = state.bindings.get(translate.binding_key(self.place, subject))
        if binding is not None:
            found = translate.record_of(state, binding)
        else:
            known = state.find_subject(SubjectKey(self.place.space, subject))
            found = queries.latest_version(known) if known is not None and translate.is_foreign(known) else None
        if found is None:
            raise SubjectNotFound(subject)
        return found

    async def by_version(self, subject: str, number: int) -> tuple[State, Version]:
        """A version of the schema a subject is bound to. Raises `SubjectNotFound`, `VersionNotFound`."""

        def look(state: State) -> tuple[State, Version]:
            return state, queries.get_version(state, self.bound_in(state, subject).subject.key, number)

        return await self.registry.read_or_catch_up(look)

    async def by_record_id(self, subject: str, number: int) -> tuple[State, Version]:
        """A record of this tenant by its id, whatever the subject is bound to by now: data written once stay readable.

        Of an id that is nothing but a version (the original looks no further) the subject says the schema. Raises
        `SubjectNotFound`, `ContentNotFound`.
        """

        def look(state: State) -> tuple[State, Version]:
            if not number >> RECORD_ID_VERSION_BITS:
                number_of = self.bound_in(state, subject).subject.record_id | number
                return state, self.record(state, number_of)
            return state, self.record(state, number)

        return await self.registry.read_or_catch_up(look)

    async def by_id(self, number: int) -> tuple[State, Version]:
        """A record of this tenant by its id, or the newest live one of the schema whose id it is.

        Raises `ContentNotFound`.
        """

        def look(state: State) -> tuple[State, Version]:
            schema = (
                None if number & MOST_VERSIONS else queries.find_incarnation(state, number >> RECORD_ID_VERSION_BITS)
            )
            here = schema is not None and schema.key.namespace == self.place.space
            newest = queries.latest_version(schema) if here else None
            return state, self.record(state, newest.record_id if newest is not None else number)

        return await self.registry.read_or_catch_up(look)

    def record(self, state: State, number: int) -> Version:
        """A record of this tenant by its id, a deleted one too. Raises `ContentNotFound`."""
        found = queries.get_version_by_record_id(state, number)
        if found.subject.key.namespace != self.place.space:
            raise ContentNotFound(number)
        return found

    async def by_text(self, subject: str, text: bytes) -> tuple[State, Version]:
        """The version of a subject's schema that is the same schema. Raises `SubjectNotFound`, `ContentNotFound`."""
        state, bound = await self.bound(subject)
        key, lane = bound.subject.key, bound.kind
        try:
            prepared = await self._prepared(state, key, Language(lane.format, lane.custom_format), text)
        except MalformedSchema:
            raise ContentNotFound from None
        document = prepared.document
        for kind in _EQUAL_BY:
            if kind in document.digests:
                digest = digest_key(kind, document.digests[kind])
                same = queries.find_equal_version(
                    state,
                    key,
                    document.sha,
                    NO_ATTACHMENTS,
                    equality=Equality.DIGEST,
                    digest=digest,
                    kind=document.kind,
                )
                if same is not None:
                    return state, same
        raise ContentNotFound

    async def rows(self, name: str) -> tuple[State, list[Version]]:
        """The live versions of a schema by its name, one at least. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        rows = queries.list_versions(state.find_subject(SubjectKey(self.place.space, name)))
        if not rows:
            raise SubjectNotFound(name)
        return state, rows

    def bindings_of(self, state: State, schema: Subject) -> dict[int, list[Binding]]:
        """The subjects bound to each version of a schema, by ordinal; a deleted schema has none."""
        found: dict[int, list[Binding]] = {}
        if schema.closed:
            return found
        for binding in queries.bindings_of(state, [schema.key]):
            record = translate.record_of(state, binding) if binding.resource_type == DIALECT else None
            if record is not None:
                found.setdefault(record.version_number, []).append(binding)
        return found

    def bindings_in(self, state: State) -> Iterator[Binding]:
        """All subjects of this cluster that are bound to something there is, of whichever tenant."""
        for (cluster, kind, _, _), binding in state.bindings.items():
            if (cluster, kind) == (self.place.cluster, DIALECT) and translate.record_of(state, binding) is not None:
                yield binding

    # --- writing ----------------------------------------------------------------------------------------------------

    async def register(
        self, subject: str, name: str, text: bytes, language: Language, policy: Policy | None, desc: str, owner: str
    ) -> Version:
        """A new schema, bound to a subject. Raises `AlreadyExists`, and what parsing and the decision raise."""
        key = SubjectKey(self.place.space, _checked(name))
        self.registry.limits.check_text((desc + owner).encode())
        state = await self.registry.fresh_state()
        if queries.latest_version(state.find_subject(key)) is not None:
            raise _exists(key)
        prepared = await self._prepared(state, key, language, text)
        try:
            return await self._registered(
                RegisterSchema(
                    key,
                    prepared.document,
                    prepared.references,
                    equality=Equality.NEVER,
                    expected_latest=0,
                    policy=policy,
                    defaults=SubjectDefaults(Numbering.NEVER_REUSE, policy=policy or BACKWARD),
                    description=desc,
                    dialect_data={DIALECT: {"owner": owner}},
                    bindings=(translate.binding_of(self.place, _checked(subject), key),),
                )
            )
        except PreconditionFailed:
            raise _exists(key) from None

    async def update(self, subject: str, name: str, text: bytes, desc: str, owner: str) -> Version:
        """The next version of a schema, with a subject bound to it. Raises `SubjectNotFound`, `SameSchema`."""
        key = SubjectKey(self.place.space, name)
        self.registry.limits.check_text((desc + owner).encode())
        state, rows = await self.rows(name)
        newest = rows[-1]
        if newest.subject.highest_version_number >= MOST_VERSIONS:
            raise TooLarge(f"the schema '{name}' has {MOST_VERSIONS} versions: there is no number for another one")
        language = Language(newest.kind.format, newest.kind.custom_format)
        prepared = await self._prepared(state, key, language, text)
        return await self._registered(
            RegisterSchema(
                key,
                prepared.document,
                prepared.references,
                equality=Equality.DIGEST,
                equality_digest=_EQUAL_BY[0],
                defaults=SubjectDefaults(create=False),
                description=desc or translate.desc_of(newest),
                dialect_data={DIALECT: {"owner": owner or translate.owner_of(newest)}},
                bindings=(translate.binding_of(self.place, _checked(subject), key),),
            )
        )

    async def _registered(self, command: RegisterSchema) -> Version:
        outcome = await self.execute(command)
        assert isinstance(outcome, Registration)
        if not outcome.created:
            raise SameSchema(f"the schema '{command.key.name}' has version {outcome.version_number} with the same IDL")
        return queries.get_version(
            self.registry.state, command.key, outcome.version_number, queries.ACTIVE_OR_SOFT_DELETED
        )

    async def _prepared(self, state: State, key: SubjectKey, language: Language, text: bytes) -> PreparedSchema:
        """A text as a schema; where it refers to others, to those its newest version refers to."""
        prepare = self.registry.parser.prepare_schema
        try:
            prepared = await prepare(state, language.format, text)
        except UnresolvedReference:
            newest = queries.latest_version(state.find_subject(key))
            if newest is None or not newest.schema.attachments.references:
                raise
            prepared = await prepare(state, language.format, text, newest.schema.attachments.references)
        return prepared._replace(
            document=msgspec.structs.replace(prepared.document, custom_format=language.custom_format)
        )

    async def delete(self, subject: str) -> Version:
        """The schema of a subject, with all versions and bindings; answers the newest. Raises `SubjectNotFound`."""
        _, newest = await self.bound(subject)
        newest = queries.latest_version(newest.subject) or newest
        await self.close(newest.subject.key)
        return newest

    async def close(self, key: SubjectKey) -> None:
        """Delete a schema, with all versions and bindings. Raises `SubjectNotFound`, `InUse`."""
        await self.execute(DeleteSubject(key, DeleteMode.END_INCARNATION))

    async def delete_version(self, subject: str, number: int) -> Version:
        """One version of the schema of a subject; the schema goes with the last one, bindings to it to the newest left.

        Raises `SubjectNotFound`, `VersionNotFound`.
        """
        while True:
            state = await self.registry.fresh_state()
            key = self.bound_in(state, subject).subject.key
            row = queries.get_version(state, key, number)
            try:
                if queries.list_versions(row.subject) == [row]:
                    await self.execute(DeleteSubject(key, DeleteMode.END_INCARNATION, expected_latest=number))
                else:
                    await self.execute(DeleteVersion(key, number, DeleteMode.SOFT))
                    await self._move_bindings(key, number)
            except PreconditionFailed:
                continue
            return row

    async def _move_bindings(self, key: SubjectKey, number: int) -> None:
        """Give what is bound to a version that has gone to the newest one that is left.

        Until that is done they lead there all the same (see `translate.record_of`).
        """
        state = self.registry.state
        newest = queries.latest_version(state.find_subject(key))
        rows = [row for row in queries.bindings_of(state, [key]) if row.version_number == number]
        stale = tuple(row for row in rows if row.resource_type == DIALECT)
        if newest is not None and stale:
            moved = (msgspec.structs.replace(row, version_number=newest.version_number) for row in stale)
            await self.execute(ChangeBindings(tuple(moved)))

    async def unbind(self, subject: str, number: int) -> None:
        """End the binding of a subject to a record. Raises `BindingNotFound` when it is not bound to that one."""
        while True:
            state = await self.registry.fresh_state()
            binding = state.bindings.get(translate.binding_key(self.place, subject))
            if binding is None or not _leads_to(state, binding, number):
                raise BindingNotFound(f"'{subject}' is not bound to record {number}")
            try:
                await self.execute(ChangeBindings((), (binding.key,), queries.bindings_around(state, [binding])))
            except PreconditionFailed:
                continue
            return

    async def bind(self, subject: str, number: int) -> tuple[State, Version]:
        """Bind a subject to a live record, or by the id of a schema to whichever is its newest.

        Raises `ContentNotFound`.
        """
        state = await self.registry.fresh_state()
        schema = queries.find_incarnation(state, number >> RECORD_ID_VERSION_BITS)
        ordinal = number & MOST_VERSIONS or None
        if schema is None or schema.key.namespace != self.place.space or schema.closed:
            raise ContentNotFound(number)
        found = find_version(schema, ordinal) if ordinal else queries.latest_version(schema)
        if found is None or found.state is not VersionState.ACTIVE:
            raise ContentNotFound(number)
        binding = translate.binding_of(self.place, _checked(subject), schema.key, ordinal)
        await self.execute(ChangeBindings((binding,)))
        return await self.bound(subject)


def _leads_to(state: State, binding: Binding, number: int) -> bool:
    record = translate.record_of(state, binding)
    if record is None:
        return False
    return number in {record.subject.record_id, translate.record_id(record)}


def _exists(key: SubjectKey) -> AlreadyExists:
    return AlreadyExists(f"the schema '{translate.schema_name(key)}' exists already")


def _checked(name: str) -> str:
    if not name.strip():
        raise InvalidName(name, "is no name")
    return name
