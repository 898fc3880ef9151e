"""Versions of the layout of stores: an older release does not touch what a newer one has written."""

from __future__ import annotations

from stele.errors import StoreError


def describe_newer_layout(what: str, layout: int, known: int) -> str:
    """Return why something of a newer layout cannot be used by a program that knows an older one."""
    return f"{what} layout {layout}, but this program knows only layout {known}: use a newer Stele"


def require_known_layout(what: str, layout: int, known: int) -> None:
    """Raise `StoreError` for a layout of a newer release."""
    if layout > known:
        raise StoreError(describe_newer_layout(what, layout, known))
