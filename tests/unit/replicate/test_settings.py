"""Settings are replicated with their subjects: they are set, changed and removed; settings of other clients stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from stele.client import Schema
from stele.protocol.replication import ConflictCode, LevelName, LevelSettings, SettingsScope, SubjectName
from stele.replicate.confluent_target import ConfluentTarget
from stele.replicate.dump_target import ProcessMemory
from stele.replicate.replicator import ReplicationOutcome, Replicator, Scope
from stele.replicate.settings_plan import plan_settings
from stele.replicate.stele_registry import HttpApi, SteleRegistry
from stele.service.subject_patterns import Renaming
from stele.testing import registry
from stele.testing.registry_box import RegistryBox

A, B, C = "http://a.example", "http://b.example", "http://c.example"


@pytest.fixture
def pair() -> Iterator[tuple[RegistryBox, RegistryBox]]:
    """A source with one subject, and a target."""
    with registry({"s": '"int"'}, public_url=A) as a, registry(public_url=B) as b:
        yield a, b


def ask(box: RegistryBox, method: str, path: str, level: str | None = None) -> Any:
    """Send a request about a level to the Confluent API, and return the result."""
    body = None if level is None else {"compatibility": level}
    with httpx.Client(transport=box.transport, base_url="http://x") as client:
        answer = client.request(method, f"/config{path}", json=body)
    return answer.json().get("compatibilityLevel", answer.status_code)


def make_replicator(a: RegistryBox, b: RegistryBox, scope: Scope) -> Replicator:
    """Return a replication between two registries of Stele."""
    return Replicator(SteleRegistry(HttpApi(a.client), "a"), SteleRegistry(HttpApi(b.client), "b"), scope)


def bring(a: RegistryBox, b: RegistryBox, scope: Scope | None = None) -> ReplicationOutcome:
    """Replicate once, and check that a second run does nothing."""
    work = make_replicator(a, b, scope or Scope())
    outcome = work.synchronize()
    again = work.make_plan()[0]
    assert again.is_empty
    assert {row.key for row in again.conflicts} == {row.key for row in outcome.conflicts}
    return outcome


def test_a_level_comes_changes_and_goes(pair: tuple[RegistryBox, RegistryBox]) -> None:
    """The target gets the level of the source; when it is removed in the source, the target inherits again."""
    a, b = pair
    ask(a, "PUT", "/s", "FULL_TRANSITIVE")
    assert bring(a, b).settings == 1
    assert ask(b, "GET", "/s") == "FULL_TRANSITIVE"
    ask(a, "PUT", "/s", "FORWARD")
    assert bring(a, b).settings == 1
    assert ask(b, "GET", "/s") == "FORWARD"
    ask(a, "DELETE", "/s")
    assert bring(a, b).settings == 1
    assert ask(b, "GET", "/s") == 404
    assert bring(a, b).settings == 0


def test_diff_shows_settings(pair: tuple[RegistryBox, RegistryBox]) -> None:
    """A plan has the old and the new settings of a level; the scope `none` leaves them out."""
    a, b = pair
    bring(a, b)
    ask(a, "PUT", "/s", "FULL")
    (change,) = make_replicator(a, b, Scope()).make_plan()[0].settings
    assert (change.subject, change.seen, change.source) == ("s", None, A)
    assert change.values is not None
    assert set(change.values) == {"policy"}
    assert make_replicator(a, b, Scope(settings=SettingsScope.NONE)).make_plan()[0].is_empty


def test_what_somebody_else_set_is_a_conflict(pair: tuple[RegistryBox, RegistryBox]) -> None:
    """A level that was set or changed at the target stays, and is a conflict until both are equal."""
    a, b = pair
    ask(a, "PUT", "/s", "FULL")
    bring(a, b)
    ask(b, "PUT", "/s", "NONE")
    ask(a, "PUT", "/s", "BACKWARD")
    (conflict,) = bring(a, b).conflicts
    assert (conflict.subject, conflict.code) == ("s", ConflictCode.SETTINGS_DIFFER)
    assert ask(b, "GET", "/s") == "NONE"
    ask(b, "DELETE", "/s")
    assert bring(a, b).conflicts
    ask(b, "PUT", "/s", "BACKWARD")
    assert not bring(a, b).conflicts


def test_a_subject_that_is_made_again_begins_anew(pair: tuple[RegistryBox, RegistryBox]) -> None:
    """When a subject is deleted, its replicated settings are forgotten: the recreated one gets the new level."""
    a, b = pair
    ask(a, "PUT", "/s", "FULL")
    bring(a, b)
    for query in ("", "?permanent=true"):
        with httpx.Client(transport=a.transport, base_url="http://x") as client:
            assert client.delete(f"/subjects/s{query}").is_success
    bring(a, b)
    a.client.register("s", Schema('"long"'))
    ask(a, "PUT", "/s", "FORWARD")
    assert not bring(a, b).conflicts
    assert ask(b, "GET", "/s") == "FORWARD"


def test_levels_above_come_with_all(pair: tuple[RegistryBox, RegistryBox]) -> None:
    """The scope `all` replicates levels of the registry and of namespaces, these under the target's names."""
    a, b = pair
    a.client.register(":.n:t", Schema('"int"'))
    ask(a, "PUT", "", "FULL")
    ask(a, "PUT", "/:.n:", "FORWARD")
    assert bring(a, b).settings == 0
    assert bring(a, b, Scope(settings=SettingsScope.ALL)).settings == 2
    assert (ask(b, "GET", ""), ask(b, "GET", "/:.n:")) == ("FULL", "FORWARD")
    with registry(public_url=C) as c:
        named = Scope((":.n:*",), Renaming("${subject}", "eu.${namespace}"), SettingsScope.ALL)
        bring(a, c, named)
        assert ask(c, "GET", "/:.eu.n:") == "FORWARD"


