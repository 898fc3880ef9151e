"""Parameters of requests, declared for endpoints and the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from litestar.di import NamedDependency
from litestar.params import PathParameter

from stele.apis.rocketmq.errors import ERROR_RESPONSES
from stele.apis.rocketmq.operations import Operations

_INTEGER = {"type": "integer", "format": "int64"}

InjectedOperations = NamedDependency[Operations]

SubjectName = Annotated[str, PathParameter(description="name of a subject: of a topic, say")]
SchemaName = Annotated[str, PathParameter(description="name of a schema, unique in its tenant")]
VersionNumber = Annotated[str, PathParameter(schema_extra=_INTEGER, description="version of a schema, from 1")]
RecordId = Annotated[
    str, PathParameter(schema_extra=_INTEGER, description="id of a record: of its schema, with the version in 14 bits")
]

READ: dict[str, Any] = {"responses": ERROR_RESPONSES, "status_code": 200}
"""Options of all endpoints: the original's client takes no other status for success."""


def cluster_paths(path: str) -> list[str]:
    """Return a path in two forms: with cluster and tenant, and the short one for the default cluster and tenant."""
    return [f"/cluster/{{cluster:str}}/tenant/{{tenant:str}}{path}", path]


def tenant_paths(path: str) -> list[str]:
    """Return a path in two forms, with and without a cluster: a tenant's schemas are the same in all clusters."""
    return [f"/cluster/{{cluster:str}}/tenant/{{tenant:str}}{path}", f"/tenant/{{tenant:str}}{path}"]
