"""The server as a process: workers, health, metrics, signals, request handling."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import httpx
import pytest
from tests.support.fork_server import start_process
from tests.support.server_process import call, free_port, run_command, serving, wait_ready
from tests.support.time_limit import limit_time

from stele.errors import InvalidRequest
from stele.server.dialects import parse_ports
from stele.server.settings import load_settings

SCHEMA = {"schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'}


def plain(field: str) -> dict[str, str]:
    """Return a record schema with one field that has a default."""
    return {
        "schema": json.dumps({"type": "record", "name": "R", "fields": [{"name": field, "type": "int", "default": 0}]})
    }


def test_health_metrics_and_request_ids(tmp_path: Path) -> None:
    """Health and metrics answer. Metrics have routes as labels, never text of a client's path."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        assert call(f"{server.url}/health/live").body["status"] == "live"
        assert call(f"{server.url}/health/ready").body == {"status": "ready"}
        call(f"{server.url}/subjects/very-private-name/versions", "POST", SCHEMA)
        call(f"{server.url}/schemas/ids/1")
        call(f"{server.url}/no/such/private-path")
        request = urllib.request.Request(f"{server.url}/subjects", headers={"X-Request-ID": "abc-1"})
        assert urllib.request.urlopen(request).headers["X-Request-ID"] == "abc-1"
        text = call(f"{server.url}/metrics").body
    assert 'route="/schemas/ids/{id}"' in text
    assert "very-private-name" not in text
    assert "private-path" not in text
    assert "stele_schemas 1.0" in text


def test_several_workers_share_one_log(tmp_path: Path) -> None:
    """A write acknowledged by one worker is visible in all workers at once, with one sequence of ids."""
    with serving("--workers", "3", folder=tmp_path) as server:
        call(f"{server.url}/config", "PUT", {"compatibility": "NONE"})
        schemas_by_id: dict[int, str] = {}
        for number in range(40):
            body = plain(f"f{number}")
            answer = call(f"{server.url}/subjects/s/versions", "POST", body)
            assert answer.status == 200, answer
            assert answer.body["id"] not in schemas_by_id
            schemas_by_id[answer.body["id"]] = body["schema"]
            assert call(f"{server.url}/subjects/s/versions").body == list(range(1, number + 2))
            assert call(f"{server.url}/schemas/ids/{answer.body['id']}").status == 200
        assert sorted(schemas_by_id) == list(range(1, 41))


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_workers_are_forked_after_loading(tmp_path: Path) -> None:
    """Workers are forked from the loaded parent, restarted when killed, and end with it."""
    with serving("--workers", "2", folder=tmp_path, starts_anew=True) as server:
        parent = server.process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children")
        until = time.monotonic() + 60
        while len(workers := children.read_text().split()) < 2:  # one may be ready before the other is started
            assert time.monotonic() < until, workers
            time.sleep(0.05)
        command = Path(f"/proc/{parent}/cmdline").read_bytes()
        assert len(workers) == 2
        assert {Path(f"/proc/{worker}/cmdline").read_bytes() for worker in workers} == {command}
        os.kill(int(workers[0]), signal.SIGKILL)
        until = time.monotonic() + 60
        after = workers
        while workers[0] in after or len(after) < 2:
            assert time.monotonic() < until, "no new worker"
            time.sleep(0.1)
            after = children.read_text().split()
        assert call(f"{server.url}/subjects").status == 200
    assert not any(Path(f"/proc/{worker}").exists() for worker in after)


def test_concurrent_clients_race_for_the_same_schemas(tmp_path: Path) -> None:
    """Threads that register the same schemas through several workers get the same ids, each once."""
    with serving("--workers", "2", folder=tmp_path) as server:
        call(f"{server.url}/config", "PUT", {"compatibility": "NONE"})
        ids: list[list[int]] = [[] for _ in range(6)]

        def client(number: int) -> None:
            for field in range(20):
                answer = call(f"{server.url}/subjects/s/versions", "POST", plain(f"f{field}"))
                ids[number].append(answer.body.get("id", answer))

        threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ids == [ids[0]] * 6
        assert len(set(ids[0])) == 20
        assert sorted(call(f"{server.url}/subjects/s/versions").body) == list(range(1, 21))


