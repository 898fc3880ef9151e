"""Tables that a Spark session makes and alters with SQL: what they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from stele.errors import Conflict, NotFound
from stele.spark.pipeline.schema_evolution import Abilities, Change, planned
from stele.spark.pipeline.sinks.columns import done, literal, nullable, quoted, sql_columns, sql_type, type_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

TRIES: Final = 5
"""How often a change of columns is tried when other writers come first."""


class SqlTable(ABC):
    """One table. place is its name for SQL, quoted."""

    def __init__(self, spark: SparkSession, name: str, place: str) -> None:
        self._spark, self._name, self._place = spark, name, place

    @property
    def name(self) -> str:
        """`namespace.table`."""
        return self._name

    @property
    @abstractmethod
    def abilities(self) -> Abilities:
        """Which changes it can take."""

    @abstractmethod
    def columns(self) -> StructType | None:
        """Its columns now, None while there is no table."""

    @abstractmethod
    def _create(self, columns: str) -> None:
        """Make the table with these columns, unless it is there."""

    def change(self, changes: Sequence[Change], wanted: StructType) -> None:
        """Create the table, or rename, widen and add columns; see `Sink`."""
        if any(change.kind == "create" for change in changes):
            self._create(sql_columns(wanted))
            # another writer may have made it, with other columns
            changes = planned(self._needed(), wanted, self.abilities, renames="add")
            clash = next((change for change in changes if change.kind == "clash"), None)
            if clash is not None:
                raise Conflict(f"another writer has made the table {self._name}: {clash}")
        for left in reversed(range(TRIES)):
            before = self._needed()
            try:
                self._alter(changes, wanted)
                return
            except Conflict:
                if not left or before == self._needed():
                    raise  # nobody else was there, so it would fail again

    def read(self) -> DataFrame:
        """The table. Raises `NotFound` while there is none."""
        self._needed()
        return self._spark.table(self._place)

    def _needed(self) -> StructType:
        columns = self.columns()
        if columns is None:
            raise NotFound(f"there is no table {self._name}")
        return columns

    def _alter(self, changes: Sequence[Change], wanted: StructType) -> None:
        for change in changes:
            # each on its own: the next one may be inside of the column that has got its name just now
            if change.kind == "rename" and not done(change, self._needed(), wanted):
                self._rename(change)
        has = self._needed()
        rest = [change for change in changes if change.kind in {"add", "widen"} and not done(change, has, wanted)]
        if rest:
            self._grow(rest, wanted)

    def _rename(self, change: Change) -> None:
        self._sql(f"ALTER TABLE {self._place} RENAME COLUMN {quoted(change.path)} TO {quoted([change.to])}")

    def _grow(self, changes: Sequence[Change], wanted: StructType) -> None:
        def named(kind: str) -> Iterator[tuple[str, str]]:
            for change in changes:
                type_ = type_at(wanted, change.path)
                if change.kind == kind and type_ is not None:
                    yield quoted(change.path), sql_type(nullable(type_))

        for path, type_ in named("widen"):
            self._sql(f"ALTER TABLE {self._place} ALTER COLUMN {path} TYPE {type_}")
        added = ", ".join(f"{path} {type_}" for path, type_ in named("add"))
        if added:
            self._sql(f"ALTER TABLE {self._place} ADD COLUMNS ({added})")

    def _sql(self, statement: str) -> None:
        """Run a statement. Raises `Conflict` when Spark refuses it."""
        try:
            self._spark.sql(statement)
        except refusals() as error:
            raise Conflict(f"the table {self._name} cannot be changed: {first_line(error)}") from error


def refusals() -> tuple[type[Exception], ...]:
    """What PySpark raises for what its JVM refuses: errors of its own, or the JVM's, where it has no word for them."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def first_line(error: Exception) -> str:
    """What Spark says, without its plans and stacks."""
    java = getattr(error, "java_exception", None)
    return (str(error) if java is None else str(java.getMessage())).partition("\n")[0]


def properties(given: dict[str, str]) -> str:
    """What stands between the parentheses of TBLPROPERTIES."""
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in given.items())
