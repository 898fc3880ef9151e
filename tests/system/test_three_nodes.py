"""Three nodes on one store: clients that know all URLs do not notice the loss of one node."""

from __future__ import annotations

import itertools
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry import SchemaRegistryClient as ConfluentClient
from tests.support.server_process import Running, call, serving
from tests.system.linearizability.stores import STORES

from stele.client import Schema as OurSchema
from stele.client import SchemaRegistryClient

pytestmark = pytest.mark.servers


class Cluster(NamedTuple):
    """Nodes of one store, and the URLs that a client gets."""

    nodes: list[Running]

    @property
    def urls(self) -> str:
        """All URLs, separated by commas."""
        return ",".join(node.url for node in self.nodes)


@pytest.fixture(scope="module", params=["postgres", "kafka"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run three nodes on a running store."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    with ExitStack() as stack:
        store = stack.enter_context(STORES[request.param](folder))
        places = [folder / f"node-{number}" for number in range(3)]
        for place in places:
            place.mkdir()
        nodes = [stack.enter_context(serving("--store", store.url, folder=place)) for place in places]
        yield Cluster(nodes)


def _text(subject: str, number: int) -> str:
    return json.dumps({"type": "enum", "name": "E", "namespace": subject, "symbols": ["A"], "doc": str(number)})


def _work_with_ours(urls: str) -> Callable[[int], int]:
    client = SchemaRegistryClient(urls)

    def work(number: int) -> int:
        registered = client.register("ours", OurSchema(_text("ours", number)))
        assert client.version("ours", number + 1).id == registered.id
        return registered.id

    return work


def _work_with_confluents(urls: str) -> Callable[[int], int]:
    # The client tries the next URL only after its retries, which take seconds. With several URLs it needs none.
    client = ConfluentClient({"url": urls, "max.retries": 0})

    def work(number: int) -> int:
        schema_id = client.register_schema("theirs", Schema(_text("theirs", number), "AVRO"))
        assert client.get_version("theirs", number + 1).schema_id == schema_id
        return int(schema_id)

    return work


def test_the_loss_of_a_node_is_not_seen(cluster: Cluster) -> None:
    """Stele's and Confluent's clients with three URLs continue. The remaining nodes have every acknowledged version."""
    failures: list[BaseException] = []
    acknowledged: dict[str, list[int]] = {"ours": [], "theirs": []}
    done = threading.Event()

    def run(subject: str, work: Callable[[int], int]) -> None:
        try:
            for number in itertools.count():
                if done.is_set():
                    return
                acknowledged[subject].append(work(number))
        except BaseException as error:
            failures.append(error)

    workers = [
        threading.Thread(target=run, args=("ours", _work_with_ours(cluster.urls))),
        threading.Thread(target=run, args=("theirs", _work_with_confluents(cluster.urls))),
    ]
    for worker in workers:
        worker.start()
    _await_more(acknowledged, failures)
    victim = cluster.nodes[0].process
    victim.send_signal(signal.SIGKILL)
    victim.wait(30)
    _await_more(acknowledged, failures)
    done.set()
    for worker in workers:
        worker.join(60)
    assert not failures
    for node in cluster.nodes[1:]:
        for subject, ids in acknowledged.items():
            stored_ids = [
                call(f"{node.url}/subjects/{subject}/versions/{n}").body["id"] for n in range(1, len(ids) + 1)
            ]
            assert stored_ids == ids


def _await_more(acknowledged: dict[str, list[int]], failures: list[BaseException]) -> None:
    wanted = {subject: len(ids) + 20 for subject, ids in acknowledged.items()}
    until = time.monotonic() + 180
    while any(len(acknowledged[subject]) < count for subject, count in wanted.items()):
        assert not failures
        assert time.monotonic() < until
        time.sleep(0.05)
