"""Conversion from format to format: who takes part, and the target's parser as the last guard."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.errors import CannotConvert, TooLarge
from stele.formats import catalogue
from stele.formats.abilities import Readable, Writable
from stele.formats.avro import AVRO
from stele.formats.conversion.convert import convert, write
from stele.formats.conversion.model import Array, Kind, Loss, Model, Scalar, Type
from stele.formats.jsonschema import JSON_SCHEMA
from stele.formats.opaque import OPAQUE

ORDER = (
    b'{"type":"record","name":"Order","fields":'
    b'[{"name":"id","type":"long","order":"ignore"},{"name":"p","type":"double"}]}'
)


def test_abilities() -> None:
    """Avro and JSON Schema convert in both directions."""
    for name in ("avro", "json"):
        assert isinstance(catalogue.get(name), Readable)
        assert isinstance(catalogue.get(name), Writable)
    assert not isinstance(OPAQUE, Readable)


def test_losses_of_both_halves() -> None:
    """What reading loses comes first, then what writing loses; a loss of data makes the difference."""
    made = convert(AVRO, AVRO.parse(ORDER, {}), JSON_SCHEMA)
    assert [(loss.path, loss.what) for loss in made.losses] == [("id", "ORDER"), ("p", "NOT_A_NUMBER")]
    assert not made.keeps_data
    assert json.loads(made.text)["title"] == "Order"
    assert convert(AVRO, AVRO.parse(b'"string"', {}), JSON_SCHEMA).keeps_data


def test_formats_that_take_no_part() -> None:
    """A format without the ability is named in the error, as source and as target."""
    with pytest.raises(CannotConvert, match="opaque"):
        convert(OPAQUE, OPAQUE.parse(b"x", {}), AVRO)
    with pytest.raises(CannotConvert, match="opaque"):
        convert(AVRO, AVRO.parse(ORDER, {}), OPAQUE)


def test_the_target_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text the target's own parser refuses is not handed out."""

    def broken(_: Model) -> tuple[bytes, list[Loss]]:
        return b'{"type":"record","name":"1"}', []

    monkeypatch.setattr(AVRO, "from_model", broken, raising=False)
    with pytest.raises(CannotConvert, match="no valid avro schema"):
        write(Model(Scalar(Kind.STRING)), AVRO)


def test_endless_recursion_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A converter that runs out of stack is a limit that was met, whichever half it is."""

    def endless(value: Any) -> Any:
        return endless(value)

    monkeypatch.setattr(JSON_SCHEMA, "to_model", endless, raising=False)
    monkeypatch.setattr(AVRO, "from_model", endless, raising=False)
    with pytest.raises(TooLarge):
        convert(JSON_SCHEMA, JSON_SCHEMA.parse(b"{}", {}), AVRO)
    kind: Type = Scalar(Kind.STRING)
    with pytest.raises(TooLarge):
        write(Model(Array(kind)), AVRO)
