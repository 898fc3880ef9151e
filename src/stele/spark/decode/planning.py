"""What is decided on the driver before the first record: schemas are pinned, wires and rules chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from stele.client import ResolvedSchema
from stele.client.names import split_subject
from stele.client.serdes.schemas import parse_schema
from stele.errors import Invalid, VersionNotFound
from stele.spark.decode.records import ReadPlan, ReadTarget, WritePlan
from stele.spark.decode.rules import RulesLike, check_rules_choice, refuse_reading, refuse_writing
from stele.spark.engines.unroll import check_recursion
from stele.spark.registry import PATIENCE, PinnedSchemas, ReaderLike, RegistryLike, pin_schemas
from stele.spark.wires import Prefix, WireLike, get_wire

Subjects: TypeAlias = "str | Sequence[str] | Mapping[str, str] | None"
"""One subject; several; several by the name of their column; or None, where nobody knows them beforehand."""


def plan_read(
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
) -> ReadPlan:
    """Return a reading of records; see `from_registry` for the arguments and for what is raised."""
    check_recursion(recursion)
    chosen, rules = get_wire(wire), check_rules_choice(rules)
    several = subject is not None and not isinstance(subject, str)
    if several and (reader != "latest" or message):
        raise Invalid("several subjects are read by their newest versions: reader and message are for one")
    if subject is None:
        targets = _read_without_subject(registry, reader, message)
    elif isinstance(subject, str):
        targets = [ReadTarget("", pin_schemas(registry, subject, reader, patience=patience), message)]
    elif isinstance(subject, Mapping):
        targets = [ReadTarget(name, pin_schemas(registry, each, patience=patience)) for name, each in subject.items()]
    else:
        targets = _name_targets([pin_schemas(registry, each, patience=patience) for each in subject])
    if several and not targets:
        raise Invalid("there are no subjects: name one at least")
    if len({split_subject(target.pinned.subject).context for target in targets}) > 1:
        raise Invalid("the subjects are in several contexts, where the same id names different schemas")
    if rules == "refuse":
        for target in targets:
            refuse_reading(target.pinned)
    return ReadPlan(
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


def _read_without_subject(registry: RegistryLike, reader: ReaderLike, message: str) -> list[ReadTarget]:
    if reader == "latest":
        return []
    if isinstance(reader, int) or (isinstance(reader, str) and reader.isdecimal()):
        raise VersionNotFound(reader)
    return [ReadTarget("", pin_schemas(registry, "", reader), message)]


def _name_targets(pins: Sequence[PinnedSchemas]) -> list[ReadTarget]:
    """Return each type under the last part of its name, or under its subject where that is no name, or taken."""
    short = [str(parse_schema(pinned.reader).parsed.type_name).rpartition(".")[2] for pinned in pins]
    often = Counter(name.lower() for name in short)
    names = [
        name if name and often[name.lower()] == 1 else pinned.subject for name, pinned in zip(short, pins, strict=True)
    ]
    return [ReadTarget(name, pinned) for name, pinned in zip(names, pins, strict=True)]


def plan_write(
    writer: ResolvedSchema,
    registry: RegistryLike,
    *,
    wire: WireLike = "confluent",
    message: str = "",
    rules: RulesLike = "refuse",
    topic: str = "",
    engine: str = "auto",
    recursion: int = 0,
) -> WritePlan:
    """Return a writing of records; see `to_registry` for the arguments and for what is raised."""
    chosen, rules = get_wire(wire), check_rules_choice(rules)
    if rules == "refuse":
        refuse_writing(writer)
    seal = None if isinstance(chosen, Prefix) else chosen.framer(writer, message, registry)
    return WritePlan(writer, registry, chosen, seal, message, rules, topic, engine, check_recursion(recursion))
