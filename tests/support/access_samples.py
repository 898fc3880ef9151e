"""One request for each endpoint of each dialect about a subject of one team, and the requests that fill the registry.

The paths come from the routes. This module holds the values of their parameters and the bodies.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from stele.core.access import (
    REGISTRY_RESOURCE,
    AccessRule,
    AccessRules,
    Resource,
    ResourceType,
    key_resource,
    subject_resource,
)
from stele.core.model import SubjectKey

SUBJECT = "secret-salaries"
MARKER = "MarkerOfSalaries"
TEAM = "sales"
"""Namespace of the team; the same subject is in the default namespace, too."""
KEK = "secret-kek"
PLACE = "topic secret-topic"

TEXT = f'{{"type":"record","name":"{MARKER}","fields":[{{"name":"a","type":"int"}}]}}'
NEXT_TEXT = json.dumps(
    {
        "type": "record",
        "name": MARKER,
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0}],
    }
)
OTHER_TEXT = '{"type":"record","name":"Other","fields":[]}'

ROLES = ("reader", "writer", "owner")
CALLERS = ("", *ROLES, "admin", "stranger")
"""Names of the callers: anonymous (""), the roles of the team, the admin, and the owner of another namespace."""

_TEAM_RULES = [
    AccessRule(f"user:{role}", (role,), resource_type=ResourceType.NAMESPACE, namespace=namespace)
    for role in ROLES
    for namespace in ("", TEAM)
]
_KEY_RULES = [AccessRule(f"user:{role}", (role,), resource_type=ResourceType.KEY, name=KEK) for role in ROLES]
RULES = AccessRules(
    [
        *_TEAM_RULES,
        *_KEY_RULES,
        AccessRule("user:admin", ("admin",)),
        AccessRule("user:stranger", ("owner",), resource_type=ResourceType.NAMESPACE, namespace="elsewhere"),
        AccessRule("user:stranger", ("owner",), resource_type=ResourceType.KEY, name="other-kek"),
    ],
    default_allow=False,
)


class Sample(NamedTuple):
    """What a request to an endpoint has besides its path.

    body     sent as JSON; bytes are sent unchanged
    query    query of the address; `{name}` stands for a parameter
    params   values of path parameters that replace those of the dialect
    headers  headers of the request
    resource resource that the required right applies to
    bare     resource where the path has no parameters; None: the same as `resource`
    shows    whether the answer to the admin holds the name of the subject or the marker of its schema
    each     whether the body names several things, each of which is refused or done separately
    statuses error statuses that the admin may get, where the path names something that does not exist
    """

    body: Any = None
    query: str = ""
    params: Mapping[str, str] = MappingProxyType({})
    headers: Mapping[str, str] = MappingProxyType({})
    resource: Resource = subject_resource(SubjectKey(TEAM, SUBJECT))
    bare: Resource | None = None
    shows: bool = True
    each: bool = False
    statuses: tuple[int, ...] = ()


_REGISTRY = Sample(resource=REGISTRY_RESOURCE)
_KEY = Sample(resource=key_resource(KEK))
_AVRO_FORMAT = {"serializationFormat": "Avro"}
_INFO = {
    "type": MARKER,
    "serializationFormat": _AVRO_FORMAT,
    "schemaData": base64.b64encode(TEXT.encode()).decode(),
}
_ASSOCIATION = {
    "resourceName": "secret-topic",
    "resourceNamespace": "cluster",
    "resourceId": "secret-topic-id",
    "associations": [{"subject": SUBJECT, "associationType": "value", "lifecycle": "WEAK"}],
}
_MORE_ASSOCIATIONS = {**_ASSOCIATION, "associations": [{"subject": SUBJECT, "associationType": "key"}]}
_EXPORTER = {"name": "exp", "contextType": "NONE", "subjects": ["*"], "config": {"schema.registry.url": "http://x"}}
_REPLICATION = {"name": "rep", "direction": "pull", "registry": {"url": "http://x"}}
_REPLICA = {
    "uid": "0123456789abcdef0123456789abcdef",
    "namespace": TEAM,
    "subject": SUBJECT,
    "version": 7,
    "schemaId": 7,
    "uri": "http://x/7",
    "authority": "http://x",
    "format": "avro",
    "text": NEXT_TEXT,
}
_KEK_BODY = {"name": KEK, "kmsType": "aws-kms", "kmsKeyId": "arn:aws:kms:x", "shared": False}
_DEK_BODY = {"subject": SUBJECT, "encryptedKeyMaterial": "c2VjcmV0"}
_SCHEMA = {"schema": NEXT_TEXT}
_CENSUS = {
    "counted_at": 1,
    "records": 1,
    "seen": [{"subject": SUBJECT, "version": 1, "schema_id": 1, "records": 1}],
}
_SUBSCRIPTION = {"sink": "https://sink.example.org/x", "protocol": "HTTP"}
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_PLAIN = {"content-type": "text/plain"}
_JSON = {"content-type": "application/json"}
_ACL = {
    "principal": "User:x",
    "resource": "y",
    "resource_type": "SUBJECT",
    "operation": "READ",
    "permission": "ALLOW",
}

CONFLUENT: dict[str, Sample] = {
    "get_root": Sample(),
    "get_readiness": Sample(),
    "get_cluster_id": Sample(),
    "get_server_version": Sample(),
    "get_deployment": Sample(),
    "list_contexts": Sample(shows=False),
    "delete_context": Sample(params={"context": ".empty"}, resource=Resource(ResourceType.NAMESPACE, "empty")),
    "list_acls": _REGISTRY,
    "create_acls": _REGISTRY._replace(body=[_ACL]),
    "delete_acls": _REGISTRY._replace(body=[_ACL]),
    "list_schemas": Sample(),
    "list_types": Sample(),
    "get_schema": Sample(),
    "get_schema_text": Sample(),
    "list_subjects_of_id": Sample(),
    "list_versions_of_id": Sample(),
    "get_schema_by_guid": Sample(),
    "list_ids_of_guid": Sample(shows=False),
    "list_subjects": Sample(),
    "look_up_schema": Sample(body={"schema": TEXT}),
    "delete_subject": Sample(params={"subject": "unbound"}),
    "list_versions": Sample(),
    "register_schema": Sample(body=_SCHEMA),
    "find_by_metadata": Sample(),
    "get_version": Sample(),
    "get_version_text": Sample(),
    "list_referrers": Sample(),
    "delete_version": Sample(params={"subject": "unbound"}),
    "tag_version": Sample(body={"tagsToAdd": []}),
    "check_against_all": Sample(body=_SCHEMA),
    "check_against_version": Sample(body=_SCHEMA),
    "import_all": Sample(
        body={"versions": [{"subject": SUBJECT, "version": 7, "id": 70, "schema": NEXT_TEXT}]}, each=True
    ),
    "get_config": Sample(),
    "get_settings_of_levels": Sample(body={"levels": [SUBJECT]}),
    "change_config": Sample(body={"compatibility": "FULL"}),
    "delete_config": Sample(),
    "get_mode": Sample(query="defaultToGlobal=true"),
    "change_mode": Sample(body={"mode": "READONLY"}),
    "delete_mode": Sample(query="recursive=true"),
    "list_associations_of_subject": Sample(),
    "list_associations_of_resource": Sample(),
    "list_associations_of_name": Sample(),
    "create_associations": Sample(body=_MORE_ASSOCIATIONS),
    "create_or_update": Sample(body=_MORE_ASSOCIATIONS),
    "delete_associations": Sample(),
    "mutate_batch": Sample(
        body={
            "requests": [
                {
                    **_ASSOCIATION,
                    "associations": [{"opType": "CREATE", "subject": SUBJECT, "associationType": "key"}],
                }
            ]
        },
        each=True,
    ),
    "get_batch": Sample(body={"requests": [{"resourceId": "secret-topic-id"}]}),
    "list_keks": _KEY._replace(shows=False),
    "create_kek": _KEY._replace(body={**_KEK_BODY, "doc": "other"}, statuses=(409,)),
    "get_kek": _KEY,
    "update_kek": _KEY._replace(body={"doc": "new"}),
    "delete_kek": _KEY._replace(statuses=(422,)),
    "undelete_kek": _KEY,
    "check_kek": _KEY._replace(statuses=(422,)),
    "list_dek_subjects": _KEY,
    "create_dek": _KEY._replace(body={**_DEK_BODY, "version": 2}),
    "create_dek_of_subject": _KEY._replace(body={**_DEK_BODY, "version": 2}),
    "get_dek": _KEY,
    "list_dek_versions": _KEY,
    "get_dek_version": _KEY,
    "delete_dek": _KEY,
    "delete_dek_version": _KEY,
    "undelete_dek": _KEY,
    "undelete_dek_version": _KEY,
    "list_exporters": _REGISTRY,
    "create_exporter": _REGISTRY._replace(body={**_EXPORTER, "name": "exp2"}),
    "get_exporter": _REGISTRY,
    "update_exporter": _REGISTRY._replace(body={"subjects": ["a"]}),
    "delete_exporter": _REGISTRY,
    "get_status": _REGISTRY,
    "get_exporter_config": _REGISTRY,
    "update_exporter_config": _REGISTRY._replace(body={"schema.registry.url": "http://y"}),
    "pause_exporter": _REGISTRY,
    "resume_exporter": _REGISTRY,
    "reset_exporter": _REGISTRY,
}
NATIVE: dict[str, Sample] = {
    "read_journal": Sample(),
    "read_texts": Sample(query="sha256={sha256}"),
    "read_events": Sample(query="limit=1000"),
    "read_audit": _REGISTRY,
    "list_refusals": _REGISTRY,
    "list_access_rules": _REGISTRY._replace(shows=False),
    "add_access_rule": _REGISTRY._replace(body={"rule": "allow user:ann reader registry"}, shows=False),
    "remove_access_rule": _REGISTRY._replace(query="rule=allow%20user:bob%20reader%20registry", statuses=(404,)),
    "explain_access": _REGISTRY._replace(query="principal=user:ann&operation=read&resource=registry", shows=False),
    "list_subscriptions": _REGISTRY,
    "pause_subscription": _REGISTRY,
    "resume_subscription": _REGISTRY,
    "list_replications": _REGISTRY._replace(shows=False),
    "create_replication": _REGISTRY._replace(body=_REPLICATION, statuses=(422,)),  # without public_url there is none
    "get_replication": _REGISTRY._replace(statuses=(404,)),
    "pause_replication": _REGISTRY._replace(statuses=(404,)),
    "resume_replication": _REGISTRY._replace(statuses=(404,)),
    "delete_replication": _REGISTRY._replace(statuses=(404,)),
    "read_all_versions": Sample(body={"subjects": [[TEAM, SUBJECT]]}),
    "import_replicas": Sample(body={"versions": [_REPLICA]}),
    "list_keys": _REGISTRY,
    "create_key": _REGISTRY._replace(body={"name": "service"}),
    "revoke_key": _REGISTRY._replace(params={"id": "0123456789abcdef"}, statuses=(404,)),
    "show_policy": Sample(bare=REGISTRY_RESOURCE),
    "set_policy": Sample(body={"policy": {"name": "FULL"}}, bare=REGISTRY_RESOURCE),
    "clear_policy": Sample(bare=REGISTRY_RESOURCE),
    "list_rulesets": Sample(),
    "report_differences": Sample(body={"format": "avro", "ruleset": "avro-ruby", "everywhere": True}, shows=False),
    "adopt_ruleset": _REGISTRY._replace(body={}),
    "check_schema": Sample(body={"format": "avro", "schema": TEXT}),
    "diff_schemas": Sample(body={"format": "avro", "old": {"schema": TEXT}, "new": {"schema": NEXT_TEXT}}),
    "lint_schema": Sample(body={"format": "avro", "schema": TEXT}),
    "convert_schema": Sample(body={"format": "avro", "schema": TEXT, "to": "json"}),
    "infer_schema": Sample(body={"samples": ["{}"], "to": "json"}),
    "show_example": Sample(body={"format": "avro", "schema": TEXT}),
    "list_fields": Sample(body={"format": "avro", "schema": TEXT}),
    "list_usage": Sample(),
    "show_usage": Sample(),
    "record_usage": Sample(body=_CENSUS),
    "forget_usage": Sample(),
    "preview_deletion": Sample(),
    "show_history": Sample(),
    "show_lifelines": Sample(),
    "show_matrix": Sample(),
    "show_neighbours": Sample(),
    "show_atlas": Sample(),
}
PRAVEGA: dict[str, Sample] = {
    "ping": Sample(),
    "list_groups": Sample(),
    "create_group": Sample(
        body={
            "groupName": "secret-new",
            "groupProperties": {
                "serializationFormat": _AVRO_FORMAT,
                "compatibility": {"policy": "AllowAny"},
                "allowMultipleTypes": True,
            },
        }
    ),
    "get_group_properties": Sample(),
    "delete_group": Sample(),
    "get_group_history": Sample(),
    "update_compatibility": Sample(body={"compatibility": {"policy": "AllowAny"}}),
    "get_schemas": Sample(),
    "add_schema": Sample(body=_INFO),
    "get_schema_versions": Sample(),
    "get_schema_version": Sample(body=_INFO),
    "validate_schema": Sample(body={"schemaInfo": _INFO}),
    "can_read_using": Sample(body=_INFO),
    "get_schema_for_id": Sample(),
    "delete_schema_for_id": Sample(),
    "get_schema_from_version": Sample(),
    "delete_schema_version": Sample(),
    "get_schema_references": Sample(body=_INFO),
    "get_codec_types": Sample(),
    "add_codec_type": Sample(body={"name": "zip"}),
    "get_encoding_id": Sample(
        body={"versionInfo": {"type": MARKER, "version": 0, "id": 0, "serializationFormat": "Avro"}, "codecType": ""}
    ),
    "get_encoding_info": Sample(),
}
CNCF: dict[str, Sample] = {
    "get_groups": Sample(shows=False),
    "get_group": Sample(),
    "create_group": Sample(body={}),
    "delete_group": Sample(),
    "get_schemas_by_group": Sample(),
    "delete_schemas_by_group": Sample(),
    "create_schema": Sample(body=NEXT_TEXT.encode(), headers=_JSON),
    "get_latest_schema": Sample(),
    "delete_schema": Sample(),
    "get_schema_versions": Sample(),
    "get_schema_version": Sample(),
    "delete_schema_version": Sample(),
    "get_schema_version_by_uri": Sample(query="uri={uri}"),
    "options_of_all": Sample(),
    "options_of_one": Sample(),
    "query_subscriptions": _REGISTRY,
    "create_subscription": _REGISTRY._replace(body=_SUBSCRIPTION),
    "retrieve_subscription": _REGISTRY,
    "update_subscription": _REGISTRY._replace(body=_SUBSCRIPTION),
    "delete_subscription": _REGISTRY,
    "azure_list_groups": Sample(shows=False),
    "azure_get_group": Sample(),
    "azure_put_group": Sample(body={"schemaType": "Avro"}, statuses=(409,)),
    "azure_delete_group": Sample(),
    "azure_list_schemas": Sample(),
    "azure_register": Sample(body=NEXT_TEXT.encode(), headers={"content-type": "application/json; serialization=Avro"}),
    "azure_get_id": Sample(
        body=TEXT.encode(),
        headers={"content-type": "application/json; serialization=Avro"},
        params={"schema": f"{SUBJECT}:get-id"},
    ),
    "azure_get_latest": Sample(),
    "azure_delete_schema": Sample(),
    "azure_list_versions": Sample(),
    "azure_get_version": Sample(),
    "azure_delete_version": Sample(),
    "azure_get_by_id": Sample(),
}
SCHEMA_REPO: dict[str, Sample] = {
    "avro1124.list_groups": Sample(),
    "avro1124.list_ids": Sample(statuses=(404,)),
    "avro1124.get_schema": Sample(statuses=(404,)),
    "avro1124.register_schema": Sample(body=b"schema=" + quote(NEXT_TEXT).encode(), headers=_FORM),
    "subjects.list_subjects": Sample(),
    "subjects.has_subject": Sample(),
    "subjects.create_subject": Sample(body=b"", headers=_FORM),
    "subjects.list_schemas": Sample(),
    "subjects.get_config": Sample(),
    "subjects.get_latest": Sample(),
    "subjects.get_schema": Sample(params={"id": "0"}),
    "subjects.is_integral": Sample(),
    "subjects.find_id": Sample(body=TEXT.encode(), headers=_PLAIN),
    "subjects.register_schema": Sample(body=NEXT_TEXT.encode(), headers=_PLAIN),
    "subjects.register_if_latest": Sample(body=NEXT_TEXT.encode(), headers=_PLAIN, statuses=(409,)),
    "browser.browse_subjects": Sample(),
    "browser.browse_schemas": Sample(),
    "browser.browse_latest": Sample(),
    "browser.browse_config": Sample(),
    "browser.browse_schema": Sample(params={"id": "0"}),
    "browser.get_status": Sample(),
    "browser.get_server_config": _REGISTRY,
}
ROCKETMQ: dict[str, Sample] = {
    "list_tenants": Sample(shows=False),
    "list_subjects": Sample(),
    "list_schemas": Sample(),
    "describe_schema": Sample(),
    "delete_schema_by_name": Sample(),
    "get_record": Sample(),
    "register_schema": Sample(
        body={"schemaIdl": OTHER_TEXT, "schemaType": "AVRO"}, params={"schema_name": "secret-new"}
    ),
    "update_schema": Sample(body={"schemaIdl": NEXT_TEXT}, statuses=(404,)),
    "delete_schema": Sample(),
    "delete_version": Sample(),
    "get_schema": Sample(),
    "get_version": Sample(),
    "get_record_of_subject": Sample(statuses=(404,)),
    "list_records": Sample(),
    "find_schema": Sample(body=TEXT.encode(), headers=_JSON),
    "bind_subject": Sample(statuses=(404,)),
    "unbind_subject": Sample(statuses=(404,)),
}
OPENSCHEMA: dict[str, Sample] = {
    "list_subjects": Sample(),
    "get_subject": Sample(),
    "put_subject": Sample(body={"tenant": "default", "namespace": "default", "subject": SUBJECT, "status": "released"}),
    "delete_subject": Sample(),
    "get_schema": Sample(),
    "get_subject_of_schema": Sample(),
    "list_versions": Sample(),
    "get_version": Sample(),
    "register_schema": Sample(body={"schemaDefinition": json.loads(NEXT_TEXT), "serialization": "avro"}),
    "delete_version": Sample(),
    "check_compatibility": Sample(body={"schema": {"schemaDefinition": json.loads(NEXT_TEXT)}}),
    "get_config": Sample(),
    "put_config": Sample(body={"compatibility": "BACKWARD"}),
}

_IN_DEFAULT = Sample(resource=subject_resource(SubjectKey("", SUBJECT)))
UI_PAGES: dict[str, Sample] = {
    "view_home": Sample(),
    "view_subjects": Sample(),
    "view_atlas": Sample(),
    "view_usage_places": Sample(),
    "view_policies": Sample(shows=False),
    "view_rulesets": Sample(shows=False),
    "view_apis": Sample(shows=False),
    "view_about": Sample(shows=False),
    "view_settings": _REGISTRY._replace(shows=False),
    "view_access": _REGISTRY._replace(shows=False),
    "view_audit": _REGISTRY,
    "view_events": _REGISTRY,
    "view_definition": _IN_DEFAULT,
    "view_fields": _IN_DEFAULT,
    "view_versions": _IN_DEFAULT,
    "view_history": _IN_DEFAULT,
    "view_compare": _IN_DEFAULT,
    "view_references": _IN_DEFAULT,
    "view_rules": _IN_DEFAULT,
    "view_usage": _IN_DEFAULT,
    "view_clients": _IN_DEFAULT,
}
UI_WORK = {
    "view_register": Sample(shows=False),
    "view_evolve": _IN_DEFAULT,
    "submit_schema": Sample(
        {"subject": f":.{TEAM}:{SUBJECT}", "schema": NEXT_TEXT, "action": "register"}, statuses=(303,)
    ),
    "view_policy": _IN_DEFAULT._replace(bare=REGISTRY_RESOURCE),
    "submit_policy": _IN_DEFAULT._replace(
        body={"policy": "FULL", "action": "save"}, bare=REGISTRY_RESOURCE, statuses=(303,)
    ),
    "view_check": Sample(shows=False),
    "submit_check": Sample({"subject": f":.{TEAM}:{SUBJECT}", "schema": NEXT_TEXT}),
    "view_decode": Sample(query="data=000000000102"),
    "submit_bytes": Sample({"data": "000000000102"}),
    "view_deletion": _IN_DEFAULT,
    "submit_deletion": _IN_DEFAULT._replace(body={"version": "1"}, statuses=(303, 422)),
    "view_bulk": Sample(shows=False),
    "submit_bulk": Sample({"subject": f":.{TEAM}:{SUBJECT}"}),
    "view_recovery": _IN_DEFAULT,
    "submit_recovery": _IN_DEFAULT._replace(body={"version": "1"}, statuses=(303,)),
    "view_ruleset_impact": Sample(query="format=avro&ruleset=confluent", shows=False),
    "submit_adoption": _REGISTRY._replace(body={"format": "avro", "ruleset": "confluent@1"}, statuses=(303,)),
    "view_subscription": _REGISTRY,
    "submit_subscription": _REGISTRY._replace(body={"action": "pause"}, statuses=(303,)),
    "view_exporters": _REGISTRY,
    "submit_exporter": _REGISTRY._replace(body={"name": "exp2"}, statuses=(303,)),
    "view_exporter": _REGISTRY,
    "submit_change": _REGISTRY._replace(body={"action": "pause"}, statuses=(303,)),
    "view_replications": _REGISTRY._replace(shows=False),
    "submit_replication": _REGISTRY._replace(body={"name": "rep", "url": "http://x"}, statuses=(422,)),  # no public_url
    "view_replication": _REGISTRY._replace(statuses=(404,)),
    "submit_state": _REGISTRY._replace(body={"action": "pause"}, statuses=(404,)),
    "view_transfer": _REGISTRY,
    "submit_dump": _REGISTRY._replace(body={"text": '{"keytype":"NOOP","magic":0}\tnull'}),
    "submit_import": _REGISTRY._replace(
        body={"text": '{"keytype":"NOOP","magic":0}\tnull', "plan": "another"}, statuses=(422,)
    ),
    "view_journal": Sample(),
    "view_refusals": _REGISTRY,
    "view_pipelines": _REGISTRY,
    "view_pipeline": _REGISTRY._replace(statuses=(404,)),
}
UI = {
    "get_asset": Sample(shows=False),
    "follow_journal": Sample(query="after=0"),
    "show_login": Sample(query="next=%2Fjournal", shows=False),
    "submit_login": Sample({"token": "nobody's key"}, statuses=(422,), shows=False),
    "submit_logout": Sample({}, statuses=(303,), shows=False),
    "download_text": _IN_DEFAULT,
    "download_dump": _REGISTRY,
    "download_subjects": _REGISTRY._replace(body={"subject": SUBJECT}),
    **UI_WORK,
    **{f"{name}_json": sample for name, sample in UI_WORK.items()},
    **UI_PAGES,
    **{f"{name}_json": sample for name, sample in UI_PAGES.items()},
}
_TEAM_GROUP = Resource(ResourceType.NAMESPACE, TEAM)
_FORMAT = "Avro/1.12"
_TEAM_SCHEMA = {"schema": f"{SUBJECT}$details"}
_XREGISTRY_VERSION = {"format": _FORMAT, "schema": json.loads(NEXT_TEXT)}
XREGISTRY: dict[str, Sample] = {
    "get_registry": Sample(query="inline=*"),
    "export_registry": Sample(),
    "put_registry": _REGISTRY._replace(body={}),
    "patch_registry": _REGISTRY._replace(body={}),
    "post_groups_by_type": Sample(body={"schemagroups": {TEAM: {}}}, resource=_TEAM_GROUP),
    "get_capabilities": Sample(),
    "get_offered_capabilities": Sample(),
    "get_model": Sample(),
    "get_model_source": Sample(),
    "list_known_registries": Sample(),
    "get_groups": Sample(query="inline=*"),
    "post_groups": Sample(body={TEAM: {}}, resource=_TEAM_GROUP),
    "patch_groups": Sample(body={TEAM: {}}, resource=_TEAM_GROUP),
    "delete_groups": Sample(body={TEAM: {}}, resource=_TEAM_GROUP),
    "get_group": Sample(resource=_TEAM_GROUP),
    "put_group": Sample(body={}, resource=_TEAM_GROUP),
    "patch_group": Sample(body={}, resource=_TEAM_GROUP),
    "post_schemas_by_type": Sample(body={"schemas": {"new": _XREGISTRY_VERSION}}, resource=_TEAM_GROUP),
    "delete_group": Sample(resource=_TEAM_GROUP),
    "get_schemas": Sample(resource=_TEAM_GROUP),
    "post_schemas": Sample(body={SUBJECT: {"format": _FORMAT}}),
    "patch_schemas": Sample(body={SUBJECT: {}}),
    "delete_schemas": Sample(body={SUBJECT: {}}),
    "get_schema": Sample(),
    "put_schema": Sample(body={"format": _FORMAT}, params=_TEAM_SCHEMA),
    "patch_schema": Sample(body={}, params=_TEAM_SCHEMA),
    "post_version": Sample(body=_XREGISTRY_VERSION, params=_TEAM_SCHEMA),
    "delete_schema": Sample(),
    "get_meta": Sample(),
    "put_meta": Sample(body={"compatibility": "backward"}),
    "patch_meta": Sample(body={}),
    "get_versions": Sample(),
    "post_versions": Sample(body={"1": {"format": _FORMAT}}),
    "patch_versions": Sample(body={"1": {}}),
    "delete_versions": Sample(body={"1": {}}),
    "get_version": Sample(),
    "put_version": Sample(body={"format": _FORMAT}, params={"version": "1$details"}),
    "patch_version": Sample(body={}, params={"version": "1$details"}),
    "delete_version": Sample(),
}
SAMPLES = {
    "confluent": CONFLUENT,
    "native": NATIVE,
    "pravega": PRAVEGA,
    "schema-repo": SCHEMA_REPO,
    "cncf": CNCF,
    "rocketmq": ROCKETMQ,
    "openschema": OPENSCHEMA,
    "ui": UI,
    "xregistry": XREGISTRY,
}
PARAMS = {
    "confluent": {
        "context": f".{TEAM}",
        "subject": SUBJECT,
        "version": "1",
        "id": "1",
        "name": KEK,
        "resourceId": "secret-topic-id",
        "resourceNamespace": "cluster",
        "resourceName": "secret-topic",
    },
    "native": {
        "name": SUBJECT,
        "subject": SUBJECT,
        "place": PLACE,
        "format": "avro",
        "ruleset": "confluent",
        "replication": "rep",
    },
    "pravega": {
        "ns": TEAM,
        "group": SUBJECT,
        "schema_id": "0",
        "format_name": "Avro",
        "type_name": MARKER,
        "version": "0",
        "encoding_id": "0",
    },
    "schema-repo": {"subject": SUBJECT, "group": SUBJECT, "id": "1", "latest": "0"},
    "cncf": {"group": TEAM, "schema": SUBJECT, "version": "1", "subscription": "sub"},
    "rocketmq": {"cluster": "default", "tenant": TEAM, "subject": SUBJECT, "schema_name": SUBJECT, "version": "1"},
    "openschema": {"subject": SUBJECT, "version": "1"},
    "ui": {
        "name": SUBJECT,
        "digest": "0",
        "file": "style.css",
        "pipeline": "clicks",
        "exporter": "exp",
        "replication": "rep",
    },
    "xregistry": {"group": TEAM, "schema": SUBJECT, "version": "1"},
}
"""Values of the parameters of paths, by dialect. `World.create` adds the ids that the registry assigns."""

WORLD: tuple[tuple[str, str, Any], ...] = (
    ("POST", f"/subjects/{SUBJECT}/versions", {"schema": TEXT}),
    ("POST", f"/contexts/.{TEAM}/subjects/{SUBJECT}/versions", {"schema": TEXT}),
    ("POST", "/subjects/unbound/versions", {"schema": OTHER_TEXT}),
    ("POST", f"/contexts/.{TEAM}/subjects/unbound/versions", {"schema": OTHER_TEXT}),
    ("PUT", f"/config/{SUBJECT}", {"compatibility": "BACKWARD"}),
    ("PUT", f"/contexts/.{TEAM}/config/{SUBJECT}", {"compatibility": "BACKWARD"}),
    ("PUT", f"/contexts/.{TEAM}/config", {"compatibility": "BACKWARD"}),
    ("PUT", "/schemagroups/empty", {"format": "avro"}),
    ("POST", "/associations", _ASSOCIATION),
    ("POST", "/exporters", _EXPORTER),
    ("POST", "/dek-registry/v1/keks", _KEK_BODY),
    ("POST", f"/dek-registry/v1/keks/{KEK}/deks", _DEK_BODY),
    ("POST", f"/contexts/.{TEAM}/dek-registry/v1/keks", _KEK_BODY),
    ("POST", f"/contexts/.{TEAM}/dek-registry/v1/keks/{KEK}/deks", _DEK_BODY),
    ("POST", "/security/acls", [_ACL]),
    ("PUT", f"/api/usage/{PLACE.replace(' ', '%20')}", _CENSUS),
    ("POST", "/api/access/keys", {"name": SUBJECT}),
    ("POST", "/subscriptions", _SUBSCRIPTION),
    ("POST", f"/v1/groups/{SUBJECT}/codecTypes", {"name": "gzip"}),
    ("PUT", f"/v1/groups/{SUBJECT}/encodings", PRAVEGA["get_encoding_id"].body),
    ("PUT", f"/v1/namespace/{TEAM}/groups/{SUBJECT}/encodings", PRAVEGA["get_encoding_id"].body),
)
"""Requests that the admin sends first: method, path and body."""
