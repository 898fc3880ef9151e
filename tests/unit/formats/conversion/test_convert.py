"""Conversion between formats: which formats support it, and the check by the target's parser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.errors import CannotConvert, TooLarge
from stele.formats.avro import AVRO
from stele.formats.capabilities import FromModel, ToModel
from stele.formats.conversion.convert import convert_schema, write_model
from stele.formats.conversion.model import Array, Loss, Model, Scalar, ScalarKind, Type
from stele.formats.jsonschema import JSON_SCHEMA
from stele.formats.opaque import OPAQUE
from stele.formats.registry import get_format

ORDER = (
    b'{"type":"record","name":"Order","fields":'
    b'[{"name":"id","type":"long","order":"ignore"},{"name":"p","type":"double"}]}'
)


def test_abilities() -> None:
    """Avro and JSON Schema convert in both directions."""
    for name in ("avro", "json"):
        assert isinstance(get_format(name), ToModel)
        assert isinstance(get_format(name), FromModel)
    assert not isinstance(OPAQUE, ToModel)


def test_losses_of_both_halves() -> None:
    """Losses of reading come first, then those of writing; `keeps_data` is False if one of them is a loss of data."""
    conversion = convert_schema(AVRO, AVRO.parse(ORDER, {}), JSON_SCHEMA)
    assert [(loss.path, loss.what) for loss in conversion.losses] == [("id", "ORDER"), ("p", "NOT_A_NUMBER")]
    assert not conversion.keeps_data
    assert json.loads(conversion.text)["title"] == "Order"
    assert convert_schema(AVRO, AVRO.parse(b'"string"', {}), JSON_SCHEMA).keeps_data


def test_formats_that_take_no_part() -> None:
    """The error names the format that does not support conversion, as source and as target."""
    with pytest.raises(CannotConvert, match="opaque"):
        convert_schema(OPAQUE, OPAQUE.parse(b"x", {}), AVRO)
    with pytest.raises(CannotConvert, match="opaque"):
        convert_schema(AVRO, AVRO.parse(ORDER, {}), OPAQUE)


def test_the_target_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that the target's own parser rejects is not returned."""

    def write_broken_text(_: Model) -> tuple[bytes, list[Loss]]:
        return b'{"type":"record","name":"1"}', []

    monkeypatch.setattr(AVRO, "from_model", write_broken_text, raising=False)
    with pytest.raises(CannotConvert, match="no valid equivalent in the format avro"):
        write_model(Model(Scalar(ScalarKind.STRING)), AVRO)


def test_endless_recursion_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A converter that exhausts the stack raises `TooLarge`, in reading and in writing."""

    def endless(value: Any) -> Any:
        return endless(value)

    monkeypatch.setattr(JSON_SCHEMA, "to_model", endless, raising=False)
    monkeypatch.setattr(AVRO, "from_model", endless, raising=False)
    with pytest.raises(TooLarge):
        convert_schema(JSON_SCHEMA, JSON_SCHEMA.parse(b"{}", {}), AVRO)
    kind: Type = Scalar(ScalarKind.STRING)
    with pytest.raises(TooLarge):
        write_model(Model(Array(kind)), AVRO)
