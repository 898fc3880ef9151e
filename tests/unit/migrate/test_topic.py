"""Folding of `_schemas` records, by kind, and malformed files."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from stele.errors import InvalidRequest
from stele.migrate import dump_file, topic_reader
from stele.migrate.model import Dump
from stele.migrate.topic_records import Record

BARE: dict[str, Any] = {"magic": 0}


def schema_key(subject: str, version: int, **more: Any) -> dict[str, Any]:
    """Return the key of a SCHEMA record."""
    return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1, **more}


def schema(subject: str, version: int, schema_id: int, text: str = "", **more: Any) -> dict[str, Any]:
    """Return the value of a SCHEMA record."""
    named = {"subject": subject, "version": version, "id": schema_id, "schema": text or f'"t{schema_id}"'}
    return {**named, "deleted": False, **more}


def fold_records(*pairs: tuple[dict[str, Any], dict[str, Any] | None], shift: int = 0) -> Dump:
    """Return the registry of these records, at offsets from shift."""
    return topic_reader.read_topic_records(
        Record(json.dumps(key).encode(), json.dumps(value).encode() if value is not None else None, place)
        for place, (key, value) in enumerate(pairs, shift)
    )


def summarize_versions(dump: Dump) -> list[tuple[str, int, int, bool]]:
    """Return subject, number, id and whether it is deleted, of all versions."""
    return sorted((row.subject, row.version, row.id, row.deleted) for row in dump.versions)


def test_the_last_word_counts() -> None:
    """A later record of a version replaces an earlier one; a tombstone removes it, and its id stays reserved."""
    dump = fold_records(
        ({"keytype": "NOOP", "magic": 0}, None),
        (schema_key("s", 1), schema("s", 1, 1)),
        (schema_key("s", 2), schema("s", 2, 2)),
        (schema_key("s", 3), schema("s", 3, 3)),
        (schema_key("s", 1), schema("s", 1, 1, deleted=True)),
        (schema_key("s", 3), None),
    )
    assert summarize_versions(dump) == [("s", 1, 1, True), ("s", 2, 2, False)]
    assert dump.max_ids == {".": 3}
    assert dump.notes == ()


def test_deleting_subjects() -> None:
    """DELETE_SUBJECT soft-deletes the versions up to its own; CLEAR_SUBJECT removes soft-deleted ones."""
    deletion = ({"keytype": "DELETE_SUBJECT", "subject": "s", "magic": 0}, {"subject": "s", "version": 2})
    before = [(schema_key("s", n), schema("s", n, n)) for n in (1, 2, 3)]
    assert summarize_versions(fold_records(*before, deletion)) == [
        ("s", 1, 1, True),
        ("s", 2, 2, True),
        ("s", 3, 3, False),
    ]
    cleared = fold_records(
        *before, deletion, ({"keytype": "CLEAR_SUBJECT", "subject": "s", "magic": 0}, {"subject": "s"})
    )
    assert summarize_versions(cleared) == [("s", 3, 3, False)]


def test_ids_of_other_schemas() -> None:
    """A record with an id of another text is ignored; once that text is removed, the id is free."""
    taken = (schema_key("b", 1), schema("b", 1, 1, "other"))
    dump = fold_records((schema_key("a", 1), schema("a", 1, 1)), taken)
    assert summarize_versions(dump) == [("a", 1, 1, False)]
    assert dump.notes == ("1 versions whose id belongs to another schema are ignored",)
    freed = fold_records((schema_key("a", 1), schema("a", 1, 1)), (schema_key("a", 1), None), taken)
    assert summarize_versions(freed) == [("b", 1, 1, False)]
    replaced = fold_records((schema_key("a", 1), schema("a", 1, 1)), (schema_key("a", 1), schema("a", 1, 1, "new")))
    assert replaced.versions[0].schema == "new"
    in_contexts = fold_records(
        (schema_key("a", 1), schema("a", 1, 1)), (schema_key(":.t:a", 1), schema(":.t:a", 1, 1, "x"))
    )
    assert len(in_contexts.versions) == 2


def test_settings_modes_and_contexts() -> None:
    """CONFIG, MODE and CONTEXT records are folded, also with a missing or null subject in key or value."""
    dump = fold_records(
        ({"keytype": "CONFIG", "magic": 0}, {"compatibilityLevel": "full", "normalize": False, "unknown": 1}),
        ({"keytype": "CONFIG", "subject": "s", "magic": 0}, {"compatibilityLevel": "NONE"}),
        ({"keytype": "CONFIG", "subject": "gone", "magic": 0}, {"compatibilityLevel": "NONE"}),
        ({"keytype": "CONFIG", "subject": "gone", "magic": 0}, None),
        ({"keytype": "MODE", "subject": None, "magic": 0}, {"mode": "READWRITE"}),
        ({"keytype": "MODE", "subject": ":.t:", "magic": 0}, {"subject": ":.t:", "mode": "READONLY"}),
        ({"keytype": "CONTEXT", "tenant": "default", "context": ".t", "magic": 0}, {"context": ".t"}),
        ({"keytype": "CONTEXT", "tenant": "default", "context": ".u", "magic": 0}, {"context": ".u"}),
        ({"keytype": "CONTEXT", "tenant": "default", "context": ".u", "magic": 0}, None),
    )
    assert (dump.configs[""].compatibility_level, dump.configs[""].normalize) == ("FULL", False)
    assert set(dump.configs) == {"", "s"}
    assert dump.modes == {":.t:": "READONLY"}
    assert dump.contexts == (".", ".t")


def test_what_is_not_carried_over_is_told() -> None:
    """Records of unknown kinds are counted by kind in the notes."""
    dump = fold_records(({"keytype": "NEWS", "subject": "s", "magic": 0}, {"guid": "x"}), ({"keytype": "NEWS"}, None))
    assert dump.notes == ("2 records of kind NEWS are not carried over",)


def test_keys_and_associations() -> None:
    """The last record of a key or an association counts; a tombstone removes only its own object."""
    topic_of = {"resourceName": "t", "resourceNamespace": "n", "resourceType": "topic", "associationType": "value"}
    association = {"keytype": "ASSOC", "tenant": "default", **topic_of, "subject": "s", "magic": 0}
    kek = {"keytype": "KEK", "tenant": "default", "name": "k"}
    dek = {"keytype": "DEK", "tenant": "default", "kekName": "k", "subject": "s", "algorithm": "A", "version": 1}
    pairs = [
        (association, {"subject": "s", "guid": "g", **topic_of, "lifecycle": "STRONG", "frozen": True}),
        (kek, {"name": "k", "kmsType": "x", "kmsKeyId": "1", "kmsProps": {"secret": "s"}, "unknown": 1}),
        (kek, {"name": "k", "kmsType": "x", "kmsKeyId": "1", "kmsProps": {"secret": "t"}, "deleted": True}),
        (dek, {"encryptedKeyMaterial": "m"}),
        ({**dek, "version": 2}, {"encryptedKeyMaterial": "n"}),
    ]
    extras = fold_records(*pairs).extras
    assert [(row.kms_props, row.deleted) for row in extras.keks] == [({"secret": "t"}, True)]
    assert [(row.version, row.encrypted_key_material) for row in extras.deks] == [(1, "m"), (2, "n")]
    assert [(row.guid, row.resource_id, row.frozen) for row in extras.associations] == [("g", "", True)]
    less = fold_records(*pairs, (dek, None), (association, None)).extras
    assert (len(less.keks), [row.version for row in less.deks], less.associations) == (1, [2], ())


def test_records_out_of_their_order() -> None:
    """Redpanda's records count only at their own offset; records without a known offset all count."""
    pairs = [
        (schema_key("s", 1, seq=5, node=0), schema("s", 1, 1)),
        (schema_key("s", 2, seq=6, node=1), schema("s", 2, 2)),
    ]
    assert len(fold_records(*pairs, shift=5).versions) == 2
    late = fold_records(*pairs, shift=6)
    assert summarize_versions(late) == []
    assert late.notes == ("2 records out of their order are ignored",)
    unknown = [Record(json.dumps(key).encode(), json.dumps(value).encode()) for key, value in pairs]
    assert len(topic_reader.read_topic_records(unknown).versions) == 2


