"""The lag of a pipeline: how many records of its topics it has not processed.

The offsets that Spark wrote into the checkpoint are compared with the newest offsets of the broker.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from stele.errors import StoreError
from stele.spark.pipeline.config import PipelineConfig, SourceConfig
from stele.spark.pipeline.journal import FOLDER, BatchJournal

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient
    from pyarrow.fs import FileSystem

Offsets: TypeAlias = dict[str, dict[int, int]]
"""The offset of the next record, by topic and partition."""

PATIENCE: Final = 3.0
"""Timeout of a request to the broker, in seconds. It is short because the batches must not wait for the lag."""

_JAVA_ONLY: Final = ("sasl.jaas.config", "ssl.truststore.", "ssl.keystore.", "sasl.login.")
"""Settings that Kafka's Java client understands and librdkafka does not."""
_CREDENTIAL: Final = re.compile(r"\b(username|password)\s*=\s*\"((?:[^\"\\]|\\.)*)\"")


def measure_lag(config: PipelineConfig) -> dict[str, int] | None:
    """Return the number of records by topic that are in no finished batch.

    None if it cannot be measured: the source is not Kafka, no batch is finished, the checkpoint cannot be read,
    confluent-kafka is not installed, the broker does not answer in time, or it needs credentials that only Java can
    read.
    """
    if config.source.kind != "kafka":
        return None
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return None
    try:
        done = finished_offsets(config.checkpoint)
        if done is None:
            return None
        return _count_behind(AdminClient(kafka_client_settings(config.source)), done, config.source.topics)
    except (KafkaException, TimeoutError, OSError, StoreError):
        return None


class LagMeter:
    """Calls `measure_lag` at most every `HOLDS` seconds, and returns the last answer in between."""

    HOLDS: Final = 10.0
    """Seconds for which an answer is kept."""

    def __init__(self, ask: Callable[[], dict[str, int] | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._lock = Lock()
        self._until = float("-inf")
        self._answer: dict[str, int] | None = None

    def __call__(self) -> dict[str, int] | None:
        """Return the lag by topic, or None if it cannot be measured."""
        with self._lock:
            if self._clock() >= self._until:
                self._answer = self._ask()
                self._until = self._clock() + self.HOLDS
            return self._answer


def has_run(checkpoint: str) -> bool:
    """Return whether a pipeline has ever run with this checkpoint. Creates no folder."""
    from pyarrow.fs import FileType

    files, root = _open_filesystem(checkpoint)
    return bool(files.get_file_info(f"{root}/{FOLDER}").type == FileType.Directory)


def finished_offsets(checkpoint: str) -> Offsets | None:
    """Return the end offsets of the newest finished batch of a checkpoint.

    None before the first batch, and for other sources. The journal names the batch, since Spark's own list of finished
    batches lacks the last one before a stop. The offsets are in Spark's file `offsets/<batch>`: a line with the format,
    a line of Spark's own, and a line for each source. The line of a Kafka source is JSON.
    """
    from pyarrow.fs import FileType

    if not has_run(checkpoint):
        return None
    files, root = _open_filesystem(checkpoint)
    planned = f"{root}/offsets/{BatchJournal(checkpoint).read_totals().through}"
    if files.get_file_info(planned).type != FileType.File:
        return None
    with files.open_input_stream(planned) as stream:
        lines = bytes(stream.read()).splitlines()
    try:
        return msgspec.json.decode(lines[2], type=Offsets) if len(lines) == 3 else None
    except msgspec.MsgspecError:
        return None


def _open_filesystem(checkpoint: str) -> tuple[FileSystem, str]:
    from pyarrow.fs import FileSystem

    files, root = FileSystem.from_uri(checkpoint if "://" in checkpoint else str(Path(checkpoint).resolve()))
    return files, root


def kafka_client_settings(source: SourceConfig) -> dict[str, Any]:
    """Return the settings of Spark's Kafka connector under librdkafka's names.

    User and password are taken from a JAAS line.
    """
    settings = {name.removeprefix("kafka."): v for name, v in source.options.items() if name.startswith("kafka.")}
    credentials = {
        f"sasl.{name}": re.sub(r"\\(.)", r"\1", value)
        for name, value in _CREDENTIAL.findall(settings.get("sasl.jaas.config", ""))
    }
    known = {name: value for name, value in settings.items() if not name.startswith(_JAVA_ONLY)}
    quiet = {"log_level": 0, "error_cb": lambda _: None}  # librdkafka would log an unreachable broker to standard error
    return {**known, **credentials, **quiet, "bootstrap.servers": source.bootstrap}


def _count_behind(admin: AdminClient, done: Offsets, topics: Iterable[str]) -> dict[str, int]:
    """Return by topic the newest offsets minus the finished ones; all records of a partition without a batch."""
    from confluent_kafka import TopicPartition

    there = admin.list_topics(timeout=PATIENCE).topics
    wanted = [name for name in dict.fromkeys((*topics, *done)) if name in there]
    places = [TopicPartition(name, number) for name in wanted for number in there[name].partitions]
    fresh = [place for place in places if place.partition not in done.get(place.topic, {})]
    newest = _list_offsets(admin, places, latest=True)
    oldest = _list_offsets(admin, fresh, latest=False)
    sums = dict.fromkeys(wanted, 0)
    for (topic, number), end in newest.items():
        begun = oldest[topic, number] if (topic, number) in oldest else done[topic][number]
        sums[topic] += max(0, end - begun)
    return sums


def _list_offsets(admin: AdminClient, places: list[TopicPartition], *, latest: bool) -> Mapping[tuple[str, int], int]:
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # documented, and not in its __all__

    if not places:
        return {}
    offset_spec = OffsetSpec.latest if latest else OffsetSpec.earliest
    spec = offset_spec()  # type: ignore[no-untyped-call]  # the library has no annotation here
    futures = admin.list_offsets(dict.fromkeys(places, spec), request_timeout=PATIENCE)
    return {(place.topic, place.partition): answer.result(PATIENCE).offset for place, answer in futures.items()}
