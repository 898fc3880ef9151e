"""Compares the values of elements and attributes: types, fixed values and defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from stele.formats.xsd.findings import ElementPair, FindingCollector
from stele.formats.xsd.instances import ElementContent
from stele.formats.xsd.simple_inclusion import SimpleTypeBudget, compare_simple_types, listed_texts
from stele.formats.xsd.simple_type import shape_of
from stele.formats.xsd.type_texts import list_samples, valid_samples
from stele.formats.xsd.xmlschema_adapter import accepts_text, local_name, type_name

_TRIED: Final = 6
_SAMPLES_UNITS: Final = 100
_SAMPLE_UNITS: Final = 4


class ValueConstraintChecker:
    """Compares what texts two places allow, and notes what other checks need.

    retyped   a value compares differently for the reader, so identity constraints may come out differently
    ids_gone  identifiers of the writer are none for the reader
    refers    references to identifiers meet such
    """

    def __init__(self, collector: FindingCollector) -> None:
        self._collector = collector
        self._budget = SimpleTypeBudget()
        self._known: dict[tuple[int, int], tuple[bool, tuple[str, ...]]] = {}
        self.retyped = False
        self.ids_gone = False
        self.refers = False

    @staticmethod
    def has_default(declaration: Any | None) -> bool:
        """Return whether an empty element takes a value from its declaration."""
        return declaration is not None and (declaration.default is not None or declaration.fixed is not None)

    def compare_text(self, node: ElementPair, writer: Any, reader: Any) -> None:
        """Compare the text of two elements of simple content."""

        def make_documents(texts: Iterator[str]) -> Iterator[Any]:
            return self._collector.documents_with_content(node, (ElementContent(text=text) for text in texts))

        self.compare_values(node, "", node.writer_declaration, writer, node.reader_declaration, reader, make_documents)
        if (
            self.has_default(node.writer_declaration)
            and not self.has_default(node.reader_declaration)
            and not accepts_text(reader, "")
        ):
            self._collector.report_finding(
                "DEFAULT_REMOVED",
                node,
                make_documents(iter([""])),
                exact=True,
                reader=type_name(reader),
                writer=str(node.writer_declaration.default if node.writer_declaration is not None else ""),
                why=(
                    f"An empty {local_name(node.name)!r} takes the writer's default; "
                    "the reader has none and refuses it."
                ),
                fix="Keep the default.",
            )

    def compare_values(
        self,
        node: ElementPair,
        path: str,
        writer_declaration: Any | None,
        writer: Any,
        reader_declaration: Any | None,
        reader: Any,
        documents: Callable[[Iterator[str]], Iterator[Any]],
    ) -> None:
        """Compare the texts that two places allow, their declarations' fixed values included."""
        self._note_retyping(writer, reader)
        fixed = None if writer_declaration is None else writer_declaration.fixed
        holds, found = self.prove_inclusion(writer, reader)
        if not holds and fixed is not None:
            holds, found = self._fixed_inside(fixed, writer, reader)
        if not holds:
            exact = bool(found)
            self._collector.report_finding(
                "VALUE_NOT_ALLOWED",
                node,
                documents(iter(found[:_TRIED])) if exact else self._collector.documents_in_styles(node.root),
                exact=exact,
                path=path,
                reader=_describe_type(reader),
                writer=_describe_type(writer),
                why=_explain_refusal(found, writer, reader),
                fix="Allow every value that was allowed before.",
            )
        wanted = None if reader_declaration is None else reader_declaration.fixed
        if wanted is not None and not _has_only_value(fixed, writer, wanted, reader):
            others = [text for text in islice(valid_samples(writer), 20) if text.strip() != wanted.strip()]
            self._collector.report_finding(
                "FIXED_VALUE",
                node,
                documents(iter(([fixed] if fixed is not None else others)[:_TRIED])),
                exact=False,
                path=path,
                reader=wanted,
                writer=fixed or _describe_type(writer),
                why=f"The reader takes the value {wanted!r} only.",
                fix="Leave the value free, or fixed to what it was.",
            )

    def prove_inclusion(self, writer: Any, reader: Any) -> tuple[bool, tuple[str, ...]]:
        """Return whether inclusion is proved, else texts that only the writer's type allows."""
        key = (id(writer), id(reader))
        if key not in self._known:
            proof = compare_simple_types(writer, reader, self._budget)
            found = (
                () if proof.holds else tuple(islice(_refused_texts(writer, reader, proof.hints, self._budget), _TRIED))
            )
            self._known[key] = proof.holds, found
        return self._known[key]

    @staticmethod
    def _fixed_inside(fixed: str, writer: Any, reader: Any) -> tuple[bool, tuple[str, ...]]:
        if not accepts_text(reader, fixed):
            return False, (fixed,)
        writer_shape, reader_shape = shape_of(writer), shape_of(reader)
        return (writer_shape.is_textual and writer_shape.white == reader_shape.white) or (
            not reader_shape.is_textual and not reader_shape.patterns
        ), ()

    def _note_retyping(self, writer: Any, reader: Any) -> None:
        writer_shape, reader_shape = shape_of(writer), shape_of(reader)
        if writer_shape.variety != reader_shape.variety or writer_shape.white != reader_shape.white:
            self.retyped = True
        elif writer_shape.base != reader_shape.base and not (writer_shape.is_textual and reader_shape.is_textual):
            exact = (writer_shape.base == "decimal" or writer_shape.is_integral) and (
                reader_shape.base == "decimal" or reader_shape.is_integral
            )
            self.retyped = self.retyped or not exact
        self.ids_gone = self.ids_gone or (writer_shape.base == "ID" and reader_shape.base != "ID")
        inner = (
            [shape_of(part).base for part in reader_shape.parts]
            if reader_shape.variety == "list"
            else [reader_shape.base]
        )
        self.refers = self.refers or "IDREF" in inner


