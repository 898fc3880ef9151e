"""Properties of the Thrift format for generated documents, schemas, data and noise, with thriftpy2 as an oracle."""

from __future__ import annotations

import io
import itertools
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import thriftpy2
from hypothesis import given
from hypothesis import strategies as st
from thriftpy2 import transport
from thriftpy2.protocol import binary as protocol

from stele.core.ports import TextForm
from stele.errors import DecodeError, EncodeError, MalformedSchema, SteleError
from stele.formats.thrift import THRIFT, ThriftSchema
from stele.formats.thrift.grammar import clean_comment, format_comment, parse_document
from stele.formats.thrift.printer import print_document
from stele.formats.thrift.schema import (
    Annotation,
    BaseType,
    Const,
    ContainerType,
    CppInclude,
    Definition,
    EnumValue,
    Include,
    ListValue,
    LiteralValue,
    MapValue,
    Requiredness,
    Senum,
    ThriftDocument,
    ThriftEnum,
    ThriftField,
    ThriftFunction,
    ThriftNamespace,
    ThriftService,
    ThriftStruct,
    ThriftType,
    Typedef,
    TypeName,
    Value,
    ValueName,
)

Refusal = TypeVar("Refusal", bound=SteleError)


def catch_refusal(call: Callable[[], object], kind: type[Refusal]) -> Refusal | None:
    """Return the error of a kind that a call raises, None without one. Other errors pass through."""
    try:
        call()
    except kind as error:
        return error
    return None


BASES = ["bool", "byte", "i8", "i16", "i32", "i64", "double", "string", "binary", "slist"]
KINDS = ["bool", "i8", "i16", "i32", "i64", "double", "string", "binary"]

# --- documents: anything the grammar allows, whether it means something or not ---------------------------------------

names = st.sampled_from(["a", "B", "c_1", "_d", "uuid", "Order"])
paths = st.builds(".".join, st.lists(names, min_size=1, max_size=3))
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
docs = st.builds(
    lambda text: clean_comment(f"/** {text} */"),
    st.text(st.sampled_from("ab *\n\t/é.").filter(lambda c: c != "/"), max_size=20),
)
annotations = st.lists(st.builds(Annotation, paths, st.none() | texts), max_size=2).map(tuple)
requiredness = st.sampled_from(Requiredness)


def _containers(inner: st.SearchStrategy[ThriftType]) -> st.SearchStrategy[ThriftType]:
    cpp = st.none() | texts
    single = st.builds(
        ContainerType, st.sampled_from(["list", "set"]), st.tuples(inner), cpp_type=cpp, annotations=annotations
    )
    return single | st.builds(
        ContainerType, st.just("map"), st.tuples(inner, inner), cpp_type=cpp, annotations=annotations
    )


types: st.SearchStrategy[ThriftType] = st.recursive(
    st.builds(BaseType, st.sampled_from(BASES), annotations) | st.builds(TypeName, paths), _containers, max_leaves=4
)
values: st.SearchStrategy[Value] = st.recursive(
    st.builds(
        LiteralValue,
        st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    )
    | st.builds(ValueName, paths),
    lambda inner: (
        st.builds(ListValue, st.lists(inner, max_size=3).map(tuple))
        | st.builds(MapValue, st.lists(st.tuples(inner, inner), max_size=3).map(tuple))
    ),
    max_leaves=5,
)


@st.composite
def field_lists(draw: st.DrawFn, depth: int = 0) -> tuple[ThriftField, ...]:
    """Return fields with ids or without; implicit ids count down from the last id that is not positive."""
    following = -1
    fields = []
    for _ in range(draw(st.integers(0, 3))):
        implicit = draw(st.booleans())
        number = following if implicit else draw(st.integers(-20, 20))
        if number <= 0:
            following = number - 1
        field = ThriftField(
            number,
            draw(names | st.sampled_from(["required", "string", "struct"])),
            draw(types),
            draw(requiredness),
            draw(st.none() | values),
            implicit=implicit,
            boxed=draw(st.booleans()),
            xsd_optional=draw(st.booleans()),
            xsd_nillable=draw(st.booleans()),
            xsd_attrs=draw(st.none() | field_lists(depth + 1)) if depth == 0 else None,
            annotations=draw(annotations),
            doc=draw(docs),
        )
        fields.append(field)
    return tuple(fields)


@st.composite
def enum_values(draw: st.DrawFn) -> tuple[EnumValue, ...]:
    """Return values with numbers or without; implicit numbers count up from the previous one."""
    number = -1
    members = []
    for name in draw(st.lists(names, max_size=3)):
        implicit = draw(st.booleans())
        number = number + 1 if implicit else draw(st.integers(-(2**31), 2**31 - 5))
        members.append(EnumValue(name, number, implicit, draw(annotations), draw(docs)))
    return tuple(members)