def test_the_testing_signal_empties_a_memory_registry(tmp_path: Path) -> None:
    """SIGUSR1 removes subjects, ids, levels, modes and cached answers within 30 ms."""
    with serving("--store", "memory:", "--testing", folder=tmp_path) as server:
        call(f"{server.url}/subjects/s/versions", "POST", SCHEMA)
        call(f"{server.url}/config", "PUT", {"compatibility": "FULL"})
        call(f"{server.url}/mode", "PUT", {"mode": "READONLY"})
        begun = time.monotonic()
        assert call(f"{server.url}/schemas/ids/1").status == 200
        usual = time.monotonic() - begun
        os.kill(server.process.pid, signal.SIGUSR1)
        # The time counts from the first answer after the signal. The pause grows with the usual time of an answer,
        # since a busy machine takes longer.
        assert call(f"{server.url}/health/live").status == 200
        time.sleep(max(0.03, 5 * usual))
        assert call(f"{server.url}/subjects").body == []
        assert call(f"{server.url}/schemas/ids/1").status == 404
        assert call(f"{server.url}/config").body["compatibilityLevel"] == "BACKWARD"
        assert call(f"{server.url}/mode").body["mode"] == "READWRITE"
        assert call(f"{server.url}/subjects/s/versions", "POST", SCHEMA).body["id"] == 1


def test_testing_is_refused_on_a_durable_store() -> None:
    """`testing` is refused for a durable store, and other invalid settings are refused by name."""
    with pytest.raises(InvalidRequest, match="testing"):
        load_settings({"testing": True, "store": "sqlite:///x.db"}, environ={})
    with pytest.raises(InvalidRequest, match="workers"):
        load_settings({"workers": 2, "store": "memory:"}, environ={})
    with pytest.raises(InvalidRequest, match="port"):
        load_settings({}, environ={"STELE_PORT": "many"})
    assert load_settings({"port": 1}, environ={"STELE_PORT": "2", "STELE_LOG_LEVEL": "error"}).port == 1


def test_a_restart_finds_everything(tmp_path: Path) -> None:
    """After SIGTERM and a new start, the same ids and versions are served."""
    with serving(folder=tmp_path) as server:
        first = call(f"{server.url}/subjects/s/versions", "POST", SCHEMA).body
    assert server.process.returncode == 0
    with serving(folder=tmp_path) as server:
        assert call(f"{server.url}/schemas/ids/{first['id']}").body["schema"]
        assert call(f"{server.url}/subjects/s/versions", "POST", SCHEMA).body["id"] == first["id"]


def test_names_survive_the_path(tmp_path: Path) -> None:
    """Slashes, percent signs, spaces, colons and non-ASCII letters in subject names are kept."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        names = ["a/b", "a%2Fb", "a b", "naïve-Ω", "50%", "a?b#c", "x/../y"]
        for name in names:
            quoted = urllib.parse.quote(name, safe="")
            assert call(f"{server.url}/subjects/{quoted}/versions", "POST", SCHEMA).status == 200, name
            assert call(f"{server.url}/subjects/{quoted}/versions/1").body["subject"] == name
        assert call(f"{server.url}/subjects").body == sorted(names)
        control = call(f"{server.url}/subjects/a%00b/versions", "POST", SCHEMA)
        assert (control.status, control.body["error_code"]) == (422, 42208)
        assert call(f"{server.url}/subjects").body == sorted(names)


def test_head_answers_like_get_without_a_body(tmp_path: Path) -> None:
    """HEAD has the status and length of GET."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc)
        connection.request("HEAD", "/subjects")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        assert answer.headers["content-length"] == "2"
        connection.close()


