"""Generate a first `pipeline.toml` from a few answers: a commented file that runs without changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from stele.errors import Invalid
from stele.spark.pipeline.config import TableKind

NAMESPACE: Final = "streams"
"""Namespace of tables for which the user gives no name."""
_CATALOG: Final = "lake"
_KNOWN: Final = {"4.0": ("1.10.0", "4.0.0"), "4.1": ("1.11.0", "4.1.0")}
"""Versions of Iceberg's runtime and of Delta for each Spark release line."""


class PipelineAnswers(msgspec.Struct, frozen=True):
    """The answers that a new pipeline file needs.

    bootstrap, topics   address and topics of Kafka; or
    path                a folder of files
    subject             subject of the records; '' is topic-value
    registry            address, or a snapshot file
    table               `namespace.name`; '' generates a name. With several topics only the namespace is used
    kind                kind of table
    """

    bootstrap: str = ""
    topics: tuple[str, ...] = ()
    path: str = ""
    subject: str = ""
    registry: str = "http://localhost:8081"
    table: str = ""
    kind: TableKind = "iceberg"

    def check_answers(self) -> None:
        """Raise `Invalid` for answers that contradict each other or are incomplete."""
        if bool(self.bootstrap) == bool(self.path):
            raise Invalid("give either the address of a Kafka broker or a folder of files")
        if self.bootstrap and not self.topics:
            raise Invalid("no Kafka topic given: set `topics` or `pattern`")
        if self.path and self.topics:
            raise Invalid("files have no topics")
        if self.path and not self.subject:
            raise Invalid("no subject given: name the subject that the records in the files belong to")
        if len(set(self.topics)) < len(self.topics):
            raise Invalid("a topic is named twice")
        if len(self.topics) > 1 and self.subject:
            raise Invalid("with several topics, each subject is `<topic>-value`; edit the file to use others")
        if self.table and not re.fullmatch(r"[^.`\s]+(\.[^.`\s]+)+", self.table):
            raise Invalid(f"a table name has the form 'namespace.table', not {self.table!r}")
        if self.kind == "parquet" and self.table.count(".") > 1:
            raise Invalid(f"a Parquet table name has the form 'database.table', not {self.table!r}")

    @property
    def subjects(self) -> tuple[str, ...]:
        """Subjects of the records."""
        return (self.subject,) if self.subject else tuple(f"{topic}-value" for topic in self.topics)

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables, one for each topic."""
        if len(self.topics) > 1:
            namespace = self.table.rpartition(".")[0] or NAMESPACE
            return tuple(f"{namespace}.{name}" for name in _distinct_table_names(self.topics))
        about = self.topics[0] if self.topics else self.subject.rpartition(":")[2].removesuffix("-value")
        return (self.table or f"{NAMESPACE}.{_table_name(about)}",)


def render_pipeline_toml(answers: PipelineAnswers, folder: Path, *, spark: str = "") -> str:
    """Return the text of the file. Raises `Invalid` for answers that contradict each other or are incomplete.

    folder   where the file will be
    spark    version of Spark, to select the packages for it
    """
    answers.check_answers()
    parts = [
        _header_lines(answers),
        _source_lines(answers),
        _table_lines(answers),
        _trigger_lines(answers),
        _session_lines(answers, folder.resolve(), spark),
    ]
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _header_lines(start: PipelineAnswers) -> Iterator[str]:
    name = start.tables[0].rpartition(".")[2]
    yield "# stele pipeline plan FILE says what the tables need, stele pipeline run FILE runs it."
    yield "# Paths count from the folder of this file; ${NAME} is replaced by that environment variable."
    yield ""
    yield _format_line("checkpoint", f"state/{name}", "progress; a new folder starts from the beginning")
    yield '# mode = "FAILFAST"  # stop at the first bad record instead of setting it aside'
    yield ""


def _source_lines(start: PipelineAnswers) -> Iterator[str]:
    yield "[source]"
    if start.bootstrap:
        yield _format_line("kind", "kafka")
        yield _format_line("bootstrap", start.bootstrap)
        yield _format_line("topics", list(start.topics))
        yield _format_line("starting", "earliest", "where a new checkpoint begins, or latest")
        yield _format_line(
            "max_records_per_trigger", 1_000_000, "of one batch: fewer take less memory, and come sooner"
        )
        yield '# options = { "kafka.security.protocol" = "SASL_SSL" }  # whatever Spark\'s source understands'
    else:
        yield _format_line("path", start.path, "a folder of files, new ones are found")
        yield _format_line("format", "parquet", "or orc; binaryFile: every file is one record")
        yield _format_line("column", "value", "the binary column with the records")
        yield "# max_files_per_trigger = 100  # of one batch"
    if len(start.topics) < 2:
        yield _format_line("subject", start.subjects[0], "its newest version says which columns there are")
    yield _format_line("registry", start.registry, "or a snapshot file, *.json")
    yield ""


def _table_lines(start: PipelineAnswers) -> Iterator[str]:
    yield "[table]"
    yield _format_line("kind", start.kind, "one of iceberg, iceberg-spark, delta, parquet")
    if start.kind == "iceberg":
        yield _format_line("catalog", "sqlite:///warehouse/catalog.db", "any database of SQLAlchemy")
        yield _format_line("warehouse", "warehouse", "a folder, or s3://…")
    elif start.kind == "iceberg-spark":
        yield _format_line("catalog", _CATALOG, "of the session, see [spark.conf]")
    else:
        yield _format_line(
            "warehouse", "warehouse", "a folder of tables; without it they are where the session's catalogue says"
        )
    if len(start.topics) < 2:
        yield _format_line("name", start.tables[0])
    yield '# changes = "ask"  # change no table before stele pipeline plan FILE --apply'
    yield '# keep = ["timestamp", "partition", "offset"]  # more of a record, as columns _stele_…'
    yield ""
    if len(start.topics) > 1:
        for topic, subject, table in zip(start.topics, start.subjects, start.tables, strict=True):
            yield "[[route]]"
            yield _format_line("topic", topic)
            yield _format_line("subject", subject)
            yield _format_line("table", table)
            yield ""


def _trigger_lines(start: PipelineAnswers) -> Iterator[str]:
    often = 'interval = "10 seconds"'
    if start.bootstrap:
        yield "[trigger]"
        yield f"{often}  # without it a run reads what there is, and stops"
    else:
        yield "# [trigger]"
        yield f"# {often}  # without it a run reads what there is, and stops"
    yield ""
    yield "# [metrics]"
    yield "# port = 9108  # for Prometheus, while it runs"
    yield '# file = "metrics/orders.prom"  # after every batch'
    yield ""


def _session_lines(start: PipelineAnswers, folder: Path, version: str) -> Iterator[str]:
    """Yield the lines of `[spark]`: packages and settings of the session, if any are needed."""
    conf = _catalog_settings(start.kind, folder)
    line = ".".join(version.split(".")[:2])
    fitting = line if line in _KNOWN else "4.1"
    packages = _spark_packages(start, fitting, version or f"{fitting}.1")
    if packages or conf:
        yield "[spark]"
    if packages:
        if line != fitting:
            yield f"# Made for Spark {fitting}; take those of the Spark you run."
        yield _format_line("packages", packages)
    if conf:
        yield ""
        yield "[spark.conf]"
        for name, value in conf.items():
            yield _format_line(json.dumps(name), value)


def _spark_packages(start: PipelineAnswers, line: str, version: str) -> list[str]:
    iceberg, delta = _KNOWN[line]
    kafka = version if version.startswith(line) else f"{line}.1"
    packages = [f"org.apache.spark:spark-sql-kafka-0-10_2.13:{kafka}"] if start.bootstrap else []
    if start.kind == "iceberg-spark":
        packages.append(f"org.apache.iceberg:iceberg-spark-runtime-{line}_2.13:{iceberg}")
    if start.kind == "delta":
        packages.append(f"io.delta:delta-spark_2.13:{delta}")
    return packages


def _catalog_settings(kind: TableKind, folder: Path) -> dict[str, str]:
    """Return the Spark settings of a kind of table, such as a catalogue in the folder."""
    match kind:
        case "iceberg-spark":
            return {
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                f"spark.sql.catalog.{_CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
                f"spark.sql.catalog.{_CATALOG}.type": "hadoop",
                f"spark.sql.catalog.{_CATALOG}.warehouse": str(folder / "warehouse"),
            }
        case "delta":
            return {
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            }
        case _:
            return {}


def _format_line(key: str, value: str | int | Sequence[str], comment: str = "") -> str:
    """Return a line with a key and its value. A JSON string is also a TOML string, except for the character DEL."""
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"{key} = {text}{f'  # {comment}' if comment else ''}"


def _table_name(about: str) -> str:
    """Return a name for a table: letters, digits and underscores."""
    return re.sub(r"\W", "_", about) or "records"


def _distinct_table_names(topics: Sequence[str]) -> list[str]:
    """Return one table name per topic, all different and different from the dead-letter table."""
    names: list[str] = []
    for topic in topics:
        name, number = _table_name(topic), 1
        while name in names or (names and name == f"{names[0]}_dead_letters"):
            number += 1
            name = f"{_table_name(topic)}_{number}"
        names.append(name)
    return names
