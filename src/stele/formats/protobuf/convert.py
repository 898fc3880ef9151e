"""Protobuf schemas from and to the neutral model: see `neutral` for the one way, `drafting` for the other."""

from __future__ import annotations

from stele.errors import TooLarge
from stele.formats.conversion.model import Loss, Model, RecordField, RecordType, TypeReference
from stele.formats.protobuf.drafting import ProtoFileBuilder, constraint_loss
from stele.formats.protobuf.neutral import to_model
from stele.formats.protobuf.parse import MAX_BYTES

__all__ = ["from_model", "to_model"]


def from_model(model: Model) -> tuple[bytes, list[Loss]]:
    """A proto3 file whose first message is the root, and what it does not say.

    A root that is no record becomes the field `value` of a message `Value`. Raises `TooLarge` past the limits of
    `places` and `parse`, `CannotConvert` for a model with a type that is not there.
    """
    losses: list[Loss] = []
    declared = model.types.get(model.root.name) if isinstance(model.root, TypeReference) else None
    if isinstance(declared, RecordType):
        root = declared
        if model.nullable:
            losses.append(Loss("", "NULLABLE", "A datum is a message and never null.", data=True))
        if model.constraints:
            losses.append(constraint_loss("", model.constraints))
    else:
        space = model.root.name.rpartition(".")[0] if isinstance(model.root, TypeReference) else ""
        name = f"{space}.Value" if space else "Value"
        while name in model.types:
            name += "_"
        only = RecordField("value", model.root, nullable=model.nullable, constraints=model.constraints)
        root = RecordType(name, (only,))
        losses.append(Loss("", "ROOT", "A datum is a message: the value is its only field, `value`."))
    drafter = ProtoFileBuilder(model, root)
    text = drafter.build_text(model.doc).encode("utf-8", "replace")
    if len(text) > MAX_BYTES:
        raise TooLarge(f"the schema would have {len(text)} bytes; {MAX_BYTES} are the most that is parsed")
    return text, losses + drafter.losses
