"""Random walks through all dialects: drawn, played, compared, replayed, shrunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Protocol

from tests.property.dialect_model import (
    cncf,
    confluent,
    native,
    openschema,
    pravega,
    rocketmq,
    schema_repo,
    xregistry,
)
from tests.property.dialect_model.exchange import Ask, Differs, Op
from tests.property.dialect_model.model import Model
from tests.property.dialect_model.model_types import Key
from tests.property.dialect_model.schemas import DRAFTS, Draft
from tests.property.dialect_model.server import Server
from tests.support.examples import PROFILE

SAMPLE = 1 if PROFILE == "everyday" else 2
"""Reads through each dialect after every operation."""
COMPARE_EVERY = 125
"""Operations after which everything all dialects say is compared."""
REPLAY_EVERY = 250
"""Operations after which the log is folded again from its first record."""

KEYS = (Key("", "a"), Key("", "b/c"), Key("t", "a"), Key("", "c"), Key("t", "ü"))


class Dialect(Protocol):
    """A module that speaks one dialect."""

    NAME: str

    def draw(self, random: Random, model: Model, key: Key) -> Op:
        """An operation on a subject."""

    def act(self, model: Model, op: Op) -> Ask:
        """The request of an operation and what it must answer; the model is as after it."""

    def reads(self, model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
        """Everything the dialect says of a subject, and of these schemas in it."""

    def lists(self, model: Model) -> Iterator[Ask]:
        """What the dialect says of all subjects."""


_MODULES: tuple[Dialect, ...] = (confluent, native, pravega, schema_repo, cncf, openschema, rocketmq, xregistry)
_WRITERS = [module for module in _MODULES if module is not native]
DIALECTS: Mapping[str, Dialect] = {module.NAME: module for module in _MODULES}


def draw_operation(random: Random, model: Model) -> Op:
    """An operation through any of the dialects; one subject is more popular than the others."""
    dialect = random.choice([*_MODULES, *_WRITERS])
    return dialect.draw(random, model, random.choice([*KEYS, KEYS[0], KEYS[0]]))


async def play(server: Server, op: Op, model: Model, reads: Reads) -> None:
    """Carry out an operation and compare what all dialects say of its subject. Raises `Differs`."""
    await server.check(DIALECTS[op.door].act(model, op))
    for dialect in DIALECTS.values():
        for ask in reads.some(list(dialect.reads(model, Key(op.namespace, op.name), reads.drafts))):
            await server.check(ask)


async def compare(server: Server, model: Model, drafts: Sequence[Draft]) -> None:
    """Compare everything all dialects say. Raises `Differs`."""
    for dialect in DIALECTS.values():
        for key in KEYS:
            for ask in dialect.reads(model, key, drafts):
                await server.check(ask)
        for ask in dialect.lists(model):
            await server.check(ask)


class Reads:
    """Which reads are made after each operation: as many as drawn of each dialect, all without a generator."""

    def __init__(self, random: Random | None) -> None:
        self._random = random
        self.drafts: Sequence[Draft] = DRAFTS

    def some(self, asks: list[Ask]) -> list[Ask]:
        """Some of the reads of one dialect, and the schemas that are looked up next."""
        if self._random is None:
            return asks
        self.drafts = [self._random.choice(DRAFTS)]
        return self._random.sample(asks, min(len(asks), SAMPLE))


async def walk(server: Server, seed: str, steps: int) -> Model:
    """A walk of so many operations from an empty registry, and what it led to. Raises `Failed`, with what was done."""
    random, model = Random(seed), Model()
    done: list[Op] = []
    reads = Reads(random)
    await server.empty()
    try:
        for step in range(1, steps + 1):
            op = draw_operation(random, model)
            done.append(op)
            await play(server, op, model, reads)
            if step % REPLAY_EVERY == 0:
                await server.replay()
            if step % COMPARE_EVERY == 0:
                await compare(server, model, random.sample(DRAFTS, 3))
    except Differs as error:
        raise Failed(done, error) from error
    return model


class Failed(AssertionError):
    """A walk found a difference."""

    def __init__(self, ops: Sequence[Op], error: Differs) -> None:
        super().__init__(f"{error}")
        self.ops = list(ops)


async def replay_operations(server: Server, ops: Sequence[Op]) -> Differs | None:
    """The difference those operations show, if they do."""
    return (await _find_difference(server, ops))[0]


async def _find_difference(server: Server, ops: Sequence[Op]) -> tuple[Differs | None, bool]:
    """The difference those operations show, and whether it takes reads between them."""
    error = await _replay_operations(server, ops, read_between=False)
    if error is not None:
        return error, False
    return await _replay_operations(server, ops, read_between=True), True


async def _replay_operations(server: Server, ops: Sequence[Op], *, read_between: bool) -> Differs | None:
    """The difference those operations show at their end, or between them and after the log is folded again, too."""
    model = Model()
    await server.empty()
    try:
        for op in ops:
            if read_between:
                await play(server, op, model, Reads(None))
            else:
                await server.check(DIALECTS[op.door].act(model, op))
        await compare(server, model, DRAFTS)
        if read_between:
            await server.replay()
            await compare(server, model, DRAFTS)
    except Differs as error:
        return error
    return None


async def shrink_operations(server: Server, ops: Sequence[Op]) -> tuple[list[Op], Differs | None]:
    """As few of the operations as still show a difference, and which."""
    remaining = list(ops)
    error, read_between = await _find_difference(server, ops)
    size = len(remaining) // 2
    while size and error is not None:
        start = 0
        while start < len(remaining):
            fewer = remaining[:start] + remaining[start + size :]
            difference = await _replay_operations(server, fewer, read_between=read_between)
            if difference is None:
                start += size
            else:
                remaining, error = fewer, difference
        size //= 2
    return remaining, error
