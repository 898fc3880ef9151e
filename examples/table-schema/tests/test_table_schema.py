"""The plug-in passes the tests of Stele's interface of formats."""

from pathlib import Path

from stele_table_schema import TABLE_SCHEMA

from stele.testing.format_suite import FormatConformance, FormatMaterial


class TestTableSchema(FormatConformance):
    """All tests of the test kit, with the cases in the file next to this one."""

    material = FormatMaterial.read_files(TABLE_SCHEMA, [Path(__file__).parent / "cases.jsonl"])


def test_a_refusal_says_what_to_do() -> None:
    """A column that becomes required is refused with its name and a way out."""
    old = TABLE_SCHEMA.parse(b'{"fields": [{"name": "a", "type": "integer"}]}', {})
    new = TABLE_SCHEMA.parse(b'{"fields": [{"name": "a", "constraints": {"required": true}, "type": "integer"}]}', {})
    (finding,) = TABLE_SCHEMA.check(new, old)
    assert (finding.rule, finding.path, finding.reader) == ("CONSTRAINT_TIGHTENED", "a", "required True")
    assert TABLE_SCHEMA.check(old, new) == []


def test_a_reader_gets_its_own_columns() -> None:
    """Columns are found by name, missing ones are null, and texts get the reader's type."""
    writer = TABLE_SCHEMA.parse(b'{"fields": [{"name": "a", "type": "integer"}, {"name": "b"}]}', {})
    reader = TABLE_SCHEMA.parse(b'{"fields": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}', {})
    assert TABLE_SCHEMA.codec(writer, reader).decode(b"7,x") == {"b": "x", "c": None, "a": "7"}
    assert TABLE_SCHEMA.render(writer, "header") == "a,b"
