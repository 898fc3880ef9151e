"""Exporters between two real servers, through the unmodified Confluent API: changes are copied with their ids."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from tests.support.server_process import serving

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})
PAID = json.dumps({"type": "record", "name": "Paid", "fields": [{"name": "order", "type": "Order"}]})
NUMBER = '{"type": "int"}'


class Pair(NamedTuple):
    """The source and the destination registry."""

    here: httpx.Client
    there: httpx.Client


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Run a registry that may send requests to this machine, and a destination."""
    folder = tmp_path_factory.mktemp("exporters")
    environ = {"STELE_OUTGOING_NETWORKS": "127.0.0.0/8"}
    with (
        serving("--store", "memory:", folder=folder, environ=environ) as here,
        serving("--store", "memory:", folder=folder) as there,
        httpx.Client(base_url=here.url, timeout=60) as first,
        httpx.Client(base_url=there.url, timeout=60) as second,
    ):
        yield Pair(first, second)


def register(client: httpx.Client, subject: str, schema: str, **members: Any) -> int:
    """Register a schema and return its id."""
    answer = client.post(f"/subjects/{subject}/versions", json={"schema": schema, **members})
    assert answer.is_success, answer.text
    return int(answer.json()["id"])


def start_exporter(pair: Pair, name: str, **members: Any) -> None:
    """Create an exporter to the destination."""
    config = {"schema.registry.url": str(pair.there.base_url)}
    body = {"name": name, "contextType": "NONE", "config": config, **members}
    assert pair.here.post("/exporters", json=body).status_code == 200


def wait_for(find: Callable[[], Any], wanted: Any) -> None:
    """Wait until `find` returns the wanted value."""
    until = time.monotonic() + 120
    while (actual := find()) != wanted:
        assert time.monotonic() < until, actual
        time.sleep(0.1)


def status(pair: Pair, name: str) -> dict[str, Any]:
    """Return the status of an exporter."""
    return dict(pair.here.get(f"/exporters/{name}/status").json())


def test_versions_are_carried_over(pair: Pair) -> None:
    """Old and new versions, their references and deletions are copied with ids and version numbers."""
    register(pair.there, "taken", NUMBER)
    register(pair.here, "left-out", '"string"')
    order = register(pair.here, "base-order", ORDER)
    paid = register(pair.here, "x-paid", PAID, references=[{"name": "Order", "subject": "base-order", "version": 1}])
    start_exporter(pair, "all-x", subjects=["x-*"])
    wait_for(lambda: pair.there.get("/subjects/x-paid/versions/1").json().get("id"), paid)
    assert (
        pair.there.get(f"/schemas/ids/{order}").json()["schema"]
        == pair.here.get(f"/schemas/ids/{order}").json()["schema"]
    )
    register(pair.here, "x-new", '"long"')
    wait_for(lambda: "x-new" in pair.there.get("/subjects").json(), True)
    wait_for(lambda: status(pair, "all-x")["state"], "RUNNING")
    assert sorted(pair.there.get("/subjects").json()) == ["base-order", "taken", "x-new", "x-paid"]
    pair.here.delete("/subjects/x-new")
    wait_for(lambda: "x-new" in pair.there.get("/subjects").json(), False)
    assert "x-new" in pair.there.get("/subjects?deleted=true").json()
    pair.here.delete("/subjects/x-new?permanent=true")
    wait_for(lambda: "x-new" in pair.there.get("/subjects?deleted=true").json(), False)
    register(pair.here, "x-new", '"double"')
    wait_for(lambda: pair.there.get("/subjects/x-new/versions/latest").json().get("schema"), '"double"')


def test_names_and_contexts(pair: Pair) -> None:
    """A subject gets the name and the context that the exporter sets."""
    register(pair.here, "named-a", '"bytes"')
    start_exporter(
        pair, "named", contextType="CUSTOM", context="west", subjects=["named-*"], subjectRenameFormat="dc_${subject}"
    )
    wait_for(lambda: pair.there.get("/subjects?subjectPrefix=:.west:").json(), [":.west:dc_named-a"])
    start_exporter(pair, "own", contextType="AUTO", subjects=["named-*"])
    wait_for(lambda: pair.there.get("/subjects?subjectPrefix=:.own:").json(), [":.own:named-a"])


def test_a_conflict_stops_the_exporter(pair: Pair) -> None:
    """A different schema at the destination stops the exporter with an error. Without it, the exporter continues."""
    taken = register(pair.there, "clash", '{"type": "enum", "name": "E", "symbols": ["A"]}')
    register(pair.here, "clash", '"float"')
    start_exporter(pair, "clashing", subjects=["clash"])
    wait_for(lambda: status(pair, "clashing")["state"], "ERROR")
    assert "conflict" in status(pair, "clashing")["trace"]
    assert pair.there.get(f"/schemas/ids/{taken}").json()["schema"].count("enum") == 1
    pair.there.delete("/subjects/clash")
    pair.there.delete("/subjects/clash?permanent=true")
    assert pair.here.put("/exporters/clashing/resume").status_code == 200
    wait_for(lambda: pair.there.get("/subjects/clash/versions/latest").json().get("schema"), '"float"')


