"""A known text costs only a hash: no thread, no parsing, and no unneeded digests."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest

from stele.core.compatibility_requests import VALIDATOR_PREFIX, CompatibilityRequest, SchemaSource
from stele.core.findings import Finding
from stele.core.ports import TextForm
from stele.core.state import State
from stele.errors import MalformedSchema
from stele.formats.registry import get_format
from stele.service import compatibility
from stele.service.compatibility import CompatibilityChecker
from stele.service.schemas import LazyDigests, SchemaParser, SchemaTexts, compute_digests


def _text(doc: str, length: int = 0) -> bytes:
    return json.dumps({"type": "record", "name": "R", "doc": doc.ljust(length), "fields": []}).encode()


def _refuse_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any) -> None:
        raise AssertionError("a thread was asked for")

    monkeypatch.setattr(asyncio, "to_thread", refuse)


async def test_a_known_text_takes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text, form and strictness come from the cache; any other combination is prepared separately."""
    parser, state, long = SchemaParser(), State(), _text("x", 5000)
    first = await parser.prepare_schema(state, "avro", long, form=TextForm.PRINTED)
    verbatim = await parser.prepare_schema(state, "avro", long)
    assert verbatim.document.text == long != first.document.text
    _refuse_threads(monkeypatch)
    assert await parser.prepare_schema(state, "avro", long, form=TextForm.PRINTED) is first
    assert await parser.prepare_schema(state, "avro", long) is verbatim
    with pytest.raises(AssertionError, match="a thread"):
        await parser.prepare_schema(state, "avro", _text("y", 5000))
    await parser.prepare_schema(state, "avro", _text("short"))


async def test_what_the_rules_let_pass_is_parsed_once() -> None:
    """A strictly parsed schema also serves lenient requests; a leniently parsed one is parsed again for strict ones."""
    parser, state, fmt = SchemaParser(), State(), get_format("avro")
    strict = await parser.prepare_schema(state, "avro", _text("x"))
    lenient = await parser.prepare_schema(state, "avro", _text("x"), strict=False)
    assert lenient.parsed is strict.parsed
    bad = b'{"type":"record","name":"R","fields":[{"name":"a-b","type":"int"}]}'
    await parser.prepare_schema(state, "avro", bad, strict=False)
    with pytest.raises(MalformedSchema):
        parser.parse_source(fmt, SchemaSource(hashlib.sha256(bad).digest()), SchemaTexts(bad, {}), strict=True)


async def test_short_texts_are_compared_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two comparisons of short texts run without a thread; long texts, many comparisons and validators use one."""
    _refuse_threads(monkeypatch)
    checker, state = CompatibilityChecker(SchemaParser()), State()
    texts = [_text("one"), _text("two"), _text("long", 5000)]
    one, two, long = (SchemaSource(hashlib.sha256(text).digest()) for text in texts)
    extra = {hashlib.sha256(text).digest(): text for text in texts}
    both = (CompatibilityRequest("avro", "avro@1", one, two), CompatibilityRequest("avro", "avro@1", two, one))
    assert await checker.answer_requests(state, both, extra) == dict.fromkeys(both, ())
    for questions in (
        (CompatibilityRequest("avro", "avro@1", one, long),),
        (*both, CompatibilityRequest("avro", "avro@1", one, one)),
        (CompatibilityRequest("avro", f"{VALIDATOR_PREFIX}lint", one, two),),
    ):
        with pytest.raises(AssertionError, match="a thread"):
            await checker.answer_requests(state, questions, extra)


async def test_digests_are_computed_for_who_asks() -> None:
    """A check computes no digests; a later registration of the same text computes them all."""
    parser, state, text = SchemaParser(), State(), _text("x")
    checked = await parser.prepare_schema(state, "avro", text, needs_digests=False)
    digests = checked.document.digests
    assert isinstance(digests, LazyDigests)
    assert not digests.is_computed
    registered = await parser.prepare_schema(state, "avro", text)
    assert registered is checked
    assert digests.is_computed
    assert dict(digests) == compute_digests(get_format("avro"), checked.parsed)
    assert "rabin" in digests


@pytest.mark.parametrize("strict", [True, False])
async def test_what_is_only_checked_is_not_printed(strict: bool) -> None:
    """A text that is only checked is compared as sent, unless printing may change its meaning."""
    parser, state, text, form = SchemaParser(), State(), _text("x"), TextForm.PRINTED
    checked = await parser.prepare_schema(state, "avro", text, form=form, strict=strict, needs_digests=False)
    registered = await parser.prepare_schema(state, "avro", text, form=form, strict=strict)
    assert (checked.document.text == text) is strict
    assert registered.document.text != text
    assert checked.parsed is registered.parsed


async def test_comparisons_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equality of texts is decided by digests, which are computed once."""
    parser, state = SchemaParser(), State()
    one = await parser.prepare_schema(state, "avro", b'{"type":"string","x":1,"y":2}')
    two = await parser.prepare_schema(state, "avro", b'{"y":2,"type":"string","x":1}')
    other = await parser.prepare_schema(state, "avro", b'"int"')
    for normalized in (False, True):
        digests = [await parser.digest_prepared(each, normalized=normalized) for each in (one, two, other)]
        assert digests[0] == digests[1] != digests[2]
    _refuse_threads(monkeypatch)
    assert await parser.digest_prepared(other, normalized=True) == digests[2]


@pytest.mark.parametrize("normalized", [False, True])
async def test_what_was_sent_and_registered_is_compared_once(normalized: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submitted schema and its registered text have one digest, if both are the same parsed schema."""
    parser, state = SchemaParser(), State()
    sent = await parser.prepare_schema(state, "avro", b' {"type": "string", "x": 1}', form=TextForm.PRINTED)
    text = sent.document
    digest = await parser.digest_prepared(sent, normalized=normalized)
    monkeypatch.setattr("stele.service.schemas.comparison_text", None)
    assert await parser.digest_registered(state, text.format, text.sha, (), normalized=normalized) == digest


def test_verdicts_are_weighed_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long finding displaces more cached verdicts than a short one."""
    monkeypatch.setattr(compatibility, "_REMEMBERED_BYTES", 20_000)
    checker = CompatibilityChecker(SchemaParser())
    source = SchemaSource(b"")
    questions = [CompatibilityRequest("avro", str(number), source, source) for number in range(100)]
    for question in questions[:99]:
        checker._remember({question: ()})
    assert len(checker.verdicts) == 25
    checker._remember({questions[99]: (Finding("RULE", "/path", why="x" * 15_000),)})
    assert len(checker.verdicts) < 10
    assert questions[99] in checker.verdicts
