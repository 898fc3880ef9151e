"""Where requests are served: finding subjects and schemas, creating and registering.

One desk serves one request for one caller; the two dialects differ in the number of a subject's first version, and in
whether a text has to be a schema.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import msgspec
from litestar.di import NamedDependency

from stele.apis.schema_repo.ids import IdIndex, id_of, named_once, new_id
from stele.apis.schema_repo.options import SchemaRepoOptions
from stele.apis.schema_repo.strategies import SEQUENTIAL
from stele.apis.schema_repo.translate import DIALECT, VALIDATORS, config_in, config_out, policy_of
from stele.core import queries
from stele.core.commands import (
    ChangeSubject,
    Command,
    CompatibilityCheck,
    CreateSubject,
    Equality,
    Outcome,
    RegisterSchema,
    Registration,
    SubjectDefaults,
)
from stele.core.model import (
    DEFAULT_NAMESPACE,
    NO_ATTACHMENTS,
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
    UnresolvedReference,
)
from stele.service.registry import Registry
from stele.service.schemas import PreparedSchema

_AVRO = "avro"
_OPAQUE = "opaque"


class Custom(NamedTuple):
    """What the two dialects do each in their own way.

    via      name of the dialect in the history
    first    number of a subject's first version
    opaque   whether a text that is no schema is registered all the same, unread
    """

    via: str
    first: int
    opaque: bool


AVRO1124 = Custom("avro1124", 1, opaque=False)
SCHEMA_REPO = Custom("schema-repo", 0, opaque=True)


class Office(msgspec.Struct, frozen=True):
    """What all requests share."""

    registry: Registry
    options: SchemaRepoOptions
    ids: IdIndex


class Desk:
    """Serves one request for one caller."""

    def __init__(self, office: Office, custom: Custom, actor: str) -> None:
        self.registry = office.registry
        self.options = office.options
        self._ids = office.ids
        self._custom = custom
        self._actor = actor

    # --- reading ----------------------------------------------------------------------------------------------------

    async def names(self) -> list[str]:
        """The subjects there are, sorted."""
        place = (await self.registry.fresh_state()).find_namespace(DEFAULT_NAMESPACE)
        return sorted(name for name, subject in (place.subjects if place else {}).items() if _is_shown(subject))

    async def subject(self, name: str) -> tuple[State, Subject]:
        """A subject. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        return state, _shown(state, name)

    async def config(self, name: str) -> dict[str, str]:
        """The config of a subject, with the policy in force. Raises `SubjectNotFound`."""
        return config_out(*await self.subject(name), self.options)

    async def rows(self, name: str) -> list[tuple[str, str]]:
        """(id, text) of all schemas of a subject, in the order of registration. Raises `SubjectNotFound`."""
        state, subject = await self.subject(name)
        named = named_once(self.options.ids, self._custom.first, state, queries.list_versions(subject))
        return [(told, _text(state, row)) for told, row in named]

    async def ids(self, name: str) -> list[str]:
        """As `rows`, the ids alone."""
        state, subject = await self.subject(name)
        return [
            told for told, _ in named_once(self.options.ids, self._custom.first, state, queries.list_versions(subject))
        ]

    async def latest(self, name: str) -> tuple[str, bytes]:
        """(id, bytes) of the newest schema. Raises `SubjectNotFound`, `ContentNotFound`."""
        state, subject = await self.subject(name)
        row = queries.latest_version(subject)
        if row is None:
            raise ContentNotFound("latest")
        return self._id(state, row), state.get_text(row.content)

    async def schema(self, name: str, asked: str) -> bytes:
        """The bytes an id stands for. Raises `SubjectNotFound`, `ContentNotFound`."""

        def look(state: State) -> bytes:
            row = self._ids.find(state, _shown(state, name), asked, self._custom.first)
            if row is None:
                raise ContentNotFound(asked)
            return state.get_text(row.content)

        return await self.registry.read_or_catch_up(look)

    async def id_of_text(self, name: str, text: bytes) -> str:
        """The id a text has in a subject. Raises `SubjectNotFound`, `ContentNotFound`, `TooLarge`."""
        self.registry.limits.check_text(text)
        state, subject = await self.subject(name)
        prepared = await self._prepared(state, subject, text, opaque=True)
        row = self._known(state, subject, prepared.document)
        if row is None:
            raise ContentNotFound
        return self._id(state, row)

    def _id(self, state: State, row: Version) -> str:
        return id_of(self.options.ids, self._custom.first, state, row)

    def _known(self, state: State, subject: Subject | None, document: SchemaDocument) -> Version | None:
        """The version that makes registering a document needless: the same text, or what has the same digest."""
        asked = new_id(self.options.ids, document)
        if subject is None:
            return None
        same = queries.find_equal_version(state, subject.key, document.sha, NO_ATTACHMENTS, equality=Equality.TEXT)
        return same if same is not None or asked is None else self._ids.find(state, subject, asked, self._custom.first)

    # --- writing ----------------------------------------------------------------------------------------------------

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name. Raises `ReadOnly` where the dialect takes no writes."""
        if self.options.read_only:
            raise ReadOnly("this repository is read-only", how="read-only")
        return await self.registry.execute(command, actor=self._actor, via=self._custom.via)

    async def create(self, name: str, config: dict[str, str]) -> None:
        """Create a subject with its config; one that is there keeps the config it has.

        Raises `InvalidName`, `InvalidRequest`, `UnknownPolicy`, `TooLarge`, `ReadOnly`.
        """
        key = _key(name)
        size = sum(len(part.encode()) for item in config.items() for part in item)
        if size > self.registry.limits.schema_bytes:
            raise TooLarge(f"the config has {size} bytes, more than a schema may have")
        policy = config_in(config, self.options)
        ready = (await self.registry.fresh_state()).settings_at(SettingsLevel(*key))
        if VALIDATORS not in config and ready is not None and ready.policy is not None:
            policy = ready.policy  # Another dialect had one ready for a subject of this name.
        try:
            defaults = SubjectDefaults(Numbering.NEVER_REUSE, policy=policy)
            await self.execute(CreateSubject(key, defaults, dialect_data={DIALECT: config}))
        except AlreadyExists:
            await self._revive(key)

    async def _revive(self, key: SubjectKey) -> None:
        """Show a subject again, empty and under the policy it has, if all it had was deleted in another dialect."""
        subject = self.registry.state.find_subject(key)
        if subject is not None and not _is_shown(subject):
            ext = {**(subject.dialect_data or {}), DIALECT: {}}
            await self.execute(ChangeSubject(key, subject.description, subject.labels, ext, subject.default_version))

    async def register(self, name: str, text: bytes) -> str:
        """Register a text in a subject that exists; its id. Raises `SubjectNotFound` and what the decision raises."""
        command = partial(RegisterSchema, _key(name), defaults=SubjectDefaults(create=False))
        return await self._registered(command, text)

    async def register_after(self, name: str, text: bytes, latest: str) -> str:
        """As `register`, if the newest schema is still the one of that id; '' means there is none.

        Raises `ContentNotFound` for an id the subject does not have, `PreconditionFailed` for one that is not newest.
        """
        state, subject = await self.subject(name)
        newest = queries.latest_version(subject)
        if latest and self._ids.find(state, subject, latest, self._custom.first) is None:
            raise ContentNotFound(latest)
        if latest != ("" if newest is None else self._id(state, newest)):
            raise PreconditionFailed("another schema is the latest one")
        number = 0 if newest is None else newest.version_number
        command = partial(RegisterSchema, _key(name), expected_latest=number, defaults=SubjectDefaults(create=False))
        return await self._registered(command, text)

    async def post(self, name: str, text: bytes, model: tuple[str, ...] | None, *, force: bool) -> str:
        """Register a text, creating the group if need be; a model named is the group's from then on.

        Raises `UnknownPolicy`, `MalformedSchema`, and what the decision raises.
        """
        policy = None if model is None else policy_of(model, self.options.models)
        command = partial(
            RegisterSchema,
            _key(name),
            check=CompatibilityCheck.SKIP if force else CompatibilityCheck.POLICY,
            policy=policy,
            defaults=SubjectDefaults(Numbering.NEVER_REUSE, policy=ALLOW_ANY if policy is None else policy),
        )
        return await self._registered(command, text)

    async def _registered(self, command: partial[RegisterSchema], text: bytes) -> str:
        """The id of a text after registering it, unless it is there.

        Whether a digest is there depends on the whole subject, so a document is only added to the subject it was looked
        up in; whoever is overtaken looks again.
        """
        key: SubjectKey = command.args[0]
        while True:
            state = await self.registry.fresh_state()
            subject = state.find_subject(key)
            prepared = await self._prepared(state, subject, text, opaque=self._custom.opaque)
            document, references, newest = prepared.document, prepared.references, queries.latest_version(subject)
            known = self._known(state, subject, document)
            if known is not None:
                content = known.content
                document = SchemaDocument(state.get_text(content), content.sha, known.kind.format, known.kind.type)
                references = known.schema.attachments.references
            asked = command(document=document, references=references, equality=Equality.TEXT)
            watched = self.options.ids != SEQUENTIAL and asked.expected_latest is None
            if watched:
                asked = msgspec.structs.replace(
                    asked, expected_latest=newest.version_number if newest is not None else 0
                )
            try:
                outcome = await self.execute(asked)
            except PreconditionFailed:
                if not watched:
                    raise
                continue
            assert isinstance(outcome, Registration)
            state = self.registry.state
            return self._id(state, queries.get_version(state, key, outcome.version_number))

    async def _prepared(self, state: State, subject: Subject | None, text: bytes, *, opaque: bool) -> PreparedSchema:
        """A text as a schema: of the language the subject has, else Avro; with opaque, as anything at all."""
        newest, prepare = queries.latest_version(subject), self.registry.parser.prepare_schema
        language = _language(subject, newest)
        parse = partial(prepare, state, language, text, strict=not opaque)
        try:
            try:
                prepared = await parse()
            except UnresolvedReference:
                if newest is None or not newest.schema.attachments.references:
                    raise
                prepared = await parse(newest.schema.attachments.references)
        except MalformedSchema:
            if not opaque:
                raise
            prepared = await prepare(state, _OPAQUE, text)
        variety = ""
        if language == _OPAQUE:
            variety = (
                newest.kind.custom_format
                if newest is not None
                else subject.custom_format
                if subject is not None
                else ""
            )
        return prepared._replace(document=msgspec.structs.replace(prepared.document, custom_format=variety))


AtDesk = NamedDependency[Desk]


def _key(name: str) -> SubjectKey:
    if not name.strip():
        raise InvalidName(name, "is no name")
    return SubjectKey(DEFAULT_NAMESPACE, name)


def _shown(state: State, name: str) -> Subject:
    subject = state.find_subject(SubjectKey(DEFAULT_NAMESPACE, name))
    if subject is None or not _is_shown(subject):
        raise SubjectNotFound(name)
    return subject


def _is_shown(subject: Subject) -> bool:
    """Not one whose schemas were all deleted, unless it was created here."""
    return (
        not subject.versions or DIALECT in (subject.dialect_data or {}) or queries.latest_version(subject) is not None
    )


def _language(subject: Subject | None, newest: Version | None) -> str:
    """The format a subject has; what was kept unread here does not count, a language of another dialect does."""
    if newest is not None and (newest.kind.format != _OPAQUE or newest.kind.custom_format):
        return newest.kind.format
    return (subject.format if subject is not None else "") or _AVRO


def _text(state: State, row: Version) -> str:
    """The text of a version; bytes that are no UTF-8 can only come from another dialect, and read badly in a list."""
    return state.get_text(row.content).decode("utf-8", "replace")