def test_tombstones_of_earlier_records() -> None:
    """A tombstone for an earlier record than the newest one has no effect."""
    old, new = {"seq": 0, "node": 0}, {"seq": 1, "node": 0}
    config = {"keytype": "CONFIG", "subject": "s", "magic": 0}
    pairs = [({**config, **old}, {"compatibilityLevel": "NONE"}), ({**config, **new}, {"compatibilityLevel": "FULL"})]
    assert fold_records(*pairs, ({**config, **old}, None)).configs["s"].compatibility_level == "FULL"
    assert fold_records(*pairs, ({**config, **new}, None)).configs == {}


def test_other_member_orders_and_generations() -> None:
    """Keys are compared by content, whatever the order of their members; schemas of generation 0 are read, too."""
    text = b'{"magic":0,"keytype":"SCHEMA","version":1,"subject":"s"}'
    read = topic_reader.read_topic_records([Record(text, json.dumps(schema("s", 1, 1)).encode())])
    assert summarize_versions(read) == [("s", 1, 1, False)]


WRONG = {
    b"nonsense": "line 2: neither JSON with key and value nor key, tab, value",
    b'{"key":{"keytype":"SCHEMA","subject":"s","version":1,"magic":1},"value":{"id":1}}': "line 2: the value is not",
    b'{"key":null,"value":{}}': "line 2: the record has no key",
    b'{"value":{}}': "line 2: neither",
    b'{"key":"nonsense","value":null}': "line 2: the key is not",
    b'{"key":{"keytype":"SCHEMA","subject":"s","magic":7},"value":null}': "magic 7",
    b'{"key":{"keytype":"SCHEMA","subject":"s","magic":1},"value":null}': "line 2: the key of a schema needs",
    b'{"key":{"keytype":"MODE","magic":0,"seq":1},"value":null}': "line 2: the key needs either both seq and node",
    b'{"key":{"keytype":"SCHEMA","subject":"s","version":1,"magic":1},"value":'
    b'{"subject":"s","version":1,"id":0,"schema":"x"}}': "line 2: 0 is not the id",
    b'{"key":' + b'{"a":' * 100_000: "line 2: ",
    b'{"keytype":"MODE","magic":0}\t{"x":' + b"[" * 100_000: "line 2: the value is not .*nested too deeply",
    b'{"keytype":"MODE","magic":0}\t{"mode":"\xff"}': "line 2: the value is not",
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:40].decode("latin-1"))
def test_hostile_lines(line: bytes) -> None:
    """The error for a malformed line names its number."""
    file = io.BytesIO(b'{"keytype":"NOOP","magic":0}\tnull\n' + line + b"\n")
    with pytest.raises(InvalidRequest, match="^.*" + WRONG[line].replace("(", r"\(")):
        topic_reader.read_topic_records(dump_file.read_records(file))


