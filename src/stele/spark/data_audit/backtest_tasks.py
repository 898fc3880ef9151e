"""What tasks of a backtest do: read every record with the proposed schema, and those that fail with their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.errors import DataError, DecodeError, Invalid
from stele.spark.data_audit.aggregation import (
    CHOSEN,
    HEADERS,
    POSITION,
    RAW,
    add_counts,
    count_values,
    limit_kinds,
    merge_sorted,
)
from stele.spark.data_audit.schema_stats import MOST_REASONS, NO_ID, AuditContext, WriterDecoders
from stele.spark.engines.arrow import Column
from stele.spark.engines.error_messages import describe_errors
from stele.spark.wires.normalize import FrameNormalizer

HEX: Final = 32
"""Bytes of a failing record that are shown."""
_JSON: Final = "JSON"


class FailingRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A failing record.

    position  the columns that tell where it is, as the text of a JSON object; '' without
    bytes     its length
    hex       its first bytes
    """

    id: str
    position: str
    bytes: int
    hex: str
    reason: str
    damaged: bool = False


class BacktestCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The records of one id.

    decoded  how many were tried
    broken   those the proposed schema does not read and their own does, by reason
    damaged  those neither reads, by reason
    nulls    null records: under `NO_ID` only
    most     examples that are kept
    """

    records: int = 0
    decoded: int = 0
    broken: dict[str, int] = {}
    damaged: dict[str, int] = {}
    examples: list[FailingRecord] = []
    nulls: int = 0
    most: int = 0

    def merge_with(self, other: BacktestCounts) -> BacktestCounts:
        """See `Answer`."""
        most = max(self.most, other.most)
        return BacktestCounts(
            records=self.records + other.records,
            decoded=self.decoded + other.decoded,
            broken=add_counts(self.broken, other.broken, MOST_REASONS),
            damaged=add_counts(self.damaged, other.damaged, MOST_REASONS),
            examples=merge_sorted(self.examples, other.examples, most, _sort_key),
            nulls=self.nulls + other.nulls,
            most=most,
        )


def _sort_key(example: FailingRecord) -> tuple[Any, ...]:
    """Examples by position, numbers as numbers; those that break before those damaged anyway."""
    try:
        parts = list(json.loads(example.position or "{}").values())
    except ValueError:
        parts = []
    ranked = [(0, part, "") if isinstance(part, int | float) else (1, 0, str(part)) for part in parts]
    return (example.damaged, ranked, example.hex, example.reason)


@dataclass(frozen=True, slots=True)
class BacktestAggregator:
    """The question: does the proposed schema read it? examples is how many failing records are kept for each id."""

    context: AuditContext
    proposed: ResolvedSchema
    examples: int = 10
    result_type = BacktestCounts

    @property
    def needs_headers(self) -> bool:
        """See `RecordAggregator`."""
        return self.context.wire.needs_headers

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, BacktestCounts]]:
        """See `RecordAggregator`."""
        return _BacktestTask(self).aggregate_batch


class _BacktestTask:
    """Answers for the batches of one task; keeps the decoders."""

    def __init__(self, question: BacktestAggregator) -> None:
        self._question = question
        lookup = question.context.make_lookup()
        self._own = WriterDecoders(question.context, lookup)
        if question.proposed.schema_type.upper() == _JSON:
            self._reasons = JsonRecordValidator(question.context, question.proposed).reasons
        else:
            decoder = question.context.make_decoder(question.proposed)
            self._reasons = lambda raw, headers: describe_errors(decoder.decode(raw, headers))

    def aggregate_batch(self, batch: pa.RecordBatch) -> Mapping[str, BacktestCounts]:
        raw: Column = batch.column(RAW)
        headers: Column = batch.column(HEADERS) if HEADERS in batch.schema.names else None
        parts = self._question.context.wire.split(raw, headers)
        there = raw.is_valid()
        chosen = pc.and_(there, batch.column(CHOSEN)) if CHOSEN in batch.schema.names else there
        reasons = self._reasons(pc.if_else(chosen, raw, None), headers)
        found = {str(key): count for key, count in count_values(parts.ids.filter(there)).items()}
        found[NO_ID] = pc.sum(pc.and_(there, parts.ids.is_null())).as_py() or 0
        tried: dict[str, BacktestCounts] = {}
        names = parts.ids.cast(pa.string()).fill_null(NO_ID)
        for name, records in found.items():
            mine = pc.equal(names, pa.scalar(name))
            decoded = pc.sum(pc.and_(mine, chosen)).as_py() or 0
            failing = pc.and_(pc.and_(mine, chosen), reasons.is_valid())
            tried[name] = self._examine_failures(
                name, batch, failing, parts.ids, reasons, BacktestCounts(records, decoded)
            )
        tried[NO_ID] = msgspec.structs.replace(tried[NO_ID], nulls=raw.null_count)
        return tried

    def _examine_failures(
        self, name: str, batch: pa.RecordBatch, failing: Column, ids: Column, reasons: Column, so_far: BacktestCounts
    ) -> BacktestCounts:
        """The trial of an id: which of its failing records are damaged anyway, and the first ones."""
        most = self._question.examples
        if not pc.any(failing).as_py():
            return msgspec.structs.replace(so_far, most=most)
        rows, why = batch.filter(failing), reasons.filter(failing)
        raw: Column = rows.column(RAW)
        heads: Column = pc.binary_slice(raw, 0, HEX)
        sizes: Column = pc.binary_length(raw)
        lost: Column = pa.array([True] * len(raw))
        if name != NO_ID:
            decoder, _ = self._own.get_decoder(ids.filter(failing)[0].as_py())
            if decoder is not None:
                headers = rows.column(HEADERS) if HEADERS in rows.schema.names else None
                lost = decoder.decode(raw, headers).is_bad()
        places = rows.column(POSITION).to_pylist() if POSITION in rows.schema.names else [""] * len(raw)
        shown = zip(places, heads.to_pylist(), sizes.to_pylist(), strict=True)
        examples = [
            FailingRecord(name, place or "", size, data.hex(), reason, bad)
            for (place, data, size), reason, bad in zip(shown, why.to_pylist(), lost.to_pylist(), strict=True)
        ]
        return msgspec.structs.replace(
            so_far,
            broken=limit_kinds(count_values(why.filter(pc.invert(lost))), MOST_REASONS),
            damaged=limit_kinds(count_values(why.filter(lost)), MOST_REASONS),
            examples=merge_sorted(examples, [], most, _sort_key),
            most=most,
        )


class JsonRecordValidator:
    """Validates JSON records by the proposed schema: decoding checks them by their own only."""

    def __init__(self, frame: AuditContext, proposed: ResolvedSchema) -> None:
        self._normalizer = FrameNormalizer(frame.wire, frame.make_lookup(), frame.message)
        parsed = parse_schema(proposed)
        self._decode = parsed.format.codec(parsed.parsed).decode

    def reasons(self, raw: Column, headers: Column | None) -> Column:
        """A sentence for each record that is not valid; null for the others."""
        frames = self._normalizer.normalize(raw, headers)
        known = zip(
            describe_errors(frames).to_pylist(), pc.binary_slice(frames.frames, 5, 1 << 31).to_pylist(), strict=True
        )
        return pa.array([why or self._validate_record(data, padded=frames.padded) for why, data in known], pa.string())

    def _validate_record(self, data: bytes | None, *, padded: bool) -> str | None:
        if data is None:
            return None
        try:
            self._decode(data.rstrip(b"\0") if padded else data)
        except (DecodeError, DataError, Invalid) as error:
            return str(error)
        return None
