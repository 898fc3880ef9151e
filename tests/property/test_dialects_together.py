"""One registry, many dialects: random operations through all dialects, with every read compared with one model.

The model (`dialect_model/model.py`) is the common domain model of the dialects in plain objects. A schema registered
through any dialect is visible through all others, with its numbers and its bytes. A policy set in one is enforced in
all. Soft deletion, purging and closing have their meaning in each. A log that is folded again gives the same state.

`DIALECT_WALK_SEED` sets another seed: the seed of a walk is printed when it fails, with as few operations as show it.
`DIALECT_WALK_STEPS` sets more steps (500 operations in the long form), `DIALECT_WALKS` more walks (20 there).
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from tests.property.dialect_model.exchange import Ask, Op, Request
from tests.property.dialect_model.model import Model
from tests.property.dialect_model.model_types import Key
from tests.property.dialect_model.random_walk import (
    DIALECTS,
    Failed,
    compare,
    draw_operation,
    replay_operations,
    shrink_operations,
    walk,
)
from tests.property.dialect_model.schemas import DRAFTS, READS
from tests.property.dialect_model.server import Server
from tests.support.examples import PROFILE

from stele.apis import cncf, openschema, pravega, rocketmq, schema_repo
from stele.core import queries
from stele.core.commands import CompatibilityCheck
from stele.core.policy import Policy

SEED = os.environ.get("DIALECT_WALK_SEED", "one registry")
LONG_STEPS = 500
STEPS = int(os.environ.get("DIALECT_WALK_STEPS", LONG_STEPS // 2 if PROFILE == "everyday" else LONG_STEPS))
"""Operations of a walk. Each walk has a new registry, so that a failure can be reproduced quickly.

The everyday profile has half as many.
"""
WALKS = int(os.environ.get("DIALECT_WALKS", "2"))


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all tests here."""
    with asyncio.Runner() as shared_runner:
        yield shared_runner


@pytest.fixture(scope="module")
def server(runner: asyncio.Runner) -> Iterator[Server]:
    """All dialects over a log in memory."""
    shared_server = runner.run(Server.open(None))
    yield shared_server
    runner.run(shared_server.close())


async def run_walk(server: Server, seed: str) -> None:
    """Run a walk. A failing one is shrunk, and fails with the remaining operations."""
    try:
        await walk(server, seed, STEPS)
    except Failed as failed:
        ops, error = await shrink_operations(server, failed.ops)
        listing = "\n".join(map(repr, ops if error is not None else failed.ops))
        pytest.fail(f"walk {seed!r}, {len(failed.ops)} operations; these are enough:\n{listing}\n{error or failed}")


@pytest.mark.parametrize("number", range(WALKS))
def test_all_dialects_tell_of_one_registry(server: Server, runner: asyncio.Runner, number: int) -> None:
    """After any operation through any dialect, answers and reads of all of them are those of the model."""
    runner.run(run_walk(server, f"{SEED} {number}"))


def test_all_dialects_tell_of_one_file(runner: asyncio.Runner, tmp_path: Path) -> None:
    """The same over SQLite, whose file is read again every now and then, and at the end by a new node."""

    async def play() -> None:
        server = await Server.open(tmp_path)
        try:
            await run_walk(server, f"{SEED} on disk")
        finally:
            await server.close()

    runner.run(play())


def test_a_new_node_says_the_same(runner: asyncio.Runner, tmp_path: Path) -> None:
    """A node that starts on the log of another one, with or without a snapshot of it, gives every answer it gave."""

    async def play() -> None:
        server = await Server.open(tmp_path)
        try:
            model = await walk(server, f"{SEED} restarted", STEPS // 2)
            for snapshot in (False, True):
                await server.restart(snapshot=snapshot)
                await compare(server, model, DRAFTS)
        finally:
            await server.close()

    runner.run(play())


@pytest.mark.parametrize("seed", range(5))
def test_whoever_comes_first_the_others_find_it(server: Server, runner: asyncio.Runner, seed: int) -> None:
    """One schema sent through all dialects at the same time is one version with one id in all answers."""
    doors = [("confluent", "register"), ("pravega", "add"), ("schema-repo", "post"), ("schema-repo", "put")]
    doors += [("openschema", "register"), ("cncf", "post")]
    ops = [Op(door, what, "", "a", draft=0) for door, what in doors for _ in range(3)]
    Random(seed).shuffle(ops)

    async def play() -> None:
        await server.empty()
        model = Model()
        await server.check(DIALECTS["pravega"].act(model, Op("pravega", "create", "", "a", word="/several/AllowAny")))
        # In CNCF the default namespace must first be created as a group.
        await server.check(DIALECTS["cncf"].act(model, Op("cncf", "group", "", "a")))
        await asyncio.gather(*(server.check(ask) for ask in [DIALECTS[op.door].act(model, op) for op in ops]))
        assert [row.version_number for row in model.live(Key("", "a"))] == [1]
        await compare(server, model, DRAFTS)

    runner.run(play())


# --- whether the tests above can fail -------------------------------------------------------------------------------


def test_the_walk_meets_what_it_is_about(runner: asyncio.Runner) -> None:
    """Every operation of every dialect succeeds and is refused in the walks, and most kinds of refusal occur."""
    done: Counter[tuple[str, str, bool]] = Counter()
    for number in range(20):
        random, model = Random(f"{SEED} {number}"), Model()
        for _ in range(LONG_STEPS):
            op = draw_operation(random, model)
            ask = DIALECTS[op.door].act(model, op)
            done[op.door, op.what, is_refused(ask)] += 1
    operations = {(door, what) for door, what, _ in done}
    assert {door for door, _ in operations} == set(DIALECTS)
    never = {key for key in operations if not done[*key, False]}
    assert not never, "operations that never go well"
    unrefused = {what for door, what in operations if not done[door, what, True]}
    assert unrefused <= ALWAYS


ALWAYS = {"space", "registry", "clear space", "mode", "unmode", "group"}
"""Operations that are never refused."""


def is_refused(ask: Ask) -> bool:
    """Whether the model refuses."""
    status = ask.expected if isinstance(ask.expected, int) else ask.expected[0]
    return bool(status >= 400)


def test_the_pool_is_what_the_table_says(server: Server, runner: asyncio.Runner) -> None:
    """The table of which schema reads which agrees with the compatibility checks, within each format."""

    async def check() -> None:
        for reader in DRAFTS:
            for writer in DRAFTS:
                if reader.format != writer.format or reader.format == "opaque":
                    continue
                body = {"format": reader.format, "schema": reader.raw, "against": [{"schema": writer.raw}]}
                expected = writer.meaning in READS[reader.meaning]
                is_compatible = (await server.answer(Request("POST", "/api/check", body))).json["compatible"]
                assert is_compatible is expected, (reader.meaning, writer.meaning)

    runner.run(check())


def _off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pravega.translate, "build_version_info", _shift_member(pravega.translate.build_version_info, "id")
    )


