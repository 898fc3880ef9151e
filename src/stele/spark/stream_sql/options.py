"""Options of a stream: those of `WITH (…)`, and defaults from the settings of the session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final, cast

from stele.errors import Invalid
from stele.spark.registry import PATIENCE
from stele.spark.stream_sql.connectors import Connector, FilesConnector, KafkaConnector, SourceConnector, TableConnector

if TYPE_CHECKING:
    from stele.spark.decode.rules import RulesLike

OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": ("kafka.topic", "kafka-topic", "connector.topic"),
    "bootstrap": ("kafka.bootstrap.servers", "bootstrap.servers"),
    "path": (),
    "format": (),
    "source": (),
    "table": (),
    "pravega-stream": (),
    "column": (),
    "headers": (),
    "starting": (),
    "registry": (),
    "subject": (),
    "reader": (),
    "wire": (),
    "mode": (),
    "message": ("format.thrift-class",),
    "rules": (),
    "engine": (),
    "recursion": (),
    "extras": (),
    "patience": (),
    "format.type": ("value-format",),
    "format.thrift-package": (),
    "update-mode": (),
}
"""Names of options with their aliases. Names are not case-sensitive, and `_` equals `-`."""
PASSED: Final = ("kafka.", "option.")
"""Prefixes of options that are passed on: to Kafka's client, and to Spark's source."""
SETTINGS: Final = ("stele.", "spark.stele.")
"""Prefixes of session settings that are defaults of options. `spark-submit --conf` accepts only the second one."""

MODES: Final = ("FAILFAST", "PERMISSIVE", "DEADLETTER")
_DEFAULTS: Final = {"registry", "bootstrap", "wire", "mode", "rules", "engine", "patience", "extras"}
"""Options for which a session setting can give a default for all streams."""
_NAMES: Final = {other: name for name, others in OPTIONS.items() for other in (name, *others)}
_SCOPED: Final = re.compile(r"([^/]+)/([^/]+)")
_WAYS: Final = ("path", "source", "table", "topic")


class OptionInvalid(Invalid):
    """Raised when an option is invalid; `option` is its name as it was written."""

    def __init__(self, why: str, option: str) -> None:
        super().__init__(why)
        self.option = option

    def __reduce__(self) -> tuple[type[OptionInvalid], tuple[str, str]]:
        return OptionInvalid, (str(self), self.option)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream is read: its connector, and the arguments of `from_registry`.

    Attributes:
        connector: The connector to its records.
        registry: Address of the registry; '' if none was set.
        subjects: One subject; several, each of which becomes a struct; or none, for records of any type.
        format_type: The required schema format in capitals; '' for any.
        extras: Whether columns of the source beside the records are columns of the stream.
    """

    connector: Connector
    registry: str
    subjects: tuple[str, ...]
    topic: str
    reader: str
    wire: str
    mode: str
    message: str
    rules: RulesLike
    engine: str
    extras: bool
    patience: float
    recursion: int
    format_type: str


