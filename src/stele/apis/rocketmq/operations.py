"""Operations on schemas, records and bindings of one tenant in one cluster, for one caller."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stele.apis.rocketmq import translate
from stele.apis.rocketmq.errors import SameSchema
from stele.apis.rocketmq.options import RocketmqOptions
from stele.apis.rocketmq.translate import DIALECT, MAX_VERSION_NUMBER, TenantAddress
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import (
    ChangeBindings,
    Command,
    DeleteMode,
    DeleteSubject,
    Equality,
    Outcome,
    RegisterSchema,
    SubjectDefaults,
)
from stele.core.digests import digest_key
from stele.core.model import (
    NO_ATTACHMENTS,
    RECORD_ID_VERSION_BITS,
    Binding,
    Numbering,
    SchemaFormat,
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
)
from stele.service.deletion import delete_version_or_incarnation
from stele.service.registry import Registry
from stele.service.retry import retry_when_overtaken
from stele.service.schemas import PreparedSchema

_EQUALITY_DIGESTS = ("normalized", "rabin")
"""Digests by which a text is looked up. The first ignores white space, the second all that does not matter for data."""


class AppState(msgspec.Struct, frozen=True):
    """What all requests of an application share."""

    registry: Registry
    options: RocketmqOptions


class Operations:
    """Serves one request of one caller."""

    def __init__(self, app_state: AppState, address: TenantAddress) -> None:
        self.registry = app_state.registry
        self.address = address

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name."""
        return await self.registry.execute(command, via=DIALECT)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def get_bound_record(self, subject: str) -> tuple[State, Version]:
        """Return the record a subject is bound to and the state it is in. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        return state, self.bound_record_in(state, subject)

    def bound_record_in(self, state: State, subject: str) -> Version:
        """Return the record a subject is bound to in a state. Raises `SubjectNotFound`, `Forbidden`."""
        binding = state.bindings.get(translate.binding_key(self.address, subject))
        key = SubjectKey(self.address.namespace, subject) if binding is None else binding.subject
        self.registry.access.require(Operation.READ, subject_resource(key))
        if binding is not None:
            record = translate.find_record(state, binding)
        else:
            known = state.find_subject(SubjectKey(self.address.namespace, subject))
            record = queries.latest_version(known) if known is not None and translate.is_foreign(known) else None
        if record is None:
            raise SubjectNotFound(subject)
        return record

    async def get_version(self, subject: str, number: int) -> tuple[State, Version]:
        """Return a version of the schema a subject is bound to and the state it is in.

        Raises `SubjectNotFound`, `VersionNotFound`.
        """

        def read_version(state: State) -> tuple[State, Version]:
            return state, queries.get_version(state, self.bound_record_in(state, subject).subject.key, number)

        return await self.registry.read_or_catch_up(read_version)

    async def get_record_of_subject(self, subject: str, number: int) -> tuple[State, Version]:
        """Return a record of this tenant by its id, and the state it is in. The binding of the subject does not matter.

        An id that is only a version number, which the original accepts, means a version of the subject's schema.

        Raises `SubjectNotFound`, `ContentNotFound`.
        """

        def read_version(state: State) -> tuple[State, Version]:
            if not number >> RECORD_ID_VERSION_BITS:
                number_of = self.bound_record_in(state, subject).subject.record_id | number
                return state, self.record_in(state, number_of)
            return state, self.record_in(state, number)

        return await self.registry.read_or_catch_up(read_version)

    async def get_record(self, number: int) -> tuple[State, Version]:
        """Return a record of this tenant by its id, or the newest active record of the schema with that id.

        Raises `ContentNotFound`.
        """

        def read_version(state: State) -> tuple[State, Version]:
            schema = (
                None
                if number & MAX_VERSION_NUMBER
                else queries.find_incarnation(state, number >> RECORD_ID_VERSION_BITS)
            )
            here = schema is not None and schema.key.namespace == self.address.namespace
            newest = queries.latest_version(schema) if here else None
            return state, self.record_in(state, newest.record_id if newest is not None else number)

        return await self.registry.read_or_catch_up(read_version)

    def record_in(self, state: State, number: int) -> Version:
        """Return a record of this tenant in a state by its id, also a deleted one.

        Raises `ContentNotFound`, also for one that the caller may not read.
        """
        record = queries.get_version_by_record_id(state, number)
        key = record.subject.key
        if key.namespace != self.address.namespace or not self.registry.access.can_read(key):
            raise ContentNotFound(number)
        return record

    async def find_version_by_text(self, subject: str, text: bytes) -> tuple[State, Version]:
        """Return the version of a subject's schema that has the schema in a text, and the state it is in.

        Raises `SubjectNotFound`, `ContentNotFound`.
        """
        state, bound = await self.get_bound_record(subject)
        key, kind = bound.subject.key, bound.kind
        try:
            prepared = await self._parse_text(state, key, SchemaFormat(kind.format, kind.custom_format), text)
        except MalformedSchema:
            raise ContentNotFound from None
        document = prepared.document
        for digest_name in _EQUALITY_DIGESTS:
            if digest_name in document.digests:
                digest = digest_key(digest_name, document.digests[digest_name])
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

    async def list_live_versions(self, name: str) -> tuple[State, list[Version]]:
        """Return the active versions of a schema by its name, at least one. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        rows = queries.list_versions(state.find_subject(SubjectKey(self.address.namespace, name)))
        if not rows:
            raise SubjectNotFound(name)
        return state, rows

    def bindings_by_version(self, state: State, schema: Subject) -> dict[int, list[Binding]]:
        """Return the subjects bound to each version of a schema, by version number; none for a deleted schema."""
        bindings: dict[int, list[Binding]] = {}
        if schema.is_closed:
            return bindings
        for binding in queries.bindings_of(state, [schema.key]):
            record = translate.find_record(state, binding) if binding.resource_type == DIALECT else None
            if record is not None:
                bindings.setdefault(record.version_number, []).append(binding)
        return bindings

    def list_bindings(self, state: State) -> Iterator[Binding]:
        """Yield the visible subjects of this cluster, of any tenant, that are bound to an existing record."""
        is_listed = self.registry.access.make_filter()
        for (cluster, kind, _, _), binding in state.bindings.items():
            is_here = (cluster, kind) == (self.address.cluster, DIALECT)
            if is_here and is_listed(binding.subject) and translate.find_record(state, binding) is not None:
                yield binding

    # --- writing ----------------------------------------------------------------------------------------------------

    async def register_schema(
        self,
        subject: str,
        name: str,
        text: bytes,
        schema_format: SchemaFormat,
        policy: Policy | None,
        desc: str,
        owner: str,
    ) -> Version:
        """Register a new schema and bind a subject to it.

        Raises `AlreadyExists`, and what parsing and the decision raise.
        """
        key = SubjectKey(self.address.namespace, _require_name(name))
        self.registry.access.require(Operation.REGISTER, subject_resource(key))
        self.registry.limits.check_text((desc + owner).encode())
        state = await self.registry.fresh_state()
        if queries.latest_version(state.find_subject(key)) is not None:
            raise _already_exists(key)
        prepared = await self._parse_text(state, key, schema_format, text)
        try:
            return await self._execute_registration(
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
                    bindings=(translate.build_binding(self.address, _require_name(subject), key),),
                )
            )
        except PreconditionFailed:
            raise _already_exists(key) from None

    async def update_schema(self, subject: str, name: str, text: bytes, desc: str, owner: str) -> Version:
        """Register the next version of a schema and bind a subject to it.

        Raises `SubjectNotFound`, `SameSchema`, and what parsing and the decision raise.
        """
        key = SubjectKey(self.address.namespace, name)
        self.registry.access.require(Operation.REGISTER, subject_resource(key))
        self.registry.limits.check_text((desc + owner).encode())
        state, rows = await self.list_live_versions(name)
        newest = rows[-1]
        if newest.subject.highest_version_number >= MAX_VERSION_NUMBER:
            raise TooLarge(f"the schema '{name}' has {MAX_VERSION_NUMBER} versions: there is no number for another one")
        schema_format = SchemaFormat(newest.kind.format, newest.kind.custom_format)
        prepared = await self._parse_text(state, key, schema_format, text)
        return await self._execute_registration(
            RegisterSchema(
                key,
                prepared.document,
                prepared.references,
                equality=Equality.DIGEST,
                equality_digest=_EQUALITY_DIGESTS[0],
                defaults=SubjectDefaults(create=False),
                description=desc or translate.desc_of(newest),
                dialect_data={DIALECT: {"owner": owner or translate.owner_of(newest)}},
                bindings=(translate.build_binding(self.address, _require_name(subject), key),),
            )
        )

    async def _execute_registration(self, command: RegisterSchema) -> Version:
        outcome, version = await self.registry.register(command, lambda _, version: version, via=DIALECT)
        if not outcome.created:
            raise SameSchema(f"the schema '{command.key.name}' has version {outcome.version_number} with the same IDL")
        return version

    async def _parse_text(
        self, state: State, key: SubjectKey, schema_format: SchemaFormat, text: bytes
    ) -> PreparedSchema:
        """Parse a text; it inherits the references of the newest version where it needs them."""
        prepared = await self.registry.parser.prepare_inheriting_references(
            state, schema_format.format, text, queries.latest_version(state.find_subject(key))
        )
        document = msgspec.structs.replace(prepared.document, custom_format=schema_format.custom_format)
        return prepared._replace(document=document)

    async def delete_schema(self, subject: str) -> Version:
        """Delete the schema of a subject with all versions and bindings, and return its newest version.

        Raises `SubjectNotFound`.
        """
        _, newest = await self.get_bound_record(subject)
        self.registry.access.require(Operation.DELETE, subject_resource(newest.subject.key))
        newest = queries.latest_version(newest.subject) or newest
        await self.delete_schema_by_key(newest.subject.key)
        return newest

    async def delete_schema_by_key(self, key: SubjectKey) -> None:
        """Delete a schema with all versions and bindings. Raises `SubjectNotFound`, `InUse`."""
        await self.execute(DeleteSubject(key, DeleteMode.END_INCARNATION))

    async def delete_version(self, subject: str, number: int) -> Version:
        """Delete one version of the schema of a subject and return it.

        The schema is deleted with its last version. Bindings to the version are moved to the newest remaining one.

        Raises `SubjectNotFound`, `VersionNotFound`.
        """

        def read_version(state: State) -> Version:
            key = self.bound_record_in(state, subject).subject.key
            self.registry.access.require(Operation.DELETE, subject_resource(key))
            return queries.get_version(state, key, number)

        version = await delete_version_or_incarnation(self.registry, self.execute, read_version)
        await self._move_bindings(version.subject.key, number)
        return version

    async def _move_bindings(self, key: SubjectKey, number: int) -> None:
        """Move the bindings of a deleted version to the newest version.

        Before the move, `translate.find_record` already resolves them to the newest version.
        """
        state = self.registry.state
        newest = queries.latest_version(state.find_subject(key))
        rows = [row for row in queries.bindings_of(state, [key]) if row.version_number == number]
        stale = tuple(row for row in rows if row.resource_type == DIALECT)
        if newest is not None and stale:
            moved = (msgspec.structs.replace(row, version_number=newest.version_number) for row in stale)
            await self.execute(ChangeBindings(tuple(moved)))

    async def unbind_subject(self, subject: str, number: int) -> None:
        """Remove the binding of a subject to a record. Raises `BindingNotFound` if it is not bound to that one."""

        async def unbind(state: State) -> None:
            binding = state.bindings.get(translate.binding_key(self.address, subject))
            is_known = binding is not None and self.registry.access.can_read(binding.subject)
            if binding is None or not is_known or not _leads_to(state, binding, number):
                raise BindingNotFound(f"'{subject}' is not bound to record {number}")
            self.registry.access.require(Operation.BIND, subject_resource(binding.subject))
            await self.execute(ChangeBindings((), (binding.key,), queries.bindings_around(state, [binding])))

        await retry_when_overtaken(self.registry, unbind)

    async def bind_subject(self, subject: str, number: int) -> tuple[State, Version]:
        """Bind a subject to an active record, or to a schema, which always means its newest version.

        A number with a version number names a record, one without it a schema. Raises `ContentNotFound`.
        """
        state = await self.registry.fresh_state()
        schema = queries.find_incarnation(state, number >> RECORD_ID_VERSION_BITS)
        version_number = number & MAX_VERSION_NUMBER or None
        if schema is None or schema.key.namespace != self.address.namespace or schema.is_closed:
            raise ContentNotFound(number)
        if not self.registry.access.can_read(schema.key):
            raise ContentNotFound(number)
        self.registry.access.require(Operation.BIND, subject_resource(schema.key))
        record = find_version(schema, version_number) if version_number else queries.latest_version(schema)
        if record is None or record.state is not VersionState.ACTIVE:
            raise ContentNotFound(number)
        binding = translate.build_binding(self.address, _require_name(subject), schema.key, version_number)
        await self.execute(ChangeBindings((binding,)))
        return await self.get_bound_record(subject)


def _leads_to(state: State, binding: Binding, number: int) -> bool:
    record = translate.find_record(state, binding)
    if record is None:
        return False
    return number in {record.subject.record_id, translate.record_id(record)}


def _already_exists(key: SubjectKey) -> AlreadyExists:
    return AlreadyExists(f"the schema '{translate.schema_name(key)}' exists already")


def _require_name(name: str) -> str:
    if not name.strip():
        raise InvalidName(name, "is not a name")
    return name
