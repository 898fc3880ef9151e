"""xRegistry: invalid requests are answered with errors of the dialect, never with a server error."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest
from tests.conformance.apis.xregistry_client import A1, A2, GROUP, SCHEMA, XregistryClient, avro, check_error, fill
from tests.conformance.apis.xregistry_world import build_app, xr

__all__ = ["build_app", "xr"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

_ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1e400, 2**70, "", "x", "null", "\ud800", "a\nb", [], [None], {}, {"": 1}, {"a": {"b": []}},
    "2024-01-01T00:00:00Z", "/schemagroups/g/schemas/s",
)  # fmt: skip
_NAMES = (
    "schemagroupid", "schemaid", "versionid", "epoch", "name", "labels", "createdat", "ancestorid", "contenttype",
    "format", "schema", "schemabase64", "schemaurl", "meta", "versions", "schemas", "schemagroups", "deprecated",
    "constraints", "compatibility", "stelecompatibility", "defaultversionid", "defaultversionsticky", "xref",
    "capabilities", "modelsource", "readonly", "odd",
)  # fmt: skip
_PATHS = (
    "/", "/export", "/model", "/schemagroups", GROUP, f"{GROUP}/schemas", SCHEMA, f"{SCHEMA}$details", f"{SCHEMA}/meta",
    f"{SCHEMA}/versions", f"{SCHEMA}/versions/1", f"{SCHEMA}/versions/1$details", "/schemagroups/%FF",
    "/schemagroups//x",
    f"{GROUP}/schemas/a%2Fb", f"{SCHEMA}/versions/$details", "/schemagroups/%00/schemas/~", f"{GROUP}/schemas/~2F~2f",
)  # fmt: skip
_QUERIES = (
    "", "?inline", "?inline=*", "?inline=.", "?filter=a", "?filter=a%5B*%5D.b=%00", "?filter=%FF", "?sort=%5B",
    "?limit=1",
    "?limit=1&after=%FF", "?doc", "?doc&inline", "?binary&inline=*", "?collections", "?epoch=99999999999999999999",
    "?ignore", "?ignore=%FF", "?setdefaultversionid=null", "?setdefaultversionid=%00", "?specversion=%FF",
)  # fmt: skip


def mutate(random: Random, value: Any) -> Any:
    """Return a value with an invalid part at a random place."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        name = random.choice(list(value))
        return {**value, name: mutate(random, value[name])}
    if isinstance(value, dict) and random.random() < 0.7:
        return {**value, random.choice(_NAMES): random.choice(_ODD)}
    return random.choice(_ODD)


@pytest.mark.parametrize("seed", range(6))
async def test_odd_requests(xr: XregistryClient, seed: int) -> None:
    """Invalid values in bodies, paths, flags and headers are refused in the shape of an error."""
    random = Random(seed)
    await fill(xr, A1, A2)
    tree = {"name": "n", "meta": {"labels": {"a": "b"}}, "versions": {"1": avro(), "9": avro(A2)}, **avro()}
    group = {"schemas": {"s": tree}}
    bodies = [tree, {"s": tree}, group, {"schemagroups": {"g": group}}, avro(), {"1": {}}]
    refused = 0
    for _ in range(250):
        method = random.choice(("GET", "PUT", "PATCH", "POST", "DELETE"))
        body = copy.deepcopy(random.choice(bodies))
        for _ in range(random.randrange(3)):
            body = mutate(random, body)
        content = b"" if method == "GET" else json.dumps(body).encode()
        if random.random() < 0.1:
            content = random.randbytes(20)
        path = random.choice(_PATHS) + random.choice(_QUERIES)
        headers = {f"xRegistry-{random.choice(_NAMES)}": "%zz\xff"} if random.random() < 0.1 else {}
        encoded = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        answer = await xr.http.request(method, f"/xregistry{path}", content=content, headers=list(encoded.items()))
        assert answer.status_code < 500, f"{seed}: {method} {path} {content!r}: {answer.text}"
        if answer.status_code >= 400:
            refused += 1
            check_error(answer, "")
    assert refused > 50
    await xr.read("/export")
