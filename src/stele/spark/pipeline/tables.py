"""The tables of one pipeline: their changes, and the appending of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stele.client.serdes.schemas import parse_schema
from stele.errors import Conflict, DataError, Invalid
from stele.formats.capabilities import HasOutline, OutlineNode
from stele.formats.registry import get_format
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.dead_letters import dead_letter_columns, select_dead_letters
from stele.spark.pipeline.routes import PinnedRoute, RouteGroup
from stele.spark.pipeline.schema_evolution import FieldPath, TableChange, TablePlan, plan_changes
from stele.spark.pipeline.sinks import Sink, open_sink
from stele.spark.registry import PinnedSchemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class PipelineTables:
    """A table for each route, and one for dead letters."""

    def __init__(self, spark: SparkSession, config: PipelineConfig) -> None:
        self._config = config
        self.sinks = {route.table: open_sink(spark, config.table, route.table) for route in config.routes}
        self.dead_letters = open_sink(spark, config.table, config.dead_letter_table)

    def plan_tables(self, routes: Sequence[PinnedRoute]) -> list[TablePlan]:
        """Return the changes that the tables need, including clashes. Changes nothing."""
        plans = [self._plan_table(route) for route in routes]
        columns = dead_letter_columns(self._config)
        own = plan_changes(self.dead_letters.load_columns(), columns, self.dead_letters.capabilities, renames="add")
        return [*plans, TablePlan(self._config.dead_letter_table, "", 0, own)]

    def evolve(self, routes: Sequence[PinnedRoute], *, is_confirmed: bool = False) -> tuple[TableChange, ...]:
        """Apply the planned changes and return them, those of the dead-letter table last.

        is_confirmed   whether the user confirmed the plans, which `changes = "ask"` requires
        Raises `Conflict` when a table cannot take its schema, or the confirmation is missing.
        """
        plans = self.plan_tables(routes)
        for plan in plans:
            if plan.clashes:
                reasons = "; ".join(map(str, plan.clashes))
                raise Conflict(
                    f"the table {plan.table} cannot take version {plan.version} of {plan.subject}: {reasons}"
                )
        # a new comment changes no data, so it needs no confirmation
        waiting = [(plan.table, step) for plan in plans[:-1] for step in plan.steps if step.kind != "comment"]
        if waiting and self._config.table.changes == "ask" and not is_confirmed:
            steps = "; ".join(f"{table}: {step}" for table, step in waiting)
            raise Conflict(f"tables must change: approve it with `stele pipeline plan FILE --apply`: {steps}")
        for route, plan in zip(routes, plans, strict=False):
            if plan.steps:
                self.sinks[plan.table].apply_changes(plan.steps, route.table_columns(self._config))
        if plans[-1].steps:
            self.dead_letters.apply_changes(plans[-1].steps, dead_letter_columns(self._config))
        return tuple(TableChange(plan.table, step) for plan in plans for step in plan.steps)

    def append_rows(self, group: RouteGroup, judged: DataFrame, application: str, batch: int) -> None:
        """Append the rows of a group's routes to their tables, each once."""
        for route in group.routes:
            rows = route.select_rows(judged, self._config, group.value_column(route))
            _append(self.sinks[route.config.table], rows, application, batch)

    def append_dead_letters(self, judged: Sequence[DataFrame], application: str, batch: int) -> None:
        """Append the dead letters of a batch to their table, once."""
        letters = [select_dead_letters(each, application, batch) for each in judged]
        rows = letters[0]
        for each in letters[1:]:
            rows = rows.unionByName(each)
        _append(self.dead_letters, rows, application, batch)

    def _plan_table(self, route: PinnedRoute) -> TablePlan:
        sink, table = self.sinks[route.config.table], self._config.table
        changes = plan_changes(
            sink.load_columns(),
            route.table_columns(self._config),
            sink.capabilities,
            former=former_names(route.pinned, route.config.message),
            renames=table.renames,
            drops=table.drops,
        )
        return TablePlan(route.config.table, route.pinned.subject, route.pinned.reader_version, changes)


def _append(sink: Sink, rows: DataFrame, application: str, batch: int) -> None:
    columns = sink.load_columns()
    assert columns is not None
    sink.append_batch(conform_rows(rows, columns), application, batch)


def conform_rows(rows: DataFrame, columns: StructType) -> DataFrame:
    """Return the rows in a table's columns: numbers are widened, and missing columns are null, at every depth."""
    return rows.to(columns)


def former_names(pinned: PinnedSchemas, message: str = "") -> dict[FieldPath, FieldPath]:
    """Return earlier names of the fields that become columns, by field path.

    They are the aliases in the reader's schema, and the names that fields of the same number had in earlier versions.
    """
    own = sorted(
        (each for each in pinned.snapshot.schemas if each.subject == pinned.subject and each.version),
        key=lambda each: -each.version,
    )
    newest = _schema_outline(pinned.reader)
    if newest is None:
        return {}
    earlier = [
        outline
        for each in own
        if each.version < pinned.reader_version and (outline := _schema_outline(each)) is not None
    ]
    return dict(_FormerNames(newest, earlier).collect_names(message))


def _schema_outline(schema: Any) -> list[OutlineNode] | None:
    """Return the declarations of a schema, or None if its format has no outline or its text cannot be parsed."""
    try:
        format_: Any = get_format(schema.schema_type.lower())
        return format_.outline(parse_schema(schema).parsed) if isinstance(format_, HasOutline) else None
    except (DataError, Invalid):
        return None


class _FormerNames:
    """Collects former names from the root type and the types that its fields use."""

    def __init__(self, newest: list[OutlineNode], earlier: list[list[OutlineNode]]) -> None:
        self._nodes = {node.path: node for node in newest}
        self._fields: dict[str, list[OutlineNode]] = {}
        for node in newest:
            if node.kind == "field" and node.parent is not None:
                self._fields.setdefault(node.parent, []).append(node)
        self._numbered: dict[tuple[str, str], list[str]] = {}
        for nodes in earlier:
            for node in nodes:
                if node.kind == "field" and node.identity and node.parent is not None:
                    self._numbered.setdefault((node.parent, node.identity), []).append(node.name)

    def collect_names(self, message: str) -> list[tuple[FieldPath, FieldPath]]:
        types = [path for path in self._fields if not message or path == message or path.endswith(f".{message}")]
        return self._collect_type(types[0], (), frozenset()) if types else []

    def _collect_type(self, path: str, names: FieldPath, inside: frozenset[str]) -> list[tuple[FieldPath, FieldPath]]:
        renames: list[tuple[FieldPath, FieldPath]] = []
        for node in self._fields.get(path, ()):
            at = (*names, node.name)
            numbered = self._numbered.get((path, node.identity), ()) if node.identity else ()
            former = tuple(dict.fromkeys(name for name in (*node.aliases, *numbered) if name != node.name))
            if former:
                renames.append((at, former))
            for used in node.uses:
                if used not in inside and len(at) < MOST_LEVELS:
                    renames += self._collect_type(used, at, inside | {path, used})
        return renames


MOST_LEVELS = 32
"""Maximum levels of nesting in which renamed fields are looked for."""
