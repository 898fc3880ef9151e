"""The table of dialects: no dialect takes paths from another."""

from __future__ import annotations

import pytest
from litestar.routes import HTTPRoute

from stele.server.dialects import MOUNTS, DialectEntry, build_dispatcher
from stele.server.dispatch import Dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog


@pytest.fixture(scope="module")
def front() -> Dispatcher:
    """A front with every dialect."""
    made = build_dispatcher(Registry(MemoryLog()), ServerSettings(), Metrics())
    assert isinstance(made, Dispatcher)
    return made


@pytest.mark.parametrize("dialect", MOUNTS, ids=lambda dialect: dialect.name)
def test_every_path_of_a_dialect_reaches_it(dialect: DialectEntry, front: Dispatcher) -> None:
    """At the root, below its name and on its own port; OpenSchema's paths at the root are told by their media type."""
    app = dialect.build(Registry(MemoryLog()), dialect.options(ServerSettings()))
    mount = front._names[dialect.name]
    paths = {route.path_format for route in app.routes if isinstance(route, HTTPRoute)}
    assert paths
    for path in paths:
        if dialect.segments:
            assert front._find_target(path).mount is mount, path
        own = front._serve_at_root(mount, path)
        assert (own.mount, own.path) == (mount, path) or own.path.startswith(dialect.root + "/"), path
        below = front._find_target(f"/{dialect.name}{path}")
        assert below.mount is mount, path
