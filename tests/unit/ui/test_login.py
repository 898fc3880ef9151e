"""Logins to the pages: sessions begin, are valid for pages only, and end together with their credentials."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from tests.support.token_issuer import TokenIssuer
from tests.unit.server.authentication.test_password_file import bcrypt_line
from tests.unit.ui.conftest import JSON, open_server

from stele.server import browser_sessions
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings
from stele.ui.options import COOKIE

OWN = {"origin": "http://127.0.0.1:8081"}
FOREIGN = {"origin": "https://evil.example"}
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A password file; the name of one user is a script."""
    path = tmp_path / "users"
    path.write_text(bcrypt_line("ann", "one") + bcrypt_line("bob", "two") + bcrypt_line(SCRIPT, "three"))
    return path


@pytest.fixture
def server_and_client(tmp_path: Path, users: Path) -> Iterator[tuple[InProcessServer, httpx.Client]]:
    """A server that authenticates every request; `ann` may do everything, other users may read."""
    (tmp_path / "keys.json").write_bytes(httpx.Response(200, json=ISSUER.key_set).content)
    yield from open_server(
        authentication=("basic", "keys", "oidc"),
        password_file=str(users),
        oidc_issuer=ISSUER.url,
        oidc_audience=(ISSUER.audience,),
        oidc_jwks=str(tmp_path / "keys.json"),
        audit_file=str(tmp_path / "audit.jsonl"),
        access="deny",
        super_users=("user:ann",),
    )


@pytest.fixture
def client(server_and_client: tuple[InProcessServer, httpx.Client]) -> httpx.Client:
    """A client of that server, which keeps cookies as a browser does."""
    return server_and_client[1]


ISSUER = TokenIssuer()


def log_in(client: httpx.Client, user: str = "ann", password: str = "one", **fields: str) -> httpx.Response:
    """Return the response to the login form, sent as from a page of this server."""
    return client.post("/ui/login", data={"user": user, "password": password, **fields}, headers=OWN)


def test_a_page_leads_to_the_login_and_on_to_itself(client: httpx.Client) -> None:
    """A request without a session leads to the login and then back to its page; the session lasts until the logout."""
    sent = client.get("/ui/journal?kind=registered")
    assert (sent.status_code, "www-authenticate" in sent.headers) == (303, False)
    assert sent.headers["location"] == "/ui/login?next=%2Fjournal%3Fkind%3Dregistered"
    form = client.get(sent.headers["location"])
    assert form.status_code == 200
    stylesheet = re.search(r'href="([^"]+style\.css)"', form.text)
    assert stylesheet is not None
    assert client.get(stylesheet[1]).status_code == 200
    done = log_in(client, next="/journal?kind=registered")
    assert (done.status_code, done.headers["location"]) == (303, "/ui/journal?kind=registered")
    cookie = done.headers["set-cookie"]
    assert "; Path=/ui; Max-Age=28800; HttpOnly; SameSite=Strict" in cookie
    assert "Secure" not in cookie
    page = client.get(done.headers["location"])
    assert page.status_code == 200
    assert "ann" in page.text
    assert "Log out" in page.text
    ended = client.post("/ui/logout", headers=OWN)
    assert (ended.status_code, ended.headers["location"]) == (303, "/ui/login")
    assert client.get("/ui/journal").status_code == 303


def test_a_copy_of_a_cookie_ends_with_the_logout(client: httpx.Client) -> None:
    """A copy of the cookie is invalid after the logout, and the next login creates another session."""
    log_in(client)
    cookie = client.cookies[COOKIE]
    client.post("/ui/logout", headers=OWN)
    copied = {"cookie": f"{COOKIE}={cookie}"}
    assert client.get("/ui/journal", headers=copied).status_code == 303
    log_in(client)
    assert client.cookies[COOKIE] != cookie
    assert client.get("/ui/journal").status_code == 200


