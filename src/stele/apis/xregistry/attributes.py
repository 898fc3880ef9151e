"""Attributes of each kind of entity, as the model names them, and the validation of their values.

Source: docs/protocols/xregistry.md#attributes
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from stele.apis.xregistry.errors import RegistryError
from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper

Definition = dict[str, Any]
"""An attribute as the model defines it: name, type, and its other properties."""

SPECVERSION: Final = "1.0-rc4"
"""Release of the specification that this server follows."""
COMPATIBILITIES: Final = (
    "backward",
    "backward_transitive",
    "forward",
    "forward_transitive",
    "full",
    "full_transitive",
)
"""Compatibility rules of the specification."""
NO_COMPATIBILITY: Final = "none"
"""Value for a schema that accepts any version, although its group or the registry has a rule."""

_MOST_BYTES: Final = 4096
"""Most bytes of a scalar attribute, name and value together."""
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~:@-]{0,127}\Z")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")
_KEY = re.compile(r"[a-z0-9][a-z0-9:_.-]{0,62}\Z")
_URI = re.compile(r"[^\x00-\x20<>\"{}|\\^`\x7f]+\Z")
_CONTENT_TYPE = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,499}\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)?\Z")
_RESERVED_VERSION_IDS: Final = frozenset({"null", "request"})

_SCALARS: Final = frozenset({"boolean", "decimal", "integer", "string", "timestamp", "uinteger", "url", "uri", "xid"})


# --- definitions


def _define(name: str, kind: str, **more: Any) -> tuple[str, Definition]:
    return name, {"name": name, "type": kind, **more}


_ANYTHING: Final[Definition] = {"*": {"name": "*", "type": "any"}}
_FIXED: Final = {"readonly": True, "immutable": True, "required": True}
_LABELS = _define("labels", "map", item={"type": "string"})
_TIMES = (_define("createdat", "timestamp", required=True), _define("modifiedat", "timestamp", required=True))
_DEPRECATED = _define(
    "deprecated",
    "object",
    attributes={
        "effective": {"name": "effective", "type": "timestamp"},
        "removal": {"name": "removal", "type": "timestamp"},
        "alternative": {"name": "alternative", "type": "url"},
        "documentation": {"name": "documentation", "type": "url"},
        **_ANYTHING,
    },
)
_PLACE = (
    _define("self", "url", **_FIXED),
    _define("shortself", "url", readonly=True, immutable=True),
    _define("xid", "xid", **_FIXED),
)
_EPOCH = _define("epoch", "uinteger", readonly=True, required=True)
_DESCRIPTION = (
    _define("name", "string"),
    _define("description", "string"),
    _define("documentation", "url"),
    _define("icon", "url"),
    _LABELS,
)


def _define_collection(plural: str) -> tuple[tuple[str, Definition], ...]:
    return (
        _define(f"{plural}url", "url", **_FIXED),
        _define(f"{plural}count", "uinteger", readonly=True, required=True),
        _define(plural, "map", item={"type": "object", "attributes": _ANYTHING}),
    )


REGISTRY_ATTRIBUTES: Final = dict(
    (
        _define("specversion", "string", readonly=True, required=True, default=SPECVERSION),
        _define("registryid", "string", **_FIXED),
        *_PLACE,
        _EPOCH,
        *_DESCRIPTION,
        *_TIMES,
        _define("capabilities", "object", attributes=_ANYTHING),
        _define("model", "object", readonly=True, attributes=_ANYTHING),
        _define("modelsource", "object", attributes=_ANYTHING),
        *_define_collection("schemagroups"),
    )
)
"""Attributes of the registry."""
GROUP_ATTRIBUTES: Final = dict(
    (
        _define("schemagroupid", "string", immutable=True, required=True),
        *_PLACE,
        _EPOCH,
        *_DESCRIPTION,
        *_TIMES,
        _DEPRECATED,
        _define(
            "constraints",
            "map",
            item={
                "type": "object",
                "attributes": {
                    "default": {"name": "default", "type": "any"},
                    "enum": {"name": "enum", "type": "array", "item": {"type": "any"}},
                    "equals": {"name": "equals", "type": "string"},
                },
            },
        ),
        _define("format", "string"),
        *_define_collection("schemas"),
        _define("*", "any"),
    )
)
"""Attributes of a group."""
VERSION_ATTRIBUTES: Final = dict(
    (
        _define("schemaid", "string", immutable=True, required=True),
        _define("versionid", "string", immutable=True, required=True),
        *_PLACE,
        _EPOCH,
        _define("name", "string"),
        _define("isdefault", "boolean", readonly=True, required=True, default=False),
        *_DESCRIPTION[1:],
        *_TIMES,
        _define("ancestorid", "string", required=True),
        _define("contenttype", "string"),
        _define("format", "string", required=True, matchversions=True),
        _define("formatvalidated", "boolean", readonly=True),
        _define("formatvalidatedreason", "string", readonly=True),
        _define("compatibilityvalidated", "boolean", readonly=True),
        _define("compatibilityvalidatedreason", "string", readonly=True),
        _define("schemaurl", "url"),
        _define("schema", "any"),
        _define("schemabase64", "string"),
        _define("*", "any"),
    )
)
"""Attributes of a version."""
RESOURCE_ATTRIBUTES: Final = dict(
    (
        _define("schemaid", "string", immutable=True, required=True),
        *_PLACE,
        _define("metaurl", "url", **_FIXED),
        _define("meta", "object", attributes=_ANYTHING),
        *_define_collection("versions"),
    )
)
"""Attributes of a schema that are not those of its default version."""
META_ATTRIBUTES: Final = dict(
    (
        _define("schemaid", "string", immutable=True, required=True),
        *_PLACE,
        _define("xref", "xid", target="/schemagroups/schemas"),
        _EPOCH,
        _LABELS,
        *_TIMES,
        _define("readonly", "boolean", readonly=True, required=True, default=False),
        _define("compatibility", "string", enum=[*COMPATIBILITIES, NO_COMPATIBILITY], strict=True),
        _define("stelecompatibility", "object", attributes=_ANYTHING),
        _DEPRECATED,
        _define("defaultversionid", "string", required=True),
        _define("defaultversionurl", "url", readonly=True, required=True),
        _define("defaultversionsticky", "boolean", required=True, default=False),
    )
)
"""Attributes of a meta entity."""


# --- values


def parse_value(raw: msgspec.Raw) -> Any:
    """Return the value of a member. Raises `RegistryError` for invalid JSON or too deep nesting."""
    if is_nested_deeper(bytes(raw)):
        raise RegistryError("parsing_data", error_detail=f"a value is nested deeper than {MAX_JSON_DEPTH} levels")
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise RegistryError("parsing_data", error_detail=str(error)) from None


def check_attribute(definitions: Mapping[str, Definition], name: str, value: Any, subject: str) -> Any:
    """Return the value of a mutable attribute in its normal form.

    Args:
        definitions: Attributes of the kind of entity.
        name: Name of the attribute.
        value: Value from the request, not None.
        subject: XID of the entity.

    Raises:
        RegistryError: `unknown_attribute`, or `invalid_attribute` for an invalid value or an invalid name.
    """
    definition = definitions.get(name)
    if definition is None:
        if "*" not in definitions:
            raise RegistryError("unknown_attribute", subject, name=name)
        if not _NAME.match(name):
            raise _invalid(
                name, subject, "its name must have only the characters a-z, 0-9 and _, and is limited in length"
            )
        definition = definitions["*"]
    if not _is_storable(value):
        raise _invalid(name, subject, "a whole number must fit into 64 bits")
    return _check_value(definition, value, name, subject)


def _is_storable(value: Any) -> bool:
    """Return whether the log can store a value: its whole numbers must fit into 64 bits."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, int) and not -(2**63) <= each < 2**64:
            return False
        waiting += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    return True


