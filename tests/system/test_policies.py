"""`stele policy` against a server: all ways to set a policy, its output and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.server_process import serving
from typer.testing import CliRunner, Result

from stele.cli.app import app


def stele(*arguments: str, url: str) -> Result:
    """Run `stele policy` against a server."""
    return CliRunner().invoke(app, ["policy", *arguments, "--registry", url])


def print_json(*arguments: str, url: str) -> Any:
    """Return the JSON output of a command, which must succeed."""
    result = stele(*arguments, "-o", "json", url=url)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_policies_are_set_shown_and_cleared(tmp_path: Path) -> None:
    """Levels, directions, denial, validators and rulesets are set; invalid or contradictory options are refused."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        url = server.url
        assert print_json("set", "--level", "full", url=url)["name"] == "FULL"
        assert stele("show", "a/b", url=url).exit_code == 2
        result = print_json("set", ":.team:a/b", "--new", "--backward", "since:3", "--checker", "lint", url=url)
        assert (result["namespace"], result["subject"], result["name"]) == ("team", "a/b", None)
        assert result["policy"] == {
            "kind": "directional",
            "backward": "since:3",
            "forward": "none",
            "checkers": ["lint"],
        }
        text = stele("show", ":.team:a/b", url=url).stdout
        assert "directional (set by: subject)" in text
        assert "backward    since:3" in text
        assert "checkers    lint" in text
        assert print_json("set", ":.team:", "--new", "--deny-all", url=url)["policy"]["kind"] == "deny_all"
        assert print_json("set", "c", "--new", "--checker", "repo.reject", url=url)["policy"]["kind"] == "allow_any"
        assert "has changed" in stele("set", "c", "--new", "--ruleset", "confluent", "--expect", "NONE", url=url).output
        assert (
            print_json("set", "c", "--new", "--level", "NONE", "--ruleset", "confluent@1", url=url)["ruleset"]
            == "confluent@1"
        )
        assert print_json("clear", "c", url=url)["own"] == {"policy": None, "ruleset": None}
        for wrong in (
            ["set", "c", "--new"],
            ["set", "c", "--new", "--level", "FULL", "--deny-all"],
            ["set", "c", "--new", "--backward", "some"],
            ["set", "c", "--new", "--checker", "nobody"],
            ["set", "c", "--new", "--deny-all", "--expect", "NONE"],
            ["set", "c", "--level", "FULL"],
            ["set", ":.nowhere:", "--level", "FULL"],
            ["show", "c"],
            ["clear", "c"],
        ):
            assert stele(*wrong, url=url).exit_code == 2, wrong
