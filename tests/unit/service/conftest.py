"""The demo format of this folder, in the release that a test selects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points

import pytest

from stele.formats import registry
from stele.formats.registry import GROUP, reload_formats


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Install the format `demo` in a release: OLD, NEW, LATE, BARE or FIELDS of `demo_format`."""
    original = entry_points

    def installing(release: str) -> None:
        point = EntryPoint("demo", f"tests.unit.service.demo_format:{release}", GROUP)
        monkeypatch.setattr(registry, "entry_points", lambda group: [*original(group=group), point])
        reload_formats()

    yield installing
    monkeypatch.undo()
    reload_formats()
