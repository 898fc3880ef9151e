"""Plans for tables: planning is pure, an applied plan leaves no changes, and no column is ever lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from stele.spark.pipeline.schema_evolution import (
    ColumnChange,
    ColumnPath,
    TableCapabilities,
    can_hold,
    can_widen,
    change_schema,
    find_type,
    is_applied,
    make_nullable,
    plan_changes,
)
from stele.spark.pipeline.sinks.sql_table import format_type, quote_string
from stele.spark.types.metadata import comment_of
from stele.spark.types.names import quote_path

ALL = TableCapabilities(nested=True, rename=True, widens=can_widen)
TOP = TableCapabilities(nested=False, rename=False, widens=lambda _has, _wanted: False)

PLAIN: tuple[DataType, ...] = (
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    StringType(),
    DecimalType(6, 2),
    DecimalType(9, 2),
)


def struct(*fields: tuple[str, DataType]) -> StructType:
    """Return a struct of these columns."""
    return StructType([StructField(name, type_) for name, type_ in fields])


def structs(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    """Return a strategy for structs with a few names, some of which differ in case only."""
    names = st.lists(st.sampled_from(["a", "A", "b", "c", "d.e", "_stele_x"]), min_size=1, max_size=4, unique=True)
    return names.flatmap(
        lambda column_names: st.tuples(*(types for _ in column_names)).map(
            lambda column_types: struct(*zip(column_names, column_types, strict=True))
        )
    )


TYPES: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: st.one_of(
        inner.map(ArrayType), st.tuples(inner, inner).map(lambda two: MapType(*two)), structs(inner)
    ),
    max_leaves=6,
)
TABLES = structs(TYPES)
FORMER = st.dictionaries(
    st.lists(st.sampled_from(["a", "b", "c", "A"]), min_size=1, max_size=2).map(tuple),
    st.lists(st.sampled_from(["a", "b", "c", "d.e"]), max_size=2).map(tuple),
    max_size=3,
)


def paths(type_: DataType, path: ColumnPath = ()) -> Iterator[ColumnPath]:
    """Yield the paths of all columns, at every depth."""
    match type_:
        case StructType():
            for field in type_.fields:
                yield (*path, field.name)
                yield from paths(field.dataType, (*path, field.name))
        case ArrayType():
            yield from paths(type_.elementType, (*path, "element"))
        case MapType():
            yield from paths(type_.keyType, (*path, "key"))
            yield from paths(type_.valueType, (*path, "value"))


def lower(type_: DataType) -> list[ColumnPath]:
    """Return the paths of all columns in lower case, as Spark distinguishes them."""
    return [tuple(part.lower() for part in path) for path in paths(type_)]


def clashes(changes: tuple[ColumnChange, ...]) -> list[str]:
    """Return the columns that clash."""
    return [change.column for change in changes if change.kind == "clash"]


@given(TABLES, TABLES, FORMER, st.sampled_from(["rename", "add"]), st.sampled_from([ALL, TOP]))
def test_a_plan_that_is_carried_out_leaves_nothing_to_do(
    table: StructType,
    wanted: StructType,
    former: dict[ColumnPath, ColumnPath],
    renames: str,
    abilities: TableCapabilities,
) -> None:
    """After a plan is applied, every column of the schema exists and holds its values, and no column is lost.

    The next plan is empty.
    """
    if len(set(lower(table))) < len(lower(table)):
        return  # Spark has no such table
    changes = plan_changes(table, wanted, abilities, former=former, renames=renames)  # type: ignore[arg-type]  # of two words
    if clashes(changes):
        return
    after = change_schema(table, changes, wanted)
    again = plan_changes(after, wanted, abilities, former=former, renames=renames)  # type: ignore[arg-type]  # likewise
    assert {change.kind for change in again} <= {"left"}
    assert len(set(lower(after))) == len(lower(after))
    renamed = sum(change.kind == "rename" for change in changes)
    assert len(set(paths(table)) - set(paths(after))) >= bool(renamed)
    assert len(after.fields) >= len(table.fields)
    if not renamed:
        assert set(paths(table)) <= set(paths(after))
    for path in paths(wanted):
        has, given_ = find_type(after, path), find_type(wanted, path)
        assert has is not None
        assert given_ is not None
        if not list(paths(given_)) and not isinstance(given_, ArrayType | MapType):
            assert has == given_ or can_hold(has, given_)
    assert all(is_applied(change, after, wanted) for change in changes if change.kind != "rename")


@given(TABLES)
def test_new_tables_have_no_two_columns_of_one_name(wanted: StructType) -> None:
    """A plan creates the table, or names the columns that have the same name for Spark."""
    changes = plan_changes(None, wanted, ALL)
    twins = len(lower(wanted)) > len(set(lower(wanted)))
    assert {change.kind for change in changes} == ({"clash"} if twins else {"create"})
    assert all("ignores the case of names" in change.why for change in changes if twins)


def test_renames_by_earlier_names_at_every_depth() -> None:
    """A column takes its field's new name, and inner columns are planned under it. Lists and maps add no name."""
    place = struct(("ci ty", StringType()))
    table = struct(("old", place), ("l", ArrayType(place)), ("m", MapType(StringType(), place)))
    new = struct(("town", StringType()), ("zip", IntegerType()))
    wanted = struct(("new", new), ("l", ArrayType(new)), ("m", MapType(StringType(), new)))
    former = {("new",): ("older", "old")} | {(name, "town"): ("ci ty",) for name in ("new", "l", "m")}
    assert list(map(str, plan_changes(table, wanted, ALL, former=former))) == [
        "rename column old to new",
        "rename column new.ci ty to town",
        "add column new.zip int",
        "rename column l.element.ci ty to town",
        "add column l.element.zip int",
        "rename column m.value.ci ty to town",
        "add column m.value.zip int",
    ]
    added = plan_changes(table, wanted, ALL, former=former, renames="add")
    assert [str(change) for change in added[:2]] == [
        "add column new struct<town:string,zip:int>",
        "add column l.element.town string",
    ]
    assert {change.kind for change in added} == {"add", "left"}


