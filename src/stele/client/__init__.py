"""Clients of a schema registry: a Stele server, or any server with the Confluent API.

    with SchemaRegistryClient("http://localhost:8081") as registry:
        registered = registry.register("orders-value", Schema('{"type": "string"}'))
        registry.version("orders-value").text

`SchemaRegistryClient` blocks, `AsyncSchemaRegistryClient` is awaited, `SchemaSnapshot` needs no server at all.
`stele.client.serdes` turns values into framed bytes and back.
"""

from stele.client.aio import AsyncSchemaRegistryClient
from stele.client.connection import Bearer
from stele.client.errors import RequestFailure, ResponseError
from stele.client.exchange import Retry
from stele.client.history import Atlas, Lifelines, Matrix, Neighbours, VersionHistory
from stele.client.journal import EventPage, JournalEntry, JournalPage
from stele.client.names import (
    AssociatedName,
    QualifiedName,
    SubjectNaming,
    qualify_subject,
    record_name,
    split_subject,
    topic_name,
    topic_record_name,
)
from stele.client.oauth import OAuthClientCredentials
from stele.client.request import CachePolicy, Effect, Request, Workflow
from stele.client.snapshot import ResolvedSchema, SchemaResolver, SchemaSnapshot
from stele.client.sync import SchemaRegistryClient
from stele.client.types import (
    BaselineSchema,
    CheckResult,
    ClusterId,
    DiffChange,
    ReferenceText,
    RegisteredSchema,
    Schema,
    SchemaComparison,
    Version,
)
from stele.client.usage import CensusRecord, DeletionPreview, DeletionWarning, LocationUsage, VersionUsage
from stele.core.metadata import Metadata
from stele.core.policy_json import PolicyJson
from stele.protocol.confluent import (
    Association,
    CompatibilityCheckResponse,
    Config,
    ConfigUpdateRequest,
    ContextId,
    Dek,
    Kek,
    Rule,
    RuleSet,
    SchemaReference,
    ServerVersion,
    SubjectVersion,
    UpdateKekRequest,
)

__all__ = [
    "AssociatedName",
    "Association",
    "AsyncSchemaRegistryClient",
    "Atlas",
    "BaselineSchema",
    "Bearer",
    "CachePolicy",
    "CensusRecord",
    "CheckResult",
    "ClusterId",
    "CompatibilityCheckResponse",
    "Config",
    "ConfigUpdateRequest",
    "ContextId",
    "Dek",
    "DeletionPreview",
    "DeletionWarning",
    "DiffChange",
    "Effect",
    "EventPage",
    "JournalEntry",
    "JournalPage",
    "Kek",
    "Lifelines",
    "LocationUsage",
    "Matrix",
    "Metadata",
    "Neighbours",
    "OAuthClientCredentials",
    "PolicyJson",
    "QualifiedName",
    "ReferenceText",
    "RegisteredSchema",
    "Request",
    "RequestFailure",
    "ResolvedSchema",
    "ResponseError",
    "Retry",
    "Rule",
    "RuleSet",
    "Schema",
    "SchemaComparison",
    "SchemaReference",
    "SchemaRegistryClient",
    "SchemaResolver",
    "SchemaSnapshot",
    "ServerVersion",
    "SubjectNaming",
    "SubjectVersion",
    "UpdateKekRequest",
    "Version",
    "VersionHistory",
    "VersionUsage",
    "Workflow",
    "qualify_subject",
    "record_name",
    "split_subject",
    "topic_name",
    "topic_record_name",
]