functions = st.builds(
    ThriftFunction, names, st.none() | types, field_lists(), field_lists(), st.booleans(), annotations, docs
)
definitions: st.SearchStrategy[Definition] = st.one_of(
    st.builds(Typedef, names, types, annotations, docs),
    st.builds(Const, names, types, values, docs),
    st.builds(ThriftEnum, names, enum_values(), annotations, docs),
    st.builds(Senum, names, st.lists(texts, max_size=3).map(tuple), annotations, docs),
    st.builds(
        ThriftStruct, st.sampled_from(["struct", "union"]), names, field_lists(), st.booleans(), annotations, docs
    ),
    st.builds(ThriftStruct, st.just("exception"), names, field_lists(), st.just(False), annotations, docs),
    st.builds(ThriftService, names, st.lists(functions, max_size=2).map(tuple), st.just("") | paths, annotations, docs),
)
headers = st.one_of(
    st.builds(Include, texts, docs),
    st.builds(CppInclude, texts, docs),
    st.builds(ThriftNamespace, st.just("*") | paths, paths, annotations, docs),
)
documents = st.builds(
    ThriftDocument, st.lists(headers, max_size=2).map(tuple), st.lists(definitions, max_size=3).map(tuple)
)


@given(documents)
def test_parsing_undoes_printing(document: ThriftDocument) -> None:
    """Parsing a printed document gives the same document."""
    assert parse_document(print_document(document)) == document


@given(st.text(st.sampled_from("ab *\n\t/é."), max_size=30).filter(lambda text: "*/" not in f"{text} "))
def test_cleaning_undoes_commenting(text: str) -> None:
    """The text of a documentation comment is read back from the printed comment."""
    doc = clean_comment(f"/** {text} */")
    assert clean_comment("\n".join(format_comment(doc, "  ")) or "/** */") == doc


@given(documents, st.data())
def test_damaged_documents(document: ThriftDocument, data: st.DataObject) -> None:
    """A document with a part removed or inserted is parsed, or rejected with its position."""
    text = print_document(document)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 3)))
    noise = data.draw(st.text(st.sampled_from("{}()<>[]:;,=\"'/*#&.-+0x1e \n"), max_size=3))
    error = catch_refusal(lambda: THRIFT.parse((text[:start] + noise + text[end:]).encode(), {}), MalformedSchema)
    assert error is None or (error.line is not None and error.column is not None)


@given(st.binary(max_size=200))
def test_noise_is_no_schema(text: bytes) -> None:
    """Any bytes are a schema or malformed."""
    error = catch_refusal(lambda: THRIFT.parse(text, {}), MalformedSchema)
    assert error is None or str(error)


# --- schemas that mean something ------------------------------------------------------------------------------------


@st.composite
def struct_bodies(draw: st.DrawFn, kinds: list[str], *, union: bool = False) -> str:
    """The fields of a struct of types from kinds, with defaults that fit."""
    ids = draw(st.lists(st.integers(1, 30), min_size=1 if union else 0, max_size=4, unique=True))
    fields = []
    for number in ids:
        kind = draw(st.sampled_from(kinds))
        if draw(st.integers(0, 3)) == 0:
            shape = draw(st.sampled_from(["list<{}>", "set<{}>", "map<{}, {}>", "list<list<{}>>", "map<string, {}>"]))
            kind = shape.format(kind, kind)
        word = "" if union else draw(st.sampled_from(["", "", "optional ", "required "]))
        default = f" = {draw(st.integers(0, 9))}" if kind in {"i32", "Id", "i64"} and draw(st.booleans()) else ""
        fields.append(f"{number}: {word}{kind} f{number}{'' if union else default}")
    return ", ".join(fields)


@st.composite
def schemas(draw: st.DrawFn) -> str:
    """Structs and unions that use those before them, an enum and a typedef."""
    values = draw(st.lists(st.integers(-3, 9), min_size=1, max_size=4, unique=True))
    lines = ["typedef i32 Id", f"enum E {{ {', '.join(f'V{abs(v)}{v < 0:d} = {v}' for v in values)} }}"]
    kinds = [*KINDS, "E", "Id"]
    for name in "ABC":
        kind = draw(st.sampled_from(["struct", "struct", "union"]))
        lines.append(f"{kind} {name} {{ {draw(struct_bodies(kinds, union=kind == 'union'))} }}")
        kinds.append(name)
    lines.append(f"struct S {{ {draw(struct_bodies(kinds))} }}")
    return "\n".join(lines)


def parse_schema(text: str) -> ThriftSchema:
    """Parse a schema given as text."""
    return THRIFT.parse(text.encode(), {})


