"""What the server reports about itself: its capabilities, possible capabilities, its model, and the model's source.

Source: docs/protocols/xregistry.md#capabilities
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stele.apis.xregistry.attributes import (
    COMPATIBILITIES,
    GROUP_ATTRIBUTES,
    META_ATTRIBUTES,
    MODEL_CONSTRAINTS,
    NO_COMPATIBILITY,
    REGISTRY_ATTRIBUTES,
    RESOURCE_ATTRIBUTES,
    SPECVERSION,
    VERSION_ATTRIBUTES,
)
from stele.apis.xregistry.errors import RegistryError

FLAGS: Final = (
    "binary",
    "collections",
    "doc",
    "epoch",
    "filter",
    "ignore",
    "inline",
    "setdefaultversionid",
    "sort",
    "specversion",
)
"""Request flags, all of which are supported."""
IGNORES: Final = (
    "capabilities",
    "defaultversionid",
    "defaultversionsticky",
    "epoch",
    "id",
    "modelsource",
    "readonly",
)
"""Values of the flag `ignore`, all of which are supported."""
_AVAILABLE: Final = {
    "capabilities": False,
    "capabilitiesoffered": False,
    "entities": True,
    "export": False,
    "model": False,
    "modelsource": False,
}
"""Metadata that clients can read, each with whether they can change it."""

_RULES: Final = [*COMPATIBILITIES, NO_COMPATIBILITY]
_FORMAT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "avro": ("Avro*",),
    "json": (
        "JsonSchema/draft-04",
        "JsonSchema/draft-06",
        "JsonSchema/draft-07",
        "JsonSchema/draft/2019-09",
        "JsonSchema/draft/2020-12",
    ),
    "protobuf": ("Protobuf/2*", "Protobuf/3*"),
    "thrift": ("Thrift*",),
    "xsd": ("XMLSchema/1.*", "XSD/1.*"),
}
"""Values of `format` that can be validated, by format."""

EXTENSION_MODEL: Final[dict[str, Any]] = {
    "groups": {
        "schemagroups": {
            "singular": "schemagroup",
            "modelversion": SPECVERSION,
            "modelcompatiblewith": "https://xregistry.io/xreg/domains/schema/specs/model.json",
            "attributes": {"format": {"type": "string"}, "*": {"type": "any"}},
            "constraints": MODEL_CONSTRAINTS,
            "resources": {
                "schemas": {
                    "singular": "schema",
                    "modelversion": SPECVERSION,
                    "modelcompatiblewith": "https://xregistry.io/xreg/domains/schema/specs/model.json",
                    "validateformat": True,
                    "validatecompatibility": True,
                    "strictvalidation": False,
                    "attributes": {
                        "format": {"type": "string", "required": True, "matchversions": True},
                        "*": {"type": "any"},
                    },
                    "metaattributes": {
                        "compatibility": {"type": "string", "enum": _RULES, "strict": True},
                        "stelecompatibility": {"type": "object", "attributes": {"*": {"type": "any"}}},
                    },
                }
            },
        }
    }
}
"""Extensions of the core specification's model: the schema extension, and two attributes of Stele."""

_SCHEMA_MODEL: Final = {
    "plural": "schemas",
    **EXTENSION_MODEL["groups"]["schemagroups"]["resources"]["schemas"],
    "maxversions": 0,
    "setversionid": True,
    "hasdocument": True,
    "versionmode": "manual",
    "singleversionroot": False,
    "typemap": {"application/json": "json", "*+json": "json", "text/plain": "string"},
    "attributes": VERSION_ATTRIBUTES,
    "resourceattributes": RESOURCE_ATTRIBUTES,
    "metaattributes": META_ATTRIBUTES,
}
FULL_MODEL: Final[dict[str, Any]] = {
    "attributes": REGISTRY_ATTRIBUTES,
    "groups": {
        "schemagroups": {
            "plural": "schemagroups",
            **EXTENSION_MODEL["groups"]["schemagroups"],
            "attributes": GROUP_ATTRIBUTES,
            "resources": {"schemas": _SCHEMA_MODEL},
        }
    },
}
"""The complete model."""