def test_another_node_takes_a_session_and_hears_of_its_end(tmp_path: Path, users: Path) -> None:
    """Nodes with the same key accept each other's sessions, and a logout on one node is valid on all."""
    (tmp_path / "key").write_bytes(b"k" * 32)
    settings = ServerSettings(
        store=f"sqlite:///{tmp_path}/store.db",
        authentication=("basic",),
        password_file=str(users),
        ui_session_key=f"file:{tmp_path}/key",
    )
    nodes = [InProcessServer(settings) for _ in range(2)]
    try:
        one, other = (
            httpx.Client(transport=InProcessTransport(each), base_url="http://127.0.0.1:8081") for each in nodes
        )
        log_in(one)
        copied = {"cookie": f"{COOKIE}={one.cookies[COOKIE]}"}
        assert other.get("/ui/journal", headers=copied).status_code == 200
        one.post("/ui/logout", headers=OWN)
        other.get("/subjects", auth=("ann", "one"))  # A list is read from the end of the log.
        assert other.get("/ui/journal", headers=copied).status_code == 303
    finally:
        for each in nodes:
            each.stop()


def test_tokens_and_keys_log_in(client: httpx.Client) -> None:
    """A token and an API key are taken, an expired token is not, and a revoked key ends its session."""
    now = int(time.time())
    assert log_in(client, "", "", token=ISSUER.sign_token(sub="ann", exp=now + 3600)).status_code == 303
    assert client.get("/ui/journal").status_code == 200
    client.cookies.clear()
    assert log_in(client, "", "", token=ISSUER.sign_token(sub="ann", exp=now - 3600)).status_code == 422
    assert COOKIE not in client.cookies
    api_key = client.post("/api/access/keys", content='{"name": "ann"}', headers=JSON, auth=("ann", "one")).json()
    assert log_in(client, "", "", token=api_key["key"]).status_code == 303
    assert client.get("/ui/journal").status_code == 200
    client.delete(f"/api/access/keys/{api_key['id']}", auth=("ann", "one"))
    assert client.get("/ui/journal").status_code == 303


def test_wrong_credentials_are_refused_alike_and_noted(client: httpx.Client, tmp_path: Path) -> None:
    """A wrong password and an unknown user get the same response, no cookie and no browser dialog, and are audited."""
    answers = [log_in(client, "ann", "wrong"), log_in(client, "nobody", "one")]
    for each in answers:
        assert (each.status_code, "www-authenticate" in each.headers, "set-cookie" in each.headers) == (
            422,
            False,
            False,
        )
        assert "The credentials are not valid" in each.text
        assert "wrong" not in each.text
    assert log_in(client, "", "").status_code == 422
    deadline = time.monotonic() + 60
    while (tmp_path / "audit.jsonl").read_text().count('"path":"/ui/login"') < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "wrong" not in (tmp_path / "audit.jsonl").read_text()


def test_sessions_count_for_pages_of_this_server_only(client: httpx.Client) -> None:
    """The cookie gives no access to APIs; a change needs an `Origin` header with the origin of this server."""
    log_in(client)
    cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
    assert client.get("/subjects", headers=cookie).status_code == 401
    assert client.get("/api/journal", headers=cookie).status_code == 401
    form = {"action": "save", "policy": "FULL"}
    assert client.post("/ui/policy", data=form, headers=FOREIGN).status_code == 403
    assert client.post("/ui/policy", data=form).headers["location"].startswith("/ui/login")
    assert client.get("/ui/policy.json").json()["answer"]["name"] == "BACKWARD"
    assert client.post("/ui/policy", data=form, headers=OWN).headers["location"].endswith("done=policy")


def test_another_site_cannot_log_somebody_in_or_out(client: httpx.Client) -> None:
    """A form of another site neither begins nor ends a session."""
    form = {"user": "bob", "password": "two"}
    assert client.post("/ui/login", data=form, headers=FOREIGN).status_code == 403
    assert COOKIE not in client.cookies
    log_in(client)
    assert client.post("/ui/logout", headers=FOREIGN).status_code == 403
    assert client.get("/ui/journal").status_code == 200