def test_endless_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line longer than any schema is refused before it is read completely."""
    monkeypatch.setattr(dump_file, "MAX_LINE", 1024)
    with pytest.raises(InvalidRequest, match="line 1 is longer"):
        list(dump_file.read_records(io.BytesIO(b"x" * 1025)))


def test_circles_name_their_line() -> None:
    """The error for a circle of schemas names the line of one of them."""
    first = schema("a", 1, 1, references=[{"name": "b", "subject": "b", "version": 1}])
    second = schema("b", 1, 2, references=[{"name": "a", "subject": "a", "version": 1}])
    text = "\n".join(json.dumps({"key": schema_key(row["subject"], 1), "value": row}) for row in (first, second))
    with pytest.raises(InvalidRequest, match=r"line [12]: references go in a circle"):
        topic_reader.read_topic_records(dump_file.read_records(io.BytesIO(text.encode())))


def test_lines_as_other_tools_print_them() -> None:
    """Lines with JSON in strings, `payload` for value, columns before the key, CRLF and empty lines are read."""
    key, value = json.dumps(schema_key("s", 1)), json.dumps(schema("s", 1, 1))
    kcat = json.dumps({"topic": "_schemas", "partition": 0, "offset": 3, "key": key, "payload": value})
    console = f"CreateTime:1700000000000\tPartition:0\tOffset:4\t{json.dumps(schema_key('s', 2))}\tnull"
    read = list(dump_file.read_records(io.BytesIO(f"\n{kcat}\r\n\n{console}\r\n".encode())))
    assert [(record.offset, record.place) for record in read] == [(3, "line 2"), (4, "line 4")]
    assert (read[0].key, read[0].value) == (key.encode(), value.encode())
    assert read[1].value is None
