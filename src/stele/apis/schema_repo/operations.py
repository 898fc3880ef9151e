"""Operations on subjects and schemas, for one caller.

The two dialects differ in the number of a subject's first version, and in whether a text must be a valid schema.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import msgspec
from litestar.di import NamedDependency

from stele.apis.schema_repo.ids import SEQUENTIAL, IdIndex, id_of, id_of_document
from stele.apis.schema_repo.options import SchemaRepoOptions
from stele.apis.schema_repo.translate import DIALECT, VALIDATORS, build_config, parse_config, parse_policy
from stele.core import queries
from stele.core.commands import (
    ChangeSubject,
    Command,
    CompatibilityCheck,
    CreateSubject,
    Equality,
    Outcome,
    RegisterSchema,
    SubjectDefaults,
)
from stele.core.model import (
    DEFAULT_NAMESPACE,
    NO_ATTACHMENTS,
    OPAQUE_FORMAT,
    Numbering,
    SchemaDocument,
    SettingsLevel,
    Subject,
    SubjectKey,
    Version,
)
from stele.core.policy import ALLOW_ANY
from stele.core.state import State
from stele.errors import (
    AlreadyExists,
    ContentNotFound,
    InvalidName,
    MalformedSchema,
    PreconditionFailed,
    ReadOnly,
    SubjectNotFound,
    TooLarge,
)
from stele.service.registry import Registry
from stele.service.retry import Overtaken, retry_when_overtaken
from stele.service.schemas import PreparedSchema
from stele.service.visibility import is_subject_shown

_AVRO_FORMAT = "avro"


class DialectTraits(NamedTuple):
    """Differences between the two dialects.

    Attributes:
        via: Name of the dialect in the journal.
        first: Number of a subject's first version.
        opaque: Whether a text that is not a schema is registered, too, without being parsed.
    """

    via: str
    first: int
    opaque: bool


AVRO1124 = DialectTraits("avro1124", 1, opaque=False)
SCHEMA_REPO = DialectTraits("schema-repo", 0, opaque=True)


class AppState(msgspec.Struct, frozen=True):
    """What all requests of an application share."""

    registry: Registry
    options: SchemaRepoOptions
    ids: IdIndex


class Operations:
    """Serves one request of one caller."""

    def __init__(self, app_state: AppState, traits: DialectTraits) -> None:
        self.registry = app_state.registry
        self.options = app_state.options
        self._ids = app_state.ids
        self._traits = traits

    # --- reading ----------------------------------------------------------------------------------------------------

    async def list_subjects(self) -> list[str]:
        """Return the names of all subjects that the caller may see, sorted."""
        place = (await self.registry.fresh_state()).find_namespace(DEFAULT_NAMESPACE)
        subjects = place.subjects.values() if place else ()
        is_listed = self.registry.access.make_filter()
        return sorted(
            [
                subject.key.name
                async for subject in self.registry.time_slices.iterate(subjects)
                if is_subject_shown(subject, DIALECT) and is_listed(subject.key)
            ]
        )

    async def get_subject(self, name: str) -> tuple[State, Subject]:
        """Return the present state and a subject in it. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        return state, _get_visible(state, name)

    async def get_config(self, name: str) -> dict[str, str]:
        """Return the config of a subject with the policy in force. Raises `SubjectNotFound`."""
        return build_config(*await self.get_subject(name), self.options)

    async def list_schemas(self, name: str) -> list[tuple[str, str]]:
        """Return (id, text) of all schemas of a subject, in order of registration. Raises `SubjectNotFound`."""
        state, subject = await self.get_subject(name)
        return [
            (schema_id, _text_of(state, row))
            async for schema_id, row in self.registry.time_slices.iterate(await self._unique_ids(state, subject))
        ]

    async def list_ids(self, name: str) -> list[str]:
        """Return the ids of all schemas of a subject, in order of registration. Raises `SubjectNotFound`."""
        state, subject = await self.get_subject(name)
        return [schema_id for schema_id, _ in await self._unique_ids(state, subject)]

    async def _unique_ids(self, state: State, subject: Subject) -> list[tuple[str, Version]]:
        """Return (id, version) pairs, oldest version first. A version whose id means an older one is left out."""
        versions: dict[str, Version] = {}
        async for row in self.registry.time_slices.iterate(queries.list_versions(subject)):
            versions.setdefault(self._id_of(state, row), row)
        return list(versions.items())

    async def get_latest(self, name: str) -> tuple[str, bytes]:
        """Return (id, bytes) of the newest schema. Raises `SubjectNotFound`, `ContentNotFound`."""
        state, subject = await self.get_subject(name)
        row = queries.latest_version(subject)
        if row is None:
            raise ContentNotFound("latest")
        return self._id_of(state, row), state.get_text(row.content)

    async def get_schema(self, name: str, schema_id: str) -> bytes:
        """Return the bytes of the schema with an id. Raises `SubjectNotFound`, `ContentNotFound`."""

        def read_text(state: State) -> bytes:
            row = self._ids.find_version(state, _get_visible(state, name), schema_id, self._traits.first)
            if row is None:
                raise ContentNotFound(schema_id)
            return state.get_text(row.content)

        return await self.registry.read_or_catch_up(read_text)

    async def find_id(self, name: str, text: bytes) -> str:
        """Return the id of a text in a subject. Raises `SubjectNotFound`, `ContentNotFound`, `TooLarge`."""
        self.registry.limits.check_text(text)
        state, subject = await self.get_subject(name)
        prepared = await self._parse_text(state, subject, text, opaque=True)
        row = self._find_registered(state, subject, prepared.document)
        if row is None:
            raise ContentNotFound
        return self._id_of(state, row)

    def _id_of(self, state: State, row: Version) -> str:
        return id_of(self.options.ids, self._traits.first, state, row)

    def _find_registered(self, state: State, subject: Subject | None, document: SchemaDocument) -> Version | None:
        """Return the version with the text or the id of a document, which makes a registration unnecessary, or None."""
        schema_id = id_of_document(self.options.ids, document)
        if subject is None:
            return None
        same = queries.find_equal_version(state, subject.key, document.sha, NO_ATTACHMENTS, equality=Equality.TEXT)
        return (
            same
            if same is not None or schema_id is None
            else self._ids.find_version(state, subject, schema_id, self._traits.first)
        )

    # --- writing ----------------------------------------------------------------------------------------------------

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name. Raises `ReadOnly` if the option `read_only` is set."""
        self._require_writable()
        return await self.registry.execute(command, via=self._traits.via)

    def _require_writable(self) -> None:
        if self.options.read_only:
            raise ReadOnly("this repository is read-only", how="read-only")

    async def create_subject(self, name: str, config: dict[str, str]) -> None:
        """Create a subject with a config; an existing one keeps its config.

        Raises `InvalidName`, `InvalidRequest`, `UnknownPolicy`, `TooLarge`, `ReadOnly`.
        """
        key = _subject_key(name)
        size = sum(len(part.encode()) for item in config.items() for part in item)
        if size > self.registry.limits.schema_bytes:
            raise TooLarge(f"the config has {size} bytes, more than a schema may have")
        wanted = parse_config(config, self.options)

        async def create_or_revive(state: State) -> None:
            ready, policy = state.settings_at(SettingsLevel(*key)), wanted
            if VALIDATORS not in config and ready is not None and ready.policy is not None:
                policy = ready.policy  # Another dialect set a policy for this name.
            try:
                defaults = SubjectDefaults(Numbering.NEVER_REUSE, policy=policy)
                await self.execute(CreateSubject(key, defaults, dialect_data={DIALECT: config}))
            except AlreadyExists:
                await self._revive_subject(key)

        await retry_when_overtaken(self.registry, create_or_revive, conflicts=(SubjectNotFound,))

    async def _revive_subject(self, key: SubjectKey) -> None:
        """Show a subject again, without schemas and with its policy, if another dialect deleted all its schemas.

        Raises `Overtaken` or `SubjectNotFound` for one that was purged meanwhile.
        """
        subject = self.registry.state.find_subject(key)
        if subject is None:
            raise Overtaken
        if not is_subject_shown(subject, DIALECT):
            dialect_data = {**(subject.dialect_data or {}), DIALECT: {}}
            await self.execute(
                ChangeSubject(key, subject.description, subject.labels, dialect_data, subject.default_version)
            )

    async def register_schema(self, name: str, text: bytes) -> str:
        """Register a text in an existing subject and return its id.

        Raises `SubjectNotFound`, and what the decision raises.
        """
        command = partial(RegisterSchema, _subject_key(name), defaults=SubjectDefaults(create=False))
        return await self._register_or_find(command, text)

    async def register_if_latest(self, name: str, text: bytes, latest: str) -> str:
        """Register a text if the newest schema still has that id; '' means there is no schema yet.

        Raises `ContentNotFound` for an id that the subject does not have, `PreconditionFailed` for one that is not the
        newest, and what `register_schema` raises.
        """
        state, subject = await self.get_subject(name)
        newest = queries.latest_version(subject)
        if latest and self._ids.find_version(state, subject, latest, self._traits.first) is None:
            raise ContentNotFound(latest)
        if latest != ("" if newest is None else self._id_of(state, newest)):
            raise PreconditionFailed("another schema is the latest one")
        number = 0 if newest is None else newest.version_number
        command = partial(
            RegisterSchema, _subject_key(name), expected_latest=number, defaults=SubjectDefaults(create=False)
        )
        return await self._register_or_find(command, text)

    async def register_with_model(self, name: str, text: bytes, model: tuple[str, ...] | None, *, force: bool) -> str:
        """Register a text and return its id; create the group if needed.

        Args:
            name: Name of the group.
            text: The schema.
            model: Compatibility model that the group gets; None leaves it as it is.
            force: Skip the compatibility check.

        Raises:
            UnknownPolicy: The model has an unknown word.
            MalformedSchema: The text is not a schema.
            SteleError: What the decision raises.
        """
        policy = None if model is None else parse_policy(model, self.options.models)
        command = partial(
            RegisterSchema,
            _subject_key(name),
            check=CompatibilityCheck.SKIP if force else CompatibilityCheck.POLICY,
            policy=policy,
            defaults=SubjectDefaults(Numbering.NEVER_REUSE, policy=ALLOW_ANY if policy is None else policy),
        )
        return await self._register_or_find(command, text)

    async def _register_or_find(self, command: partial[RegisterSchema], text: bytes) -> str:
        """Register a text unless the subject has it, and return its id.

        Whether an id exists depends on the whole subject. So a document is only added to the subject in which it was
        looked up. If another writer changes the subject first, it is looked up again.
        """
        key: SubjectKey = command.args[0]

        async def register(state: State) -> str:
            subject = state.find_subject(key)
            prepared = await self._parse_text(state, subject, text, opaque=self._traits.opaque)
            document, references, newest = prepared.document, prepared.references, queries.latest_version(subject)
            version = self._find_registered(state, subject, document)
            if version is not None:
                content, kind = version.content, version.kind
                document = SchemaDocument(state.get_text(content), content.sha, kind.format, kind.type)
                references = version.schema.attachments.references
            request = command(document=document, references=references, equality=Equality.TEXT)
            depends_on_subject = self.options.ids != SEQUENTIAL and request.expected_latest is None
            if depends_on_subject:
                number = newest.version_number if newest is not None else 0
                request = msgspec.structs.replace(request, expected_latest=number)
            try:
                self._require_writable()
                _, known_as = await self.registry.register(request, self._id_of, via=self._traits.via)
            except PreconditionFailed:
                if not depends_on_subject:
                    raise
                raise Overtaken from None
            return known_as

        return await retry_when_overtaken(self.registry, register, conflicts=())

    async def _parse_text(self, state: State, subject: Subject | None, text: bytes, *, opaque: bool) -> PreparedSchema:
        """Parse a text in the format of its subject, else as Avro. With opaque, any text is accepted.

        It inherits the references of the newest version if it needs them.
        """
        newest, parser = queries.latest_version(subject), self.registry.parser
        format_name = _format_name_of(subject, newest)
        try:
            prepared = await parser.prepare_inheriting_references(state, format_name, text, newest, strict=not opaque)
        except MalformedSchema:
            if not opaque:
                raise
            prepared = await parser.prepare_schema(state, OPAQUE_FORMAT, text)
        custom_format = ""
        if format_name == OPAQUE_FORMAT and newest is not None:
            custom_format = newest.kind.custom_format
        elif format_name == OPAQUE_FORMAT and subject is not None:
            custom_format = subject.custom_format
        return prepared._replace(document=msgspec.structs.replace(prepared.document, custom_format=custom_format))


InjectedOperations = NamedDependency[Operations]


def _subject_key(name: str) -> SubjectKey:
    if not name.strip():
        raise InvalidName(name, "is not a name")
    return SubjectKey(DEFAULT_NAMESPACE, name)


def _get_visible(state: State, name: str) -> Subject:
    subject = state.find_subject(SubjectKey(DEFAULT_NAMESPACE, name))
    if subject is None or not is_subject_shown(subject, DIALECT):
        raise SubjectNotFound(name)
    return subject


def _format_name_of(subject: Subject | None, newest: Version | None) -> str:
    """Return the format of a subject, Avro if it has none. Texts stored here without parsing do not count."""
    if newest is not None and (newest.kind.format != OPAQUE_FORMAT or newest.kind.custom_format):
        return newest.kind.format
    return (subject.format if subject is not None else "") or _AVRO_FORMAT


def _text_of(state: State, row: Version) -> str:
    """Return the text of a version. Bytes that are not UTF-8, which only other dialects register, are replaced."""
    return state.get_text(row.content).decode("utf-8", "replace")
