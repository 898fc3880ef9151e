"""Records of the log: compact when written, tolerant when read, without texts that were redacted."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import msgspec
import pytest

from stele.core import events as ev
from stele.core.events import (
    EventMetadata,
    LogRecord,
    decode_record,
    encode_record,
    print_record,
    read_record,
    redact_texts,
)
from stele.core.metadata import DataRule, DataRuleSet, Metadata
from stele.core.model import Binding, ComparisonScope, Mode, Numbering, Reference, Settings, SettingsLevel, SubjectKey
from stele.core.policy import BACKWARD, DENY_ALL, Policy, RangeKind, VersionRange

KEY = SubjectKey("ö", "s")
FULL = ev.VersionRegistered(
    key=KEY,
    uid=bytes(16),
    version_number=3,
    kind_version=2,
    schema_id=9,
    sha=bytes(32),
    format="avro",
    type="a.B",
    text=b"{}",
    digests={"rabin": bytes(8)},
    references=(Reference("r", "", "t", 1),),
    metadata=Metadata(tags={"p": ("PII",)}, properties={"k": "v"}, sensitive=("k",)),
    rule_set=DataRuleSet(domain_rules=(DataRule(name="a", type="CEL"),)),
    policy=Policy(backward=VersionRange(RangeKind.SINCE, 2), validators=("c",)),
    replaces=(1,),
    description="d",
    labels={"l": "1"},
    media_type="m",
    origin_uri="u",
    ancestor=2,
    dialect_data={"cncf": {"x": [1, None]}},
    at=7,
)
EVENTS: tuple[ev.Event, ...] = (
    ev.NamespaceCreated("ö", "avro", "d", {"l": "1"}, {"x": 1}),
    ev.NamespaceChanged("ö"),
    ev.NamespaceDeleted("ö"),
    ev.SubjectCreated(KEY, bytes(16), 1, 2, Numbering.NEVER_REUSE, ComparisonScope.SCHEMA_KIND, DENY_ALL, "avro"),
    ev.SubjectChanged(KEY, default_version=3),
    ev.IncarnationEnded(KEY),
    FULL,
    ev.VersionRegistered(KEY, bytes(16), 1, 1, 1, bytes(32), "avro"),
    ev.VersionsSoftDeleted(KEY, (1, 2)),
    ev.VersionsPurged(KEY, (1,)),
    ev.SettingsChanged(SettingsLevel("ö"), Settings(policy=BACKWARD, normalize=False, dialect_data={"a": 1})),
    ev.SettingsChanged(SettingsLevel()),
    ev.ModeChanged(SettingsLevel("ö", "s"), Mode.READONLY_OVERRIDE),
    ev.CodecAdded(KEY, "gzip", {"level": "9"}),
    ev.EncodingAssigned(KEY, 1, bytes(16), "gzip"),
    ev.BindingAdded(Binding("c", "topic", "t", "value", KEY, 2, "STRONG", frozen=True)),
    ev.BindingRemoved(("c", "topic", "t", "value")),
    ev.RulesetAdopted("avro", "confluent", 2),
    ev.ItemsChanged("keys", ((("a", "ö"), b"{}"), (("b",), None))),
    ev.IdsSkipped(10_000, 100),
)


def test_all_kinds_of_events_are_tried() -> None:
    """The list above has every kind of event."""
    assert {type(event) for event in EVENTS} == set(ev.Event.__args__)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_record_comes_back(event: ev.Event) -> None:
    """Every event with every member is read as it was written, types included."""
    record = LogRecord(EventMetadata(bytes(16), 5, "ann", "api"), (event, event))
    back = decode_record(encode_record(record))
    assert back == record
    assert type(back.events[0]) is type(event)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_record_comes_back_from_json(event: ev.Event) -> None:
    """Every event is the same after a round trip through one line of JSON, and unknown members are refused."""
    record = LogRecord(EventMetadata(bytes(16), 5, "ann", "api"), (event, event))
    line = print_record(record)
    assert b"\n" not in line
    assert read_record(line) == record
    assert encode_record(read_record(line)) == encode_record(record)
    for more in (line[:-1] + b',"more":1}', line.replace(b'"at":5', b'"at":5,"more":1'), line + b" "):
        with pytest.raises(msgspec.DecodeError):
            read_record(more)


STORED = json.loads((Path(__file__).parent / "stored_records.json").read_text(encoding="utf-8"))
"""The events above, one per record, as the first release with them wrote them: base64 of bytes, and a line of JSON."""


@pytest.mark.parametrize(
    ("event", "stored"), list(zip(EVENTS, STORED, strict=True)), ids=lambda each: type(each).__name__
)
def test_stored_names_never_change(event: ev.Event, stored: dict[str, str]) -> None:
    """Records of earlier releases are decoded with the same meaning, and encoded to the same bytes today.

    A renamed class, member or value keeps its stored name: docs/adr/0011-stored-names-stay.md.
    """
    record = LogRecord(EventMetadata(bytes(16), 5, "ann", "api"), (event,))
    data = base64.b64decode(stored["record"])
    assert decode_record(data) == record
    assert encode_record(record) == data
    assert print_record(record) == stored["line"].encode()


def test_members_with_their_default_are_not_written() -> None:
    """The record of a plain registration has only the necessary members."""
    record = LogRecord(EventMetadata(bytes(16), 5), (ev.VersionRegistered(KEY, bytes(16), 1, 1, 1, bytes(32), "avro"),))
    written = msgspec.msgpack.decode(encode_record(record))
    assert set(written["stamp"]) == {"uid", "at"}
    wanted = {"event", "key", "uid", "ordinal", "lane_version", "gid", "sha", "format"}
    assert set(written["events"][0]) == wanted


def test_members_of_a_later_version_are_ignored() -> None:
    """A record written by a newer program with more members is still read."""
    written = msgspec.msgpack.decode(encode_record(LogRecord(EventMetadata(bytes(16), 5), (FULL,))))
    written["later"] = 1
    written["stamp"]["trace"] = "x"
    written["events"][0]["more"] = {"a": 1}
    assert decode_record(msgspec.msgpack.encode(written)).events == (FULL,)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x80", msgspec.msgpack.encode({"stamp": {}, "events": []})])
def test_other_bytes_are_refused(data: bytes) -> None:
    """Bytes that are no record raise an error, and never give half a record."""
    with pytest.raises(msgspec.MsgspecError):
        decode_record(data)


def test_redacting_takes_the_text_and_nothing_else() -> None:
    """Redaction removes only the texts of the named contents; numbers, order and other texts stay."""
    other = msgspec.structs.replace(FULL, sha=b"o" * 32, text=b"kept")
    record = LogRecord(EventMetadata(bytes(16), 5), (EVENTS[3], FULL, other))
    redacted = redact_texts(record, frozenset({FULL.sha}))
    assert redacted.events == (EVENTS[3], msgspec.structs.replace(FULL, text=None), other)
    assert redacted.metadata == record.metadata
    assert b"kept" in encode_record(redacted)
