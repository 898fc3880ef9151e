"""Talk to a schema registry: ours, or any which speaks the Confluent API.

    with SchemaRegistryClient("http://localhost:8081") as registry:
        registered = registry.register("orders-value", Schema('{"type": "string"}'))
        registry.version("orders-value").text

`SchemaRegistryClient` blocks, `AsyncSchemaRegistryClient` is awaited, `SchemaSnapshot` needs no server at all.
`stele.client.serdes` turns values into framed bytes and back.
"""

from stele.client.aio import AsyncSchemaRegistryClient
from stele.client.changes import JournalEntry, JournalPage
from stele.client.connection import Bearer
from stele.client.errors import Failure, ResponseError
from stele.client.exchange import Retry
from stele.client.in_use import CensusRecord, DeletionOutlook, DeletionWarning, PlaceUsage, Seen
from stele.client.names import (
    AssociatedName,
    QualifiedName,
    SubjectNaming,
    qualify,
    record_name,
    split,
    topic_name,
    topic_record_name,
)
from stele.client.request import Effect, Lifetime, Plan, Request
from stele.client.snapshot import ResolvedSchema, SchemaSnapshot, SchemaSource
from stele.client.sync import SchemaRegistryClient
from stele.client.types import CheckResult, ClusterId, Older, ReferenceText, RegisteredSchema, Schema, Version
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
    "Bearer",
    "CensusRecord",
    "CheckResult",
    "ClusterId",
    "CompatibilityCheckResponse",
    "Config",
    "ConfigUpdateRequest",
    "ContextId",
    "Dek",
    "DeletionOutlook",
    "DeletionWarning",
    "Effect",
    "Failure",
    "JournalEntry",
    "JournalPage",
    "Kek",
    "Lifetime",
    "Metadata",
    "Older",
    "PlaceUsage",
    "Plan",
    "PolicyJson",
    "QualifiedName",
    "ReferenceText",
    "RegisteredSchema",
    "Request",
    "ResolvedSchema",
    "ResponseError",
    "Retry",
    "Rule",
    "RuleSet",
    "Schema",
    "SchemaReference",
    "SchemaRegistryClient",
    "SchemaSnapshot",
    "SchemaSource",
    "Seen",
    "ServerVersion",
    "SubjectNaming",
    "SubjectVersion",
    "UpdateKekRequest",
    "Version",
    "qualify",
    "record_name",
    "split",
    "topic_name",
    "topic_record_name",
]
