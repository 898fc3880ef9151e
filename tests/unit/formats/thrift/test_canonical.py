"""The stable texts and their digests."""

from __future__ import annotations

from stele.core.ports import TextForm
from stele.formats.thrift import THRIFT, ThriftSchema

EVERYTHING = b"""
/** about the include */ include "shared.thrift"
namespace py b (k = "v")
cpp_include "<x>"
typedef i32 Id (a = "b", c)
const map<string, list<double>> M = {"x": [1.5, 2], "a\\tb": []}
/** A colour. */
enum Color { RED, /** Two
   lines. */ GREEN = 5 (k = "v"), BLUE }
senum Old { "a", "b" }
union U xsd_all { 1: i32 a; 2: binary b }
struct S {
  3: optional shared.T t, /** doc */ 1: required Id id = 7 (x),
  i64 counted, byte & b = -1 xsd_optional xsd_nillable xsd_attrs { 1: i32 z },
  2: map cpp_type "M" <Color, list<U> > m = {Color.RED: []}
} (final)
exception X { 1: string why }
service V extends shared.Base {
  oneway void b(/** the argument */ 1: optional i32 x),
  S a() throws (1: X e) (k)
}
"""
REFERENCES = {"shared.thrift": b"struct T { 1: i32 a }\nservice Base {}"}

PRINTED = """/** about the include */
include "shared.thrift"
namespace py b (k = "v")
cpp_include "<x>"

typedef i32 Id (a = "b", c)

const map<string, list<double>> M = {"x": [1.5, 2], "a\\tb": []}

/** A colour. */
enum Color {
  RED,
  /**
   * Two
   * lines.
   */
  GREEN = 5 (k = "v"),
  BLUE,
}

senum Old {
  "a",
  "b",
}

union U xsd_all {
  1: i32 a,
  2: binary b,
}

struct S {
  3: optional shared.T t,
  /** doc */
  1: required Id id = 7 (x),
  i64 counted,
  byte & b = -1 xsd_optional xsd_nillable xsd_attrs {1: i32 z},
  2: map cpp_type "M" <Color, list<U>> m = {Color.RED: []},
} (final)

exception X {
  1: string why,
}

service V extends shared.Base {
  oneway void b(
    /** the argument */
    1: optional i32 x,
  ),
  S a() throws (1: X e) (k),
}
"""

CANONICAL = """include "shared.thrift"

enum Color {
  RED = 0,
  GREEN = 5,
  BLUE = 6,
}

union U {
  1: i32 a,
  2: binary b,
}

struct S {
  1: required i32 id = 7,
  2: map<Color, list<U>> m = {0: []},
  3: optional shared.T t,
  -1: i64 counted,
  -2: i8 b = -1,
}

exception X {
  1: string why,
}

service V extends shared.Base {
  S a() throws (1: X e),
  oneway void b(1: i32 x),
}
"""


def parse_schema(text: bytes) -> ThriftSchema:
    """Parse with the shared document at hand."""
    return THRIFT.parse(text, REFERENCES)


def print_form(text: bytes, form: TextForm = TextForm.CANONICAL) -> str:
    """One of the stable texts."""
    return THRIFT.canonical(parse_schema(text), form).decode()


def test_printed() -> None:
    """PRINTED loses nothing, and its layout is always the same."""
    assert print_form(EVERYTHING, TextForm.PRINTED) == PRINTED


def test_canonical() -> None:
    """CANONICAL contains only what defines data and calls, in one spelling."""
    assert print_form(EVERYTHING) == CANONICAL


def test_texts_are_fixed_points() -> None:
    """Printing a stable text gives the same text, and all of them have the same canonical text."""
    for form in TextForm:
        text = print_form(EVERYTHING, form).encode()
        assert print_form(text, form).encode() == text
        assert print_form(text) == CANONICAL


def test_normalized_sorts_what_has_no_order() -> None:
    """Headers, fields, enum values, functions, annotations and map entries are sorted by NORMALIZED."""
    one = (
        b'namespace py a\nnamespace cpp b\nenum E { B = 1, A = 0 (y = "2", x) }\nstruct S { 2: i32 b, 1: slist a }\n'
        b"const map<i32, i32> M = {2: 1, 1: 2}\nservice V { void b(), void a() }"
    )
    two = (
        b'namespace cpp b;namespace py a\nenum E { A (x = "1", y = "2"), B }\nstruct S { 1: string a; 2: i32 b }\n'
        b"const map<i32, i32> M = {1: 2, 2: 1}\nservice V { void a() void b() }"
    ).replace(b";namespace", b"\nnamespace")
    assert print_form(one, TextForm.NORMALIZED) == print_form(two, TextForm.NORMALIZED)
    assert print_form(one, TextForm.PRINTED) != print_form(two, TextForm.PRINTED)


def test_normalized_keeps_the_order_of_definitions() -> None:
    """NORMALIZED keeps the order of definitions, because the last struct is the type of the data."""
    one, two = b"struct A {}\nstruct B {}", b"struct B {}\nstruct A {}"
    assert print_form(one, TextForm.NORMALIZED) != print_form(two, TextForm.NORMALIZED)


def test_counted_fields_stay_in_counting_order() -> None:
    """Fields without ids are printed with their implicit ids, in the order in which a compiler assigns the same ids."""
    assert print_form(b"struct S { i32 a, 1: i32 c, i32 b }") == (
        "struct S {\n  1: i32 c,\n  -1: i32 a,\n  -2: i32 b,\n}\n"
    )


def test_canonical_resolves_names() -> None:
    """CANONICAL replaces typedefs, constants and enum values in defaults, so their names do not matter."""
    one = (
        b"typedef list<i32> L\nconst i32 K = 3\nenum E { A = 2 }\n"
        b"struct S { 1: L a = [K], 2: E e = E.A, 3: bool b = 1 }"
    )
    two = b"enum E { A = 2 }\nstruct S { 1: list<i32> a = [3], 2: E e = 2, 3: bool b = true }"
    assert print_form(one) == print_form(two)
    assert THRIFT.fingerprints(parse_schema(one)) == THRIFT.fingerprints(parse_schema(two))


def test_canonical_drops_unused_includes() -> None:
    """CANONICAL leaves out an include that no type needs."""
    assert print_form(b'include "shared.thrift"\nstruct S {}') == "struct S {}\n"


def test_fingerprints() -> None:
    """Digests have the right lengths and differ between schemas."""
    one, two = (THRIFT.fingerprints(parse_schema(text)) for text in (b"struct S {}", b"struct S { 1: i32 a }"))
    assert {kind: len(digest) for kind, digest in one.items()} == {"sha256": 32, "md5": 16}
    assert one["sha256"] != two["sha256"]


def test_empty() -> None:
    """An empty document is printed as an empty text."""
    assert print_form(b"// nothing", TextForm.PRINTED) == ""


def test_no_other_style() -> None:
    """No rendering style is known."""
    assert THRIFT.render(parse_schema(b""), "resolved") is None