def _bad_bodies() -> list[bytes]:
    deep = b"[" * 1000 + b"]" * 1000
    nested: str = '"int"'
    for _ in range(1000):
        nested = f'{{"type":"array","items":{nested}}}'
    return [
        b"",
        b"{",
        b'{"schema": 7}',
        b"[]",
        b"null",
        b"\xff\xfe",
        deep,
        json.dumps({"schema": deep.decode()}).encode(),
        json.dumps({"schema": nested}).encode(),
        json.dumps({"schema": '{"type":"record","name":"R"'}).encode(),
        json.dumps({"schema": '"' + "x" * 10_000_000 + '"'}).encode(),
        json.dumps({"schema": '"int"', "schemaType": "NOPE"}).encode(),
        json.dumps({"schema": '"int"', "references": [{"name": "a", "subject": "none", "version": 1}]}).encode(),
        json.dumps({"schema": '"int"', "references": "x"}).encode(),
    ]


def test_bad_input_gets_the_dialects_own_refusal_and_changes_nothing(tmp_path: Path) -> None:
    """Truncated, mistyped, oversized and deeply nested bodies quickly get 4xx with an error code; nothing is stored."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        for body in _bad_bodies():
            with limit_time(5, time.monotonic):
                for path in ("/subjects/s/versions", "/subjects/s", "/compatibility/subjects/s/versions/latest"):
                    answer = call(server.url + path, "POST", raw=body)
                    assert 400 <= answer.status < 500, (path, body[:60], answer)
                    assert set(answer.body) == {"error_code", "message"}, (path, body[:60], answer)
        bad_version = call(f"{server.url}/subjects/s/versions/0")
        assert bad_version.status in {404, 422}
        assert call(f"{server.url}/subjects?deleted=true").body == []
        assert call(f"{server.url}/subjects/s/versions", "POST", SCHEMA).body["id"] == 1


def test_an_occupied_port_is_a_clear_error(tmp_path: Path) -> None:
    """The second server on a port ends with an error instead of a traceback loop."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        port = urllib.parse.urlsplit(server.url).port
        done = run_command("serve", "--store", "memory:", "--port", str(port), folder=tmp_path)
        assert done.returncode != 0
        assert "address already in use" in done.stderr.lower()


