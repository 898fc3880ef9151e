"""confluent-kafka's own client against the server, unmodified."""

from __future__ import annotations

import pytest
from confluent_kafka.schema_registry import ConfigCompatibilityLevel, Schema, SchemaReference, ServerConfig
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

ONE = Schema('{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}', "AVRO")
TWO = Schema(
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}', "AVRO"
)
BAD = Schema('{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}', "AVRO")


def test_register_and_find(theirs: TheirClient, topic: str) -> None:
    """Registration, lookup, and every way of finding a schema work."""
    schema_id = theirs.register_schema(topic, ONE)
    assert theirs.register_schema(topic, ONE) == schema_id
    assert theirs.get_schema(schema_id).schema_str == ONE.schema_str
    version = theirs.lookup_schema(topic, ONE)
    assert (version.schema_id, version.version, version.subject) == (schema_id, 1, topic)
    assert theirs.register_schema(topic, TWO) != schema_id
    latest = theirs.get_latest_version(topic)
    assert latest.version == 2
    assert latest.guid is not None
    assert theirs.get_schema_by_guid(latest.guid).schema_str == TWO.schema_str
    assert theirs.get_version(topic, 1).schema_id == schema_id
    assert theirs.get_versions(topic) == [1, 2]
    assert topic in theirs.get_subjects()


def test_references(theirs: TheirClient, topic: str) -> None:
    """A registered schema keeps its reference."""
    theirs.register_schema(topic, ONE)
    user = '{"type":"record","name":"U","fields":[{"name":"r","type":"R"}]}'
    reference = SchemaReference("R", topic, 1)
    theirs.register_schema(f"{topic}-user", Schema(user, "AVRO", [reference]))
    version = theirs.get_latest_version(f"{topic}-user")
    assert [(r.name, r.subject, r.version) for r in version.schema.references or []] == [("R", topic, 1)]


def test_compatibility_and_config(theirs: TheirClient, topic: str) -> None:
    """Verdicts, levels, and error codes of refusals are those that the client expects."""
    theirs.register_schema(topic, ONE)
    assert theirs.test_compatibility(topic, TWO)
    assert not theirs.test_compatibility(topic, BAD)
    with pytest.raises(SchemaRegistryError) as refused:
        theirs.register_schema(topic, BAD)
    assert refused.value.http_status_code == 409
    theirs.set_compatibility(topic, "NONE")
    assert theirs.get_compatibility(topic) == "NONE"
    theirs.register_schema(topic, BAD)
    theirs.set_config(topic, ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert theirs.get_config(topic).compatibility_level == "FULL"


def test_deletion(theirs: TheirClient, topic: str) -> None:
    """Soft and permanent deletion work, and the subject is not found afterwards."""
    theirs.register_schema(topic, ONE)
    theirs.register_schema(topic, TWO)
    assert theirs.delete_version(topic, 1) == 1
    assert theirs.delete_subject(topic) == [2]
    assert theirs.delete_subject(topic, permanent=True) == [1, 2]
    with pytest.raises(SchemaRegistryError) as missing:
        theirs.get_latest_version(topic)
    assert missing.value.error_code in {40401, 40402}
