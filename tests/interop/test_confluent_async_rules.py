"""confluent-kafka's async serializers and Stele's, with the same rule sets: each reads what the other writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka.schema_registry import AssociationCreateOrUpdateInfo, AssociationCreateOrUpdateRequest
from confluent_kafka.schema_registry import AsyncSchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry._async.avro import AsyncAvroDeserializer, AsyncAvroSerializer
from confluent_kafka.schema_registry._async.json_schema import AsyncJSONDeserializer, AsyncJSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from tests.interop.rule_cases import SECRET, Case, avro_case, json_case, their_rules

from stele.client import AssociatedName, AsyncSchemaRegistryClient, Metadata, Rule, Schema
from stele.client.serdes import (
    AsyncDeserializer,
    AsyncSerializer,
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    RuleFailed,
    Rules,
)

CLUSTER = "lkc-awaited"
THEIRS: dict[str, tuple[Any, Any]] = {
    "AVRO": (AsyncAvroSerializer, AsyncAvroDeserializer),
    "JSON": (AsyncJSONSerializer, AsyncJSONDeserializer),
}
OURS: dict[str, tuple[Any, Any]] = {
    "AVRO": (AvroSerializer, AvroDeserializer),
    "JSON": (JsonSerializer, JsonDeserializer),
}
SHOUT = Rule("shout", mode="WRITE", type="CEL_FIELD", tags=["PII"], expr="typeName == 'STRING' ; value + '!'")
SMALL = Rule("small", kind="CONDITION", mode="WRITE", type="CEL", expr="message.id < 10", doc="too many")


@pytest_asyncio.fixture
async def theirs(registry_url: str, tmp_path: Path) -> AsyncIterator[TheirClient]:
    """confluent-kafka's async client without certificate authorities: loading all of them takes each client 45 ms."""
    async with TheirClient({"url": registry_url, "ssl.ca.location": str(tmp_path)}) as client:
        yield client


@pytest_asyncio.fixture
async def ours(registry_url: str) -> AsyncIterator[AsyncSchemaRegistryClient]:
    """Stele's async client."""
    async with AsyncSchemaRegistryClient(registry_url, timeout=120, deadline=240) as client:
        yield client


@pytest.fixture(params=[avro_case, json_case], ids=["AVRO", "JSON"])
def case(request: pytest.FixtureRequest) -> Case:
    """The record in each language."""
    case: Case = request.param()
    return case


async def they_write(case: Case, client: TheirClient, topic: str, value: Any, **conf: Any) -> bytes:
    """Return what confluent-kafka writes with the newest version."""
    settings = {"auto.register.schemas": False, "use.latest.version": True, **conf}
    first = (client, None) if case.name == "AVRO" else (None, client)
    serializer = await THEIRS[case.name][0](
        *first, conf=settings, rule_conf={"secret": SECRET}, rule_registry=their_rules()
    )
    try:
        data: bytes = await serializer(deepcopy(value), SerializationContext(topic, MessageField.VALUE))
    finally:
        serializer.close()
    return data


async def they_read(case: Case, client: TheirClient, topic: str, data: bytes) -> Any:
    """Return what confluent-kafka reads."""
    named = {"schema_registry_client": client}
    deserializer = await THEIRS[case.name][1](
        **({"schema_str": None} | named), rule_conf={"secret": SECRET}, rule_registry=their_rules()
    )
    try:
        return await deserializer(data, SerializationContext(topic, MessageField.VALUE))
    finally:
        deserializer.close()


async def we_write(case: Case, client: AsyncSchemaRegistryClient, topic: str, value: Any, **more: Any) -> bytes:
    """Return what Stele writes with the newest version."""
    serializer = OURS[case.name][0](client, use_latest=True, rules=Rules({"secret": SECRET}), **more)
    data = await AsyncSerializer(serializer)(value, topic=topic)
    assert data is not None
    return data


