"""numba, loaded when the first kernel is, with a place on disk for what it compiles."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from stele.errors import NotInstalled

try:
    import numba  # type: ignore[import-untyped]  # numba ships no types
except ImportError as missing:
    raise NotInstalled("numba", "spark") from missing

P = ParamSpec("P")
T = TypeVar("T")


def cache_folder() -> Path:
    """Where compiled kernels are kept: `STELE_CACHE_DIR`, else the user's cache, else a private temporary folder.

    A package folder may be read-only and a Spark worker may have no home, so neither is relied upon.
    """
    named = os.environ.get("STELE_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if os.environ.get("HOME") else None)
    candidates = [Path(named)] if named else []
    if home:
        candidates.append(Path(home) / "stele")
    candidates.append(Path(tempfile.gettempdir()) / f"stele-cache-{os.getuid() if hasattr(os, 'getuid') else 'user'}")
    for folder in candidates:
        try:
            (folder / "numba").mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(folder / "numba", os.W_OK) and _private(folder / "numba"):
            return folder / "numba"
    return Path(tempfile.mkdtemp(prefix="stele-cache-"))


def _private(folder: Path) -> bool:
    """Whether the folder is ours: compiled code is loaded from it, so another user's will not do."""
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compile with numba on first call; cached on disk, without the interpreter lock."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = before or str(cache_folder())
    try:
        return cast("Callable[P, T]", numba.njit(cache=True, nogil=True, _nrt=False)(function))
    finally:
        numba.config.CACHE_DIR = before
