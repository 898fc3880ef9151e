"""Imports into a target that has contents already, refuses parts, or becomes unreachable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from msgspec.structs import replace
from tests.property.test_protobuf_lookup import MIGRATED, UNCHECKED
from tests.system.migration.boxes import Box, box
from tests.system.migration.histories import Step, play, record, register
from tests.unit.migrate.samples import dump, row

from stele.client import Retry, SchemaRegistryClient
from stele.client.request import Request
from stele.migrate import registry_reader, registry_writer, topic_reader
from stele.migrate.compare import DifferenceKind, compare_dumps
from stele.migrate.extras import MigratedDek, MigratedKek, RegistryExtras
from stele.migrate.topic_records import Record
from stele.protocol.confluent import Config


@pytest.fixture(scope="module")
def store() -> Iterator[Box]:
    """Open a registry for all tests."""
    with box() as registry:
        yield registry


@pytest.fixture
def there(store: Box) -> Box:
    """Return the registry, empty."""
    store.empty()
    return store


TWO = dump(row("s", 1, 1, '"int"'), row("s", 2, 2, '"long"'))


def kinds(differences: object) -> list[DifferenceKind]:
    """Return the kinds of some differences."""
    return [difference.kind for difference in differences]  # type: ignore[attr-defined]  # a tuple of them


def test_a_plan_changes_nothing(there: Box) -> None:
    """A plan lists everything that is missing and leaves the target unchanged."""
    comparison = registry_writer.plan_import(TWO, there.client)
    assert comparison.counts == {"register": 2}
    assert there.client.subjects(deleted=True) == []
    assert there.client.mode() == "READWRITE"


FOREIGN_AVRO = {
    "attributes in another order": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","z":1,"b":2}],"team":"us","owner":"me"}',
        '{"owner":"me","team":"us","type":"record","name":"R","fields":[{"b":2,"z":1,"name":"a","type":"int"}]}',
    ),
    "full names": (
        '{"name":"n.R","type":"record","fields":[{"name":"a","type":"int"}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}',
    ),
    "normalized": (
        '{"type":"bytes","logicalType":"decimal","precision":9,"scale":2,"a":1,"z":2}',
        '{"type":"bytes","z":2,"a":1,"scale":2,"precision":9,"logicalType":"decimal"}',
    ),
    "a type named error": (
        '{"type":"record","name":"error","fields":[]}',
        '{"name":"error", "type":"record", "fields":[]}',
    ),
    "an empty union": ("[]", "[ ]"),
    "no document of today": ('{"type": "record", "name": "a-b", "fields": [ ]}', ""),
}
"""By peculiarity: the text that another registry stored, and a spelling to look it up by ('' for none)."""


def test_foreign_avro_texts_stay(there: Box) -> None:
    """Avro schemas keep their ids, GUIDs and texts in any spelling, and are found by other spellings."""
    rows = [row(f"s{n}", n, 10 + n, text) for n, (text, _) in enumerate(FOREIGN_AVRO.values(), 1)]
    assert registry_writer.apply_import(dump(*rows), there.client) == []
    assert registry_writer.plan_import(dump(*rows), there.client).differences == ()
    for number, (text, other) in enumerate(FOREIGN_AVRO.values(), 1):
        stored = there.http.get(f"/subjects/s{number}/versions/{number}").json()
        guid = str(UUID(bytes=hashlib.md5(text.encode(), usedforsecurity=False).digest()))
        assert (stored["id"], stored["schema"], stored["guid"]) == (10 + number, text, guid)
        for normalize in ("false", "true") if other else ():
            target = f"/subjects/s{number}?normalize={normalize}"
            lookup = there.http.post(target, json={"schema": other}).json()
            assert (lookup["id"], lookup["version"], lookup["guid"]) == (10 + number, number, guid)


@pytest.mark.parametrize("case", sorted(MIGRATED))
def test_protobuf_as_confluent_stores_it_moves_from_its_topic(there: Box, case: str) -> None:
    """Protobuf schemas in Confluent's stored form keep id, GUID and text, even with missing imports or name clashes."""
    text, original = MIGRATED[case]
    guid = str(UUID(bytes=hashlib.md5(text.encode(), usedforsecurity=False).digest()))
    value = {"subject": "s", "version": 7, "id": 100_007, "guid": guid, "schemaType": "PROTOBUF", "schema": text}
    key = {"keytype": "SCHEMA", "subject": "s", "version": 7, "magic": 1}
    records = [Record(json.dumps(key).encode(), json.dumps({**value, "deleted": False}).encode(), 0)]
    brought = topic_reader.read_topic_records(records)
    assert registry_writer.apply_import(brought, there.client) == []
    assert registry_writer.plan_import(brought, there.client).differences == ()
    stored = there.http.get("/subjects/s/versions/7").json()
    assert (stored["id"], stored["schema"], stored["guid"]) == (100_007, text, guid)
    assert there.http.get(f"/schemas/guids/{guid}").json()["schema"] == text
    if case in UNCHECKED:
        assert there.http.put("/config/s", json={"validateNewSchemas": False}).status_code == 200
    for spelling in (text, original):
        lookup = there.http.post("/subjects/s", json={"schema": spelling, "schemaType": "PROTOBUF"}).json()
        assert (lookup["id"], lookup["version"], lookup["guid"]) == (100_007, 7, guid)


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (register("s", '"string"'), DifferenceKind.NUMBER_TAKEN),
        (register("other", '"string"'), DifferenceKind.ID_TAKEN),
    ],
)
def test_contradictions_stop_everything(there: Box, step: Step, kind: DifferenceKind) -> None:
    """A version number or id that another schema has is reported, and nothing is changed, not even a mode."""
    play(there.http, [step])
    with pytest.raises(registry_writer.ImportConflict, match="nothing was changed") as caught:
        registry_writer.apply_import(TWO, there.client)
    assert kinds(caught.value.comparison.conflicts) == [kind]
    assert len(registry_reader.read_registry(there.client).versions) == 1
    assert there.client.mode() == "READWRITE"


