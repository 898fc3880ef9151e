"""The imports every schema may use without naming them as references."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from stele.errors import NotInstalled

_OWN = Path(__file__).parent / "protos"


@cache
def builtin_sources() -> Mapping[str, bytes]:
    """Import path to text of every built-in file.

    They are `google/protobuf/*` as shipped with the compiler, `google/type/*` as shipped with
    googleapis-common-protos, and the three `confluent/*` files, as in the registries of Confluent and Redpanda.
    Raises `NotInstalled` when one of the two packages is missing.
    """
    roots = (
        (compiler_folder() / "_proto", "google/protobuf"),
        (_package_folder("google.type", "googleapis-common-protos").parents[1], "google/type"),
        (_OWN, "confluent"),
    )
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for root, below in roots
        for path in sorted((root / below).rglob("*.proto"))
    }
    return MappingProxyType(files)


def compiler_folder() -> Path:
    """Return where the package with the compiler lives. Raises `NotInstalled`."""
    return _package_folder("grpc_tools", "grpcio-tools")


def _package_folder(module: str, distribution: str) -> Path:
    """Folder of an installed package, found without importing it."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled(distribution)
    return Path(next(iter(spec.submodule_search_locations)))