async def we_read(case: Case, client: AsyncSchemaRegistryClient, topic: str, data: bytes) -> Any:
    """Return what Stele reads."""
    return await AsyncDeserializer(OURS[case.name][1](client, rules=Rules({"secret": SECRET})))(data, topic=topic)


@pytest.mark.parametrize("algorithm", ["AES256_GCM", "AES256_SIV"])
async def test_conditions_changes_and_encryption(
    case: Case, algorithm: str, ours: AsyncSchemaRegistryClient, theirs: TheirClient, topic: str
) -> None:
    """All four pairs of writer and reader agree, with keys that either side created, and refuse the same values."""
    hide = Rule(
        "hide",
        type="ENCRYPT",
        tags=["PII"],
        params={
            "encrypt.kek.name": f"kek-{topic}",
            "encrypt.kms.type": "local-kms",
            "encrypt.kms.key.id": "mykey",
            "encrypt.dek.algorithm": algorithm,
        },
    )
    for name, first in ((topic, they_write), (f"{topic}-2", we_write)):
        await ours.register(f"{name}-value", case.schema(SMALL, SHOUT, hide))
        sides: dict[Any, Any] = {they_write: theirs, we_write: ours}
        for write in (first, *(set(sides) - {first})):
            data = await write(case, sides[write], name, case.value)
            assert b"ring twice" not in data
            read = await we_read(case, ours, name, data)
            assert read == await they_read(case, theirs, name, data)
            assert (read["note"], read["lines"][1]["text"]) == ("ring twice!", "two!")
    big = {**case.value, "id": 10}
    with pytest.raises(SerializationError):
        await they_write(case, theirs, topic, big)
    with pytest.raises(RuleFailed, match="too many"):
        await we_write(case, ours, topic, big)


async def test_a_kek_must_be_named(ours: AsyncSchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Neither side invents the name of a KEK. Both find it in the metadata if the rule lacks it."""
    case = avro_case()
    bare = Rule("hide", type="ENCRYPT", tags=["PII"])
    await ours.register(f"{topic}-value", case.schema(bare))
    with pytest.raises(SerializationError):
        await they_write(case, theirs, topic, case.value)
    with pytest.raises(RuleFailed, match=r"encrypt\.kek\.name"):
        await we_write(case, ours, topic, case.value)
    properties = {
        "encrypt.kek.name": f"kek-{topic}",
        "encrypt.kms.type": "local-kms",
        "encrypt.kms.key.id": "mykey",
    }
    other = f"{topic}-2"
    await ours.register(f"{other}-value", case.schema(bare, metadata=Metadata(properties=properties)))
    data = await they_write(case, theirs, other, case.value)
    assert await we_read(case, ours, other, data) == case.value
    assert await they_read(case, theirs, other, await we_write(case, ours, other, case.value)) == case.value


async def test_associated_subjects(ours: AsyncSchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Both sides use the subject that the topic is associated with, and else the topic's default subject."""
    case, shared = avro_case(), f"{topic}-shared"
    await ours.register(shared, Schema(case.text))
    info = AssociationCreateOrUpdateInfo(subject=shared, association_type="value", lifecycle="WEAK")
    await theirs.create_association(AssociationCreateOrUpdateRequest(topic, CLUSTER, f"id-{topic}", "topic", [info]))
    conf = {
        "subject.name.strategy.type": "ASSOCIATED",
        "subject.name.strategy.conf": {"subject.name.strategy.kafka.cluster.id": CLUSTER},
    }
    naming = AssociatedName(CLUSTER)
    assert await ours.associated_subject(naming, topic, "value") == shared
    they = await they_write(case, theirs, topic, case.value, **conf)
    assert await we_write(case, ours, topic, case.value, naming=naming) == they
    (association,) = await ours.associations(topic, types=["value"])
    assert (association.subject, association.resource_namespace, association.lifecycle) == (shared, CLUSTER, "WEAK")
    own = f"{topic}-own"
    await ours.register(f"{own}-value", Schema(case.text))
    they = await they_write(case, theirs, own, case.value, **conf)
    assert await we_write(case, ours, own, case.value, naming=naming) == they
