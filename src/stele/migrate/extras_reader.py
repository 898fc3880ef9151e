"""Reads the data of a live registry besides its schemas. What a make does not support is noted and left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from stele.client import SchemaRegistryClient
from stele.client.request import Request, build_path, build_query, json_decoder
from stele.errors import NotFound, SteleError
from stele.migrate.extras import HIDDEN, MigratedAssociation, MigratedDek, MigratedExporter, MigratedKek, RegistryExtras
from stele.migrate.pages import PAGE, read_pages
from stele.migrate.progress import Progress, report_nothing

T = TypeVar("T")

_ASSOCIATIONS = "/associations/resources/-/-"
_ALGORITHMS = ("AES256_GCM", "AES128_GCM", "AES256_SIV")

_names = json_decoder(list[str])
_numbers = json_decoder(list[int])
_kek = json_decoder(MigratedKek)
_dek = json_decoder(MigratedDek)
_associations = json_decoder(list[MigratedAssociation])
_exporter = json_decoder(MigratedExporter)
_status = json_decoder(dict[str, Any])
_anything = json_decoder(Any)


class _ExtrasReader:
    """Reads the extras of one registry, once."""

    def __init__(self, client: SchemaRegistryClient, progress: Progress) -> None:
        self._client = client
        self._progress = progress
        self.notes: list[str] = []

    def read_extras(self, contexts: Iterable[str]) -> RegistryExtras:
        """Return all extras of the registry."""
        keys = self._read_if_served("DEK registry", _keks_path("."), lambda: self._read_keys(contexts))
        keks = tuple(row for row in keys if isinstance(row, MigratedKek))
        deks = tuple(row for row in keys if isinstance(row, MigratedDek))
        associations = self._read_if_served("associations", _ASSOCIATIONS, self._read_associations)
        exporters = self._read_if_served("exporters", "/exporters", self._read_exporters)
        if keks:
            self.notes.append("kmsProps of KEKs that may be secret are not shown: set them at the target")
        for row in exporters:
            if hidden := sorted(name for name, value in row.config.items() if value == HIDDEN):
                self.notes.append(f"exporter {row.name}: {', '.join(hidden)} is not shown: set it at the target")
        return RegistryExtras(keks, deks, tuple(associations), tuple(exporters))

    def _read_if_served(self, what: str, route: str, ask: Callable[[], list[T]]) -> list[T]:
        try:
            self._get_decoded(_anything, route, limit=1)
        except NotFound:
            pass
        except SteleError as error:
            if getattr(error, "status", None) != 405:
                raise
        else:
            return ask()
        self.notes.append(f"the source serves no {what}")
        return []

    def _get_decoded(self, decode: Callable[[bytes], T], route: str, **parameters: Any) -> T:
        return self._client.send(Request("GET", route, decode, build_query({"deleted": True, **parameters})))

    # --- keys ---------------------------------------------------------------------------------------------------------

    def _read_keys(self, contexts: Iterable[str]) -> list[MigratedKek | MigratedDek]:
        keks: list[MigratedKek] = []
        deks: dict[tuple[str, ...], MigratedDek] = {}
        # A make whose keys have no contexts returns the same keys in every context, also in one that does not exist.
        everywhere = bool(self._get_decoded(_names, _keks_path(f".stele-probe-{uuid4().hex}")))
        for context in ["."] if everywhere else sorted(contexts):
            base = _keks_path(context)
            for name in self._get_decoded(_names, base):
                kek = self._get_decoded(_kek, base + build_path(name))
                keks.append(msgspec.structs.replace(kek, context=context, kms_props=kek.kms_props or None))
                deks.update({dek.key: dek for dek in self._read_deks(base + build_path(name, "deks"), context)})
                self._progress("keys", len(keks) + len(deks), None)
        return [*keks, *(deks[key] for key in sorted(deks, key=lambda key: (*key[:-1], int(key[-1]))))]

    def _read_deks(self, base: str, context: str) -> Iterator[MigratedDek]:
        for subject in self._get_decoded(_names, base):
            for algorithm in _ALGORITHMS:
                for number in self._read_dek_versions(base + build_path(subject, "versions"), algorithm):
                    route = base + build_path(subject, "versions", number)
                    try:
                        dek = self._get_decoded(_dek, route, algorithm=algorithm)
                    except SteleError as error:
                        if getattr(error, "status", 0) < 500:
                            raise
                        self.notes.append(f"version {number} of the DEK of {subject} cannot be read: {error}")
                        continue
                    yield msgspec.structs.replace(dek, context=context)

    def _read_dek_versions(self, route: str, algorithm: str) -> list[int]:
        try:
            return self._get_decoded(_numbers, route, algorithm=algorithm)
        except NotFound:
            return []

    # --- the rest -----------------------------------------------------------------------------------------------------

    def _read_associations(self) -> list[MigratedAssociation]:
        """Return the associations of all pages."""

        def ask_page(offset: int) -> list[MigratedAssociation]:
            return self._get_decoded(_associations, _ASSOCIATIONS, offset=offset, limit=PAGE)

        return [row for rows in read_pages(ask_page, lambda row: row.key) for row in rows]

    def _read_exporters(self) -> list[MigratedExporter]:
        return [self._read_exporter(name) for name in self._get_decoded(_names, "/exporters")]

    def _read_exporter(self, name: str) -> MigratedExporter:
        route = build_path("exporters", name)
        exporter = self._get_decoded(_exporter, route)
        status: dict[str, Any] = self._get_decoded(_status, f"{route}/status")
        position = {part: status[part] for part in ("state", "offset", "ts") if status.get(part) is not None}
        return msgspec.structs.replace(exporter, config=dict(sorted(exporter.config.items())), **position)


def read_extras(
    client: SchemaRegistryClient, contexts: Iterable[str], progress: Progress = report_nothing
) -> tuple[RegistryExtras, tuple[str, ...]]:
    """Return the extras of a registry, and notes on those that it does not return.

    Raises the errors of `registry_reader.read_registry`.
    """
    reader = _ExtrasReader(client, progress)
    extras = reader.read_extras(contexts)
    return extras, tuple(reader.notes)


def _keks_path(context: str) -> str:
    return ("" if context == "." else build_path("contexts", context)) + "/dek-registry/v1/keks"