def build_capabilities(comparable: Mapping[str, bool]) -> dict[str, Any]:
    """Return the capabilities of the server.

    Args:
        comparable: Installed formats, each with whether its schemas can be compared.
    """
    names = {name: known for name, known in _FORMAT_NAMES.items() if name in comparable}
    return {
        "available": {name: {"mutable": is_mutable} for name, is_mutable in _AVAILABLE.items()},
        "compatibilities": {
            pattern: list(_RULES) for name, known in names.items() if comparable[name] for pattern in known
        },
        "flags": list(FLAGS),
        "formats": sorted(pattern for known in names.values() for pattern in known),
        "ignores": list(IGNORES),
        "pagination": True,
        "shortself": False,
        "specversions": [SPECVERSION],
        "versionmodes": ["manual"],
    }


_EMPTY: Final[Mapping[str, Any]] = {
    "compatibilities": {},
    "flags": [],
    "formats": [],
    "ignores": [],
    "pagination": False,
    "shortself": False,
}
"""Values of capabilities that a request resets by leaving them out, if they differ from those of the server."""


def build_offered_capabilities(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the possible values of each capability: only the present one, since clients cannot change it."""

    def offer_strings(values: list[str]) -> dict[str, Any]:
        return {"type": "array", "item": {"type": "string"}, "enum": values}

    offered: dict[str, Any] = {
        "available": {
            "type": "object",
            "attributes": {
                name: {
                    "type": "object",
                    "attributes": {"mutable": {"type": "boolean", "enum": [value["mutable"]]}},
                }
                for name, value in capabilities["available"].items()
            },
        },
        "compatibilities": {
            "type": "object",
            "attributes": {name: offer_strings(rules) for name, rules in capabilities["compatibilities"].items()},
        },
    }
    for name, value in capabilities.items():
        if isinstance(value, list):
            offered[name] = offer_strings(value)
        elif isinstance(value, bool):
            offered[name] = {"type": "boolean", "enum": [value]}
    return offered


def require_same_capabilities(requested: Any, capabilities: Mapping[str, Any], *, patch: bool) -> None:
    """Raise `RegistryError` unless capabilities in a request are those of the server.

    Args:
        requested: Capabilities in the request; None asks for the initial ones.
        capabilities: Those of the server.
        patch: Whether absent capabilities stay as they are; otherwise they are reset.
    """
    if requested is None:
        return
    if not isinstance(requested, dict):
        raise RegistryError("capability_error", "/capabilities", error_detail="they are a map")
    if not patch:
        requested = {**{name: empty for name, empty in _EMPTY.items() if name in capabilities}, **requested}
    for name, value in requested.items():
        if name not in capabilities:
            raise RegistryError("capability_unknown", "/capabilities", field=name[:200])
        has_wildcard = isinstance(value, list) and "*" in value
        if has_wildcard and len(value) > 1:
            raise RegistryError("capability_wildcard", "/capabilities", field=name)
        if name == "specversions" and isinstance(value, list) and not {SPECVERSION, "*"} & set(map(str, value)):
            raise RegistryError("capability_missing_value", "/capabilities", name=name, value=SPECVERSION)
        if not has_wildcard and value != capabilities[name]:
            if name != "formats" and value != _EMPTY.get(name):
                _require_known_value(name, value, capabilities[name])
            raise RegistryError(
                "capability_error", "/capabilities", error_detail=f"clients cannot change the capability {name!r}"
            )


def _require_known_value(name: str, value: Any, own: Any) -> None:
    """Raise `RegistryError` (`capability_value`) for a value that a capability cannot have."""
    if isinstance(own, dict) and isinstance(value, dict):
        return
    known = own if isinstance(own, list) else [True, False]
    values = value if isinstance(own, list) and isinstance(value, list) else [value]
    is_odd = isinstance(own, list) is not isinstance(value, list)
    for each in values:
        if is_odd or each not in known or type(each) is not type(known[0]):
            words = ", ".join(str(word) for word in known)
            raise RegistryError("capability_value", "/capabilities", value=str(each)[:200], field=name, list=words)


def require_same_model(model: Any) -> None:
    """Raise `RegistryError` unless the source of a model in a request is that of the server."""
    if model != EXTENSION_MODEL:
        raise RegistryError("model_error", "/model", error_detail="clients cannot change the model")
