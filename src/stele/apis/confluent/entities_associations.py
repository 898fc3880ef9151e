"""Bodies of associations: which subjects belong to which resources, so far the topics of Kafka clusters.

resourceNamespace is the cluster's id, resourceName the topic's name, resourceId its id; associationType is key or
value; lifecycle STRONG (the subject is this resource's alone) or WEAK.
"""

from __future__ import annotations

import msgspec

from stele.apis.confluent.entities import Schema
from stele.protocol.confluent import Association, ErrorMessage, RegisterSchemaRequest

__all__ = [
    "Association",
    "AssociationBatchGetRequest",
    "AssociationBatchRequest",
    "AssociationBatchResponse",
    "AssociationCreateOrUpdateInfo",
    "AssociationCreateOrUpdateRequest",
    "AssociationGetRequest",
    "AssociationInfo",
    "AssociationOp",
    "AssociationOpRequest",
    "AssociationResponse",
    "AssociationResult",
    "ExtendedSchema",
]


class AssociationCreateOrUpdateInfo(msgspec.Struct, frozen=True, rename="camel"):
    """What to associate: subject None is `:.namespace:name-type`; schema is registered there first."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: RegisterSchemaRequest | None = None
    normalize: bool | None = None


class AssociationCreateOrUpdateRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Associations of one resource to make, all or none."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationCreateOrUpdateInfo] | None = None


class AssociationOp(msgspec.Struct, frozen=True, rename="camel"):
    """One step of a batch: CREATE, UPSERT or DELETE; the latter has type and cascadeLifecycle only."""

    op_type: str | None = None
    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: RegisterSchemaRequest | None = None
    normalize: bool | None = None
    cascade_lifecycle: bool | None = None


class AssociationOpRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Steps for one resource."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationOp] | None = None


class AssociationBatchRequest(msgspec.Struct, frozen=True):
    """Steps for several resources, each with a result of its own."""

    requests: list[AssociationOpRequest] | None = None


class AssociationGetRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The associations of a resource by id, or by namespace and name."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    association_types: list[str] | None = None
    lifecycle: str | None = None


class AssociationBatchGetRequest(msgspec.Struct, frozen=True):
    """Associations of several resources."""

    requests: list[AssociationGetRequest] | None = None


class ExtendedSchema(Schema, frozen=True, omit_defaults=True, rename="camel"):
    """A version with the associations of its subject."""

    associations: list[Association] = msgspec.field(default_factory=list)


class AssociationInfo(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What became of one association of a request; schema is the version it registered."""

    subject: str
    association_type: str
    lifecycle: str
    frozen: bool | None = None
    schema: Schema | None = None


class AssociationResponse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A resource and the associations made."""

    resource_name: str = ""
    resource_namespace: str = ""
    resource_id: str = ""
    resource_type: str = ""
    associations: list[AssociationInfo] = []


class AssociationResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of one request of a batch."""

    error: ErrorMessage | None = None
    result: AssociationResponse | None = None


class AssociationBatchResponse(msgspec.Struct, frozen=True):
    """Results in the order of the requests."""

    results: list[AssociationResult]
