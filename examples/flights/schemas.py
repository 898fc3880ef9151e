"""Three versions of the flight schema, each readable by the next, and one change that is not allowed."""

from __future__ import annotations

import json
from typing import Any

SUBJECT = "flights-value"

_TIME = {"type": "long", "logicalType": "timestamp-millis"}


def _field(name: str, kind: Any, doc: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "doc": doc, **more}


def _optional(name: str, kind: Any, doc: str) -> dict[str, Any]:
    return _field(name, ["null", kind], doc, default=None)


def _record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Flight", "namespace": "nyc", "fields": list(fields)})


_COMMON = (
    _field("time_hour", _TIME, "scheduled hour of departure, UTC"),
    _field("carrier", "string", "two-letter carrier code"),
    _field("flight", "int", "flight number"),
    _field("origin", "string", "airport of departure"),
    _field("dest", "string", "airport of arrival"),
    _optional("dep_delay", "int", "minutes; negative is early, null is cancelled"),
    _optional("arr_delay", "int", "minutes; negative is early, null is cancelled or diverted"),
)
_TAIL_NUMBER = _optional("tailnum", "string", "tail number of the plane")
_WEATHER = {
    "type": "record",
    "name": "Weather",
    "fields": [
        _optional("temp", "double", "degrees Fahrenheit"),
        _optional("wind_speed", "double", "miles per hour"),
        _field("precip", "double", "inches in the hour", default=0.0),
        _field("visib", "double", "miles", default=10.0),
    ],
}

V1 = _record(*_COMMON, _field("distance", "int", "miles"))
V2 = _record(*_COMMON, _field("distance", "long", "miles"), _TAIL_NUMBER)
V3 = _record(
    *_COMMON,
    _field("distance", "long", "miles"),
    _TAIL_NUMBER,
    _optional("weather", _WEATHER, "at the airport of departure in that hour"),
)

REFUSED = _record(*_COMMON, _field("distance", "string", "miles"), _field("gate", "string", "gate of departure"))
"""Changes the type of a field and adds one without a default, so that it can read no stored flight."""

ALL = (V1, V2, V3)