def test_a_source_that_contradicts_itself() -> None:
    """One id for two schemas of a context is a conflict. In two contexts it is allowed."""
    two = dump(row("a", 1, 1, '"int"'), row("b", 1, 1, '"long"'))
    assert kinds(compare_dumps(two, dump()).conflicts) == [DifferenceKind.ID_TAKEN]
    apart = dump(row("a", 1, 1, '"int"'), row(":.t:b", 1, 1, '"long"'))
    assert compare_dumps(apart, dump()).conflicts == ()


def test_what_is_there_already_stays(there: Box) -> None:
    """Existing versions of the source are unchanged; extra versions are listed only for subjects of the source."""
    play(there.http, [register("s", '"int"'), register("mine", '"int"')])
    assert registry_writer.apply_import(TWO, there.client) == []
    assert registry_writer.plan_import(TWO, there.client).differences == ()
    play(there.http, [Step("PUT", "/config", {"compatibility": "NONE"}), register("s", '"string"')])
    left = registry_writer.plan_import(replace(TWO, configs={"": Config(compatibility_level="NONE")}), there.client)
    assert [(row.kind, row.version) for row in left.differences] == [(DifferenceKind.EXTRA, 3)]


def test_life_and_death_are_brought_along(there: Box) -> None:
    """A version deleted only at the target is restored. A version deleted only at the source is deleted."""
    play(there.http, [register("s", '"int"'), register("s", '"long"'), Step("DELETE", "/subjects/s/versions/1")])
    wanted = dump(row("s", 1, 1, '"int"'), row("s", 2, 2, '"long"', deleted=True))
    assert sorted(kinds(registry_writer.plan_import(wanted, there.client).differences)) == [
        DifferenceKind.DELETE,
        DifferenceKind.REGISTER,
    ]
    assert registry_writer.apply_import(wanted, there.client) == []
    assert registry_writer.plan_import(wanted, there.client).differences == ()


def test_refusals_are_told_and_the_rest_goes_on(there: Box) -> None:
    """An invalid schema and its referrers are refused by name. Everything else is imported."""
    broken = dump(
        row("bad", 1, 1, "{nonsense"),
        row("uses-bad", 1, 2, record("U", "a"), ("bad", 1)),
        row("good", 1, 3, '"int"'),
    )
    refused = registry_writer.apply_import(broken, there.client)
    assert [refusal.name for refusal in refused] == ["bad", "uses-bad"]
    assert there.client.subjects() == ["good"]
    assert registry_writer.plan_import(broken, there.client).counts == {"register": 2}
    assert there.client.mode() == "READWRITE"


@pytest.mark.parametrize(
    "modes", [{"/mode": "READONLY", "/mode/:.__GLOBAL:": "READONLY"}, {"/mode": "READONLY_OVERRIDE"}], ids=str
)
def test_closed_doors_are_opened(there: Box, modes: dict[str, str]) -> None:
    """Modes of the target that forbid writing are lifted, and at the end the modes are those of the source."""
    closing = [
        register("s", '"int"'),
        Step("PUT", "/config/s", {"alias": "elsewhere"}),
        Step("PUT", "/mode/s", {"mode": "READONLY"}),
        *(Step("PUT", path, {"mode": mode}) for path, mode in modes.items()),
    ]
    play(there.http, closing)
    wanted = replace(
        TWO,
        configs={"s": Config(compatibility_level="FULL", alias="other"), "": Config(compatibility_level="NONE")},
        modes={"s": "IMPORT"},
    )
    assert registry_writer.apply_import(wanted, there.client) == []
    assert registry_writer.plan_import(wanted, there.client).differences == ()
    assert [row.subject for row in registry_reader.read_registry(there.client).versions] == ["s", "s"]
    assert there.client.mode() == "READWRITE"
    assert there.client.mode("s") == "IMPORT"


