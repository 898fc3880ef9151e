"""Converts results of expressions, plain Python values, to Protobuf messages and field values.

Source: docs/protocols/data-rules.md#expressions.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import json_format
from google.protobuf.message import Message

from stele.client.serdes.rules.protobuf_fields import descriptor_of

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

_TEXTUAL: Final = {9: str, 12: bytes, 14: str}  # string, bytes, enum


def message_from(result: Any, like: Message) -> Message:
    """Return a message of the type of `like` from a map of its fields.

    Fields missing in the map are not set; unknown names are ignored. Raises TypeError and
    `google.protobuf.json_format.ParseError` for a value that does not fit.
    """
    _demand_types(descriptor_of(like), result)
    return json_format.ParseDict(_spell_key(result), type(like)(), ignore_unknown_fields=True)


def _demand_types(kind: Descriptor, value: Any) -> None:
    """Raise TypeError for values that the JSON mapping accepts but a rule cannot have meant.

    Such a value is, for example, a text in a field of bytes, a number or a message.
    """
    if not isinstance(value, dict):
        raise TypeError(f"a message of type {kind.full_name} needs a map, not {type(value).__name__}")
    for name, item in value.items():
        field = kind.fields_by_name.get(name) or kind.fields_by_camelcase_name.get(name)
        if field is None or item is None:
            continue
        entry = field.message_type if field.is_repeated and isinstance(item, dict) else None
        if entry is not None and entry.GetOptions().map_entry:
            field, item = entry.fields_by_name["value"], list(item.values())  # noqa: PLW2901 - its values count
        for one in item if isinstance(item, list) else (item,):
            _demand_type(field, one)


def _demand_type(field: FieldDescriptor, value: Any) -> None:
    inner = field.message_type
    if inner is not None and not inner.full_name.startswith("google.protobuf."):
        _demand_types(inner, value)
    elif inner is None and isinstance(value, str | bytes):
        wanted = _TEXTUAL.get(field.type)
        if wanted is None or not isinstance(value, wanted):
            raise TypeError(f"{field.full_name} takes no {type(value).__name__}")


def value_from(result: Any, before: Any) -> Any:
    """Return a result as the value of one Protobuf field."""
    if not isinstance(before, Message):
        return result
    return json_format.Parse(f'"{_spell_key(result)}"', type(before)())


def _spell_key(value: Any) -> Any:
    """Return a value in the JSON mapping of Protobuf."""
    match value:
        case dict():
            return {str(key): _spell_key(item) for key, item in value.items()}
        case list():
            return [_spell_key(item) for item in value]
        case bytes():
            return b64encode(value).decode()
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            micros = value // timedelta(microseconds=1)
            return f"{'-' if micros < 0 else ''}{abs(micros) // 1_000_000}.{abs(micros) % 1_000_000:06d}s"
    return value
