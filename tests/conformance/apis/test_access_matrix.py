"""Every endpoint and page, requested by every caller: callers with the right get a response, all others are refused.

The rows come from the routes of the dialects themselves. An endpoint that declares no right, or for which
`tests.support.access_samples` has no request, fails. The expectation follows from the declared right and from the
rules. The observation is a response of the whole server.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from tests.support.access_samples import CALLERS, KEK, MARKER, PLACE, RULES, SAMPLES, SUBJECT, Sample
from tests.support.access_world import Endpoint, World, list_endpoints

from stele.apis.http.access import EndpointAccess, Place
from stele.core.access import REGISTRY_RESOURCE, Operation
from stele.server.dialects import MOUNTS, DialectEntry
from stele.service.access import AccessControl
from stele.service.registry import Registry
from stele.storage import open_log
from stele.ui.work import journal_feed

pytestmark = pytest.mark.asyncio(loop_scope="module")

_WORDS = (SUBJECT, MARKER, KEK, PLACE)
"""Texts that a caller without the right must not see."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(brief_logging: None) -> AsyncIterator[World]:
    """The sample registry, open to all callers while it is built. Streams are short."""
    registry = await Registry.open(await open_log("memory:"))
    world = World(registry, has_login=True)
    await world.create()
    registry.access = AccessControl(RULES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_feed, "_SHARE_OF_LIMIT", 0.01)
        yield world
    await registry.close()


def _may(caller: str, wanted: EndpointAccess, sample: Sample) -> bool:
    """Return whether the rules allow a caller the operation that an endpoint declares."""
    if wanted.place is Place.NOWHERE:
        return True
    resource = REGISTRY_RESOURCE if wanted.place is Place.REGISTRY else sample.resource
    names = frozenset({f"user:{caller}"} if caller else ())
    return RULES.decide(names, wanted.operation, resource).allowed


def _shows(answer: httpx.Response) -> bool:
    text = answer.text + str(answer.headers)
    return any(word in text for word in _WORDS)


def _has_error_shape(endpoint: Endpoint, answer: httpx.Response) -> bool:
    """Return whether a refusal has the error format of the dialect."""
    if endpoint.dialect == "ui" and not endpoint.template.endswith(".json"):
        return answer.headers["content-type"].startswith("text/html") and 'role="alert"' in answer.text
    if endpoint.dialect in {"pravega", "schema-repo"}:
        return answer.headers["content-type"].startswith("text/plain") and bool(answer.text)
    body = json.loads(answer.text)
    status = answer.status_code
    match endpoint.dialect:
        case "confluent":
            return sorted(body) == ["error_code", "message"] and str(body["error_code"]).startswith(str(status))
        case "native" | "ui":
            return list(body) == ["error"]
        case "cncf" if endpoint.template.startswith("/$"):
            return list(body) == ["error"] and body["error"]["code"] in {"Unauthorized", "Forbidden"}
        case "cncf":
            return bool(body["status"] == status and answer.headers["content-type"] == "application/problem+json")
        case "xregistry":
            return str(body["type"]).endswith((":unauthorized", ":forbidden"))
        case "rocketmq":
            return bool(body["status"] == status * 100 + 1)
        case _:
            return bool(body["errorCode"] == status * 100 + 1)


async def _check_allowed(world: World, endpoint: Endpoint, sample: Sample, caller: str) -> None:
    await world.restore()
    answer = await world.send(endpoint, sample, caller)
    assert answer.status_code not in {401, 403}, f"{endpoint}: {caller} is refused: {answer.text}"
    assert answer.status_code < 500, f"{endpoint}: {answer.text}"
    if caller == "admin":
        done = answer.is_success or answer.status_code in sample.statuses
        assert done, f"{endpoint}: {answer.status_code} {answer.text}"
    place = endpoint.wanted.place if endpoint.wanted is not None else None
    if place is Place.LIST and sample.shows and caller == "admin":
        assert _shows(answer), f"{endpoint}: the list does not show what is there: {answer.text}"


async def _check_refused(world: World, endpoint: Endpoint, sample: Sample, caller: str) -> None:
    await world.restore()
    seq = world.registry.state.seq
    answer = await world.send(endpoint, sample, caller)
    assert (await world.registry.fresh_state()).seq == seq, f"{endpoint}: {caller} changed something"
    assert endpoint.wanted is not None
    status = answer.status_code
    if endpoint.wanted.place is Place.LIST:
        assert status in {200, 207}, f"{endpoint}: {caller} got {status} {answer.text}"
        assert not _shows(answer), f"{endpoint}: {caller} sees {answer.text}"
    elif sample.each:
        refused = 401 if not caller else 403
        assert str(refused) in answer.text, f"{endpoint}: {caller} is not refused: {answer.text}"
    elif endpoint.wanted.place is Place.INSIDE and status == 404:
        assert MARKER not in answer.text, f"{endpoint}: {caller} sees {answer.text}"
    elif endpoint.dialect == "ui" and not caller and not endpoint.template.endswith(".json"):
        assert status == 303, f"{endpoint}: nobody got {status} {answer.text}"
        assert answer.headers["location"].startswith("/ui/login"), answer.headers["location"]
        assert not _shows(httpx.Response(200, text=answer.text)), f"{endpoint}: nobody sees {answer.text}"
    else:
        assert status == (403 if caller else 401), f"{endpoint}: {caller} got {status} {answer.text}"
        assert _has_error_shape(endpoint, answer), f"{endpoint}: {answer.text}"
        assert not _shows(answer), f"{endpoint}: {caller} sees {answer.text}"
        assert bool(answer.headers.get("www-authenticate")) == (status == 401)


@pytest.mark.parametrize("dialect", MOUNTS, ids=lambda dialect: dialect.name)
async def test_who_may_do_what(world: World, dialect: DialectEntry) -> None:
    """Each endpoint serves callers with its declared right, and refuses all others without a change."""
    wrong: list[str] = []
    handlers = set()
    for endpoint in list_endpoints(world.registry, dialect):
        handlers.add(endpoint.handler)
        sample = SAMPLES[dialect.name].get(endpoint.handler)
        if sample is None or endpoint.wanted is None:
            wrong.append(f"{endpoint}: {'it says no right' if sample else f'no request for {endpoint.handler}'}")
            continue
        if sample.bare is not None and "{" not in endpoint.template:
            sample = sample._replace(resource=sample.bare)
        for caller in CALLERS:
            check = _check_allowed if _may(caller, endpoint.wanted, sample) else _check_refused
            try:
                await check(world, endpoint, sample, caller)
            except AssertionError as error:
                wrong.append(str(error))
    assert not wrong, "\n".join(wrong)
    assert handlers == set(SAMPLES[dialect.name]), "requests for endpoints that are gone"


async def test_operations_that_no_endpoint_wants() -> None:
    """Operations that no endpoint declares are only those that commands require, depending on the request."""
    registry = await Registry.open(await open_log("memory:"))
    wanted = {each.wanted.operation for dialect in MOUNTS for each in list_endpoints(registry, dialect) if each.wanted}
    await registry.close()
    in_commands = {Operation.FORCE, Operation.PURGE, Operation.EXPORT, Operation.UNWRAP_KEYS, Operation.READ_AUDIT}
    assert set(Operation) - wanted <= in_commands
