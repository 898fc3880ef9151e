"""Pages with a form. A submitted form is shown again with its problems, or it is carried out.

A form is sent to the address of its page, or with `.json` behind it to the JSON twin. The body is that of a browser's
form, or a JSON object. Requests that another site made the browser send are rejected by `server.site_guard`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

import msgspec
from litestar import Request, Response, post
from litestar.datastructures import UploadFile
from litestar.exceptions import HTTPException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers import HTTPRouteHandler

from stele.apis.http.requests import decode_body, read_bytes
from stele.errors import InvalidRequest, TooLarge
from stele.ui.pages import Page, PageFrame, PageRequest, create_handlers, render_page

CHANGES_NOTHING: Final = "stele_changes_nothing"
"""Option of a POST endpoint that only reads. Read-only pages serve such endpoints."""
_MOST_VALUES: Final = 500
_FORM: Final = "application/x-www-form-urlencoded"
_UPLOAD: Final = "multipart/form-data"


class FieldProblem(msgspec.Struct, frozen=True):
    """A problem with a field of a form.

    field    its name; '' for the form as a whole
    message  what is wrong, and what would be right
    line     line of the field's text, from 1; None if the problem is not about a line
    """

    field: str
    message: str
    line: int | None = None


class Destination(msgspec.Struct, frozen=True):
    """The page to which a successful form redirects; location is its path below `/ui`."""

    location: str


class Form:
    """Values and files of a submitted form.

    Args:
        values: Values of the fields, by name; several values of one name keep their order.
        files: Uploaded files that are not empty, by name of the field.
    """

    def __init__(self, values: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None = None) -> None:
        self._values = values
        self.files = files or {}

    def get(self, name: str, default: str = "") -> str:
        """Return the last value of a field, or the default if the field is missing."""
        values = self._values.get(name)
        return values[-1] if values else default

    def get_all(self, name: str) -> Sequence[str]:
        """Return all values of a field."""
        return self._values.get(name, ())


async def read_form(request: Request[Any, Any, Any]) -> Form:
    """Return the form in the body of a request. Raises `InvalidRequest`, `TooLarge`."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == _UPLOAD:
        return await _read_upload(request)
    if media_type == "application/json":
        body = decode_body(await read_bytes(request), dict[str, str | list[str] | int | bool | None])
        return Form({name: _list_values(value) for name, value in body.items()})
    if media_type not in {_FORM, ""}:
        raise InvalidRequest(f"a form must be sent as {_FORM}, {_UPLOAD} or application/json, not as {media_type}")
    text = (await read_bytes(request)).decode("utf-8", "replace")
    try:
        return Form(parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_VALUES))
    except ValueError:
        raise TooLarge(f"a form may have at most {_MOST_VALUES} fields") from None


def _list_values(value: Any) -> list[str]:
    if isinstance(value, list):
        return value
    return [] if value is None else [str(value).lower() if isinstance(value, bool) else str(value)]


async def _read_upload(request: Request[Any, Any, Any]) -> Form:
    try:
        sent = await request.form()
    except RequestEntityTooLarge:
        raise
    except HTTPException as error:
        raise InvalidRequest(f"the form cannot be read: {error.detail}") from None
    except (ValueError, UnicodeDecodeError):
        raise InvalidRequest("the form cannot be read") from None
    values: dict[str, list[str]] = {}
    files: dict[str, bytes] = {}
    for name, value in sent.multi_items():
        if isinstance(value, UploadFile):
            body = await value.read()
            if body:
                files[name] = body
        else:
            values.setdefault(name, []).append(str(value))
    return Form(values, files)


Submit = Callable[[PageRequest, Form], Awaitable[msgspec.Struct]]
"""Carries out a form. Returns the content of its page (`problems` holds what is wrong), or a `Destination`."""


class FormPage(NamedTuple):
    """A page with a form.

    page       the page with the empty form
    submit     carries out a submitted form; its name and docstring are those of the endpoint
    right      the right that is needed to submit it
    asks_only  whether submitting it changes nothing
    """

    page: Page
    submit: Submit
    right: dict[str, Any]
    asks_only: bool = False


def create_form_handlers(form_page: FormPage) -> list[HTTPRouteHandler]:
    """Return the endpoints of a page with a form: GET and POST, each as HTML and as JSON."""
    page = form_page.page
    opt = form_page.right | ({CHANGES_NOTHING: True} if form_page.asks_only else {})

    async def submit_form(request: Request[Any, Any, Any]) -> Response[bytes]:
        page_request = PageRequest(request)
        content = await form_page.submit(page_request, await read_form(request))
        if isinstance(content, Destination):
            target = PageFrame(page_request, "", None).link(content.location)
            return Response(b"", status_code=303, headers={"location": target})
        render = partial(
            render_page,
            page_request,
            page.template,
            content,
            current=page.menu,
            status=_find_status(content),
            **page.helpers,
        )
        return await page_request.registry.run_stateless(render) if page.in_thread else render()

    async def submit_json(request: Request[Any, Any, Any]) -> Response[bytes]:
        content = await form_page.submit(PageRequest(request), await read_form(request))
        return Response(msgspec.json.encode(content), status_code=_find_status(content), media_type="application/json")

    handlers = create_handlers(page)
    twin = page.twin or f"{page.path}.json"
    for path, endpoint, suffix in ((page.path, submit_form, ""), (twin, submit_json, "_json")):
        endpoint.__name__ = endpoint.__qualname__ = form_page.submit.__name__ + suffix
        endpoint.__doc__ = form_page.submit.__doc__
        handlers.append(post(path, opt=opt, status_code=200)(endpoint))
    return handlers


def _find_status(content: msgspec.Struct) -> int:
    return 422 if getattr(content, "problems", ()) else 200