def test_modes_may_be_left_behind(there: Box) -> None:
    """With `modes=False`, the read-only modes of the source are not copied to the target."""
    closed = replace(TWO, modes={"": "READONLY", "s": "READONLY"})
    assert registry_writer.apply_import(closed, there.client, modes=False) == []
    assert registry_writer.plan_import(closed, there.client, modes=False).differences == ()
    assert there.client.mode() == "READWRITE"


def test_ids_are_not_given_again(there: Box) -> None:
    """The highest id of the source is reserved at the target, without a version."""
    wanted = replace(TWO, max_ids={".": 40})
    assert registry_writer.apply_import(wanted, there.client) == []
    assert registry_writer.plan_import(wanted, there.client).differences == ()
    assert there.client.subjects(deleted=True) == ["s"]
    assert there.http.post("/subjects/new/versions", json={"schema": '"string"'}).json()["id"] == 41


class _FailingTransport(httpx.BaseTransport):
    """A registry that becomes unreachable after some writes."""

    def __init__(self, registry: Box, writes: int) -> None:
        self._registry = registry
        self._writes = writes

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "GET" and request.url.path != "/config:batchGet":
            self._writes -= 1
            if self._writes < 0:
                raise httpx.ConnectError("gone")
        return self._registry.transport.handle_request(request)


MANY = dump(*(row(f"s{place}", 1, place, record(f"R{place}", "a"), deleted=place % 3 == 0) for place in range(1, 9)))


