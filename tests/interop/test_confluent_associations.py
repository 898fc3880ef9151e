"""confluent-kafka's associations and its AssociatedNameStrategy against the server, unmodified."""

from __future__ import annotations

import pytest
from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    Schema,
)
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
CLUSTER = "lkc-interop"
IN_CLUSTER = {"subject.name.strategy.kafka.cluster.id": CLUSTER}
STRATEGY = {"subject.name.strategy.type": "ASSOCIATED", "subject.name.strategy.conf": IN_CLUSTER}


def associate(client: TheirClient, topic: str, subject: str, lifecycle: str = "WEAK") -> None:
    """Associate the values of a topic with a subject."""
    info = AssociationCreateOrUpdateInfo(subject=subject, association_type="value", lifecycle=lifecycle)
    request = AssociationCreateOrUpdateRequest(topic, CLUSTER, f"id-{topic}", "topic", [info])
    response = client.create_association(request)
    assert response.associations is not None
    assert [(row.subject, row.lifecycle, row.frozen) for row in response.associations] == [(subject, lifecycle, False)]


def test_associations_are_made_found_and_ended(theirs: TheirClient, topic: str) -> None:
    """The client's three methods create, find and delete associations, with and without a namespace."""
    theirs.register_schema(f"{topic}-any", Schema(ORDER, "AVRO"))
    assert theirs.get_associations_by_resource_name(topic, CLUSTER) == []
    associate(theirs, topic, f"{topic}-any")
    for namespace in (CLUSTER, "-"):
        associations = theirs.get_associations_by_resource_name(topic, namespace, "topic", ["value"])
        assert [(row.subject, row.resource_id, row.association_type) for row in associations] == [
            (f"{topic}-any", f"id-{topic}", "value")
        ]
        assert associations[0].guid
    assert theirs.get_associations_by_resource_name(topic, CLUSTER, "topic", ["key"]) == []
    theirs.delete_associations(f"id-{topic}", "topic", ["value"])
    assert theirs.get_associations_by_resource_name(topic, CLUSTER) == []
    with pytest.raises(SchemaRegistryError) as missing:
        theirs.delete_associations(f"id-{topic}")
    assert (missing.value.http_status_code, missing.value.error_code) == (404, 40410)


def test_a_schema_comes_and_goes_with_its_association(theirs: TheirClient, topic: str) -> None:
    """An association registers its schema, and a cascading deletion of it deletes the schema."""
    info = AssociationCreateOrUpdateInfo(association_type="value", lifecycle="STRONG", schema=Schema(ORDER, "AVRO"))
    associations = theirs.create_association(
        AssociationCreateOrUpdateRequest(topic, CLUSTER, f"id-{topic}", "topic", [info])
    ).associations
    assert associations is not None
    subject = f":.{CLUSTER}:{topic}-value"
    assert associations[0].subject == subject
    assert associations[0].schema is not None
    assert associations[0].schema.schema_str == ORDER
    assert subject in theirs.get_subjects()
    with pytest.raises(SchemaRegistryError) as refused:
        theirs.delete_subject(subject)
    assert refused.value.error_code == 40904
    theirs.delete_associations(f"id-{topic}", cascade_lifecycle=True)
    assert subject not in theirs.get_subjects()


def test_serializer_finds_the_subject_by_association(theirs: TheirClient, topic: str) -> None:
    """A serializer and a deserializer with the strategy use the subject the topic is associated with."""
    subject = f"{topic}-shared"
    theirs.register_schema(subject, Schema(ORDER, "AVRO"))
    associate(theirs, topic, subject)
    context = SerializationContext(topic, MessageField.VALUE)
    conf = {"auto.register.schemas": False, "use.latest.version": True, **STRATEGY}
    serializer = AvroSerializer(theirs, ORDER, conf=conf)
    data = serializer({"id": 7}, context)
    assert data is not None
    assert int.from_bytes(data[1:5], "big") == theirs.get_latest_version(subject).schema_id
    assert AvroDeserializer(theirs, ORDER, conf=STRATEGY)(data, context) == {"id": 7}
    assert f"{topic}-value" not in theirs.get_subjects()


def test_serializer_falls_back_to_the_topic(theirs: TheirClient, topic: str) -> None:
    """A topic without association gets its usual subject, or an error if the fallback is disabled."""
    context = SerializationContext(topic, MessageField.VALUE)
    AvroSerializer(theirs, ORDER, conf=STRATEGY)({"id": 7}, context)
    assert f"{topic}-value" in theirs.get_subjects()
    strictly = {**IN_CLUSTER, "subject.name.strategy.fallback.type": "NONE"}
    strict = AvroSerializer(theirs, ORDER, conf={**STRATEGY, "subject.name.strategy.conf": strictly})
    with pytest.raises(SerializationError, match="No associated subject"):
        strict({"id": 7}, SerializationContext(f"{topic}-2", MessageField.VALUE))
