"""Settings of limits take effect, from every source."""

from __future__ import annotations

from pathlib import Path

import pytest

from stele.errors import InvalidRequest
from stele.server.settings import load_settings
from stele.service.limits import Limits


def test_limits(tmp_path: Path) -> None:
    """Every limit of the service has a setting `max_…` that sets it, by flag, environment or file."""
    config = tmp_path / "stele.toml"
    config.write_text("[server]\nmax_keys = 7\nmax_references = 5\n")
    environ = {"STELE_MAX_ASSOCIATIONS": "8", "STELE_MAX_KEYS": "9"}
    limits = load_settings({"max_schema_bytes": 6}, config=config, environ=environ).limits
    assert limits == Limits(schema_bytes=6, references=5, associations=8, keys=9)
    assert load_settings({}, config=None, environ={}).limits == Limits()


@pytest.mark.parametrize("name", ["max_schema_bytes", "max_references", "max_associations", "max_keys", "max_places"])
def test_limits_that_are_none(name: str) -> None:
    """A negative limit is refused with its name."""
    with pytest.raises(InvalidRequest, match=name):
        load_settings({name: -1}, environ={})
