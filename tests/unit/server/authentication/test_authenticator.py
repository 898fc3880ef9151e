"""Authentication of requests: all methods, their caches, their limits, and invalid headers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.token_issuer import TokenIssuer
from tests.unit.server.authentication.test_password_file import bcrypt_line

from stele.errors import Overloaded, Unauthenticated
from stele.server.authentication import (
    AuthenticationMethods,
    Method,
    RequestAuthenticator,
    users,
)
from stele.server.authentication.certificate_rules import CertificateRules
from stele.server.authentication.key_set import KeySet
from stele.server.authentication.tokens import TokenRules, TokenVerifier
from stele.server.authentication.users import UserFiles
from stele.service import api_keys
from stele.service.access import ANONYMOUS, PeerCertificate, PresentedCredentials, Principal
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

ALL = frozenset(Method)


def basic(user: str, password: str) -> tuple[bytes, bytes]:
    """Return the header of HTTP's Basic scheme."""
    return (b"authorization", b"Basic " + b64encode(f"{user}:{password}".encode()))


def bearer(token: str) -> tuple[bytes, bytes]:
    """Return the header with a token."""
    return (b"authorization", b"Bearer " + token.encode())


def present(*headers: tuple[bytes, bytes], **more: Any) -> PresentedCredentials:
    """Return the credentials of a request with these headers."""
    return PresentedCredentials(headers, **more)


async def identify(authenticator: RequestAuthenticator, presented: PresentedCredentials) -> Principal:
    """Return the principal of a request, as the server determines it."""
    return authenticator.find_principal(presented) or await authenticator.authenticate(presented)


@pytest.fixture
def issuer(tmp_path: Path) -> TokenIssuer:
    """An issuer whose keys are in a file."""
    issuer = TokenIssuer()
    (tmp_path / "keys.json").write_text(json.dumps(issuer.key_set))
    return issuer


@pytest.fixture
def methods(tmp_path: Path, issuer: TokenIssuer) -> AuthenticationMethods:
    """All methods at once: ann has the password `one`, bob `two`."""
    (tmp_path / "users").write_text(bcrypt_line("ann", "one") + bcrypt_line("bob", "two"))
    tokens = TokenVerifier(
        TokenRules(issuer.url, (issuer.audience,), ("RS256",)), KeySet(str(tmp_path / "keys.json"), issuer.url)
    )
    certificates = CertificateRules("RULE:CN=([^,]+).*/$1/")
    return AuthenticationMethods({0: ALL}, UserFiles(tmp_path / "users"), tokens, certificates)


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    """An empty registry."""
    opened = await Registry.open(MemoryLog())
    yield opened
    await opened.close()


@pytest.fixture
def authenticator(registry: Registry, methods: AuthenticationMethods) -> RequestAuthenticator:
    """An authenticator with all methods."""
    return RequestAuthenticator(registry, methods)


async def test_what_is_verified_once_is_known(authenticator: RequestAuthenticator, issuer: TokenIssuer) -> None:
    """The first request with a password or token waits, the next one does not; both get the same principal."""
    for header, name, method in (
        (basic("ann", "one"), "ann", "basic"),
        (bearer(issuer.sign_token(sub="carl")), "carl", "jwt"),
    ):
        assert authenticator.find_principal(present(header)) is None
        principal = await authenticator.authenticate(present(header))
        assert (principal.name, principal.method) == (name, method)
        assert authenticator.find_principal(present(header)) is principal


async def test_wrong_credentials_are_not_remembered(authenticator: RequestAuthenticator) -> None:
    """A wrong password is refused each time, with the same message as an unknown user."""
    messages = set()
    for header in (basic("ann", "two"), basic("eve", "one"), basic("", "one"), basic("ann", "x" * 2000)):
        for _ in range(2):
            with pytest.raises(Unauthenticated) as refused:
                await identify(authenticator, present(header))
            messages.add(str(refused.value))
    assert len(messages) == 1