class _MergedOptions:
    """Options by their canonical names, with the names as they were written."""

    def __init__(self, options: Mapping[str, str], settings: Mapping[str, str]) -> None:
        self.values: dict[str, str] = {}
        self.written: dict[str, str] = {}
        self.passed: dict[str, dict[str, str]] = {prefix: {} for prefix in PASSED}
        for written, value in options.items():
            self._add(written, value)
        pravega = self.values.get("pravega-stream")
        if pravega is not None:
            scoped = _SCOPED.fullmatch(pravega)
            if scoped is None:
                raise self.wrong("pravega-stream", f"is 'scope/stream', not {pravega!r}")
            self._fill(_pravega_settings(scoped[1], scoped[2], settings))
            self._fill({"wire": f"pravega:{pravega}", "subject": pravega})
        self._fill(_setting_defaults(settings))

    def _add(self, written: str, value: str) -> None:
        name, prefix, rest = _canonical_name(written)
        if not isinstance(value, str):
            raise OptionInvalid(f"the option {written!r} must be a string, not {value!r}", written)
        if name:
            if name in self.values:
                raise OptionInvalid(f"{written!r} is the same option as {self.written[name]!r}", written)
            self.values[name], self.written[name] = value, written
        elif prefix:
            self.passed[prefix][rest] = value
        else:
            known = ", ".join([*OPTIONS, *(f"{each}*" for each in PASSED)])
            raise OptionInvalid(f"there is no option {written!r}; there are {known}", written)

    def _fill(self, more: Mapping[str, str]) -> None:
        """Set options that are not set yet."""
        placed = any(way in self.values for way in _WAYS)
        for written, value in more.items():
            name, prefix, rest = _canonical_name(written)
            if name in _WAYS and placed:
                continue
            if name and name not in self.values:
                self.values[name], self.written[name] = value, written
            elif prefix:
                self.passed[prefix].setdefault(rest, value)

    def get(self, name: str, otherwise: str = "") -> str:
        """Return the value of an option."""
        return self.values.get(name, otherwise)

    def wrong(self, name: str, why: str) -> OptionInvalid:
        """Return an error about an option."""
        written = self.written.get(name, name)
        return OptionInvalid(f"the option {written!r} {why}", written)


def resolve_options(name: str, options: Mapping[str, str], settings: Mapping[str, str]) -> StreamOptions:
    """Return the options of a stream.

    Args:
        name: Name of the stream.
        options: Options as they were written.
        settings: Settings of the session; only those with a prefix of `SETTINGS` are used.

    Raises:
        OptionInvalid: If an option is unknown or has a wrong value.
        Invalid: If no option names where the records are.
    """
    merged = _MergedOptions(options, settings)
    _check_words(merged)
    wire = merged.get("wire", "confluent")
    return StreamOptions(
        connector=_make_connector(name, merged, wire),
        registry=merged.get("registry"),
        subjects=_parse_subjects(name, merged),
        topic=merged.get("topic"),
        reader=merged.get("reader", "latest"),
        wire=wire,
        mode=merged.get("mode", "FAILFAST").upper(),
        message=_message_name(merged),
        rules=cast("RulesLike", merged.get("rules", "refuse").lower()),
        engine=merged.get("engine", "auto"),
        extras=merged.get("extras", "true").lower() == "true",
        patience=_parse_patience(merged),
        recursion=_parse_recursion(merged),
        format_type=merged.get("format.type").upper(),
    )


def _canonical_name(written: str) -> tuple[str, str, str]:
    """Return canonical name, prefix and rest of an option's name; all are '' if the option is unknown.

    A known option has only the canonical name. An option that is passed on has only the prefix and the rest.
    """
    name = written.strip().lower().replace("_", "-")
    if name in _NAMES:
        return _NAMES[name], "", ""
    for prefix in PASSED:
        if name.startswith(prefix) and len(name) > len(prefix):
            return "", prefix, written.strip()[len(prefix) :]
    return "", "", ""


def _setting_defaults(settings: Mapping[str, str]) -> dict[str, str]:
    own = _own_settings(settings)
    return {name: value for name, value in own.items() if name in _DEFAULTS or name.startswith("kafka.")}


def _own_settings(settings: Mapping[str, str], inner: str = "") -> dict[str, str]:
    """Return the settings that have Stele's prefixes, without the prefix; `stele.x` overrides `spark.stele.x`."""
    own: dict[str, str] = {}
    for prefix in reversed(SETTINGS):
        begin = prefix + inner
        own |= {name[len(begin) :]: value for name, value in settings.items() if name.startswith(begin)}
    return own


