"""The shapes of ASGI, as far as the server uses them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
HeaderPairs = Iterable[tuple[bytes, bytes]]