def test_a_port_of_its_own_for_one_dialect(tmp_path: Path) -> None:
    """`--listen` serves a dialect at the root of its own port, in addition to the shared port."""
    groups, repo = free_port(), free_port()
    flags = ["--store", "memory:", "--listen", f"pravega={groups}", "--listen", f"schema-repo={repo}"]
    with serving(*flags, folder=tmp_path) as server:
        assert call(f"{server.url}/subjects/s/versions", "POST", SCHEMA).status == 200
        for base in (f"http://127.0.0.1:{groups}", server.url, f"{server.url}/pravega"):
            assert list(call(f"{base}/v1/groups").body["groups"]) == ["s"], base
        assert call(f"http://127.0.0.1:{groups}/subjects").status == 404
        assert call(f"http://127.0.0.1:{repo}/schema-repo").body.split() == ["s"]
        assert call(f"http://127.0.0.1:{repo}/schemas").body.split() == ["s"]
        assert call(f"{server.url}/confluent/subjects").body == ["s"]
        assert call(f"http://127.0.0.1:{repo}/_docs/schema-repo/openapi.json").body["openapi"].startswith("3.1")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_damaged_store_is_said(tmp_path: Path, workers: str) -> None:
    """A server that cannot read its store prints the reason and the remedy as the last line, and exits with 2."""
    with serving("--store", "sqlite:///log.db", folder=tmp_path) as server:
        call(f"{server.url}/subjects/a/versions", "POST", {"schema": '{"type": "enum", "name": "A", "symbols": ["X"]}'})
    file = tmp_path / "log.db"
    file.write_bytes(file.read_bytes().replace(b"symbols", b"symbolz"))
    flags = ("--port", "0", "--store", "sqlite:///log.db", "--workers", workers)
    done = run_command("serve", *flags, folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "is damaged. Going on could give ids out twice: restore the newest backup" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert workers != "1" or done.stderr.count("\n") == 2


@pytest.mark.parametrize("listen", ["nobody=9000", "pravega", "pravega=x", "pravega=0", "pravega=1,native=1"])
def test_ports_of_nobody_are_refused(listen: str) -> None:
    """A port for an unknown dialect, and two dialects on one port, are refused before the start."""
    with pytest.raises(InvalidRequest, match="listen"):
        parse_ports(load_settings({"listen": listen}).listen)


SLOW_START = """
import asyncio, os, sys
from stele.service import registry

catch_up = registry.Registry._catch_up
fails = sys.argv.pop() == "True"

async def catch_up_slowly(self):
    while not os.path.exists("go-on"):
        await asyncio.sleep(0.05)
    if fails:
        raise registry.StoreError("the log is damaged")
    await catch_up(self)

registry.Registry._catch_up = catch_up_slowly
from stele.cli.app import app
app()
"""


@pytest.mark.parametrize("fails", [False, True])
def test_a_server_that_loads_says_so(tmp_path: Path, fails: bool) -> None:
    """During loading, the server is live and reports `starting`; if loading fails, the process exits with 2."""
    port = free_port()
    flags = ["serve", "--store", "memory:", "--port", str(port), str(fails)]
    with (tmp_path / "said").open("wb") as output:
        process = start_process(["-c", SLOW_START, *flags], tmp_path, output=output)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 180
        while True:
            try:
                starting = call(f"{url}/health/ready")
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)
        assert (starting.status, starting.body) == (503, {"status": "starting"})
        assert call(f"{url}/health/live").status == 200
        assert call(f"{url}/subjects").status == 503
        assert call(f"{url}/metrics").status == 503
        (tmp_path / "go-on").touch()
        if fails:
            assert process.wait(180) == 2
            assert b"the log is damaged" in (tmp_path / "said").read_bytes()
        else:
            wait_ready(url, process)
            assert call(f"{url}/subjects").body == []
    finally:
        process.terminate()
        process.wait(180)


def test_a_store_that_vanished(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Without its file, the server refuses writes, answers reads, is not ready, and logs the error once."""
    with serving("--store", "sqlite:///log.db", folder=tmp_path) as server:
        assert call(f"{server.url}/subjects/s/versions", "POST", plain("a")).status == 200
        (tmp_path / "log.db").unlink()
        for number in range(5):
            assert call(f"{server.url}/subjects/t{number}/versions", "POST", plain("b")).status >= 500
        ready = call(f"{server.url}/health/ready")
        assert (ready.status, ready.body["status"]) == (503, "cannot write")
        assert "log.db" in ready.body["reason"]
        assert call(f"{server.url}/schemas/ids/1").status == 200
        assert call(f"{server.url}/health/live").status == 200
    output = "".join(capfd.readouterr())
    assert output.count("cannot write ") == 1, output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("trusted", "scheme"), [("", "http"), ("10.0.0.0/8", "http"), ("10.0.0.0/8, 127.0.0.1", "https")]
)
def test_forwarded_headers_count_from_named_proxies_only(tmp_path: Path, trusted: str, scheme: str) -> None:
    """A link has the scheme from a proxy's header only if the settings trust that proxy."""
    environ = {"STELE_TRUSTED_PROXIES": trusted}
    with serving("--store", "memory:", folder=tmp_path, environ=environ) as server:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            assert client.put("/schemagroups/g", json={"format": "avro"}).status_code == 201
            forwarded = {"x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1"}
            schema = {"type": "record", "name": "R", "fields": []}
            answer = client.post("/schemagroups/g/schemas/s", json=schema, headers=forwarded)
        assert answer.headers["location"].partition("://")[0] == scheme, answer.headers
