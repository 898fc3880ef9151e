"""Headers of records that change their wire: those that named the old schema go, those that name the new one come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from stele.spark.engines.arrow import Column
from stele.spark.wires import CloudEvents, HeaderGuid, Wire
from stele.spark.wires.base import HEADERS
from stele.wire.cloudevents import PREFIXES
from stele.wire.confluent import HEADER_NAMES


class HeaderMerger:
    """For records that were on a wire."""

    def __init__(self, wire: Wire) -> None:
        self._stale = _is_stale_header(wire)

    def merge_headers(self, old: Column | None, new: Column | None, rows: int) -> Column:
        """The headers records have: what is left of the old ones, then the new ones."""
        if old is None:
            return pa.nulls(rows, HEADERS) if new is None else new
        before = old.to_pylist()
        after: list[Any] = [None] * rows if new is None else new.to_pylist()
        return pa.array([self._merge_row(*pair) for pair in zip(before, after, strict=True)], HEADERS)

    def _merge_row(self, old: Any, new: Any) -> Any:
        if old is None:
            return new
        made = new or []
        named = {entry["key"].lower() for entry in made}
        # a map comes as pairs, a list of headers as dicts
        pairs = [each if isinstance(each, tuple) else tuple(each.values()) for each in old if each is not None]
        kept = [
            {"key": key, "value": value}
            for key, value in pairs
            if key is None or (key.lower() not in named and not self._stale(key.lower()))
        ]
        return [*kept, *made]


def _is_stale_header(wire: Wire) -> Callable[[str], bool]:
    """Whether a header, by its name in lower case, said which schema a record had, or what the wire needs beside."""
    if isinstance(wire, HeaderGuid):
        name = HEADER_NAMES[wire.field]
        return lambda key: key == name
    if isinstance(wire, CloudEvents):
        return lambda key: key.startswith(PREFIXES) or key == "content-type"
    return lambda key: False
