"""Tables that a Spark session creates and alters with SQL, and access to the session's JVM.

The JVM is used where PySpark has no API, such as files through Hadoop's file systems.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from stele.errors import Conflict, Invalid, NotFound
from stele.spark.pipeline.schema_evolution import (
    ColumnChange,
    TableCapabilities,
    find_column,
    find_type,
    is_applied,
    make_nullable,
    plan_changes,
)
from stele.spark.types.metadata import comment_of
from stele.spark.types.names import quote_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType


def get_jvm(spark: SparkSession) -> Any:
    """Return the JVM's packages. Raises `Invalid` for a Spark Connect session, which has no local JVM."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise Invalid("tables of this kind cannot be written through Spark Connect: use a classic session")
    return jvm


def get_java_session(spark: SparkSession) -> Any:
    """Return the JVM's object of the session."""
    return spark._jsparkSession  # noqa: SLF001 - PySpark has no other way


def require_class(spark: SparkSession, name: str, advice: str) -> None:
    """Raise `Invalid` with the advice when the JVM lacks a class."""
    if not get_jvm(spark).org.apache.spark.util.Utils.classIsLoadable(name):
        raise Invalid(advice)


class HadoopFolder:
    """A folder that need not exist; all paths are relative to it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._jvm = get_jvm(spark)
        self.path = path.rstrip("/")
        self._files: Any = self._java_path("").getFileSystem(get_java_session(spark).sessionState().newHadoopConf())

    def full_path(self, path: str) -> str:
        """Return the whole path."""
        return f"{self.path}/{path}" if path else self.path

    def exists(self, path: str) -> bool:
        """Return whether there is such a file or folder."""
        return bool(self._files.exists(self._java_path(path)))

    def list_names(self, path: str, *, folders: bool = False) -> list[str]:
        """Return the sorted names of the files in a folder, or of its subfolders; empty if there is no folder."""
        if not self.exists(path):
            return []
        statuses = self._files.listStatus(self._java_path(path))
        return sorted(each.getPath().getName() for each in statuses if bool(each.isDirectory()) == folders)

    def read_text(self, path: str) -> str:
        """Return a small file's text."""
        stream = self._files.open(self._java_path(path))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Write a small new file atomically."""
        folder, _, name = path.rpartition("/")
        draft = f"{folder}/.{name}.{uuid4()}".lstrip("/")
        stream = self._files.create(self._java_path(draft), False)
        stream.write(bytearray(text.encode()))
        stream.close()
        self.move_file(draft, path)

    def move_file(self, path: str, to: str) -> None:
        """Move a file to a path that does not exist yet. Raises `OSError` when that fails."""
        if not self._files.rename(self._java_path(path), self._java_path(to)):
            raise OSError(f"{self.full_path(path)} cannot be renamed to {self.full_path(to)}")

    def delete_path(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it, if it is there."""
        self._files.delete(self._java_path(path), True)

    def _java_path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.full_path(path))


MAX_ATTEMPTS: Final = 5
"""How often a change of columns is tried when other writers commit first."""


