"""Rate limits of one caller: what is refused, for how long, in the form of each dialect, with limited memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.server_process import serving
from tests.unit.server.test_site_guard import CHANGES

from stele.errors import TooManyRequests
from stele.server import rate_limits
from stele.server.dialects import DIALECTS
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.rate_limits import Rate, RateLimiter, share_rates
from stele.server.settings import ServerSettings
from stele.service.access import ANONYMOUS, Principal


class Clock:
    """A clock that advances only when the test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


TWO_PER_SECOND = Rate(2, 3)
NO_LIMIT = Rate(0, 1)


def make_limiter(clock: Clock, requests: Rate = TWO_PER_SECOND, changes: Rate = NO_LIMIT) -> RateLimiter:
    """Return a limiter of two requests per second, with a burst of three."""
    return RateLimiter(requests, changes, clock)


def ask(limiter: RateLimiter, times: int, address: str = "192.0.2.1", name: str = "", method: str = "GET") -> int:
    """Return how many of some requests are allowed."""
    principal = Principal(name) if name else ANONYMOUS
    return sum(limiter.find_refusal(principal, address, method) is None for _ in range(times))


def test_a_burst_and_then_the_rate() -> None:
    """A burst is allowed, then as many requests as the rate; refused requests do not count."""
    clock = Clock()
    limiter = make_limiter(clock)
    assert ask(limiter, 10) == 3
    clock.now += 1
    assert ask(limiter, 10) == 2
    clock.now += 60
    assert ask(limiter, 10) == 3


def test_the_wait_is_long_enough_and_no_longer() -> None:
    """A request after the returned waiting time is allowed."""
    clock = Clock()
    limiter = make_limiter(clock, Rate(0.1, 1))
    assert ask(limiter, 1) == 1
    refusal = limiter.find_refusal(ANONYMOUS, "192.0.2.1", "GET")
    assert isinstance(refusal, TooManyRequests)
    assert (refusal.seconds, refusal.rate) == (10, "requests")
    clock.now += refusal.seconds - 1
    assert ask(limiter, 1) == 0
    clock.now += 1
    assert ask(limiter, 1) == 1


def test_callers_do_not_share() -> None:
    """Principals are counted at any address; anonymous callers by address, IPv6 hosts by their network."""
    limiter = make_limiter(Clock(), Rate(1, 1))
    assert ask(limiter, 2, name="ann") == 1
    assert ask(limiter, 1, address="192.0.2.9", name="ann") == 0
    assert ask(limiter, 2, name="192.0.2.1") == 1
    assert ask(limiter, 2) == 1
    assert ask(limiter, 1, address="::ffff:192.0.2.1") == 0
    assert ask(limiter, 2, address="2001:db8::1") == 1
    assert ask(limiter, 1, address="2001:db8::2") == 0
    assert ask(limiter, 1, address="2001:db8:0:1::2") == 1


def test_changes_have_a_rate_of_their_own() -> None:
    """A caller beyond the limit of changes can still read, and a refused change does not count as a request."""
    limiter = make_limiter(Clock(), Rate(1, 5), Rate(1, 2))
    assert ask(limiter, 10, method="POST") == 2
    assert ask(limiter, 10) == 3


def test_very_many_callers_take_bounded_memory() -> None:
    """A caller with a new address for every request does not increase the memory beyond its limit."""
    clock = Clock()
    limiter = make_limiter(clock)
    for _ in range(3):
        assert ask(limiter, 1, name="ann") == 1
    for number in range(50_000):
        clock.now += 1e-6
        assert ask(limiter, 1, address=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}") == 1
    assert ask(limiter, 1, name="ann") == 0, "the fullest buckets are remembered"


