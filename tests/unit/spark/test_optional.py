"""Behaviour if an optional package or tool is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from stele import __version__
from stele.spark import session
from stele.spark.engines.vm import jit

WITHOUT = """
import sys
import tempfile
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Block())
from stele.errors import NotInstalled
{body}
"""


def run_without(*missing: str, body: str) -> str:
    """Return the output of a Python process in which those packages are not installed."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(missing=missing, body=body)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_imports_without_its_extras() -> None:
    """`import stele.spark` needs no Spark, Arrow, numba or Iceberg; using it raises an error with what to install."""
    body = """
import stele.spark
try:
    stele.spark.from_registry(None, subject="s", registry="r")
except NotInstalled as error:
    print(error)
"""
    output = run_without("pyspark", "pyarrow", "numpy", "numba", "pyiceberg", body=body)
    assert output == "PySpark is not installed: pip install 'stele-registry[spark]'\n"


def test_without_numba_auto_is_the_python_engine() -> None:
    """Without numba `auto` is the engine `python`, and `vm` raises an error that says what to install."""
    body = """
from stele.spark.engines import get_engine
print(get_engine("auto").name)
try:
    get_engine("vm")
except NotInstalled as error:
    print(error)
"""
    output = run_without("numba", body=body)
    assert output == "python\nnumba is not installed: pip install 'stele-registry[spark]'\n"


def test_a_missing_java_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java, or with a JAVA_HOME that has none, the error says what to do."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(session.JavaMissing, match="install a JDK"):
        session.require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(session.JavaMissing, match="Java 17"):
        session.require_java()


def test_compiled_kernels_find_a_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels are cached in the named folder, else in the user's cache; a folder that is not writable is skipped."""
    monkeypatch.setenv("STELE_CACHE_DIR", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert jit.cache_folder() == tmp_path / "named" / "numba" / jit.digest_sources()
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("STELE_CACHE_DIR", str(tmp_path / "file"))
    assert jit.cache_folder() == tmp_path / "home" / "stele" / "numba" / jit.digest_sources()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert jit.cache_folder().is_dir()


def test_compiled_kernels_belong_to_their_sources(tmp_path: Path) -> None:
    """The cache folder is named after the release and a digest of all sources, so each change gives a new one."""
    (tmp_path / "vm").mkdir()
    kernel, types = tmp_path / "vm" / "kernel.py", tmp_path / "vm" / "types.py"
    kernel.write_text("A = 1")
    types.write_text("B = 2")

    def digest() -> str:
        jit.digest_sources.cache_clear()
        return jit.digest_sources(tmp_path)

    names = [digest()]
    assert names[0].startswith(f"{__version__}-")
    assert digest() == names[0]
    types.write_text("B = 3")
    names.append(digest())
    types.rename(tmp_path / "types.py")
    names.append(digest())
    (tmp_path / "types.py").unlink()
    names.append(digest())
    assert len(set(names)) == len(names)


def test_compiled_kernels_are_nobody_elses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels are neither stored in nor loaded from a folder that is a link, or that other users can write to."""
    monkeypatch.delenv("STELE_CACHE_DIR", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    shared = tmp_path / f"stele-cache-{os.getuid()}"
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    shared.symlink_to(tmp_path / "elsewhere")
    assert not jit.cache_folder().is_relative_to(shared)
    shared.unlink()
    shared.mkdir()
    shared.chmod(0o777)
    assert not jit.cache_folder().is_relative_to(shared)
    shared.chmod(0o700)
    assert jit.cache_folder() == shared / "numba" / jit.digest_sources()
    assert (shared / "numba").stat().st_mode & 0o777 == 0o700


def _make_kernels(folder: Path, name: str, days: float) -> Path:
    """Make a folder of kernels that was last used `days` ago."""
    kernels = folder / "numba" / name
    (kernels / "vm").mkdir(parents=True)
    file = kernels / "vm" / "kernel.nbi"
    file.write_text("compiled")
    used = time.time() - days * 24 * 3600
    for path in (file, file.parent, kernels):
        os.utime(path, (used, used))
    return kernels


def test_kernels_that_nobody_uses_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels of other sources are removed after 30 days without use.

    Folders that are used, that have another name, that others can write to, or that are links are kept.
    """
    monkeypatch.setenv("STELE_CACHE_DIR", str(tmp_path))
    old = jit.UNUSED_DAYS + 1
    removed = [_make_kernels(tmp_path, f"0.{number}.0-{number:016x}", old) for number in range(3)]
    removed.append(_make_kernels(tmp_path, f"0.4.0-{4:016x}.removed-{5:032x}", old))  # left by a killed process
    kept = [
        _make_kernels(tmp_path, f"0.5.0-{5:016x}", jit.UNUSED_DAYS - 1),
        _make_kernels(tmp_path, "somebody's own folder", old),
        _make_kernels(tmp_path, f"0.6.0-{6:016x}", old),
        _make_kernels(tmp_path, f"0.7.0-{7:016x}", old),
        _make_kernels(tmp_path / "elsewhere", "kernels", old),
    ]
    (kept[2] / "vm" / "late.nbi").write_text("compiled just now")
    kept[3].chmod(0o777)
    link = tmp_path / "numba" / f"0.8.0-{8:016x}"
    link.symlink_to(kept[4])
    (tmp_path / "numba").chmod(0o700)
    mine = jit.cache_folder()
    assert sorted(mine.parent.iterdir()) == sorted([mine, link, *kept[:4]])
    assert not any(path.exists() for path in removed)
    assert all((path / "vm" / "kernel.nbi").exists() for path in kept)
    assert jit.cache_folder() == mine


def test_kernels_in_use_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process marks its kernels as used, even if it compiles nothing; another process sees the mark."""
    monkeypatch.setenv("STELE_CACHE_DIR", str(tmp_path))
    mine = _make_kernels(tmp_path, jit.digest_sources(), jit.UNUSED_DAYS + 1)
    (tmp_path / "numba").chmod(0o700)
    begun = time.time()
    assert jit.cache_folder() == mine
    assert mine.stat().st_mtime > begun - 60
    jit._tidy_cache.cache_clear()
    monkeypatch.setattr(jit, "digest_sources", lambda: f"0.9.0-{9:016x}")
    jit.cache_folder()
    assert (mine / "vm" / "kernel.nbi").exists()
