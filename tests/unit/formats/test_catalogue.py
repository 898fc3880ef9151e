"""Formats are found by entry point, lazily, and one that is broken hinders nobody."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from stele.errors import NotInstalled, UnknownFormat
from stele.formats import catalogue


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """The entry points the catalogue sees."""
    found: list[EntryPoint] = []
    monkeypatch.setattr(catalogue, "entry_points", lambda group: found if group == "stele.formats" else [])
    catalogue.forget()
    yield found
    catalogue.forget()


def test_built_in_formats() -> None:
    """The formats of this package come in by the same door as everybody's."""
    assert {"avro", "json", "opaque", "protobuf"} <= set(catalogue.names())
    assert catalogue.get("AVRO") is catalogue.get("avro")
    assert catalogue.get("opaque").name == "opaque"


def test_unknown_format_names_the_known_ones(points: list[EntryPoint]) -> None:
    """The error lists what is installed."""
    points.append(EntryPoint("Mine", "stele.formats.opaque:OPAQUE", catalogue.GROUP))
    with pytest.raises(UnknownFormat, match="there are mine"):
        catalogue.get("yours")
    assert catalogue.get("MINE").name == "opaque"


@pytest.mark.parametrize("value", ["no_such_module:X", "stele.errors:NO_SUCH_NAME", "stele.errors:annotations"])
def test_broken_formats_fail_when_asked_for(points: list[EntryPoint], value: str) -> None:
    """A format that cannot be loaded, or is none, is reported when asked for, and only then."""
    points.append(EntryPoint("broken", value, catalogue.GROUP))
    points.append(EntryPoint("opaque", "stele.formats.opaque:OPAQUE", catalogue.GROUP))
    assert catalogue.names() == ("broken", "opaque")
    assert catalogue.get("opaque").name == "opaque"
    with pytest.raises(UnknownFormat, match="broken"):
        catalogue.get("broken")


def test_own_errors_pass_through(points: list[EntryPoint], monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that misses an optional part says itself what to install."""

    def fails(_: EntryPoint) -> None:
        raise NotInstalled("thing", "extra")

    monkeypatch.setattr(EntryPoint, "load", fails)
    points.append(EntryPoint("needy", "x:y", catalogue.GROUP))
    with pytest.raises(NotInstalled, match="thing"):
        catalogue.get("needy")