def _refused_texts(writer: Any, reader: Any, hints: tuple[str, ...], budget: SimpleTypeBudget) -> Iterator[str]:
    """Yield texts that only the writer's type allows, until the budget is spent."""
    if not budget.try_spend(_SAMPLES_UNITS):
        return
    collapsed = shape_of(writer).white == "collapse" and shape_of(reader).white != "collapse"
    for text in [*list_samples(writer, hints=hints), *list_samples(reader)]:
        for spelling in (text, f" {text} ", f"{text}{' ' * 300}") if collapsed else (text,):
            if not budget.try_spend(_SAMPLE_UNITS):
                return
            if accepts_text(writer, spelling) and not accepts_text(reader, spelling):
                yield spelling


def _has_only_value(fixed: str | None, writer: Any, wanted: str, reader: Any) -> bool:
    """Return whether the writer's values are all equal to the one that the reader requires."""
    texts = (fixed,) if fixed is not None else listed_texts(writer)
    if texts is None or not accepts_text(reader, wanted):
        return False
    value = reader.decode(wanted)
    return all(accepts_text(reader, text) and reader.decode(text) == value for text in texts)


def _explain_refusal(found: tuple[str, ...], writer: Any, reader: Any) -> str:
    if found:
        text = repr(found[0][:60])
        return f"{text} is {_describe_type(writer)} for the writer, not {_describe_type(reader)} for the reader."
    return f"Not every value of {_describe_type(writer)} is sure to be one of {_describe_type(reader)}."


def _describe_type(kind: Any) -> str:
    """Return a simple type in a few words."""
    shape = shape_of(kind)
    base = shape.base or shape.variety
    facets = [f"pattern {' | '.join(step)[:60]}" for step in shape.patterns[:2]]
    facets += [f"{name} {text}" for name, text in shape.bounds[:4]]
    if shape.enumeration is not None:
        listed = ", ".join(shape.enumeration[:6])
        facets.append(f"one of {listed}{'…' if len(shape.enumeration) > 6 else ''}")
    for name, count in zip(("minLength", "maxLength"), shape.lengths, strict=True):
        if count is not None:
            facets.append(f"{name} {count}")
    for name, count in zip(("totalDigits", "fractionDigits"), shape.digits, strict=True):
        if count is not None:
            facets.append(f"{name} {count}")
    return f"{base} ({'; '.join(facets)})" if facets else base
