"""Tables that a Spark session makes and alters with SQL: what they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from stele.errors import Conflict, NotFound
from stele.spark.pipeline.schema_evolution import ColumnChange, TableCapabilities, plan_changes
from stele.spark.pipeline.sinks.columns import (
    find_type,
    format_columns,
    format_type,
    is_applied,
    make_nullable,
    quote_path,
    quote_string,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MAX_ATTEMPTS: Final = 5
"""How often a change of columns is tried when other writers come first."""


class SqlTable(ABC):
    """One table. sql_name is its name for SQL, quoted."""

    def __init__(self, spark: SparkSession, name: str, sql_name: str) -> None:
        self._spark, self._name, self._sql_name = spark, name, sql_name

    @property
    def name(self) -> str:
        """`namespace.table`."""
        return self._name

    @property
    @abstractmethod
    def capabilities(self) -> TableCapabilities:
        """Which changes it can take."""

    @abstractmethod
    def load_columns(self) -> StructType | None:
        """Its columns now, None while there is no table."""

    @abstractmethod
    def _create_table(self, columns: str) -> None:
        """Make the table with these columns, unless it is there."""

    def apply_changes(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        """Create the table, or rename, widen and add columns; see `Sink`."""
        if any(change.kind == "create" for change in changes):
            self._create_table(format_columns(wanted))
            # another writer may have made it, with other columns
            changes = plan_changes(self._require_columns(), wanted, self.capabilities, renames="add")
            clash = next((change for change in changes if change.kind == "clash"), None)
            if clash is not None:
                raise Conflict(f"another writer has made the table {self._name}: {clash}")
        for left in reversed(range(MAX_ATTEMPTS)):
            before = self._require_columns()
            try:
                self._alter_table(changes, wanted)
                return
            except Conflict:
                if not left or before == self._require_columns():
                    raise  # nobody else was there, so it would fail again

    def read_table(self) -> DataFrame:
        """The table. Raises `NotFound` while there is none."""
        self._require_columns()
        return self._spark.table(self._sql_name)

    def _require_columns(self) -> StructType:
        columns = self.load_columns()
        if columns is None:
            raise NotFound(f"there is no table {self._name}")
        return columns

    def _alter_table(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        for change in changes:
            # each on its own: the next one may be inside of the column that has got its name just now
            if change.kind == "rename" and not is_applied(change, self._require_columns(), wanted):
                self._rename_column(change)
        has = self._require_columns()
        rest = [change for change in changes if change.kind in {"add", "widen"} and not is_applied(change, has, wanted)]
        if rest:
            self._add_and_widen(rest, wanted)

    def _rename_column(self, change: ColumnChange) -> None:
        self._run_sql(
            f"ALTER TABLE {self._sql_name} RENAME COLUMN {quote_path(change.path)} TO {quote_path([change.to])}"
        )

    def _add_and_widen(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        def named(kind: str) -> Iterator[tuple[str, str]]:
            for change in changes:
                type_ = find_type(wanted, change.path)
                if change.kind == kind and type_ is not None:
                    yield quote_path(change.path), format_type(make_nullable(type_))

        for path, type_ in named("widen"):
            self._run_sql(f"ALTER TABLE {self._sql_name} ALTER COLUMN {path} TYPE {type_}")
        added = ", ".join(f"{path} {type_}" for path, type_ in named("add"))
        if added:
            self._run_sql(f"ALTER TABLE {self._sql_name} ADD COLUMNS ({added})")

    def _run_sql(self, statement: str) -> None:
        """Run a statement. Raises `Conflict` when Spark refuses it."""
        try:
            self._spark.sql(statement)
        except spark_errors() as error:
            raise Conflict(f"the table {self._name} cannot be changed: {first_line(error)}") from error


def spark_errors() -> tuple[type[Exception], ...]:
    """What PySpark raises for what its JVM refuses: errors of its own, or the JVM's, where it has no word for them."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def first_line(error: Exception) -> str:
    """What Spark says, without its plans and stacks."""
    java = getattr(error, "java_exception", None)
    return (str(error) if java is None else str(java.getMessage())).partition("\n")[0]


def format_properties(given: dict[str, str]) -> str:
    """What stands between the parentheses of TBLPROPERTIES."""
    return ", ".join(f"{quote_string(key)} = {quote_string(value)}" for key, value in given.items())
