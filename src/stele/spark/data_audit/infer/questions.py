"""What tasks do for an inference: evidence of their part of the rows or documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa

from stele.spark.data_audit.aggregation import added, bounded
from stele.spark.data_audit.infer.columns import of_rows
from stele.spark.data_audit.infer.documents import of_documents
from stele.spark.data_audit.infer.evidence import Evidence, weighed
from stele.spark.engines.arrow import Column

MOST_REASONS: Final = 50
"""Reasons told apart why a document is none."""
ALL: Final = "all"
"""The one name under which answers are."""


class Gathered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What some records showed.

    records   all but null ones
    nulls     rows without a document
    reasons   documents that are none, by reason
    most      how many different texts of a place are told apart
    """

    records: int = 0
    nulls: int = 0
    reasons: dict[str, int] = {}
    evidence: Evidence = Evidence()
    most: int = 0

    def merged(self, other: Gathered) -> Gathered:
        """See `Answer`. Raises `TooLarge` for more places than a schema should have."""
        most = max(self.most, other.most)
        return Gathered(
            records=self.records + other.records,
            nulls=self.nulls + other.nulls,
            reasons=added(self.reasons, other.reasons, MOST_REASONS),
            evidence=weighed(self.evidence.merged(other.evidence, most)),
            most=most,
        )


@dataclass(frozen=True, slots=True)
class Documents:
    """The rows' one column holds JSON documents, as texts or bytes in UTF-8."""

    most: int
    answers = Gathered

    def begin(self) -> Callable[[pa.RecordBatch], Mapping[str, Gathered]]:
        """See `Asking`."""
        return self._answer

    def _answer(self, batch: pa.RecordBatch) -> Mapping[str, Gathered]:
        column: Column = batch.column(0)
        documents = column.drop_null().to_pylist()
        evidence, reasons = of_documents(documents, self.most)
        reasons = bounded(reasons, MOST_REASONS)
        return {ALL: Gathered(len(documents), column.null_count, reasons, weighed(evidence), self.most)}


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows themselves are the records; parse: see `columns.of_rows`."""

    most: int
    parse: bool = False
    answers = Gathered

    def begin(self) -> Callable[[pa.RecordBatch], Mapping[str, Gathered]]:
        """See `Asking`."""
        return self._answer

    def _answer(self, batch: pa.RecordBatch) -> Mapping[str, Gathered]:
        evidence = weighed(of_rows(batch, most=self.most, parse=self.parse))
        return {ALL: Gathered(batch.num_rows, evidence=evidence, most=self.most)}
