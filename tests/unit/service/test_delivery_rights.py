"""A follower gets only events that its owner may read, by the rules in force when they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of
from tests.support.webhook import Webhook

from stele.apis.cncf import application as cncf
from stele.apis.confluent import application as confluent
from stele.apis.confluent.exporting import ExporterSource
from stele.apis.native import application as native
from stele.apis.native.options import NativeOptions
from stele.core.access import AccessRule, AccessRules, NamePattern, ResourceType
from stele.core.commands import RegisterSchema
from stele.core.model import Reference, SubjectKey
from stele.core.ports import TextForm
from stele.service.access import CALLER, AccessControl, Caller, Principal
from stele.service.change_events import EventPosition, read_events
from stele.service.collections import edit_collection, read_collection
from stele.service.delivery.deliverer import Deliverer
from stele.service.delivery.overview import COLLECTION, list_overviews
from stele.service.delivery.sinks import SinkFactory
from stele.service.delivery.subscriptions import SubscriptionSource
from stele.service.outgoing import AddressRules, OutgoingClient
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

pytestmark = pytest.mark.asyncio(loop_scope="module")

NETWORKS = AddressRules(["127.0.0.0/8"])
OPEN = AccessControl(AccessRules((), default_allow=True))


def allow(principal: str, name: str, *operations: str) -> AccessRule:
    """Return a rule for the subjects of the default namespace with this prefix."""
    return AccessRule(
        principal, operations or ("reader",), resource_type=ResourceType.SUBJECT, name=name, pattern=NamePattern.PREFIX
    )


MANAGERS = AccessRule("*", ("manage-exporters",))


def rules(*more: AccessRule) -> AccessControl:
    """Return access control in which everybody manages subscriptions, with further rules."""
    return AccessControl(AccessRules((MANAGERS, *more), default_allow=False))


@contextmanager
def acting(name: str, *groups: str) -> Iterator[None]:
    """Send requests as this user."""
    token = CALLER.set(Caller(Principal(name, frozenset(groups)), "192.0.2.1"))
    try:
        yield
    finally:
        CALLER.reset(token)


@pytest_asyncio.fixture(loop_scope="module")
async def registry() -> AsyncIterator[Registry]:
    """A node."""
    node = await Registry.open(MemoryLog())
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module")
async def delivery(registry: Registry) -> AsyncIterator[None]:
    """Run the delivery of the node."""
    client = OutgoingClient(NETWORKS)
    subscriptions = SubscriptionSource(SinkFactory(client, NETWORKS, ""), "https://registry.example.org")
    task = asyncio.create_task(Deliverer(registry, [subscriptions, ExporterSource(registry, client)]).run())
    yield
    task.cancel()
    await asyncio.wait({task})
    await client.close()


async def register(registry: Registry, *names: str, references: tuple[Reference, ...] = ()) -> None:
    """Register a schema under each name, as the system."""
    for name in names:
        state = await registry.fresh_state()
        text = f'{{"type":"record","name":"R{name.replace("-", "_")}","fields":[]}}'.encode()
        prepared = await registry.parser.prepare_schema(state, "avro", text, references, form=TextForm.PRINTED)
        await registry.execute(RegisterSchema(SubjectKey("", name), prepared.document, prepared.references))


async def subscribe(registry: Registry, hook: Webhook, name: str = "") -> str:
    """Create or replace a subscription, and return its id."""
    async with client_of(cncf(registry)) as client:
        body = {"sink": hook.url, "protocol": "HTTP"}
        answer = await (
            client.put(f"/subscriptions/{name}", json=body) if name else client.post("/subscriptions", json=body)
        )
    assert answer.status_code in {200, 201}, answer.text
    assert "owner" not in answer.json()
    return str(answer.json()["id"])


async def wait_for(hook: Webhook, *names: str) -> None:
    """Wait until first versions of these subjects were delivered, and nothing else."""
    wanted = [f"{name}/versions/1" for name in names]
    await asyncio.to_thread(hook.wait_for, len(wanted))
    assert hook.subjects() == wanted


async def test_a_subscriber_gets_what_its_owner_may_read(registry: Registry, delivery: None) -> None:
    """Events of subjects that the owner may not read are not sent; rights of the owner's groups count, too."""
    registry.access = rules(allow("user:ann", "a-"), allow("group:dev", "d-"))
    with Webhook() as hook:
        with acting("ann", "dev"):
            await subscribe(registry, hook)
        await register(registry, "b-1", "a-1", "b-2", "d-1", "b-3", "a-2")
        await wait_for(hook, "a-1", "d-1", "a-2")
        (row,) = await list_overviews(registry)
        assert row.owner == "ann"


