"""The fields of Avro values, for rules."""

from __future__ import annotations

from typing import Any

from stele.client.serdes.rules.model import FieldLocation, FieldType, RuleContext, Visit, Walk
from stele.formats.avro.encode import DatumMismatch, choose_branch
from stele.formats.avro.model import AvroArray, AvroField, AvroMap, AvroRecord, AvroSchema, AvroType, AvroUnion

TAGS = "confluent:tags"
"""Attribute of a field with its tags."""


def avro_walk(schema: AvroSchema) -> Walk:
    """Return the walk over a value's fields.

    It visits every value that is not a record, array or map and belongs to a field of a record. Nulls are visited;
    fields that a dict leaves out are not.
    """

    def walk(context: RuleContext, visit: Visit, value: Any) -> Any:
        return _Walker(context, visit).walk_value(schema.root, value, None)

    return walk


class _Walker:
    def __init__(self, context: RuleContext, visit: Visit) -> None:
        self.context = context
        self.visit = visit

    def walk_value(self, node: AvroType, value: Any, place: tuple[Any, AvroRecord, AvroField] | None) -> Any:
        match node:
            case AvroUnion():
                return self._walk_union(node, value, place)
            case AvroArray():
                return (
                    [self.walk_value(node.items, item, place) for item in value] if isinstance(value, list) else value
                )
            case AvroMap():
                if not isinstance(value, dict):
                    return value
                return {key: self.walk_value(node.values, item, place) for key, item in value.items()}
            case AvroRecord():
                return self._walk_record(node, value)
        if place is None:
            return value
        message, record, field = place
        full_name = f"{record.name}.{field.name}"
        tags = self.context.tags_of(full_name, field.props.get(TAGS, ()))
        if not self.context.applies_to(tags):
            return value
        return self.visit(FieldLocation(message, full_name, field.name, FieldType(node.kind.upper()), tags), value)

    def _walk_union(self, node: AvroUnion, value: Any, place: tuple[Any, AvroRecord, AvroField] | None) -> Any:
        try:
            index, inner = choose_branch(node, value)
        except DatumMismatch:
            return value  # the encoder will report it
        result = self.walk_value(node.branches[index], inner, place)
        if inner is value:
            return result
        return self._walk_named_type(node, index, value[0], result)

    def _walk_named_type(self, node: AvroUnion, index: int, name: str, value: Any) -> Any:
        """Return a union value with its branch name, or the bare value if it no longer fits the branch."""
        try:
            choose_branch(AvroUnion((node.branches[index],)), value)
        except DatumMismatch:
            return value
        return name, value

    def _walk_record(self, node: AvroRecord, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        copy = dict(value)
        for field in node.fields:
            if field.name in copy:
                copy[field.name] = self.walk_value(field.type, copy[field.name], (copy, node, field))
        return copy
