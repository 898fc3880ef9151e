"""Documents into versions: which language they are in, where they come from, what is said about them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from stele.apis.cncf import translate, uris
from stele.apis.cncf.desk import Desk
from stele.apis.cncf.languages import Language, content_type_in, language_in, language_of, language_of_type
from stele.apis.cncf.names import new_id
from stele.apis.cncf.translate import DIALECT
from stele.core import queries
from stele.core.commands import Equality, RegisterSchema, Registration, SubjectDefaults, SubjectUpdate
from stele.core.model import NO_ATTACHMENTS, Namespace, Numbering, Reference, Subject, SubjectKey, Version
from stele.core.policy import ALLOW_ANY
from stele.core.state import State
from stele.errors import ContentNotFound, FormatMismatch, InvalidRequest, UnresolvedReference
from stele.service.schemas import PreparedSchema


class Attributes(msgspec.Struct, frozen=True):
    """What a request says beside the document; None says nothing.

    description, format and authority are the schema's, version_description and id the version's.
    """

    description: str | None = None
    version_description: str | None = None
    format: str | None = None
    authority: str | None = None
    id: str | None = None


NO_ATTRIBUTES = Attributes()


class Document(msgspec.Struct, frozen=True):
    """The document of a request and its content type, '' when there is none."""

    body: bytes
    content_type: str


async def register(
    desk: Desk,
    group: str,
    schema: str,
    document: Document,
    attributes: Attributes = NO_ATTRIBUTES,
    *,
    equality: Equality = Equality.TEXT_AND_TYPE,
) -> tuple[State, Version]:
    """Register a document as the next version of a schema, or find the version it is.

    Raises `SpaceNotFound`, `InvalidName`, `FormatMismatch`, `MalformedSchema`, `Incompatible`, `TooLarge`, and
    `AlreadyExists` for an id that another version has.
    """
    state, space = await desk.space(group)
    key = SubjectKey(space.name, schema)
    subject = state.find_subject(key)
    if subject is None:
        new_id(schema)
    language = _language(desk, space, subject, document.content_type, attributes.format)
    prepared = await _prepared(desk, state, subject, language, document.body)
    outcome = await desk.execute(
        RegisterSchema(
            key,
            replace(prepared.document, custom_format=language.custom_format),
            prepared.references,
            equality=equality,
            defaults=SubjectDefaults(
                Numbering.NEVER_REUSE,
                policy=ALLOW_ANY if translate.policy_of(state, space) is None else None,
                format=language.format,
                custom_format=language.custom_format,
            ),
            description=translate.text_in(attributes.version_description or ""),
            media_type=content_type_in(document.content_type),
            origin_uri=uris.id_in(attributes.id) if attributes.id else None,
            subject_update=_about(subject, attributes, language),
        )
    )
    assert isinstance(outcome, Registration)
    state = desk.registry.state
    return state, queries.get_version(state, key, outcome.version_number, queries.ACTIVE_OR_SOFT_DELETED)


async def find(desk: Desk, group: str, schema: str, document: Document) -> tuple[State, Version]:
    """The version of a schema that is a document, byte for byte. Raises as `Desk.ordinals`, and `ContentNotFound`."""
    await desk.ordinals(group, schema)
    state, space = await desk.space(group)
    key = SubjectKey(space.name, schema)
    language = _language(desk, space, state.find_subject(key), document.content_type, None)
    prepared = await desk.registry.parser.prepare_schema(state, "opaque", document.body)
    found = queries.find_equal_version(state, key, prepared.document.sha, NO_ATTACHMENTS, equality=Equality.TEXT)
    if found is None or found.kind.format != language.format:
        raise ContentNotFound
    return state, found


def _language(desk: Desk, space: Namespace, subject: Subject | None, content_type: str, asked: str | None) -> Language:
    """The language of a document: the group's, the schema's, or the one the request names.

    Raises `FormatMismatch` where two of them differ, `InvalidRequest` where nobody says.
    """
    installed = desk.registry.parser.list_format_names()
    named = language_of_type(content_type, installed) if asked is None else language_in(asked, installed)
    fixed = translate.language_of_group(space) or _language_of_schema(subject)
    if fixed is not None and named is not None and named != fixed:
        raise FormatMismatch(f"this takes {_shown(fixed)} documents, not {_shown(named)}")
    found = fixed or named
    if found is None:
        raise InvalidRequest("neither the group nor the request says which format the schema has")
    return found


def _shown(language: Language) -> str:
    return language.custom_format or language.format


def _language_of_schema(subject: Subject | None) -> Language | None:
    newest = queries.latest_version(subject)
    if newest is not None:
        return language_of(newest.kind)
    if subject is None or not subject.format:
        return None
    return Language(subject.format, subject.custom_format)


async def _prepared(
    desk: Desk, state: State, subject: Subject | None, language: Language, body: bytes
) -> PreparedSchema:
    """The document parsed; a reference it needs and cannot name means what it means in the version before."""
    prepare = desk.registry.parser.prepare_schema
    newest = queries.latest_version(subject)
    before: tuple[Reference, ...] = newest.schema.attachments.references if newest is not None else ()
    try:
        return await prepare(state, language.format, body)
    except UnresolvedReference:
        if not before:
            raise
        return await prepare(state, language.format, body, before)


def _about(subject: Subject | None, attributes: Attributes, language: Language) -> SubjectUpdate:
    """What a request says about the schema.

    An absolute id is that of a version of another registry, so a new schema gets its authority from there, unless the
    request has one.
    """
    own: dict[str, Any] = {}
    if attributes.authority is not None:
        own["authority"] = uris.authority_in(attributes.authority) if attributes.authority else None
    elif attributes.id and uris.is_absolute(attributes.id) and queries.latest_version(subject) is None:
        own["authority"] = uris.origin_of(attributes.id)
    if attributes.format is not None:
        own["format"] = attributes.format.strip()
    description = None if attributes.description is None else translate.text_in(attributes.description)
    return SubjectUpdate(description, {DIALECT: own} if own else {})
