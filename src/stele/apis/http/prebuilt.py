"""An answer that is built once and sent many times."""

from __future__ import annotations

from typing import Any, NamedTuple


class PrebuiltAnswer(NamedTuple):
    """The two ASGI messages of an answer, and the same ones by content coding; not to be changed by whoever sends them.

    head      the message `http.response.start`
    body      the message `http.response.body`
    encoded   head and body by content coding (`gzip`), filled when one is first asked for
    """

    head: dict[str, Any]
    body: dict[str, Any]
    encoded: dict[str, tuple[dict[str, Any], dict[str, Any]]]
