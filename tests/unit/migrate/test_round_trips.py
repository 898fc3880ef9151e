"""Written records are read back unchanged, and equal registries are written as equal bytes."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.examples import scale_examples
from tests.unit.migrate.samples import dumps

from stele.migrate import dump_file, topic_reader, topic_writer
from stele.migrate.model import Dump, DumpVersion
from stele.migrate.topic_records import Flavour, Record


@given(dump=dumps())
@settings(max_examples=scale_examples(60), deadline=None)
def test_confluent_records_hold_everything(dump: Dump) -> None:
    """Folding the records of a registry gives the registry."""
    written = topic_writer.write_records(dump, Flavour.CONFLUENT)
    assert written.losses == []
    assert topic_reader.read_topic_records([*written.records, *written.keys]) == dump


@given(dump=dumps(), flavour=st.sampled_from(Flavour))
@settings(max_examples=scale_examples(60), deadline=None)
def test_records_of_every_flavour_are_read_as_written(dump: Dump, flavour: Flavour) -> None:
    """What a format supports is kept: writing it a second time gives the same records and no further losses."""
    first = topic_writer.write_records(dump, flavour)
    second = topic_writer.write_records(topic_reader.read_topic_records([*first.records, *first.keys]), flavour)
    assert (second.records, second.keys) == (first.records, first.keys)
    assert second.losses == []


@given(dump=dumps(), flavour=st.sampled_from(Flavour))
@settings(max_examples=scale_examples(40), deadline=None)
def test_compaction_changes_nothing(dump: Dump, flavour: Flavour) -> None:
    """A topic with only the last record of each key gives the same registry, except for the highest ids."""
    records = topic_writer.write_records(dump, flavour).records
    last = {record.key: record for record in records}
    compacted = sorted(last.values(), key=lambda record: record.offset or 0)
    whole = topic_reader.read_topic_records(records)
    assert topic_reader.read_topic_records(compacted) == replace(whole, max_ids={})


@given(dump=dumps(), offsets=st.booleans())
@settings(max_examples=scale_examples(40), deadline=None)
def test_dump_files_of_both_kinds(dump: Dump, offsets: bool) -> None:
    """Lines of JSON and lines with tabs give the same records."""
    records = topic_writer.write_records(dump, Flavour.REDPANDA).records
    as_json = b"".join(dump_file.write_records(records))
    columns = b"".join(
        (b"CreateTime:%d\tOffset:%d\t" % (-1 if record.ts is None else record.ts, record.offset or 0)) * offsets
        + b"%b\t%b\n" % (record.key or b"", record.value or b"null")
        for record in records
    )
    read = [record._replace(place="") for record in dump_file.read_records(io.BytesIO(as_json))]
    assert read == [record._replace(place="") for record in records]
    plain = [record._replace(place="") for record in dump_file.read_records(io.BytesIO(columns))]
    hidden = {} if offsets else {"offset": None, "ts": None}
    assert plain == [record._replace(place="", **hidden) for record in records]


def test_redpanda_records_lie_where_they_say() -> None:
    """The `seq` of every record is its own offset; that of a tombstone is the offset of its record."""
    dump = Dump((DumpVersion("s", 1, 1, '"int"'),), contexts=(".",), max_ids={".": 7})
    records = topic_writer.write_records(dump, Flavour.REDPANDA).records
    assert [record.offset for record in records] == list(range(len(records)))
    assert [record.key for record in records] == [
        b'{"keytype":"NOOP","magic":0,"seq":0,"node":0}',
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1,"seq":1,"node":0}',
        b'{"keytype":"SCHEMA","subject":"stele-reserved-ids","version":1,"magic":1,"seq":2,"node":0}',
        b'{"keytype":"SCHEMA","subject":"stele-reserved-ids","version":1,"magic":1,"seq":2,"node":0}',
    ]
    assert records[-1].value is None
    assert topic_reader.read_topic_records(records) == dump
    assert (
        topic_reader.read_topic_records([Record(r.key, r.value, (r.offset or 0) + 1) for r in records]).versions == ()
    )
