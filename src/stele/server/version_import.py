"""The import function of the pages: imports versions with their numbers and ids.

It uses the operation of Confluent's API.
"""

from __future__ import annotations

from collections.abc import Sequence

from stele.apis.confluent.guid import GuidIndex
from stele.apis.confluent.known_lists import KnownLists
from stele.apis.confluent.operations.bulk_import import apply_import
from stele.apis.confluent.operations.schemas import AppState, Operations
from stele.apis.confluent.options import ConfluentOptions
from stele.protocol.confluent import ImportedVersion, ImportRefusal, ImportRequest
from stele.service.registry import Registry
from stele.service.usage import Usage


async def import_versions(
    registry: Registry, rows: Sequence[ImportedVersion], *, options: ConfluentOptions
) -> Sequence[ImportRefusal]:
    """Import versions on behalf of the caller; return those that are refused. Raises `StoreError`.

    Args:
        registry: The registry to import into.
        rows: Versions of subjects in IMPORT mode, each after the versions it refers to.
        options: Options of the dialect.
    """
    app_state = AppState(registry, options, GuidIndex(), Usage(registry), KnownLists())
    answer = await apply_import(Operations(app_state, {}), ImportRequest(list(rows)))  # type: ignore[arg-type]  # no request
    return answer.refused
