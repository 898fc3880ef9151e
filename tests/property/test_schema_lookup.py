"""A registry finds a schema again: printed, normalized, shuffled, or brought by an import in another spelling."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property import avro_strategies, test_jsonschema_properties, test_protobuf, test_thrift, xsd_pairs
from tests.support.examples import scale_examples

from stele.core.ports import TextForm
from stele.errors import SteleError
from stele.formats.registry import get_format
from stele.service.schemas import compute_digests
from stele.testing import registry

FEW = settings(max_examples=scale_examples(45), deadline=None, suppress_health_check=list(HealthCheck))

_TEXTS: dict[str, st.SearchStrategy[str]] = {
    "avro": avro_strategies.schemas().map(lambda value: json.dumps(value, indent=1)),
    "json": test_jsonschema_properties.SCHEMAS.map(lambda value: json.dumps(value, indent=1)),
    "protobuf": test_protobuf.proto_sources().map(lambda source: test_protobuf.source_text(source).decode()),
    "thrift": test_thrift.schemas(),
    "xsd": st.integers(0, 10**6).map(lambda seed: xsd_pairs.schema_text(_random_type(seed)).decode()),
}
_ANSWERED = ("avro", "json", "protobuf")
"""Formats that the Confluent dialect knows."""


def _random_type(seed: int) -> Any:
    rng = random.Random(seed)
    return xsd_pairs.random_simple(rng) if rng.random() < 0.3 else xsd_pairs.random_complex(rng)


def texts_of(format_name: str, text: str) -> tuple[str, str]:
    """Return the PRINTED and NORMALIZED text of a schema; examples that are not schemas are skipped."""
    fmt = get_format(format_name)
    try:
        parsed = fmt.parse(text.encode(), {})
    except SteleError:
        assume(False)
    printed, normalized = (fmt.canonical(parsed, form).decode() for form in (TextForm.PRINTED, TextForm.NORMALIZED))
    return printed, normalized


class Answers:
    """One subject of a registry, with the requests of clients of the Confluent dialect."""

    def __init__(self, http: httpx.Client, format_name: str) -> None:
        self.http = http
        self.schema_type = format_name.upper()

    def post(self, target: str, text: str, **members: Any) -> dict[str, Any]:
        """The answer to a request with a schema."""
        body = {"schema": text, "schemaType": self.schema_type, **members}
        answer = self.http.post(target, json=body)
        assert answer.status_code == 200, (target, text, answer.text)
        result: dict[str, Any] = answer.json()
        return result

    def register(self, text: str, *, normalize: bool = False, **members: Any) -> dict[str, Any]:
        """Register a schema."""
        return self.post(f"/subjects/s/versions?normalize={str(normalize).lower()}", text, **members)

    def look_up(self, text: str, *, normalize: bool) -> dict[str, Any]:
        """Look a schema up."""
        return self.post(f"/subjects/s?normalize={str(normalize).lower()}", text)

    def set_mode(self, mode: str) -> None:
        """Set the mode of the registry."""
        assert self.http.put("/mode", json={"mode": mode}).status_code == 200

    def require_found(self, known: dict[str, Any], *texts: str, spellings: tuple[bool, ...] = (False, True)) -> None:
        """Assert that lookup and registration find the known schema for every text, with normalize and without."""
        for text in texts:
            for normalize in spellings:
                match = self.look_up(text, normalize=normalize)
                assert (match["id"], match["version"], match["guid"]) == (known["id"], known["version"], known["guid"])
                again = self.register(text, normalize=normalize)
                assert (again["id"], again["version"]) == (known["id"], known["version"])
        assert self.http.get("/subjects/s/versions").json() == [known["version"]]


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    """A registry for all tests of this file."""
    with registry() as box:
        yield box


def answers_of(store: Any, format_name: str) -> Answers:
    """Return the requests of an empty registry."""
    store.reset()
    return Answers(httpx.Client(transport=store.transport, base_url="http://registry"), format_name)


@pytest.mark.parametrize("format_name", _ANSWERED)
@FEW
@given(data=st.data(), normalize=st.booleans())
def test_printing_and_parsing_leads_back(store: Any, format_name: str, data: st.DataObject, normalize: bool) -> None:
    """A schema registered in the author's spelling or normalized is found as written and as printed."""
    text = data.draw(_TEXTS[format_name])
    printed, _ = texts_of(format_name, text)
    answers = answers_of(store, format_name)
    known = answers.register(text, normalize=normalize)
    known = answers.look_up(text, normalize=normalize)
    answers.require_found(known, text, printed, spellings=(True,) if normalize else (False, True))


@pytest.mark.parametrize("format_name", sorted(set(_TEXTS) - set(_ANSWERED)))
@settings(FEW, max_examples=scale_examples(6))
@given(data=st.data())
def test_other_formats_lead_back(store: Any, format_name: str, data: st.DataObject) -> None:
    """OpenSchema, which also has Thrift and XSD, finds a schema in every spelling, with the same id and number."""
    text = data.draw(_TEXTS[format_name])
    spellings = (text, *texts_of(format_name, text))
    store.reset()
    http = httpx.Client(transport=store.transport, base_url="http://registry/openschema")
    first = data.draw(st.sampled_from(spellings))
    ids = []
    for spelling in (first, *spellings):
        body = {"serialization": format_name.upper(), "schemaDefinition": spelling}
        answer = http.post("/subjects/s/versions", json=body)
        assert answer.status_code == 200, (spelling, answer.text)
        ids.append(answer.json()["id"])
    assert len(set(ids)) == 1
    assert http.get("/subjects/s/versions").json() == {"version": [1]}


@pytest.mark.parametrize("format_name", _ANSWERED)
@FEW
@given(data=st.data())
def test_imports_are_found(store: Any, format_name: str, data: st.DataObject) -> None:
    """An import keeps its text, id and number; the schema is found in every spelling it had before."""
    text = data.draw(_TEXTS[format_name])
    printed, normalized = texts_of(format_name, text)
    brought = data.draw(st.sampled_from([text, printed, normalized]))
    answers = answers_of(store, format_name)
    answers.set_mode("IMPORT")
    answers.register(brought, id=7, version=3)
    answers.set_mode("READWRITE")
    stored = answers.http.get("/subjects/s/versions/3").json()
    assert (stored["id"], stored["schema"]) == (7, brought)
    answers.require_found(stored, text, printed, spellings=(True,) if brought == normalized else (False, True))


@FEW
@given(value=avro_strategies.schemas(), chance=st.randoms(use_true_random=False))
def test_order_without_meaning(store: Any, value: Any, chance: random.Random) -> None:
    """An Avro schema with its attributes in another order is the same one; the text that came first stays."""
    answers = answers_of(store, "avro")
    answers.register(json.dumps(value))
    known = answers.look_up(json.dumps(value), normalize=False)
    shuffled = json.dumps(test_jsonschema_properties.shuffle_members(value, chance))
    answers.require_found(known, shuffled)


@pytest.mark.parametrize("format_name", sorted(_TEXTS))
@FEW
@given(data=st.data())
def test_digests_survive_printing(format_name: str, data: st.DataObject) -> None:
    """Dialects that compare digests find a schema in its printed and normalized text."""
    text = data.draw(_TEXTS[format_name])
    fmt = get_format(format_name)
    printed, normalized = texts_of(format_name, text)
    first, *others = (
        compute_digests(fmt, fmt.parse(each.encode(), {}))["normalized"] for each in (text, printed, normalized)
    )
    assert others == [first, first]
