"""Translates schemas, their attachments, settings and findings between the API and the core. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import asdict

from stele.apis.confluent import models as api
from stele.apis.confluent.errors import UnknownConstant
from stele.apis.confluent.guid import compute_guid, reference_subject
from stele.apis.confluent.names import parse_subject_key, qualify_subject
from stele.apis.http.requests import WrongShape
from stele.core import queries
from stele.core.findings import Finding
from stele.core.findings import Severity as Weight
from stele.core.metadata import ENABLE_AT, RULE_KINDS, RULE_MODES, DataRule, DataRuleSet, Metadata
from stele.core.model import Mode, Reference, SchemaEntry, Settings, SettingsLevel, SubjectKey, Version, VersionState
from stele.core.policy import BACKWARD, Policy, find_policy
from stele.core.policy_json import PolicyJson
from stele.core.rulesets import split_ruleset
from stele.core.state import State
from stele.core.traversal import find_version
from stele.errors import UnknownFormat, UnknownMode
from stele.service.delivery.exporter_definitions import ExporterChange
from stele.service.delivery.exporters import StoredExporter, find_progress, hide_config
from stele.service.disclosure import HIDDEN

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")

AVRO = "AVRO"
SCHEMA_TYPES = ("JSON", "PROTOBUF", "AVRO")
"""Schema types that this API can register. Schemas of other formats are shown under the names of their formats."""


class RenderingOptions(NamedTuple):
    """How versions are shown: with the fields since 8.0, with qualified references, and with which tags."""

    is_full: bool
    qualify: bool = False
    find_tags: tuple[str, ...] = ()


# --- formats --------------------------------------------------------------------------------------------------------


def parse_schema_type(schema_type: str | None) -> str:
    """Return the format of a schema type. Raises `UnknownFormat`."""
    if schema_type and schema_type not in SCHEMA_TYPES:
        raise UnknownFormat(f"Invalid schema type {schema_type}")
    return (schema_type or AVRO).lower()


def schema_type_out(format_name: str, *, is_full: bool) -> str:
    """Return the schema type of a format in responses. Before 8.0, responses do not name Avro."""
    schema_type = format_name.upper()
    return "" if schema_type == AVRO and not is_full else schema_type


_SPACE = re.compile(rb'("(?:[^"\\]|\\.)*+")|[ \t\r\n]+', re.DOTALL)


def minify_json(text: bytes) -> bytes:
    """Return a JSON text without the white space between its tokens. Invalid JSON stays invalid."""
    return _SPACE.sub(rb"\1", text)


# --- into the core --------------------------------------------------------------------------------------------------


def references_in(references: Sequence[api.SchemaReference] | None, space: str) -> tuple[Reference, ...]:
    """Return references as the core has them. Unqualified subjects are in the namespace of the referring schema."""
    core_references = []
    for reference in references or ():
        key = parse_subject_key(reference.subject) if reference.subject.startswith(":.") else None
        target = (space, reference.subject) if key is None else key
        core_references.append(Reference(reference.name, *target, reference.version))
    return tuple(core_references)


def rule_set_in(rule_set: api.RuleSet | None) -> DataRuleSet | None:
    """Return the rule set of the core, with tags and parameters sorted."""
    if rule_set is None:
        return None
    _require_constant("ExecutionEnvironment", rule_set.enable_at, ENABLE_AT)
    return DataRuleSet(
        migration_rules=_rules_in(rule_set.migration_rules),
        domain_rules=_rules_in(rule_set.domain_rules),
        encoding_rules=_rules_in(rule_set.encoding_rules),
        enable_at=rule_set.enable_at,
    )


def _rules_in(rules: Iterable[api.Rule] | None) -> tuple[DataRule, ...] | None:
    return tuple(_rule_in(rule) for rule in rules) or None if rules is not None else None


def _rule_in(rule: api.Rule) -> DataRule:
    _require_constant("RuleKind", rule.kind, RULE_KINDS)
    _require_constant("RuleMode", rule.mode, RULE_MODES)
    return DataRule(
        name=rule.name,
        doc=rule.doc or None,
        kind=rule.kind or "TRANSFORM",
        mode=rule.mode or "WRITEREAD",
        type=rule.type,
        tags=tuple(sorted(set(rule.tags))) if rule.tags else None,
        params=dict(sorted(rule.params.items())) if rule.params else None,
        expr=rule.expr or None,
        on_success=rule.on_success or None,
        on_failure=rule.on_failure or None,
        disabled=bool(rule.disabled),
    )


def _require_constant(enum: str, word: str | None, constants: tuple[str, ...]) -> None:
    if word and word not in constants:
        raise UnknownConstant(enum, word, constants)


# --- out of the core ------------------------------------------------------------------------------------------------


def text_out(state: State, schema: SchemaEntry) -> str:
    """Return the stored text. Bytes that are not UTF-8, which only other dialects register, are replaced."""
    return state.get_text(schema.content).decode("utf-8", "replace")


def is_compiled(state: State, schema: SchemaEntry) -> bool:
    """Return whether a Protobuf schema is stored as serialized descriptors, as other dialects register it.

    Such a schema has no text that could be shown.
    """
    return schema.content.format == "protobuf" and _BINARY.search(state.get_text(schema.content)) is not None


def references_out(schema: SchemaEntry, style: RenderingOptions) -> list[api.SchemaReference]:
    """Return the references of a schema as responses show them."""
    return [
        api.SchemaReference(
            row.name,
            qualify_subject(row.key) if style.qualify else reference_subject(row, schema.namespace),
            row.version_number,
        )
        for row in schema.attachments.references
    ]


def rule_set_out(rule_set: DataRuleSet | None) -> api.RuleSet | None:
    """Return a rule set as responses show it."""
    if rule_set is None:
        return None
    return api.RuleSet(
        migration_rules=_rules_out(rule_set.migration_rules),
        domain_rules=_rules_out(rule_set.domain_rules),
        encoding_rules=_rules_out(rule_set.encoding_rules),
        enable_at=rule_set.enable_at,
    )


def _rules_out(rules: Sequence[DataRule] | None) -> list[api.Rule] | None:
    return [_rule_out(rule) for rule in rules] if rules else None


def _rule_out(rule: DataRule) -> api.Rule:
    return api.Rule(
        name=rule.name,
        doc=rule.doc,
        kind=rule.kind,
        mode=rule.mode,
        type=rule.type,
        tags=list(rule.tags) if rule.tags else None,
        params=rule.params,
        expr=rule.expr,
        on_success=rule.on_success,
        on_failure=rule.on_failure,
        disabled=rule.disabled,
    )


def tags_out(metadata: Metadata | None, wanted: Sequence[str]) -> list[api.SchemaTags]:
    """Return the tagged entities of a schema that have one of the wanted tags (`*` is any)."""
    rows = (metadata.tags or {}) if metadata is not None and wanted else {}
    return [
        api.SchemaTags(api.SchemaEntity(path), list(tags))
        for path, tags in rows.items()
        if "*" in wanted or not set(wanted).isdisjoint(tags)
    ]


def version_out(
    state: State, version: Version, style: RenderingOptions, text: str | None = None
) -> api.SubjectVersionBody:
    """Return a version as responses show it; text replaces the stored text."""
    schema = version.schema
    full = style.is_full
    return api.SubjectVersionBody(
        subject=qualify_subject(version.subject.key),
        version=version.version_number,
        id=schema.schema_id,
        guid=compute_guid(state, schema) if full else "",
        schema_type=schema_type_out(version.kind.format, is_full=full),
        references=references_out(schema, style),
        metadata=schema.attachments.metadata,
        rule_set=rule_set_out(schema.attachments.rule_set),
        schema=text_out(state, schema) if text is None else text,
        schema_tags=tags_out(schema.attachments.metadata, style.find_tags),
        ts=version.at if full else None,
        deleted=version.state is not VersionState.ACTIVE if full else None,
    )


def schema_out(
    state: State,
    schema: SchemaEntry,
    style: RenderingOptions,
    *,
    text: str | None = None,
    version: Version | None = None,
) -> api.SchemaString:
    """Return a schema by id as responses show it; version is that of the requested subject, if any."""
    full = style.is_full
    full_version = version if full else None
    return api.SchemaString(
        schema=text_out(state, schema) if text is None else text,
        schema_type=schema_type_out(schema.content.format, is_full=full),
        guid=compute_guid(state, schema) if full else "",
        references=references_out(schema, style),
        metadata=schema.attachments.metadata,
        rule_set=rule_set_out(schema.attachments.rule_set),
        schema_tags=tags_out(schema.attachments.metadata, style.find_tags),
        subject=qualify_subject(version.subject.key) if version is not None else "",
        version=version.version_number if version is not None else None,
        ts=full_version.at if full_version is not None else None,
        deleted=full_version.state is not VersionState.ACTIVE if full_version is not None else None,
    )


SERIALIZED = "serialized"
"""The `format` of a Protobuf schema as a base64 file descriptor."""


def is_descriptor(body: api.RegisterSchemaRequest) -> bool:
    """Return whether a Protobuf schema was sent as a base64 file descriptor: source text has braces or semicolons."""
    return body.schema_type == "PROTOBUF" and not set(body.schema or "{") & set("{;")


def is_as_sent(body: api.RegisterSchemaRequest, version: Version) -> bool:
    """Return whether a version has exactly the attachments of the request.

    Otherwise some come from settings or from the version before it.
    """
    attachments = version.schema.attachments
    metadata = body.metadata.in_stored_order() if body.metadata is not None else None
    return bool(body.schema) and attachments.metadata == metadata and attachments.rule_set == rule_set_in(body.rule_set)


def registration_out(state: State, version: Version, style: RenderingOptions) -> api.RegisterSchemaResponse:
    """Return the response to a registration, with all members."""
    schema, full = version.schema, style.is_full
    return api.RegisterSchemaResponse(
        id=schema.schema_id,
        version=version.version_number,
        guid=compute_guid(state, schema) if full else "",
        schema_type=schema_type_out(version.kind.format, is_full=full),
        references=references_out(schema, style),
        metadata=schema.attachments.metadata,
        rule_set=rule_set_out(schema.attachments.rule_set),
        schema=text_out(state, schema),
        ts=version.at if full else None,
        deleted=version.state is not VersionState.ACTIVE if full else None,
    )


# --- settings and modes -----------------------------------------------------------------------------------------------


_DIALECT = "confluent"
_DEKS = "aliasForDeks"

_RULESETS = {"STRICT": "confluent", "LENIENT": "confluent-lenient"}
"""Preferred ruleset by compatibilityPolicy. Formats without that ruleset use their own."""
_WITHOUT_RULES = "LOGICAL"
"""A compatibilityPolicy of Confluent's registry that is refused here, because its rules are not implemented."""
_POLICIES = {ruleset: policy for policy, ruleset in _RULESETS.items()}

