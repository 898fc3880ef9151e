"""The form of the URL of a store in files."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from stele.errors import InvalidRequest

__all__ = ["parse_url"]


def parse_url(url: str) -> Path:
    """Return the folder in a URL. Raises `InvalidRequest` for anything but `files:///` and a path."""
    _, _, rest = url.partition(":")
    place = unquote(rest.removeprefix("///")).rstrip("/") or "/"
    if not rest.startswith("///") or place == "/" or "?" in rest or "#" in rest or "\0" in place:
        raise InvalidRequest("A store of files has the form files:///relative/folder or files:////absolute/folder")
    return Path(place)
