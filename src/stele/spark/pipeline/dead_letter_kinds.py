"""Dead letters by kind: the codes of what is wrong, in lower case, as labels of metrics want them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stele.spark.engines.error_codes import ErrorCode

OTHER: Final = "other"
"""Letters whose code nobody noted: those of batches from before dead letters had codes."""
KINDS: Final = (*(code.name.lower() for code in ErrorCode if code is not ErrorCode.NONE), OTHER)
"""Every kind, in no order that means something."""


def count_by_kind(codes: Mapping[str, int], letters: int) -> dict[str, int]:
    """Return the dead letters of a batch by kind.

    Args:
        codes: Dead letters by the name of their code.
        letters: How many there are; those without a code count as `other`.
    """
    found = {code.lower(): count for code, count in codes.items()}
    rest = letters - sum(codes.values())
    return found | ({OTHER: rest} if rest > 0 else {})