def test_planted_and_forged_cookies_are_none(client: httpx.Client) -> None:
    """A cookie that was planted beside another, changed, cut or made up is no session and no error."""
    log_in(client)
    good = client.cookies[COOKIE]
    client.cookies.clear()
    changed = good[:-2] + ("AA" if good[-2:] != "AA" else "BB")
    for value in ("", "x", "%", "é", good[:20], changed, "A" * 5000):
        header = {"cookie": f"{COOKIE}={value}".encode()}
        assert client.get("/ui/journal", headers=header).status_code == 303, value
    twice = {"cookie": f"{COOKIE}={good}; {COOKIE}={good}"}
    assert client.get("/ui/journal", headers=twice).status_code == 303
    assert client.get("/ui/journal", headers={"cookie": f"a=b; {COOKIE}={good}"}).status_code == 200


def test_a_session_ends_with_time_and_with_its_password(
    client: httpx.Client, users: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session ends after its maximum length, and when its user is removed from the password file."""
    log_in(client)
    assert client.get("/ui/journal").status_code == 200
    with monkeypatch.context() as later:
        later.setattr(browser_sessions, "time", SimpleNamespace(time=lambda: 10**10))
        header = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        assert client.get("/ui/journal", headers=header).status_code == 303
    users.write_text(bcrypt_line("bob", "two"))
    deadline = time.monotonic() + 60
    while client.get("/ui/journal").status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(
    "place",
    ["//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nset-cookie: a=b", "javascript:alert(1)"],
)
def test_the_login_leads_to_pages_of_this_server_only(client: httpx.Client, place: str) -> None:
    """The login redirects to a page below `/ui` only, whatever address its link contains."""
    location = log_in(client, next=place).headers["location"]
    assert location.startswith("/ui")
    assert "\n" not in location
    assert httpx.URL("http://here/ui").join(location).host == "here"


def test_rights_decide_and_names_are_text(client: httpx.Client) -> None:
    """A missing right of a logged-in user is named on an error page; a user name with markup is shown as text."""
    assert log_in(client, SCRIPT, "three").status_code == 303
    page = client.get("/ui/audit")
    assert page.status_code == 403
    assert "read-audit" in page.text
    assert SCRIPT not in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    wrong = log_in(client, SCRIPT, "wrong")
    assert SCRIPT not in wrong.text


def test_the_cookie_is_secure_with_tls(client: httpx.Client) -> None:
    """The cookie of pages that are reached by https is sent by https only."""
    response = client.post(
        "https://127.0.0.1:8081/ui/login",
        data={"user": "ann", "password": "one"},
        headers={"origin": "https://127.0.0.1:8081"},
    )
    assert "; Secure" in response.headers["set-cookie"]


def test_partial_updates_lead_the_whole_page_to_the_login(client: httpx.Client) -> None:
    """After the end of a session, a partial update of a page redirects the whole page to the login."""
    answer = client.get("/ui/journal", headers={"hx-request": "true"})
    assert (answer.status_code, answer.headers["hx-redirect"]) == (200, "/ui/login?next=%2Fjournal")
    assert client.get("/ui/journal.json").status_code == 401


def test_there_is_no_login_where_nobody_is_asked() -> None:
    """A server without authentication has no login page, nor has one with `ui_session_seconds = 0`."""
    for _, open_client in open_server():
        assert open_client.get("/ui/login").status_code == 404
        assert "Log in" not in open_client.get("/ui").text


def test_what_anybody_may_see_shows_a_link_to_the_login(users: Path) -> None:
    """If requests without credentials are allowed, pages open for anonymous callers and offer a login."""
    for _, client in open_server(authentication=("basic",), password_file=str(users), anonymous=True):
        before = client.get("/ui")
        assert before.status_code == 200
        assert 'href="/ui/login"' in before.text
        log_in(client)
        assert "Log out" in client.get("/ui").text
        client.cookies.clear()
        assert "Log out" not in client.get("/ui").text