def _invalid(name: str, subject: str, why: str) -> RegistryError:
    return RegistryError("invalid_attribute", subject, name=name, error_detail=why)


def _check_value(definition: Definition, value: Any, name: str, subject: str) -> Any:
    kind = definition["type"]
    if kind in _SCALARS:
        value = _check_scalar(kind, value, name, subject)
    elif kind == "map":
        value = _check_map(definition, value, name, subject)
    elif kind == "object":
        value = _check_object(definition, value, name, subject)
    elif kind == "array" and not isinstance(value, list):
        raise _invalid(name, subject, "it is an array")
    if not isinstance(value, dict | list) and len(f"{name}{value}".encode()) > _MOST_BYTES:
        raise _invalid(name, subject, f"name and value may have at most {_MOST_BYTES} bytes")
    if name in {"name", "format"} and value == "":
        raise _invalid(name, subject, "it is not empty")
    if name == "contenttype" and isinstance(value, str) and not _CONTENT_TYPE.match(value):
        raise _invalid(name, subject, "it must be one line of printable ASCII characters")
    if "enum" in definition and definition.get("strict", True) and value not in definition["enum"]:
        raise _invalid(name, subject, f"it must be one of {', '.join(map(str, definition['enum']))}")
    return value


def _check_scalar(kind: str, value: Any, name: str, subject: str) -> Any:
    match kind:
        case "boolean":
            is_right = isinstance(value, bool)
        case "uinteger":
            is_right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        case "integer" | "decimal":
            is_right = isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            is_right = isinstance(value, str)
    if not is_right:
        raise _invalid(name, subject, f"it must be of the type {kind}")
    if kind in {"url", "uri"} and not _URI.match(value):
        raise _invalid(name, subject, "it must be a URL: not empty, without blanks")
    return normalize_time(value, name, subject) if kind == "timestamp" else value


