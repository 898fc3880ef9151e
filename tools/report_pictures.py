"""Writes the pictures of reports in docs/pictures: fixed answers as pages, photographed by a headless Chromium.

`python -m tools.report_pictures` needs `chromium` on the PATH. `--pages FOLDER` only writes the pages; `--to`, `--dark`
and `--width` show how they look elsewhere.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from stele.formats.conversion.model import Loss
from stele.spark.data_audit.census import Census, DeletableVersion, FieldUsage, IdUsage
from stele.spark.data_audit.data_stats import FieldStats
from stele.spark.data_audit.drift import Drift, DriftReport
from stele.spark.data_audit.infer import Inference
from stele.spark.data_audit.infer_proposal import ProposedField
from stele.spark.data_audit.report import HasReport, to_html
from stele.spark.pipeline.journal import BatchReport, PipelineReport
from stele.spark.pipeline.schema_evolution import ColumnChange, TableChange
from stele.spark.pipeline.status import BatchChange, IdCount, PipelineHistory, PipelineStatus

PICTURES: Final = Path(__file__).parent.parent / "docs" / "pictures"
MADE_AT: Final = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
MOST_BYTES: Final = 120_000
"""Largest size of a picture in bytes."""
REGISTRY: Final = "http://127.0.0.1:8081"
WIDTH: Final = 1080
HEIGHTS: Final = {"pipeline": 1360, "census": 1320, "drift": 830, "infer": 1290}
"""Height of the picture of each page, in pixels."""
_SUBJECT: Final = "orders-value"


def make_pages() -> dict[str, str]:
    """Return one page for each kind of report by its name."""
    stored = {"data": "orders/*.parquet", "registry": REGISTRY}
    return {
        "pipeline": _page(make_history()),
        "census": _page(make_census(), stored),
        "drift": _page(make_drift(), stored),
        "infer": _page(make_inference(), {"data": "orders.json"}),
    }


def _page(answer: HasReport, sources: dict[str, str] | None = None) -> str:
    return to_html(answer, sources=sources, made_at=MADE_AT)


def make_history() -> PipelineHistory:
    """Return a pipeline of twelve batches, whose table got a new column and a wider one."""
    changes = {
        0: (ColumnChange("create", type="struct<id:int,amount:int>"),),
        5: (ColumnChange("add", ("note",), "string"), ColumnChange("widen", ("amount",), "bigint", "int")),
    }
    begin = MADE_AT.timestamp() - 12 * 300
    batches = tuple(
        BatchReport(
            number,
            at=begin + 300 * number,
            rows=(rows := 18_000 + 1_700 * (number * 7 % 5)),
            dead_letters=(dead := (number % 4 == 2) * 12),
            tables={"shop.orders": rows},
            versions={_SUBJECT: 1 if number < 5 else 2},
            records={"1": rows - (newer := max(0, number - 4) * 2_000), "2": newer},
            codes={"UNKNOWN_SCHEMA_ID": dead} if dead else {},
            reasons={"unknown schema id 7": dead} if dead else {},
            seconds=4 + number % 3 * 0.7,
            changes=tuple(TableChange("shop.orders", change) for change in changes.get(number, ())),
        )
        for number in range(12)
    )
    totals = PipelineReport()
    for batch in batches:
        totals = totals.add_batch(batch)
    status = PipelineStatus(
        "state/orders",
        True,
        totals,
        batches[-1],
        rate=4_480.0,
        ids=tuple(
            IdCount(name, count, _SUBJECT, int(name))
            for name, count in sorted(totals.records.items(), key=lambda item: -item[1])
        ),
        reasons={"unknown schema id 7": totals.dead_letters},
        tables=("shop.orders",),
        source="Kafka at broker:9092, orders",
        changes=tuple(
            BatchChange(batch.batch, batch.at, each.table, each.change.describe_outcome())
            for batch in reversed(batches)
            for each in batch.changes
        ),
    )
    return PipelineHistory(status, batches)


def make_census() -> Census:
    """Return a census of three ids, one of them unknown, over three weeks."""
    days = {
        f"2026-11-{day:02}": {"1": max(0, 900 - 60 * day), "2": 40 * day + day * 37 % 90, "7": (day > 12) * 9}
        for day in range(1, 22)
    }
    sums = {name: sum(counts[name] for counts in days.values()) for name in ("2", "1", "7")}
    times = {"1": ("2026-11-01", "2026-11-14"), "2": ("2026-11-01", "2026-11-21"), "7": ("2026-11-13", "2026-11-21")}
    fields = (FieldUsage("note", "string", 0, sums["2"]), FieldUsage("amount", "int64", sums["2"], sums["2"]))
    ids = tuple(
        IdUsage(
            name,
            name != "7",
            (f"{_SUBJECT} v{name}",) if name != "7" else (),
            sums[name],
            sums[name] * 61,
            f"{times[name][0]}T06:00:00Z",
            f"{times[name][1]}T22:41:07Z",
            fields=fields if name == "2" else (),
            note="" if name != "7" else "unknown schema id 7",
        )
        for name in sums
    )
    versions = (
        DeletableVersion(_SUBJECT, 1, 1, sums["1"], ids[1].last, False, f"not safe: {sums['1']:,} records"),
        DeletableVersion(_SUBJECT, 2, 2, sums["2"], ids[0].last, False, f"not safe: {sums['2']:,} records"),
        DeletableVersion(_SUBJECT, 3, 3, 0, "", True, "safe to delete: no record here needs it"),
    )
    total = sum(sums.values())
    return Census((_SUBJECT,), "confluent", total, 12, total * 61, {}, ids, versions, days)


def make_drift() -> DriftReport:
    """Return what the schemas of orders allow and the records never use."""
    ids = ("1", "2")
    drifts = (
        Drift(
            "UNUSED_SYMBOLS",
            "state",
            "string",
            "Of 4 symbols 1 were never written: LOST.",
            "Check whether the symbols are still needed.",
            18_240,
            ids,
        ),
        Drift(
            "FITS_INT",
            "amount",
            "int64",
            "All 18,240 values, 3 to 48,210, fit 32 bits.",
            "An int is enough; readers can widen it later.",
            18_240,
            ids,
        ),
        Drift(
            "NEVER_SET",
            "note",
            "string",
            "It is null in all 9,310 places it could be in.",
            "Find out whether a producer still writes it.",
            9_310,
            ("2",),
        ),
        Drift(
            "FITS_INT",
            "quantity",
            "int64",
            "All 18,240 values, 1 to 60, fit 32 bits.",
            "An int is enough; readers can widen it later.",
            18_240,
            ids,
        ),
    )
    fields = {path: FieldStats(type_) for path, type_ in _FIELDS.items()}
    places = {"1": (f"{_SUBJECT} v1",), "2": (f"{_SUBJECT} v2",)}
    return DriftReport((_SUBJECT,), 18_252, 18_240, places, drifts, fields=fields)


_FIELDS: Final = {"id": "int64", "state": "string", "amount": "int64", "quantity": "int64", "note": "string"}
_INFERRED: Final = """{
  "type": "record",
  "name": "Order",
  "namespace": "shop",
  "fields": [
    {"name": "id", "type": "long", "doc": "Always there, in 18,240 records; whole numbers 1 to 18,240."},
    {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "coupon", "type": ["null", "string"], "default": null}
  ]
}"""


def make_inference() -> Inference:
    """Return a schema inferred from documents, one of which is not JSON."""
    return Inference(
        "avro",
        _INFERRED,
        18_241,
        0,
        {"no JSON: unexpected end of data": 1},
        1.0,
        (Loss("", "order of members", "Avro has an order of its own", data=False),),
        (
            ProposedField("id", "integer", True, False, 0.999836, "always there, in 18,240 records"),
            ProposedField("placed_at", "timestamp", True, False, 0.999836, "all 18,240 texts are timestamps"),
            ProposedField("coupon", "text", False, True, 0.9984, "there in 1,822 of 18,240 (9.99 %): may be left out"),
        ),
    )


@contextmanager
def _write_pages(folder: Path | None) -> Iterator[dict[str, Path]]:
    with tempfile.TemporaryDirectory() as own:
        home = folder or Path(own)
        home.mkdir(parents=True, exist_ok=True)
        files = {name: home / f"{name}.html" for name in HEIGHTS}
        for name, text in make_pages().items():
            files[name].write_text(text, encoding="utf-8")
        yield files


def take_picture(page: Path, picture: Path, width: int, height: int, *, dark: bool = False) -> None:
    """Render a page to a picture. Raises `CalledProcessError` when Chromium fails."""
    with tempfile.TemporaryDirectory() as profile:
        quiet = "--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update"
        command = ["chromium", "--headless", "--no-sandbox", *quiet.split(), "--disable-sync", "--hide-scrollbars"]
        command += [f"--user-data-dir={profile}", f"--window-size={width},{height}", f"--screenshot={picture}"]
        command += ["--blink-settings=preferredColorScheme=0"] if dark else []
        subprocess.run([*command, page.as_uri()], check=True, capture_output=True, timeout=60)


def main() -> None:
    """Write the pictures, or only the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, help="only write the pages to this folder")
    parser.add_argument("--to", type=Path, default=PICTURES, help="folder of the pictures")
    parser.add_argument("--width", type=int, default=WIDTH)
    parser.add_argument("--dark", action="store_true")
    arguments = parser.parse_args()
    with _write_pages(arguments.pages) as files:
        if arguments.pages is not None:
            return
        arguments.to.mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            picture = arguments.to / f"report-{name}.png"
            take_picture(file.resolve(), picture.resolve(), arguments.width, HEIGHTS[name], dark=arguments.dark)


if __name__ == "__main__":
    main()
