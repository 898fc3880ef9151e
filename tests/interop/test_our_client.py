"""Stele's client against a real server: every method, unusual names, errors, contexts, blocking and async."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from stele import errors
from stele.client import (
    AsyncSchemaRegistryClient,
    BaselineSchema,
    ConfigUpdateRequest,
    Metadata,
    ResponseError,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SubjectVersion,
    qualify_subject,
)

ONE = Schema('{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
TWO = Schema('{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}')
BAD = Schema('{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}')


@pytest.fixture
def subject(ours: SchemaRegistryClient) -> Iterator[str]:
    """A subject with one version, purged afterwards."""
    name = f"subject-{uuid4().hex[:12]}"
    ours.register(name, ONE)
    yield name
    purge(ours, name)


def purge(client: SchemaRegistryClient, subject: str) -> None:
    """Delete a subject for good."""
    if subject in client.subjects():
        client.delete_subject(subject)
    if subject in client.subjects(deleted=True):
        client.delete_subject(subject, permanent=True)


def test_register_find_and_list(ours: SchemaRegistryClient, subject: str) -> None:
    """A registered schema is found by id, version, text and subject."""
    registered = ours.register(subject, TWO)
    assert ours.register(subject, TWO).id == registered.id
    assert ours.lookup(subject, TWO).version == 2
    assert ours.version(subject).id == registered.id
    assert ours.version(subject, 1).text == ONE.text
    assert ours.version_text(subject, 2) == TWO.text
    assert ours.schema_by_id(registered.id).text == TWO.text
    assert ours.schema_text_by_id(registered.id) == TWO.text
    assert ours.versions(subject) == [1, 2]
    assert subject in ours.subjects()
    assert subject in ours.subjects_of_id(registered.id)
    assert SubjectVersion(subject, 2) in ours.versions_of_id(registered.id)
    assert {"AVRO", "JSON", "PROTOBUF"} <= set(ours.schema_types())
    schemas = [schema for schema in ours.schemas(subject_prefix=subject) if schema.subject == subject]
    assert [schema.version for schema in schemas] == [1, 2]


def test_guids(ours: SchemaRegistryClient, subject: str) -> None:
    """The guid and the id return the same text."""
    version = ours.version(subject)
    assert ours.schema_by_guid(version.guid).text == ONE.text
    assert version.id in [place.id for place in ours.ids_of_guid(UUID(version.guid))]


@pytest.mark.parametrize(
    "name", ["a/b", "50%", "%2F", "two words", "ключ-键", "a?b#c", "+plus+", 'quo"te', "..", "x:y"]
)
def test_hard_names(ours: SchemaRegistryClient, name: str) -> None:
    """Names of any letters are unchanged after URL, server and lists."""
    subject = name if name == ".." else f"{name}-{uuid4().hex[:8]}"
    try:
        assert ours.register(subject, ONE).id == ours.version(subject, 1).id
        assert ours.version(subject, 1).subject == subject
        assert subject in ours.subjects()
        assert ours.set_config("FULL", subject).compatibility_level == "FULL"
        assert ours.config(subject).compatibility_level == "FULL"
    finally:
        purge(ours, subject)


def test_errors_are_the_librarys_own(ours: SchemaRegistryClient, subject: str) -> None:
    """Error responses are raised as the library's own error classes, with the server's code."""
    nowhere = f"{subject}-nowhere"
    with pytest.raises(errors.SubjectNotFound) as missing:
        ours.versions(nowhere)
    assert isinstance(missing.value, ResponseError)
    assert (missing.value.error_code, missing.value.subject) == (40401, nowhere)
    with pytest.raises(errors.VersionNotFound):
        ours.version(subject, 99)
    with pytest.raises(errors.ContentNotFound):
        ours.schema_by_id(2**31 - 1)
    with pytest.raises(errors.ContentNotFound):
        ours.lookup(subject, BAD)
    with pytest.raises(errors.MalformedSchema):
        ours.register(subject, Schema("{"))
    with pytest.raises(errors.Incompatible):
        ours.register(subject, BAD)
    with pytest.raises(errors.NotSoftDeleted):
        ours.delete_subject(subject, permanent=True)
    with pytest.raises(errors.SettingNotFound):
        ours.config(subject)
    with pytest.raises(errors.UnknownPolicy):
        ours.set_config("SIDEWARDS", subject)
    with pytest.raises(errors.UnknownMode):
        ours.set_mode("SIDEWARDS", subject)


def test_deletion_in_two_steps(ours: SchemaRegistryClient, subject: str) -> None:
    """Versions are first soft-deleted, then deleted for good."""
    ours.register(subject, TWO)
    assert ours.delete_version(subject, 1) == 1
    assert ours.versions(subject) == [2]
    assert ours.versions(subject, deleted=True) == [1, 2]
    with pytest.raises(errors.AlreadySoftDeleted):
        ours.delete_version(subject, 1)
    assert ours.delete_version(subject, 1, permanent=True) == 1
    assert ours.delete_version(subject, "latest") == 2
    assert ours.delete_subject(subject, permanent=True) == [2]


def test_references(ours: SchemaRegistryClient, subject: str) -> None:
    """A referenced version cannot be deleted, and `resolve` includes it."""
    user = f"{subject}-user"
    text = '{"type":"record","name":"U","fields":[{"name":"r","type":"R"}]}'
    registered = ours.register(user, Schema(text, references=(SchemaReference("R", subject, 1),)))
    try:
        assert ours.referenced_by(subject, 1) == [registered.id]
        assert ours.resolve(registered.id).references == {"R": ONE.text}
        with pytest.raises(errors.InUse):
            ours.delete_version(subject, 1)
    finally:
        purge(ours, user)


def test_compatibility(ours: SchemaRegistryClient, subject: str) -> None:
    """Verdicts have reasons, against one version and as at registration."""
    assert ours.check_compatibility(subject, TWO).is_compatible
    refused = ours.check_compatibility(subject, BAD, 1)
    assert not refused.is_compatible
    assert refused.messages


def test_stateless_check(ours: SchemaRegistryClient) -> None:
    """The native check compares unregistered texts, and returns findings."""
    result = ours.check("avro", BAD.text, [BaselineSchema(ONE.text)], policy="BACKWARD")
    assert not result.compatible
    assert result.findings[0].why
    assert ours.check("avro", TWO.text, [BaselineSchema(ONE.text)]).compatible


def test_settings(ours: SchemaRegistryClient, subject: str) -> None:
    """Config and mode are set, read, inherited and deleted."""
    change = ConfigUpdateRequest(compatibility="NONE", normalize=True)
    assert ours.set_config(change, subject).compatibility_level == "NONE"
    assert ours.config(subject).normalize is True
    assert ours.config(subject, default_to_global=True).compatibility_level == "NONE"
    assert ours.delete_config(subject).compatibility_level == "NONE"
    assert ours.config().compatibility_level
    assert ours.set_mode("READONLY", subject) == "READONLY"
    with pytest.raises(errors.ReadOnly):
        ours.register(subject, TWO)
    assert ours.mode(subject) == "READONLY"
    assert ours.delete_mode(subject) == "READONLY"
    assert ours.mode(subject, default_to_global=True) == ours.mode()


def test_contexts(ours: SchemaRegistryClient) -> None:
    """A context has its own ids, is addressed by qualified names, and can be deleted when it is empty."""
    context = f"c{uuid4().hex[:8]}"
    subject = qualify_subject("s", context)
    registered = ours.register(subject, ONE)
    assert registered.id == 1
    assert f".{context}" in ours.contexts()
    assert ours.resolve(1, context=context).text == ONE.text
    assert ours.subjects(subject_prefix=f":.{context}:") == [subject]
    with pytest.raises(errors.NotEmpty):
        ours.delete_context(f".{context}")
    purge(ours, subject)
    ours.delete_context(f".{context}")
    assert f".{context}" not in ours.contexts()


def test_metadata(ours: SchemaRegistryClient, subject: str) -> None:
    """Metadata properties are stored and can be searched."""
    owner = Metadata(properties={"owner": "a b&c"})
    ours.register(subject, Schema(TWO.text, metadata=owner))
    version = ours.latest_with_metadata(subject, {"owner": "a b&c"})
    assert (version.version, version.metadata) == (2, owner)


def test_the_server_about_itself(ours: SchemaRegistryClient) -> None:
    """The calls for liveness and server version return."""
    ours.ping()
    assert ours.server_version().version
    ours.cluster_id()
    ours.deployment()


async def test_async_client(registry_url: str, subject: str) -> None:
    """The async client has the same results."""
    async with AsyncSchemaRegistryClient(registry_url, timeout=120, deadline=240) as client:
        assert (await client.register(subject, TWO)).id
        assert await client.versions(subject) == [1, 2]
        snapshot = await client.snapshot(subjects=[subject])
        assert snapshot.resolve_version(subject).text == TWO.text
        with pytest.raises(errors.VersionNotFound):
            await client.version(subject, 9)
