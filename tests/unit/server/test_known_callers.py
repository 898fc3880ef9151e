"""Cached responses for known callers: none is returned after the credentials or the permission end."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.support.token_issuer import TokenIssuer
from tests.unit.server.authentication.test_password_file import bcrypt_line

from stele.core.access_rule_text import parse_rule
from stele.server.access_setup import make_access
from stele.server.asgi import ReceivedRequest
from stele.server.authentication import RequestAuthenticator, open_methods
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service import api_keys
from stele.service.access_rules import add_rule, remove_rule
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

Pair = tuple[str, str]

PATH = "/schemas/ids/1"
READER = parse_rule("allow group:readers reader subject orders")
ISSUER = TokenIssuer()


class Node:
    """A server with passwords, keys and tokens, and one schema, which ann, the keys and the tokens may read."""

    def __init__(self, registry: Registry, folder: Path) -> None:
        self.folder = folder
        self.write_passwords("one")
        (folder / "keys.json").write_text(json.dumps(ISSUER.key_set))
        (folder / "rules").write_text("allow user:ann reader subject orders\n")
        settings = ServerSettings(
            store="memory:",
            authentication=("basic", "keys", "oidc"),
            password_file=str(folder / "users"),
            oidc_issuer=ISSUER.url,
            oidc_audience=(ISSUER.audience,),
            oidc_jwks=str(folder / "keys.json"),
            access="deny",
            access_rules=str(folder / "rules"),
            super_users=("user:root",),
        )
        self.registry = registry
        registry.access = self.access = make_access(registry, settings)
        methods = open_methods(settings, {})
        assert methods is not None
        self.authenticator = RequestAuthenticator(registry, methods)
        self.front = build_dispatcher(registry, settings, Metrics(), authenticator=self.authenticator)
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(self.front), base_url="http://127.0.0.1")

    def write_passwords(self, of_ann: str) -> None:
        """Write a new file with the users."""
        (self.folder / "users").write_text(bcrypt_line("ann", of_ann) + bcrypt_line("root", "zero"))

    async def ask(self, *headers: Pair, method: str = "GET", path: str = PATH, body: object = None) -> int:
        """Send a complete request and return the status of the response."""
        return (await self._http.request(method, path, json=body, headers=list(headers))).status_code

    def answers_at_once(self, *headers: Pair, client: str = "127.0.0.1") -> bool:
        """Return whether the connection of such a request would answer from the cache."""
        sent = self._http.build_request("GET", PATH, headers=list(headers)).headers.raw
        pairs = [(name.lower(), value) for name, value in sent]
        place = ("http", None)  # as httpx sends it
        request = ReceivedRequest("GET", PATH.encode(), pairs, b"", place, "127.0.0.1", client)  # type: ignore[arg-type]
        return self.front.find_answer_at_once(request) is not None

    async def require_known(self, *headers: Pair) -> None:
        """Send requests until the connection would answer from the cache."""
        assert await self.ask(*headers) == 200
        assert self.answers_at_once(*headers)


def basic(user: str, password: str) -> Pair:
    """Return the header with a password."""
    return "authorization", "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def bearer(token: str) -> Pair:
    """Return the header with a token."""
    return "authorization", f"Bearer {token}"


ANN, ROOT = basic("ann", "one"), basic("root", "zero")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A node with the schema, which callers of the group `readers` may read by a rule in the log."""
    registry = await Registry.open(MemoryLog())
    node = Node(registry, tmp_path)
    await add_rule(registry, READER)
    body = {"schema": '"string"'}
    assert await node.ask(ROOT, method="POST", path="/subjects/orders/versions", body=body) == 200
    yield node
    node.authenticator.close()
    await registry.close()


async def test_an_answer_is_that_of_its_caller(node: Node) -> None:
    """A cached response is not returned for other, missing, wrong or duplicate credentials."""
    await node.require_known(ANN)
    assert node.answers_at_once(ANN)
    token, other = bearer(ISSUER.sign_token(sub="eve")), basic("ann", "two")
    for headers, status in (((token,), 403), ((other,), 401), ((), 401), ((ANN, ("x-api-key", "stele_0_0")), 401)):
        for _ in range(2):
            assert not node.answers_at_once(*headers)
            assert await node.ask(*headers) in {status, 404}
    assert node.answers_at_once(ANN)


async def test_a_revoked_key_ends_at_the_next_request(node: Node) -> None:
    """A revoked key is refused at the next request, in each header that can contain it."""
    key_id, _, key = await api_keys.create_api_key(node.registry, "service", ["readers"])
    shapes = [bearer(key), ("x-api-key", key), basic(key_id, key)]
    for shape in shapes:
        await node.require_known(shape)
    await api_keys.revoke_api_key(node.registry, key_id)
    for shape in shapes:
        assert not node.answers_at_once(shape)
        assert await node.ask(shape) == 401


async def test_a_right_that_ends_takes_its_answers_along(node: Node) -> None:
    """When a rule in the log or in a file is removed, its cached responses end, although the credentials stay valid."""
    token = bearer(ISSUER.sign_token(sub="eve", groups=["readers"]))
    await node.require_known(token)
    await node.require_known(ANN)
    await remove_rule(node.registry, READER)
    assert not node.answers_at_once(token)
    assert await node.ask(token) in {403, 404}
    await node.require_known(ANN)
    (node.folder / "rules").write_text("\n# nobody\n")
    node.access.read_files()
    assert not node.answers_at_once(ANN)
    assert await node.ask(ANN) in {403, 404}


async def test_a_changed_password_ends_at_the_next_request(node: Node) -> None:
    """After the file has changed, the old password is refused and the new one accepted."""
    await node.require_known(ANN)
    node.write_passwords("another")
    passwords = node.authenticator._passwords
    assert passwords is not None
    passwords._files[0]._look_at = 0.0  # otherwise it checks the file within a second
    assert not node.answers_at_once(ANN)
    assert await node.ask(ANN) == 401
    await node.require_known(basic("ann", "another"))


async def test_a_token_and_a_key_end_to_the_moment(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cached response for a token ends at the moment when the token expires."""
    ends = int(time.time()) + 200
    token = bearer(ISSUER.sign_token(sub="eve", groups=["readers"], exp=ends))
    await node.require_known(token)
    for moment, holds in ((ends - 0.001, True), (float(ends), False)):
        monkeypatch.setattr("time.time", lambda moment=moment: moment)
        assert node.answers_at_once(token) is holds


async def test_rules_about_addresses_leave_it_to_the_server(node: Node) -> None:
    """With rules about addresses, a connection does not answer from the cache: a proxy may name another address."""
    await node.require_known(ANN)
    await add_rule(node.registry, parse_rule("deny user:ann read subject orders from 10.0.0.9"))
    assert await node.ask(ANN) == 200
    cache = node.front.cache
    assert cache is not None
    for key, answer in list(cache._answers.items()):
        principal = key[3][0] if isinstance(key[3], tuple) else key[3]
        cache.keep_answer((*key[:3], principal, *key[4:]), answer)  # as if the rule had been added during the request
    assert not node.answers_at_once(ANN)
    assert not node.answers_at_once(ANN, client="10.0.0.9")
