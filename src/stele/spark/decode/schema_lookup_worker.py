"""Programs of writers' schemas by id, in the form that the jar needs; on executors, a process that the jar asks.

The jar starts `python -m stele.spark.decode.schema_lookup_worker` on an executor when it meets an id that was not
pinned. The first line that the jar writes is the task, base64 of what `LookupTask.pack` pickled. Each further line is
an id, and each answer is a line of JSON with one of

    program   the instructions to read the writer's data
    refused   why its records cannot be read
    failed    why the registry could not be asked; the task fails, as it must in an outage

or with none of them when there is no such schema. The process ends when the jar does, or after `IDLE_SECONDS` without a
question.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import select
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stele.client import SchemaSnapshot
from stele.errors import DataError, SteleError
from stele.formats.avro.model import AvroSchema
from stele.spark.decode.rules import READ_MODES, find_rule
from stele.spark.engines.base import FindWriter
from stele.spark.engines.jvm.programs import decode_program
from stele.spark.engines.python import reader as checked
from stele.spark.engines.resolve import Resolver
from stele.spark.registry import PinnedSchemas, RegistryLike, SchemaLookup, parse_avro

IDLE_SECONDS = 60.0
"""Seconds without a question after which the process ends."""


class LookupTask(msgspec.Struct, frozen=True):
    """The task of a lookup process: the reader, and the registry to ask.

    With `refusing`, a writer's schema that has rules for reading is refused. `recursion` is as in `unroll_schema`.
    """

    pinned: PinnedSchemas
    registry: RegistryLike
    patience: float = 0.0
    refusing: bool = True
    recursion: int = 0

    def pack(self) -> str:
        """Return the first line for the process. The pinned schemas are left out, as the jar has them."""
        from pyspark import cloudpickle

        bare = msgspec.structs.replace(self.pinned, snapshot=SchemaSnapshot(()))
        task = (bare, self.registry, self.patience, self.refusing, self.recursion)
        return base64.b64encode(cloudpickle.dumps(task)).decode()  # type: ignore[no-untyped-call]  # PySpark's own


class WriterPrograms:
    """Programs for the schemas of writers, for one reader."""

    def __init__(self, resolver: Resolver, writers: FindWriter) -> None:
        self.resolver, self._writer_lookup = resolver, writers

    @classmethod
    def to(cls, task: LookupTask) -> WriterPrograms:
        """Return the programs for a task. Raises the errors of the reader's schema."""
        resolver = Resolver(parse_avro(task.pinned.reader), for_spark=True, recursion=task.recursion)
        return cls(resolver, _writer_lookup(task))

    def describe_writer(self, number: int) -> dict[str, Any]:
        """Return the program of an id, or why it is refused, or {} if it is unknown. Raises the lookup's errors."""
        try:
            writer = self._writer_lookup(number)
            if writer is None:
                return {}
            steps = self.resolver.resolve_writer(writer)
            checked(steps)  # detects unusable defaults here, once
            return {"program": decode_program(steps)}
        except DataError as error:
            return {"refused": str(error)}


def _writer_lookup(task: LookupTask) -> FindWriter:
    lookup = SchemaLookup(task.pinned, task.registry, patience=task.patience)

    def find(number: int) -> AvroSchema | None:
        schema = lookup.find_schema(number)
        name = find_rule(schema, READ_MODES) if schema is not None and task.refusing else ""
        if name:
            raise DataError(f"its rule {name!r} would have to run: choose rules='run' or 'ignore'")
        return None if schema is None else parse_avro(schema)

    return find


def answer_questions(task: str, questions: Iterable[str]) -> Iterator[str]:
    """Yield an answer to each question of a task."""
    arguments: Any = pickle.loads(base64.b64decode(task))  # noqa: S301 - made by the driver, as all tasks are
    answers = WriterPrograms.to(LookupTask(*arguments))
    for question in questions:
        try:
            yield json.dumps(answers.describe_writer(int(question)))
        except SteleError as error:
            yield json.dumps({"failed": f"{type(error).__name__}: {error}"})


def _read_lines() -> Iterator[str]:
    """Yield lines of standard input until it ends or is idle. It is not buffered, as `select` must see unread bytes."""
    rest = b""
    while select.select([0], [], [], IDLE_SECONDS)[0]:
        more = os.read(0, 1 << 16)
        if not more:
            return
        *lines, rest = (rest + more).split(b"\n")
        for line in lines:
            yield line.decode()


def main() -> None:
    """Answer questions until there are no more."""
    lines = _read_lines()
    task = next(lines, None)
    if task is None:
        return
    for answer in answer_questions(task, lines):
        print(answer, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
