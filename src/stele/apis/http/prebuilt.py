"""An answer that is built once and sent many times."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, NamedTuple


class PrebuiltAnswer(NamedTuple):
    """The two ASGI messages of an answer, and the same ones by content coding; not to be changed by whoever sends them.

    head      the message `http.response.start`
    body      the message `http.response.body`
    encoded   head and body by content coding (`gzip`), filled when one is first asked for
    """

    head: MutableMapping[str, Any]
    body: MutableMapping[str, Any]
    encoded: dict[str, tuple[MutableMapping[str, Any], MutableMapping[str, Any]]]
