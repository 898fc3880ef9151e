"""Converts a schema from one language to another through the neutral model.

The result is checked by the target's own strict parser.
"""

from __future__ import annotations

from typing import Any

import msgspec

from stele.core.ports import Format, Parsed
from stele.errors import CannotConvert, MalformedSchema, TooLarge
from stele.formats.capabilities import FromModel, ToModel
from stele.formats.conversion.model import Loss, Model


class Conversion(msgspec.Struct, frozen=True):
    """A converted schema, and what it cannot express: losses of reading first, then of writing."""

    text: bytes
    losses: list[Loss]

    @property
    def keeps_data(self) -> bool:
        """Whether every datum of the source can be written under the target as it is."""
        return not any(loss.data for loss in self.losses)


def convert_schema(source: Format[Any], parsed: Parsed, target: Format[Any]) -> Conversion:
    """Convert a schema of source, parsed by it, to target.

    Raises `CannotConvert` when a format does not support conversions or target has no valid schema for this one.
    Raises `TooLarge` past the limits of either format.
    """
    if not isinstance(source, ToModel):
        raise CannotConvert(f"schemas of the format {source.name} cannot be converted")
    try:
        model, losses = source.to_model(parsed)
    except RecursionError:
        raise _too_deep_error() from None
    written = write_model(model, target)
    return Conversion(written.text, losses + written.losses)


def write_model(model: Model, target: Format[Any]) -> Conversion:
    """Return a model as a schema of target. Raises the errors of `convert_schema`."""
    if not isinstance(target, FromModel):
        raise CannotConvert(f"no schema can be converted to the format {target.name}")
    try:
        text, losses = target.from_model(model)
        target.parse(text, {}, strict=True)
    except MalformedSchema as error:
        raise CannotConvert(f"this schema has no valid equivalent in the format {target.name}: {error}") from error
    except RecursionError:
        raise _too_deep_error() from None
    return Conversion(text, losses)


def _too_deep_error() -> TooLarge:
    return TooLarge("the schema is nested too deeply to be converted")
