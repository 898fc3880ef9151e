"""Both clients against a scripted registry: results, addresses, credentials, retries, fail-over, cache."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import httpx
import msgspec
import pytest

from stele import errors
from stele.client import (
    AsyncSchemaRegistryClient,
    Bearer,
    CachePolicy,
    Config,
    ContextId,
    Request,
    ResponseError,
    Retry,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SubjectVersion,
)
from stele.core.findings import Finding, Severity

Answer = tuple[int, Any] | tuple[int, Any, Mapping[str, str]] | Exception


class Script:
    """Answers by method and raw target, in the given order, and records all requests.

    The last answer of a target repeats.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

    def say(self, what: str, *answers: Answer) -> None:
        """Set the answers for `METHOD target` (or `METHOD http://host/target`)."""
        self.answers[what] = list(answers)

    @property
    def request_lines(self) -> list[str]:
        """`METHOD target` of every request."""
        return [f"{request.method} {request.url.raw_path.decode()}" for request in self.requests]

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Return the next answer."""
        self.requests.append(request)
        target = request.url.raw_path.decode()
        full = f"{request.method} http://{request.url.host}{target}"
        answers = self.answers.get(full) or self.answers.get(f"{request.method} {target}")
        assert answers, f"nobody told the registry what to say to {full}"
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, body = answer[0], answer[1]
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return httpx.Response(status, content=content, headers=answer[2] if len(answer) == 3 else {})

    def client(self, urls: str = "http://one", **settings: Any) -> SchemaRegistryClient:
        """Return a blocking client of this registry that records its pauses instead of sleeping."""
        retry = settings.pop("retry", Retry(rounds=3, jitter=lambda: 1.0))
        transport = httpx.MockTransport(self.handle)
        return SchemaRegistryClient(urls, retry=retry, transport=transport, sleep=self.pauses.append, **settings)

    def aclient(self, urls: str = "http://one", **settings: Any) -> AsyncSchemaRegistryClient:
        """Return an async client of this registry that records its pauses."""

        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)

        retry = settings.pop("retry", Retry(rounds=3, jitter=lambda: 1.0))
        transport = httpx.MockTransport(self.handle)
        return AsyncSchemaRegistryClient(urls, retry=retry, transport=transport, sleep=sleep, **settings)


@pytest.fixture
def script() -> Script:
    """A registry without answers yet."""
    return Script()


AVRO = Schema('"string"')
GONE = {"error_code": 40401, "message": "Subject 's' not found."}


def test_typed_results(script: Script) -> None:
    """A version is returned as one typed value, with defaults for members that an old server leaves out."""
    reference = {"name": "r", "subject": "r", "version": 1}
    script.say(
        "GET /subjects/s/versions/1",
        (200, {"subject": "s", "version": 1, "id": 7, "schema": "x", "references": [reference], "unheard": {"of": 1}}),
    )
    version = script.client().version("s", 1)
    assert (version.subject, version.version, version.id, version.text, version.schema_type) == ("s", 1, 7, "x", "AVRO")
    assert version.references == (SchemaReference("r", "r", 1),)
    assert version.as_schema() == Schema("x", "AVRO", version.references)


def test_id_is_filled_in(script: Script) -> None:
    """The result contains the requested id, which the API does not repeat."""
    script.say("GET /schemas/ids/7", (200, {"schema": "x"}))
    assert script.client().schema_by_id(7).id == 7


def test_settings_have_one_name(script: Script) -> None:
    """The level is `compatibility` in the result, whichever of its two names the server used."""
    script.say("GET /config", (200, {"compatibilityLevel": "FULL", "normalize": True}))
    script.say("PUT /config", (200, {"compatibility": "NONE"}))
    script.say("PUT /mode", (200, {"mode": "READONLY"}))
    with script.client() as client:
        assert client.config() == Config(compatibility_level="FULL", normalize=True)
        assert client.set_config("NONE") == Config(compatibility_level="NONE")
        assert client.set_mode("READONLY") == "READONLY"


def test_small_answers(script: Script) -> None:
    """Lists, numbers, texts and empty bodies are returned as such."""
    script.say("GET /", (200, {}))
    script.say("GET /v1/metadata/id", (200, {"id": "", "scope": {"path": [], "clusters": {"kafka-cluster": "k"}}}))
    script.say("GET /v1/metadata/deployment", (200, {"attributes": ["a"]}))
    script.say("GET /schemas/ids/7/schema", (200, '{"é":1}'.encode()))
    script.say("GET /schemas/ids/7/versions", (200, [{"subject": "s", "version": 1}]))
    script.say("GET /schemas/guids/g/ids", (200, [{"context": ".", "id": 1}]))
    script.say("DELETE /subjects/s", (200, [1, 2]))
    script.say("DELETE /contexts/.c", (204, b""))
    client = script.client()
    client.ping()
    assert client.cluster_id().clusters == {"kafka-cluster": "k"}
    assert client.deployment() == ["a"]
    assert client.schema_text_by_id(7) == '{"é":1}'
    assert client.versions_of_id(7) == [SubjectVersion("s", 1)]
    assert client.ids_of_guid("g") == [ContextId(".", 1)]
    assert client.delete_subject("s") == [1, 2]
    client.delete_context(".c")


def test_check_gives_findings(script: Script) -> None:
    """Reasons of the native check are returned as `Finding`."""
    finding = {"rule": "R", "path": "/fields/0", "why": "because", "level": "warning"}
    script.say("POST /api/check", (200, {"compatible": True, "findings": [finding]}))
    result = script.client().check("avro", "{}", [])
    assert result.compatible
    assert result.findings == (Finding("R", "/fields/0", why="because", level=Severity.WARNING),)


def test_names_reach_the_server_encoded_once(script: Script) -> None:
    """Names with slashes, percent signs, dots and letters of any script reach the server unchanged."""
    for name, segment in (("a/b %2F", "a%2Fb%20%252F"), ("ключ", "%D0%BA%D0%BB%D1%8E%D1%87"), ("..", "%2E%2E")):
        script.say(f"GET /prefix/subjects/{segment}/versions", (200, [1]))
        assert script.client("http://one/prefix/").versions(name) == [1]


def test_headers(script: Script) -> None:
    """Requests name the accepted media types and the client, bodies have a media type, and callers may add headers."""
    script.say("POST /subjects/s/versions", (200, {"id": 1}))
    script.say("POST /api/check", (200, {"compatible": True}))
    client = script.client(headers={"X-Team": "blue"})
    client.register("s", AVRO)
    client.check("avro", "{}", [])
    first, second = script.requests
    assert first.headers["accept"].startswith("application/vnd.schemaregistry.v1+json")
    assert first.headers["user-agent"].startswith("stele-client/")
    assert first.headers["x-team"] == "blue"
    assert first.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    assert second.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("url", "auth", "header"),
    [
        ("http://one", ("user", "word"), "Basic dXNlcjp3b3Jk"),
        ("http://user:word@one", None, "Basic dXNlcjp3b3Jk"),
        ("http://user:word@one", Bearer("t"), "Basic dXNlcjp3b3Jk"),
        ("http://one", Bearer("t"), "Bearer t"),
        ("http://one", Bearer(lambda: "fresh"), "Bearer fresh"),
        ("http://one", None, None),
    ],
)
def test_credentials(script: Script, url: str, auth: Any, header: str | None) -> None:
    """Basic from arguments or the address, bearer as text or function; an address's own credentials win."""
    script.say("GET /subjects", (200, []))
    script.client(url, auth=auth).subjects()
    assert script.requests[0].headers.get("authorization") == header


