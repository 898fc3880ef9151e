"""Which versions of its subjects a pipeline used when, and what the registry tells of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from stele.client import Retry, SchemaRegistryClient, SchemaSnapshot
from stele.errors import InvalidRequest
from stele.spark.data_audit.subject_evolution import SubjectEvolution, load_evolutions, miss_evolutions
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.journal import BatchReport

_ROUNDS: Final = 2
"""How often the servers of a registry are tried: there is a report without them, too."""


def label_versions(batches: Iterable[BatchReport]) -> dict[str, dict[int, str]]:
    """Return the batches whose tables had the columns of a version, by subject and version.

    A label is `batch 3`, `batches 0–41`, or `batches 0–1, 5` where the tables went back to a version. Batches are given
    in their order.
    """
    used: dict[str, list[tuple[int, int]]] = {}
    for batch in batches:
        for subject, version in batch.versions.items():
            used.setdefault(subject, []).append((version, batch.batch))
    return {subject: _label_runs(pairs) for subject, pairs in used.items()}


def _label_runs(pairs: Iterable[tuple[int, int]]) -> dict[int, str]:
    """Return a label for each version of pairs of a version and the number of a batch."""
    spans: dict[int, list[str]] = {}
    for version, run in groupby(pairs, key=lambda pair: pair[0]):
        numbers = [number for _, number in run]
        first, last = numbers[0], numbers[-1]
        spans.setdefault(version, []).append(str(first) if first == last else f"{first}–{last}")
    return {
        version: f"batch {found[0]}" if len(found) == 1 and found[0].isdecimal() else f"batches {', '.join(found)}"
        for version, found in spans.items()
    }


def load_pipeline_evolutions(config: PipelineConfig) -> tuple[SubjectEvolution, ...]:
    """Return how the subjects of a pipeline came to be what they are; it says what is not at hand, and why."""
    subjects = [route.subject for route in config.routes]
    try:
        registry = config.source.open_registry()
    except (OSError, InvalidRequest) as error:
        return miss_evolutions(subjects, f"{config.source.registry} cannot be read: {error}")
    if isinstance(registry, SchemaSnapshot):
        return miss_evolutions(subjects, "a snapshot holds no history")
    with SchemaRegistryClient(registry, retry=Retry(rounds=_ROUNDS)) as client:
        return load_evolutions(client.send, subjects)