@given(schemas())
def test_stable_texts(text: str) -> None:
    """Each stable text prints to itself, has the same fingerprints, and is compatible with the schema both ways."""
    schema = parse_schema(text)
    for form in TextForm:
        printed = THRIFT.canonical(schema, form)
        again = THRIFT.parse(printed, {})
        assert THRIFT.canonical(again, form) == printed
        assert THRIFT.fingerprints(again) == THRIFT.fingerprints(schema)
        assert again.type_name == schema.type_name
        for ruleset in THRIFT.rulesets if form is not TextForm.CANONICAL else ["thrift-wire"]:
            assert THRIFT.check(again, schema, ruleset) == THRIFT.check(schema, again, ruleset) == []


@given(schemas(), st.randoms(use_true_random=False))
def test_order_without_meaning(text: str, chance: Any) -> None:
    """The order in which fields are declared does not matter."""
    document = parse_document(text)
    shuffled = tuple(
        replace(each, fields=tuple(chance.sample(each.fields, len(each.fields))))
        if isinstance(each, ThriftStruct)
        else each
        for each in document.definitions
    )
    other = parse_schema(print_document(replace(document, definitions=shuffled)))
    assert THRIFT.canonical(other, TextForm.NORMALIZED) == THRIFT.canonical(parse_schema(text), TextForm.NORMALIZED)


# --- data -----------------------------------------------------------------------------------------------------------

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "i8": st.integers(-(2**7), 2**7 - 1),
    "i16": st.integers(-(2**15), 2**15 - 1),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "i64": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "string": st.text(max_size=5),
    "binary": st.binary(max_size=5),
    "uuid": st.uuids().map(str),
}


def data_of(schema: ThriftSchema, kind: ThriftType) -> st.SearchStrategy[Any]:
    """Data of a type, as it is decoded."""
    resolved = schema.unit.resolve_type(kind)
    match resolved.node:
        case ThriftEnum(values=found):
            return st.sampled_from([value.name for value in found])
        case ThriftStruct(kind="union", fields=fields):
            return st.one_of(*(st.fixed_dictionaries({each.name: data_of(schema, each.type)}) for each in fields))
        case ThriftStruct(fields=fields):
            needed = [each for each in fields if each.requiredness is Requiredness.REQUIRED or each.default is not None]
            others = [each for each in fields if each not in needed]
            return st.fixed_dictionaries(
                {each.name: data_of(schema, each.type) for each in needed},
                optional={each.name: data_of(schema, each.type) for each in others},
            )
        case ContainerType(kind="map", items=(key, value)):
            pairs = st.lists(st.tuples(data_of(schema, key), data_of(schema, value)), max_size=3, unique_by=_sort_key)
            scalar = schema.unit.resolve_type(key).kind in {*SCALARS, "enum"}
            return pairs.map(dict) if scalar else pairs
        case ContainerType(kind="set", items=(item,)):
            return st.lists(data_of(schema, item), max_size=3, unique_by=repr)
        case ContainerType(items=(item,)):
            return st.lists(data_of(schema, item), max_size=3)
    return SCALARS[resolved.kind]


def _sort_key(pair: tuple[Any, Any]) -> str:
    return repr(pair[0] + 0.0 if isinstance(pair[0], float) else pair[0])


@st.composite
def schemas_with_data(draw: st.DrawFn) -> tuple[str, Any]:
    """A schema and a datum of it."""
    text = draw(schemas())
    return text, draw(data_of(parse_schema(text), TypeName("S")))


@given(schemas_with_data())
def test_data_come_back(sample: tuple[str, Any]) -> None:
    """Decoding reverses encoding, and data that fit are valid."""
    codec = THRIFT.codec(parse_schema(sample[0]))
    assert codec.validate(sample[1]) == []
    assert codec.decode(codec.encode(sample[1])) == sample[1]


@given(schemas())
def test_examples_fit(text: str) -> None:
    """The example of a schema is valid, and is decoded from its bytes."""
    codec = THRIFT.codec(parse_schema(text))
    example = codec.example()
    assert codec.decode(codec.encode(example)) == example


@given(schemas_with_data(), schemas())
def test_compatible_schemas_read_data(sample: tuple[str, Any], other: str) -> None:
    """If `thrift-wire` has no finding, data of one schema are read with the other."""
    writer, reader = parse_schema(sample[0]), parse_schema(other)
    if not THRIFT.check(reader, writer):
        THRIFT.codec(writer, reader).decode(THRIFT.codec(writer).encode(sample[1]))


