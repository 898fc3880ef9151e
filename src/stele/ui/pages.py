"""Pages: a view function and a template, served as HTML and, at the address with `.json`, as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote, urlsplit

import msgspec
from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler

from stele import __version__
from stele.apis.http.access import get_app_state, parse_single
from stele.apis.http.requests import decode_segment, find_base_uri, mounted_prefix
from stele.core.access import REGISTRY_RESOURCE, Operation, Resource, ResourceType
from stele.core.model import SettingsLevel, SubjectKey
from stele.errors import InvalidName
from stele.service.access import CALLER
from stele.service.audit import AuditReader
from stele.service.field_index import FieldIndex
from stele.service.policies import parse_level_name
from stele.service.refusals import RefusalCounter
from stele.service.registry import Registry
from stele.service.subject_index import SubjectIndex
from stele.service.usage import Usage
from stele.templates import render_template
from stele.ui.assets import asset_path
from stele.ui.links import add_query, subject_path
from stele.ui.navigation import MENU, MenuItem
from stele.ui.open_feeds import OpenFeeds
from stele.ui.options import UiOptions

_POLICY: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
)
HEADERS: Final = MappingProxyType({"content-security-policy": "; ".join(_POLICY), "referrer-policy": "same-origin"})
"""Headers of every page: it loads scripts and styles from this server only, and no other page may frame it."""

READING: Final = frozenset(
    {
        Operation.LIST,
        Operation.READ,
        Operation.READ_KEYS,
        Operation.READ_AUDIT,
        Operation.EXPORT,
        Operation.MANAGE_ACCESS,
        Operation.MANAGE_EXPORTERS,
    }
)
"""Operations that read-only pages offer."""


DONE: Final = MappingProxyType(
    {
        "registered": "The version is registered.",
        "same": "The same schema was registered already. Nothing changed.",
        "policy": "The policy is set.",
        "mode": "The mode is set.",
        "deleted": "Deleted. Its ids are still answered, and it can be recovered.",
        "purged": "Deleted for good.",
        "recovered": "Recovered: it is the newest version now.",
        "adopted": "The registry decides by this version from now on.",
        "paused": "Paused. Nothing is lost: it goes on from there.",
        "resumed": "Resumed.",
        "created": "Created. It begins at once, unless it is paused.",
        "changed": "Changed. It goes on with what you saved.",
        "reset": "Reset: it carries everything over again from the beginning.",
        "ended": "Deleted. What it copied stays where it is.",
    }
)
"""Message of a page about the change that led to it, by the value of `done` in its query."""


class Control(msgspec.Struct, frozen=True):
    """A link or button for an action of the caller.

    label    its text
    href     path of the page or form, below `/ui`
    refusal  why the action is not offered, such as a missing right; '' if it is
    """

    label: str
    href: str
    refusal: str = ""


class MenuEntry(NamedTuple):
    """An entry of the menu as a page shows it."""

    label: str
    href: str
    is_current: bool
    refusal: str


class MenuSection(NamedTuple):
    """Entries of the menu that stand below one heading."""

    label: str
    entries: Sequence[MenuEntry]


class Site:
    """State that all pages of one server share.

    Args:
        registry: The registry that the pages show.
        options: Options of the pages.
    """

    def __init__(self, registry: Registry, options: UiOptions) -> None:
        self.registry = registry
        self.options = options
        self.subjects = SubjectIndex(registry)
        self.fields = FieldIndex(registry)
        self.usage = Usage(registry)
        self.audit = AuditReader(registry)
        self.refused = RefusalCounter(registry.audit)
        self.feeds = OpenFeeds()


class PageRequest:
    """A request for a page: the registry, the caller's rights, and the parameters of path and query.

    Args:
        request: The HTTP request.
    """

    def __init__(self, request: Request[Any, Any, Any]) -> None:
        self.site = cast("Site", get_app_state(request.scope))
        self.registry = self.site.registry
        self.options = self.site.options
        self.request = request

    def get_query(self, name: str, default: str = "") -> str:
        """Return a value of the query. Raises `InvalidRequest` where it is given more than once."""
        return parse_single(self.request, name) or default

    def get_segment(self, name: str) -> str:
        """Return a parameter of the path, decoded."""
        return decode_segment(self.request.path_params[name])

    @property
    def level(self) -> SettingsLevel:
        """The registry, namespace or subject that the path names. Raises `InvalidName`."""
        return parse_level_name(decode_segment(self.request.path_params.get("name", "")))

    @property
    def subject(self) -> SubjectKey:
        """The subject that the path names. Raises `InvalidName`."""
        level = self.level
        if level.namespace is None or level.subject is None:
            raise InvalidName(self.get_segment("name"), "names no subject")
        return SubjectKey(level.namespace, level.subject)

    @property
    def base_uri(self) -> str:
        """Base URI of the server as the caller knows it, without a slash at its end."""
        return find_base_uri(self.request, self.options.public_url)

    @property
    def caller_name(self) -> str:
        """Name of the caller; '' for an anonymous caller."""
        return CALLER.get().principal.name

    def find_refusal(
        self, operation: Operation, resource: Resource = REGISTRY_RESOURCE, *, is_change: bool = False
    ) -> str:
        """Return why these pages do not offer an operation to the caller, for a disabled control; '' if they do.

        `is_change` states that the action changes something although the operation is one of `READING`.
        """
        if self.options.read_only and (is_change or operation not in READING):
            return "These pages are read-only (setting ui_read_only)."
        if self.registry.access.is_open or self.registry.access.allows(operation, resource):
            return ""
        return f"You need the right `{operation}` on {_describe_resource(resource)}."

    def make_control(
        self, label: str, href: str, operation: Operation, resource: Resource = REGISTRY_RESOURCE
    ) -> Control:
        """Return a link to a page for an action. It is disabled, with the reason, if the caller lacks the right."""
        return Control(label, href, self.find_refusal(operation, resource))


def _describe_resource(resource: Resource) -> str:
    """Return a resource in words."""
    match resource.type:
        case ResourceType.REGISTRY:
            return "the registry"
        case ResourceType.NAMESPACE:
            return f"the namespace {resource.namespace}" if resource.namespace else "the default namespace"
        case _:
            return f"the {resource.type} {resource.name}"


class PageFrame:
    """The parts around the content of every page, such as the menu. Templates access it as `frame`.

    Args:
        page: The request.
        twin: Path of the page's JSON twin below `/ui`, with its query; '' for none.
        current: Path of the menu entry that the page belongs to; None for none.
    """

    def __init__(self, page: PageRequest, twin: str, current: str | None) -> None:
        base = urlsplit(page.options.public_url).path.rstrip("/") if page.options.public_url else ""
        self.server_root = base + mounted_prefix(page.request)
        self.root = f"{self.server_root}/ui"
        self.twin = twin
        self.options = page.options
        self.version = __version__
        self.caller_name = page.caller_name
        log_in = page.options.log_in
        self.can_log_in = log_in is not None and not page.caller_name
        self.can_log_out = log_in is not None and log_in.has_session(tuple(page.request.scope["headers"]))
        self.base_uri = page.base_uri
        self.query = page.request.query_params.get("q", "")
        self.done = DONE.get(page.request.query_params.get("done", ""), "")
        self.menu = [
            MenuSection(label, [self._make_entry(page, item, current) for item in items])
            for label, items in groupby(MENU, key=lambda item: item.section)
        ]
        self._queries = page.request.query_params.items()

    def _make_entry(self, page: PageRequest, item: MenuItem, current: str | None) -> MenuEntry:
        refusal = page.find_refusal(item.right) if item.right is not None else ""
        return MenuEntry(item.label, self.link(item.path), current == item.path, refusal)

    def link(self, path: str, **query: Any) -> str:
        """Return the address of a page from its path below `/ui`."""
        return add_query(self.root + path, query)

    def subject_link(self, namespace: str, name: str, tab: str = "", **query: Any) -> str:
        """Return the address of a subject's page."""
        return self.link(subject_path(SubjectKey(namespace, name), tab), **query)

    def asset(self, name: str) -> str:
        """Return the address of a file that the page loads."""
        return self.root + asset_path(name)

    def vary(self, **changes: Any) -> str:
        """Return a link to this page with some values of its query changed; None, '' and False leave one out."""
        return "?" + add_query("", dict(self._queries) | changes).removeprefix("?")


