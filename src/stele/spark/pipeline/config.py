"""`pipeline.toml`: what is read, by which schemas, into which table.

    checkpoint = "state/orders"            # folder of progress; a new one starts from the beginning

    [source]
    path = "incoming/orders"               # folder of files
    subject = "orders-value"
    registry = "http://localhost:8081"     # or a snapshot file, for work without a registry

    [table]
    catalog = "sqlite:///warehouse/catalog.db"
    warehouse = "warehouse"
    name = "shop.orders"

Everything else has a default; see the structs. Relative paths count from the folder of the file.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from stele.client import SchemaSnapshot
from stele.errors import Invalid
from stele.spark.source import RegistryLike

Format = Literal["parquet", "orc", "binaryFile"]


class SourceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where framed records arrive.

    path      folder that Spark can list
    format    parquet and orc: files with a binary column; binaryFile: each file is one record
    column    the binary column's name; of no meaning for binaryFile
    subject   whose newest version is the reader's schema
    registry  address (several with commas), or the path of a snapshot file (`*.json`)
    max_files_per_trigger   files of one micro-batch, None is all there are
    patience  seconds for which a batch waits for a registry that does not answer, before the run fails
    """

    path: str
    subject: str
    registry: str = "http://localhost:8081"
    format: Format = "parquet"
    column: str = "value"
    max_files_per_trigger: int | None = None
    patience: float = 60.0

    def opened_registry(self) -> RegistryLike:
        """The registry as functions take it. Raises `OSError`, `InvalidRequest` for a bad snapshot file."""
        return SchemaSnapshot.load(Path(self.registry)) if self.registry.endswith(".json") else self.registry


class TableConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The Iceberg table: the address of an SQL catalog, where data goes, and `namespace.table`."""

    catalog: str
    warehouse: str
    name: str


class DeadLetterConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table of records that could not be decoded, in the same catalog; '' is the table's name + `_dead_letters`."""

    table: str = ""


class TriggerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When batches run: once over all there is (`available_now`, the default), or every `interval` (`10 seconds`)."""

    available_now: bool = False
    interval: str = ""

    def __post_init__(self) -> None:
        if self.available_now and self.interval:
            raise ValueError("either available_now or an interval, not both")


class PipelineConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole pipeline.

    mode    DEADLETTER sets bad records aside, FAILFAST stops at the first one
    engine  auto, vm or python
    """

    checkpoint: str
    source: SourceConfig
    table: TableConfig
    dead_letter: DeadLetterConfig = DeadLetterConfig()
    trigger: TriggerConfig = TriggerConfig()
    mode: Literal["DEADLETTER", "FAILFAST"] = "DEADLETTER"
    engine: Literal["auto", "vm", "python"] = "auto"

    @property
    def dead_letter_table(self) -> str:
        """Full name of the dead-letter table."""
        return self.dead_letter.table or f"{self.table.name}_dead_letters"


def load_config(path: Path | str) -> PipelineConfig:
    """Read a pipeline file. Raises `Invalid` that names the file and the key, `OSError` when it cannot be read."""
    place = Path(path)
    try:
        config = msgspec.convert(tomllib.loads(place.read_text("utf-8")), PipelineConfig)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise Invalid(f"{place}: {error}") from error
    _check(config, place)
    return _absolute(config, place.parent.resolve())


def _check(config: PipelineConfig, place: Path) -> None:
    if "." not in config.table.name.strip("."):
        raise Invalid(f"{place}: table.name is 'namespace.table', not {config.table.name!r}")


def _absolute(config: PipelineConfig, folder: Path) -> PipelineConfig:
    """The same pipeline with paths that do not depend on the working folder."""

    def full(path: str) -> str:
        return path if "://" in path else str(folder / path)

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
    )
