"""Locations of new records: they must not overlap with the old ones, nor with one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stele.errors import InvalidRequest
from stele.spark.data_audit.migrate import Migration, OutputTarget, Verification, check_separate, with_verification
from stele.spark.data_audit.report import ReportState


@pytest.mark.parametrize(
    ("source", "target", "dead"),
    [
        ("a", "a", "b"),
        ("a", "./x/../a", "b"),
        ("a", "a/b", "c"),
        ("a/b", "a", "c"),
        ("a", "b", "b"),
        ("a", "b", "a"),
        ("s3://lake/a", "s3://lake/a/", "b"),
        ("s3://lake/a", "s3://lake/a/b", "b"),
    ],
)
def test_places_must_be_apart(
    source: str, target: str, dead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One location in two spellings, a location inside another, and one location for two outputs are refused."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest, match="choose separate locations"):
        check_separate(source, OutputTarget(target), OutputTarget(dead), "parquet")


def test_places_apart_are_taken() -> None:
    """Locations with a common beginning of their names, and tables named like paths, do not overlap."""
    check_separate("orders", OutputTarget("orders-new"), OutputTarget("orders-new-dead"), "parquet")
    check_separate("s3://lake/a", OutputTarget("s3://lake/ab"), OutputTarget("s3://lake/ab-dead"), "parquet")
    check_separate("orders", OutputTarget("orders"), OutputTarget("dead"), "table")
    with pytest.raises(InvalidRequest):
        check_separate("orders", OutputTarget("orders", "table"), OutputTarget("dead"), "table")


def migration(**more: Any) -> Migration:
    """Return a migration of ten records, with the given counts."""
    counts: dict[str, Any] = {"records": 10, "tombstones": 1, "dead": 0, "bytes": 1, "new_bytes": 1, **more}
    counts |= {"ids": (), "codes": {}, "reasons": {}}
    return Migration("s", "s", 2, 7, ("confluent", "confluent"), ("AVRO", "AVRO"), **counts)


@pytest.mark.parametrize(
    ("dead", "verification", "sound", "good"),
    [
        (0, None, True, True),
        (2, None, True, False),
        (0, Verification(11, 11), True, True),
        (2, Verification(9, 9), True, False),
        (0, Verification(10, 10), False, False),
        (0, Verification(11, 10), False, False),
        (0, Verification(31, 31, there_before=20), True, True),
        (0, Verification(11, 11, values=False), False, False),
        (0, Verification(11, 11, values=True), True, True),
    ],
)
def test_what_was_written_must_be_there(dead: int, verification: Verification | None, sound: bool, good: bool) -> None:
    """The verification counts tombstones, but not dead letters and older records. A missing record is a failure."""
    outcome = with_verification(migration(dead=dead), verification)
    assert (outcome.is_sound, outcome.is_complete) == (sound, good)
    assert outcome.report().state == ReportState.from_outcome(good=good)
    assert outcome.written
