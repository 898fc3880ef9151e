"""Calls about schemas, each a function that builds its request. The clients offer them all as methods.

The comment at the start of each function is its route. The other calls are in `settings` and `keys`. Subjects may be
qualified (`:.context:subject`) everywhere. There are no calls for exporters or for changes of associations.

Source: docs/protocols/confluent.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from stele.client.request import (
    CachePolicy,
    Effect,
    Request,
    build_path,
    build_query,
    delete_request,
    encode_body,
    escape_name,
    ignore_body,
    json_decoder,
)
from stele.client.types import ClusterId, RegisteredSchema, Schema, Version
from stele.protocol.confluent import ContextId, ServerVersion, SubjectVersion

_integers = json_decoder(list[int])
_integer = json_decoder(int)
_strings = json_decoder(list[str])
_registered = json_decoder(RegisteredSchema)
_schemas = json_decoder(list[RegisteredSchema])
_places = json_decoder(list[SubjectVersion])
_context_ids = json_decoder(list[ContextId])
_server_version = json_decoder(ServerVersion)
_object = json_decoder(dict[str, Any])


# --- the server -----------------------------------------------------------------------------------------------------


def ping() -> Request[None]:
    # GET /
    """Send a request without effect. The client raises when no server answers."""
    return Request("GET", "/", ignore_body)


def server_version() -> Request[ServerVersion]:
    # GET /v1/metadata/version
    """Return the version and commit of the server."""
    return Request("GET", "/v1/metadata/version", _server_version)


def cluster_id() -> Request[ClusterId]:
    # GET /v1/metadata/id
    """Return the id of the server's cluster and of the clusters behind it."""
    return Request("GET", "/v1/metadata/id", _decode_cluster_id)


def deployment() -> Request[list[str]]:
    # GET /v1/metadata/deployment
    """Return the attributes of the deployment."""
    return Request(
        "GET", "/v1/metadata/deployment", lambda body: msgspec.convert(_object(body)["attributes"], list[str])
    )


# --- schemas by id and guid -----------------------------------------------------------------------------------------


def schemas(
    *,
    subject_prefix: str | None = None,
    deleted: bool = False,
    latest_only: bool = False,
    offset: int | None = None,
    limit: int | None = None,
) -> Request[list[RegisteredSchema]]:
    # GET /schemas?subjectPrefix&deleted&latestOnly&offset&limit
    """Return all schemas, by subject and version. A prefix `:.context:` or `:*:` chooses contexts."""
    parameters = {
        "subjectPrefix": subject_prefix,
        "deleted": deleted,
        "latestOnly": latest_only,
        "offset": offset,
        "limit": limit,
    }
    return Request("GET", "/schemas", _schemas, build_query(parameters))


def schema_types() -> Request[list[str]]:
    # GET /schemas/types
    """Return the schema types that the server supports: AVRO, JSON, PROTOBUF …."""
    return Request("GET", "/schemas/types", _strings)


def schema_by_id(
    schema_id: int,
    *,
    subject: str | None = None,
    style: str | None = None,
    reference_format: str | None = None,
) -> Request[RegisteredSchema]:
    # GET /schemas/ids/{id}?subject&format&referenceFormat
    """Return the schema with that id. `subject` gives the context, and the subject and version to report."""
    parameters = {"subject": subject, "format": style, "referenceFormat": reference_format}

    def read(body: bytes) -> RegisteredSchema:
        return msgspec.structs.replace(_registered(body), id=schema_id)

    route = build_path("schemas", "ids", schema_id)
    return Request(
        "GET", route, read, build_query(parameters), cache_policy=CachePolicy.IMMUTABLE, subject=subject or ""
    )


def schema_text_by_id(
    schema_id: int,
    *,
    subject: str | None = None,
    style: str | None = None,
) -> Request[str]:
    # GET /schemas/ids/{id}/schema?subject&format
    """Return only the text of the schema with that id."""
    parameters = {"subject": subject, "format": style}
    return Request(
        "GET",
        build_path("schemas", "ids", schema_id, "schema"),
        _decode_text,
        build_query(parameters),
        cache_policy=CachePolicy.IMMUTABLE,
    )


