"""Calls about rules and settings: compatibility, config, mode, contexts, associations.

See `endpoints` for how they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from stele.client.request import (
    JSON,
    CachePolicy,
    Effect,
    Request,
    build_path,
    build_query,
    delete_request,
    encode_body,
    ignore_body,
    json_decoder,
    without_nulls,
)
from stele.client.types import BaselineSchema, CheckResult, ReferenceText, Schema, SchemaComparison, Version
from stele.protocol.confluent import Association, CompatibilityCheckResponse, Config, ConfigUpdateRequest

_strings = json_decoder(list[str])
_compatibility = json_decoder(CompatibilityCheckResponse)
_check = json_decoder(CheckResult)
_comparison = json_decoder(SchemaComparison)
_associations = json_decoder(list[Association])
_object = json_decoder(dict[str, Any])


# --- compatibility --------------------------------------------------------------------------------------------------


def check_compatibility(
    subject: str, schema: Schema, number: Version | None = None, *, normalize: bool = False, verbose: bool = True
) -> Request[CompatibilityCheckResponse]:
    # POST /compatibility/subjects/{subject}/versions?normalize&verbose
    # POST /compatibility/subjects/{subject}/versions/{version}?normalize&verbose
    """Would the schema be accepted: against one version, or, with number None, as registration would decide?"""
    route = build_path("compatibility", "subjects", subject, "versions", *([] if number is None else [number]))
    parameters = build_query({"normalize": normalize, "verbose": verbose})
    return Request(
        "POST", route, _compatibility, parameters, encode_body(schema), subject=subject, version=str(number or "")
    )


def check(
    schema_format: str,
    schema: str,
    against: Sequence[BaselineSchema],
    *,
    references: Sequence[ReferenceText] = (),
    policy: str | None = None,
    ruleset: str | None = None,
) -> Request[CheckResult]:
    # POST /api/check
    """Stele's stateless check: compare documents that need not be registered, and get every reason.

    schema_format is Stele's name (`avro`, `protobuf`, `json`); against is oldest first; policy a word like BACKWARD or
    FULL_TRANSITIVE; ruleset one of the format's rule sets. Raises `UnknownFormat`, `UnknownPolicy`, `MalformedSchema`.
    """
    members = {"format": schema_format, "schema": schema, "policy": policy, "ruleset": ruleset}
    body = {key: value for key, value in members.items() if value is not None}
    documents = {"references": list(references), "against": list(against)}
    return Request("POST", "/api/check", _check, body=encode_body(body | documents), media=JSON)


def diff(schema_format: str, old: BaselineSchema, new: BaselineSchema) -> Request[SchemaComparison]:
    # POST /api/diff
    """Stele's stateless comparison: what changed between two documents. Raises `UnknownFormat`, `MalformedSchema`."""
    body = encode_body({"format": schema_format, "old": old, "new": new})
    return Request("POST", "/api/diff", _comparison, body=body, media=JSON)


# --- settings -------------------------------------------------------------------------------------------------------


def config(subject: str | None = None, *, default_to_global: bool = False) -> Request[Config]:
    # GET /config?defaultToGlobal
    # GET /config/{subject}?defaultToGlobal
    """Settings of a subject, or of the registry. Raises `SettingNotFound` when the subject has none of its own."""
    return Request(
        "GET",
        _setting_path("config", subject),
        _decode_config,
        build_query({"defaultToGlobal": default_to_global}),
        subject=subject or "",
    )


def set_config(update: ConfigUpdateRequest | str, subject: str | None = None) -> Request[Config]:
    # PUT /config
    # PUT /config/{subject}
    """Change settings of a subject, or of the registry; a word alone sets the compatibility level. The new settings."""
    change = ConfigUpdateRequest(compatibility=update) if isinstance(update, str) else update
    return Request(
        "PUT",
        _setting_path("config", subject),
        _decode_config,
        body=encode_body(change),
        effect=Effect.WRITE,
        subject=subject or "",
    )


def delete_config(subject: str | None = None) -> Request[Config]:
    # DELETE /config
    # DELETE /config/{subject}
    """Drop the settings of a subject, or of the registry; what they were."""
    return delete_request(_setting_path("config", subject), _decode_config, subject=subject or "")


def mode(subject: str | None = None, *, default_to_global: bool = False) -> Request[str]:
    # GET /mode?defaultToGlobal
    # GET /mode/{subject}?defaultToGlobal
    """READWRITE, READONLY, IMPORT …: of a subject, or of the registry. Raises `SettingNotFound`."""
    return Request(
        "GET",
        _setting_path("mode", subject),
        _decode_mode,
        build_query({"defaultToGlobal": default_to_global}),
        subject=subject or "",
    )


def set_mode(mode: str | None, subject: str | None = None, *, force: bool = False) -> Request[str]:
    # PUT /mode?force
    # PUT /mode/{subject}?force
    """Change the mode of a subject, or of the registry; None removes the setting. force: IMPORT although not empty."""
    return Request(
        "PUT",
        _setting_path("mode", subject),
        _decode_mode,
        build_query({"force": force}),
        encode_body({"mode": mode}),
        effect=Effect.WRITE,
        subject=subject or "",
    )


def delete_mode(subject: str | None = None, *, recursive: bool = False) -> Request[str]:
    # DELETE /mode?recursive
    # DELETE /mode/{subject}?recursive
    """Drop the mode of a subject, or of the registry; recursive: also those of a context's subjects. What it was."""
    return delete_request(
        _setting_path("mode", subject), _decode_mode, build_query({"recursive": recursive}), subject=subject or ""
    )


# --- contexts -------------------------------------------------------------------------------------------------------


def contexts(
    *, context_prefix: str | None = None, offset: int | None = None, limit: int | None = None
) -> Request[list[str]]:
    # GET /contexts?contextPrefix&offset&limit
    """Names of all contexts, each with its dot; `.` is the default one."""
    parameters = {"contextPrefix": context_prefix, "offset": offset, "limit": limit}
    return Request("GET", "/contexts", _strings, build_query(parameters))


def delete_context(context: str) -> Request[None]:
    # DELETE /contexts/{context}
    """Remove an empty context. Raises `NotEmpty`."""
    return delete_request(build_path("contexts", context), ignore_body, subject=context)


# --- associations -----------------------------------------------------------------------------------------------------


def associations(
    resource: str, namespace: str = "-", *, resource_type: str = "topic", types: Sequence[str] = ()
) -> Request[list[Association]]:
    # GET /associations/resources/{namespace}/{name}?resourceType&associationType
    """Subjects a resource is associated with; namespace is its cluster's id, `-` for all, types `key` and `value`."""
    parameters = build_query({"resourceType": resource_type})
    pairs = [build_query({"associationType": kind}) for kind in types]
    route = build_path("associations", "resources", namespace, resource)
    return Request("GET", route, _associations, "&".join([parameters, *pairs]), cache_policy=CachePolicy.TTL)


# --- shared -----------------------------------------------------------------------------------------------------------


def _setting_path(kind: str, subject: str | None) -> str:
    return build_path(kind) if subject is None else build_path(kind, subject)


def _decode_config(body: bytes) -> Config:
    """Read settings. GET and DELETE call the level `compatibilityLevel`, PUT and other makes `compatibility`."""
    answer = _object(body)
    level = answer.pop("compatibility", None)
    return msgspec.convert(without_nulls({"compatibilityLevel": level} | answer), Config)


def _decode_mode(body: bytes) -> str:
    """`{"mode": null}` answers the removal of a setting."""
    return msgspec.convert(_object(body).get("mode") or "", str)
