"""With the same rule set, confluent-kafka and Stele read each other's records, and refuse the same values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.schema_registry import Metadata as TheirMetadata
from confluent_kafka.schema_registry import MetadataProperties, RuleKind, RuleMode
from confluent_kafka.schema_registry import Rule as TheirRule
from confluent_kafka.schema_registry import RuleSet as TheirRuleSet
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.serialization import SerializationError
from tests.interop.rule_cases import AVRO, PROTOBUF, SECRET, Case, avro_case, json_case, protobuf_case

from stele.client import ConfigUpdateRequest, Kek, Metadata, Rule, SchemaRegistryClient
from stele.client.serdes import (
    AvroSerializer,
    Headers,
    IdPlace,
    JsonSerializer,
    ProtobufSerializer,
    RuleFailed,
    Rules,
)

ALGORITHMS = ["AES128_GCM", "AES256_GCM", "AES256_SIV"]


@pytest.fixture
def theirs(registry_url: str, tmp_path: Path) -> Iterator[TheirClient]:
    """confluent-kafka's client, without certificate authorities.

    Otherwise it, and the clients of keys that each encryption rule creates, would load all authorities, which takes 45
    ms.
    """
    with TheirClient({"url": registry_url, "ssl.ca.location": str(tmp_path)}) as client:
        yield client


@pytest.fixture(params=["AVRO", "JSON", "PROTOBUF"])
def case(request: pytest.FixtureRequest, compile_proto: Callable[[dict[str, str]], list[ModuleType]]) -> Case:
    """The record in each language."""
    if request.param == "AVRO":
        return avro_case()
    if request.param == "JSON":
        return json_case()
    package = f"shop{uuid4().hex[:8]}"
    plain = PROTOBUF.replace('import "confluent/meta.proto";', "").replace(' [(confluent.field_meta).tags = "PII"]', "")
    module = compile_proto({f"{package}.proto": plain % package})[0]
    return protobuf_case(module.Order, package)


def encrypting(kek: str, **params: str) -> Rule:
    """Return a rule that encrypts fields tagged PII with the local KMS."""
    return Rule(
        "secret",
        kind="TRANSFORM",
        mode="WRITEREAD",
        type="ENCRYPT",
        tags=["PII"],
        params={
            "encrypt.kek.name": kek,
            "encrypt.kms.type": "local-kms",
            "encrypt.kms.key.id": "mykey",
            **params,
        },
        on_failure="ERROR,NONE",
    )


def both_ways(
    case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str, expected: dict[str, Any]
) -> None:
    """Check that all four pairs of writer and reader read the same value."""
    for data in (case.they_write(theirs, topic), case.we_write(ours, topic)):
        assert case.they_read(theirs, topic, data) == expected
        assert case.we_read(ours, topic, data) == expected


def test_conditions(case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """A CEL condition accepts and refuses the same values on both sides."""
    fits = Rule("fits", kind="CONDITION", mode="WRITE", type="CEL", expr="message.id < 10 && size(message.lines) == 2")
    ours.register(f"{topic}-value", case.schema(fits))
    both_ways(case, ours, theirs, topic, case.plain(case.value))
    other = f"{topic}-2"
    never = Rule("never", kind="CONDITION", mode="WRITE", type="CEL", expr="message.note == 'x'", doc="not x")
    ours.register(f"{other}-value", case.schema(never))
    with pytest.raises(SerializationError):
        case.they_write(theirs, other)
    with pytest.raises(RuleFailed, match="not x"):
        case.we_write(ours, other)


def test_fields(case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """CEL_FIELD changes the same fields with the same variables, under a guard and by tags."""
    named = Rule(
        "shout",
        kind="TRANSFORM",
        mode="WRITE",
        type="CEL_FIELD",
        tags=["PII"],
        expr="typeName == 'STRING' ; value + '/' + name + '/' + fullName + '/' + typeName + '/' + tags[0]",
    )
    checked = Rule("known", kind="CONDITION", mode="READ", type="CEL_FIELD", expr="name == 'id' ; value == 7")
    ours.register(f"{topic}-value", case.schema(named, checked))
    they, we = case.they_write(theirs, topic), case.we_write(ours, topic)
    assert they == we
    read = case.we_read(ours, topic, they)
    assert read == case.they_read(theirs, topic, we)
    assert read["note"].startswith("ring twice/note/")
    assert read["lines"][1]["text"].endswith("/STRING/PII")


def test_transformations(case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """A CEL transformation of the whole message writes equal bytes. Members that it leaves out are removed."""
    whole = Rule(
        "whole",
        kind="TRANSFORM",
        mode="WRITE",
        type="CEL",
        expr="{'id': message.id + 1, 'note': message.note + '!', 'lines': message.lines%s}"
        % (", 'raw': message.raw" if case.name == "AVRO" else ""),
    )
    ours.register(f"{topic}-value", case.schema(whole))
    they, we = case.they_write(theirs, topic), case.we_write(ours, topic)
    assert they == we
    read = case.we_read(ours, topic, they)
    assert (int(read["id"]), read["note"]) == (8, "ring twice!")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_encryption(case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str, algorithm: str) -> None:
    """Tagged fields are encrypted with keys that either side created, and decrypted by the other."""
    rule = encrypting(f"kek-{topic}", **{"encrypt.dek.algorithm": algorithm})
    ours.register(f"{topic}-value", case.schema(rule))
    plain = case.plain(case.value)
    mine = case.we_write(ours, topic)
    assert b"ring twice" not in mine
    assert case.they_read(theirs, topic, mine) == plain
    both_ways(case, ours, theirs, topic, plain)
    other = f"{topic}-2"  # keys of a subject that confluent-kafka writes to first
    ours.register(f"{other}-value", case.schema(rule))
    both_ways(case, ours, theirs, other, plain)
    if algorithm == "AES256_SIV":
        assert case.they_write(theirs, topic) == case.we_write(ours, topic) == mine


def test_encryption_with_expiry(case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Parameters may be in the metadata. The version of the key precedes the encrypted value."""
    rule = encrypting(f"kek-{topic}", **{"encrypt.dek.expiry.days": "30"})
    metadata = Metadata(properties={"encrypt.dek.algorithm": "AES128_GCM"})
    ours.register(f"{topic}-value", case.schema(rule, metadata=metadata))
    both_ways(case, ours, theirs, topic, case.plain(case.value))
    assert ours.dek_versions(f"kek-{topic}", f"{topic}-value", algorithm="AES128_GCM") == [1]


