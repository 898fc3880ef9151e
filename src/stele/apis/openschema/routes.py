"""Endpoints of the dialect: subjects, their schemas and versions, and compatibility."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import PathParameter

from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import WrongShape, decode_segment, read_body
from stele.apis.openschema import models as api
from stele.apis.openschema import translate
from stele.apis.openschema.errors import ERROR_RESPONSES
from stele.apis.openschema.models import MEDIA_TYPE
from stele.apis.openschema.operations import (
    Operations,
    get_live_version,
    now_after,
    require_consistent,
    require_consistent_without,
)
from stele.apis.openschema.translate import DIALECT, format_schema_id, namespace_of
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import (
    ChangeSettings,
    ChangeSubject,
    CreateSubject,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    Equality,
    RegisterSchema,
    Registration,
    SubjectDefaults,
    Transaction,
)
from stele.core.model import Attachments, Numbering, SettingsLevel, Subject, SubjectKey
from stele.core.policy import BACKWARD, find_policy
from stele.core.state import State
from stele.errors import AlreadyExists, InvalidName, SubjectNotFound
from stele.service.retry import retry_when_overtaken

InjectedOperations = NamedDependency[Operations]

SubjectName = Annotated[str, PathParameter(description="name of a subject, usually that of a topic")]
VersionName = Annotated[str, PathParameter(description="a version number from 1, or `latest`")]
SchemaId = Annotated[str, PathParameter(description="id of a schema")]

READ: dict[str, Any] = {"responses": ERROR_RESPONSES, "status_code": 200, "media_type": MEDIA_TYPE}
"""Options of all endpoints."""


_SUBJECT = "/subjects/{subject:str}"


@get("/subjects", **READ, opt=access(Operation.LIST, Place.LIST))
async def list_subjects(operations: InjectedOperations) -> api.SubjectNames:
    # GET /subjects
    """Return the names of all subjects, or of those of a tenant's namespace."""
    state = await operations.registry.fresh_state()
    subjects = (row for namespace in operations.list_namespaces(state) for row in namespace.subjects.values())
    is_listed = operations.registry.access.make_filter()
    names = {
        subject.key.name
        async for subject in operations.registry.time_slices.iterate(subjects)
        if translate.is_visible(subject) and is_listed(subject.key)
    }
    return api.SubjectNames(sorted(names))


@get(_SUBJECT, **READ, opt=access(Operation.READ))
async def get_subject(operations: InjectedOperations, subject: SubjectName) -> api.SubjectBody:
    # GET /subjects/{subject}
    """Return a subject."""
    return translate.subject_body(*await operations.get_subject(decode_segment(subject)))


