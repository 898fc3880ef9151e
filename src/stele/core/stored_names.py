"""The names in the log of members that have other names in the code.

A log is read for ever, so its names stay when the code gets better ones (docs/adr). Structs that are written to the log
pass this table to msgspec as `rename`.
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
