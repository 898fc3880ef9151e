"""Prebuilt answers to the one read every consumer makes for every schema it meets."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from stele.apis.confluent.errors import MEDIA_TYPE
from stele.apis.confluent.options import ConfluentOptions
from stele.apis.confluent.translate import RenderingOptions, is_compiled, schema_out
from stele.apis.http.prebuilt import PrebuiltAnswer
from stele.core.model import DEFAULT_NAMESPACE, MAX_INT32
from stele.service.registry import Registry

_PATH = re.compile(r"/schemas/ids/([1-9][0-9]{0,9})\Z")
_OVERHEAD = 600
"""Bytes an entry costs beside its body, which counts twice: for itself and for its compressed forms."""
_TRUSTED_SECONDS = 0.001
"""How long memory counts as up to date: an id answers the same for ever, but for a purge by another process."""

_encode = msgspec.json.Encoder().encode


class SchemaResponseCache:
    """Answers to `GET /schemas/ids/{id}` in the default context, without query: they never change until a purge.

    The most recently used ones are kept, up to max_bytes. add_headers gives the headers of a body besides its type and
    length.
    """

    def __init__(
        self,
        registry: Registry,
        options: ConfluentOptions,
        *,
        max_bytes: int = 64 * 1024 * 1024,
        add_headers: Callable[[bytes], list[tuple[bytes, bytes]]] = lambda body: [],
    ) -> None:
        self._registry = registry
        self._style = RenderingOptions(options.differences.has_guids)
        self._max_bytes = max_bytes
        self._add_headers = add_headers
        self._answers: OrderedDict[str, PrebuiltAnswer] = OrderedDict()
        self._bytes = 0
        self._purges = registry.state.purges
        self._trusted_until = 0.0

    def get(self, path: str) -> PrebuiltAnswer | None:
        """The answer for a path; None when it is another path, or only the slow way can tell."""
        now = time.perf_counter()
        if now >= self._trusted_until:
            if not self._registry.has_read_all():
                return None
            self._trusted_until = now + _TRUSTED_SECONDS
        if self._registry.state.purges != self._purges:
            self._purges = self._registry.state.purges
            self._answers.clear()
            self._bytes = 0
        answer = self._answers.get(path)
        if answer is not None:
            self._answers.move_to_end(path)
            return answer
        return self._build_response(path)

    def _build_response(self, path: str) -> PrebuiltAnswer | None:
        match = _PATH.match(path)
        gid = int(match[1]) if match is not None else 0
        if not 0 < gid <= MAX_INT32:
            return None
        state = self._registry.state
        schema = state.namespaces[DEFAULT_NAMESPACE].schema_entries.get(gid)
        if schema is None or is_compiled(state, schema):
            return None
        # The encoder returns an oversized buffer; the copy is exact.
        body = bytes(memoryview(_encode(schema_out(state, schema, self._style))))
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
        headers += self._add_headers(body)
        answer = PrebuiltAnswer(
            {"type": "http.response.start", "status": 200, "headers": headers},
            {"type": "http.response.body", "body": body},
            {},
        )
        if len(body) <= self._max_bytes // 8:
            self._store_response(path, answer, len(body))
        return answer

    def _store_response(self, path: str, answer: PrebuiltAnswer, length: int) -> None:
        self._answers[path] = answer
        self._bytes += 2 * length + _OVERHEAD
        while self._bytes > self._max_bytes:
            _, oldest = self._answers.popitem(last=False)
            self._bytes -= 2 * len(oldest.body["body"]) + _OVERHEAD
