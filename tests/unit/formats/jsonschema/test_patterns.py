"""Patterns cost time and memory, and a schema has a budget for all of them together."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.time_limit import limit_time

from stele.core.compatibility_requests import SchemaSource
from stele.errors import MalformedSchema
from stele.formats.jsonschema import JSON_SCHEMA, ParsedJsonSchema, engine_worker, patterns
from stele.formats.jsonschema.engine_process import EngineProcess
from stele.formats.jsonschema.patterns import PATTERN_SIZE_LIMIT, estimate_pattern, pattern_matches
from stele.service import schemas


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """Let the process that measures patterns end by its processor time alone, however busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns._METER, "_deadline", 60.0)
        yield


def parse(schema: Any, **options: bool) -> ParsedJsonSchema:
    """Parse a schema given as Python data."""
    return JSON_SCHEMA.parse(json.dumps(schema).encode(), {}, **options)


def resident_mebibytes() -> float:
    """Memory of this process that is in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / (1 << 20)


@pytest.mark.parametrize(("keyword", "count"), [("pattern", 60), ("patternProperties", 600), ("pattern", 2_500)])
def test_many_large_patterns_are_refused_without_being_compiled_here(keyword: str, count: int) -> None:
    """Too many large patterns raise an error that names the first one too many; once 12 KB took 13 s and 1,400 MiB."""
    texts = [rf"^\p{{L}}{{50}}{number}$" for number in range(count)]
    schema: Any = {keyword: dict.fromkeys(texts, True)}
    if keyword == "pattern":
        schema = {"allOf": [{"pattern": text} for text in texts]}
    memory = resident_mebibytes()
    refused = pytest.raises(MalformedSchema, match=r"the patterns take more than 32 MiB when compiled")
    with limit_time(1), refused as caught:
        parse(schema)
    assert resident_mebibytes() - memory < 50
    assert r"\\p{L}{50}" in caught.value.why
    assert (caught.value.path or "").startswith(f"#/{keyword if keyword == 'patternProperties' else 'allOf'}/")
    assert parse(schema, strict=False).memory_size < 4 << 20, "older registries may hold such schemas"


def test_word_characters_count_as_classes_of_unicode_in_patterns_with_lookaround() -> None:
    r"""Patterns such as `^(?!x)[\w-]{1,63}$` take 4 MiB each, so that a schema with many of them is refused."""
    memory = resident_mebibytes()
    with limit_time(2), pytest.raises(MalformedSchema, match="the patterns take more than 32 MiB when compiled"):
        parse({"allOf": [{"pattern": rf"^(?!{number})[\w-]{{1,63}}$"} for number in range(60)]})
    assert resident_mebibytes() - memory < 50
    assert parse({"pattern": r"^(?!0)[\w-]{1,63}$"}).validator.is_valid("a-b")


def test_one_pattern_that_is_too_large_is_named() -> None:
    """A single pattern that is too large is named in the error."""
    with pytest.raises(MalformedSchema, match="takes more than 4 MiB when compiled") as caught:
        parse({"properties": {"a": {"pattern": r"^\p{L}{1,5000}$"}}})
    assert caught.value.path == "#/properties/a/pattern"


def test_a_pattern_that_the_engine_cannot_be_interrupted_in_is_given_up() -> None:
    """Classes are folded before any limit of the engine applies: the system ends the process that measures them."""
    with pytest.raises(MalformedSchema, match="takes too long to compile"):
        parse({"pattern": r"(?i:[\p{L}])" * 20_000})
    assert parse({"pattern": "^a$"}).validator.is_valid("a")


def test_patterns_of_references_count() -> None:
    """The budget is that of the schema with all that it refers to."""
    halves = [
        json.dumps({"allOf": [{"pattern": rf"^\p{{L}}{{50}}{sign}{number}$"} for number in range(6)]}).encode()
        for sign in "ab"
    ]
    JSON_SCHEMA.parse(halves[0], {})
    with pytest.raises(MalformedSchema, match="more than 32 MiB"):
        JSON_SCHEMA.parse(b'{"allOf":[{"$ref":"a"},{"$ref":"b"}]}', {"a": halves[0], "b": halves[1]})


def test_a_process_that_died_is_not_blamed_on_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the measuring process is killed from outside, the question is asked again in a new one."""
    engine = EngineProcess(60)
    monkeypatch.setattr(patterns, "_METER", engine)
    schema = {"allOf": [{"pattern": rf"^\p{{L}}{{50}}{letter}$"} for letter in "xyz"]}
    parse(schema)
    process = engine._process
    assert process is not None
    process.kill()
    assert process.find_signal(60) == signal.SIGKILL
    assert parse(schema).pattern_size > 1 << 20
    engine.close()