_PLAIN = {
    "alias": "alias",
    "normalize": "normalize",
    "validate_fields": "validate_fields",
    "validate_new_schemas": "validate_new_schemas",
    "validate_rules": "validate_rules",
    "compatibility_group": "group",
    "default_metadata": "default_metadata",
    "override_metadata": "override_metadata",
}
"""Members that are the same in the core, by the API's name, with the core's name."""


def changes_in(request: api.ConfigUpdateRequest) -> dict[str, Any]:
    """Return the settings that a request changes. Raises `UnknownPolicy`, `WrongShape`."""
    changes: dict[str, Any] = {}
    for ours, theirs in _PLAIN.items():
        value = getattr(request, ours)
        if value is not UNSET:
            changes[theirs] = None if value == "" else value
    for name in ("default_metadata", "override_metadata"):
        if changes.get(name) is not None:
            changes[name] = changes[name].in_stored_order()
    for name in ("default_rule_set", "override_rule_set"):
        if (rules := getattr(request, name)) is not UNSET:
            changes[name] = rule_set_in(rules)
    if request.compatibility is not UNSET:
        level = request.compatibility
        changes["policy"] = None if level is None else find_policy(level)
    if request.stele_compatibility is not UNSET:
        changes["policy"] = _exact_policy(request.stele_compatibility, changes)
    if request.compatibility_policy is not UNSET:
        changes["ruleset"] = _ruleset_in(request.compatibility_policy)
    if request.alias_for_deks is not UNSET:
        changes["dialect_data"] = {_DIALECT: {_DEKS: request.alias_for_deks or None}}
    return changes


