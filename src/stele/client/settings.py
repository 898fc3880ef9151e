"""Calls about rules and settings: compatibility, config, mode, contexts, associations.

They are written like those of `endpoints`.
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
    """Return whether the schema is compatible with one version, with reasons.

    With number None: whether registration would accept it.
    """
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
    """Check compatibility statelessly: compare documents that need not be registered, and return every reason.

    `schema_format` is Stele's name (`avro`, `protobuf`, `json`). `against` is oldest first. `policy` is a word like
    BACKWARD or FULL_TRANSITIVE. `ruleset` is one of the format's rulesets. Only Stele servers have this route. Raises
    `UnknownFormat`, `UnknownPolicy`, `MalformedSchema`.
    """
    members = {"format": schema_format, "schema": schema, "policy": policy, "ruleset": ruleset}
    body = {key: value for key, value in members.items() if value is not None}
    documents = {"references": list(references), "against": list(against)}
    return Request("POST", "/api/check", _check, body=encode_body(body | documents), media=JSON)


def diff(schema_format: str, old: BaselineSchema, new: BaselineSchema) -> Request[SchemaComparison]:
    # POST /api/diff
    """Return what changed between two documents that need not be registered. Only Stele servers have this route.

    Raises `UnknownFormat`, `MalformedSchema`.
    """
    body = encode_body({"format": schema_format, "old": old, "new": new})
    return Request("POST", "/api/diff", _comparison, body=body, media=JSON)


# --- settings -------------------------------------------------------------------------------------------------------


def config(subject: str | None = None, *, default_to_global: bool = False) -> Request[Config]:
    # GET /config?defaultToGlobal
    # GET /config/{subject}?defaultToGlobal
    """Return the settings of a subject, or of the registry.

    Raises `SettingNotFound` when the subject has none of its own.
    """
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
    """Change settings of a subject, or of the registry. Return the new settings.

    A word alone sets the compatibility level.
    """
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
    """Delete the settings of a subject, or of the registry. Return the old settings."""
    return delete_request(_setting_path("config", subject), _decode_config, subject=subject or "")


def mode(subject: str | None = None, *, default_to_global: bool = False) -> Request[str]:
    # GET /mode?defaultToGlobal
    # GET /mode/{subject}?defaultToGlobal
    """Return the mode of a subject, or of the registry: READWRITE, READONLY, IMPORT ….

    Raises `SettingNotFound`.
    """
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
    """Change the mode of a subject, or of the registry. None removes the setting.

    `force` allows IMPORT although there are schemas.
    """
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
    """Delete the mode of a subject, or of the registry. Return the old mode.

    `recursive` also deletes the modes of a context's subjects.
    """
    return delete_request(
        _setting_path("mode", subject), _decode_mode, build_query({"recursive": recursive}), subject=subject or ""
    )


# --- contexts -------------------------------------------------------------------------------------------------------


def contexts(
    *, context_prefix: str | None = None, offset: int | None = None, limit: int | None = None
) -> Request[list[str]]:
    # GET /contexts?contextPrefix&offset&limit
    """Return the names of all contexts, each with its dot; `.` is the default one."""
    parameters = {"contextPrefix": context_prefix, "offset": offset, "limit": limit}
    return Request("GET", "/contexts", _strings, build_query(parameters))


def delete_context(context: str) -> Request[None]:
    # DELETE /contexts/{context}
    """Delete an empty context. Raises `NotEmpty`."""
    return delete_request(build_path("contexts", context), ignore_body, subject=context)


# --- associations -----------------------------------------------------------------------------------------------------


def associations(
    resource: str, namespace: str = "-", *, resource_type: str = "topic", types: Sequence[str] = ()
) -> Request[list[Association]]:
    # GET /associations/resources/{namespace}/{name}?resourceType&associationType
    """Return the subjects that a resource is associated with.

    `namespace` is the id of the resource's cluster, `-` for all. `types` are `key` and `value`.
    """
    parameters = build_query({"resourceType": resource_type})
    pairs = [build_query({"associationType": kind}) for kind in types]
    route = build_path("associations", "resources", namespace, resource)
    return Request("GET", route, _associations, "&".join([parameters, *pairs]), cache_policy=CachePolicy.TTL)


# --- shared -----------------------------------------------------------------------------------------------------------


def _setting_path(kind: str, subject: str | None) -> str:
    return build_path(kind) if subject is None else build_path(kind, subject)


def _decode_config(body: bytes) -> Config:
    """Read settings. The level is in `compatibilityLevel`, or in `compatibility`.

    GET and DELETE use the first name, PUT and other registries the second one.
    """
    answer = _object(body)
    level = answer.pop("compatibility", None)
    return msgspec.convert(without_nulls({"compatibilityLevel": level} | answer), Config)


def _decode_mode(body: bytes) -> str:
    """Read a mode. The answer to the removal of a setting is `{"mode": null}`."""
    return msgspec.convert(_object(body).get("mode") or "", str)
