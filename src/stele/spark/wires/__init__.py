"""Wire formats on Spark, by name. A wire of the caller's own is an object with the methods of `Wire`.

| word | records | ids |
|---|---|---|
| `confluent` | `00`, id, payload | number |
| `confluent-header`, `confluent-header:key` | payload, guid in a record header (or as above) | text |
| `pravega`, `pravega:GROUP` | `01`, encoding id, payload after its codec | number |
| `rocketmq`, `rocketmq:json` | record id (Avro: after `10`), payload | number of 64 bits |
| `avro-single-object` | `C3 01`, fingerprint, payload | hexadecimal digits |
| `cloudevents`, `cloudevents:structured` | CloudEvents with `dataschema` | the URI |
| `unframed:ID` | payload | number |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from stele.errors import Invalid
from stele.spark.wires.avro_single import SingleObject
from stele.spark.wires.base import FrameParts, Framer, ResolvedId, Wire
from stele.spark.wires.cloudevents import CloudEvents, events_of_mode
from stele.spark.wires.confluent import HeaderGuid, Prefix
from stele.spark.wires.pravega import Pravega
from stele.spark.wires.rocketmq import RocketMQ
from stele.spark.wires.unframed import Unframed

WireLike: TypeAlias = "str | Wire"
"""A word of the table, or a wire with settings."""

__all__ = [
    "CloudEvents",
    "FrameParts",
    "Framer",
    "HeaderGuid",
    "Pravega",
    "Prefix",
    "ResolvedId",
    "RocketMQ",
    "SingleObject",
    "Unframed",
    "Wire",
    "WireLike",
    "get_wire",
]


def get_wire(wire: WireLike) -> Wire:
    """Return the wire of a word. Raises `Invalid` that names the known words."""
    if not isinstance(wire, str):
        return wire
    word, _, setting = wire.partition(":")
    make = _WORDS.get(word)
    if make is None:
        raise Invalid(f"there is no wire {wire!r}: choose one of {', '.join(_WORDS)}")
    return make(setting)


def _make_prefix(setting: str) -> Wire:
    if setting:
        raise Invalid(f"the wire 'confluent' has no setting {setting!r}")
    return Prefix()


def _make_header(setting: str) -> Wire:
    if setting not in {"", "key", "value"}:
        raise Invalid(f"the header must be that of a key or of a value, not {setting!r}")
    return HeaderGuid("key" if setting == "key" else "value")


def _make_rocketmq(setting: str) -> Wire:
    if setting not in {"", "avro", "json"}:
        raise Invalid(f"the wire 'rocketmq' can hold avro or json, not {setting!r}")
    return RocketMQ(setting or "avro")


def _make_single_object(setting: str) -> Wire:
    if setting:
        raise Invalid(f"the wire 'avro-single-object' has no setting {setting!r}")
    return SingleObject()


def _make_unframed(setting: str) -> Wire:
    if not setting.isdecimal():
        raise Invalid("unframed records need the id they were written with: 'unframed:7'")
    return Unframed(int(setting))


_WORDS: Final[dict[str, Callable[[str], Wire]]] = {
    "confluent": _make_prefix,
    "confluent-header": _make_header,
    "pravega": Pravega,
    "rocketmq": _make_rocketmq,
    "avro-single-object": _make_single_object,
    "cloudevents": lambda mode: events_of_mode(mode or "binary"),
    "unframed": _make_unframed,
}