View = Callable[[PageRequest], Awaitable[msgspec.Struct]]
"""Returns the content of a page, as a struct that is the source of both HTML and JSON."""


class Page(NamedTuple):
    """A page: its path, its content and its template.

    path      path below the server's root, such as `/ui/subjects/{name:str}/fields`
    view      returns its content; its name and docstring are those of the endpoint
    template  file of its template
    right     the right that it needs, as an option of the endpoint (`access(…)`)
    menu      path of its entry in the menu; None for none
    twin      path of its JSON twin; '' is the path with `.json` behind it
    aliases   more paths of the page, without twins of their own
    helpers   functions and texts that the template uses besides the content
    in_thread whether its HTML is rendered in a thread, because that takes so long that it would block other requests
    """

    path: str
    view: View
    template: str
    right: dict[str, Any]
    menu: str | None = None
    twin: str = ""
    aliases: Sequence[str] = ()
    helpers: Mapping[str, Any] = MappingProxyType({})
    in_thread: bool = False


def create_handlers(page: Page) -> list[HTTPRouteHandler]:
    """Return the two endpoints of a page: HTML and its JSON twin."""
    twin = page.twin or f"{page.path}.json"

    async def show_page(request: Request[Any, Any, Any]) -> Response[bytes]:
        page_request = PageRequest(request)
        content = await page.view(page_request)
        render = partial(
            render_page,
            page_request,
            page.template,
            content,
            twin=_fill_path(twin, request),
            current=page.menu,
            **page.helpers,
        )
        return await page_request.registry.run_stateless(render) if page.in_thread else render()

    async def show_twin(request: Request[Any, Any, Any]) -> Response[bytes]:
        body = msgspec.json.encode(await page.view(PageRequest(request)))
        return Response(body, media_type="application/json")

    handlers = []
    for paths, endpoint, suffix in (([page.path, *page.aliases], show_page, ""), ([twin], show_twin, "_json")):
        endpoint.__name__ = endpoint.__qualname__ = page.view.__name__ + suffix
        endpoint.__doc__ = page.view.__doc__
        handlers.append(get(paths, opt=page.right)(endpoint))
    return handlers


def _fill_path(template: str, request: Request[Any, Any, Any]) -> str:
    """Return the address of a twin, below `/ui`: its path with the parameters of a request, and the same query."""
    path = template.removeprefix("/ui")
    for name, value in request.path_params.items():
        path = path.replace(f"{{{name}:str}}", quote(decode_segment(str(value)), safe=""))
    query = request.scope["query_string"].decode("ascii", "replace")
    return f"{path}?{query}" if query else path


def render_page(
    page: PageRequest,
    template: str,
    content: msgspec.Struct,
    *,
    twin: str = "",
    current: str | None = None,
    status: int = 200,
    **values: Any,
) -> Response[bytes]:
    """Return the HTML of a page.

    Args:
        page: The request.
        template: File of its template. It accesses the content as `page` and the parts around it as `frame`.
        content: What the page shows.
        twin: See `PageFrame`.
        current: See `PageFrame`.
        status: HTTP status.
        values: More values for the template.
    """
    html = render_template("stele.ui", template, page=content, frame=PageFrame(page, twin, current), **values)
    return Response(html.encode("utf-8", "replace"), status_code=status, media_type="text/html", headers=dict(HEADERS))
