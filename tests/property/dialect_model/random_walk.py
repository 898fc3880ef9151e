"""Random walks through all dialects: drawn, executed, compared, replayed, shrunk."""

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
"""Number of reads through each dialect after every operation."""
COMPARE_EVERY = 125
"""Number of operations after which all reads of all dialects are compared."""
REPLAY_EVERY = 250
"""Number of operations after which the log is folded again from its first record."""

KEYS = (Key("", "a"), Key("", "b/c"), Key("t", "a"), Key("", "c"), Key("t", "ü"))


class Dialect(Protocol):
    """A module that speaks one dialect."""

    NAME: str

    def draw(self, random: Random, model: Model, key: Key) -> Op:
        """An operation on a subject."""

    def act(self, model: Model, op: Op) -> Ask:
        """Apply an operation to the model. Return its request with the expected answer."""

    def reads(self, model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
        """Yield all reads of a subject through the dialect, and of these schemas in it."""

    def lists(self, model: Model) -> Iterator[Ask]:
        """Yield all lists of subjects of the dialect."""


_MODULES: tuple[Dialect, ...] = (confluent, native, pravega, schema_repo, cncf, openschema, rocketmq, xregistry)
_WRITERS = [module for module in _MODULES if module is not native]
DIALECTS: Mapping[str, Dialect] = {module.NAME: module for module in _MODULES}


def draw_operation(random: Random, model: Model) -> Op:
    """Return an operation through any of the dialects. One subject is drawn more often than the others."""
    dialect = random.choice([*_MODULES, *_WRITERS])
    return dialect.draw(random, model, random.choice([*KEYS, KEYS[0], KEYS[0]]))


async def play(server: Server, op: Op, model: Model, reads: Reads) -> None:
    """Execute an operation and compare reads of its subject through all dialects. Raises `Differs`."""
    await server.check(DIALECTS[op.door].act(model, op))
    for dialect in DIALECTS.values():
        for ask in reads.some(list(dialect.reads(model, Key(op.namespace, op.name), reads.drafts))):
            await server.check(ask)


async def compare(server: Server, model: Model, drafts: Sequence[Draft]) -> None:
    """Compare all reads of all dialects. Raises `Differs`."""
    for dialect in DIALECTS.values():
        for key in KEYS:
            for ask in dialect.reads(model, key, drafts):
                await server.check(ask)
        for ask in dialect.lists(model):
            await server.check(ask)


class Reads:
    """The reads after each operation: a sample for each dialect, or all of them without a generator."""

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
    """Return the model after a walk of that many operations from an empty registry.

    Raises `Failed` with the operations that were executed.
    """
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
    """Raised when a walk found a difference."""

    def __init__(self, ops: Sequence[Op], error: Differs) -> None:
        super().__init__(f"{error}")
        self.ops = list(ops)


async def replay_operations(server: Server, ops: Sequence[Op]) -> Differs | None:
    """Return the difference that those operations cause, None without one."""
    return (await _find_difference(server, ops))[0]


async def _find_difference(server: Server, ops: Sequence[Op]) -> tuple[Differs | None, bool]:
    """Return the difference that those operations cause, and whether reads between them are needed for it."""
    error = await _replay_operations(server, ops, read_between=False)
    if error is not None:
        return error, False
    return await _replay_operations(server, ops, read_between=True), True


async def _replay_operations(server: Server, ops: Sequence[Op], *, read_between: bool) -> Differs | None:
    """Return the difference that those operations cause at their end.

    With read_between, reads are compared after each operation, and again after the log is folded anew.
    """
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
    """Return as few of the operations as still cause a difference, and the difference."""
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
