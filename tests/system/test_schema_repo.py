"""AVRO-1124 and schema-repo on a real server: paths, settings, several workers."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.server_process import call, serving


class TextAnswer(NamedTuple):
    """Status, media type and text of an answer."""

    status: int
    media_type: str
    text: str


def ask(url: str, method: str = "GET", text: str | None = None, form: dict[str, str] | None = None) -> TextAnswer:
    """Send a request with a schema or a form, and return the answer."""
    data = urllib.parse.urlencode(form).encode() if form is not None else None if text is None else text.encode()
    content_type = "application/x-www-form-urlencoded" if form is not None else "text/plain"
    request = urllib.request.Request(url, data, {"Content-Type": content_type}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return TextAnswer(answer.status, answer.headers.get_content_type(), answer.read().decode())
    except urllib.error.HTTPError as error:
        return TextAnswer(error.code, error.headers.get_content_type(), error.read().decode())


def test_both_dialects_are_mounted(tmp_path: Path) -> None:
    """All paths answer, names may contain slashes, metrics name the dialect, and OpenAPI documents exist."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        for root in (f"{server.url}/schema-repo", f"{server.url}/avro1124/schema-repo"):
            assert ask(f"{root}/a%2Fb", "PUT", form={"owner": "ann"}) == (200, "text/plain", "a/b")
            assert ask(f"{root}/a%2Fb/register", "PUT", '"int"') == (200, "text/plain", "0")
        assert ask(f"{server.url}/avro1124/schemas/a%2Fb/1") == (200, "text/plain", '"int"')
        assert ask(f"{server.url}/avro1124/schemas/groups/g", "POST", form={"schema": '"int"'}).text == "1"
        for page in ("avro1124/schema-repo-browser", "schema-repo-browser", "schema-repo-browser/a%2Fb/all"):
            assert ask(f"{server.url}/{page}")[:2] == (200, "text/html")
        for place in ("/avro1124", "/schema-repo-admin", ""):
            assert ask(f"{server.url}{place}/status").text.startswith("OK : ")
        for dialect in ("schema-repo", "native", "confluent"):
            assert "paths" in call(f"{server.url}/_docs/{dialect}/openapi.json").body
        assert call(f"{server.url}/subjects").body == ["a/b", "g"]
        metrics = call(f"{server.url}/metrics").body
    assert 'dialect="schema-repo"' in metrics
    assert 'route="/schema-repo/{subject}/register"' in metrics
    assert "a/b" not in metrics


def test_settings_reach_the_dialects(tmp_path: Path) -> None:
    """Ids, default validators, custom models and the read-only switch are read from the configuration file."""
    table = """
        [server]
        schema_repo_ids = "md5"
        schema_repo_validators = "db_policy"
        schema_repo_models = "db_policy=full,lint:DOC_REQUIRED"
    """
    (tmp_path / "stele.toml").write_text(table, "utf-8")
    record = '{"type":"record","name":"R","fields":[]}'
    with serving(folder=tmp_path) as server:
        ask(f"{server.url}/schema-repo/s", "PUT", form={})
        assert ask(f"{server.url}/schema-repo/s/register", "PUT", record).status == 403
        assert ask(f"{server.url}/schema-repo/s/register", "PUT", '"int"').text == "ef524ea1b91e73173d938ade36c1db32"
    with serving(folder=tmp_path, environ={"STELE_SCHEMA_REPO_READ_ONLY": "true"}) as server:
        assert ask(f"{server.url}/schema-repo/s/register", "PUT", '"long"').status == 403
        assert ask(f"{server.url}/schema-repo/s/all").text == 'ef524ea1b91e73173d938ade36c1db32\t"int"\n'


@pytest.mark.parametrize(("setting", "value"), [("MODELS", "db=no-such"), ("IDS", "random")])
def test_settings_that_make_no_sense_stop_the_server(setting: str, value: str, tmp_path: Path) -> None:
    """Unknown models and id strategies are reported at the start of the server."""
    server = serving("--store", "memory:", folder=tmp_path, environ={f"STELE_SCHEMA_REPO_{setting}": value})
    with pytest.raises(AssertionError, match="the server ended"), server:
        pass


def test_workers_give_one_id_per_schema(tmp_path: Path) -> None:
    """With many clients, two processes and digests as ids, a schema gets one id, and no version is repeated."""
    environ = {"STELE_SCHEMA_REPO_IDS": "crc-64-avro"}
    with serving("--workers", "2", folder=tmp_path, environ=environ) as server:
        ask(f"{server.url}/schema-repo/s", "PUT", form={})

        def register(number: int) -> str:
            spaces = " " * (number % 3)
            text = f'{{"type":"fixed","name":"F",{spaces}"size":{number % 5 + 1}}}'
            return ask(f"{server.url}/schema-repo/s/register", "PUT", text).text

        with ThreadPoolExecutor(6) as pool:
            ids = list(pool.map(register, range(60)))
        assert len(set(ids)) == 5
        assert all(len(set(ids[rest::5])) == 1 for rest in range(5))
        assert call(f"{server.url}/subjects/s/versions").body == [1, 2, 3, 4, 5]