def test_pause_reset_and_bad_settings(pair: Pair) -> None:
    """A paused exporter copies nothing, a reset one starts again, and one without an address reports the setting."""
    start_exporter(pair, "resting", subjects=["rest-*"])
    assert pair.here.put("/exporters/resting/pause").status_code == 200
    assert status(pair, "resting")["state"] == "PAUSED"
    register(pair.here, "rest-a", '"boolean"')
    time.sleep(0.5)
    assert "rest-a" not in pair.there.get("/subjects").json()
    pair.here.put("/exporters/resting/resume")
    wait_for(lambda: "rest-a" in pair.there.get("/subjects").json(), True)
    for query in ("", "?permanent=true"):
        pair.there.delete(f"/subjects/rest-a{query}")
    pair.here.put("/exporters/resting/reset")
    wait_for(lambda: "rest-a" in pair.there.get("/subjects").json(), True)
    start_exporter(pair, "nowhere", subjects=["rest-*"], config={})
    wait_for(lambda: status(pair, "nowhere")["state"], "ERROR")
    assert "schema.registry.url" in status(pair, "nowhere")["trace"]


def delete_for_good(client: httpx.Client, subject: str) -> None:
    """Delete a subject softly, then permanently."""
    for query in ("", "?permanent=true"):
        assert client.delete(f"/subjects/{subject}{query}").is_success


def test_what_was_made_again_replaces_what_was_there(pair: Pair) -> None:
    """Subjects that are purged and created again while the exporter is paused are replaced at the destination.

    One of them is also soft-deleted again.
    """
    names = ("again-a", "again-b", "again-c")
    for name in names:
        register(pair.here, name, '"int"')
    register(pair.here, "again-b", '"long"')
    start_exporter(pair, "remaker", subjects=["again-*"])
    wait_for(lambda: set(names) <= set(pair.there.get("/subjects").json()), True)
    # The second version of `again-b` is the last change.
    wait_for(lambda: pair.there.get("/subjects/again-b/versions").json(), [1, 2])
    pair.here.put("/exporters/remaker/pause")
    for name in names:
        delete_for_good(pair.here, name)
    new = [register(pair.here, name, '"bytes"') for name in names]
    pair.here.delete("/subjects/again-c")
    pair.here.put("/exporters/remaker/resume")
    wait_for(lambda: [pair.there.get(f"/subjects/{name}/versions/1").json().get("id") for name in names[:2]], new[:2])
    assert pair.there.get("/subjects/again-b/versions").json() == [1]
    # Between the deletion of the old subject and the new version, the subject does not exist.
    wait_for(lambda: pair.there.get("/subjects/again-c/versions/1?deleted=true").json().get("schema"), '"bytes"')
    wait_for(lambda: "again-c" in pair.there.get("/subjects").json(), False)
    assert status(pair, "remaker")["state"] == "RUNNING"
    end = status(pair, "remaker")["offset"]
    pair.here.put("/exporters/remaker/reset")
    # The state is RUNNING from the first change on, so wait for the position of the last one.
    wait_for(lambda: status(pair, "remaker")["offset"] >= end, True)
    assert status(pair, "remaker")["state"] == "RUNNING"
    assert [pair.there.get(f"/subjects/{name}/versions/1").json().get("id") for name in names[:2]] == new[:2]


def test_what_others_have_there_stays(pair: Pair) -> None:
    """A deletion does not delete the destination's own subjects, and nothing is added to them."""
    own = register(pair.there, "mine-a", '{"type": "fixed", "name": "F", "size": 3}')
    register(pair.there, "mine-b", '{"type": "fixed", "name": "F", "size": 4}')
    pair.here.put("/config/mine-b", json={"compatibility": "NONE"})
    register(pair.here, "mine-a", '"int"')
    delete_for_good(pair.here, "mine-a")
    register(pair.here, "mine-b", '"int"')
    register(pair.here, "mine-b", '"string"')
    pair.here.delete("/subjects/mine-b/versions/1")
    pair.here.delete("/subjects/mine-b/versions/1?permanent=true")
    start_exporter(pair, "intruder", subjects=["mine-*"])
    wait_for(lambda: status(pair, "intruder")["state"], "ERROR")
    assert "version 1 of the target" in status(pair, "intruder")["trace"]
    assert pair.there.get("/subjects/mine-a/versions/1").json()["id"] == own
    assert pair.there.get("/subjects/mine-b/versions").json() == [1]
    assert pair.there.get("/mode/mine-b").status_code == 404
