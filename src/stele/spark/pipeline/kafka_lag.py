"""How far a pipeline is behind the newest records of its topics.

It compares what Spark wrote into the checkpoint with what the broker has.
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
"""By topic and partition, the offset of the next record."""

PATIENCE: Final = 3.0
"""Seconds a broker has to answer: lag is asked for beside the work, which must not wait for it."""

_JAVA_ONLY: Final = ("sasl.jaas.config", "ssl.truststore.", "ssl.keystore.", "sasl.login.")
"""Settings that Kafka's Java client understands and librdkafka does not."""
_CREDENTIAL: Final = re.compile(r"\b(username|password)\s*=\s*\"((?:[^\"\\]|\\.)*)\"")


def measure_lag(config: PipelineConfig) -> dict[str, int] | None:
    """Records by topic that no finished batch has had.

    None where nobody can say: the source is no Kafka, no batch is finished, the checkpoint cannot be read,
    confluent-kafka is not installed, the broker does not answer in time, or wants credentials only Java can read.
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
    """`lag`, asked for at most every few seconds; between them the last answer is given again."""

    HOLDS: Final = 10.0
    """Seconds for which an answer is good."""

    def __init__(self, ask: Callable[[], dict[str, int] | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._lock = Lock()
        self._until = float("-inf")
        self._answer: dict[str, int] | None = None

    def __call__(self) -> dict[str, int] | None:
        """The lag by topic, None where nobody can say."""
        with self._lock:
            if self._clock() >= self._until:
                self._answer = self._ask()
                self._until = self._clock() + self.HOLDS
            return self._answer


def has_run(checkpoint: str) -> bool:
    """Whether a pipeline has ever run with this checkpoint; asking makes no folder."""
    from pyarrow.fs import FileType

    files, root = _open_filesystem(checkpoint)
    return bool(files.get_file_info(f"{root}/{FOLDER}").type == FileType.Directory)


def finished_offsets(checkpoint: str) -> Offsets | None:
    """Return where the newest finished batch of a checkpoint ended; None before the first one, and for other sources.

    Which one that is, the journal says: Spark's own list of finished batches lacks the last one before a stop. Where it
    ends is in Spark's file `offsets/<batch>`: a line with the format, a line of Spark's own, a line for each source,
    which of Kafka is JSON.
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
    """Return the settings of Spark's connector in the words of librdkafka.

    It takes user and password from a JAAS line.
    """
    settings = {name.removeprefix("kafka."): v for name, v in source.options.items() if name.startswith("kafka.")}
    credentials = {
        f"sasl.{name}": re.sub(r"\\(.)", r"\1", value)
        for name, value in _CREDENTIAL.findall(settings.get("sasl.jaas.config", ""))
    }
    known = {name: value for name, value in settings.items() if not name.startswith(_JAVA_ONLY)}
    quiet = {"log_level": 0, "error_cb": lambda _: None}  # it would tell standard error about a broker that is away
    return {**known, **credentials, **quiet, "bootstrap.servers": source.bootstrap}


def _count_behind(admin: AdminClient, done: Offsets, topics: Iterable[str]) -> dict[str, int]:
    """Newest offsets less those done; of a partition that no batch has seen, all it holds."""
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
