"""Calls about encryption keys, each a function that builds its request. The clients offer them all as methods.

A KEK (key encryption key) names a key of a key management service. It wraps DEKs (data encryption keys), which belong
to subjects. Subjects may be qualified (`:.context:subject`); a KEK's context is an argument. Versions of a DEK count
from 1. The bytes of a version never change, but a version may be deleted, so answers are cached for the cache's TTL.

Source: docs/protocols/confluent.md#dek-registry.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Literal

import msgspec

from stele.client.request import (
    CachePolicy,
    Effect,
    Request,
    build_path,
    build_query,
    delete_request,
    encode_body,
    ignore_body,
    json_decoder,
)
from stele.protocol.confluent import Dek, Kek, UpdateKekRequest

Algorithm = Literal["AES128_GCM", "AES256_GCM", "AES256_SIV"]
"""Encryption algorithm of a data key."""
DekVersion = int | Literal["latest"]
"""A version of a data key, or the newest one."""

_KEKS = ("dek-registry", "v1", "keks")


_strings = json_decoder(list[str])
_integers = json_decoder(list[int])
_kek = json_decoder(Kek)
_dek = json_decoder(Dek)


# --- keys of a key management service -------------------------------------------------------------------------------


def keks(
    *,
    context: str = "",
    subject_prefixes: tuple[str, ...] = (),
    deleted: bool = False,
    offset: int | None = None,
    limit: int | None = None,
) -> Request[list[str]]:
    # GET /dek-registry/v1/keks?context&subjectPrefix&deleted&offset&limit
    """Return the names of the KEKs.

    With prefixes: only those with a DEK of a subject whose name begins with one of them.
    """
    prefixes = [build_query({"subjectPrefix": prefix}) for prefix in subject_prefixes]
    rest = build_query({"context": context or None, "deleted": deleted, "offset": offset, "limit": limit})
    return Request("GET", build_path(*_KEKS), _strings, "&".join(filter(None, [*prefixes, rest])))


def kek(name: str, *, context: str = "", deleted: bool = False) -> Request[Kek]:
    # GET /dek-registry/v1/keks/{name}?context&deleted
    """Return a KEK. Raises `NotFound`."""
    parameters = build_query({"context": context or None, "deleted": deleted})
    return Request("GET", build_path(*_KEKS, name), _kek, parameters, cache_policy=CachePolicy.TTL)


def create_kek(key: Kek, *, context: str = "", test: bool = False) -> Request[Kek]:
    # POST /dek-registry/v1/keks?context&testSharing
    """Register a KEK. With `test` the server first tries to use a shared KEK. Raises `Conflict` if the name exists."""
    parameters = build_query({"context": context or None, "testSharing": test})
    body = encode_body(msgspec.structs.replace(key, ts=None))
    return Request("POST", build_path(*_KEKS), _kek, parameters, body, effect=Effect.WRITE)


def update_kek(name: str, changes: UpdateKekRequest, *, context: str = "", test: bool = False) -> Request[Kek]:
    # PUT /dek-registry/v1/keks/{name}?context&testSharing
    """Change a KEK."""
    parameters = build_query({"context": context or None, "testSharing": test})
    return Request("PUT", build_path(*_KEKS, name), _kek, parameters, encode_body(changes), effect=Effect.WRITE)


def test_kek(name: str, *, context: str = "") -> Request[Kek]:  # noqa: PT028 - no test of pytest's
    # POST /dek-registry/v1/keks/{name}/test?context
    """Make the server try a shared KEK. Raises `Forbidden`, or a `ResponseError` with the reason of the failure."""
    return Request("POST", build_path(*_KEKS, name, "test"), _kek, build_query({"context": context or None}), b"{}")


def delete_kek(name: str, *, context: str = "", permanent: bool = False) -> Request[None]:
    # DELETE /dek-registry/v1/keks/{name}?context&permanent
    """Soft-delete a KEK that has no DEKs, or delete a soft-deleted one for good."""
    return delete_request(
        build_path(*_KEKS, name), ignore_body, build_query({"context": context or None, "permanent": permanent})
    )


def undelete_kek(name: str, *, context: str = "") -> Request[None]:
    # POST /dek-registry/v1/keks/{name}/undelete?context
    """Restore a soft-deleted KEK."""
    parameters = build_query({"context": context or None})
    return Request("POST", build_path(*_KEKS, name, "undelete"), ignore_body, parameters, b"{}", effect=Effect.WRITE)


# --- data keys --------------------------------------------------------------------------------------------------------


def dek_subjects(
    kek_name: str, *, context: str = "", deleted: bool = False, offset: int | None = None, limit: int | None = None
) -> Request[list[str]]:
    # GET /dek-registry/v1/keks/{name}/deks?context&deleted&offset&limit
    """Return the subjects with a DEK under a KEK."""
    parameters = build_query({"context": context or None, "deleted": deleted, "offset": offset, "limit": limit})
    return Request("GET", build_path(*_KEKS, kek_name, "deks"), _strings, parameters)


def dek_versions(
    kek_name: str, subject: str, *, algorithm: Algorithm = "AES256_GCM", deleted: bool = False
) -> Request[list[int]]:
    # GET /dek-registry/v1/keks/{name}/deks/{subject}/versions?algorithm&deleted
    """Return the version numbers of a DEK, ascending."""
    parameters = build_query({"algorithm": algorithm, "deleted": deleted})
    return Request(
        "GET", build_path(*_KEKS, kek_name, "deks", subject, "versions"), _integers, parameters, subject=subject
    )


def dek(
    kek_name: str,
    subject: str,
    version: DekVersion = 1,
    *,
    algorithm: Algorithm = "AES256_GCM",
    deleted: bool = False,
) -> Request[Dek]:
    # GET /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}?algorithm&deleted
    """Return a version of a DEK. Raises `NotFound`."""
    number = -1 if version == "latest" else version  # older servers know -1, not the word
    return Request(
        "GET",
        build_path(*_KEKS, kek_name, "deks", subject, "versions", number),
        _dek,
        build_query({"algorithm": algorithm, "deleted": deleted}),
        cache_policy=CachePolicy.TTL,
        subject=subject,
        version=str(version),
    )


def create_dek(
    kek_name: str,
    subject: str,
    wrapped: bytes | None = None,
    *,
    version: int = 1,
    algorithm: Algorithm = "AES256_GCM",
) -> Request[Dek]:
    # POST /dek-registry/v1/keks/{name}/deks/{subject}
    """Store a wrapped DEK, or let the server make one under a shared KEK. Raises `Conflict` if the version exists."""
    material = None if wrapped is None else b64encode(wrapped).decode()
    body = {"subject": subject, "version": version, "algorithm": algorithm}
    return Request(
        "POST",
        build_path(*_KEKS, kek_name, "deks", subject),
        _dek,
        body=encode_body(body if material is None else {**body, "encryptedKeyMaterial": material}),
        effect=Effect.WRITE,
        subject=subject,
    )


def delete_dek(
    kek_name: str,
    subject: str,
    version: DekVersion | None = None,
    *,
    algorithm: Algorithm = "AES256_GCM",
    permanent: bool = False,
) -> Request[None]:
    # DELETE /dek-registry/v1/keks/{name}/deks/{subject}?algorithm&permanent
    # DELETE /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}?algorithm&permanent
    """Soft-delete one version of a DEK or all versions, or delete soft-deleted ones for good."""
    parameters = build_query({"algorithm": algorithm, "permanent": permanent})
    return delete_request(_dek_path(kek_name, subject, version), ignore_body, parameters, subject=subject)


def undelete_dek(
    kek_name: str, subject: str, version: DekVersion | None = None, *, algorithm: Algorithm = "AES256_GCM"
) -> Request[None]:
    # POST /dek-registry/v1/keks/{name}/deks/{subject}/undelete?algorithm
    # POST /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}/undelete?algorithm
    """Restore one soft-deleted version of a DEK, or all."""
    route = f"{_dek_path(kek_name, subject, version)}/undelete"
    parameters = build_query({"algorithm": algorithm})
    return Request("POST", route, ignore_body, parameters, b"{}", effect=Effect.WRITE, subject=subject)


def _dek_path(kek_name: str, subject: str, version: DekVersion | None) -> str:
    whole = build_path(*_KEKS, kek_name, "deks", subject)
    return whole if version is None else f"{whole}{build_path('versions', version)}"
