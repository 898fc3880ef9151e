"""What a registry does before its first write after it was restored."""

from __future__ import annotations

from stele.core.commands import EmptyOutcome, SkipIds
from stele.core.decide.decision import Decision
from stele.core.events import EventMetadata, IdsSkipped
from stele.core.state import State


def skip_ids(state: State, command: SkipIds, stamp: EventMetadata) -> Decision:
    """Leave out ids, in whatever mode the registry is: this changes nothing that anybody reads."""
    return Decision((IdsSkipped(command.schema_ids, command.numbers),), EmptyOutcome())
