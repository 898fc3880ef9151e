"""The proxy of `deploy/compose` in front of three nodes: clients do not notice that one of them is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from tests.support.server_process import Running, free_port, serving

pytestmark = pytest.mark.servers

_SITE = Path(__file__).parents[2] / "deploy" / "compose" / "nginx.conf"
_GROWTH = Path(__file__).parents[2] / "docs" / "explanation" / "scale.md"
_FRAME = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


@contextmanager
def _run_proxy(nodes: list[Running], folder: Path) -> Iterator[str]:
    """Run nginx with the site's file, in which addresses replace the names of nodes, and yield its URL."""
    port = free_port()
    site = _SITE.read_text(encoding="utf-8").replace("listen 8081;", f"listen 127.0.0.1:{port};")
    for number, node in enumerate(nodes, 1):
        site = site.replace(f"node-{number}:8081", node.url.removeprefix("http://"))
    assert not re.search(r"node-\d", site)
    with _run_nginx(site, port, folder) as url:
        yield url


@contextmanager
def _run_nginx(site: str, port: int, folder: Path) -> Iterator[str]:
    """Run nginx with the text of a site that listens on `port`, and yield its URL."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, "nginx is not installed: apt-get install nginx-light"
    (folder / "site.conf").write_text(site, encoding="utf-8")
    (folder / "nginx.conf").write_text(_FRAME.format(folder=folder), encoding="utf-8")
    with subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf"]) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            until = time.monotonic() + 120
            while True:
                try:
                    httpx.get(f"{url}/subjects", timeout=60)
                    break
                except httpx.ConnectError:
                    assert process.poll() is None, (folder / "error.log").read_text()
                    assert time.monotonic() < until
                    time.sleep(0.05)
            yield url
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[Running]]]:
    """Run three nodes and the proxy, and yield its URL and the nodes."""
    folder = tmp_path_factory.mktemp("proxy")
    folder.chmod(0o755)
    with ExitStack() as stack:
        nodes = [stack.enter_context(serving("--store", f"sqlite:///{folder}/log.db", folder=folder)) for _ in "123"]
        yield stack.enter_context(_run_proxy(nodes, folder)), nodes


def _register(http: httpx.Client, number: int) -> int:
    schema = json.dumps({"type": "enum", "name": "E", "symbols": ["A"], "doc": str(number)})
    answer = http.post("/subjects/s/versions", json={"schema": schema})
    assert answer.status_code == 200, answer.text
    schema_id: int = answer.json()["id"]
    assert http.get(f"/schemas/ids/{schema_id}").status_code == 200
    return schema_id


def test_names_keep_their_escapes(cluster: tuple[str, list[Running]]) -> None:
    """An encoded slash in a subject's name reaches the node unchanged. The proxy does not serve metrics."""
    with httpx.Client(base_url=cluster[0], timeout=60) as http:
        answer = http.post("/subjects/a%2Fb/versions", json={"schema": '"string"'})
        assert answer.status_code == 200, answer.text
        assert "a/b" in http.get("/subjects").json()
        assert http.get("/metrics").status_code == 404


def test_a_lost_node_is_not_noticed(cluster: tuple[str, list[Running]]) -> None:
    """After one of three nodes is killed, every registration and read is answered.

    If the killed node had sent the head of an answer and not its body, no other node can complete it. That client gets
    an error and the whole answer at its next try.
    """
    url, nodes = cluster
    failures: list[BaseException] = []
    registered: list[int] = []
    cut: list[httpx.RemoteProtocolError] = []
    is_over = threading.Event()

    def register(http: httpx.Client, number: int) -> int:
        try:
            return _register(http, number)
        except httpx.RemoteProtocolError as error:
            cut.append(error)
            return _register(http, number)

    def work(worker: int) -> None:
        with httpx.Client(base_url=url, timeout=30) as http:
            number = worker
            while not is_over.is_set():
                try:
                    registered.append(register(http, number))
                except BaseException as failure:
                    failures.append(failure)
                    raise
                number += 10

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    os.killpg(nodes[1].process.pid, signal.SIGKILL)
    before = len(registered)
    time.sleep(2)
    until = time.monotonic() + 120
    while len(registered) <= before + 10 and not failures and time.monotonic() < until:
        time.sleep(0.05)
    is_over.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(cut) <= len(threads), cut
    assert len(registered) > before + 10
    assert len(set(registered)) == len(registered)


def test_a_cache_keeps_what_never_changes() -> None:
    """The cache from the page on growth serves ids, also without a node, and caches nothing else."""
    port = free_port()
    (site,) = re.findall(r"^```nginx\n(.*?)^```$", _GROWTH.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))  # nginx's workers cannot read pytest's own
        folder.chmod(0o755)
        node = stack.enter_context(serving("--store", "memory:", folder=folder))
        for written, real in (
            ("/var/cache/nginx/stele", f"{folder}/cached"),
            ("listen 8080;", f"listen 127.0.0.1:{port};"),
            ("127.0.0.1:8081", node.url.removeprefix("http://")),
        ):
            assert site.count(written) == 1
            site = site.replace(written, real)
        url = stack.enter_context(_run_nginx(site, port, folder))
        http = stack.enter_context(httpx.Client(base_url=url, timeout=60))
        schema_id = _register(http, 1)
        path = f"/schemas/ids/{schema_id}"
        cached_response = http.get(path)
        assert cached_response.headers["cache-control"] == "max-age=86400, immutable"
        assert cached_response.headers["vary"] == "accept, accept-encoding"
        assert cached_response.headers["x-cache"] == "HIT"
        assert http.get(path, headers={"If-None-Match": cached_response.headers["etag"]}).status_code == 304
        latest = [http.get("/subjects/s/versions/latest") for _ in "12"]
        assert [answer.headers["x-cache"] for answer in latest] == ["MISS", "MISS"]
        assert latest[0].headers["cache-control"] == "no-cache"
        assert http.get(f"{path}?format=resolved").headers["x-cache"] == "MISS"
        _register(http, 2)
        assert http.get("/subjects/s/versions/latest").json()["version"] == 2
        os.killpg(node.process.pid, signal.SIGKILL)
        node.process.wait()
        assert http.get(path).json() == cached_response.json()
        assert http.get("/subjects").status_code == 502
