"""Associations keep their invariants under any sequence of requests."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from typing import Any

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.apis.confluent import application
from stele.service.registry import Registry
from stele.storage import open_log

TOPICS = ("t", "u")
SUBJECTS = (None, "s", "r")
INT = {"schema": '"int"'}

infos = st.builds(
    lambda **members: {name: value for name, value in members.items() if value is not None},
    subject=st.sampled_from(SUBJECTS),
    associationType=st.sampled_from([None, "key"]),
    lifecycle=st.sampled_from([None, "STRONG", "WEAK"]),
    frozen=st.sampled_from([None, None, True, False]),
    schema=st.sampled_from([None, INT]),
)
topics = st.sampled_from(TOPICS)
flags = st.sampled_from(["true", "false"])


def _body(topic: str, associations: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "resourceName": topic,
        "resourceNamespace": "c",
        "resourceId": f"id-{topic}",
        "associations": associations,
    }


Step = tuple[str, str, Any]
"""Method, target and body of a request."""

bodies = st.builds(_body, topics, st.lists(infos, min_size=1, max_size=2))
steps: st.SearchStrategy[Step] = st.one_of(
    bodies.map(lambda body: ("POST", "/associations", body)),
    bodies.map(lambda body: ("PUT", f"/associations/resources/{body['resourceId']}", body)),
    st.tuples(topics, flags).map(
        lambda pair: ("DELETE", f"/associations/resources/id-{pair[0]}?cascadeLifecycle={pair[1]}", None)
    ),
    st.sampled_from(["s", "r", ":.c:t-value"]).map(lambda name: ("DELETE", f"/subjects/{name}", None)),
    st.sampled_from(["s", "r", ":.c:t-key"]).map(lambda name: ("DELETE", f"/subjects/{name}/versions/latest", None)),
    st.sampled_from(["s", "r"]).map(lambda name: ("POST", f"/subjects/{name}/versions", INT)),
)


async def _play(node: Registry, app: Any, moves: list[Step]) -> Counter[int]:
    """Send requests to an empty registry and check everything after each. Return how often each status occurred."""
    await node.reset(await open_log("memory:"))
    met: Counter[int] = Counter()
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://registry") as client:
        for method, target, body in moves:
            before = (await client.get("/associations/resources/-/-")).json()
            answer = await client.request(method, target, json=body)
            met[answer.status_code] += 1
            assert answer.status_code < 500, (method, target, body, answer.text)
            after = (await client.get("/associations/resources/-/-")).json()
            if answer.status_code >= 400:
                assert after == before, (method, target, body, answer.text)
            _require_sound(after, set((await client.get("/subjects")).json()))
            if method in {"POST", "PUT"} and answer.status_code == 200 and "resourceName" in (body or {}):
                again = await client.request("PUT", f"/associations/resources/{body['resourceId']}", json=body)
                assert again.status_code == 200, again.text
                assert (await client.get("/associations/resources/-/-")).json() == after
    return met


def _require_sound(rows: list[dict[str, Any]], live: set[str]) -> None:
    """Assert the invariants of associations."""
    by_subject, frozen = defaultdict(list), defaultdict(set)
    for row in rows:
        by_subject[row["subject"]].append(row["lifecycle"])
        frozen[row["resourceId"]].add(row["frozen"])
        assert row["lifecycle"] == "STRONG" or not row["frozen"], row
    assert set(by_subject) <= live
    assert all(len(lifecycles) == 1 or "STRONG" not in lifecycles for lifecycles in by_subject.values()), by_subject
    assert all(len(states) == 1 for states in frozen.values()), frozen
    assert len({row["guid"] for row in rows}) == len(rows)


async def _open_registry() -> Registry:
    return await Registry.open(await open_log("memory:"))


def test_associations_are_sound() -> None:
    """Strong associations are exclusive, frozen ones strong, subjects active; refusals and repeats change nothing."""
    met: Counter[int] = Counter()
    with asyncio.Runner() as runner:
        node = runner.run(_open_registry())
        app = application(node)

        @settings(max_examples=scale_examples(60), deadline=None)
        @given(st.lists(steps, min_size=4, max_size=14))
        def check(moves: list[Step]) -> None:
            met.update(runner.run(_play(node, app, [("POST", "/subjects/s/versions", INT), *moves])))

        check()
        runner.run(node.close())
    assert {200, 204, 404, 409, 422} <= set(met), met
