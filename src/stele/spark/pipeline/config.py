"""`pipeline.toml`: what a pipeline reads, with which schemas, and into which tables it writes.

    checkpoint = "state/orders"            # folder of progress; a new one starts from the beginning

    [source]
    path = "incoming/orders"               # folder of files; or kind = "kafka", bootstrap, topics
    subject = "orders-value"
    registry = "http://localhost:8081"     # or a snapshot file, for work without a registry

    [table]
    catalog = "sqlite:///warehouse/catalog.db"
    warehouse = "warehouse"
    name = "shop.orders"

Every other key has a default; see the structs. Relative paths are relative to the folder of the file. `${NAME}` in any
text is replaced by the environment variable of that name.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from stele.client import SchemaSnapshot
from stele.errors import Invalid
from stele.spark.pipeline.schema_evolution import DropPolicy, RenamePolicy
from stele.spark.registry import PATIENCE

FileFormat = Literal["parquet", "orc", "binaryFile"]
TableKind = Literal["iceberg", "iceberg-spark", "delta", "parquet"]
KeptColumn = Literal["key", "headers", "topic", "partition", "offset", "timestamp", "source"]


class SourceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The source of the framed records, and how they name their schemas.

    kind      `files`: a folder that Spark can list; `kafka`: topics, by Spark's own connector
    path      the folder
    format    parquet and orc: files with a binary column; binaryFile: each file is one record
    column    the binary column's name; not used for binaryFile
    max_files_per_trigger    maximum number of files in one micro-batch; without it, all files that are there
    bootstrap                addresses of Kafka brokers, separated by commas
    topics                   the Kafka topics
    pattern                  a Java regular expression, instead of topics; new topics that match are read, too
    starting                 where a new checkpoint begins: `earliest` or `latest`
    max_records_per_trigger  maximum number of Kafka records in one micro-batch
    options   more options of Spark's source, such as `kafka.security.protocol`
    subject   subject whose newest version is the reader's schema; with one topic and no routes the default is
              topic-value
    registry  address (several with commas), or the path of a snapshot file (`*.json`)
    patience  seconds that a batch waits for a registry that does not answer, before the run fails
    wire      how records name their schemas, a word of `stele.spark.wires`
    message   the message of a Protobuf schema, or the struct of a Thrift schema; without it, the usual one
    rules     what to do with schemas that have rules: `refuse`, `run` or `ignore`
    recursion  how many times a type that contains itself is nested in itself in the columns; see `from_registry`
    """

    kind: Literal["files", "kafka"] = "files"
    path: str = ""
    format: FileFormat = "parquet"
    column: str = "value"
    max_files_per_trigger: int | None = None
    bootstrap: str = ""
    topics: tuple[str, ...] = ()
    pattern: str = ""
    starting: Literal["earliest", "latest"] = "earliest"
    max_records_per_trigger: int | None = 1_000_000
    options: dict[str, str] = {}
    subject: str = ""
    registry: str = "http://localhost:8081"
    patience: float = PATIENCE * 2
    wire: str = "confluent"
    message: str = ""
    rules: Literal["refuse", "run", "ignore"] = "refuse"
    recursion: int = 0

    def __post_init__(self) -> None:
        if self.kind == "files" and not self.path:
            raise ValueError("path is missing: give the folder with the records")
        if self.kind == "kafka" and not self.bootstrap:
            raise ValueError("bootstrap is missing: give the address of a broker")
        if self.kind == "kafka" and bool(self.topics) == bool(self.pattern):
            raise ValueError("give either topics or a pattern")

    def describe(self) -> str:
        """Return a short description of the source for reports."""
        if self.kind == "kafka":
            return f"Kafka at {self.bootstrap}, {', '.join(self.topics) or f'topics like {self.pattern}'}"
        return f"files in {self.path}"

    def open_registry(self) -> str | SchemaSnapshot:
        """Return the registry's addresses, or the loaded snapshot if `registry` is a snapshot file.

        Raises `OSError`, and `InvalidRequest` for a bad snapshot file.
        """
        return SchemaSnapshot.load(Path(self.registry)) if self.registry.endswith(".json") else self.registry


class TableConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table, and how it follows its schema.

    kind       `iceberg`: in an SQL catalogue, written without extra jars; `iceberg-spark`, `delta`: written by the
               runtimes of Iceberg and Delta in the Spark session; `parquet`: in Spark's own catalogue, its metastore
    catalog    `iceberg`: the SQL catalogue's address; `iceberg-spark`, `delta`: the name of a catalogue of the session,
               '' is its current one
    warehouse  folder of the data; '' where the catalogue knows it
    name       `namespace.table`; left out where there are routes
    changes    `apply`: the run changes the table by itself; `ask`: the run stops until `stele pipeline plan --apply`
    renames    `rename`: the column of a renamed field takes the new name, where tables can; `add`: a new column is
               added
    drops      `keep`: columns of fields that left the schema stay; `refuse`: the run stops
    keep       more data about each record, kept as columns `_stele_<word>`
    """

    kind: TableKind = "iceberg"
    catalog: str = ""
    warehouse: str = ""
    name: str = ""
    changes: Literal["apply", "ask"] = "apply"
    renames: RenamePolicy = "rename"
    drops: DropPolicy = "keep"
    keep: tuple[KeptColumn, ...] = ()

    def __post_init__(self) -> None:
        if self.kind == "iceberg" and not (self.catalog and self.warehouse):
            raise ValueError("a table of the kind iceberg needs the address of its catalog, and a warehouse")


class RouteConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One type of record in a source with several types, and its table.

    topic    the topic with the records; '' is every topic without routes of its own
    subject  the subject of the records; '' is topic-value. Several routes of one topic divide its records by their
             types
    table    `namespace.table`
    message  the message or struct, as in the source
    """

    table: str
    topic: str = ""
    subject: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        if not self.topic and not self.subject:
            raise ValueError("a route needs a topic, a subject, or both")


MOST_SAMPLES: Final = 20
"""Maximum number of dead letters of each code in the report of a batch."""


class DeadLetterConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table of records that could not be decoded, in the same catalogue.

    table    `namespace.table`; '' is the name of the first table + `_dead_letters`
    samples  number of dead letters of each code whose first bytes the batch's report keeps, for the registry's pages
    """

    table: str = ""
    samples: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.samples <= MOST_SAMPLES:
            raise ValueError(f"samples must be a number from 0 to {MOST_SAMPLES}")


class TriggerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When batches run.

    available_now   process all records that are there, then stop; this is also the default without an interval
    interval        time between the starts of batches (`10 seconds`); `0 seconds` starts each batch right after the
                    last one
    """

    available_now: bool = False
    interval: str = ""

    def __post_init__(self) -> None:
        if self.available_now and self.interval:
            raise ValueError("set either available_now or an interval, not both")


class SparkConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The Spark session that a run creates if the caller gives none.

    cores     threads on this machine, unless conf names a `spark.master`
    packages  Maven Central coordinates of connectors
    conf      any settings of Spark
    """

    cores: int = 2
    packages: tuple[str, ...] = ()
    conf: dict[str, str] = {}


class MetricsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Metrics for Prometheus.

    port   port that serves them while the pipeline runs, on all addresses of the machine; 0 serves none
    file   file written after every batch, for the node exporter's textfile collector; '' writes none
    """

    port: int = 0
    file: str = ""


class PipelineConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration of a whole pipeline.

    checkpoint   folder of progress, of Spark and of Stele; a new one starts from the beginning
    route   tables of the records of each topic and type; without routes, all records go to `table`
    mode    DEADLETTER keeps bad records as dead letters, FAILFAST stops at the first one
    engine  auto, jvm, vm or python
    """

    checkpoint: str
    source: SourceConfig
    table: TableConfig
    route: tuple[RouteConfig, ...] = ()
    dead_letter: DeadLetterConfig = DeadLetterConfig()
    trigger: TriggerConfig = TriggerConfig()
    spark: SparkConfig = SparkConfig()
    metrics: MetricsConfig = MetricsConfig()
    mode: Literal["DEADLETTER", "FAILFAST"] = "DEADLETTER"
    engine: Literal["auto", "jvm", "vm", "python"] = "auto"

    def __post_init__(self) -> None:
        if self.route and (self.table.name or self.source.subject or self.source.message):
            raise ValueError(
                "with routes, set table, subject and message in each [[route]], not in [table] and [source]"
            )
        if not self.route and not self.table.name:
            raise ValueError("no table given: set table.name, or add a [[route]] for each table")
        for name in (*(route.table for route in self.routes), self.dead_letter_table):
            if not re.fullmatch(r"[^.`\s]+(\.[^.`\s]+)+", name):
                raise ValueError(f"a table name has the form 'namespace.table', not {name!r}")
        _check_routes(self)

    @property
    def routes(self) -> tuple[RouteConfig, ...]:
        """The routes, at least one. Without `route` it is made from `table` and `source`."""
        if self.route:
            return tuple(_with_subject(route) for route in self.route)
        source = self.source
        topic = source.topics[0] if len(source.topics) == 1 else ""
        subject = source.subject or (f"{topic}-value" if topic else "")
        if not subject:
            raise ValueError("source.subject is missing: name the subject that the records belong to")
        return (RouteConfig(self.table.name, "", subject, source.message),)

    @property
    def dead_letter_table(self) -> str:
        """Full name of the dead-letter table."""
        return self.dead_letter.table or f"{self.routes[0].table}_dead_letters"


def _with_subject(route: RouteConfig) -> RouteConfig:
    return msgspec.structs.replace(route, subject=route.subject or f"{route.topic}-value")


def _check_routes(config: PipelineConfig) -> None:
    """Raise `ValueError` for a route without records, and for two routes with the same records or the same table."""
    seen: set[tuple[str, str]] = set()
    for route in config.routes:
        if route.topic and config.source.kind != "kafka":
            raise ValueError(f"the route to {route.table} has a topic, but files have no topics")
        if route.topic and config.source.topics and route.topic not in config.source.topics:
            raise ValueError(f"the route to {route.table} has the topic {route.topic!r}, which is not in source.topics")
        if (route.topic, route.subject) in seen:
            raise ValueError(f"two routes take the records of {route.subject} from the same topic")
        seen.add((route.topic, route.subject))
    tables = [route.table for route in config.routes]
    if len({*tables, config.dead_letter_table}) <= len(tables):
        raise ValueError("each route needs its own table, and dead letters need another one")


def load_config(path: Path | str, environment: Mapping[str, str] = os.environ) -> PipelineConfig:
    """Read a pipeline file. Raises `Invalid` that names the file and the key, `OSError` when it cannot be read."""
    place = Path(path)
    try:
        document = _expand_variables(tomllib.loads(place.read_text("utf-8")), environment)
        config = msgspec.convert(document, PipelineConfig)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError, ValueError) as error:
        raise Invalid(f"{place}: {error}") from error
    return _make_absolute(config, place.parent.resolve())


def _expand_variables(value: Any, environment: Mapping[str, str]) -> Any:
    """Return the document with `${NAME}` in its texts replaced by environment variables.

    Raises `ValueError` for a variable that is not set.
    """

    def read_variable(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise ValueError(f"there is no environment variable {match[1]}")
        return environment[match[1]]

    if isinstance(value, dict):
        return {key: _expand_variables(each, environment) for key, each in value.items()}
    if isinstance(value, list):
        return [_expand_variables(each, environment) for each in value]
    return re.sub(r"\$\{(\w+)\}", read_variable, value) if isinstance(value, str) else value


def _make_absolute(config: PipelineConfig, folder: Path) -> PipelineConfig:
    """Return the same pipeline with absolute paths; relative ones start at the folder."""

    def full(path: str) -> str:
        return path if "://" in path or not path else str(folder / path)

    source, table = config.source, config.table
    registry = full(source.registry) if source.registry.endswith(".json") else source.registry
    catalog = table.catalog
    if catalog.startswith("sqlite:///"):
        catalog = f"sqlite:///{full(catalog.removeprefix('sqlite:///'))}"
    return msgspec.structs.replace(
        config,
        checkpoint=full(config.checkpoint),
        source=msgspec.structs.replace(source, path=full(source.path), registry=registry),
        table=msgspec.structs.replace(table, catalog=catalog, warehouse=full(table.warehouse)),
        metrics=msgspec.structs.replace(config.metrics, file=full(config.metrics.file)),
    )
