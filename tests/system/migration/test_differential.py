"""A migrated registry answers every GET as its source does, whichever way it went."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace
from tests.support.examples import scale_examples
from tests.system.migration.boxes import Box, box
from tests.system.migration.crawl import crawl, differences
from tests.system.migration.histories import EVERYTHING, Step, histories, play

from stele.errors import InvalidRequest, NotFound
from stele.migrate import dump_file, registry_reader, registry_writer, topic_reader, topic_writer
from stele.migrate.extras import RegistryExtras
from stele.migrate.model import Dump
from stele.migrate.topic_records import Flavour

BESIDE = ["nobody"]


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Box, Box]]:
    """Open two registries."""
    with box() as one, box() as other:
        yield one, other


def through_http(dump: Dump) -> Dump:
    """Return the dump unchanged."""
    return dump


def through_topic(dump: Dump) -> Dump:
    """Write the dump as Confluent's records into two dump files and read it back.

    Parts that these records cannot hold are copied from the dump.
    """
    written = topic_writer.write_records(dump, Flavour.CONFLUENT)
    files = (io.BytesIO(b"".join(dump_file.write_records(records))) for records in (written.records, written.keys))
    read = topic_reader.read_topic_records(record for file in files for record in dump_file.read_records(file))
    keks = tuple(row for row in dump.extras.keks if row.context == ".")
    deks = tuple(row for row in dump.extras.deks if row.context == ".")
    assert read.extras == replace(dump.extras, keks=keks, deks=deks, exporters=())
    assert len(written.losses) == (len(dump.extras.exporters) > 0) + (keks != dump.extras.keks)
    return replace(read, extras=dump.extras)


WAYS = [through_http, through_topic]


def assert_moves(pair: tuple[Box, Box], dump: Dump) -> None:
    """Assert that the second registry answers like the first after an import.

    A second import must write nothing.
    """
    one, other = pair
    assert registry_writer.apply_import(dump, other.client) == []
    assert differences(crawl(one.http, unlisted=BESIDE), crawl(other.http, unlisted=BESIDE)) == []
    left = registry_writer.plan_import(dump, other.client)
    assert (left.differences, left.same) == ((), len(dump.versions))
    seq = other.transport.server.registry.state.seq
    assert registry_writer.apply_import(dump, other.client) == []
    assert other.transport.server.registry.state.seq == seq, "a second import writes nothing"


@pytest.mark.parametrize("way", WAYS)
def test_everything_moves(pair: tuple[Box, Box], way: Callable[[Dump], Dump]) -> None:
    """Contexts, references, deletions, attachments, three formats, settings and modes are moved by every way."""
    for registry in pair:
        registry.empty()
    statuses = play(pair[0].http, EVERYTHING)
    assert set(statuses) == {200, 204}, [*zip(statuses, EVERYTHING, strict=True)]
    dump = registry_reader.read_registry(pair[0].client)
    assert len(dump.versions) == 20
    assert_moves(pair, way(dump))


@settings(
    max_examples=scale_examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=histories())
def test_any_history_moves(pair: tuple[Box, Box], history: list[Step]) -> None:
    """Random registrations, deletions, settings and modes are moved completely by every way."""
    dumps = []
    for way in WAYS:
        for registry in pair:
            registry.empty()
        play(pair[0].http, history)
        dump = way(registry_reader.read_registry(pair[0].client))
        dumps.append(dump)
        assert_moves(pair, dump)
    assert timeless(dumps[0]) == timeless(dumps[1])


@pytest.mark.parametrize("flavour", [Flavour.KARAPACE, Flavour.REDPANDA])
def test_poorer_formats_move_what_they_hold(pair: tuple[Box, Box], flavour: Flavour) -> None:
    """Records of Karapace and Redpanda move everything that they can hold; the export reports the losses."""
    for registry in pair:
        registry.empty()
    play(pair[0].http, EVERYTHING)
    dump = registry_reader.read_registry(pair[0].client)
    written = topic_writer.write_records(dump, flavour)
    assert written.losses
    read = topic_reader.read_topic_records(written.records)
    assert registry_writer.apply_import(read, pair[1].client) == []
    assert registry_writer.plan_import(read, pair[1].client).differences == ()
    there = {row.key: row for row in registry_reader.read_registry(pair[1].client).versions}
    for row in dump.versions:
        if flavour is Flavour.REDPANDA or row.context == ".":
            known = there[row.key]
            fields = (known.id, known.schema, known.schema_type, known.references, known.deleted)
            assert fields == (row.id, row.schema, row.schema_type, row.references, row.deleted)


def timeless(dump: Dump) -> Dump:
    """Return a dump without times, notes and extras, which differ between servers of other releases."""
    return replace(
        dump, versions=tuple(replace(row, ts=None) for row in dump.versions), notes=(), extras=RegistryExtras()
    )


@pytest.mark.parametrize("profile", ["7.9", "8.2"])
def test_every_release_is_read_alike(pair: tuple[Box, Box], profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that show neither deletions nor the type of Avro schemas give the same dump as newer ones."""
    pair[0].empty()
    play(pair[0].http, EVERYTHING)
    monkeypatch.setenv("STELE_CONFLUENT_PROFILE", profile)
    with box() as other:
        play(other.http, EVERYTHING)
        assert timeless(registry_reader.read_registry(other.client)) == timeless(
            registry_reader.read_registry(pair[0].client)
        )


def test_one_version_after_the_other(pair: tuple[Box, Box], monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry without a list of schemas is read completely. An alias hides a subject, so it raises an error."""

    def serve_nothing(*_: object, **__: object) -> list[object]:
        raise NotFound("HTTP 404 Not Found")

    one = pair[0]
    one.empty()
    play(one.http, EVERYTHING)
    whole = registry_reader.read_registry(one.client)
    monkeypatch.setattr(registry_reader, "_list_versions", serve_nothing)
    with pytest.raises(InvalidRequest, match="aa-user is an alias of zz-base"):
        registry_reader.read_registry(one.client)
    play(one.http, [Step("PUT", "/mode", {"mode": "READWRITE"}), Step("PUT", "/config/aa-user", {"alias": None})])
    monkeypatch.undo()
    listed = registry_reader.read_registry(one.client)
    monkeypatch.setattr(registry_reader, "_list_versions", serve_nothing)
    assert registry_reader.read_registry(one.client, levels=BESIDE) == listed
    assert listed.versions == whole.versions
