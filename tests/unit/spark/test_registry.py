"""Pinned schemas and look-ups: which requests are sent, and when."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import httpx
import pytest

from stele.client import RegisteredSchema, ResolvedSchema, Schema, SchemaRegistryClient, SchemaSnapshot
from stele.errors import ContentNotFound, DataError, Invalid, RegistryUnreachable, VersionNotFound
from stele.spark.registry import (
    MAX_CLIENTS,
    UNKNOWN_TTL,
    ClientFactory,
    SchemaLookup,
    as_picklable,
    get_client,
    pin_schemas,
)

PINNED = SchemaSnapshot(
    (
        ResolvedSchema('"int"', id=1, subject="s", version=1),
        ResolvedSchema('"long"', id=2, subject="s", version=2),
        ResolvedSchema('"int"', id=1, subject="s", version=3),
        ResolvedSchema("{}", "JSON", id=9, subject="other", version=1),
    )
)


class FakeRegistry:
    """A registry that knows id 5, counts requests, and can be unavailable."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.contexts: set[str] = set()
        self.known = {5: '"string"'}
        self.gone = False

    def snapshot(self, *, subjects: Iterable[str] = ()) -> SchemaSnapshot:
        """Return the pinned schemas."""
        return PINNED

    def resolve(self, schema: int, *, context: str = "") -> ResolvedSchema:
        """Return a known schema, or raise what the real registry raises."""
        self.contexts.add(context)
        self.asked.append(schema)
        if self.gone:
            raise RegistryUnreachable("nobody answers")
        if schema not in self.known:
            raise ContentNotFound(schema)
        return ResolvedSchema(self.known[schema], id=schema)

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Raise an error: the tests do not register."""
        raise NotImplementedError

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Raise an error: the tests do not look up."""
        raise NotImplementedError


def test_the_reader_is_latest_a_number_or_a_text() -> None:
    """A reader can be `latest`, a number or a text; other words are unknown versions."""
    assert pin_schemas(PINNED, "s").reader_version == 3
    assert pin_schemas(PINNED, "s", 2).reader.text == '"long"'
    assert pin_schemas(PINNED, "s", "2").reader_version == 2
    assert pin_schemas(PINNED, "s", '"bytes"').reader_version == 0
    with pytest.raises(VersionNotFound):
        pin_schemas(PINNED, "s", "newest")


def test_an_id_of_two_versions_counts_as_the_newer() -> None:
    """The id of a schema that was registered again belongs to the later version."""
    assert pin_schemas(PINNED, "s").versions == {1: 3, 2: 2}


def test_ids_are_asked_for_once() -> None:
    """Pinned ids are never requested, known ones once, and unknown ones again after a while.

    An outage is raised and not cached.
    """
    fake, now = FakeRegistry(), [0.0]
    lookup = SchemaLookup(pin_schemas(PINNED, "s"), lambda: fake, lambda: now[0])
    assert lookup(1) is not None
    assert fake.asked == []
    assert [lookup(5) is lookup(5), lookup(7), lookup(7)] == [True, None, None]
    assert fake.asked == [5, 7]
    fake.known[7] = '"int"'
    now[0] = UNKNOWN_TTL + 1
    assert lookup(7) is not None
    fake.gone = True
    for _ in range(2):
        with pytest.raises(RegistryUnreachable):
            lookup(8)
    assert lookup.requested_ids == {1, 5, 7, 8}


def test_schemas_of_other_formats_are_of_no_use() -> None:
    """An id of a JSON schema, or of a text that is not a schema, is an error of its records."""
    fake = FakeRegistry()
    fake.known[6] = "no json"
    lookup = SchemaLookup(pin_schemas(PINNED, "s"), lambda: fake)
    with pytest.raises(DataError, match="its format is JSON"):
        lookup(9)
    with pytest.raises(DataError, match="not a valid Avro schema"):
        lookup(6)


def test_ids_count_in_the_context_of_the_subject() -> None:
    """The same id in another context is another schema: neither pins nor look-ups mix them."""
    both = SchemaSnapshot(
        (
            ResolvedSchema('"int"', id=1, subject=":.team:s", version=1, context="team"),
            ResolvedSchema('"long"', id=1, subject="s", version=1),
        )
    )
    fake = FakeRegistry()
    lookup = SchemaLookup(pin_schemas(both, ":.team:s"), lambda: fake)
    schema = lookup(1)
    assert schema is not None
    assert schema.root.kind == "int"
    assert lookup(5) is not None
    assert fake.contexts == {"team"}


def test_a_process_opens_one_client_for_one_function() -> None:
    """A function that tasks unpickle many times has one client per process, and few clients stay open."""
    clients: list[FakeRegistry] = []

    def connect() -> FakeRegistry:
        clients.append(FakeRegistry())
        return clients[-1]

    named = as_picklable(connect)
    assert isinstance(named, ClientFactory)
    assert as_picklable(connect) == named
    first = get_client(connect)
    assert get_client(ClientFactory(named.name, FakeRegistry)) is first, "as tasks have it: another function, its name"
    for _ in range(MAX_CLIENTS):
        get_client(partial(FakeRegistry))
    assert get_client(connect) is not first
    assert len(clients) == 2
    with pytest.raises(Invalid, match="a FakeRegistry cannot be sent to workers"):
        as_picklable(FakeRegistry())  # type: ignore[arg-type]  # on purpose


class _ClosedTransport(httpx.BaseTransport):
    """A transport that returns no subject given, and counts how often it is closed."""

    closings = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=[])

    def close(self) -> None:
        self.closings += 1


def test_a_client_that_made_room_closes_after_its_last_use() -> None:
    """A client that was dropped from the cache still works, and closes its connections after its last use."""
    transport = _ClosedTransport()

    def connect() -> SchemaRegistryClient:
        return SchemaRegistryClient("http://nowhere", transport=transport)

    client = get_client(connect)
    assert isinstance(client, SchemaRegistryClient)
    functions = [partial(FakeRegistry) for _ in range(MAX_CLIENTS)]
    for function in functions:
        get_client(function)
    assert client.subjects() == []
    assert transport.closings == 0
    del client
    assert transport.closings == 1
    assert get_client(connect) is get_client(connect)
    assert transport.closings == 1


def test_threads_that_open_a_client_at_once_share_it() -> None:
    """Threads that open a client at the same time get the same one, and the other clients are closed."""
    transports = [_ClosedTransport() for _ in range(4)]
    unused, together = iter(transports), Barrier(len(transports))

    def connect() -> SchemaRegistryClient:
        together.wait(240)
        return SchemaRegistryClient("http://nowhere", transport=next(unused))

    with ThreadPoolExecutor(len(transports)) as pool:
        clients = list(pool.map(lambda _: get_client(connect), transports))
    assert len({id(client) for client in clients}) == 1
    assert sum(transport.closings for transport in transports) == len(transports) - 1
