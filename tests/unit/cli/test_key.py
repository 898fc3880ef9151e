"""`stele key`: its requests and its output."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from stele.cli.app import app
from stele.cli.key import parse_expiry
from stele.errors import InvalidRequest
from stele.testing import registry

NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("90d", NOW + timedelta(days=90)),
        ("12h", NOW + timedelta(hours=12)),
        ("2w", NOW + timedelta(weeks=2)),
        ("5m", NOW + timedelta(minutes=5)),
        ("2027-01-01", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2027-01-01T00:00:00+01:00", datetime(2026, 12, 31, 23, tzinfo=UTC)),
    ],
)
def test_when_a_key_ends(text: str, time: datetime) -> None:
    """An expiry is a duration from now, or a time, in UTC without an offset."""
    assert parse_expiry(text, NOW) == time


@pytest.mark.parametrize("text", ["", "soon", "90", "d", "-1d", "999999w", "2027-13-01"])
def test_what_is_no_end(text: str) -> None:
    """The error about an invalid expiry shows both forms."""
    with pytest.raises(InvalidRequest, match="90d"):
        parse_expiry(text, NOW)


def test_keys_come_and_go() -> None:
    """Only the key is on standard output, the list has no secret, and a second revocation is an error."""
    with registry(port=0) as box:
        to = ["--registry", box.url]
        creation = CliRunner().invoke(app, ["key", "create", "billing", "--group", "a", "--group", "b", *to])
        assert creation.exit_code == 0, creation.output
        key = creation.stdout.strip()
        key_id = key.split("_")[1]
        assert f"key {key_id} of billing, until it is revoked" in creation.stderr
        listed = CliRunner().invoke(app, ["key", "list", *to]).stdout
        assert f"{key_id}  billing  groups: a,b" in listed
        assert key not in CliRunner().invoke(app, ["key", "list", "--output", "json", *to]).stdout
        assert CliRunner().invoke(app, ["key", "revoke", key_id, *to]).exit_code == 0
        again = CliRunner().invoke(app, ["key", "revoke", key_id, *to])
        assert again.exit_code == 2
        assert key_id in again.stderr


@pytest.mark.parametrize(
    "arguments",
    [["create", "a b"], ["create", "x", "--group", ""], ["create", "x", "--expires", "2020-01-01"], ["create", ""]],
)
def test_keys_that_cannot_be(arguments: list[str]) -> None:
    """Names with blanks, empty groups and expiries in the past are rejected."""
    with registry(port=0) as box:
        assert CliRunner().invoke(app, ["key", *arguments, "--registry", box.url]).exit_code == 2
        assert CliRunner().invoke(app, ["key", "list", "--registry", box.url]).stdout == ""