def _check_map(definition: Definition, value: Any, name: str, subject: str) -> Any:
    if not isinstance(value, dict):
        raise _invalid(name, subject, "it is a map")
    for key in value:
        if not _KEY.match(key):
            raise _invalid(
                f"{name}.{key[:80]}", subject, "a key must have 1 to 63 characters of a-z, 0-9, ':', '-', '_', '.'"
            )
    item = definition["item"]
    return {key: _check_value(item, each, f"{name}.{key}", subject) for key, each in value.items()}


def _check_object(definition: Definition, value: Any, name: str, subject: str) -> Any:
    if not isinstance(value, dict):
        raise _invalid(name, subject, "it is an object")
    members = definition["attributes"]
    checked = {key: check_attribute(members, key, each, subject) for key, each in value.items() if each is not None}
    if name == "deprecated" and checked.get("removal", "9") < checked.get("effective", ""):
        raise _invalid(name, subject, "the removal must not be before the deprecation takes effect")
    return checked


def normalize_time(text: str, name: str, subject: str) -> str:
    """Return a timestamp in UTC, without zeros at the end of its fraction. Raises `RegistryError`."""
    try:
        if not _TIME.match(text):
            raise ValueError
        moment = datetime.fromisoformat(text.upper())
        return print_time(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise _invalid(name, subject, f"{text[:60]!r} is not a timestamp of RFC 3339") from None


def print_time(moment: datetime) -> str:
    """Return a time in RFC 3339, UTC.

    Without their last character, the texts of two times compare like the times.
    """
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    return text.rstrip("0").removesuffix(".") + "Z"


# --- ids


def is_id(text: str) -> bool:
    """Return whether a text is a valid id."""
    return bool(_ID.match(text))


def check_id(text: Any, subject: str, *, of_version: bool = False) -> str:
    """Return an id from a request. Raises `RegistryError` (`malformed_id`)."""
    if not isinstance(text, str) or not is_id(text):
        why = "it has 1 to 128 letters, digits, and -._~:@, and begins with a letter, a digit or _"
        raise RegistryError("malformed_id", subject, id=str(text)[:200], error_detail=why)
    if of_version and text in _RESERVED_VERSION_IDS:
        raise RegistryError("malformed_id", subject, id=text, error_detail="the word is reserved")
    return text


def require_same_id(singular: str, value: Any, expected: str, subject: str) -> None:
    """Raise `RegistryError` (`mismatched_id`) unless an id in a request is the one of the entity."""
    if value != expected:
        raise RegistryError(
            "mismatched_id", subject, singular=singular, invalid_id=str(value)[:200], expected_id=expected
        )


def require_epoch(epoch: Any, current: int, subject: str) -> None:
    """Raise `RegistryError` unless an epoch in a request is that of the entity; None matches any."""
    if epoch is None:
        return
    if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 0:
        raise _invalid("epoch", subject, "it must be an unsigned integer")
    if epoch != current:
        raise RegistryError("mismatched_epoch", subject, bad_epoch=str(epoch), epoch=str(current))


# --- constraints

MODEL_CONSTRAINTS: Final = {"schemas.format": {"equals": "format"}}
"""Constraints on every group."""
_CONSTRAINABLE: Final = frozenset(
    name
    for name, definition in VERSION_ATTRIBUTES.items()
    if definition["type"] in _SCALARS and not definition.get("readonly") and not name.startswith("schema")
)
_COMPARABLE: Final = frozenset(
    name for name, definition in GROUP_ATTRIBUTES.items() if definition["type"] in _SCALARS and name != "*"
)


def check_constraints(constraints: Mapping[str, Mapping[str, Any]], subject: str) -> None:
    """Raise `RegistryError` for constraints on attributes that are not scalar, or with invalid values."""
    for key, rule in constraints.items():
        plural, _, name = key.partition(".")
        if plural != "schemas" or name not in _CONSTRAINABLE:
            raise _invalid("constraints", subject, f"{key!r} is not a scalar attribute of schemas")
        choices = rule.get("enum") or []
        for value in [*choices, *([rule["default"]] if "default" in rule else [])]:
            _check_value(VERSION_ATTRIBUTES[name], value, f"constraints.{key}", subject)
        if choices and "default" in rule and rule["default"] not in choices:
            raise _invalid("constraints", subject, f"the default of {key!r} is not among its values")
        required = MODEL_CONSTRAINTS.get(key, {}).get("equals")
        equals = rule.get("equals", "")
        if equals and (equals not in _COMPARABLE or (required and equals != required)):
            raise _invalid("constraints", subject, f"{key!r} cannot be made equal to {equals!r}")


def merge_constraints(own: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield the attributes of versions that a group constrains, each with its rule."""
    for key in dict.fromkeys((*MODEL_CONSTRAINTS, *own)):
        yield key.partition(".")[2], {**MODEL_CONSTRAINTS.get(key, {}), **own.get(key, {})}
