"""Path and query parameters of endpoints, with their descriptions for the OpenAPI document.

Every value arrives as text and is parsed by `names`, because Confluent's registry accepts any text as a flag, and
answers 404 for an integer that is invalid. The framework's own conversion would answer 400.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter

from stele.apis.confluent.errors import MEDIA_TYPE
from stele.apis.confluent.models import ErrorMessage
from stele.apis.confluent.operations.schemas import Operations

_FLAG = {"type": "boolean"}
_INTEGER = {"type": "integer"}
NOT_EMPTY = {"minLength": 1}
"""Constraint of path parameters: an empty one would make another path."""

InjectedOperations = NamedDependency[Operations]

Context = Annotated[str, PathParameter(schema_extra=NOT_EMPTY, description="`.context`, or the default one")]
Subject = Annotated[
    str, PathParameter(schema_extra=NOT_EMPTY, description="a subject, `:.context:subject`, or `:.context:` alone")
]
Version = Annotated[
    str, PathParameter(schema_extra=NOT_EMPTY, description="number from 1, `latest`, or -1 for the latest")
]
SchemaId = Annotated[str, PathParameter(name="id", schema_extra=_INTEGER, description="id of a schema in its context")]
Guid = Annotated[str, PathParameter(schema_extra=NOT_EMPTY, description="UUID of a schema's content")]

Flag = Annotated[str, QueryParameter(schema_extra=_FLAG, description="`true` sets it")]
Offset = Annotated[str, QueryParameter(schema_extra=_INTEGER, description="items to skip")]
Limit = Annotated[str, QueryParameter(schema_extra=_INTEGER, description="most items to return")]
Text = Annotated[str, QueryParameter()]
Shape = Annotated[
    str, QueryParameter(name="format", description="form of the text, such as `resolved` or `serialized`")
]
References = Annotated[
    str, QueryParameter(name="referenceFormat", description="`qualified`: subjects of references with their context")
]
FindTags = Annotated[list[str] | None, QueryParameter(name="findTags", description="tags to list; * is any")]
DeletedOnly = Annotated[
    str, QueryParameter(name="deletedOnly", schema_extra=_FLAG, description="only soft-deleted items")
]
AsNegative = Annotated[
    str,
    QueryParameter(
        name="deletedAsNegative", schema_extra=_FLAG, description="soft-deleted versions as negative numbers"
    ),
]
SubjectPrefix = Annotated[
    str, QueryParameter(name="subjectPrefix", description="`x`, `:.context:x`, or `:*:x` for all contexts")
]
ContextPrefix = Annotated[str, QueryParameter(name="contextPrefix", description="first characters of the names")]
LatestOnly = Annotated[
    str, QueryParameter(name="latestOnly", schema_extra=_FLAG, description="only the newest version of each subject")
]
RuleType = Annotated[str, QueryParameter(name="ruleType", description="only schemas with a rule of that type")]
ResourceType = Annotated[str, QueryParameter(name="resourceType", description="type of resources: `topic`")]
AssociationTypes = Annotated[list[str] | None, QueryParameter(name="associationType", description="`key`, `value`")]
Lifecycles = Annotated[
    list[str] | None,
    QueryParameter(name="lifecycle", description="`STRONG`, `WEAK`; `NONE` for subjects without associations"),
]
FetchMaxId = Annotated[str, QueryParameter(name="fetchMaxId", schema_extra=_FLAG, description="add the highest id")]
IncludeSubjects = Annotated[
    str,
    QueryParameter(
        name="includeSubjects",
        schema_extra=_FLAG,
        description="in the profile `karapace`: add the subjects that have the schema",
    ),
]
DefaultToGlobal = Annotated[
    str, QueryParameter(name="defaultToGlobal", schema_extra=_FLAG, description="the effective value, from any level")
]

ERRORS = {
    status: ResponseSpec(ErrorMessage, description=why, generate_examples=False, media_type=MEDIA_TYPE)
    for status, why in (
        (400, "The body is not JSON, or the name of a context has a colon"),
        (404, "Subject, version, schema or setting not found"),
        (409, "Incompatible with an earlier schema"),
        (422, "Invalid schema, name, level, mode, version or rule set; or the mode forbids it"),
        (500, "The store does not answer"),
    )
}


def with_context_prefix(path: str) -> list[str]:
    """Return a path at the root and the same path inside a context."""
    return [path, f"/contexts/{{context:str}}{path}"]


def text_response(text: str) -> Response[bytes]:
    """Return a response whose whole body is a schema's text: JSON or Protobuf, with the media type of the API."""
    return Response(text.encode(), media_type=MEDIA_TYPE)


Options = dict[str, Any]
READ: Options = {"responses": ERRORS, "media_type": MEDIA_TYPE}
"""Options of endpoints that read."""
WRITE: Options = {**READ, "status_code": 200}
"""Options of endpoints that write."""
