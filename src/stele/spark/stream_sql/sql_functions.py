"""Registered schemas in SQL: functions of one subject each, and a table function for any subject.

    readers, writers = {"orders": "orders-value"}, {"to_orders": "orders-value"}
    register_sql_functions(spark, "http://localhost:8081", readers=readers, writers=writers)

    SELECT orders(value).id, orders_error(value) FROM raw           -- columns of the subject's newest version
    SELECT to_orders(struct(id, place)) AS value FROM orders        -- records
    SELECT from_registry_any(value).json FROM raw                   -- JSON text (and `.type`) of any record
    SELECT * FROM from_registry(TABLE(raw), 'orders-value')         -- the columns of raw, value, schema_id, error

Spark fixes the type of a scalar function when it is registered, so each subject has its own function. Register the
functions again to see newer columns. The table function looks up its subject when a query is planned. It processes rows
one by one and has a tenth of the speed. All work in batch and streaming queries, and with Spark Connect.
`register_sql_functions` also adds the data source `stele`: see `stele.spark.datasource`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stele.errors import Invalid, NotInstalled
from stele.spark.datasource import add_source
from stele.spark.functions import to_spark_types
from stele.spark.registry import PATIENCE, RegistryLike, as_picklable, pin_schemas
from stele.spark.session import require_spark

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from stele.spark.decode.records import ReadPlan, RecordDecoder, Subjects, WritePlan
    from stele.spark.decode.rules import RulesLike
    from stele.spark.wires import WireLike

GENERIC: Final = "from_registry_any"
"""Name of the scalar function for records of any type."""
TABLE: Final = "from_registry"
"""Name of the table function."""
_ADDED: Final = ("value", "schema_id", "error")
_ROWS: Final = 1000  # number of rows that the table function decodes together


def register_sql_functions(
    spark: SparkSession,
    registry: RegistryLike,
    *,
    readers: Mapping[str, Subjects] | None = None,
    writers: Mapping[str, str] | None = None,
    wire: WireLike = "confluent",
    message: str = "",
    rules: RulesLike = "refuse",
    engine: str = "auto",
    patience: float = PATIENCE,
) -> list[str]:
    """Register the functions for SQL and return their names.

    Wires with ids in headers are not supported here; use `from_registry` of DataFrames for them. Raises what
    `from_registry` and `to_registry` raise, and `NotInstalled` before Spark 4.1.

    Args:
        spark: The session in which the functions are registered.
        registry: As for `from_registry`.
        readers: Subjects by the name of the function that decodes their records. A bad record is null; the function
            with `_error` after its name returns the reason.
        writers: Subjects by the name of the function that encodes a struct of columns with the newest version.
        wire: As for `from_registry`.
        message: As for `from_registry`.
        rules: As for `from_registry`.
        engine: As for `from_registry`.
        patience: As for `from_registry`.
    """
    require_spark()
    from pyspark.sql.functions import udtf

    from stele.spark.decode.records import plan_read, plan_write

    registry = as_picklable(registry)
    how: dict[str, Any] = {"message": message, "wire": wire, "rules": rules, "engine": _arrow_engine(engine)}
    functions: dict[str, tuple[Callable[..., Any], Any]] = {}

    def plan_column(subject: Subjects) -> ReadPlan:
        plan = plan_read(registry, subject, patience=patience, **how)
        if plan.wire.needs_headers:
            raise Invalid(f"the wire {plan.wire.name!r} has ids in headers, which a function of one column cannot see")
        return plan

    for name, subject in (readers or {}).items():
        plan = plan_column(subject)
        functions[name] = _decode_function(plan), plan.type
        functions[f"{name}_error"] = _error_function(plan), _error_type(plan)
    for name, subject in (writers or {}).items():
        writer = pin_schemas(registry, subject, patience=patience).reader
        functions[name] = _encode_function(plan_write(writer, registry, **how)), None
    generic = plan_column(None)
    functions[GENERIC] = _decode_function(generic), generic.type
    for name, (function, type_) in functions.items():
        _register_scalar(spark, name, function, type_)
    table: Any = udtf(_make_table_function(generic))
    spark.udtf.register(TABLE, table)
    add_source(spark)
    return [*functions, TABLE]


def _arrow_engine(engine: str) -> str:
    """Return an engine that works on Arrow arrays: `auto` in place of `jvm`, else the given one."""
    return "auto" if engine == "jvm" else engine


def _error_type(reading: ReadPlan) -> Any:
    from stele.spark.engines.base import error_type

    return error_type(reading.wire.id_type)


def _decode_function(reading: ReadPlan) -> Callable[[Any], Any]:
    decoders: list[Any] = []

    def values(records: Any) -> Any:
        if not decoders:
            decoders.append(reading.decoder())
        return decoders[0].decode(records).values

    return values


def _error_function(reading: ReadPlan) -> Callable[[Any], Any]:
    decoders: list[Any] = []

    def faults(records: Any) -> Any:
        from stele.spark.engines.base import error_structs

        if not decoders:
            decoders.append(reading.decoder())
        return error_structs(decoders[0].decode(records))

    return faults


def _encode_function(writing: WritePlan) -> Callable[[Any], Any]:
    encoders: list[Any] = []

    def records(values: Any) -> Any:
        from stele.spark.decode.records import RecordEncoder

        if not encoders:
            encoders.append(RecordEncoder(writing))
        return encoders[0].encode(values)[0]

    return records


def _register_scalar(spark: SparkSession, name: str, function: Callable[[Any], Any], type_: Any) -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.types import BinaryType

    make = getattr(f, "arrow_udf", None)
    if make is None:
        raise NotInstalled("Spark 4.1 (functions over Arrow arrays)", "spark")
    returned = BinaryType() if type_ is None else to_spark_types([type_])[0]
    function.__name__ = name
    spark.udf.register(name, make(_annotate_arrow(function), returned))


def _annotate_arrow(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add the annotations by which Spark recognises a function over Arrow arrays."""
    import pyarrow as pa

    function.__annotations__ = {next(iter(function.__annotations__)): pa.Array, "return": pa.Array}
    return function


