"""A target on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from stele.errors import InvalidRequest


class SourceFolder:
    """Stores the files of each context in a separate folder below a root. An existing context is replaced."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def upload(self, files: Mapping[str, bytes], context: str) -> None:
        """Store files in the folder of a context; see `Target.upload`."""
        place = (self._root / context).resolve()
        if not context or self._root.resolve() not in place.parents:
            raise InvalidRequest(f"{context!r} is not a folder below {self._root}")
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as work:
            fresh = Path(work) / "new"
            for name, data in files.items():
                file = fresh / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            if place.exists():
                place.rename(Path(work) / "old")
            shutil.move(fresh, place)
