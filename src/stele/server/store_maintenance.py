"""Verifies, repairs and backs up stores, for commands that run without a registry."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from stele.service.registry import SKIPPED_NUMBERS, SKIPPED_SCHEMA_IDS
from stele.storage import find_driver, maintenance
from stele.storage.drivers import StoreCondition, find_mark
from stele.storage.maintenance import Damage, Examination, LostVersion, Repair, inspect_store

__all__ = [
    "Damage",
    "Examination",
    "LostVersion",
    "Repair",
    "StoreCondition",
    "back_up_store",
    "inspect_store",
    "is_durable",
    "repair_store",
    "require_store",
    "verify_store",
]


def is_durable(store: str) -> bool:
    """Return whether a store outlives its process. Raises `InvalidRequest` for an unknown kind."""
    return find_driver(store).is_durable


def require_store(store: str) -> None:
    """Raise `InvalidRequest` when there is no such store, since opening its log would create one."""
    maintenance.open_files(store)


def verify_store(store: str, state_dir: Path) -> Examination:
    """Read every record of a store. Raises `InvalidRequest` when there is none, `StoreError`."""
    return maintenance.examine_store(maintenance.open_files(store), find_mark(store, state_dir))


def repair_store(store: str, state_dir: Path, last_id: int) -> Repair:
    """Keep the records before the first damage, and skip ids. Raises `InvalidRequest`, `StoreError`."""
    return maintenance.repair_store(
        maintenance.open_files(store),
        find_mark(store, state_dir),
        schema_ids=SKIPPED_SCHEMA_IDS,
        numbers=SKIPPED_NUMBERS,
        last_id=last_id,
    )


def back_up_store(store: str, file: Path) -> Examination:
    """Copy a store that may be in use, and verify the copy. Raises `InvalidRequest`, `StoreError`."""
    maintenance.open_files(store).write_copy(file)
    return maintenance.examine_store(maintenance.open_files(f"sqlite:///{quote(str(file.resolve()))}"))