def subjects_of_id(
    schema_id: int,
    *,
    subject: str | None = None,
    deleted: bool = False,
    offset: int | None = None,
    limit: int | None = None,
) -> Request[list[str]]:
    # GET /schemas/ids/{id}/subjects?subject&deleted&offset&limit
    """Return the subjects that hold the schema with that id."""
    parameters = {"subject": subject, "deleted": deleted, "offset": offset, "limit": limit}
    return Request("GET", build_path("schemas", "ids", schema_id, "subjects"), _strings, build_query(parameters))


def versions_of_id(
    schema_id: int,
    *,
    subject: str | None = None,
    deleted: bool = False,
    offset: int | None = None,
    limit: int | None = None,
) -> Request[list[SubjectVersion]]:
    # GET /schemas/ids/{id}/versions?subject&deleted&offset&limit
    """Return the subjects and versions that hold the schema with that id."""
    parameters = {"subject": subject, "deleted": deleted, "offset": offset, "limit": limit}
    return Request("GET", build_path("schemas", "ids", schema_id, "versions"), _places, build_query(parameters))


def schema_by_guid(guid: UUID | str, *, style: str | None = None) -> Request[RegisteredSchema]:
    # GET /schemas/guids/{guid}?format
    """Return the schema with that guid, in any context."""
    route = build_path("schemas", "guids", str(guid))
    return Request("GET", route, _registered, build_query({"format": style}), cache_policy=CachePolicy.IMMUTABLE)


def ids_of_guid(guid: UUID | str) -> Request[list[ContextId]]:
    # GET /schemas/guids/{guid}/ids
    """Return the ids of the schema with that guid, by context."""
    return Request("GET", build_path("schemas", "guids", str(guid), "ids"), _context_ids)


# --- subjects and their versions ------------------------------------------------------------------------------------


def subjects(
    *,
    subject_prefix: str | None = None,
    deleted: bool = False,
    deleted_only: bool = False,
    offset: int | None = None,
    limit: int | None = None,
) -> Request[list[str]]:
    # GET /subjects?subjectPrefix&deleted&deletedOnly&offset&limit
    """Return the names of all subjects. Names of other contexts are qualified."""
    parameters = {
        "subjectPrefix": subject_prefix,
        "deleted": deleted,
        "deletedOnly": deleted_only,
        "offset": offset,
        "limit": limit,
    }
    return Request("GET", "/subjects", _strings, build_query(parameters))


def lookup(
    subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
) -> Request[RegisteredSchema]:
    # POST /subjects/{subject}?normalize&deleted
    """Return the id and version of a schema in a subject. Raises `SubjectNotFound` or `ContentNotFound`."""
    parameters = {"normalize": normalize, "deleted": deleted}
    return Request(
        "POST",
        build_path("subjects", subject),
        _registered,
        build_query(parameters),
        encode_body(schema),
        cache_policy=CachePolicy.TTL,
        subject=subject,
    )


def delete_subject(subject: str, *, permanent: bool = False) -> Request[list[int]]:
    # DELETE /subjects/{subject}?permanent
    """Soft-delete a subject, or delete a soft-deleted one for good. Return the numbers of the deleted versions."""
    return delete_request(
        build_path("subjects", subject), _integers, build_query({"permanent": permanent}), subject=subject
    )


def versions(
    subject: str,
    *,
    deleted: bool = False,
    deleted_only: bool = False,
    offset: int | None = None,
    limit: int | None = None,
) -> Request[list[int]]:
    # GET /subjects/{subject}/versions?deleted&deletedOnly&offset&limit
    """Return the numbers of the subject's versions, ascending."""
    parameters = {"deleted": deleted, "deletedOnly": deleted_only, "offset": offset, "limit": limit}
    return Request(
        "GET", build_path("subjects", subject, "versions"), _integers, build_query(parameters), subject=subject
    )


