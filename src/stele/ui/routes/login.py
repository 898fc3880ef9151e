"""Login to the pages, and logout."""

from __future__ import annotations

import re
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec
from litestar import Request, Response, get, post

from stele.apis.http.access import NO_RIGHT_NEEDED
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import ANSWERS_ANYBODY, find_base_uri
from stele.errors import Overloaded, Unauthenticated, Unavailable
from stele.service.access import CALLER
from stele.service.audit_notes import REFUSED_REQUEST
from stele.ui.forms import CHANGES_NOTHING, FieldProblem, read_form
from stele.ui.options import COOKIE, LogIn
from stele.ui.pages import PageFrame, PageRequest, render_page

_PLACE: Final = re.compile(r"/[!-~]{0,2000}\Z")
"""Path and query of a page below `/ui`, as a browser sends them."""
_OPTIONS: Final = NO_RIGHT_NEEDED | {ANSWERS_ANYBODY: True, CHANGES_NOTHING: True, VOLATILE: True}


class LoginPage(msgspec.Struct, frozen=True):
    """The login form.

    next             page after the login, below `/ui`
    takes_passwords  whether users can log in with a name and a password
    takes_tokens     whether users can log in with an API key or a token
    hours            maximum length of a session, in hours
    user             user name that was submitted
    """

    next: str
    takes_passwords: bool
    takes_tokens: bool
    hours: float
    user: str = ""
    problems: tuple[FieldProblem, ...] = ()


def login_path(path: str, query: str) -> str:
    """Return the path of the login page below `/ui` that leads to a page, given by its path there and its query."""
    place = f"{path}?{query}" if query else path
    return f"/login?next={quote(place, safe='')}" if _PLACE.match(place) else "/login"


def _read_next(text: str) -> str:
    """Return the page after the login, or '' if the text is not a page of this server."""
    return text if _PLACE.match(text) else ""


def _describe(log_in: LogIn, place: str, **more: Any) -> LoginPage:
    return LoginPage(place, log_in.takes_passwords, log_in.takes_tokens, round(log_in.seconds / 3600, 1), **more)


def _make_cookie(page: PageRequest, value: str, seconds: int) -> str:
    """Return the header that sets the cookie. Only these pages receive it; scripts and other sites cannot read it."""
    secure = "; Secure" if find_base_uri(page.request, page.options.public_url).startswith("https:") else ""
    path = PageFrame(page, "", None).root
    return f"{COOKIE}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def _go_to(page: PageRequest, path: str, cookie: str) -> Response[bytes]:
    headers = {"location": PageFrame(page, "", None).root + path, "set-cookie": cookie, "cache-control": "no-store"}
    return Response(b"", status_code=303, headers=headers)


def _get_log_in(page: PageRequest) -> LogIn:
    """Return the object that manages sessions. Without one, the application does not have these endpoints."""
    return cast("LogIn", page.options.log_in)


@get("/ui/login", opt=_OPTIONS)
async def show_login(request: Request[Any, Any, Any]) -> Response[bytes]:
    # GET /ui/login?next
    """Show the login form."""
    page = PageRequest(request)
    log_in = _get_log_in(page)
    return _show(page, _describe(log_in, _read_next(page.get_query("next"))))


@post("/ui/login", opt=_OPTIONS, status_code=303)
async def submit_login(request: Request[Any, Any, Any]) -> Response[bytes]:
    # POST /ui/login
    """Begin a session with a user and password, an API key or a token, and redirect to the requested page."""
    page = PageRequest(request)
    log_in, form = _get_log_in(page), await read_form(request)
    user, secret, token = form.get("user").strip(), form.get("password"), form.get("token").strip()
    place = _read_next(form.get("next"))
    if not token and not (user and secret):
        problem = FieldProblem("", "Type a user and a password, or a key or token.")
        return _show(page, _describe(log_in, place, user=user, problems=(problem,)), 422)
    port = (request.scope.get("server") or ("", 0))[1] or 0
    try:
        cookie = await log_in.begin("" if token else user, token or secret, port, CALLER.get().address)
    except Unauthenticated:
        page.registry.audit.note(
            REFUSED_REQUEST, status=401, error=Unauthenticated.__name__, method="POST", path="/ui/login"
        )
        problem = FieldProblem("", "The credentials are not valid, or they have expired.")
        return _show(page, _describe(log_in, place, user=user, problems=(problem,)), 422)
    except (Overloaded, Unavailable):
        problem = FieldProblem("", "That cannot be checked just now. Try again in a moment.")
        return _show(page, _describe(log_in, place, user=user, problems=(problem,)), 503)
    return _go_to(page, place, _make_cookie(page, cookie, log_in.seconds))


@post("/ui/logout", opt=_OPTIONS, status_code=303)
async def submit_logout(request: Request[Any, Any, Any]) -> Response[bytes]:
    # POST /ui/logout
    """End the session."""
    page = PageRequest(request)
    await _get_log_in(page).end(tuple(request.scope["headers"]))
    return _go_to(page, "/login", _make_cookie(page, "", 0))


ROUTES: Final = (show_login, submit_login, submit_logout)
"""The endpoints to log in and out, for pages with `UiOptions.log_in`."""


def _show(page: PageRequest, content: LoginPage, status: int = 200) -> Response[bytes]:
    answer = render_page(page, "login.html.j2", content, status=status)
    answer.headers["cache-control"] = "no-store"
    return answer