@pytest.mark.parametrize(
    ("table", "wanted", "former", "beginnings"),
    [
        (("a", "b"), ("b", "c"), {("c",): ("a",)}, ["rename column a to c"]),
        (("a", "c"), ("c",), {("c",): ("a",)}, ["keep column a, which is no longer in the schema: null from now on"]),
        (("a",), ("a", "c"), {("c",): ("a",)}, ["add column c int"]),
        (("a",), ("b", "c"), {("b",): ("a",), ("c",): ("a",)}, ["rename column a to b", "add column c int"]),
        (("a",), ("A",), {("A",): ("a",)}, ["A: clash", "keep column a"]),
        (("a", "B"), ("b",), {("b",): ("a",)}, ["b: clash", "keep column a", "keep column B"]),
        (
            ("a", "b"),
            ("c", "C"),
            {("c",): ("a",), ("C",): ("b",)},
            ["rename column a to c", "C: clash", "keep column b"],
        ),
        ((), ("straße", "strasse"), {}, ["add column straße int", "add column strasse int"]),
        (("a",), ("c", "A"), {("c",): ("a",)}, ["rename column a to c", "add column A int"]),
        ((), ("x", "X"), {}, ["add column x int", "X: clash"]),
    ],
)
def test_one_column_takes_one_name(
    table: tuple[str, ...], wanted: tuple[str, ...], former: dict[ColumnPath, ColumnPath], beginnings: list[str]
) -> None:
    """A column is renamed once, and not to an existing name. Names that differ in case only are one column."""

    def columns(names: tuple[str, ...]) -> StructType:
        return struct(*((name, IntegerType()) for name in names))

    sentences = [
        f"{change.column}: clash" if change.kind == "clash" else str(change)
        for change in plan_changes(columns(table), columns(wanted), ALL, former=former)
    ]
    assert len(sentences) == len(beginnings)
    assert all(one.startswith(other) for one, other in zip(sentences, beginnings, strict=True)), sentences


def test_columns_of_fields_that_are_gone() -> None:
    """Columns of removed fields stay at every depth, or stop the pipeline if `drops` is `refuse`.

    The pipeline's own columns never stop it.
    """
    table = struct(("a", struct(("x", LongType()), ("y", LongType()))), ("b", LongType()), ("_stele_id", LongType()))
    wanted = struct(("a", struct(("x", LongType()))))
    assert [(change.kind, change.column) for change in plan_changes(table, wanted, ALL)] == [
        ("left", "a.y"),
        ("left", "b"),
        ("left", "_stele_id"),
    ]
    refused = plan_changes(table, wanted, ALL, drops="refuse")
    assert [(change.kind, change.column) for change in refused] == [
        ("clash", "a.y"),
        ("clash", "b"),
        ("left", "_stele_id"),
    ]