# --- the table function ---------------------------------------------------------------------------------------------


def _make_table_function(like: ReadPlan) -> type:
    """Return the handler of `from_registry` in SQL. It reads as `like` does, with the subject that a query names."""

    class FromRegistry:
        """Replaces the column with records in each row by the decoded value, the schema id and the error."""

        def __init__(self) -> None:
            self._rows: list[Any] = []
            self._column = ""
            self._decoder: Any = None

        @staticmethod
        def analyze(rows: Any, subject: Any, column: Any = None) -> Any:
            """Return the columns: those of the table without the records, then value, schema_id and error."""
            from pyspark.sql.types import StructField, StructType
            from pyspark.sql.udtf import AnalyzeResult

            reading = _plan_like(like, subject.value)
            raw = "value" if column is None else column.value
            if not rows.isTable or raw not in rows.dataType.names:
                raise Invalid(f"the first argument must be a table with the column {raw!r}: from_registry(TABLE(t), …)")
            other_fields = [field for field in rows.dataType.fields if field.name != raw]
            types = to_spark_types([reading.type, reading.wire.id_type, _error_type(reading)])
            added = [StructField(name, type_) for name, type_ in zip(_ADDED, types, strict=True)]
            return AnalyzeResult(schema=StructType([*other_fields, *added]))

        def eval(self, rows: Any, subject: str, column: str = "value") -> Iterator[Any]:
            """Collect a row, and yield the decoded rows once there are `_ROWS` of them."""
            if self._decoder is None:
                self._decoder, self._column = _plan_like(like, subject).decoder(), column
            self._rows.append(rows)
            if len(self._rows) >= _ROWS:
                yield from self._flush()

        def terminate(self) -> Iterator[Any]:
            """Yield the remaining rows, decoded."""
            if self._rows:
                yield from self._flush()

        def _flush(self) -> Iterator[Any]:
            rows, self._rows = self._rows, []
            return _decode_rows(self._decoder, rows, self._column)

    return FromRegistry


def _plan_like(like: ReadPlan, subject: Any) -> ReadPlan:
    from stele.spark.decode.records import plan_read

    if not isinstance(subject, str):
        raise Invalid("the subject must be a constant string")
    return plan_read(
        like.registry, subject, wire=like.wire, rules=like.rules, engine=like.engine, patience=like.patience
    )


def _decode_rows(decoder: RecordDecoder, rows: list[Row], column: str) -> Iterator[tuple[Any, ...]]:
    import pyarrow as pa

    from stele.spark.engines.base import error_structs

    decoded = decoder.decode(pa.array([row[column] for row in rows], pa.binary()))
    values = decoded.values.to_pylist(maps_as_pydicts="lossy")
    outcomes = zip(rows, values, decoded.schema_ids.to_pylist(), error_structs(decoded).to_pylist(), strict=True)
    for row, value, number, error in outcomes:
        other_values = (each for name, each in zip(row.__fields__, row, strict=True) if name != column)
        yield (*other_values, value, number, error)