def test_errors_do_not_tell_the_password(script: Script) -> None:
    """The URL in an error has no credentials."""
    script.say("GET /subjects/s/versions", (404, GONE))
    with pytest.raises(errors.SubjectNotFound) as caught:
        script.client("http://user:word@one").versions("s")
    assert "word" not in str(caught.value)
    assert isinstance(caught.value, ResponseError)
    assert caught.value.url == "http://one/subjects/s/versions"


@pytest.mark.parametrize("url", ["", "one:8081", "ftp://one", "http://", "http://a\x00b"])
def test_addresses_are_checked_at_once(url: str) -> None:
    """An invalid address raises when the client is created."""
    with pytest.raises(errors.InvalidRequest):
        SchemaRegistryClient(url)


def test_retries_with_growing_pauses(script: Script) -> None:
    """Transient failures are retried, each time after a longer pause."""
    script.say("GET /subjects", httpx.ConnectError("refused"), (503, b""), (200, ["s"]))
    assert script.client().subjects() == ["s"]
    assert script.pauses == [0.2, 0.4]


def test_pauses_have_jitter(script: Script) -> None:
    """The pause is a random share of the longest one."""
    script.say("GET /subjects", (500, b""), (200, []))
    script.client(retry=Retry(rounds=2, base=8, jitter=lambda: 0.25)).subjects()
    assert script.pauses == [2.0]