async def test_a_right_taken_away_counts_at_once(registry: Registry, delivery: None) -> None:
    """After a rule is removed, nothing that it allowed is sent any more, not even an event that waits for a retry."""
    registry.access = rules(allow("user:ann", "a-"), allow("user:ann", "c-"))
    with Webhook() as hook:
        with acting("ann"):
            await subscribe(registry, hook)
        first_attempt = asyncio.Event()
        loop = asyncio.get_running_loop()

        def fail(event: object) -> int:
            loop.call_soon_threadsafe(first_attempt.set)
            return 503

        hook.status = fail
        await register(registry, "a-1", "c-1")
        await asyncio.wait_for(first_attempt.wait(), 60)
        registry.access = rules(allow("user:ann", "c-"))
        hook.status = lambda event: 204
        await register(registry, "a-2", "c-2")
        await wait_for(hook, "c-1", "c-2")


async def test_a_subscription_belongs_to_who_wrote_it_last(registry: Registry, delivery: None) -> None:
    """A user who redirects another user's subscription gets only events that this user may read."""
    registry.access = rules(allow("user:ann", "a-"), allow("user:bob", "b-"))
    with Webhook() as hook:
        with acting("ann"):
            name = await subscribe(registry, hook)
        with acting("bob"):
            await subscribe(registry, hook, name)
        await register(registry, "a-1", "b-1")
        await wait_for(hook, "b-1")


async def test_without_an_owner_it_gets_what_everybody_may_read(registry: Registry, delivery: None) -> None:
    """A subscription from an older log without an owner gets events that an anonymous caller may read."""
    with Webhook() as hook:
        with acting("ann"):
            name = await subscribe(registry, hook)
        text = (await read_collection(registry, COLLECTION))[(name,)]
        older = httpx.Response(200, content=text).json()
        del older["owner"]
        content = httpx.Request("PUT", "http://x", json=older).content
        await edit_collection(registry, COLLECTION, lambda items: ({(name,): content}, None))
        registry.access = rules(allow("user:ann", "a-"), allow("*", "b-"))
        await register(registry, "a-1", "b-1")
        await wait_for(hook, "b-1")


async def test_to_see_a_name_is_not_to_learn_its_history(registry: Registry) -> None:
    """An event needs both the right to see its subject in lists and the right to read it."""
    await register(registry, "a-1", "b-1", "c-1")
    registry.access = rules(allow("user:ann", "a-", "list"), allow("user:ann", "b-", "read"), allow("user:ann", "c-"))
    with acting("ann"):
        page = await read_events(registry, EventPosition())
    assert [event.change.subject for event in page.events] == ["c-1"]


async def test_a_stream_of_events_follows_the_rules(registry: Registry) -> None:
    """A caller that waits for events gets those that it may read when they happen."""
    registry.access = rules(allow("user:ann", "a-"), allow("user:ann", "b-"))
    app = native(registry, NativeOptions(public_url="https://registry.example.org"))
    seq = registry.state.seq
    async with client_of(app) as client:
        with acting("ann"):
            waiting = asyncio.create_task(client.get(f"/api/events?after={seq}&wait=40"))
        await asyncio.sleep(0.1)
        registry.access = rules(allow("user:ann", "b-"))
        await register(registry, "a-1", "c-1", "b-1")
        events = (await asyncio.wait_for(waiting, 60)).json()["events"]
    assert [event["subject"] for event in events] == ["/schemagroups/default/schemas/b-1/versions/1"]


async def test_an_exporter_carries_what_its_owner_may_read(registry: Registry) -> None:
    """Subjects that the owner may not read are not exported, and neither is a schema that refers to one."""
    target = await Registry.open(MemoryLog())
    requests: list[tuple[str, str]] = []
    async with client_of(confluent(target)) as far:

        class Relay(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                requests.append((request.method, request.url.path))
                answer = await far.request(
                    request.method, str(request.url), content=await request.aread(), headers=request.headers
                )
                return httpx.Response(answer.status_code, stream=httpx.ByteStream(answer.content))

        client = OutgoingClient(NETWORKS, transport=Relay())
        task = asyncio.create_task(Deliverer(registry, [ExporterSource(registry, client)]).run())
        registry.access = rules(allow("user:ann", "a-"))
        await register(registry, "b-1", "a-1")
        await register(registry, "a-2", references=(Reference("Rb_1", "", "b-1", 1),))
        await register(registry, "a-3")
        body = {
            "name": "e",
            "contextType": "NONE",
            "subjects": ["*"],
            "config": {"schema.registry.url": "http://far.example.com"},
        }
        async with client_of(confluent(registry)) as near:
            with acting("ann"):
                assert (await near.post("/exporters", json=body)).status_code == 200
            try:
                while (await far.get("/subjects")).json() != ["a-1", "a-3"]:
                    await target.wait_for_record(target.state.seq + 1, 20)
            finally:
                task.cancel()
                await asyncio.wait({task})
    assert not any("b-1" in path for _, path in requests)
    await client.close()
    await target.close()
