"""The story line of 300 versions: server time to answer and to draw it, compared with listing the same versions.

A history whose verdicts are known is answered from memory. The limit is 100 ms of CPU for answer and drawing together.
The list of version numbers, which every client requests, is the comparison. All calls run in this process.

    python -m bench.pictures
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from bench.report import Row, report

from stele.core import queries
from stele.core.commands import ChangeSettings, RegisterSchema
from stele.core.model import SettingsLevel, SubjectKey
from stele.core.policy import POLICIES
from stele.pictures import draw_compatibility_matrix, draw_field_lifelines, draw_story_line
from stele.service.history import get_history, get_matrix
from stele.service.lifelines import get_lifelines
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

VERSIONS, FIELDS, ROUNDS = 300, 60, 5
KEY = SubjectKey("", "orders-value")


def make_schema(number: int) -> bytes:
    """Return a record whose fields change. Every seventh version is incompatible with the one before."""
    fields: list[dict[str, Any]] = [{"name": f"field{i}", "type": "string"} for i in range(FIELDS - 10)]
    fields += [{"name": f"extra{i}", "type": ["null", "string"], "default": None} for i in range(number % 10)]
    if number % 7 == 0:
        fields.append({"name": "needed", "type": "long"})
    fields.append({"name": "revision", "type": "int", "default": number})
    return json.dumps({"type": "record", "name": "Order", "fields": fields}).encode()


async def fill_registry() -> Registry:
    """Register all versions."""
    registry = await Registry.open(MemoryLog())
    await registry.execute(ChangeSettings(SettingsLevel(), {"policy": POLICIES["NONE"]}))
    for number in range(VERSIONS):
        prepared = await registry.parser.prepare_schema(registry.state, "avro", make_schema(number))
        await registry.execute(RegisterSchema(KEY, document=prepared.document))
    return registry


async def measure(call: Callable[[], Awaitable[object]]) -> float:
    """Return the least CPU time of several calls, all threads of the process together, in milliseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        await call()
        best = min(best, time.process_time() - begun)
    return best * 1000


async def run() -> list[Row]:
    """Return the figures of one registry."""
    registry = await fill_registry()

    async def list_numbers() -> bytes:
        subject = (await registry.fresh_state()).find_subject(KEY)
        return msgspec.json.encode([row.version_number for row in queries.list_versions(subject)])

    async def find_history() -> bytes:
        return msgspec.json.encode(await get_history(registry, KEY))

    async def draw_story() -> str:
        return draw_story_line(await get_history(registry, KEY)).to_inline()

    async def draw_fields() -> str:
        return draw_field_lifelines(await get_lifelines(registry, KEY)).to_inline()

    async def draw_matrix() -> str:
        return draw_compatibility_matrix(await get_matrix(registry, KEY, limit=20)).to_inline()

    begun = time.process_time()
    first = await get_history(registry, KEY)
    cold = (time.process_time() - begun) * 1000
    milliseconds = {
        "numbers of 300 versions": await measure(list_numbers),
        "history, verdicts known": await measure(find_history),
        "story line, verdicts known": await measure(draw_story),
        "lifelines of 60 fields": await measure(draw_fields),
        "matrix of 20 versions": await measure(draw_matrix),
        f"history, no verdict known{'' if first.complete else ' (cut off)'}": cold,
    }
    await registry.close()
    base = milliseconds["numbers of 300 versions"]
    return [{"what": name, "CPU ms": value, "times the list": value / base} for name, value in milliseconds.items()]


NOTE = (
    "One Avro subject of 300 versions with 50 to 61 fields; every seventh version breaks. The bar is 100 ms for the"
    " story line, answer and drawing together."
)

if __name__ == "__main__":
    report("pictures", asyncio.run(run()), [NOTE])
