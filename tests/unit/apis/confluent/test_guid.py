"""GUIDs: the digest of a schema's content, and finding schemas by it."""

import hashlib
import struct
from uuid import UUID

from tests.unit.apis.confluent.conftest import Put

from stele.apis.confluent.guid import GuidIndex, compute_guid
from stele.core.commands import DeleteMode, DeleteSubject
from stele.core.metadata import DataRule, DataRuleSet, Metadata
from stele.core.model import Reference, SubjectKey
from stele.service.registry import Registry
from stele.storage import open_log


def uuid_of(*pieces: bytes) -> UUID:
    """Return the MD5 of the pieces as a UUID."""
    return UUID(bytes=hashlib.md5(b"".join(pieces)).digest())


async def guid(registry: Registry, gid: int, space: str = "") -> UUID:
    """Return the GUID of a registered schema."""
    return UUID(compute_guid(registry.state, registry.state.namespaces[space].schema_entries[gid]))


async def test_plain_text(registry: Registry, put: Put) -> None:
    """Without attachments the GUID is the MD5 of the text."""
    await put("a", '"int"')
    assert await guid(registry, 1) == uuid_of(b'"int"') == UUID("ef524ea1-b91e-7317-3d93-8ade36c1db32")


async def test_references(registry: Registry, put: Put) -> None:
    """References are hashed by name, subject and big-endian version; in the same namespace subjects are unqualified."""
    await put("c:e", '"int"')
    await put("c:u", '"string"', references=(Reference("E", "c", "e", 1),))
    await put("u", '"string"', references=(Reference("E", "c", "e", 1),))
    assert await guid(registry, 2, "c") == uuid_of(b'"string"', b"E", b"e", struct.pack(">i", 1))
    assert await guid(registry, 1) == uuid_of(b'"string"', b"E", b":.c:e", struct.pack(">i", 1))


async def test_metadata_and_rules(registry: Registry, put: Put) -> None:
    """Metadata and rule set are hashed after a byte 1 each, sorted and with their defaults."""
    metadata = Metadata(tags={"f": ("b", "a")}, properties={"y": "1", "x": "2"}, sensitive=("y",))
    rules = DataRuleSet(
        domain_rules=(DataRule(name="r", type="CEL", tags=("t",), params={"k": "v"}, expr="e", disabled=True),),
        enable_at="ALL",
    )
    await put("a", '"int"', metadata=metadata, rule_set=rules)
    expected = uuid_of(
        b'"int"',
        b"\1",
        b"fab",
        b"x2y1",
        b"y",
        b"\1",
        b"r",
        b"TRANSFORM",
        b"WRITEREAD",
        b"CEL",
        b"t",
        b"kv",
        b"e",
        b"\1",
        b"ALL",
    )
    assert await guid(registry, 1) == expected


async def test_index_follows_registrations_and_purges(registry: Registry, put: Put) -> None:
    """The index finds exactly the present schemas after any number of registrations and purges."""
    index = GuidIndex()
    integer, text = uuid_of(b'"int"'), uuid_of(b'"string"')
    assert index.find_schemas(registry.state, integer) == []
    for round_ in range(3):
        await put("a", '"int"')
        await put("b:a", '"int"')
        await put("c", '"string"')
        assert [row.namespace for row in index.find_schemas(registry.state, integer)] == ["", "b"]
        assert len(index.find_schemas(registry.state, text)) == 1
        for removal in (DeleteMode.SOFT, DeleteMode.HARD):
            await registry.execute(DeleteSubject(SubjectKey("", "a"), removal))
        if round_ % 2:
            await put("d", '"long"')
        assert [row.namespace for row in index.find_schemas(registry.state, integer)] == ["b"]
        assert len(index.find_schemas(registry.state, text)) == 1


async def test_index_notices_another_state(registry: Registry, put: Put) -> None:
    """After a reset, the index finds nothing of the old state."""
    index = GuidIndex()
    await put("a", '"int"')
    assert index.find_schemas(registry.state, uuid_of(b'"int"'))
    await registry.reset(await open_log("memory:"))
    assert index.find_schemas(registry.state, uuid_of(b'"int"')) == []