@post(
    _SUBJECT,
    operation_class=openapi_body(api.SubjectInput, MEDIA_TYPE),
    **READ,
    opt=access(Operation.REGISTER, Place.INSIDE),
)
async def put_subject(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> api.SubjectBody:
    # POST /subjects/{subject}/
    """Create a subject, or change its attributes."""
    body = await read_body(request, api.SubjectInput)
    namespace = namespace_of(body.tenant, body.namespace)
    if body.subject != decode_segment(subject) or operations.namespace not in {None, namespace}:
        raise WrongShape("subject, tenant and namespace differ from those of the address")
    if not body.status.strip():
        raise WrongShape("status is missing")
    if not body.subject.strip():
        raise InvalidName(body.subject, "is not a name")
    operations.check_sizes(body.app, body.description, body.coordinate, body.status)
    key = SubjectKey(namespace, body.subject)
    operations.registry.access.require(Operation.REGISTER, subject_resource(key))

    def read(state: State, _: Any) -> api.SubjectBody:
        subject = state.find_subject(key)
        assert subject is not None  # This is the state after the change.
        return translate.subject_body(state, subject)

    async def put(state: State) -> api.SubjectBody:
        subject = state.find_subject(key)
        change = (
            _describe_creation(operations, key, body)
            if subject is None
            else await _describe_change(operations, state, subject, body)
        )
        # Another request may delete the subject right after this. It must not be created a second time then.
        return await operations.registry.execute_and_read(change, read, via=DIALECT)

    # Either error means that another writer was faster: then the other one of the two commands is right.
    return await retry_when_overtaken(operations.registry, put, conflicts=(AlreadyExists, SubjectNotFound))


def _describe_creation(operations: Operations, key: SubjectKey, body: api.SubjectInput) -> CreateSubject:
    """Return the command that creates a subject."""
    policy = translate.parse_policy(body.compatibility)
    settings = operations.registry.state.settings_at(SettingsLevel(*key))
    if policy is None and settings is not None:  # Another dialect set a policy for this name.
        policy = settings.policy
    defaults = SubjectDefaults(Numbering.NEVER_REUSE, policy=policy or BACKWARD)
    dialect_data = translate.subject_data(None, body, now_after(0))
    return CreateSubject(key, defaults, body.description or "", dialect_data=dialect_data)


async def _describe_change(
    operations: Operations, state: State, subject: Subject, body: api.SubjectInput
) -> Transaction:
    """Return the command that changes a subject. Raises `Incompatible` for a policy that its versions violate."""
    commands: list[Any] = []
    policy = translate.parse_policy(body.compatibility)
    if policy is not None and policy != queries.policy_for(state, subject.key):
        await require_consistent(operations.registry, state, subject, policy, max_pairs=operations.options.max_pairs)
        commands.append(ChangeSettings(SettingsLevel(*subject.key), {"policy": policy}))
    dialect_data = translate.subject_data(subject.dialect_data, body, now_after(translate.modified_at(state, subject)))
    description = subject.description if body.description is None else body.description
    commands.append(ChangeSubject(subject.key, description, subject.labels, dialect_data, subject.default_version))
    return Transaction(tuple(commands))


@delete(_SUBJECT, **READ, opt=access(Operation.DELETE))
async def delete_subject(operations: InjectedOperations, subject: SubjectName) -> api.VersionNumbers:
    # DELETE /subjects/{subject}
    """Delete a subject with its compatibility and all versions, and return their numbers."""
    _, stored_subject = await operations.get_subject(decode_segment(subject))
    live = [row.version_number for row in queries.list_versions(stored_subject)]
    await operations.execute(DeleteSubject(stored_subject.key, DeleteMode.END_INCARNATION))
    return api.VersionNumbers(live)


_VERSIONS = "/subjects/{subject:str}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"
_EQUALITY_DIGEST = "normalized"
"""Kind of the digest that makes two definitions equal."""


@get("/schemas/{schema_id:str}", **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_schema(operations: InjectedOperations, schema_id: SchemaId) -> api.SchemaBody:
    # GET /schemas/{id}
    """Return the schema with an id, including those of deleted versions, because stored data may contain the id."""
    return translate.schema_body(*await operations.get_version_by_id(decode_segment(schema_id)))


@get("/schemas/{schema_id:str}/subject", **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_subject_of_schema(operations: InjectedOperations, schema_id: SchemaId) -> api.SchemaLocation:
    # GET /schemas/{id}/subject
    """Return subject and version of a schema id. If there are several, return the first active version."""
    _, version = await operations.get_version_by_id(decode_segment(schema_id))
    return api.SchemaLocation(version.subject.key.name, version.version_number)


@get(_VERSIONS, **READ, opt=access(Operation.READ))
async def list_versions(operations: InjectedOperations, subject: SubjectName) -> api.VersionNumbers:
    # GET /subjects/{subject}/versions
    """Return the version numbers of a subject."""
    _, stored_subject = await operations.get_subject(decode_segment(subject))
    return api.VersionNumbers([row.version_number for row in queries.list_versions(stored_subject)])


@get(f"{_VERSION}/schema", **READ, opt=access(Operation.READ))
async def get_version(
    operations: InjectedOperations, subject: SubjectName, version: VersionName
) -> api.SubjectWithSchema:
    # GET /subjects/{subject}/versions/{version}/schema
    """Return a subject with the schema of one version."""
    state, row = await operations.get_version(decode_segment(subject), translate.parse_version(decode_segment(version)))
    subject_body = translate.subject_body(state, row.subject)
    return translate.with_schema(subject_body, row, translate.schema_body(state, row))


@post(_VERSIONS, operation_class=openapi_body(api.SchemaInputDoc, MEDIA_TYPE), **READ, opt=access(Operation.REGISTER))
async def register_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> api.SchemaIdBody:
    # POST /subjects/{subject}/versions
    """Register a schema, with its subject if that is new; an equal definition keeps its id."""
    schema_input = await read_body(request, api.SchemaInput)
    state = await operations.registry.fresh_state()
    key = operations.resolve_key(state, decode_segment(subject))
    newest = queries.latest_version(state.find_subject(key))
    submitted = operations.parse_schema(schema_input, newest)
    prepared = await operations.prepare_schema(state, submitted, newest)
    outcome = await operations.execute(
        RegisterSchema(
            key,
            prepared.document,
            prepared.references,
            equality=Equality.DIGEST,
            equality_digest=_EQUALITY_DIGEST,
            defaults=SubjectDefaults(Numbering.NEVER_REUSE, policy=BACKWARD),
            description=schema_input.comment or "",
            dialect_data={DIALECT: translate.schema_data(schema_input, submitted)},
        )
    )
    assert isinstance(outcome, Registration)
    return api.SchemaIdBody(format_schema_id(key.namespace, outcome.schema_id))


@delete(_VERSION, **READ, opt=access(Operation.DELETE))
async def delete_version(
    operations: InjectedOperations, subject: SubjectName, version: VersionName
) -> api.SingleVersion:
    # DELETE /subjects/{subject}/versions/{version}
    """Delete a version. It is refused if the versions before and after it are not compatible with each other."""
    number = translate.parse_version(decode_segment(version))
    state, stored_subject = await operations.get_subject(decode_segment(subject))
    row = get_live_version(state, stored_subject, number)
    await require_consistent_without(operations.registry, state, row)
    await operations.execute(DeleteVersion(stored_subject.key, row.version_number))
    return api.SingleVersion(row.version_number)


_CONFIG = "/config/{subject:str}"


@post(
    "/compatibility/subjects/{subject:str}/versions/{version:str}",
    operation_class=openapi_body(api.CheckInputDoc, MEDIA_TYPE),
    **READ,
    opt=access(Operation.READ),
)
async def check_compatibility(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName, version: VersionName
) -> api.CompatibilityAnswer:
    # POST /compatibility/subjects/{subject}/versions/{version}
    """Return whether a schema is compatible with a version under the policy of the subject."""
    body = await read_body(request, api.CheckInput)
    number = translate.parse_version(decode_segment(version))
    state, stored_subject = await operations.get_subject(decode_segment(subject))
    row = get_live_version(state, stored_subject, number)
    submitted = operations.parse_schema(translate.parse_checked_schema(bytes(body.schema)), row)
    prepared = await operations.prepare_schema(state, submitted, row)
    attachments = Attachments(prepared.references)
    findings, _ = await operations.registry.find_incompatibilities(
        stored_subject.key, prepared.document, attachments, version_number=row.version_number
    )
    return api.CompatibilityAnswer(not findings)


@get(_CONFIG, **READ, opt=access(Operation.READ))
async def get_config(operations: InjectedOperations, subject: SubjectName) -> api.ConfigBody:
    # GET /config/{subject}
    """Return the compatibility of a subject."""
    state, stored_subject = await operations.get_subject(decode_segment(subject))
    return translate.config_body(queries.policy_for(state, stored_subject.key))


@put(_CONFIG, operation_class=openapi_body(api.ConfigInput, MEDIA_TYPE), **READ, opt=access(Operation.CHANGE_POLICY))
async def put_config(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> api.ConfigBody:
    # PUT /config/{subject}
    """Set the compatibility of a subject, if its versions satisfy it."""
    body = await read_body(request, api.ConfigInput)
    policy = find_policy(body.compatibility)
    state, stored_subject = await operations.get_subject(decode_segment(subject))
    await require_consistent(operations.registry, state, stored_subject, policy, max_pairs=operations.options.max_pairs)
    at = now_after(translate.modified_at(state, stored_subject))
    await operations.execute(
        ChangeSettings(
            SettingsLevel(*stored_subject.key), {"policy": policy, "dialect_data": {DIALECT: {"modified": at}}}
        )
    )
    return translate.config_body(policy)


ROUTES = [
    list_subjects,
    get_subject,
    put_subject,
    delete_subject,
    get_schema,
    get_subject_of_schema,
    list_versions,
    get_version,
    register_schema,
    delete_version,
    check_compatibility,
    get_config,
    put_config,
]
