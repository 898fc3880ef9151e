"""The registry over HTTP: the journal's end, its changes within a scope, texts of versions, recorded censuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar, cast

import msgspec

from stele.client import JournalEntry, LocationUsage, SchemaRegistryClient
from stele.errors import DataError
from stele.spark.datasource.tables import Scope, SourceOptions
from stele.spark.registry.clients import get_client, retry_unavailable

T = TypeVar("T")

_PAGE = 1000


class JournalFeed:
    """What a read asks of its registry. Every method may raise `RegistryUnreachable`, after patience."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def end(self) -> int:
        """The last sequence number of the journal."""
        return self._query(lambda client: client.journal(limit=0)).end

    def with_end(self, scope: Scope) -> int:
        """Where a scope ends: as of its number, or now. Raises `DataError` for a number that is still to come."""
        end = self.end()
        if scope.until is not None and scope.until > end:
            raise DataError(f"asOf is {scope.until}, and the journal ends at {end}")
        return end if scope.until is None else scope.until

    def changes(self, scope: Scope) -> Iterator[JournalEntry]:
        """Changes of a scope that has an end, in order; ids are not looked at."""
        until = scope.until or 0
        namespace, subject = _only_value(scope.namespaces), _only_value(scope.subjects)
        if scope.namespaces == frozenset() or scope.subjects == frozenset():
            return
        wanted = replace(scope, ids=None)
        for after in range(scope.after, until, _PAGE):
            page = self._read_page(after, min(_PAGE, until - after), namespace, subject)
            yield from (entry for entry in page if wanted.has(entry.namespace, entry.subject, None))

    def usage(self, scope: Scope) -> list[LocationUsage]:
        """The places in which records of a scope were seen, with what was seen; ids are not looked at."""
        if scope.namespaces == frozenset() or scope.subjects == frozenset():
            return []
        namespace, subject = _only_value(scope.namespaces), _only_value(scope.subjects)
        found = self._query(lambda client: client.usage(namespace=namespace, subject=subject))
        wanted = replace(scope, ids=None)
        kept = [
            (place, tuple(row for row in place.seen if wanted.has(row.namespace, row.subject, None))) for place in found
        ]
        return [msgspec.structs.replace(place, seen=rows) for place, rows in kept]

    def texts(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Texts by SHA-256 in hexadecimal, those that were purged left out."""
        wanted = list(digests)
        return self._query(lambda client: client.schema_texts(wanted)) if wanted else {}

    def _read_page(
        self, after: int, limit: int, namespace: str | None, subject: str | None
    ) -> tuple[JournalEntry, ...]:
        page = self._query(lambda client: client.journal(after, limit=limit, namespace=namespace, subject=subject))
        if page.next != after + limit:
            raise DataError(f"the journal ends at {page.end}, before {after + limit}: it is not the one there was")
        return page.entries

    def _query(self, question: Callable[[SchemaRegistryClient], T]) -> T:
        registry = self._options.registry
        return retry_unavailable(
            lambda: question(cast("SchemaRegistryClient", get_client(registry))), self._options.patience
        )


def _only_value(values: frozenset[str] | None) -> str | None:
    """The one value there is, if there is one."""
    return next(iter(values)) if values is not None and len(values) == 1 else None