@pytest.mark.parametrize(
    "headers",
    [
        [(b"authorization", b"")],
        [(b"authorization", b"Basic")],
        [(b"authorization", b"Basic !!!")],
        [(b"authorization", b"Basic " + b64encode(b"no colon"))],
        [(b"authorization", b"Basic " + b64encode(b"\xff\xfe:x"))],
        [(b"authorization", b"Basic " + b64encode(b"a:" + b"x" * 20_000))],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer a b")],
        [(b"authorization", "Bearer é".encode())],
        [(b"authorization", b"Bearer " + b"x" * 20_000)],
        [(b"authorization", b"Negotiate abc")],
        [(b"authorization", b"Bearer stele_")],
        [(b"authorization", b"Bearer stele_0_0")],
        [(b"x-api-key", b"")],
        [(b"x-api-key", b"nothing")],
        [basic("ann", "one"), basic("bob", "two")],
        [basic("ann", "one"), (b"x-api-key", b"stele_0_0")],
    ],
)
async def test_headers_that_prove_nothing(
    headers: list[tuple[bytes, bytes]], authenticator: RequestAuthenticator
) -> None:
    """Malformed, huge and duplicate headers and unknown schemes get a 401, even if anonymous requests are allowed."""
    authenticator._is_anonymous_allowed = True
    with pytest.raises(Unauthenticated):
        await identify(authenticator, present(*headers))


async def test_api_keys(authenticator: RequestAuthenticator, registry: Registry) -> None:
    """A key is accepted as a token, in its own header and as a password of its id, until it is revoked."""
    key_id, stored, key = await api_keys.create_api_key(registry, "service", ["dev"])
    _, _, other = await api_keys.create_api_key(registry, "other")
    assert key not in str(stored)
    shapes = [bearer(key), (b"x-api-key", key.encode()), basic(key_id, key)]
    for header in shapes:
        principal = await identify(authenticator, present(header))
        assert authenticator.find_principal(present(header)) is principal, "known without waiting"
        assert (principal.name, principal.groups, principal.method) == ("service", {"dev"}, "key")
    wrong = other.rpartition("_")[2]
    for header in (bearer(f"stele_{key_id}_{wrong}"), bearer(key[:-1]), bearer(key + "x")):
        with pytest.raises(Unauthenticated):
            await identify(authenticator, present(header))
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(present(basic("ann", key)))
    assert (await api_keys.revoke_api_key(registry, key_id)).name == "service"
    for header in shapes:
        with pytest.raises(Unauthenticated):
            await identify(authenticator, present(header))
    with pytest.raises(api_keys.ApiKeyNotFound):
        await api_keys.revoke_api_key(registry, key_id)
    assert [each.name for each in (await api_keys.list_api_keys(registry)).values()] == ["other"]


