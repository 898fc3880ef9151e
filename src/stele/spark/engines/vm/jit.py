"""numba, loaded when the first kernel is, with a place on disk for what it compiles."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from stele.errors import NotInstalled

try:
    import numba
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
        if os.access(folder / "numba", os.W_OK) and _is_private(folder / "numba"):
            return folder / "numba"
    return Path(tempfile.mkdtemp(prefix="stele-cache-"))


def _is_private(folder: Path) -> bool:
    """Whether the folder is ours: compiled code is loaded from it, so another user's will not do."""
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()


def compile_kernel(function: Callable[P, T]) -> Callable[P, T]:
    """Compile with numba on first call; cached on disk, without the interpreter lock.

    Also without numba's run-time (`_nrt`, which its stubs do not know): kernels allocate nothing, and counting
    references to the arrays they are handed would take five times as long as the work.
    """
    settings: Any = numba.config
    compiler: Any = numba.njit
    before = settings.CACHE_DIR
    settings.CACHE_DIR = before or str(cache_folder())
    try:
        made: Callable[P, T] = compiler(cache=True, nogil=True, error_model="numpy", _nrt=False)(function)
    finally:
        settings.CACHE_DIR = before
    return made
