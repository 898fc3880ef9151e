"""The names under which the log keeps members whose names in the code have changed since.

A log is read for ever, so what it calls things stays when the code finds a better word (docs/adr). Structs that are
written to the log pass this table to msgspec as `rename`.
"""

from __future__ import annotations

from typing import Final

STORED_NAMES: Final = {
    "comparison_scope": "scope",
    "custom_format": "variety",
    "dialect_data": "ext",
    "kind_version": "lane_version",
    "namespace": "space",
    "schema_id": "gid",
    "validators": "checkers",
    "version_number": "ordinal",
    "version_numbers": "ordinals",
}
"""Name in the log by name in the code."""
