"""What tasks do for an inference: evidence of their part of the rows or documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa

from stele.spark.data_audit.aggregation import add_counts, limit_kinds
from stele.spark.data_audit.infer.columns import evidence_of_rows
from stele.spark.data_audit.infer.documents import evidence_of_documents
from stele.spark.data_audit.infer.evidence import Evidence, check_size
from stele.spark.engines.arrow import Column

MOST_REASONS: Final = 50
"""Reasons told apart why a document is none."""
ALL: Final = "all"
"""The one name under which answers are."""


class CollectedEvidence(msgspec.Struct, frozen=True, omit_defaults=True):
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

    def merge_with(self, other: CollectedEvidence) -> CollectedEvidence:
        """See `Answer`. Raises `TooLarge` for more places than a schema should have."""
        most = max(self.most, other.most)
        return CollectedEvidence(
            records=self.records + other.records,
            nulls=self.nulls + other.nulls,
            reasons=add_counts(self.reasons, other.reasons, MOST_REASONS),
            evidence=check_size(self.evidence.merge_with(other.evidence, most)),
            most=most,
        )


@dataclass(frozen=True, slots=True)
class DocumentAggregator:
    """The rows' one column holds JSON documents, as texts or bytes in UTF-8."""

    most: int
    result_type = CollectedEvidence

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, CollectedEvidence]]:
        """See `Asking`."""
        return self._aggregate_batch

    def _aggregate_batch(self, batch: pa.RecordBatch) -> Mapping[str, CollectedEvidence]:
        column: Column = batch.column(0)
        documents = column.drop_null().to_pylist()
        evidence, reasons = evidence_of_documents(documents, self.most)
        reasons = limit_kinds(reasons, MOST_REASONS)
        return {ALL: CollectedEvidence(len(documents), column.null_count, reasons, check_size(evidence), self.most)}


@dataclass(frozen=True, slots=True)
class RowAggregator:
    """The rows themselves are the records; parse: see `columns.of_rows`."""

    most: int
    parse: bool = False
    result_type = CollectedEvidence

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, CollectedEvidence]]:
        """See `Asking`."""
        return self._aggregate_batch

    def _aggregate_batch(self, batch: pa.RecordBatch) -> Mapping[str, CollectedEvidence]:
        evidence = check_size(evidence_of_rows(batch, most=self.most, parse=self.parse))
        return {ALL: CollectedEvidence(batch.num_rows, evidence=evidence, most=self.most)}