def test_retry_after_is_heeded_within_the_cap(script: Script) -> None:
    """A server may ask for a longer pause, but not beyond the cap."""
    script.say("GET /subjects", (429, b"", {"Retry-After": "7"}), (503, b"", {"Retry-After": "9999"}), (200, []))
    script.client(retry=Retry(rounds=3, cap=30)).subjects()
    assert script.pauses == [7.0, 30]


def test_gives_up_with_the_last_refusal(script: Script) -> None:
    """After the last retry the last error response is raised."""
    script.say("GET /subjects", (503, {"error_code": 50301, "message": "busy"}))
    with pytest.raises(errors.Unavailable, match="busy") as caught:
        script.client().subjects()
    assert isinstance(caught.value, ResponseError)
    assert len(script.requests) == 3


def test_gives_up_when_nobody_answers(script: Script) -> None:
    """The error names every server and its failure."""
    script.say("GET http://one/subjects", httpx.ConnectError("refused"))
    script.say("GET http://two/subjects", httpx.ReadTimeout("slow"))
    with pytest.raises(errors.RegistryUnreachable, match=r"http://one: refused; http://two: slow"):
        script.client("http://one,http://two").subjects()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_clear_refusals_are_not_repeated(script: Script, status: int) -> None:
    """A request that cannot succeed is sent once."""
    script.say("GET /subjects", (status, b""))
    with pytest.raises(ResponseError):
        script.client("http://one,http://two").subjects()
    assert len(script.requests) == 1


def test_redirects_are_errors(script: Script) -> None:
    """A redirect is an error, because it could turn a registration into a read."""
    script.say("POST /subjects/s/versions", (302, b"", {"Location": "http://two/"}))
    with pytest.raises(ResponseError, match="302"):
        script.client().register("s", AVRO)


@pytest.mark.parametrize("body", [b"<html>", b'{"subjects": []}', b"[1]"])
def test_answers_of_another_kind_are_errors(script: Script, body: bytes) -> None:
    """An HTML page with status 200 is not accepted as a list of subjects."""
    script.say("GET /subjects", (200, body))
    with pytest.raises(ResponseError, match="not what the API promises"):
        script.client().subjects()


def test_next_server_at_once_then_stays(script: Script) -> None:
    """A dead server causes no pause while another one works, which is tried first from then on."""
    script.say("GET http://one/subjects", httpx.ConnectError("refused"))
    script.say("GET http://two/subjects", (200, []))
    client = script.client("http://one,http://two")
    client.subjects()
    client.subjects()
    assert [request.url.host for request in script.requests] == ["one", "two", "two"]
    assert script.pauses == []


def test_registration_is_repeated_after_a_lost_answer(script: Script) -> None:
    """A registration with a lost response is sent again, because registering twice has no further effect."""
    script.say("POST /subjects/s/versions", httpx.ReadTimeout("slow"), (200, {"id": 4}))
    assert script.client().register("s", AVRO).id == 4


@pytest.mark.parametrize("trouble", [httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("cut"), (503, b"")])
def test_deletion_is_not_repeated_after_a_lost_answer(script: Script, trouble: Answer) -> None:
    """Deleting `latest` twice deletes two versions, so an unclear outcome is reported and not repeated."""
    script.say("DELETE /subjects/s/versions/latest", trouble, (200, 1))
    with pytest.raises(errors.Unavailable):
        script.client("http://one,http://two").delete_version("s", "latest")
    assert len(script.requests) == 1