@pytest.mark.parametrize("writes", [0, 1, 4, 8, 9, 11, 12, 13])
def test_an_import_that_is_cut_off_can_be_finished(there: Box, writes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the target becomes unreachable, the error says how to continue, and the next import adds only the rest."""
    monkeypatch.setattr(registry_writer, "CHUNK", 1)
    wanted = replace(
        MANY, configs={"": Config(compatibility_level="FULL")}, modes={"s1": "READONLY"}, max_ids={".": 30}
    )
    dying = SchemaRegistryClient("http://x", transport=_FailingTransport(there, writes), retry=Retry(rounds=1))
    with pytest.raises(registry_writer.ImportInterrupted, match="Run the same import again"):
        registry_writer.apply_import(wanted, dying)
    arrived = len(registry_reader.read_registry(there.client).versions)
    assert arrived <= max(writes - 1, 0)
    assert there.client.mode() == ("IMPORT" if writes else "READWRITE")
    assert registry_writer.apply_import(wanted, there.client) == []
    assert registry_writer.plan_import(wanted, there.client).differences == ()
    assert there.client.mode() == "READWRITE"
    assert there.client.subjects(deleted=True) == [f"s{place}" for place in range(1, 9)]


class _Plain(httpx.BaseTransport):
    """A registry of another vendor: it answers 404 or 405 to Stele's bulk requests."""

    def __init__(self, registry: Box, status: int) -> None:
        self._registry = registry
        self._status = status

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path in {"/subjects:import", "/config:batchGet"}:
            return httpx.Response(self._status, json={"error_code": self._status, "message": "no"})
        return self._registry.transport.handle_request(request)


KEYS = RegistryExtras(
    (MigratedKek("k", "x", "1", kms_props={"region": "b"}, ts=5),),
    (MigratedDek("k", "s1", 3, "AES256_GCM", "AAAA", ts=6),),
)


@pytest.mark.parametrize("status", [404, 405])
def test_other_makes_take_one_after_the_other(there: Box, status: int) -> None:
    """A target without bulk imports gets versions one by one. Keys that need a bulk import are refused by name."""
    plain = SchemaRegistryClient("http://x", transport=_Plain(there, status), retry=Retry(rounds=1))
    assert registry_writer.apply_import(MANY, plain) == []
    assert registry_writer.plan_import(MANY, there.client).differences == ()
    refused = registry_writer.apply_import(replace(MANY, extras=KEYS), plain)
    assert [row.name for row in refused] == ["kek . k", "dek k s1 AES256_GCM 3"]
    assert there.client.mode() == "READWRITE"


def test_settings_are_read_at_once_as_they_are_one_by_one(there: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings and modes of all levels, read in bulk and page by page, equal those read one by one."""
    monkeypatch.setattr(registry_reader, "PAGE", 2)
    source = replace(
        dump(row("s", 1, 1, '"int"'), row("a/b %41", 1, 2, '"long"'), row(":.t:x", 1, 1, '"int"')),
        configs={
            "": Config(compatibility_level="FULL"),
            ":.t:": Config(compatibility_level="NONE"),
            "a/b %41": Config(compatibility_level="FORWARD", normalize=True),
            "only-settings": Config(compatibility_level="NONE"),
        },
        modes={":.t:": "READONLY", "s": "IMPORT"},
    )
    assert registry_writer.apply_import(source, there.client) == []
    at_once = registry_reader.read_registry(there.client, levels=["only-settings"])
    monkeypatch.setattr(registry_reader, "_read_settings_at_once", lambda *_: None)
    assert registry_reader.read_registry(there.client, levels=["only-settings"]) == at_once
    assert (at_once.configs, at_once.modes) == (source.configs, source.modes)


def test_reading_asks_few_questions(there: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of requests to read a registry does not grow with the number of subjects."""
    paths: list[str] = []
    send = there.client.send

    def count(request: Request[Any]) -> Any:
        paths.append(request.path)
        return send(request)

    def read(subjects: range) -> int:
        """Import one version for each subject, read the registry, and return how many requests the reading took."""
        versions = [
            row(f"s{number}", 1, number + 1, f'{{"type": "fixed", "name": "F{number}", "size": 1}}')
            for number in subjects
        ]
        assert registry_writer.apply_import(dump(*versions), there.client) == []
        paths.clear()
        assert len(registry_reader.read_registry(there.client).versions) == subjects.stop
        return len(paths)

    monkeypatch.setattr(there.client, "send", count)
    few = read(range(1))
    assert few <= 16
    assert read(range(1, 30)) == few


def test_keys_follow_their_source(there: Box) -> None:
    """A second import applies changes at the source. A different key of the same name is refused."""
    assert registry_writer.apply_import(replace(MANY, extras=KEYS), there.client) == []
    kek, dek = KEYS.keks[0], KEYS.deks[0]
    changed = RegistryExtras((replace(kek, doc="why", deleted=True, ts=9),), (replace(dek, deleted=True, ts=9),))
    left = registry_writer.plan_import(replace(MANY, extras=changed), there.client).differences
    assert [(row.kind, row.name, row.why) for row in left] == [
        (DifferenceKind.BESIDE, ". k", "kek: doc, ts, deleted"),
        (DifferenceKind.BESIDE, "k s1 AES256_GCM 3", "dek: ts, deleted"),
    ]
    assert registry_writer.apply_import(replace(MANY, extras=changed), there.client) == []
    assert registry_writer.plan_import(replace(MANY, extras=changed), there.client).differences == ()
    other = replace(MANY, extras=RegistryExtras((replace(kek, kms_key_id="2"),)))
    assert [row.name for row in registry_writer.apply_import(other, there.client)] == ["kek k"]


def test_secrets_of_shared_keys_are_set_by_hand(there: Box) -> None:
    """The secret of a KEK is not exported, and a note says so. Once it is set, the keys are served unwrapped."""
    shared = {"name": "k", "kmsType": "local-kms", "kmsKeyId": "here", "kmsProps": {"secret": "s"}, "shared": True}
    with box() as origin:
        play(origin.http, [Step("POST", "/dek-registry/v1/keks", shared)])
        original_key = origin.http.post("/dek-registry/v1/keks/k/deks", json={"subject": "s"}).json()
        dump_of_it = registry_reader.read_registry(origin.client)
    assert dump_of_it.notes == ("kmsProps of KEKs that may be secret are not shown: set them at the target",)
    assert registry_writer.apply_import(dump_of_it, there.client) == []
    play(there.http, [Step("PUT", "/dek-registry/v1/keks/k", {"kmsProps": {"secret": "s"}})])
    served_key = there.http.get("/dek-registry/v1/keks/k/deks/s").json()
    assert served_key == original_key
    assert served_key["keyMaterial"]


def test_times_stay_where_they_are(there: Box) -> None:
    """An existing version keeps its time. A different time is reported and is no conflict."""
    play(there.http, [register("s", '"int"')])
    timed = dump(replace(row("s", 1, 1, '"int"'), ts=5), replace(row("s", 2, 2, '"long"'), ts=6))
    assert registry_writer.apply_import(timed, there.client) == []
    left = registry_writer.plan_import(timed, there.client).differences
    assert [(difference.kind, difference.version) for difference in left] == [(DifferenceKind.TIME, 1)]
    assert [version.ts for version in registry_reader.read_registry(there.client).versions][1] == 6