def _exact_policy(form: PolicyJson | None, changes: dict[str, Any]) -> Policy | None:
    """Return the policy in `steleCompatibility`. Raises `WrongShape` if a compatibility level contradicts it."""
    policy = None if form is None else form.to_policy
    if "policy" in changes:
        level = changes["policy"]
        nearest_name = None if policy is None else policy.nearest_name
        if nearest_name != (None if level is None else level.nearest_name):
            raise WrongShape(
                f"compatibility must be {nearest_name}, the value that steleCompatibility is reported as, or"
                " be left out"
            )
    return policy


def _ruleset_in(policy: str | None) -> str | None:
    if policy is None:
        return None
    if policy.upper() == _WITHOUT_RULES:
        raise WrongShape("compatibilityPolicy LOGICAL is not supported: its rules are not implemented here")
    try:
        return _RULESETS[policy.upper()]
    except KeyError:
        raise WrongShape(f"compatibilityPolicy must be one of {', '.join(_RULESETS)}, not {policy!r}") from None


def find_alias_for_deks(state: State, key: SubjectKey) -> str:
    """Return the name of the subject whose data keys a subject uses; '' for its own."""
    settings = state.settings_at(SettingsLevel(*key))
    ext = (settings.dialect_data or {}).get(_DIALECT, {}) if settings is not None else {}
    return ext.get(_DEKS) or ""


