"""The decision before the first write of a restored registry."""

from __future__ import annotations

from stele.core.commands import EmptyOutcome, SkipIds
from stele.core.decide.decision import Decision
from stele.core.events import EventMetadata, IdsSkipped
from stele.core.state import State


def skip_ids(state: State, command: SkipIds, stamp: EventMetadata) -> Decision:
    """Skip ids in any mode of the registry: that changes nothing that clients read."""
    return Decision((IdsSkipped(command.schema_ids, command.numbers),), EmptyOutcome())
