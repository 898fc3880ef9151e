"""History of subjects: versions, fields, compatibility matrices, neighbours; and the atlas of a namespace."""

from __future__ import annotations

from typing import Annotated, Final

from litestar import get
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import decode_segment, parse_whole_number
from stele.apis.native.errors import ERRORS, NativeError
from stele.apis.native.params import InjectedRegistry
from stele.core.access import Operation
from stele.core.model import MAX_INT32, SubjectKey
from stele.core.policy import find_policy
from stele.errors import InvalidName
from stele.protocol.history import (
    MOST_COLUMNS,
    MOST_COMPARED,
    MOST_DEPTH,
    MOST_SUBJECTS,
    MOST_VERSIONS,
    CompatibilityMatrix,
    FieldLifelines,
    NamespaceAtlas,
    Neighbourhood,
    SubjectHistory,
)
from stele.service.history import get_history, get_matrix
from stele.service.lifelines import get_lifelines
from stele.service.neighbours import get_atlas, get_neighbourhood
from stele.service.policies import parse_level_name

_USUAL_VERSIONS: Final = "300"
_USUAL_COLUMNS: Final = "100"
_USUAL_COMPARED: Final = "20"

SubjectName = Annotated[
    str, PathParameter(name="subject", schema_extra={"minLength": 1}, description="`subject` or `:.namespace:subject`")
]
Before = Annotated[
    str | None,
    QueryParameter(
        schema_extra={"type": "integer", "minimum": 1, "maximum": MAX_INT32},
        description="only versions with a lower number",
    ),
]
MostVersions = Annotated[
    str,
    QueryParameter(
        name="limit",
        schema_extra={"type": "integer", "minimum": 1, "maximum": MOST_VERSIONS},
        description="most versions, newest first",
    ),
]
MostColumns = Annotated[
    str,
    QueryParameter(
        name="limit",
        schema_extra={"type": "integer", "minimum": 1, "maximum": MOST_COLUMNS},
        description="most versions, newest first",
    ),
]
MostCompared = Annotated[
    str,
    QueryParameter(
        name="limit",
        schema_extra={"type": "integer", "minimum": 1, "maximum": MOST_COMPARED},
        description="most versions, newest first",
    ),
]
PolicyName = Annotated[
    str | None,
    QueryParameter(
        name="policy",
        description="mark the pairs that this policy checks, such as `FULL_TRANSITIVE`; default: the effective policy",
    ),
]
VersionNumber = Annotated[
    str | None,
    QueryParameter(
        name="version",
        schema_extra={"type": "integer", "minimum": 1, "maximum": MAX_INT32},
        description="version in the middle; default: the newest active version",
    ),
]
Depth = Annotated[
    str,
    QueryParameter(
        schema_extra={"type": "integer", "minimum": 1, "maximum": MOST_DEPTH},
        description="references to follow in each direction",
    ),
]
InNamespace = Annotated[str, QueryParameter(name="namespace", description="'' is the default namespace")]
After = Annotated[str, QueryParameter(description="name of the subject to start after")]
MostSubjects = Annotated[
    str,
    QueryParameter(
        name="limit",
        schema_extra={"type": "integer", "minimum": 1, "maximum": MOST_SUBJECTS},
        description="most subjects",
    ),
]

_ANSWERS = {
    404: ResponseSpec(NativeError, description="Subject or version not found", generate_examples=False),
    422: ERRORS[422],
}
_TIMED = {**access(Operation.READ), VOLATILE: True}
"""Options of endpoints that compute verdicts until a time limit. The next response may have more of them."""


@get("/api/history/{subject:str}", responses=_ANSWERS, opt=_TIMED)
async def show_history(
    registry: InjectedRegistry, subject_name: SubjectName, before: Before = None, limit: MostVersions = _USUAL_VERSIONS
) -> SubjectHistory:
    # GET /api/history/{subject}?before&limit
    """Show the versions of a subject, each with its verdicts both ways against the one before."""
    upper = None if before is None else parse_whole_number("before", before, 1, MAX_INT32)
    most = parse_whole_number("limit", limit, 1, MOST_VERSIONS)
    return await get_history(registry, _parse_subject(subject_name), before=upper, limit=most)


@get("/api/lifelines/{subject:str}", responses=_ANSWERS, opt=_TIMED)
async def show_lifelines(
    registry: InjectedRegistry, subject_name: SubjectName, limit: MostColumns = _USUAL_COLUMNS
) -> FieldLifelines:
    # GET /api/lifelines/{subject}?limit
    """Show the fields of a subject through its versions: when each was added, removed and changed."""
    most = parse_whole_number("limit", limit, 1, MOST_COLUMNS)
    return await get_lifelines(registry, _parse_subject(subject_name), limit=most)


@get("/api/matrix/{subject:str}", responses=_ANSWERS, opt=_TIMED)
async def show_matrix(
    registry: InjectedRegistry,
    subject_name: SubjectName,
    limit: MostCompared = _USUAL_COMPARED,
    policy: PolicyName = None,
) -> CompatibilityMatrix:
    # GET /api/matrix/{subject}?limit&policy
    """Show which versions of a subject can read the data of which others, and which of these a policy requires."""
    most = parse_whole_number("limit", limit, 1, MOST_COMPARED)
    wanted = None if policy is None else find_policy(policy)
    return await get_matrix(registry, _parse_subject(subject_name), limit=most, policy=wanted)


@get("/api/neighbours/{subject:str}", responses=_ANSWERS, opt=access(Operation.READ))
async def show_neighbours(
    registry: InjectedRegistry, subject_name: SubjectName, version: VersionNumber = None, depth: Depth = "1"
) -> Neighbourhood:
    # GET /api/neighbours/{subject}?version&depth
    """Show what a subject refers to and what refers to it, with the versions in the references."""
    number = None if version is None else parse_whole_number("version", version, 1, MAX_INT32)
    steps = parse_whole_number("depth", depth, 1, MOST_DEPTH)
    return await get_neighbourhood(registry, _parse_subject(subject_name), number, depth=steps)


@get("/api/atlas", responses={400: ERRORS[400], 422: ERRORS[422]}, opt=access(Operation.READ, Place.LIST))
async def show_atlas(
    registry: InjectedRegistry, namespace: InNamespace = "", after: After = "", limit: MostSubjects = _USUAL_VERSIONS
) -> NamespaceAtlas:
    # GET /api/atlas?namespace&after&limit
    """Show the subjects of a namespace and the references between them."""
    most = parse_whole_number("limit", limit, 1, MOST_SUBJECTS)
    return await get_atlas(registry, namespace, after=after, limit=most)


def _parse_subject(name: str) -> SubjectKey:
    """Return the subject that a path names. Raises `InvalidName`."""
    level = parse_level_name(decode_segment(name))
    if level.namespace is None or level.subject is None:
        raise InvalidName(decode_segment(name), "names no subject")
    return SubjectKey(level.namespace, level.subject)


ROUTES: Final = (
    show_history,
    show_lifelines,
    show_matrix,
    show_neighbours,
    show_atlas,
)
"""Endpoints of the history and the neighbours of subjects."""
