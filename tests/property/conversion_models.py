"""Neutral models as hypothesis draws them: every kind of type, names no language takes, and recursion."""

from __future__ import annotations

from hypothesis import strategies as st

from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
    Fixed,
    Map,
    Model,
    NamedType,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
    UnionOption,
)

NASTY = [
    *("", "_", "__", "1st", "a-b", "a b", "a_b", "aB", "A_B", "ab", "größe", "[x]", "\x00", "x" * 300, "\ud800"),
    *("option", "reserved", "message", "int32", "map", "oneof", "optional", "google", "confluent", "value", "Value"),
    *("_a", "a", "A", "AEntry", "a_item", "AItem", "Kind", "kind", "UNKNOWN", "X_a", "values", "package", "enum"),
]
"""Names that cause errors in writers of schemas."""
NAMES = st.sampled_from(NASTY) | st.text(max_size=8)
SPACES = ["", "a", "acme", "a.google", "google", "google.protobuf", "Acme.Orders", "A", "A.B", "a..b", "confluent.type"]

_LEAVES: st.SearchStrategy[Type] = st.one_of(
    st.sampled_from(ScalarKind).map(Scalar),
    st.builds(Decimal, st.none() | st.integers(1, 60), st.integers(-2, 12)),
    st.builds(Time, st.sampled_from(TimeUnit)),
    st.builds(Timestamp, st.sampled_from(TimeUnit), st.booleans()),
    st.builds(Duration, st.sampled_from(TimeUnit), st.booleans()),
)


def model_types(names: list[str]) -> st.SearchStrategy[Type]:
    """Types that may use the named ones."""
    leaves = _LEAVES | st.sampled_from(names).map(TypeReference) if names else _LEAVES
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Array, inner, st.booleans()),
            st.builds(Map, inner, st.sampled_from(ScalarKind).map(Scalar), st.booleans()),
            st.lists(st.builds(UnionOption, inner, NAMES), min_size=2, max_size=3).map(lambda each: Union(tuple(each))),
        ),
        max_leaves=4,
    )


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A model of up to six named types that use each other in any way."""
    pairs = draw(st.lists(st.tuples(st.sampled_from(SPACES), NAMES), max_size=6))
    names = list(dict.fromkeys(f"{space}.{name}" if space else name for space, name in pairs))
    kinds = model_types(names)
    declared: dict[str, NamedType] = {}
    for name in names:
        declared[name] = draw(
            st.one_of(_record_types(name, kinds), _record_types(name, kinds), _enum_types(name), _fixed_type(name))
        )
    return Model(draw(kinds), declared, nullable=draw(st.booleans()), doc=draw(NAMES))


@st.composite
def _record_types(draw: st.DrawFn, name: str, kinds: st.SearchStrategy[Type]) -> RecordType:
    names = draw(st.lists(NAMES, max_size=5, unique=True))
    field_strategy = st.builds(
        RecordField,
        st.just(""),
        kinds,
        nullable=st.booleans(),
        required=st.booleans(),
        default=st.sampled_from([ABSENT, None, 0, False, "", [], {}, 5, "x"]),
        doc=NAMES,
        number=st.none() | st.integers(-5, 20) | st.sampled_from([18_999, 19_000, 19_999, 1 << 29, (1 << 29) - 1]),
        aliases=st.just(()) | st.just(("old",)),
        constraints=st.just({}) | st.just({"minimum": 0, "maximum": 9}),
    )
    fields = []
    for each in names:
        drawn = draw(field_strategy)
        values = {key: getattr(drawn, key) for key in drawn.__struct_fields__}
        fields.append(RecordField(**(values | {"name": each})))
    groups = draw(st.dictionaries(NAMES, st.lists(st.sampled_from(names), max_size=3), max_size=2)) if names else {}
    return RecordType(
        name,
        tuple(fields),
        doc=draw(NAMES),
        open=draw(st.sampled_from([None, True, False])),
        at_most_one={group: tuple(members) for group, members in groups.items()},
    )


@st.composite
def _enum_types(draw: st.DrawFn, name: str) -> Enumeration:
    numbers = st.none() | st.integers(-3, 5) | st.just(1 << 40)
    symbols = draw(st.lists(st.builds(EnumSymbol, NAMES, numbers, NAMES), max_size=5, unique_by=lambda each: each.name))
    default = draw(st.sampled_from(["", *(symbol.name for symbol in symbols)]))
    return Enumeration(name, tuple(symbols), default=default, doc=draw(NAMES))


def _fixed_type(name: str) -> st.SearchStrategy[Fixed]:
    return st.integers(0, 20).map(lambda size: Fixed(name, size))