class SqlTable(ABC):
    """One table. `sql_name` is its quoted name for SQL."""

    def __init__(self, spark: SparkSession, name: str, sql_name: str) -> None:
        self._spark, self._name, self._sql_name = spark, name, sql_name

    @property
    def name(self) -> str:
        """Name of the table, `namespace.table`."""
        return self._name

    @property
    @abstractmethod
    def capabilities(self) -> TableCapabilities:
        """The changes that the table supports."""

    @abstractmethod
    def load_columns(self) -> StructType | None:
        """Return its columns now, or None if the table does not exist."""

    @abstractmethod
    def _create_table(self, columns: str) -> None:
        """Create the table with these columns, unless it exists."""

    def apply_changes(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        """Create the table, or rename, widen and add columns; see `Sink`."""
        if any(change.kind == "create" for change in changes):
            self._create_table(format_columns(wanted))
            # another writer may have created it, with other columns
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
                    raise  # no other writer changed the table, so it would fail again

    def read_table(self) -> DataFrame:
        """Return the table. Raises `NotFound` if it does not exist."""
        self._require_columns()
        return self._spark.table(self._sql_name)

    def _require_columns(self) -> StructType:
        columns = self.load_columns()
        if columns is None:
            raise NotFound(f"there is no table {self._name}")
        return columns

    def _alter_table(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        for change in changes:
            # one statement each, as the next rename can be inside the column that was just renamed
            if change.kind == "rename" and not is_applied(change, self._require_columns(), wanted):
                self._rename_column(change)
        has = self._require_columns()
        rest = [change for change in changes if change.kind in {"add", "widen"} and not is_applied(change, has, wanted)]
        if rest:
            self._add_and_widen(rest, wanted)
        has = self._require_columns()
        self._set_comments(
            [change for change in changes if change.kind == "comment" and not is_applied(change, has, wanted)]
        )

    def _rename_column(self, change: ColumnChange) -> None:
        self._run_sql(
            f"ALTER TABLE {self._sql_name} RENAME COLUMN {quote_path(change.path)} TO {quote_path([change.to])}"
        )

    def _add_and_widen(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        added = []
        for change in changes:
            path, type_ = quote_path(change.path), find_type(wanted, change.path)
            if change.kind == "widen" and type_ is not None:
                self._run_sql(f"ALTER TABLE {self._sql_name} ALTER COLUMN {path} TYPE {format_type(type_)}")
            column = find_column(wanted, change.path) if change.kind == "add" else None
            if column is not None:
                added.append(f"{path} {format_type(make_nullable(column.dataType))}{format_comment(column)}")
        if added:
            self._run_sql(f"ALTER TABLE {self._sql_name} ADD COLUMNS ({', '.join(added)})")

    def _set_comments(self, changes: Sequence[ColumnChange]) -> None:
        for change in changes:
            path, comment = quote_path(change.path), quote_string(change.comment)
            self._run_sql(f"ALTER TABLE {self._sql_name} ALTER COLUMN {path} COMMENT {comment}")

    def _run_sql(self, statement: str) -> None:
        """Run a statement. Raises `Conflict` when Spark refuses it."""
        try:
            self._spark.sql(statement)
        except spark_errors() as error:
            raise Conflict(f"the table {self._name} cannot be changed: {first_line(error)}") from error


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the exception classes that PySpark raises for errors of its JVM.

    They are PySpark's own classes, and the JVM's where PySpark has no class of its own.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def error_condition(spark: SparkSession, error: Exception) -> str:
    """Return the error condition of Spark or of a table format, such as `DELTA_METADATA_CHANGED`; "" if it has none."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException):
        return error.getCondition() or ""
    if not isinstance(error, Py4JJavaError):
        return ""
    java = error.java_exception
    types = get_jvm(spark).py4j.reflection.TypeUtil
    return str(java.getCondition() or "") if types.isInstanceOf("org.apache.spark.SparkThrowable", java) else ""


def first_line(error: Exception) -> str:
    """Return the first line of Spark's error message, without its plans and stack traces."""
    java = getattr(error, "java_exception", None)
    return (str(error) if java is None else str(java.getMessage())).partition("\n")[0]


def format_properties(properties: dict[str, str]) -> str:
    """Return the text between the parentheses of TBLPROPERTIES."""
    return ", ".join(f"{quote_string(key)} = {quote_string(value)}" for key, value in properties.items())


def quote_string(text: str) -> str:
    """Return the text as a quoted string literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def format_type(type_: DataType) -> str:
    """Return the type in SQL syntax, with field names quoted."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match type_:
        case StructType():
            fields = (
                f"{quote_path([each.name])}: {format_type(each.dataType)}{format_comment(each)}"
                for each in type_.fields
            )
            return f"struct<{', '.join(fields)}>"
        case ArrayType():
            return f"array<{format_type(type_.elementType)}>"
        case MapType():
            return f"map<{format_type(type_.keyType)}, {format_type(type_.valueType)}>"
        case _:
            return type_.simpleString()


def format_columns(schema: StructType) -> str:
    """Return the text between the parentheses of CREATE TABLE."""
    return ", ".join(
        f"{quote_path([field.name])} {format_type(field.dataType)}{format_comment(field)}" for field in schema.fields
    )


def format_comment(column: StructField) -> str:
    """Return the comment clause of a column that follows its type in SQL, "" without a comment."""
    comment = comment_of(column)
    return f" COMMENT {quote_string(comment)}" if comment else ""


def add_missing_columns(rows: DataFrame, columns: StructType) -> DataFrame:
    """Return the rows in the table's column order, with nulls for top-level columns that the table gained since."""
    from pyspark.sql import functions as f

    if rows.columns == columns.names:
        return rows
    there = set(rows.columns)
    chosen = [
        f.col(quote_path([field.name])) if field.name in there else f.lit(None).cast(field.dataType).alias(field.name)
        for field in columns.fields
    ]
    return rows.select(*chosen)