def test_ordinary_patterns_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of usual patterns is estimated from their text."""
    monkeypatch.setattr(patterns, "_METER", None)
    usual = [
        r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        r"^[^\s@]+@[^\s@]+\.[a-z]{2,24}$",
        r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        r"^(-?(?:[1-9][0-9]*)?[0-9]{4})-(1[0-2]|0[1-9])-(3[01]|0[1-9]|[12][0-9])T(2[0-3]|[01][0-9]):([0-5][0-9])$",
        r"^.{1,100}$",
    ]
    assert parse({"properties": {text: {"pattern": text} for text in usual}}).pattern_size < 4 << 20


_ATOMS = st.sampled_from(
    [
        "a",
        "é",
        ".",
        r"\d",
        r"\D",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        "[a-z]",
        "[^a]",
        r"[\d\-a\W]",
        r"\p{L}",
        r"\P{Lu}",
        r"[\p{N}x]",
        *(r"\u0041", r"[\u0400-\uFFFF]", r"[^\s]", r"\b", r"\.", "[abcegikmoqsuwy0-9_]", "^", "$"),
        *("(?=a)", r"(?!\d)", r"(?<=\w)", r"(a)\1"),
    ]
)
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{3}", "{0,7}", "{2,}", "{40}", "{1,90}?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)


@example(r"(?=a)a\w")
@example(r"^(?!.*--)[\w-]{1,63}$")
@example(r"(?!x)y\d{100}")
@given(_PATTERNS)
@settings(max_examples=150, deadline=None)
def test_estimates_are_not_below_what_a_pattern_takes(pattern: str) -> None:
    """An estimate can be far too high, never too low, because small estimates are trusted."""
    estimate = estimate_pattern(pattern)
    if estimate <= 8 * PATTERN_SIZE_LIMIT:
        assert engine_worker._measure_pattern(pattern, 200_000, PATTERN_SIZE_LIMIT) <= 2 * estimate


@pytest.mark.parametrize("pattern", ["(?i)a{1000}", "a)b", "(?x:a b)"])
def test_text_that_is_not_understood_is_measured(pattern: str) -> None:
    """Patterns with syntax that is not understood, such as flags, have an infinite estimate and are measured."""
    assert estimate_pattern(pattern) == float("inf")


def test_matching_survives_patterns_that_are_wrong() -> None:
    """A pattern that cannot be compiled matches nothing."""
    assert pattern_matches("^a+$", "aa")
    assert not pattern_matches("(", "(")
    assert not pattern_matches(r"^\p{L}{1,5000}$", "a")


def test_remembered_schemas_are_counted_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of parsed schemas has a limit in bytes; with a limit of entries, 60 small schemas held 1.5 GiB."""
    monkeypatch.setattr(schemas, "CACHE_BYTES", 20 << 20)
    parser, memory = schemas.SchemaParser(), resident_mebibytes()
    for number in range(12):
        text = json.dumps({"allOf": [{"pattern": rf"^\p{{L}}{{50}}{letter}{number}$"} for letter in "ab"]}).encode()
        source = SchemaSource(hashlib.sha256(text).digest(), ())
        parser.parse_source(JSON_SCHEMA, source, schemas.SchemaTexts(text, {}))
    assert len(parser._parsed) == 2
    assert resident_mebibytes() - memory < 40
