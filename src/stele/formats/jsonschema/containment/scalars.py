"""Whether a keyword about one value alone follows from what other schemas say."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from stele.formats.jsonschema.containment.view import Parts
from stele.formats.jsonschema.text import Json

_TYPES = frozenset(["object", "array", "string", "integer", "number", "boolean", "null"])
_ABOUT = {
    "object": ("required", "minProperties", "maxProperties"),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_TYPE_OF = {keyword: name for name, keywords in _ABOUT.items() for keyword in keywords}


def keyword_follows(keyword: str, reader: dict[str, Json], writer: Parts) -> bool:
    """Whether every value that fits the writer's schemas meets this keyword of the reader's; False when in doubt."""
    if keyword == "type":
        return allowed_types(writer) <= _type_set(reader["type"])
    about = _TYPE_OF.get(keyword)
    if about is None:
        return False
    if not is_possible_type(about, writer):
        return True
    value = reader[keyword]
    if keyword.startswith("min") and keyword != "minimum" and value == 0:
        return True
    match keyword:
        case "required":
            return required_names(writer).issuperset(value)
        case "pattern":
            return any(part.get(keyword) == value for part in writer)
        case "format" | "contentEncoding" | "contentMediaType":
            words = ("format",) if keyword == "format" else ("contentEncoding", "contentMediaType")
            return any(all(part.get(word) == reader.get(word) for word in words) for part in writer)
        case "uniqueItems":
            return value is not True or longest_array(writer) <= 1 or any(part.get(keyword) is True for part in writer)
        case "multipleOf":
            return any(_is_divisor(value, part[keyword]) for part in writer if keyword in part)
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
            return _is_bounded(keyword, value, writer)
        case "minProperties":
            return len(required_names(writer)) >= value or any(part.get(keyword, -1) >= value for part in writer)
        case _:
            return any(_is_within(keyword, part[keyword], value) for part in writer if keyword in part)


def _is_within(keyword: str, theirs: Json, mine: Json) -> bool:
    return bool(theirs >= mine if keyword.startswith("min") else theirs <= mine)


def _is_bounded(keyword: str, value: Json, writer: Parts) -> bool:
    """Exclusive bounds of the writer do for either kind; its inclusive ones only short of an exclusive one."""
    word = "inimum" if keyword.endswith("inimum") else "aximum"
    sign = 1 if word == "inimum" else -1
    for part in writer:
        inclusive, exclusive = part.get("m" + word), part.get("exclusiveM" + word)
        if exclusive is not None and exclusive * sign >= value * sign:
            return True
        beyond = keyword.startswith("exclusive") and inclusive == value
        if inclusive is not None and inclusive * sign >= value * sign and not beyond:
            return True
    return False


def _is_divisor(mine: Json, theirs: Json) -> bool:
    try:
        return Decimal(str(theirs)) % Decimal(str(mine)) == 0
    except InvalidOperation:
        return False


def allowed_types(parts: Parts) -> frozenset[str]:
    """The types a value may have that fits all parts; `number` stands for numbers with a fraction."""
    allowed = _TYPES
    for part in parts:
        if "type" in part:
            allowed &= _type_set(part["type"])
        values = listed_values(part)
        if values is not None:
            allowed &= frozenset(name for value in values for name in _types_of(value))
    return allowed


def is_possible_type(name: str, parts: Parts) -> bool:
    """Whether a value that fits all parts may be of a type."""
    allowed = allowed_types(parts)
    return name in allowed or (name == "number" and "integer" in allowed)


def listed_values(part: dict[str, Json]) -> list[Json] | None:
    """All values a schema allows where it lists them."""
    if "const" in part:
        return [part["const"]]
    values = part.get("enum")
    return values if isinstance(values, list) else None


def required_names(parts: Parts) -> frozenset[str]:
    """The members that have to be there."""
    return frozenset(name for part in parts for name in part.get("required", ()))


def longest_array(parts: Parts) -> float:
    """The most items an array may have."""
    return min((float(part["maxItems"]) for part in parts if "maxItems" in part), default=float("inf"))


def _type_set(names: Json) -> frozenset[str]:
    found = frozenset([names] if isinstance(names, str) else names)
    return found | {"integer"} if "number" in found else found


def _types_of(value: Json) -> tuple[str, ...]:
    """The types a listed value may count as: drafts differ on whether 1.0 is an integer."""
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, str):
        return ("string",)
    if isinstance(value, dict | list):
        return ("object",) if isinstance(value, dict) else ("array",)
    return ("integer",) if isinstance(value, int) else ("integer", "number")