@given(schemas_with_data(), st.data())
def test_changed_schemas_read_data(sample: tuple[str, Any], data: st.DataObject) -> None:
    """The same for small changes, which are compatible far more often than unrelated schemas."""
    document = parse_document(sample[0])
    changed = []
    for each in document.definitions:
        if isinstance(each, ThriftStruct) and each.fields:
            at = data.draw(st.integers(0, len(each.fields) - 1))
            change = data.draw(st.sampled_from([_drop_field, _require, _loosen, _retype, _keep_fields]))
            changed.append(replace(each, fields=change(each.fields, at)))
        else:
            changed.append(each)
    writer, reader = (
        parse_schema(sample[0]),
        parse_schema(print_document(replace(document, definitions=tuple(changed)))),
    )
    codec = THRIFT.codec(writer, reader)
    encoded = codec.encode(sample[1])
    if not THRIFT.check(reader, writer):
        datum = codec.decode(encoded)
        known = {field.name for field in reader.find_struct().fields}
        assert {name for name in sample[1] if name in known} <= set(datum)


def _keep_fields(fields: tuple[ThriftField, ...], at: int) -> tuple[ThriftField, ...]:
    return fields


def _drop_field(fields: tuple[ThriftField, ...], at: int) -> tuple[ThriftField, ...]:
    return fields[:at] + fields[at + 1 :]


def _change_members(**members: Any) -> Callable[[tuple[ThriftField, ...], int], tuple[ThriftField, ...]]:
    def change(fields: tuple[ThriftField, ...], at: int) -> tuple[ThriftField, ...]:
        return (*fields[:at], replace(fields[at], **members), *fields[at + 1 :])

    return change


_require = _change_members(requiredness=Requiredness.REQUIRED)
_loosen = _change_members(requiredness=Requiredness.OPTIONAL)
_retype = _change_members(type=BaseType("i32"), default=None)


@given(schemas_with_data(), st.data())
def test_damaged_data(sample: tuple[str, Any], data: st.DataObject) -> None:
    """Bytes that are cut or changed are a datum that can be written again, or refused."""
    codec = THRIFT.codec(parse_schema(sample[0]))
    encoded = bytearray(codec.encode(sample[1]))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    broken = catch_refusal(lambda: codec.decode(bytes(encoded)), DecodeError)
    if broken is not None:
        assert broken.offset is not None
        return
    datum = codec.decode(bytes(encoded))
    error = catch_refusal(lambda: codec.encode(datum), EncodeError)
    # These can be read but not written: a set with an item twice, a union whose member is not known.
    assert error is None or "twice" in str(error) or "0 members" in str(error)


@given(
    schemas(),
    st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)),
)
def test_any_value_is_encoded_or_refused(text: str, datum: Any) -> None:
    """A value of any structure is encoded or rejected, and validate agrees with encode."""
    codec = THRIFT.codec(parse_schema(text))
    problems = codec.validate(datum)
    assert bool(problems) is (catch_refusal(lambda: codec.encode(datum), EncodeError) is not None)


# --- a second opinion -----------------------------------------------------------------------------------------------

_MODULES = itertools.count()


def load_thriftpy_module(text: str) -> Any:
    """The schema as thriftpy2 understands it."""
    return thriftpy2.load_fp(io.StringIO(text), f"second{next(_MODULES)}_thrift")


def to_comparable(schema: ThriftSchema, kind: ThriftType, value: Any) -> Any:
    """Return a value of thriftpy2 in the form of our codec, for comparison."""
    resolved = schema.unit.resolve_type(kind)
    match resolved.node:
        case ThriftEnum(values=found):
            return next(each.name for each in found if each.number == value)
        case ThriftStruct(fields=fields):
            members = {each.name: (each.type, getattr(value, each.name)) for each in fields}
            return {name: to_comparable(schema, *each) for name, each in members.items() if each[1] is not None}
        case ContainerType(kind="map", items=(key, item)):
            pairs = [(to_comparable(schema, key, k), to_comparable(schema, item, v)) for k, v in value.items()]
            return dict(pairs) if schema.unit.resolve_type(key).kind in {*SCALARS, "enum"} else pairs
        case ContainerType(items=(item,)):
            return [to_comparable(schema, item, each) for each in value]
    return value


@given(schemas_with_data())
def test_another_library_reads_the_same(sample: tuple[str, Any]) -> None:
    """thriftpy2 reads our bytes as the same datum and writes bytes that we read as the same datum."""
    text, datum = sample
    schema = parse_schema(text)
    codec = THRIFT.codec(schema)
    theirs = load_thriftpy_module(text).S()
    protocol.TBinaryProtocol(transport.TMemoryBuffer(codec.encode(datum))).read_struct(theirs)
    assert to_comparable(schema, TypeName("S"), theirs) == datum
    buffer = transport.TMemoryBuffer()
    protocol.TBinaryProtocol(buffer).write_struct(theirs)
    assert codec.decode(buffer.getvalue()) == datum


def test_uuids_are_sixteen_bytes() -> None:
    """The type that other Python libraries lack: sixteen bytes in the order of the text."""
    codec = THRIFT.codec(parse_schema("struct S { 1: uuid u }"))
    value = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    assert codec.encode({"u": value})[3:19] == value.bytes
    assert codec.decode(codec.encode({"u": value})) == {"u": str(value)}
