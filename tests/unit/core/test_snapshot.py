"""Snapshots are loaded completely or not at all."""

from __future__ import annotations

import mmap

import msgspec
import pytest
from tests.unit.core.box import Box, S, T, doc, to

from stele.core import commands as cmd
from stele.core import queries, zstd
from stele.core.model import Mode, SettingsLevel, SubjectKey
from stele.core.policy import DENY_ALL
from stele.core.snapshot import LAYOUT, dump_state, load_state


def test_a_loaded_state_goes_on_where_it_was_dumped() -> None:
    """Texts, ids, references, modes and counters are restored, and registering continues with the next numbers."""
    box = Box()
    box.register(S, "a")
    box.register(T, "t", to(S))
    box.close(T)
    box.do(cmd.SetMode(SettingsLevel("ctx"), Mode.READONLY))
    box.do(cmd.ChangeSettings(SettingsLevel(), {"policy": DENY_ALL}))
    box.do(cmd.AdoptRulesets((("avro", "confluent", 2),)))
    loaded = load_state(dump_state(box.state))
    assert loaded is not None
    assert loaded.seq == box.state.seq
    assert loaded.rulesets == {("avro", "confluent"): 2}
    assert loaded.get_text(queries.get_version(loaded, S, 1).content) == b"a"
    assert loaded.get_text(queries.get_schema_entry(loaded, "", 2).content) == b"t"
    assert loaded.mode_at(SettingsLevel("ctx")) is Mode.READONLY
    box.state = loaded
    outcome = box.register(T, "new")
    assert (outcome.version_number, outcome.schema_id) == (1, 3)


def test_an_empty_state_has_a_snapshot() -> None:
    """The default namespace exists before and after."""
    loaded = load_state(dump_state(Box().state))
    assert loaded is not None
    assert list(loaded.namespaces) == [""]


@pytest.mark.parametrize("data", [b"", b"\x91\x01", b"junk", msgspec.msgpack.encode([LAYOUT + 1] + [None] * 12)])
def test_a_snapshot_of_another_layout_is_none(data: bytes) -> None:
    """An unreadable snapshot gives None: the log has everything."""
    assert load_state(data) is None


def test_a_purged_text_is_in_no_later_snapshot() -> None:
    """After a purge, a new snapshot holds no trace of the text, packed or not."""
    box = Box()
    box.register(S, "SECRET" * 50)
    box.register(T, "other")
    assert dump_state(box.state)
    box.purge(S)
    loaded = load_state(dump_state(box.state))
    assert loaded is not None
    assert all(b"SECRET" not in zstd.decompress(block) for block in loaded.packed_texts.dump()[0])


def test_what_a_loaded_state_counts_with_is_there_once() -> None:
    """Equal handles, schema ids and serials are one object, because there may be millions of each."""
    box = Box()
    for number in range(400):  # Python itself shares the integers up to 256.
        box.register(SubjectKey("", f"s{number}"), f"text {number}")
    loaded = load_state(dump_state(box.state))
    assert loaded is not None
    versions = [queries.get_version(loaded, SubjectKey("", f"s{number}"), 1) for number in range(400)]
    counts = [(row.schema.schema_id, row.subject.serial, row.content.text_or_handle) for row in versions]
    equal = {count for row in counts for count in row}
    assert len({id(count) for row in counts for count in row}) == len(equal) <= 402


def test_a_snapshot_in_a_memory_map_goes_while_it_is_read() -> None:
    """Pages of a memory map are released after reading, and the state is complete; a slice of a map is not touched."""
    box = Box()
    box.register(S, "a")
    for number in range(40_000):
        box.state.rulesets[str(number), "x" * 50] = 1
    data = dump_state(box.state)
    assert len(data) > 2 << 20
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    pages, longer = mmap.mmap(-1, len(data), private), mmap.mmap(-1, len(data) + 1, private)
    pages[:], longer[:-1] = data, data
    for view in (memoryview(pages), memoryview(longer)[:-1]):
        loaded = load_state(view)
        assert loaded is not None
        assert loaded.rulesets == box.state.rulesets
        assert loaded.get_text(queries.get_version(loaded, S, 1).content) == b"a"
    assert not any(pages[: 1 << 20])
    assert longer[:-1] == data


def test_a_text_in_two_formats_is_two_contents_of_a_loaded_state() -> None:
    """A text in two formats gives two chained contents, each with its own entries."""
    box = Box()
    box.do(cmd.RegisterSchema(S, doc("text", "avro")))
    box.do(cmd.RegisterSchema(T, doc("text", "json")))
    loaded = load_state(dump_state(box.state))
    assert loaded is not None
    assert len(loaded.contents) == 1
    assert [row.format for row in queries.list_contents(loaded)] == ["avro", "json"]
    for key, name in ((S, "avro"), (T, "json")):
        content = queries.get_version(loaded, key, 1).content
        assert queries.find_content(loaded, content.sha, name) is content