def _pravega_settings(scope: str, stream: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the session's settings for Pravega streams with the names of this stream filled in."""
    own = _own_settings(settings, "pravega.")
    return {name: value.replace("{scope}", scope).replace("{stream}", stream) for name, value in own.items()}


def _check_words(merged: _MergedOptions) -> None:
    """Raise `OptionInvalid` for a value that is not one of the allowed words."""
    words = {
        "mode": MODES,
        "extras": ("true", "false"),
        "rules": ("refuse", "run", "ignore"),
        "update-mode": ("append",),
    }
    for name, known in words.items():
        value = merged.values.get(name)
        if value is not None and value.lower() not in {word.lower() for word in known}:
            raise merged.wrong(name, f"is {' or '.join(known)}, not {value!r}")
    reader = merged.get("reader", "latest")
    if reader != "latest" and not (reader.isascii() and reader.isdigit() and len(reader) < 10):
        raise merged.wrong("reader", f"is latest or the number of a version, not {reader!r}")


def _parse_patience(merged: _MergedOptions) -> float:
    text = merged.get("patience", str(PATIENCE))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not isfinite(seconds) or seconds < 0:
        raise merged.wrong("patience", f"is a number of seconds, not {text!r}")
    return seconds


def _parse_recursion(merged: _MergedOptions) -> int:
    text = merged.get("recursion", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 4):
        raise merged.wrong("recursion", f"is how many times a type may be nested in itself, not {text!r}")
    return int(text)


def _message_name(merged: _MergedOptions) -> str:
    """Return the message to read. If a Java class was given, this is its name without the package."""
    message = merged.get("message")
    written = merged.written.get("message", "")
    return message if written.lower() == "message" else message.rpartition(".")[2]


def _parse_subjects(name: str, merged: _MergedOptions) -> tuple[str, ...]:
    """Return the subjects that were set, or by default the subject of the topic's values."""
    subject = merged.values.get("subject")
    if subject is None:
        return (f"{merged.get('topic') or name}-value",)
    if subject.strip() == "*":
        return ()
    subjects = tuple(part.strip() for part in subject.split(","))
    if not all(subjects):
        raise merged.wrong("subject", f"is a subject, several with commas, or '*', not {subject!r}")
    return subjects


def _make_connector(name: str, merged: _MergedOptions, wire: str) -> Connector:
    """Return the connector to the records. Raises `Invalid` when no option names where they are."""
    from stele.spark.wires import get_wire

    passed = merged.passed["option."]
    column, headers = merged.get("column", "value"), merged.get("headers")
    starting = merged.get("starting", "earliest")
    for one, other in (("source", "table"), ("path", "table"), ("source", "format")):
        if one in merged.values and other in merged.values:
            raise merged.wrong(other, f"does not go with {merged.written[one]!r}")
    if "table" in merged.values:
        return TableConnector(merged.get("table"), passed, column, headers, starting)
    if "source" in merged.values:
        more = {"path": merged.get("path")} if "path" in merged.values else {}
        return SourceConnector(merged.get("source"), {**more, **passed}, column, headers, starting)
    if "path" in merged.values:
        shape = merged.get("format", "parquet")
        column = merged.get("column", "content" if shape.lower() == "binaryfile" else "value")
        return FilesConnector(merged.get("path"), shape, passed, column, headers, starting)
    if merged.get("pravega-stream") and "topic" not in merged.values:
        raise Invalid(
            f"the location of the events of {merged.get('pravega-stream')!r} is unknown: Spark 4 has no connector for "
            "Pravega. Give the option path (files of events), table or source, or set stele.pravega.path "
            "= '/events/{scope}/{stream}' for all streams of the session"
        )
    if "topic" not in merged.values:
        raise Invalid(
            f"the location of the records of {name!r} is unknown: give the option topic, path, table or source"
        )
    if not merged.get("bootstrap"):
        raise merged.wrong("topic", "needs a broker: give the option bootstrap or set stele.bootstrap = 'host:9092'")
    with_headers = bool(headers) or get_wire(wire).needs_headers
    return KafkaConnector(
        merged.get("topic"),
        merged.get("bootstrap"),
        {**{f"kafka.{each}": value for each, value in merged.passed["kafka."].items()}, **passed},
        column,
        "headers" if with_headers else "",
        starting,
    )
