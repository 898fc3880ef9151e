"""Limits on the number of references of a schema, and on the length of a chain of references."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from stele.core.commands import RegisterSchema
from stele.core.model import Reference, SubjectKey
from stele.errors import TooLarge
from stele.service.limits import MAX_REFERENCE_DEPTH
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    """Yield a registry in memory."""
    opened = await Registry.open(MemoryLog())
    yield opened
    await opened.close()


async def register_link(registry: Registry, fmt: str, number: int) -> None:
    """Register a schema that refers to the one before it, if there is one."""
    before = number - 1
    if fmt == "avro":
        fields = [{"name": "x", "type": f"R{before}"}] if before else []
        text = json.dumps({"type": "record", "name": f"R{number}", "fields": fields})
    else:
        text = json.dumps({"$id": f"R{number}", "properties": {"x": {"$ref": f"R{before}"}} if before else {}})
    references = [Reference(f"R{before}", "", f"s{before}", 1)] if before else []
    state = await registry.fresh_state()
    prepared = await registry.parser.prepare_schema(state, fmt, text.encode(), references)
    await registry.execute(RegisterSchema(SubjectKey("", f"s{number}"), prepared.document, prepared.references))


@pytest.mark.parametrize("fmt", ["avro", "json"])
async def test_a_chain_ends_at_the_same_number_in_every_format(registry: Registry, fmt: str) -> None:
    """A schema may be the end of a chain of 200 references; one more is refused with an explanation."""
    for number in range(1, MAX_REFERENCE_DEPTH + 2):
        await register_link(registry, fmt, number)
    with pytest.raises(TooLarge, match=f"a chain of {MAX_REFERENCE_DEPTH + 1}; .* is {MAX_REFERENCE_DEPTH}"):
        await register_link(registry, fmt, MAX_REFERENCE_DEPTH + 2)


async def test_the_same_reference_many_times_is_refused(registry: Registry) -> None:
    """Repeated references count separately: 20,000 of one are too many."""
    await register_link(registry, "avro", 1)
    state = await registry.fresh_state()
    with pytest.raises(TooLarge, match="20000 references"):
        await registry.parser.prepare_schema(state, "avro", b'"R1"', [Reference("R1", "", "s1", 1)] * 20_000)
