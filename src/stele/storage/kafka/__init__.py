"""The log in a compacted topic of Kafka, or of brokers that speak its protocol. Any number of nodes, without a leader.

This package can be imported without Kafka's client. Without the client, the error of `open_log` names what to install.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from stele.core.ports import Log
from stele.errors import NotInstalled
from stele.storage.drivers import StorageDriver, StoreCondition, StoreFiles
from stele.storage.kafka.url import parse_url

__all__ = ["DRIVER"]


async def _open_log(url: str) -> Log:
    _require_client(url)
    from stele.storage.kafka.log import KafkaLog

    return await KafkaLog.open(url)


def _open_files(url: str) -> StoreFiles:
    _require_client(url)
    from stele.storage.kafka.maintenance import TopicFiles

    return TopicFiles(url)


def _inspect(url: str) -> StoreCondition:
    _require_client(url)
    from stele.storage.kafka.maintenance import inspect_topic

    return inspect_topic(url)


def _require_client(url: str) -> None:
    parse_url(url)
    if find_spec("confluent_kafka") is None:
        raise NotInstalled("confluent-kafka", "kafka")


DRIVER: Final = StorageDriver(
    open_log=_open_log,
    name_store=lambda url: parse_url(url).place,
    open_files=_open_files,
    inspect=_inspect,
)
