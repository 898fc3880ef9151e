"""Tests of a format's data and robustness: codecs, tables, hostile documents and bytes, threads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, TypeVar

from stele.core.ports import Codec
from stele.errors import DecodeError, EncodeError, Invalid, MalformedSchema, NotInstalled, SteleError
from stele.testing.format_cases import compared_pairs
from stele.testing.format_material import FormatMaterial, ParsedSample, fail_with, run_bounded
from stele.testing.format_text_checks import describe_schema

__all__ = ["DataChecks", "HostileChecks"]

T = TypeVar("T")

_MILLION = 1_000_000

HOSTILE = {
    "nothing": b"",
    "a NUL": b"\0",
    "half a UTF-8 character": b"\xc3",
    "UTF-16": "{}".encode("utf-16"),
    "a byte order mark alone": b"\xef\xbb\xbf",
    "half a surrogate pair": b'"\\ud800"',
    "every byte": bytes(range(256)),
    "a million spaces": b" " * _MILLION,
    "one long word": b"a" * _MILLION,
    "one long string": b'"' + b"a" * _MILLION + b'"',
    "one long number": b"9" * _MILLION,
    "many lines": b"\n" * _MILLION,
    "many quotes": b'"' * _MILLION,
    "a million [": b"[" * _MILLION,
    "a million {": b"{" * _MILLION,
    "a million (": b"(" * _MILLION,
    "a million <": b"<" * _MILLION,
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep elements": b"<a>" * 100_000 + b"</a>" * 100_000,
    "an open comment": b"/*" * 100_000,
}
"""Documents that must be handled safely, by what they are."""


class _Unencodable:
    """A value that no codec can encode."""


class DataChecks:
    """Tests of encoding and decoding data of a schema."""

    material: ClassVar[FormatMaterial]

    def test_examples_survive(self) -> None:
        """The example of a schema is valid, and so is its decoded value, which encodes to the same bytes again."""
        codecs = list(_codecs_of(self.material))
        fail_with(fault for trial, codec in codecs for fault in _check_round_trip(trial, codec))
        fail_with([] if any(_example_of(codec) for _, codec in codecs) else ["no schema has an example"])

    def test_what_does_not_fit_is_refused(self) -> None:
        """A value of an unknown type is not valid, and encoding it raises `EncodeError`."""
        for (sample, _), codec in _codecs_of(self.material):
            reasons = codec.validate(_Unencodable())
            fail_with([] if reasons and all(reasons) else [f"{sample.id}: no reason why an unknown type does not fit"])
            try:
                codec.encode(_Unencodable())
            except EncodeError:
                continue
            fail_with([f"{sample.id}: encodes an unknown type"])

    def test_payloads_of_the_lines(self) -> None:
        """Payloads that a line `accepts` can be decoded; payloads that it `refuses` raise `DecodeError`."""
        for case in self.material.uncontested_cases:
            if case.accepts or case.refuses:
                codec = self.material.format.codec(self.material.format.parse(case.schema_text, case.reference_texts))
                fail_with(
                    f"{case.id}: refuses {data}" for data in case.accepts if not _can_decode(codec, bytes.fromhex(data))
                )
                fail_with(
                    f"{case.id}: accepts {data}" for data in case.refuses if _can_decode(codec, bytes.fromhex(data))
                )

    def test_a_yes_is_kept(self) -> None:
        """If a ruleset about data finds nothing, the reader's codec can decode the example of the writer's codec."""
        rulesets = self.material.data_rulesets
        schemas = self.material.format
        broken: set[str] = set()
        for ruleset in ([""] if schemas.rulesets else []) if rulesets is None else rulesets:
            for case in self.material.uncontested_cases:
                for pair in compared_pairs(case) if case.compatible and case.compiles else ():
                    reader, writer = (self.material.parse(side, case.reference_texts) for side in pair)
                    if not schemas.check(reader, writer, ruleset):
                        faults = list(_find_broken_promise(self.material, case.id, reader, writer))
                        broken |= {case.id} if faults else set()
                        fail_with(faults if case.id not in self.material.broken else [])
        fail_with(f"{name}: known to be broken, and is not" for name in self.material.broken.keys() - broken)

    def test_tables(self) -> None:
        """A schema has the same Arrow schema each time, or a reason why it has none."""
        for sample, parsed in self.material.parsed_samples:
            try:
                first = self.material.format.arrow_schema(parsed)
                again = self.material.format.arrow_schema(parsed)
            except NotInstalled:
                return
            except SteleError:
                continue
            fail_with([] if first.equals(again) else [f"{sample.id}: another table the second time"])

    def test_threads_share_a_schema(self) -> None:
        """Eight threads that share one parsed schema and one codec get the same results as one thread."""
        schemas = self.material.format
        for trial, codec in _pick_evenly(_codecs_of(self.material), 8):
            example = _example_of(codec)

            def use(_: int, trial: ParsedSample = trial, codec: Codec = codec, example: Any = example) -> Any:
                data = [codec.encode(datum) for datum in example]
                return describe_schema(schemas, trial.parsed), data, [codec.encode(codec.decode(one)) for one in data]

            alone = use(0)
            with ThreadPoolExecutor(8) as pool:
                fail_with(
                    f"{trial.sample.id}: threads disagree" for result in pool.map(use, range(32)) if result != alone
                )


class HostileChecks:
    """Tests with hostile documents and bytes: each gets a clear error or a result, in bounded time."""

    material: ClassVar[FormatMaterial]

    def test_hostile_documents(self) -> None:
        """Deep, huge, broken and foreign documents raise `MalformedSchema` or are accepted, in bounded time."""
        fail_with(fault for what, text in HOSTILE.items() for fault in self._check_parsing(what, text, {}))

    def test_mutilated_schemas(self) -> None:
        """Cut, doubled and altered schemas raise `MalformedSchema` or are accepted, in bounded time."""
        chance = random.Random(20240229)  # noqa: S311 - reproducible, not secret
        fail_with(
            fault
            for sample, _ in self.material.parsed_samples
            for text in _mutilate(sample.text, chance)
            for fault in self._check_parsing(f"{sample.id}: {text[:60]!r}", text, sample.references)
        )

    def test_hostile_references(self) -> None:
        """References that are no schemas raise `MalformedSchema` or are ignored."""
        for trial in self.material.parsed_samples[:3]:
            for text in (b"", b"\0", b"[" * 100_000, trial.sample.text):
                fail_with(
                    self._check_parsing(f"{trial.sample.id} with a hostile reference", trial.sample.text, {"x": text})
                )

    def test_hostile_data(self) -> None:
        """Cut, lengthened, altered and random bytes are decoded or raise `DecodeError`, and no other error."""
        chance = random.Random(20240229)  # noqa: S311 - reproducible, not secret
        for _, codec in _codecs_of(self.material):
            encoded = [codec.encode(datum) for datum in _example_of(codec)]
            bad = [b"", b"\0", b"\xff" * 16, *(chance.randbytes(size) for size in (1, 2, 5, 17, 100))]
            bad += [one for data in encoded for one in _mutilate(data, chance)]
            for data in bad:
                run_bounded(self.material.seconds, partial(_can_decode, codec, data))

    def test_hostile_data_is_bounded(self) -> None:
        """A megabyte of brackets, zeros or ones is handled in bounded time for every kind of schema."""
        for _, codec in _pick_evenly(_codecs_of(self.material), 8):
            for data in (b"[" * _MILLION, b"\0" * _MILLION, b"\xff" * _MILLION, b"<a>" * 100_000):
                run_bounded(self.material.seconds, partial(_can_decode, codec, data))

    def _check_parsing(self, what: str, text: bytes, references: Any) -> Iterator[str]:
        for strict in (True, False):
            try:
                run_bounded(self.material.seconds, partial(self.material.format.parse, text, references, strict=strict))
            except MalformedSchema as error:
                if not str(error).strip():
                    yield f"{what}: refused without a reason"


def _codecs_of(material: FormatMaterial) -> Iterator[tuple[ParsedSample, Codec]]:
    """Yield the parsed samples that describe data, with their codecs. A document with definitions only has no codec."""
    for trial in material.parsed_samples:
        try:
            yield trial, material.format.codec(trial.parsed)
        except Invalid:
            continue


def _example_of(codec: Codec) -> list[Any]:
    """Return a list with the example of a schema; empty where the schema allows no datum."""
    try:
        return [codec.example()]
    except (EncodeError, Invalid):
        return []


def _pick_evenly(values: Iterator[T], count: int) -> list[T]:
    """Return about `count` of the values, evenly spread."""
    everything = list(values)
    return everything[:: max(1, len(everything) // count)]


def _check_round_trip(trial: ParsedSample, codec: Codec) -> Iterator[str]:
    for datum in _example_of(codec):
        if reasons := codec.validate(datum):
            yield f"{trial.sample.id}: its example is not valid: {reasons}"
            continue
        once = codec.decode(codec.encode(datum))
        if reasons := codec.validate(once):
            yield f"{trial.sample.id}: what was decoded is not valid: {reasons}"
            continue
        # An example may be written in another style than the codec's. Bytes of the codec itself must not change.
        data = codec.encode(once)
        if codec.encode(codec.decode(data)) != data:
            yield f"{trial.sample.id}: its example changes on the way: {datum!r}, {once!r}"


def _find_broken_promise(material: FormatMaterial, name: str, reader: Any, writer: Any) -> Iterator[str]:
    try:
        written = material.format.codec(writer)
    except Invalid:
        return
    for data in map(written.encode, _example_of(written)):
        if not _can_decode(material.format.codec(writer, reader), data):
            yield f"{name}: nothing was found, but the reader does not decode {data[:80]!r}"


def _can_decode(codec: Codec, data: bytes) -> bool:
    try:
        codec.decode(data)
    except DecodeError:
        return False
    return True


def _mutilate(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """Yield variants of some bytes that are probably wrong."""
    yield from (data[: len(data) * part // 4] for part in (1, 2, 3))
    yield from (data[:-1], data[1:], data + b"\0", data + data, data[::-1])
    for _ in range(4):
        place = chance.randrange(len(data)) if data else 0
        yield data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
        yield data[:place] + chance.choice([b"\0", b"\xff", b"]", b"}", b">", b'"', b"-1"]) + data[place:]
