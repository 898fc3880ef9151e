"""What is decided on the driver before the first record: schemas are pinned, wires and rules chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stele.client import ResolvedSchema
from stele.client.names import split
from stele.client.serdes.schemas import ready
from stele.errors import Invalid, VersionNotFound
from stele.spark.engines.unroll import checked_recursion
from stele.spark.records import Reading, Target
from stele.spark.rules import RulesLike, checked, refuse_reading, refuse_writing
from stele.spark.source import PATIENCE, Pin, ReaderLike, RegistryLike, pin
from stele.spark.wires import Prefix, Seal, Wire, WireLike, wire_named

Subjects: TypeAlias = "str | Sequence[str] | Mapping[str, str] | None"
"""One subject; several; several by the name of their column; or None, where nobody knows them beforehand."""


def planned(
    registry: RegistryLike,
    subject: Subjects,
    reader: ReaderLike = "latest",
    *,
    message: str = "",
    wire: WireLike = "confluent",
    rules: RulesLike = "refuse",
    engine: str = "auto",
    topic: str = "",
    patience: float = PATIENCE,
    recursion: int = 0,
) -> Reading:
    """A reading of records; see `from_registry` for the arguments and for what is raised."""
    checked_recursion(recursion)
    chosen, rules = wire_named(wire), checked(rules)
    several = subject is not None and not isinstance(subject, str)
    if several and (reader != "latest" or message):
        raise Invalid("several subjects are read by their newest versions: reader and message are for one")
    if subject is None:
        targets = _without_subject(registry, reader, message)
    elif isinstance(subject, str):
        targets = [Target("", pin(registry, subject, reader, patience=patience), message)]
    elif isinstance(subject, Mapping):
        targets = [Target(name, pin(registry, each, patience=patience)) for name, each in subject.items()]
    else:
        targets = _named([pin(registry, each, patience=patience) for each in subject])
    if several and not targets:
        raise Invalid("there are no subjects: name one at least")
    if len({split(target.pinned.subject).context for target in targets}) > 1:
        raise Invalid("the subjects are of several contexts, in which ids mean different schemas")
    if rules == "refuse":
        for target in targets:
            refuse_reading(target.pinned)
    return Reading(
        tuple(targets),
        registry,
        engine,
        chosen,
        rules,
        several=several,
        topic=topic,
        patience=patience,
        recursion=recursion,
    )


def _without_subject(registry: RegistryLike, reader: ReaderLike, message: str) -> list[Target]:
    if reader == "latest":
        return []
    if isinstance(reader, int) or (isinstance(reader, str) and reader.isdecimal()):
        raise VersionNotFound(reader)
    return [Target("", pin(registry, "", reader), message)]


def _named(pins: Sequence[Pin]) -> list[Target]:
    """Each type under the last part of its name, or under its subject where that is no name, or taken."""
    short = [str(ready(pinned.reader).parsed.type_name).rpartition(".")[2] for pinned in pins]
    often = Counter(name.lower() for name in short)
    names = [
        name if name and often[name.lower()] == 1 else pinned.subject for name, pinned in zip(short, pins, strict=True)
    ]
    return [Target(name, pinned) for name, pinned in zip(names, pins, strict=True)]


@dataclass(frozen=True, slots=True)
class Writing:
    """How columns are encoded. It travels to tasks; seal is None where engines make the frames themselves."""

    writer: ResolvedSchema
    registry: RegistryLike
    wire: Wire
    seal: Seal | None
    message: str
    rules: RulesLike
    topic: str
    engine: str
    recursion: int = 0


def prepared(
    writer: ResolvedSchema,
    registry: RegistryLike,
    *,
    wire: WireLike = "confluent",
    message: str = "",
    rules: RulesLike = "refuse",
    topic: str = "",
    engine: str = "auto",
    recursion: int = 0,
) -> Writing:
    """A writing of records; see `to_registry` for the arguments and for what is raised."""
    chosen, rules = wire_named(wire), checked(rules)
    if rules == "refuse":
        refuse_writing(writer)
    seal = None if isinstance(chosen, Prefix) else chosen.seal(writer, message, registry)
    return Writing(writer, registry, chosen, seal, message, rules, topic, engine, checked_recursion(recursion))
