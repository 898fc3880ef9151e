"""Prebuilt answers to the one read every consumer makes for every schema it meets."""

from __future__ import annotations

import re
from collections import OrderedDict

import msgspec

from stele.apis.confluent.options import ConfluentOptions
from stele.apis.confluent.translate import Style, schema_out
from stele.core.model import DEFAULT_SPACE, MAX_INT32
from stele.service.registry import Registry

_PATH = re.compile(r"/schemas/ids/([1-9][0-9]{0,9})\Z")
_OVERHEAD = 200
"""Bytes an entry costs beside its body."""

_encode = msgspec.json.Encoder().encode


class HotSchemas:
    """Bodies of `GET /schemas/ids/{id}` in the default context, without query: they never change until a purge.

    The most recently used ones are kept, up to max_bytes.
    """

    def __init__(self, registry: Registry, options: ConfluentOptions, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._registry = registry
        self._style = Style(options.profile)
        self._max_bytes = max_bytes
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._purges = registry.state.purges

    def get(self, path: str) -> bytes | None:
        """The body for a path; None when it is another path, or only the slow way can tell."""
        if not self._registry.unchanged():
            return None
        if self._registry.state.purges != self._purges:
            self._purges = self._registry.state.purges
            self._bodies.clear()
            self._bytes = 0
        body = self._bodies.get(path)
        if body is not None:
            self._bodies.move_to_end(path)
            return body
        return self._build(path)

    def _build(self, path: str) -> bytes | None:
        match = _PATH.match(path)
        gid = int(match[1]) if match is not None else 0
        if not 0 < gid <= MAX_INT32:
            return None
        state = self._registry.state
        schema = state.spaces[DEFAULT_SPACE].gids.get(gid)
        if schema is None:
            return None
        # The encoder returns an oversized buffer; the copy is exact.
        body = bytes(memoryview(_encode(schema_out(state, schema, self._style))))
        if len(body) <= self._max_bytes // 8:
            self._keep(path, body)
        return body

    def _keep(self, path: str, body: bytes) -> None:
        self._bodies[path] = body
        self._bytes += len(body) + _OVERHEAD
        while self._bytes > self._max_bytes:
            _, oldest = self._bodies.popitem(last=False)
            self._bytes -= len(oldest) + _OVERHEAD