def register(subject: str, schema: Schema, *, normalize: bool = False) -> Request[RegisteredSchema]:
    # POST /subjects/{subject}/versions?normalize
    """Add a schema to a subject, unless the subject has it already. Return its id.

    Raises `Incompatible`, `MalformedSchema` …

    Servers before 8.0 return only the id.
    """
    route = build_path("subjects", subject, "versions")
    parameters = build_query({"normalize": normalize})
    return Request("POST", route, _registered, parameters, encode_body(schema), effect=Effect.WRITE, subject=subject)


def version(
    subject: str,
    number: Version = "latest",
    *,
    deleted: bool = False,
    style: str | None = None,
    reference_format: str | None = None,
) -> Request[RegisteredSchema]:
    # GET /subjects/{subject}/versions/{version}?deleted&format&referenceFormat
    """Return one version of a subject, by default the newest. Raises `SubjectNotFound` or `VersionNotFound`."""
    parameters = {"deleted": deleted, "format": style, "referenceFormat": reference_format}
    return Request(
        "GET",
        build_path("subjects", subject, "versions", number),
        _registered,
        build_query(parameters),
        cache_policy=CachePolicy.TTL if deleted else _version_cache_policy(number),
        subject=subject,
        version=str(number),
    )


def version_text(
    subject: str,
    number: Version = "latest",
    *,
    deleted: bool = False,
    style: str | None = None,
) -> Request[str]:
    # GET /subjects/{subject}/versions/{version}/schema?deleted&format
    """Return only the text of one version of a subject."""
    return Request(
        "GET",
        build_path("subjects", subject, "versions", number, "schema"),
        _decode_text,
        build_query({"deleted": deleted, "format": style}),
        cache_policy=CachePolicy.TTL if deleted else _version_cache_policy(number),
        subject=subject,
        version=str(number),
    )


def referenced_by(subject: str, number: Version, *, deleted: bool = False) -> Request[list[int]]:
    # GET /subjects/{subject}/versions/{version}/referencedby?deleted
    """Return the ids of the schemas that refer to that version."""
    route = build_path("subjects", subject, "versions", number, "referencedby")
    return Request("GET", route, _integers, build_query({"deleted": deleted}), subject=subject, version=str(number))


def delete_version(subject: str, number: Version, *, permanent: bool = False) -> Request[int]:
    # DELETE /subjects/{subject}/versions/{version}?permanent
    """Soft-delete one version, or delete a soft-deleted one for good. Return its number."""
    route = build_path("subjects", subject, "versions", number)
    return delete_request(route, _integer, build_query({"permanent": permanent}), subject=subject, version=str(number))


def latest_with_metadata(
    subject: str, properties: Mapping[str, str], *, deleted: bool = False
) -> Request[RegisteredSchema]:
    # GET /subjects/{subject}/metadata?key&value&deleted
    """Return the newest version whose metadata has all these properties. Raises `ContentNotFound`."""
    pairs = [f"key={escape_name(key)}&value={escape_name(value)}" for key, value in properties.items()]
    parameters = "&".join(part for part in (*pairs, build_query({"deleted": deleted})) if part)
    route = build_path("subjects", subject, "metadata")
    return Request("GET", route, _registered, parameters, cache_policy=CachePolicy.TTL, subject=subject)


# --- shared -----------------------------------------------------------------------------------------------------------


def _version_cache_policy(number: Version) -> CachePolicy:
    return CachePolicy.IMMUTABLE if isinstance(number, int) and number > 0 else CachePolicy.TTL


def _decode_text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"the text is not UTF-8: {error.reason} at byte {error.start}") from error


def _decode_cluster_id(body: bytes) -> ClusterId:
    answer = _object(body)
    scope = answer.get("scope") or {}
    return msgspec.convert({"id": answer.get("id", ""), "clusters": scope.get("clusters", {})}, ClusterId)
