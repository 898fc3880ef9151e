"""An upgrade from an operator's view: a newer ruleset is installed, reported on, and adopted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.server_process import call, serving
from typer.testing import CliRunner, Result

from stele.cli.app import app
from stele.core.commands import RegisterSchema
from stele.core.model import SubjectKey
from stele.core.ports import TextForm
from stele.errors import UnknownRuleset
from stele.server.app import Server
from stele.server.settings import load_settings
from stele.service.registry import Registry
from stele.storage import open_log

PLUG_IN = """
from stele.core.findings import Finding
from stele.formats.avro import AvroFormat

class Newer(AvroFormat):
    rulesets = ("avro@1", "avro@2", "confluent@1", "avro-ruby@1")

    def check(self, reader, writer, ruleset=""):
        if ruleset in {"", "avro", "avro@2"}:
            return [Finding("MINDS_EVERYTHING", "/", why="Newer rules mind everything.")]
        return super().check(reader, writer, ruleset)

FORMAT = Newer()
"""

LOOKS = ("(?=.*[0-9])", "(?=.*q)")


def newer_release(folder: Path) -> dict[str, str]:
    """Return the environment of a server that finds a newer Avro format before the built-in one."""
    info = folder / "newer-1.dist-info"
    info.mkdir(parents=True)
    (folder / "newer_avro.py").write_text(PLUG_IN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: newer\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[stele.formats]\navro = newer_avro:FORMAT\n")
    return {"PYTHONPATH": str(folder)}


def schema(*fields: str) -> dict[str, str]:
    """Return a record schema of integers with defaults."""
    shaped = [{"name": field, "type": "int", "default": 0} for field in fields]
    return {"schema": json.dumps({"type": "record", "name": "R", "fields": shaped})}


def stele(*arguments: str, url: str) -> Result:
    """Run a command against a server."""
    return CliRunner().invoke(app, [*arguments, "--registry", url])


def print_json(*arguments: str, url: str) -> Any:
    """Return the JSON output of a command, which must succeed."""
    result = stele(*arguments, "-o", "json", url=url)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def in_force(url: str) -> dict[str, int]:
    """Return the versions in force of Avro's rulesets."""
    return {row["name"]: row["in_force"] for row in print_json("ruleset", "list", url=url) if row["format"] == "avro"}


async def register_first_version(store: str, *fields: str) -> None:
    """Register the first version of a subject in a log, as the previous release would."""
    registry = await Registry.open(await open_log(store))
    text = schema(*fields)["schema"].encode()
    prepared = await registry.parser.prepare_schema(await registry.fresh_state(), "avro", text, form=TextForm.PRINTED)
    await registry.execute(RegisterSchema(SubjectKey("", "s"), prepared.document))
    await registry.close()


def test_an_upgrade_changes_nothing_until_the_operator_says_so(tmp_path: Path) -> None:
    """A newer release gives the same verdicts until `adopt`. `report` lists the verdicts that would change."""
    store = f"sqlite:///{tmp_path}/log.db"
    asyncio.run(register_first_version(store, "a"))
    flags = ("--store", store)
    with serving(*flags, folder=tmp_path, environ=newer_release(tmp_path / "newer")) as server:
        versions, url = f"{server.url}/subjects/s/versions", server.url
        assert in_force(url) == {"avro": 1, "confluent": 1, "avro-ruby": 1}
        assert call(versions, "POST", schema("a", "b")).status == 200
        request = {"format": "avro", "schema": schema("a")["schema"], "against": [schema("b")]}
        assert call(f"{url}/api/check", "POST", request).body["compatible"] is True
        rows = print_json("ruleset", "report", url=url)
        assert [(row["subject"], row["version"], row["then"]) for row in rows] == [("s", 2, "incompatible")]
        text = stele("ruleset", "report", "avro", "avro@2", url=url)
        assert "1 verdicts would change" in text.stdout
        assert "MINDS_EVERYTHING" in text.stdout
        wrong = stele("ruleset", "adopt", "avro", "avro@3", url=url)
        assert (wrong.exit_code, "has no ruleset 'avro@3'" in wrong.output) == (2, True)
        assert "from now on" in stele("ruleset", "adopt", "avro", "avro@2", url=url).stdout
        assert in_force(url)["avro"] == 2
        refusal = call(versions, "POST", schema("a", "b", "c"))
        assert (refusal.status, "MINDS_EVERYTHING" in refusal.body["message"]) == (409, True)
        assert call(f"{url}/api/check", "POST", request).body["compatible"] is False
    with pytest.raises(UnknownRuleset, match="stele ruleset adopt avro avro@1"):
        asyncio.run(register_first_version(store, "a", "b", "c"))


DOUBTFUL = [json.dumps({"pattern": f"^{first}{then}[a-z0-9]{{9,}}$"}) for first, then in (LOOKS, LOOKS[::-1])]


async def test_a_server_that_allows_doubt() -> None:
    """With `undecided=allow`, undecided findings are warnings unless a request refuses them; the default refuses."""
    old, new = DOUBTFUL
    request = {"format": "json", "ruleset": "containment", "schema": new, "against": [{"schema": old}]}
    for choice, compatible, level in (("refuse", False, "unknown"), ("allow", True, "warning")):
        settings = load_settings({"undecided": choice, "store": "memory:"}, environ={})
        server = Server(settings)
        await server.start()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(server), base_url="http://registry") as client:
            answer = await client.post("/api/check", json=request)
            body = answer.json()
            assert (body["compatible"], [finding["level"] for finding in body["findings"]]) == (compatible, [level])
            assert answer.headers["Stele-Ruleset"] == "containment@2"
            assert (await client.post("/api/check", json={**request, "undecided": "refuse"})).json()[
                "compatible"
            ] is False
        await server.stop()


def test_a_check_without_a_server(tmp_path: Path) -> None:
    """`stele check` names the deciding ruleset, marks undecided findings, and accepts a ruleset version."""
    old, new = (tmp_path / name for name in ("old.json", "new.json"))
    for path, text in zip((old, new), DOUBTFUL, strict=True):
        path.write_text(text)

    def check_files(*more: str) -> Result:
        return CliRunner().invoke(app, ["check", str(new), "--against", str(old), *more])

    plain = check_files("--ruleset", "containment@1")
    assert plain.exit_code == 1
    assert "undecided, refused unless --undecided allow by containment@1" in plain.stdout.replace("\n", " ")
    assert f"({old}, undecided)" in plain.stdout
    assert check_files("--ruleset", "containment", "--undecided", "allow").exit_code == 0
    assert json.loads(check_files("-o", "json").stdout)[0]["ruleset"] == "confluent@1"
    wrong = check_files("--ruleset", "containment@9")
    assert wrong.exit_code == 2
    assert "containment-lenient@1" in wrong.output.replace("\n", "")
