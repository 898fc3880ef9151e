"""Tests of the optional capabilities of a format (`stele.formats.capabilities`). Missing ones are not tested."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from stele.core.findings import Finding
from stele.errors import CannotConvert, Invalid
from stele.formats.capabilities import FromModel, HasOutline, Lintable, OutlineNode, ToModel
from stele.formats.conversion.model import Array, Loss, Map, Model, RecordType, TypeReference, Union
from stele.testing.format_material import FormatMaterial, fail_with

__all__ = ["CapabilityChecks"]

_WORD = re.compile(r"[A-Z][A-Z0-9_]*\Z")


class CapabilityChecks:
    """Tests of conversions, lint and outlines."""

    material: ClassVar[FormatMaterial]

    def test_models(self) -> None:
        """A format with `to_model` turns each schema into the same closed model each time, and explains each loss."""
        if isinstance(self.material.format, ToModel):
            fail_with(
                f"{name}: {fault}"
                for name, model, losses in _models_of(self.material)
                for fault in (*_find_loose_ends(model), *_unexplained_losses(losses))
            )
            fail_with(
                f"{one[0]}: another model the second time"
                for one, again in zip(_models_of(self.material), _models_of(self.material), strict=True)
                if one != again
            )

    def test_models_become_schemas(self) -> None:
        """The strict parser of a format accepts every schema that the format makes of a model."""
        schemas = self.material.format
        if isinstance(schemas, FromModel) and isinstance(schemas, ToModel):
            for name, model, _ in _models_of(self.material):
                try:
                    text, losses = schemas.from_model(model)
                except CannotConvert as refusal:
                    fail_with([] if str(refusal) else [f"{name}: refused without a reason"])
                    continue
                fail_with(f"{name}: {fault}" for fault in _unexplained_losses(losses))
                schemas.parse(text, {})

    def test_advice(self) -> None:
        """A format with lint describes its rules, and its findings name only these rules and are warnings."""
        schemas = self.material.format
        if isinstance(schemas, Lintable):
            fail_with(
                f"rule {rule!r}" for rule, what in schemas.lint_rules.items() if not _WORD.match(rule) or len(what) < 10
            )
            before = None
            for sample, parsed in self.material.parsed_samples:
                findings = [*schemas.lint(parsed), *schemas.lint(parsed, before), *schemas.lint(parsed, parsed)]
                fail_with(
                    f"{sample.id}: {finding!r}" for finding in findings if not _is_advice(finding, schemas.lint_rules)
                )
                before = parsed

    def test_outlines(self) -> None:
        """An outline names every declaration once, contains texts only, and is the same for the printed schema."""
        schemas = self.material.format
        if isinstance(schemas, HasOutline):
            for sample, parsed in self.material.parsed_samples:
                nodes = schemas.outline(parsed)
                fail_with(f"{sample.id}: {fault}" for fault in _find_outline_faults(nodes))
                again = schemas.outline(schemas.parse(sample.text, sample.references))
                fail_with([] if again == nodes else [f"{sample.id}: another outline the second time"])


def _models_of(material: FormatMaterial) -> Iterator[tuple[str, Model, list[Loss]]]:
    for sample, parsed in material.parsed_samples:
        try:
            model, losses = material.format.to_model(parsed)  # type: ignore[attr-defined]  # asked for by isinstance
        except Invalid:  # too large, or nothing but definitions
            continue
        yield sample.id, model, losses


def _find_loose_ends(model: Model) -> Iterator[str]:
    """Yield the faults in the type names of a model.

    These are names that are used without a declaration, and types that are declared under another name than their own.
    """
    yield from (f"{name} is declared as {one.name}" for name, one in model.types.items() if one.name != name)
    stack: list[Any] = [model.root]
    stack += [part.type for one in model.types.values() if isinstance(one, RecordType) for part in one.fields]
    while stack:
        match stack.pop():
            case TypeReference(name) if name not in model.types:
                yield f"{name} is used and not declared"
            case Array(items=inner) | Map(values=inner):
                stack.append(inner)
            case Union(options):
                stack += [option.type for option in options]


def _unexplained_losses(losses: Iterable[Loss]) -> list[str]:
    return [repr(loss) for loss in losses if not _WORD.match(loss.what) or len(loss.why) < 10]


def _is_advice(finding: Finding, rules: Any) -> bool:
    return finding.rule in rules and not finding.breaks and len(finding.why) > 10 and len(finding.fix) > 5


def _find_outline_faults(nodes: list[OutlineNode]) -> Iterator[str]:
    seen: set[str] = set()
    for node in nodes:
        if node.path in seen:
            yield f"{node.path} twice"
        seen.add(node.path)
        if not node.kind or not all(isinstance(text, str) for pair in node.attributes.items() for text in pair):
            yield f"not all text: {node!r}"
