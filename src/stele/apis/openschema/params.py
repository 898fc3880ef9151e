"""Parameters of requests, declared for endpoints and the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from litestar.di import NamedDependency
from litestar.params import PathParameter

from stele.apis.openschema.errors import ERROR_RESPONSES
from stele.apis.openschema.models import MEDIA_TYPE
from stele.apis.openschema.operations import Operations

InjectedOperations = NamedDependency[Operations]

SubjectName = Annotated[str, PathParameter(description="name of a subject: of a topic, as a rule")]
VersionName = Annotated[str, PathParameter(description="a version number from 1, or `latest`")]
SchemaId = Annotated[str, PathParameter(description="id of a schema")]

READ: dict[str, Any] = {"responses": ERROR_RESPONSES, "status_code": 200, "media_type": MEDIA_TYPE}
"""Options of all endpoints."""
