"""Formats are found by entry point and loaded lazily; a broken one does not affect the others."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from stele.errors import NotInstalled, UnknownFormat
from stele.formats import registry
from stele.formats.registry import GROUP, get_format, list_formats, reload_formats


@pytest.fixture
def entry_point_list(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """The entry points that the registry of formats sees."""
    entry_points: list[EntryPoint] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: entry_points if group == "stele.formats" else [])
    reload_formats()
    yield entry_points
    reload_formats()


def test_built_in_formats() -> None:
    """The built-in formats are installed as entry points, like those of plug-ins."""
    assert {"avro", "json", "opaque", "protobuf"} <= set(list_formats())
    assert get_format("AVRO") is get_format("avro")
    assert get_format("opaque").name == "opaque"


def test_unknown_format_names_the_known_ones(entry_point_list: list[EntryPoint]) -> None:
    """The error for an unknown format lists the installed ones."""
    entry_point_list.append(EntryPoint("Mine", "stele.formats.opaque:OPAQUE", GROUP))
    with pytest.raises(UnknownFormat, match="there are mine"):
        get_format("yours")
    assert get_format("MINE").name == "opaque"


@pytest.mark.parametrize("value", ["no_such_module:X", "stele.errors:NO_SUCH_NAME", "stele.errors:annotations"])
def test_broken_formats_fail_when_asked_for(entry_point_list: list[EntryPoint], value: str) -> None:
    """A format that cannot be loaded, or is not a format, raises an error only when it is requested."""
    entry_point_list.append(EntryPoint("broken", value, GROUP))
    entry_point_list.append(EntryPoint("opaque", "stele.formats.opaque:OPAQUE", GROUP))
    assert list_formats() == ("broken", "opaque")
    assert get_format("opaque").name == "opaque"
    with pytest.raises(UnknownFormat, match="broken"):
        get_format("broken")


def test_own_errors_pass_through(entry_point_list: list[EntryPoint], monkeypatch: pytest.MonkeyPatch) -> None:
    """A format without an optional dependency raises its own error with the package to install."""

    def fails(_: EntryPoint) -> None:
        raise NotInstalled("thing", "extra")

    monkeypatch.setattr(EntryPoint, "load", fails)
    entry_point_list.append(EntryPoint("needy", "x:y", GROUP))
    with pytest.raises(NotInstalled, match="thing"):
        get_format("needy")
