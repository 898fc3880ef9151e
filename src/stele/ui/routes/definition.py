"""The definition of a schema: the text of a version in several forms, and code that reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec
from litestar import Request, Response, get

from stele.apis.http.access import access
from stele.core.access import Operation
from stele.core.model import Version
from stele.core.ports import TextForm
from stele.errors import InvalidRequest, SteleError
from stele.ui.highlight import highlight_text
from stele.ui.links import subject_path
from stele.ui.pages import Page, PageRequest
from stele.ui.subject import SubjectHead, find_subject, find_version, make_tab

FORMS: Final = ("author", "indented", "normalized", "canonical")
"""Forms of a text: the author's text, the same indented, and two forms that the format prints."""
_LONG_LINE: Final = 100
_JSON_FORMATS: Final = frozenset({"avro", "json"})
_EXTENSIONS: Final = {"avro": "avsc", "json": "json", "protobuf": "proto", "thrift": "thrift", "xsd": "xsd"}


class Snippet(msgspec.Struct, frozen=True):
    """A command or code to copy that reads the schema with another tool."""

    label: str
    text: str


class MetadataEntry(msgspec.Struct, frozen=True):
    """A property of a version's metadata."""

    name: str
    value: str


class DefinitionPage(msgspec.Struct, frozen=True):
    """The text of a version.

    form      form in which the text is shown
    forms     available forms
    text      None if the text was purged or the subject has no version
    problem   why the text cannot be shown in that form; '' if it can
    bytes     length of the author's text, in bytes
    at        time of the registration (ms since 1970 UTC)
    download  path of the author's text as a file, below `/ui`
    """

    head: SubjectHead
    form: str
    forms: Sequence[str]
    text: str | None
    problem: str
    bytes: int
    at: int
    created_by: str
    description: str
    metadata: Sequence[MetadataEntry]
    download: str
    snippets: Sequence[Snippet]


async def view_definition(page: PageRequest) -> DefinitionPage:
    """Show the text of a version: the author's, or in a form that the format prints."""
    subject_view = await find_subject(page)
    version = subject_view.version
    form = page.get_query("form")
    if form and form not in FORMS:
        raise InvalidRequest(f"form must be one of {', '.join(FORMS)}")
    if version is None:
        return DefinitionPage(subject_view.head, "author", (), None, "", 0, 0, "", "", (), "", ())
    raw = subject_view.state.get_text(version.content)
    text, problem = raw.decode("utf-8", "replace"), ""
    forms = FORMS if version.kind.format in _JSON_FORMATS else tuple(each for each in FORMS if each != "indented")
    if not form:
        form = "indented" if "indented" in forms and _is_one_long_line(text) else "author"
    try:
        text = await _print_form(page, version, text, form)
    except (SteleError, ValueError, RecursionError) as error:
        problem = f"The text cannot be shown in this form: {error}"
    attributes = version.attributes
    path = subject_path(subject_view.key, "download")
    return DefinitionPage(
        head=subject_view.head,
        form=form,
        forms=forms,
        text=text if raw else None,
        problem=problem,
        bytes=len(raw),
        at=version.at,
        created_by=attributes.created_by if attributes is not None else "",
        description=attributes.description if attributes is not None else "",
        metadata=_list_metadata(version),
        download=f"{path}?version={version.version_number}",
        snippets=_list_snippets(page, version),
    )


def _is_one_long_line(text: str) -> bool:
    return len(text) > _LONG_LINE and "\n" not in text.strip()


async def _print_form(page: PageRequest, version: Version, text: str, form: str) -> str:
    """Return a text in another form. Raises `SteleError` or `ValueError` where that cannot be done."""
    if form == "author":
        return text
    if form == "indented":
        return await page.registry.run_stateless(_indent_json, text)
    fmt, parsed = await page.registry.parser.parse_registered(
        page.registry.state, version.kind.format, version.content.sha, version.schema.attachments.references
    )
    printed = await page.registry.run_stateless(fmt.canonical, parsed, TextForm(form))
    return printed.decode("utf-8", "replace")


def _indent_json(text: str) -> str:
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)


def _list_metadata(version: Version) -> list[MetadataEntry]:
    metadata = version.schema.attachments.metadata
    properties = (metadata.properties or {}) if metadata is not None else {}
    hidden = metadata.sensitive or () if metadata is not None else ()
    return [MetadataEntry(name, "(hidden)" if name in hidden else value) for name, value in properties.items()]


def _list_snippets(page: PageRequest, version: Version) -> list[Snippet]:
    """Return commands and code that read a version with other tools."""
    key, number = version.subject.key, version.version_number
    name = key.name if not key.namespace else f":.{key.namespace}:{key.name}"
    root, segment = page.base_uri, quote(name, safe="")
    return [
        Snippet("curl", f"curl '{root}/subjects/{segment}/versions/{number}/schema'"),
        Snippet(
            "Python",
            "from stele.client import SchemaRegistryClient\n\n"
            f"with SchemaRegistryClient({root!r}) as registry:\n"
            f"    version = registry.version({name!r}, {number})\n"
            "    print(version.schema.text)",
        ),
        Snippet(
            "PySpark",
            "from stele.spark import from_registry\n\n"
            f'rows = from_registry(stream, "value", subject={name!r}, registry={root!r})',
        ),
    ]


@get("/ui/subjects/{name:str}/download", opt=access(Operation.READ))
async def download_text(request: Request[Any, Any, Any]) -> Response[bytes]:
    # GET /ui/subjects/{name}/download
    """Send the author's text of a version as a file."""
    subject_view, version = await find_version(PageRequest(request))
    extension = _EXTENSIONS.get(version.kind.format, "txt")
    stem = "".join(
        char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in subject_view.key.name
    )
    file = f"{stem[:100]}-v{version.version_number}.{extension}"
    return Response(
        subject_view.state.get_text(version.content),
        media_type="text/plain",
        headers={"content-disposition": f'attachment; filename="{file}"'},
    )


ROUTES: Final = (download_text,)
"""The endpoint that sends a text as a file."""


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [make_tab("definition", view_definition, highlight=highlight_text)]