async def test_keys_end(
    authenticator: RequestAuthenticator, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is refused from the moment when it expires."""
    _, _, key = await api_keys.create_api_key(registry, "s", expires=datetime.now(UTC) + timedelta(minutes=10))
    assert await identify(authenticator, present(bearer(key)))
    now = time.time() + 601
    monkeypatch.setattr("time.time", lambda: now)
    with pytest.raises(Unauthenticated, match="expired"):
        await identify(authenticator, present(bearer(key)))


async def test_a_key_of_another_node(methods: AuthenticationMethods) -> None:
    """A key that another node has created is accepted here, and one that it has revoked is refused."""
    log = MemoryLog()
    here, there = await Registry.open(log), await Registry.open(log)
    authenticator = RequestAuthenticator(here, methods)
    key_id, _, key = await api_keys.create_api_key(there, "service")
    assert authenticator.find_principal(present(bearer(key))) is None
    assert (await authenticator.authenticate(present(bearer(key)))).name == "service"
    await api_keys.revoke_api_key(there, key_id)
    await asyncio.sleep(0.002)
    assert authenticator.find_principal(present(bearer(key))) is None
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(present(bearer(key)))


async def test_a_changed_password_ends_what_is_known(
    authenticator: RequestAuthenticator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old password is refused after the file has changed, although the credentials are cached."""
    monkeypatch.setattr("stele.service.watched_file._LOOK_SECONDS", 0.0)
    await authenticator.authenticate(present(basic("ann", "one")))
    await authenticator.authenticate(present(basic("bob", "two")))
    (tmp_path / "users").write_text(bcrypt_line("ann", "another"))
    authenticator._passwords._files[0]._look_at = 0.0  # type: ignore[union-attr]  # else it looks within a second
    for header in (basic("ann", "one"), basic("bob", "two")):
        assert authenticator.find_principal(present(header)) is None
        with pytest.raises(Unauthenticated):
            await authenticator.authenticate(present(header))


async def test_groups_follow_their_file(
    registry: Registry, methods: AuthenticationMethods, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user has the groups that are in the file now, although the credentials are cached."""
    monkeypatch.setattr("stele.service.watched_file._LOOK_SECONDS", 0.0)
    (tmp_path / "groups").write_text("dev: ann")
    authenticator = RequestAuthenticator(
        registry, methods._replace(passwords=UserFiles(tmp_path / "users", tmp_path / "groups"))
    )
    header = basic("ann", "one")
    assert await identify(authenticator, present(header)) == Principal("ann", frozenset({"dev"}), "basic")
    (tmp_path / "groups").write_text("dev: bob\nops: ann")
    assert await identify(authenticator, present(header)) == Principal("ann", frozenset({"ops"}), "basic")


async def test_a_token_is_known_until_it_ends(
    authenticator: RequestAuthenticator, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache entry of a token ends when the token expires."""
    header = bearer(issuer.sign_token(exp=int(time.time()) + 200))
    await authenticator.authenticate(present(header))
    assert authenticator.find_principal(present(header))
    now = time.time() + 201
    monkeypatch.setattr("time.time", lambda: now)
    assert authenticator.find_principal(present(header)) is None


async def test_a_withdrawn_key_ends_the_tokens_it_signed(
    authenticator: RequestAuthenticator, issuer: TokenIssuer, tmp_path: Path
) -> None:
    """A cached token is verified again when its issuer's keys have changed, and refused if its key was removed."""
    old = bearer(issuer.sign_token())
    await authenticator.authenticate(present(old))
    issuer.rotate_key()
    (tmp_path / "keys.json").write_text(json.dumps(issuer.key_set))
    authenticator._tokens._keys._file._look_at = 0.0  # type: ignore[union-attr]  # else it looks within a second
    for _ in range(2):
        assert authenticator.find_principal(present(old)) is None
        with pytest.raises(Unauthenticated):
            await authenticator.authenticate(present(old))
    assert await identify(authenticator, present(bearer(issuer.sign_token())))


async def test_known_credentials_are_bounded_and_hold_no_secret(
    authenticator: RequestAuthenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache is limited in size and time, and contains only hashes of the credentials."""
    monkeypatch.setattr("stele.server.authentication.known_credentials._MOST_KNOWN", 1)
    ann, bob = basic("ann", "one"), basic("bob", "two")
    for header in (ann, bob):
        await authenticator.authenticate(present(header))
    assert authenticator.find_principal(present(ann)) is None
    assert authenticator.find_principal(present(bob))
    assert len(authenticator._known) == 1
    cache_contents = repr(vars(authenticator._known))
    assert bob[1].decode() not in cache_contents
    assert bob[1].removeprefix(b"Basic ").decode() not in cache_contents
    now = time.time() + 301
    monkeypatch.setattr("time.time", lambda: now)
    assert authenticator.find_principal(present(bob)) is None


async def test_each_process_and_header_hashes_otherwise(
    authenticator: RequestAuthenticator, registry: Registry, methods: AuthenticationMethods
) -> None:
    """The same text in another header, or in another process, has another hash.

    So hashes cannot be computed in advance.
    """
    other = RequestAuthenticator(registry, methods)
    pairs = [(b"authorization", b"x"), (b"x-api-key", b"x")]
    digests = {each._known.digest_header(pair) for each in (authenticator, other) for pair in pairs}
    assert len(digests) == 4


def test_certificates_and_nobody(registry: Registry, methods: AuthenticationMethods) -> None:
    """Without headers the certificate decides; without a certificate the caller is anonymous, where that is allowed."""
    authenticator = RequestAuthenticator(registry, methods)
    certificate = PeerCertificate("CN=dora,O=Example")
    principal = authenticator.find_principal(present(certificate=certificate))
    assert principal is not None
    assert (principal.name, principal.method) == ("dora", "mtls")
    with pytest.raises(Unauthenticated):
        authenticator.find_principal(present())
    open_to_nobody = RequestAuthenticator(registry, methods._replace(is_anonymous_allowed=True))
    assert open_to_nobody.find_principal(present()) is ANONYMOUS
    with pytest.raises(Unauthenticated):
        open_to_nobody.find_principal(present(certificate=PeerCertificate("O=Example")))


async def test_each_port_has_its_methods(
    registry: Registry, methods: AuthenticationMethods, issuer: TokenIssuer
) -> None:
    """Credentials verified at one port are refused at another one where their method is off."""
    ports = {0: ALL, 1: frozenset({Method.BASIC}), 2: frozenset({Method.OIDC}), 3: frozenset[Method]()}
    authenticator = RequestAuthenticator(registry, methods._replace(by_port=ports))
    password, token = basic("ann", "one"), bearer(issuer.sign_token())
    await authenticator.authenticate(present(password, port=1))
    await authenticator.authenticate(present(token, port=2))
    for header, port in ((password, 2), (token, 1)):
        assert authenticator.find_principal(present(header, port=port)) is None
        with pytest.raises(Unauthenticated):
            await authenticator.authenticate(present(header, port=port))
    assert authenticator.find_principal(present(password, port=3)) is ANONYMOUS
    with pytest.raises(Unauthenticated):
        authenticator.find_principal(present(port=1, certificate=PeerCertificate("CN=dora,O=Example")))
    schemes = {port: [each.split()[0] for each in authenticator.list_challenges(port)] for port in (8081, 1, 2, 3)}
    assert schemes == {8081: [b"Basic", b"Bearer"], 1: [b"Basic"], 2: [b"Bearer"], 3: []}


async def test_floods_are_bounded(authenticator: RequestAuthenticator, monkeypatch: pytest.MonkeyPatch) -> None:
    """One address cannot occupy all threads, equal credentials are verified once, and cached callers do not wait."""
    await authenticator.authenticate(present(basic("ann", "one")))
    gate, calls = threading.Event(), []

    def wait(text: str, password: bytes) -> bool:
        calls.append(password)
        return gate.wait(120) and password == b"two"

    monkeypatch.setattr(users, "verify_password", wait)
    flood = [
        asyncio.create_task(authenticator.authenticate(present(basic("eve", f"guess-{number}"), address="10.0.0.9")))
        for number in range(50)
    ]
    good = [
        asyncio.create_task(authenticator.authenticate(present(basic("bob", "two"), address="10.0.0.1")))
        for _ in range(50)
    ]
    await asyncio.sleep(0.05)
    assert authenticator.find_principal(present(basic("ann", "one")))
    refused = [task for task in flood if task.done()]
    assert len(refused) == 42
    gate.set()
    assert {principal.name for principal in await asyncio.gather(*good)} == {"bob"}
    kinds = {type(error) for error in await asyncio.gather(*flood, return_exceptions=True)}
    assert kinds == {Overloaded, Unauthenticated}
    assert sorted(calls).count(b"two") == 1
    assert not authenticator._addresses
