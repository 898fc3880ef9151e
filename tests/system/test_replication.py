"""Replications between live servers that are killed, paused or cut off."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.cuttable_relay import CuttableRelay
from tests.support.server_process import serving, wait_ready
from tests.support.time_limit import limit_time

from stele.service.delivery.status import LEASE_COLLECTION
from stele.service.replication.documents import COLLECTION, name_lease

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, httpx.Client]]:
    """Run three live registries, the second one with two workers."""
    folder = tmp_path_factory.mktemp("replication")
    with ExitStack() as stack:
        clients = {}
        for name in NAMES:
            flags = ("--store", f"sqlite:///{folder}/{name}.db", "--workers", "2" if name == "b" else "1")
            server = stack.enter_context(serving(*flags, folder=folder, environ=environ_of(name)))
            clients[name] = stack.enter_context(httpx.Client(base_url=server.url, timeout=30))
        yield clients


def environ_of(name: str) -> dict[str, str]:
    """Return the settings of a registry that may send requests to this machine."""
    return {"STELE_PUBLIC_URL": f"http://{name}.example", "STELE_OUTGOING_NETWORKS": "127.0.0.0/8"}


def wait_for(find: Callable[[], Any], wanted: Any, seconds: float = 120.0) -> None:
    """Wait until `find` returns the wanted value."""
    until = time.monotonic() + seconds
    while (actual := find()) != wanted:
        assert time.monotonic() < until, actual
        time.sleep(0.05)


def register(client: httpx.Client, subject: str, schema: str = '"string"') -> None:
    """Register a schema."""
    answer = client.post(f"/subjects/{subject}/versions", json={"schema": schema})
    assert answer.is_success, answer.text


def create(client: httpx.Client, name: str, direction: str, other: str, **members: Any) -> None:
    """Create a replication."""
    body = {"name": name, "direction": direction, "registry": {"url": other}, **members}
    answer = client.post("/api/replications", json=body)
    assert answer.status_code == 201, answer.text


def status(client: httpx.Client, name: str) -> dict[str, Any]:
    """Return the status of a replication."""
    return dict(client.get(f"/api/replications/{name}").json()["status"])


def uris(client: httpx.Client) -> dict[str, str]:
    """Return the uids of all active versions by URI."""
    rows = client.post("/api/versions/read", json={}).json()["versions"]
    return {row["uri"]: row["uid"] for row in rows if "state" not in row}


def test_hub_and_peers_converge(servers: dict[str, httpx.Client]) -> None:
    """A pushes to the hub b, c pulls from it, and b pulls from c: all have the same URIs, also after deletions."""
    a, b, c = (servers[name] for name in NAMES)
    register(a, "of-a")
    register(c, "of-c", '"int"')
    create(a, "to-hub", "push", str(b.base_url))
    create(c, "from-hub", "pull", str(b.base_url))
    create(b, "from-c", "pull", str(c.base_url))
    expected = uris(a) | uris(c)
    wait_for(lambda: uris(b), expected)
    wait_for(lambda: uris(c), expected)
    register(a, "later")
    with limit_time(5, time.monotonic):
        wait_for(lambda: c.get("/subjects/later/versions/1").status_code, 200)
    for subject in ("of-a", "later"):
        a.delete(f"/subjects/{subject}")
        a.delete(f"/subjects/{subject}?permanent=true")
    wait_for(lambda: c.get("/subjects?deleted=true").json(), ["of-c"])
    register(a, "later", '"double"')
    wait_for(lambda: c.get("/subjects/later/versions/latest").json().get("schema"), '"double"')
    assert uris(a) | uris(c) == uris(b) == uris(c)
    assert a.get("/subjects").json() == ["later"]
    # A temporary conflict stays in the status until the next one is written, a second later.
    wait_for(lambda: status(c, "from-hub").get("conflict_count", 0), 0)
    for client, name in ((a, "to-hub"), (c, "from-hub"), (b, "from-c")):
        assert client.delete(f"/api/replications/{name}").status_code == 204


def test_pause_conflict_and_metrics(servers: dict[str, httpx.Client]) -> None:
    """A paused replication rests and misses nothing; API and metrics show a conflict, and no secret."""
    a, b, _ = (servers[name] for name in NAMES)
    register(a, "mine", '"int"')
    register(b, "mine", '"bytes"')
    registry = {"url": str(a.base_url), "user": "u", "password": "hunter2"}
    create(b, "only-mine", "pull", "http://x", registry=registry, subjects=["mi*", "rest*"])
    wait_for(lambda: status(b, "only-mine").get("conflict_count"), 1)
    response = b.get("/api/replications/only-mine")
    assert "hunter2" not in response.text
    conflict = response.json()["status"]["conflicts"][0]
    assert (conflict["subject"], conflict["code"]) == ("mine", "authority_differs")
    # Another worker may answer, and its metrics cover only the records that it has read.
    wait_for(lambda: 'stele_replication_conflicts{replication="only-mine"} 1.0' in b.get("/metrics").text, True)
    end = b.get("/api/journal?limit=0").json()["end"]
    assert b.post("/api/replications/only-mine/pause").json()["replication"]["state"] == "paused"
    # The worker that applies the changes reads the pause later than the one that answered.
    wait_for(lambda: has_let_go(b, "only-mine", end), True)
    register(a, "rested")
    time.sleep(0.5)
    assert b.get("/subjects/rested/versions").status_code == 404
    b.post("/api/replications/only-mine/resume")
    wait_for(lambda: b.get("/subjects/rested/versions/1").status_code, 200)
    b.delete("/subjects/mine")
    b.delete("/subjects/mine?permanent=true")
    register(a, "mine", '"long"')
    wait_for(
        lambda: b.get("/subjects/mine/versions").json(),
        [1, 2] if a.get("/subjects/mine/versions").json() == [1, 2] else [1],
    )
    wait_for(lambda: status(b, "only-mine").get("conflict_count", 0), 0)
    b.delete("/api/replications/only-mine")


def test_bad_requests(servers: dict[str, httpx.Client]) -> None:
    """An invalid replication is refused with the reason. An unknown name gets 404."""
    a = servers["a"]
    good = {"name": "r", "direction": "pull", "registry": {"url": "http://x.example"}}
    for change in (
        {"name": "a b"},
        {"registry": {"url": "ftp://x"}},
        {"registry": {"url": "http://u:p@x"}},
        {"rename": "all"},
        {"subjects": []},
        {"poll_seconds": 0},
        {"direction": "push", "registry": {"url": "http://x", "kind": "cncf"}},
        {"direction": "sideways"},
    ):
        answer = a.post("/api/replications", json={**good, **change})
        assert answer.status_code == 422, (change, answer.text)
        assert answer.json()["error"]["message"]
    assert a.get("/api/replications/nowhere").status_code == 404
    assert a.post("/api/versions/read", json={"uids": ["zz"]}).status_code == 422
    assert a.get("/api/replications").json() == {"replications": []}


def test_a_cut_link_is_told_and_mended(servers: dict[str, httpx.Client]) -> None:
    """While the source is unreachable, lag and reason are shown. Afterwards all versions arrive."""
    a, c = servers["a"], servers["c"]
    port = a.base_url.port
    assert port is not None
    with CuttableRelay(port) as relay:
        create(c, "cut", "pull", f"http://127.0.0.1:{relay.port}", subjects=["cut-*"])
        register(a, "cut-1")
        wait_for(lambda: c.get("/subjects/cut-1/versions/1").status_code, 200)
        relay.cut()
        register(a, "cut-2")
        wait_for(lambda: status(c, "cut").get("phase"), "failing")
        replication = c.get("/api/replications/cut").json()
        assert replication["status"]["last_error"]
        assert replication["lag_seconds"] > 0
        relay.mend()
        wait_for(lambda: c.get("/subjects/cut-2/versions/1").status_code, 200)
        wait_for(lambda: status(c, "cut").get("phase"), "following")
    c.delete("/api/replications/cut")


def test_a_killed_target_goes_on(tmp_path: Path, servers: dict[str, httpx.Client]) -> None:
    """After SIGKILL during a copy, the next start copies the rest, each version once."""
    a = servers["a"]
    for number in range(300):
        register(a, f"many-{number}", f'{{"type":"fixed","name":"F{number}","size":8}}')
    store = ("--store", f"sqlite:///{tmp_path}/killed.db")
    with (
        serving(*store, folder=tmp_path, environ=environ_of("killed")) as first,
        httpx.Client(base_url=first.url, timeout=60) as k,
    ):
        create(k, "all", "pull", str(a.base_url), subjects=["many-*"])
        wait_for(lambda: len(k.get("/subjects").json()) > 0, True)
        os.killpg(first.process.pid, signal.SIGKILL)
        first.process.wait()
    with (
        serving(*store, folder=tmp_path, environ=environ_of("killed")) as again,
        httpx.Client(base_url=again.url, timeout=60) as k,
    ):
        wait_ready(again.url, again.process)
        wait_for(lambda: len(k.get("/subjects").json()), 300)
        wanted = {uri: uid for uri, uid in uris(a).items() if "/many-" in uri}
        assert uris(k) == wanted
        registered = [row for row in k.get("/api/journal?limit=1000").json()["entries"] if row["kind"] == "registered"]
        assert len(registered) == len({row["subject"] for row in registered}) == 300


def test_a_node_tells_of_each_of_many_replications(servers: dict[str, httpx.Client]) -> None:
    """Idle replications report that they follow. One that fails reports the reason, and its lag grows."""
    a, c = servers["a"], servers["c"]
    idle = [f"idle-{number}" for number in range(5)]
    for name in idle:
        create(c, name, "pull", str(a.base_url), subjects=["no-such-*"])
    create(c, "unreachable", "pull", "http://127.0.0.1:1")
    wait_for(lambda: [status(c, name).get("phase") for name in idle], ["following"] * 5)
    wait_for(lambda: status(c, "unreachable").get("phase"), "failing")
    assert status(c, "unreachable")["last_error"] == "Unavailable"
    assert c.get("/api/replications/unreachable").json()["lag_seconds"] > 0
    for name in (*idle, "unreachable"):
        c.delete(f"/api/replications/{name}")


def test_nodes_share_replications_and_take_over(tmp_path: Path, servers: dict[str, httpx.Client]) -> None:
    """Two nodes share three replications. After SIGKILL of one, the other runs all within 10 s, and nothing twice."""
    a = servers["a"]
    store = ("--store", f"sqlite:///{tmp_path}/shared.db")
    names = [f"share-{number}" for number in range(3)]
    with (
        serving(*store, folder=tmp_path, environ=environ_of("shared")) as first,
        serving(*store, folder=tmp_path, environ=environ_of("shared")) as second,
        httpx.Client(base_url=first.url, timeout=30) as one,
        httpx.Client(base_url=second.url, timeout=30) as two,
    ):
        wait_for_both(one, two, str(a.base_url))
        for name in names:
            create(one, name, "pull", str(a.base_url), subjects=[f"{name}-*"])
            wait_for(lambda name=name: bool(find_node(two, name)), True)
        nodes = Counter(find_node(two, name) for name in names)
        assert len(nodes) == 2, nodes
        wait_for(lambda: sorted(count_here(client) for client in (one, two)), sorted(nodes.values()))
        begun = time.monotonic()
        for name in names:
            register(a, f"{name}-x")
        for name in names:
            wait_for(lambda name=name: two.get(f"/subjects/{name}-x/versions/1").status_code, 200)
        usual = time.monotonic() - begun
        for name in names:
            wait_for(lambda name=name: status(two, name).get("registered"), 1)
        os.killpg(first.process.pid, signal.SIGKILL)
        first.process.wait()
        # A busy machine takes longer, also without a takeover.
        with limit_time(10 + 2 * usual, time.monotonic):
            for name in names:
                register(a, f"{name}-y")
            for name in names:
                wait_for(lambda name=name: two.get(f"/subjects/{name}-y/versions/1").status_code, 200)
        assert len({find_node(two, name) for name in names}) == 1
        wait_for(lambda: count_here(two), 3)
        rows = [row for row in two.get("/api/journal?limit=1000").json()["entries"] if row["kind"] == "registered"]
        assert Counter(row["subject"] for row in rows) == dict.fromkeys((f"{n}-{x}" for n in names for x in "xy"), 1)
        for name in names:
            wait_for(lambda name=name: status(two, name).get("registered"), 2)


def wait_for_both(one: httpx.Client, two: httpx.Client, source: str) -> None:
    """Wait until two nodes run replications, then delete these replications.

    A node loads its replication code with its first replication. On a busy machine one node may load it seconds earlier
    and would take all replications.
    """
    early: list[str] = []
    while len({find_node(two, name) for name in early}) < 2:
        early.append(f"early-{len(early)}")
        create(one, early[-1], "pull", source, subjects=["no-such-*"])
        wait_for(lambda: bool(find_node(two, early[-1])), True)
    for name in early:
        assert one.delete(f"/api/replications/{name}").status_code == 204


def has_let_go(client: httpx.Client, name: str, after: int) -> bool:
    """Return whether a node has released the lease of a replication after its pause.

    Only entries of the journal after the position `after` count. The lease may have been renewed just before the
    pause.
    """
    rows = client.get("/api/journal", params={"after": after, "limit": 1000}).json()["entries"]
    changed = [(row["details"]["collection"], row["details"]["key"]) for row in rows if "collection" in row["details"]]
    pause = (COLLECTION, [name])
    return pause in changed and (LEASE_COLLECTION, [name_lease(name)]) in changed[changed.index(pause) :]


def find_node(client: httpx.Client, name: str) -> str:
    """Return the name of the node that runs a replication."""
    return str(client.get(f"/api/replications/{name}").json()["node"])


def count_here(client: httpx.Client) -> int:
    """Return how many replications run in a server, by its metrics."""
    lines = client.get("/metrics").text.splitlines()
    return sum(line.startswith("stele_replication_is_here{") and line.endswith(" 1.0") for line in lines)