def test_tags_by_path(case: Case, ours: SchemaRegistryClient, topic: str) -> None:
    """Tags by path in the metadata apply as well; confluent-kafka 2.16 cannot load schemas with such tags."""
    path = {"AVRO": "shop.Order.n?t*", "JSON": "$.note", "PROTOBUF": "**.note"}[case.name]
    parameters = encrypting(f"kek-{topic}").params
    rule = Rule("far", mode="WRITEREAD", type="ENCRYPT", tags=["FAR"], params=parameters)
    ours.register(f"{topic}-value", case.schema(rule, metadata=Metadata(tags={path: ["FAR"]})))
    data = case.we_write(ours, topic)
    assert b"ring twice" not in data
    assert b"one" in data
    assert case.we_read(ours, topic, data) == case.plain(case.value)


def test_shared_keys(case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """With a shared KEK the server creates the data key and returns it in plain, so that clients need no secret."""
    ours.create_kek(Kek(f"kek-{topic}", "local-kms", "mykey", {"secret": "servers own"}, shared=True))
    ours.register(f"{topic}-value", case.schema(encrypting(f"kek-{topic}")))
    both_ways(case, ours, theirs, topic, case.plain(case.value))


def test_payloads(case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """ENCRYPT_PAYLOAD encrypts the whole payload after the id and the message indexes."""
    rule = encrypting(f"kek-{topic}")
    whole = Rule("all", mode="WRITEREAD", type="ENCRYPT_PAYLOAD", params=rule.params)
    ours.register(f"{topic}-value", case.schema(rule_set={"encoding_rules": [whole]}))
    assert b"ring" not in case.we_write(ours, topic)
    both_ways(case, ours, theirs, topic, case.plain(case.value))


# --- migrations -------------------------------------------------------------------------------------------------------

RENAME = "$merge([$sift($, function($v, $k) {{$k != '{0}'}}), {{'{1}': {0}}}])"


def renaming(before: str, after: str) -> dict[str, list[Rule]]:
    """Return the migration rules of a version that renamed a field."""
    up = Rule("up", mode="UPGRADE", type="JSONATA", expr=RENAME.format(before, after))
    down = Rule("down", mode="DOWNGRADE", type="JSONATA", expr=RENAME.format(after, before))
    return {"migration_rules": [up, down]}


def name_schema(case: Case, name: str) -> str:
    """Return the schema with another name for the note, and without bytes.

    confluent-kafka's JSONATA rules do not support bytes.
    """
    if case.name == "AVRO":
        fields = [field for field in AVRO["fields"] if field["name"] != "raw"]
        return json.dumps({**AVRO, "fields": fields}).replace('"note"', f'"{name}"')
    return case.text.replace('"note"', f'"{name}"').replace("string note", f"string {name}")


def test_migrations(case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Migration rules work in both directions.

    Readers of the newest version get old records after the rules of each version in between. Readers of an old version
    get new records migrated back.
    """
    subject = f"{topic}-value"
    ours.set_config(ConfigUpdateRequest(compatibility="NONE"), subject)
    if case.name == "AVRO":
        case.value.pop("raw")
    ours.register(subject, case.schema(text=name_schema(case, "note"), metadata=Metadata(properties={"mark": "first"})))
    old = case.we_write(ours, topic)
    for before, after in (("note", "remark"), ("remark", "word")):
        mark = Metadata(properties={"mark": after})  # without them, a version inherits the properties of the one before
        ours.register(
            subject, case.schema(text=name_schema(case, after), rule_set=renaming(before, after), metadata=mark)
        )
    mine = case.we_read(ours, topic, old, latest=True)
    assert mine["word"] == "ring twice"
    assert not {"note", "remark"} & set(mine)
    assert case.they_read(theirs, topic, old, latest=True) == mine
    if case.name == "PROTOBUF":  # the generated class has the first version's field
        new = case.we_write(ours, topic, {"id": 7, "word": "ring twice", "lines": [{"text": "one"}]})
    else:
        new = case.we_write(ours, topic, mine)
    back = case.we_read(ours, topic, new, marked="first")
    assert back["note"] == "ring twice"
    assert "word" not in back
    assert case.they_read(theirs, topic, new, marked="first") == back


def test_identity_in_a_header(case: Case, ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Encrypted payloads and migrations work when the schema's identity is in a record header."""
    whole = Rule("all", mode="WRITEREAD", type="ENCRYPT_PAYLOAD", params=encrypting(f"kek-{topic}").params)
    subject = f"{topic}-value"
    ours.set_config(ConfigUpdateRequest(compatibility="NONE"), subject)
    if case.name == "AVRO":
        case.value.pop("raw")
    ours.register(subject, case.schema(text=name_schema(case, "note"), rule_set={"encoding_rules": [whole]}))
    kind = {"AVRO": AvroSerializer, "JSON": JsonSerializer, "PROTOBUF": ProtobufSerializer}[case.name]
    headers: Headers = []
    serializer: Any = kind(ours, use_latest=True, id_in=IdPlace.HEADER, rules=Rules({"secret": SECRET}))
    data = serializer(case.value, topic=topic, headers=headers)
    assert b"ring twice" not in data
    assert case.they_read(theirs, topic, data, headers=headers) == case.plain(case.value)
    assert case.we_read(ours, topic, data, headers=headers) == case.plain(case.value)
    more = {"encoding_rules": [whole], **renaming("note", "word")}
    ours.register(subject, case.schema(text=name_schema(case, "word"), rule_set=more))
    assert case.we_read(ours, topic, data, headers=headers, latest=True)["word"] == "ring twice"


def test_rule_sets_registered_by_their_client(ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Stele runs a rule set that confluent-kafka registered, with all its defaults."""
    rule = TheirRule(
        "shout", None, RuleKind.TRANSFORM, RuleMode.WRITE, "CEL_FIELD", None, None, "value + '!'", None, None, False
    )
    metadata = TheirMetadata(None, MetadataProperties({"team": "a"}), None)
    text = '{"type":"record","name":"R","fields":[{"name":"s","type":"string"}]}'
    rule_set = TheirRuleSet(None, [rule])
    theirs.register_schema(f"{topic}-value", TheirSchema(text, "AVRO", [], metadata, rule_set))
    case = Case("AVRO", text, {"s": "x"}, dict)
    assert case.we_write(ours, topic) == case.they_write(theirs, topic)
    assert case.we_read(ours, topic, case.we_write(ours, topic)) == {"s": "x!"}