def _shift_member(original: Callable[..., Any], member: str) -> Callable[..., Any]:
    def shift_member(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        return msgspec.structs.replace(result, **{member: getattr(result, member) + 1})

    return shift_member


def _lax(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: a policy that the dialect cannot express is shown as none."""
    original = Policy.nearest_name.fget  # type: ignore[attr-defined]  # of a property
    lax = property(lambda policy: original(policy) if policy.exact_name else "NONE")
    monkeypatch.setattr(Policy, "nearest_name", lax)


def _return_printed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: one dialect returns a printed text in place of the client's bytes."""
    original = cncf.responses.document_response

    def document_response(operations: Any, state: Any, version: Any) -> Any:
        answer = original(operations, state, version)
        answer.content = answer.content.replace(b", ", b",")
        return answer

    monkeypatch.setattr(cncf.responses, "document_response", document_response)


def _undead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: a dialect without soft deletion shows versions that another one soft-deleted."""
    monkeypatch.setattr(openschema.operations, "get_live_version", lambda state, subject, number: _any(subject, number))
    monkeypatch.setattr(openschema.routes, "get_live_version", lambda state, subject, number: _any(subject, number))


def _any(subject: Any, number: int | None) -> Any:
    return next(row for row in reversed(subject.versions) if number in (None, row.version_number))


def _unbound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: a topic leads to the newest version, not to the one it is bound to."""
    monkeypatch.setattr(
        rocketmq.translate, "find_record", lambda state, row: queries.latest_version(state.find_subject(row.subject))
    )


def _skip_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: one dialect registers without checking the policy."""
    monkeypatch.setattr(
        schema_repo.operations,
        "CompatibilityCheck",
        type("Check", (), {"SKIP": CompatibilityCheck.SKIP, "POLICY": CompatibilityCheck.SKIP}),
    )


async def _failing(server: Server, seed: str) -> list[Op] | None:
    """Return the operations of a walk that fails, None if it does not."""
    try:
        await walk(server, seed, STEPS)
    except Failed as failed:
        return failed.ops
    return None


@pytest.mark.parametrize("plant", [_off_by_one, _lax, _return_printed_text, _undead, _unbound, _skip_policy])
def test_a_planted_fault_is_found(
    server: Server, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """A walk through dialects with a planted fault fails, and its operations reproduce the failure."""
    plant(monkeypatch)

    async def play() -> None:
        for number in range(4):
            if (ops := await _failing(server, f"{SEED} {number}")) is not None:
                assert await replay_operations(server, ops) is not None
                return
        pytest.fail("nobody noticed")

    runner.run(play())


def test_shrinking_leaves_what_matters(server: Server, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that needs three operations is shrunk to these three."""
    _skip_policy(monkeypatch)

    async def play() -> None:
        model_free = [
            Op("confluent", "unmode", "", "a"),
            Op("confluent", "level", "", "a", word="FULL_TRANSITIVE"),
            Op("schema-repo", "create", "", "b/c"),
            Op("schema-repo", "post", "", "a", draft=0),
            Op("schema-repo", "post", "", "b/c", draft=0),
            Op("schema-repo", "post", "", "a", draft=6),
        ]
        ops, error = await shrink_operations(server, model_free)
        assert error is not None
        assert [op.what for op in ops] == ["level", "post", "post"]
        assert {op.name for op in ops} == {"a"}

    runner.run(play())
