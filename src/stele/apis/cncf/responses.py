"""Responses with a document, and the headers that describe its version."""

from __future__ import annotations

from urllib.parse import quote

from litestar import Response

from stele.apis.cncf import translate
from stele.apis.cncf.operations import Operations
from stele.apis.cncf.translate import azure_content_type, default_content_type, encode_header, format_name, origin_uri
from stele.apis.http.application import INERT_HEADERS
from stele.core.model import Version
from stele.core.state import State
from stele.protocol.cncf import authority_of, group_id_of, own_data
from stele.service.times import format_time


def identity_headers(operations: Operations, version: Version) -> dict[str, str]:
    """Return the headers that identify a version, here and in every registry that has a copy."""
    key, uri = version.subject.key, operations.uri_of(version)
    return {
        "Location": f"{operations.base}/{operations.path_of(version)}",
        "Schema-Id": translate.format_uid(version),
        "Schema-Id-Location": f"{operations.base}/schema?uri={quote(uri, safe='')}",
        "Schema-Group-Name": encode_header(group_id_of(key.namespace)),
        "Schema-Name": encode_header(key.name),
        "Schema-Version": str(version.version_number),
        "Schema-Version-Id": origin_uri(version) or operations.path_of(version),
        "Schema-Version-Uri": uri,
    }


def version_headers(operations: Operations, state: State, version: Version) -> dict[str, str]:
    """Return all headers of a version: those that identify it, and the attributes of its schema and its own."""
    subject = version.subject
    namespace = state.find_namespace(subject.key.namespace)
    written = own_data(subject.dialect_data).get("format") or own_data(
        namespace.dialect_data if namespace else None
    ).get("format")
    headers = {
        "Schema-Format": format_name(
            version.kind.schema_format, written or "", operations.registry.parser.list_format_names()
        ),
        "Schema-Description": subject.description,
        "Schema-Version-Description": version.attributes.description if version.attributes is not None else "",
        "Schema-Created-Time-Utc": format_time(subject.at),
        "Schema-Updated-Time-Utc": format_time(translate.updated_at(subject)),
        "Schema-Version-Created-Time-Utc": format_time(version.at),
    }
    texts = {name: encode_header(value) for name, value in headers.items() if value}
    authority = authority_of(subject)
    return {**identity_headers(operations, version), **({"Schema-Authority": authority} if authority else {}), **texts}


def document_response(operations: Operations, state: State, version: Version) -> Response[bytes]:
    """Return a document as it was posted, with its content type."""
    text = state.get_text(version.content)
    content_type = _stored_content_type(version) or default_content_type(version.kind, text)
    headers = {**version_headers(operations, state, version), **INERT_HEADERS, "Content-Type": content_type}
    return Response(text, headers=headers)


# --- the Azure flavour ----------------------------------------------------------------------------------------------


def azure_identity_headers(operations: Operations, version: Version) -> dict[str, str]:
    """Return the headers that identify a version in the Azure flavour."""
    key = version.subject.key
    group = f"{operations.base}/$schemaGroups"
    schema = f"{group}/{quote(group_id_of(key.namespace), safe='')}/schemas/{quote(key.name, safe='')}"
    uid = translate.format_uid(version)
    return {
        "Location": f"{schema}/versions/{version.version_number}",
        "Schema-Id": uid,
        "Schema-Id-Location": f"{group}/$schemas/{uid}",
        "Schema-Group-Name": encode_header(group_id_of(key.namespace)),
        "Schema-Name": encode_header(key.name),
        "Schema-Version": str(version.version_number),
    }


def azure_document_response(operations: Operations, state: State, version: Version) -> Response[bytes]:
    """Return a document with one of the four content types that Azure's clients know."""
    content_type = azure_content_type(version.kind, _stored_content_type(version))
    headers = {**azure_identity_headers(operations, version), **INERT_HEADERS, "Content-Type": content_type}
    return Response(state.get_text(version.content), headers=headers)


def _stored_content_type(version: Version) -> str:
    return version.attributes.media_type if version.attributes is not None else ""