def find_effective_policy(state: State, level: SettingsLevel) -> Policy:
    """Return the policy in force at a level."""
    if level.namespace is not None and level.subject is not None:
        return queries.policy_for(state, SubjectKey(level.namespace, level.subject))
    return queries.settings_for(state, level).policy or BACKWARD


def find_default_policy(state: State, level: SettingsLevel) -> Policy | None:
    """Return the policy with which another dialect created a subject; None if there is none."""
    if level.namespace is None or level.subject is None:
        return None
    subject = state.find_subject(SubjectKey(level.namespace, level.subject))
    return subject.default_policy if subject is not None else None


def config_out(settings: Settings, policy: Policy | None) -> api.Config:
    """Return settings as the API shows them, with the given policy, which may come from a level above."""
    ext = (settings.dialect_data or {}).get(_DIALECT, {})
    return api.Config(
        alias=settings.alias,
        alias_for_deks=ext.get(_DEKS),
        normalize=settings.normalize,
        validate_fields=settings.validate_fields,
        validate_new_schemas=settings.validate_new_schemas,
        validate_rules=settings.validate_rules,
        compatibility_level=policy.nearest_name if policy is not None else None,
        compatibility_policy=_POLICIES.get(split_ruleset(settings.ruleset or "")[0]),
        compatibility_group=settings.group,
        default_metadata=settings.default_metadata,
        override_metadata=settings.override_metadata,
        default_rule_set=rule_set_out(settings.default_rule_set),
        override_rule_set=rule_set_out(settings.override_rule_set),
        stele_compatibility=PolicyJson.from_policy(policy)
        if policy is not None and policy.exact_name is None
        else None,
    )


def update_out(settings: Settings) -> api.ConfigUpdateRequest:
    """Return settings as the response to PUT shows them, with the level under the name `compatibility`."""
    config = config_out(settings, settings.policy)
    members = {name: getattr(config, name) for name in config.__struct_fields__ if name != "compatibility_level"}
    present = {name: value for name, value in members.items() if value is not None}
    if config.compatibility_level is not None:
        present["compatibility"] = config.compatibility_level
    return api.ConfigUpdateRequest(**present)


def mode_in(request: api.ModeUpdateRequest) -> Mode | None:
    """Return the mode in a request; None to remove it. Raises `UnknownMode`."""
    if request.mode is None:
        return None
    try:
        return Mode("" if request.mode is UNSET else str(request.mode).upper())
    except ValueError:
        raise UnknownMode(f"{request.mode!r} is not a mode") from None


_LONGEST = 10 * 1024
"""Most characters of an old schema that a message shows."""
_MOST = 1000
"""Most findings that a message lists. A schema of a megabyte can have tens of thousands."""
_FORMAT_CHANGED = "FORMAT_CHANGED"
FIELD_NAME_RESERVED: Final = "FIELD_NAME_RESERVED"
RESERVED_FIELD_REMOVED: Final = "RESERVED_FIELD_REMOVED"
_BARE = frozenset({_FORMAT_CHANGED, FIELD_NAME_RESERVED, RESERVED_FIELD_REMOVED})
"""Rules whose messages are plain sentences, without the old text."""
_DOUBLE_QUOTED = frozenset({"json", "protobuf"})
"""Formats whose messages use double quotes and end with the description."""


