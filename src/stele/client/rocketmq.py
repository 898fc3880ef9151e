"""Client for the RocketMQ dialect: subjects of one cluster and tenant, and the records they are bound to.

    topics = RocketmqSubjects(SchemaRegistryClient("http://127.0.0.1:8081"))
    record = topics.register("orders", "Order", '{"type": "record", …}')
    topics.by_record_id("orders", record.record_id).idl

Works with Stele, and with rocketmq-schema-registry where that answers with a status below 600.

Source: docs/protocols/rocketmq.md.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from stele.client.errors import ResponseError
from stele.client.request import JSON, CachePolicy, Effect, Request, build_path, encode_body, json_decoder
from stele.client.sync import SchemaRegistryClient
from stele.errors import InvalidRequest
from stele.protocol.rocketmq import RecordVersion

DEFAULT = "default"
"""Name of the default cluster and of the default tenant."""

T = TypeVar("T")


class SchemaRecord(msgspec.Struct, frozen=True, rename="camel"):
    """A version of a schema: its text (IDL), type (`AVRO`, `JSON` …) and names."""

    subject_full_name: str
    schema_full_name: str
    version: int
    record_id: int
    idl: str
    type: str


class _Error(msgspec.Struct):
    status: int = 0


_written = json_decoder(RecordVersion)
_record = json_decoder(SchemaRecord)
_names = json_decoder(list[str])


class RocketmqSubjects:
    """The subjects of one tenant in one cluster. Safe between threads, as its client is.

    Every method may raise a `ResponseError` that is also a domain error: `NotFound`, `Conflict`, `InvalidRequest` …
    """

    def __init__(self, client: SchemaRegistryClient, *, cluster: str = DEFAULT, tenant: str = DEFAULT) -> None:
        self._client = client
        self._tenant = ("schema-registry", "v1", "cluster", cluster, "tenant", tenant)

    def names(self) -> list[str]:
        """Return all subjects that are bound to something."""
        return self._client.send(Request("GET", build_path(*self._tenant, "subjects"), _names))

    def register(
        self,
        subject: str,
        schema: str,
        idl: str,
        *,
        schema_type: str = "AVRO",
        compatibility: str = "BACKWARD",
        owner: str = "",
        desc: str = "",
    ) -> RecordVersion:
        """Register a new schema and bind a subject to it. Raises `Conflict` when a schema with that name exists."""
        body = {
            "schemaIdl": idl,
            "schemaType": schema_type,
            "owner": owner,
            "compatibility": compatibility,
            "desc": desc,
        }
        return self._write_record("POST", subject, schema, body)

    def update(self, subject: str, schema: str, idl: str, *, owner: str = "", desc: str = "") -> RecordVersion:
        """Register the next version of a schema and bind a subject to it.

        Raises `Conflict` for a version that is incompatible or exists already.
        """
        return self._write_record("PUT", subject, schema, {"schemaIdl": idl, "owner": owner, "desc": desc})

    def _write_record(self, method: str, subject: str, schema: str, body: dict[str, str]) -> RecordVersion:
        return self._client.send(
            Request(
                method,
                self._subject_path(subject, "schema", schema),
                _written,
                body=encode_body(body),
                media=JSON,
                effect=Effect.WRITE,
                subject=subject,
            )
        )

    def get_bound_record(self, subject: str) -> SchemaRecord:
        """Return the record a subject is bound to."""
        return self._read_records(subject, "schema", lifetime=CachePolicy.TTL)

    def by_version(self, subject: str, version: int) -> SchemaRecord:
        """Return a version of the schema a subject is bound to."""
        return self._read_records(subject, "schema", "versions", version, lifetime=CachePolicy.TTL)

    def by_record_id(self, subject: str, record_id: int) -> SchemaRecord:
        """Return the record with that id, also when the subject is bound to another one now."""
        return self._read_records(subject, "recordId", record_id, "schema", lifetime=CachePolicy.IMMUTABLE)

    def find(self, subject: str, idl: str) -> SchemaRecord:
        """Return the version of a subject's schema that equals this schema."""
        try:
            body = idl.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"the schema cannot be written in UTF-8: {error.reason}") from None
        route = self._subject_path(subject, "schema", "schema")
        return self._client.send(
            Request("POST", route, _record, body=body, media=JSON, cache_policy=CachePolicy.IMMUTABLE, subject=subject)
        )

    def _read_records(self, subject: str, *segments: str | int, lifetime: CachePolicy) -> SchemaRecord:
        return self._client.send(
            Request("GET", self._subject_path(subject, *segments), _record, cache_policy=lifetime, subject=subject)
        )

    def _subject_path(self, subject: str, *segments: str | int) -> str:
        return build_path(*self._tenant, "subject", subject, *segments)


def number_of(error: ResponseError) -> int:
    """Return the five-digit code in the body of an error response of this dialect; 0 without one."""
    try:
        return msgspec.json.decode(error.body, type=_Error).status
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0