def test_processes_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that a forked process counts reduce the rest for the other processes."""
    monkeypatch.setattr(rate_limits, "_shared_times", {})
    share_rates()
    clock = Clock()
    limiter = make_limiter(clock)
    if (child := os.fork()) == 0:
        os._exit(ask(limiter, 2, name="ann"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert ask(limiter, 10, name="ann") == 1
    assert ask(make_limiter(clock), 10, name="bob") == 3
    assert ask(limiter, 10, name="bob") == 0


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a server with a very low limit of changes."""
    server = InProcessServer(ServerSettings(store="memory:", changes_per_second=0.001, changes_burst=1))
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081") as client:
        client.put("/api/policies/first", content=json.dumps({"policy": "none"}))
        yield client
    server.stop()


@pytest.mark.parametrize("dialect", [dialect.name for dialect in DIALECTS])
def test_every_dialect_refuses_in_its_own_shape(client: httpx.Client, dialect: str) -> None:
    """The response is 429 with the seconds to wait, in the dialect's media type for errors; reads succeed."""
    change = CHANGES[dialect]
    body = change.body if isinstance(change.body, str) else json.dumps(change.body)
    headers = {"content-type": change.content_type}
    answer = client.request(change.method, change.path, content=body, headers=headers)
    assert answer.status_code == 429, answer.text
    assert 900 <= int(answer.headers["retry-after"]) <= 1000
    assert "changes_per_second" in answer.text
    other = client.request(
        change.method, change.path, content=body, headers={**headers, "origin": "https://evil.example"}
    )
    assert other.status_code == 403
    assert other.headers["content-type"] == answer.headers["content-type"]
    assert client.get(change.read).status_code == 200


def test_guesses_at_pages_of_the_server(tmp_path: Path) -> None:
    """Wrong passwords at `/metrics` get 401, and 429 with the seconds to wait beyond the rate."""
    (tmp_path / "users").write_text("")
    settings = ServerSettings(
        store="memory:",
        authentication=("basic",),
        password_file=str(tmp_path / "users"),
        requests_per_second=0.001,
        requests_burst=2,
    )
    server = InProcessServer(settings)
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081") as guesser:
        answers = [guesser.get("/metrics", auth=("eve", f"guess-{number}")) for number in range(4)]
        assert [answer.status_code for answer in answers] == [401, 401, 429, 429]
        assert answers[0].headers["www-authenticate"].startswith("Basic")
        assert int(answers[3].headers["retry-after"]) > 900
        assert guesser.get("/health/ready").status_code == 200
    server.stop()


def test_refused_requests_are_counted(client: httpx.Client) -> None:
    """The metric names the rate that was exceeded."""
    before = client.get("/metrics").text
    client.put("/api/policies/s", content=json.dumps({"policy": "none"}))
    name = 'stele_requests_limited_total{rate="changes"} '
    counts = [float(text.partition(name)[2].partition("\n")[0]) for text in (before, client.get("/metrics").text)]
    assert counts[1] == counts[0] + 1


def test_answers_at_once_count_too(tmp_path: Path) -> None:
    """Requests that a connection would answer from the cache are refused like others."""
    environ = {"STELE_REQUESTS_PER_SECOND": "0.001", "STELE_REQUESTS_BURST": "20"}
    with (
        serving("--store", "memory:", folder=tmp_path, environ=environ) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        statuses = [client.get("/subjects").status_code for _ in range(30)]
        assert statuses == [200] * 20 + [429] * 10
        assert client.get("/health/ready").status_code == 200
        metrics = client.get("/metrics").text
    assert 'stele_requests_limited_total{rate="requests"} 10.0' in metrics
    assert "stele_answer_cache_hits_total 19.0" in metrics


def test_a_rate_holds_for_all_workers(tmp_path: Path) -> None:
    """Requests to several workers, over many connections, share one burst."""
    environ = {"STELE_REQUESTS_PER_SECOND": "0.001", "STELE_REQUESTS_BURST": "20"}
    with serving("--workers", "3", folder=tmp_path, environ=environ) as server:
        statuses = [httpx.get(f"{server.url}/subjects", timeout=60).status_code for _ in range(40)]
    assert statuses.count(200) == 20
    assert statuses.count(429) == 20
