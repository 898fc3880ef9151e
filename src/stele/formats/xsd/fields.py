"""All elements and attributes of a schema, for search and pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from xmlschema.validators import XsdElement, XsdSimpleType

from stele.core.ports import Field
from stele.formats.terms import Algebra, BudgetExceeded
from stele.formats.xsd.content import SchemaSide, list_leaves
from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.xmlschema_adapter import local_name

MAX_FIELDS: Final = 10_000
"""Most fields that are listed."""

_MAX_DEPTH: Final = 40
_JSON_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")


def list_fields(parsed: ParsedXsd) -> list[Field]:
    """Return elements and attributes depth first, the root's name being the first part of a path.

    Repeated elements end in `[]`, attributes start with `@`; a type inside itself is not entered again.
    """
    side = SchemaSide(parsed.model, Algebra(), strict=False)
    found: dict[str, Field] = {}
    with parsed.lock:
        stack = [
            (local_name(name), element, frozenset[int]()) for name, element in reversed(list(side.elements.items()))
        ]
        while stack and len(found) < MAX_FIELDS:
            path, element, above = stack.pop()
            kind = element.type
            default, doc = _default_json(element), documentation_text(element)
            optional = (
                True if element.nillable or element.min_occurs == 0 else None
            )  # a choice around it may leave it out
            found.setdefault(path, Field(path, type_word(kind), default, doc, optional))
            if isinstance(kind, XsdSimpleType) or id(kind) in above or len(above) > _MAX_DEPTH:
                continue
            for name, use in kind.attributes.items():
                if name is not None and use.use != "prohibited":
                    inner = f"{path}.@{local_name(name)}"
                    word = type_word(use.type)
                    default, doc = _default_json(use), documentation_text(use)
                    found.setdefault(inner, Field(inner, word, default, doc, use.use != "required"))
            below = [(f"{path}.{name}", child, above | {id(kind)}) for name, child in _child_elements(side, kind)]
            stack.extend(reversed(below))
    return list(found.values())[:MAX_FIELDS]


def _child_elements(side: SchemaSide, kind: Any) -> Iterator[tuple[str, XsdElement]]:
    try:
        term = side.content_term(kind)
    except BudgetExceeded:
        return
    many = repeated_names(term)
    for leaf in list_leaves(term):
        if leaf.name is not None:
            yield local_name(leaf.name) + ("[]" if leaf.name in many else ""), leaf.declaration


def _default_json(component: Any) -> str | None:
    """The default or fixed value of an element or attribute as JSON: numbers and booleans as such, else a string."""
    text = component.default if component.default is not None else component.fixed
    if text is None:
        return None
    kind = component.type if isinstance(component.type, XsdSimpleType) else component.type.content
    if isinstance(kind, XsdSimpleType) and kind.is_boolean():
        return "true" if text.strip() in ("true", "1") else "false"
    if isinstance(kind, XsdSimpleType) and kind.is_decimal() and _JSON_NUMBER.match(text.strip()):
        return str(text.strip())
    return json.dumps(text, ensure_ascii=False)


def repeated_names(term: Any) -> set[str]:
    """Return names of the elements of a content model that may occur more than once (or seem to)."""
    counts: dict[str, int] = {}
    waiting = [(term, 1)]
    steps = 0
    while waiting and steps < 100_000:
        current, times = waiting.pop()
        steps += 1
        if current.kind == "leaf" and current.label.name is not None:
            counts[current.label.name] = counts.get(current.label.name, 0) + times
        bounds = current.bounds if current.kind in ("repeat", "all") else [(1, 1)] * len(current.parts)
        for part, (_, high) in zip(current.parts, bounds, strict=True):
            waiting.append((part, 2 if high is None or high > 1 else times))
    return {name for name, count in counts.items() if count > 1}


def type_word(kind: Any) -> str:
    """Return the name of a type, or what an anonymous one is."""
    if kind.name:
        return local_name(kind.name)
    if isinstance(kind, XsdSimpleType):
        base: Any = kind
        while base is not None and not base.name:
            base = base.base_type
        return local_name(base.name) if base is not None else "simple"
    return "complex"


def documentation_text(component: Any) -> str:
    """Return the text of a component's documentation, or ''."""
    note = component.annotation
    if note is None:
        return ""
    return " ".join(" ".join(part.itertext()).strip() for part in note.documentation if part is not None).strip()
