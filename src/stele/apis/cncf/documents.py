"""Documents in answers: a version's bytes and what is said about it in headers."""

from __future__ import annotations

from urllib.parse import quote

from litestar import Response

from stele.apis.cncf import translate
from stele.apis.cncf.desk import Desk, origin_uri
from stele.apis.cncf.languages import azure_type_of, content_type_of, language_of, name_of
from stele.apis.cncf.names import group_of
from stele.apis.cncf.translate import header_out, time_out
from stele.core.model import Version
from stele.core.state import State

_INERT = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}
"""Keeps browsers from running a document that says it is a page."""


def identified(desk: Desk, version: Version) -> dict[str, str]:
    """The headers that name a version, here and in every registry that has a copy."""
    key, uri = version.subject.key, desk.uri_of(version)
    return {
        "Location": f"{desk.base}/{desk.path_of(version)}",
        "Schema-Id": translate.uid_out(version),
        "Schema-Id-Location": f"{desk.base}/schema?uri={quote(uri, safe='')}",
        "Schema-Group-Name": header_out(group_of(key.namespace)),
        "Schema-Name": header_out(key.name),
        "Schema-Version": str(version.version_number),
        "Schema-Version-Id": origin_uri(version) or desk.path_of(version),
        "Schema-Version-Uri": uri,
    }


def described(desk: Desk, state: State, version: Version) -> dict[str, str]:
    """All headers of a version: those that name it, and the attributes of its schema and of itself."""
    subject = version.subject
    space = state.find_namespace(subject.key.namespace)
    written = translate.kept(subject.dialect_data).get("format") or translate.kept(
        space.dialect_data if space else None
    ).get("format")
    headers = {
        "Schema-Format": name_of(language_of(version.kind), written or "", desk.registry.parser.list_format_names()),
        "Schema-Description": subject.description,
        "Schema-Version-Description": version.attributes.description if version.attributes is not None else "",
        "Schema-Created-Time-Utc": time_out(subject.at),
        "Schema-Updated-Time-Utc": time_out(translate.updated_at(subject)),
        "Schema-Version-Created-Time-Utc": time_out(version.at),
    }
    told = {name: header_out(value) for name, value in headers.items() if value}
    authority = translate.authority_of(subject)
    return {**identified(desk, version), **({"Schema-Authority": authority} if authority else {}), **told}


def document(desk: Desk, state: State, version: Version) -> Response[bytes]:
    """The document as it was posted, with the content type it came with."""
    text = state.get_text(version.content)
    content_type = _kept_type(version) or content_type_of(version.kind, text)
    headers = {**described(desk, state, version), **_INERT, "Content-Type": content_type}
    return Response(text, headers=headers)


# --- the Azure flavour ----------------------------------------------------------------------------------------------


def azure_identified(desk: Desk, version: Version) -> dict[str, str]:
    """The headers that name a version."""
    key = version.subject.key
    group = f"{desk.base}/$schemaGroups"
    schema = f"{group}/{quote(group_of(key.namespace), safe='')}/schemas/{quote(key.name, safe='')}"
    uid = translate.uid_out(version)
    return {
        "Location": f"{schema}/versions/{version.version_number}",
        "Schema-Id": uid,
        "Schema-Id-Location": f"{group}/$schemas/{uid}",
        "Schema-Group-Name": header_out(group_of(key.namespace)),
        "Schema-Name": header_out(key.name),
        "Schema-Version": str(version.version_number),
    }


def azure_document(desk: Desk, state: State, version: Version) -> Response[bytes]:
    """The document with one of the four content types clients know."""
    content_type = azure_type_of(version.kind, _kept_type(version))
    headers = {**azure_identified(desk, version), **_INERT, "Content-Type": content_type}
    return Response(state.get_text(version.content), headers=headers)


def _kept_type(version: Version) -> str:
    return version.attributes.media_type if version.attributes is not None else ""
