"""Compilation with numba, which is loaded with the first kernel, and the disk cache of compiled kernels."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from uuid import uuid4

from stele import __version__
from stele.errors import NotInstalled

try:
    import numba
except ImportError as missing:
    raise NotInstalled("numba", "spark") from missing

P = ParamSpec("P")
T = TypeVar("T")

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


_ENGINES = Path(__file__).parent.parent

UNUSED_DAYS: Final = 30
"""Number of days without use after which cached kernels of other sources are removed."""
_OF_SOURCES: Final = re.compile(r".+-[0-9a-f]{16}(\.removed-[0-9a-f]+)?")


@cache
def digest_sources(folder: Path = _ENGINES) -> str:
    """Return the release and a digest of all Python sources below a folder, as the name of a cache folder.

    numba only detects changes in the file of the kernel itself. A kernel also contains parts of other files: functions,
    numbers of errors and steps, and the names of the types of its arguments.
    """
    digest = sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return f"{__version__}-{digest.hexdigest()[:16]}"


def cache_folder() -> Path:
    """Return the folder for compiled kernels of these sources.

    It is below `STELE_CACHE_DIR`, else the user's cache, else a private temporary folder. Each state of the sources has
    a folder of its own: several releases can share a cache, and none loads what another one compiled. Folders that were
    not used for `UNUSED_DAYS` are removed.

    A package folder can be read-only and a Spark worker can be without a home, so neither is required.
    """
    named = os.environ.get("STELE_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if os.environ.get("HOME") else None)
    candidates = [Path(named)] if named else []
    if home:
        candidates.append(Path(home) / "stele")
    candidates.append(Path(tempfile.gettempdir()) / f"stele-cache-{os.getuid() if hasattr(os, 'getuid') else 'user'}")
    for folder in candidates:
        with suppress(OSError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            kernels = folder / "numba" / digest_sources()
            if all(_make_private(each) for each in (folder, kernels.parent, kernels)):
                _tidy_cache(kernels)
                return kernels
    return Path(tempfile.mkdtemp(prefix="stele-cache-"))


def _make_private(folder: Path) -> bool:
    """Create the folder if it is missing, and return whether only this user can write to it. Raises `OSError`.

    The check matters because compiled code is loaded from the folder. Symbolic links are not followed, as another user
    could have created one in a shared temporary folder.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    return _is_private(folder)


def _is_private(folder: Path) -> bool:
    """Return whether it is a folder, not a link, and only this user can write to it. Raises `OSError`."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or not os.access(folder, os.W_OK):
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & _WRITABLE_BY_OTHERS)


@cache
def _tidy_cache(kernels: Path) -> None:
    """Mark the kernels as used, and remove folders beside them that were unused for long; once per process.

    A folder is renamed before it is deleted, so that no other process sees half of it. numba compiles what it does not
    find.
    """
    with suppress(OSError):
        os.utime(kernels)
        oldest = time.time() - UNUSED_DAYS * 24 * 3600
        for folder in kernels.parent.iterdir():
            if folder == kernels or not _OF_SOURCES.fullmatch(folder.name):
                continue
            with suppress(OSError):  # another process removes it, too
                if _is_private(folder) and _find_last_use(folder) < oldest:
                    name = folder.name.partition(".removed-")[0]
                    shutil.rmtree(folder.rename(folder.with_name(f"{name}.removed-{uuid4().hex}")))


def _find_last_use(folder: Path) -> float:
    """Return when a process last used the kernels of a folder, or added one, in seconds since 1970."""
    return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))


def compile_kernel(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function with numba on its first call, with a disk cache and without the interpreter lock.

    numba's run-time is off, too (`_nrt`, which its stubs do not know): kernels allocate no memory, and counting
    references to their array arguments would take five times as long as the work.
    """
    settings: Any = numba.config
    compiler: Any = numba.njit
    before = settings.CACHE_DIR
    settings.CACHE_DIR = before or str(cache_folder())
    try:
        kernel: Callable[P, T] = compiler(cache=True, nogil=True, error_model="numpy", _nrt=False)(function)
    finally:
        settings.CACHE_DIR = before
    return kernel