@pytest.mark.parametrize("trouble", [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow"), (429, b"")])
def test_deletion_is_repeated_when_it_certainly_did_not_happen(script: Script, trouble: Answer) -> None:
    """A deletion is sent again if no server received it."""
    script.say("DELETE /subjects/s/versions/latest", trouble, (200, 1))
    assert script.client().delete_version("s", "latest") == 1


def test_immutable_answers_are_asked_for_once(script: Script) -> None:
    """Ids and numbered versions take one request; so does `latest` within its time to live."""
    script.say("GET /schemas/ids/1", (200, {"schema": "x"}))
    script.say("GET /subjects/s/versions/1", (200, {"schema": "x"}))
    script.say("GET /subjects/s/versions/latest", (200, {"schema": "x"}))
    client = script.client()
    for _ in range(3):
        client.schema_by_id(1)
        client.version("s", 1)
        client.version("s")
    assert len(script.requests) == 3


def test_lookups_are_told_apart_by_their_body(script: Script) -> None:
    """Lookups of two schemas in one subject are cached separately."""
    script.say("POST /subjects/s", (200, {"id": 1}), (200, {"id": 2}))
    client = script.client()
    assert [client.lookup("s", Schema(text)).id for text in ("a", "b", "a")] == [1, 2, 1]


def test_latest_is_fresh_after_an_own_registration(script: Script) -> None:
    """A client reads its own writes."""
    script.say("GET /subjects/s/versions/latest", (200, {"id": 1}), (200, {"id": 2}))
    script.say("POST /subjects/s/versions", (200, {"id": 2}))
    client = script.client()
    assert client.version("s").id == 1
    client.register("s", AVRO)
    assert client.version("s").id == 2


def test_a_failed_write_voids_too(script: Script) -> None:
    """A write whose response was lost clears the cache, because it may have happened."""
    script.say("GET /subjects/s/versions/latest", (200, {"id": 1}), (200, {"id": 2}))
    script.say("POST /subjects/s/versions", httpx.ReadTimeout("slow"))
    client = script.client()
    client.version("s")
    with pytest.raises(errors.RegistryUnreachable):
        client.register("s", AVRO)
    assert client.version("s").id == 2


def test_errors_are_not_cached(script: Script) -> None:
    """Errors are not cached: a missing subject may exist a moment later."""
    script.say("GET /subjects/s/versions/latest", (404, GONE), (200, {"id": 1}))
    client = script.client()
    with pytest.raises(errors.SubjectNotFound):
        client.version("s")
    assert client.version("s").id == 1


def test_forget(script: Script) -> None:
    """`forget` empties the cache."""
    script.say("GET /schemas/ids/1", (200, {"schema": "x"}))
    client = script.client()
    client.schema_by_id(1)
    client.forget()
    client.schema_by_id(1)
    assert len(script.requests) == 2


def test_clients_travel_to_other_processes() -> None:
    """A pickled client has the addresses, credentials and retry settings of the original."""
    retry = Retry(rounds=2, base=1.0)
    client = SchemaRegistryClient("http://user:word@one,http://two", auth=("a", "b"), retry=retry, cache_ttl=7)
    with pickle.loads(pickle.dumps(client)) as copy:
        assert copy._servers.nodes.order() == ["http://one", "http://two"]
        assert (copy._settings["auth"], copy._settings["cache_ttl"], copy._retry.rounds) == (("a", "b"), 7, 2)


def test_calls_of_ones_own(script: Script) -> None:
    """`send` takes any request, with the same retries, errors and cache."""
    script.say("GET /new/thing", (200, {"a": 1}))
    request: Request[Any] = Request("GET", "/new/thing", msgspec.json.decode, cache_policy=CachePolicy.IMMUTABLE)
    client = script.client()
    assert client.send(request) == client.send(request) == {"a": 1}
    assert len(script.requests) == 1


async def test_the_async_client_is_the_same(script: Script) -> None:
    """Async calls have the results, retries, fail-over, cache and errors of the blocking client."""
    script.say("GET http://one/subjects/s/versions/1", httpx.ConnectError("refused"))
    script.say("GET http://two/subjects/s/versions/1", (503, b""), (200, {"id": 1, "schema": "x"}))
    script.say("GET /subjects/t/versions", (404, GONE))
    async with script.aclient("http://one,http://two") as client:
        assert (await client.version("s", 1)).id == 1
        assert (await client.version("s", 1)).id == 1
        with pytest.raises(errors.SubjectNotFound):
            await client.versions("t")
    assert script.pauses == [0.2]
    assert len(script.requests) == 5


async def test_async_plans(script: Script) -> None:
    """Workflows of several requests run on the async client too."""
    reference = {"name": "r", "subject": "r", "version": 1}
    script.say("GET /schemas/ids/1", (200, {"schema": "x", "references": [reference]}))
    script.say("GET /subjects/r/versions/1?deleted=true", (200, {"schema": "y"}))
    async with script.aclient() as client:
        assert (await client.resolve(1)).references == {"r": "y"}
