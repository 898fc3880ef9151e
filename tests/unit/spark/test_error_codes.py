"""Error codes: one list for Python and Java, a sentence for each, and names that users can rely on."""

from __future__ import annotations

import re
from pathlib import Path

from stele.spark.engines.error_codes import CODE_NAMES, MESSAGES, ErrorCode, describe_error, names_schema_id
from stele.spark.engines.jvm.build import SOURCES

JAVA = SOURCES / "io" / "stele" / "spark" / "ErrorCode.java"


def test_java_has_the_same_codes() -> None:
    """Every constant of the jar is a code of the list, by name and number, and the jar has every code of Avro data."""
    constants = re.findall(r"^  ([A-Z][A-Z0-9_]+)\((\d+)\)[,;]$", JAVA.read_text(encoding="utf-8"), re.MULTILINE)
    java = {name: int(number) for name, number in constants}
    python = {code.name: int(code) for code in ErrorCode}
    assert java.items() <= python.items()
    assert {name for name, number in python.items() if 10 <= number < 40} <= java.keys()


def test_every_code_has_a_sentence() -> None:
    """Sentences are formatted with a label, an id and a detail, whatever the code."""
    assert MESSAGES.keys() == set(ErrorCode) - {ErrorCode.NONE}
    for code in MESSAGES:
        detail = "why" if "{detail}" in MESSAGES[code] else None
        assert "{" not in describe_error(code, "schema id", 7, detail)
        assert names_schema_id(code) == ("7" in describe_error(code, "schema id", 7, detail))
    assert describe_error(ErrorCode.NOT_FRAMED, "record id", None, "9 bytes are too few") == "9 bytes are too few"


def test_codes_fit_a_byte_and_have_names_by_number() -> None:
    """Codes fit in a byte, as kernels store them so, and each has a name."""
    assert all(0 <= code < 256 for code in ErrorCode)
    assert all(CODE_NAMES[code] == code.name for code in ErrorCode)


def test_no_decision_reads_a_sentence() -> None:
    """No code in the Spark package parses the sentence of an error."""
    package = Path(SOURCES).parents[2]
    assert package.name == "spark"
    looks = re.compile(
        r'(\breasons?\b|\["reason"\]|\bwhy\b)\)*\.(startswith|endswith|contains|like|rlike)\(| in (error\.)?reason\b'
    )
    for path in package.rglob("*.py"):
        assert not looks.search(path.read_text(encoding="utf-8")), path