def format_messages(state: State, key: SubjectKey, findings: Sequence[Finding], against: int | None) -> list[str]:
    """Return one message per finding, then the old version and its text if compared, then the level in force."""
    subject = state.find_subject(key)
    old = find_version(subject, against) if subject is not None and against is not None else None
    quote = '"' if old is not None and old.content.format in _DOUBLE_QUOTED else "'"
    messages = [_format_finding(finding, quote) for finding in findings[:_MOST]]
    if old is not None and not any(finding.rule in _BARE for finding in findings):
        text = state.get_text(old.content).decode("utf-8", "replace")
        quoted_text = f"'{text}'" if len(text) <= _LONGEST else f"<truncated> '{text[:_LONGEST]}...'"
        messages += [f"{{oldSchemaVersion: {old.version_number}}}", f"{{oldSchema: {quoted_text}}}"]
    validates = queries.settings_for(state, SettingsLevel(*key)).validate_fields
    level = queries.policy_for(state, key).nearest_name
    return [*messages, f"{{validateFields: '{str(bool(validates)).lower()}', compatibility: '{level}'}}"]


def _format_finding(finding: Finding, quote: str) -> str:
    """Return the message of one finding in the form that clients parse. For Avro it has `additionalInfo`, too."""
    if finding.rule in _BARE:
        return finding.why
    doubt = "Not decided, hence refused: " if finding.level is Weight.UNKNOWN else ""
    description = f"{doubt}{finding.why.rstrip('.')}, at path '{finding.path or '/'}'. {finding.fix}".rstrip(" .")
    message = f"errorType:{quote}{finding.rule}{quote}, description:{quote}{description}{quote}"
    return f"{{{message}}}" if quote == '"' else f"{{{message}, additionalInfo:'{_additional_info(finding)}'}}"


def _additional_info(finding: Finding) -> str:
    """Return the name or size from which clients read the cause; for other findings reader and writer."""
    match finding.rule:
        case "READER_FIELD_MISSING_DEFAULT_VALUE":
            return finding.reader
        case "MISSING_ENUM_SYMBOLS":
            return finding.writer
        case "NAME_MISMATCH":
            return f"expected: {finding.writer}"
        case "FIXED_SIZE_MISMATCH":
            return f"expected: {finding.writer}, found: {finding.reader}"
        case _:
            return f"reader: {finding.reader}, writer: {finding.writer}"


# --- hidden values ----------------------------------------------------------------------------------------------------


def restore_hidden(
    sent: Mapping[str, str] | None, before: Mapping[str, str], left_out: Container[str] = ()
) -> dict[str, str]:
    """Return properties as sent, with hidden ones replaced by their previous values; None clears all.

    Properties named in left_out also keep their values if they are not sent, because responses do not show them.
    """
    if sent is None:
        return {}
    hidden_values = {
        name: value for name, value in before.items() if sent.get(name, HIDDEN if name in left_out else "") == HIDDEN
    }
    return dict(sorted({**sent, **hidden_values}.items()))


def read_change(request: api.ExporterRequest) -> ExporterChange:
    """Return the changes of an exporter in a request."""
    return ExporterChange(**asdict(request))


def exporter_out(exporter: StoredExporter) -> api.Exporter:
    """Return an exporter as the API shows it."""
    return api.Exporter(
        name=exporter.name,
        context_type=exporter.context_type,
        context=exporter.context,
        subjects=list(exporter.subjects),
        subject_rename_format=exporter.subject_rename_format,
        kek_rename_format=exporter.kek_rename_format,
        config=hide_config(exporter),
    )


def status_out(state: State, exporter: StoredExporter) -> api.ExporterStatus:
    """Return the progress of an exporter: `offset` is a record of the log; `trace` has errors and omitted versions."""
    progress = find_progress(state, exporter)
    return api.ExporterStatus(exporter.name, progress.state, progress.offset, progress.ts, progress.trace)