def test_what_a_kind_of_table_cannot_is_a_clash() -> None:
    """Nested columns, wider types and renames depend on the kind of table. Map keys cannot change with any kind."""
    table = struct(("a", struct(("x", IntegerType()))), ("n", IntegerType()))
    wanted = struct(("a", struct(("x", IntegerType()), ("y", StringType()))), ("n", LongType()))
    assert clashes(plan_changes(table, wanted, ALL)) == []
    assert clashes(plan_changes(table, wanted, TOP)) == ["a.y", "n"]
    assert clashes(plan_changes(struct(("a", LongType())), struct(("a", StringType())), ALL)) == ["a"]
    keys = (MapType(struct(("x", IntegerType())), LongType()), MapType(struct(("y", IntegerType())), LongType()))
    assert clashes(plan_changes(struct(("m", keys[0])), struct(("m", keys[1])), ALL)) == ["m.key.y"]
    numbers = (MapType(IntegerType(), LongType()), MapType(LongType(), LongType()))
    assert clashes(plan_changes(struct(("m", numbers[0])), struct(("m", numbers[1])), ALL)) == ["m.key"]
    assert plan_changes(struct(("m", numbers[1])), struct(("m", numbers[0])), ALL) == ()


@pytest.mark.parametrize(
    ("has", "given_", "fits", "grows"),
    [
        (LongType(), IntegerType(), True, False),
        (IntegerType(), LongType(), False, True),
        (IntegerType(), ShortType(), True, False),
        (FloatType(), DoubleType(), False, True),
        (DoubleType(), IntegerType(), False, False),
        (DecimalType(6, 2), DecimalType(9, 2), False, True),
        (DecimalType(6, 2), DecimalType(9, 3), False, False),
        (DecimalType(9, 3), DecimalType(8, 2), True, False),
        (DecimalType(9, 3), DecimalType(9, 2), False, False),
        (StringType(), NullType(), True, False),
        (StringType(), StringType(), True, False),
    ],
)
def test_which_values_a_column_takes(has: DataType, given_: DataType, fits: bool, grows: bool) -> None:
    """A column holds shorter numbers and nulls unchanged, and is widened for longer ones if no digit can be lost."""
    assert (has == given_ or can_hold(has, given_)) == fits
    assert can_widen(has, given_) == grows


def test_names_are_quoted_for_sql() -> None:
    """Dots, backquotes, quotes and backslashes in names and texts are preserved."""
    assert quote_path(["a.b", "c`d", "é"]) == "`a.b`.`c``d`.`é`"
    assert quote_string("it's \\n") == r"'it\'s \\n'"
    odd = struct(("a`b", ArrayType(struct(("c d", MapType(StringType(), DecimalType(5, 1)))))))
    assert format_type(odd) == "struct<`a``b`: array<struct<`c d`: map<string, decimal(5,1)>>>>"
    strict = StructType([StructField("a", ArrayType(StringType(), False), False, {"x": 1})])
    assert make_nullable(strict) == struct(("a", ArrayType(StringType())))


def make_commented(name: str, comment: str, type_: DataType) -> StructField:
    """Return a column with a comment."""
    return StructField(name, type_, metadata={"comment": comment} if comment else None)


def test_comments_follow_documentation() -> None:
    """A plan sets comments that differ, at every depth but in map keys. New columns have their comments."""
    key, number, text = struct(("k", IntegerType())), IntegerType(), StringType()
    table = StructType(
        [
            make_commented("id", "old", number),
            make_commented("place", "", struct(("city", text))),
            make_commented("m", "", MapType(key, number)),
            make_commented("own", "by hand", number),
        ]
    )
    wanted = StructType(
        [
            make_commented("id", "new", LongType()),
            make_commented(
                "place", "", StructType([make_commented("city", "Town", text), make_commented("zip", "Code", number)])
            ),
            make_commented("m", "", MapType(StructType([make_commented("k", "Key", number)]), number)),
            make_commented("own", "", number),
            make_commented("more", "More", number),
        ]
    )
    changes = plan_changes(table, wanted, ALL)
    assert [str(change) for change in changes if change.kind == "comment"] == [
        "comment column id: new",
        "comment column place.city: Town",
    ]
    after = change_schema(table, changes, wanted)
    assert plan_changes(after, wanted, ALL) == ()
    assert all(is_applied(change, after, wanted) for change in changes)
    assert {field.name: comment_of(field) for field in after.fields} == {
        "id": "new",
        "place": "",
        "m": "",
        "own": "by hand",
        "more": "More",
    }
    place = after["place"].dataType
    assert isinstance(place, StructType)
    assert [comment_of(field) for field in place.fields] == ["Town", "Code"]