def test_a_confluent_target_gets_its_levels(pair: tuple[RegistryBox, RegistryBox]) -> None:
    """`/config` of a subject is set, changed and removed; a policy without a name there becomes a stricter one."""
    a, b = pair
    memory = ProcessMemory()
    work = Replicator(
        SteleRegistry(HttpApi(a.client), "a"), ConfluentTarget(b.client, "b", B, memory), Scope((":*:s",))
    )
    with httpx.Client(transport=a.transport, base_url="http://x") as client:
        exact = {"kind": "directional", "backward": "since:1", "forward": "none", "checkers": []}
        assert client.put("/config/s", json={"steleCompatibility": exact}).is_success
    assert work.synchronize().settings == 1
    assert ask(b, "GET", "/s") == "BACKWARD_TRANSITIVE"
    assert work.make_plan()[0].is_empty
    ask(a, "PUT", "/s", "NONE")
    assert work.synchronize().settings == 1
    assert ask(b, "GET", "/s") == "NONE"
    ask(b, "PUT", "/s", "FULL")
    ask(a, "DELETE", "/s")
    assert [row.code for row in work.synchronize().conflicts] == [ConflictCode.SETTINGS_DIFFER]
    ask(b, "PUT", "/s", "NONE")
    assert work.synchronize().settings == 1
    assert ask(b, "GET", "/s") == 404


@pytest.mark.parametrize(
    ("there", "changes", "conflicts"),
    [
        (LevelSettings("", "s"), 1, 0),
        (LevelSettings("", "s", {"policy": 2}), 0, 1),
        (LevelSettings("", "s", {"policy": 2}, {"policy": 2}, A), 1, 0),
        (LevelSettings("", "s", {"policy": 2}, {"policy": 2}, B), 1, 0),
        (LevelSettings("", "s", {"policy": 1}), 0, 0),
        (LevelSettings("", "s", None, {"policy": 2}, A), 0, 1),
    ],
)
def test_only_what_was_brought_is_changed(there: LevelSettings, changes: int, conflicts: int) -> None:
    """Only replicated settings are changed; the authority may also change those of another replication."""
    level = LevelName("", "s")
    wanted = [LevelSettings("", "s", {"policy": 1})]
    plan = plan_settings(wanted, {level: there}, A, {SubjectName("", "s"): A})
    assert (len(plan.changes), len(plan.conflicts)) == (changes, conflicts)


def test_a_hub_leaves_what_the_authority_brings() -> None:
    """A registry that is not the authority of a subject leaves replicated settings unchanged, without a conflict."""
    there = {LevelName("", "s"): LevelSettings("", "s", {"policy": 2}, {"policy": 2}, A)}
    plan = plan_settings([LevelSettings("", "s", {"policy": 1})], there, B, {SubjectName("", "s"): A})
    assert plan == ((), ())
    registry_level = {LevelName(): LevelSettings(None, None, {"policy": 2}, {"policy": 2}, A)}
    assert len(plan_settings([LevelSettings(values={"policy": 1})], registry_level, B, {}).conflicts) == 1
