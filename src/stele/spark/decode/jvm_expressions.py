"""Decoding and encoding as Spark expressions: the functions that Spark calls, and their programs."""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from stele.client import SchemaSnapshot
from stele.client.names import split_subject
from stele.errors import Invalid
from stele.spark.decode.schema_lookup_worker import LookupTask, WriterPrograms
from stele.spark.engines.jvm import CATALOG, is_loaded, is_remote, require_engine
from stele.spark.engines.jvm.programs import encode_program, find_unfit_column, slot_width
from stele.spark.engines.resolve import Resolver
from stele.spark.engines.steps import ReadNull, ReadUnion
from stele.spark.registry import parse_avro
from stele.spark.wires import Prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from stele.spark.decode.records import ReadPlan, WritePlan

VALUE, ID, ERROR = "value", "schema_id", "error"
"""Columns of the struct that `decode_column` makes."""


def decode_column(session: SparkSession, raw: Column, reading: ReadPlan, *, fail_fast: bool) -> Column | None:
    """Return the records of a binary column as a struct (value, schema_id, error), or None for another engine.

    All pinned writers are resolved here, on the driver. A writer that cannot be read becomes the error of its records.
    Raises `Invalid` and `JarMissing` when the engine `jvm` was requested and cannot be used, and the errors of the
    reader's schema.
    """
    if not _uses_jvm(session, reading.engine, _why_not_read(reading)):
        return None
    pinned = reading.targets[0].pinned
    task = LookupTask(pinned, reading.registry, reading.patience, reading.rules == "refuse", reading.recursion)
    answers = WriterPrograms.to(msgspec.structs.replace(task, registry=pinned.snapshot, patience=0.0))
    context = split_subject(pinned.subject).context
    ids = sorted({schema.id for schema in pinned.snapshot.schemas if schema.context == context and schema.id})
    ask = None
    if not isinstance(reading.registry, SchemaSnapshot):
        ask = {"task": task.pack(), "python": _executor_python(session)}
    return decoding(raw, answers, ids, subject=pinned.subject, fail_fast=fail_fast, ask=ask)


def decoding(
    raw: Column,
    answers: WriterPrograms,
    ids: Iterable[int],
    *,
    subject: str = "",
    fail_fast: bool = False,
    ask: dict[str, Any] | None = None,
) -> Column:
    """Return the function call that decodes records of these ids.

    ask is what the jar needs to look up other ids, see `SchemaLookup.java`.
    """
    known = {number: answers.describe_writer(number) for number in ids}
    spec = {
        "subject": subject,
        "type": _result_type(answers.resolver).json(),
        "width": slot_width(answers.resolver.root),
        "fail_fast": fail_fast,
        "programs": {number: answer["program"] for number, answer in known.items() if "program" in answer},
        "refused": {number: answer["refused"] for number, answer in known.items() if "refused" in answer},
        "ask": ask,
    }
    return _call_function("decode", spec, raw)


def encode_columns(
    df: DataFrame, columns: Sequence[str], job: WritePlan, fields: Sequence[str] | None
) -> Column | None:
    """Return those columns as framed records, or None for another engine.

    fields are their names in the record, None when the one column is the whole value. Raises what `decode_column`
    raises.
    """
    from pyspark.sql import functions as f

    resolver = None
    cannot = _why_not_write(job)
    if not cannot:
        resolver = Resolver(parse_avro(job.writer), for_spark=True, recursion=job.recursion)
        cannot = find_unfit_column(resolver.root, [df.schema[name].dataType for name in columns], fields)
    if not _uses_jvm(df.sparkSession, job.engine, cannot) or resolver is None:
        return None
    names = [VALUE] if fields is None else fields
    value = f.struct(*(f.col(column).alias(name) for column, name in zip(columns, names, strict=True)))
    return encoding(value, resolver, job.writer.id, whole=fields is None)


def encoding(value: Column, resolver: Resolver, number: int, *, whole: bool) -> Column:
    """Return the function call that encodes a struct with the resolver's schema.

    whole   whether the struct's only column is the value itself
    """
    steps = resolver.resolve_writer(resolver.reader)
    spec = {
        "id": number,
        "whole": whole,
        "stays": not isinstance(steps, ReadUnion | ReadNull),
        "program": encode_program(steps),
    }
    return _call_function("encode", spec, value)


def _uses_jvm(session: SparkSession, engine: str, cannot: str) -> bool:
    """Return whether the engine `jvm` is used; `cannot` is the reason why it cannot be used, or ''.

    Raises `Invalid` or `JarMissing` if the engine `jvm` was requested and cannot be used.
    """
    if engine == "jvm":
        if cannot:
            raise Invalid(f"the engine jvm cannot do this: {cannot}; choose auto")
        require_engine(session)
        return True
    return engine == "auto" and not cannot and is_loaded(session)


def _why_not_read(reading: ReadPlan) -> str:
    if reading.several or len(reading.targets) != 1:
        return "it reads one type at a time"
    schema_type = reading.targets[0].pinned.reader.schema_type
    return _why_not(reading.wire, schema_type, reading.rules)


def _why_not_write(job: WritePlan) -> str:
    return _why_not(job.wire, job.writer.schema_type, job.rules)


def _why_not(wire: object, schema_type: str, rules: object) -> str:
    if not isinstance(wire, Prefix):
        return "it knows the wire 'confluent' only"
    if schema_type != "AVRO":
        return f"it knows Avro, not {schema_type}"
    return "" if rules in ("refuse", "ignore") else "it does not run rules"


def _call_function(what: str, spec: dict[str, Any], argument: Column) -> Column:
    """Return the call of a function whose name contains its specification (`Spec.java`)."""
    from pyspark.sql import functions as f

    pack = zlib.compress(json.dumps(spec, separators=(",", ":")).encode(), 9)
    name = base64.urlsafe_b64encode(pack).decode()
    return f.call_function(f"{CATALOG}.`{what}_{name}`", argument)


def _result_type(resolver: Resolver) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import IntegerType, StructField, StructType

    from stele.spark.engines.base import error_type

    return StructType(
        [
            StructField(VALUE, from_arrow_type(resolver.root.type, prefer_timestamp_ntz=True)),
            StructField(ID, IntegerType()),
            StructField(ERROR, from_arrow_type(error_type())),
        ]
    )


def _executor_python(session: SparkSession) -> str | None:
    """Return the path of the executors' Python, or None for a Spark Connect session, where it is unknown."""
    return None if is_remote(session) else str(session.sparkContext.pythonExec)
