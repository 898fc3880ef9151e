"""Metadata of schemas: reserved properties, tags, and requests that change attachments without the text. Pure.

`confluent:reserved` lists top-level field names, separated by commas. Under `validateFields` no field may have one of
these names, and no name may be removed from the list. `confluent:version` is a version hint: the number of the version
that the metadata belongs to. It does not count as a part of the metadata.

Tags are stored in the metadata under the path of their entity. The text of a schema is never rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from stele.apis.confluent import models as api
from stele.apis.confluent.translate import FIELD_NAME_RESERVED, RESERVED_FIELD_REMOVED, rule_set_in
from stele.core.findings import Finding
from stele.core.metadata import DataRule, DataRuleSet, Metadata, merge_rule_sets
from stele.core.model import Attachments, Version
from stele.core.ports import Field
from stele.errors import InvalidRuleSet

_RESERVED = "confluent:reserved"
_VERSION = "confluent:version"
_INTERNAL = "$$"
"""Prefix of field names that JSON Schema tools reserve for themselves."""


def find_reserved_name_violations(
    fields: list[Field], attachments: Attachments, before: Version | None
) -> list[Finding]:
    """Return why a schema with these fields and attachments may not follow the version `before`."""
    names = {field.path for field in fields}
    reserved = _reserved_names(attachments)
    dropped = _reserved_names(before.schema.attachments) - reserved if before is not None else set()
    return [
        *(
            _make_finding("FIELD_NAME_INTERNAL", name, "names of fields must not start with $$", _FIX_NAME)
            for name in sorted(names)
            if _is_internal(name)
        ),
        *(_make_finding(RESERVED_FIELD_REMOVED, name, _WHY_DROPPED, _FIX_DROPPED) for name in sorted(dropped)),
        *(_make_finding(FIELD_NAME_RESERVED, name, _WHY_RESERVED, _FIX_NAME) for name in sorted(names & reserved)),
    ]


_WHY_RESERVED = "The new schema has field that conflicts with the reserved field {}."
_WHY_DROPPED = (
    "The new schema has reserved field {} removed from its metadata which is present in the old schema's metadata."
)
_FIX_NAME = "give the field another name"
_FIX_DROPPED = f"add the name to {_RESERVED} again"


def _is_internal(name: str) -> bool:
    return name.startswith(_INTERNAL) and "." not in name


def version_hint(metadata: Metadata | None) -> str | None:
    """Return the version hint of metadata, or None."""
    return (metadata.properties or {}).get(_VERSION) if metadata is not None else None


def set_version_hint(metadata: Metadata | None, number: int) -> Metadata:
    """Return metadata with this version hint."""
    before = metadata or Metadata()
    return replace(before, properties={**(before.properties or {}), _VERSION: str(number)}).in_stored_order()


def equals_except_version_hint(own: Metadata | None, version: Version) -> bool:
    """Return whether metadata equals that of a version.

    A version hint that only one of them has is ignored, but a hint in `own` must not name another version.
    """
    theirs = version.schema.attachments.metadata
    hint = version_hint(own)
    if hint is not None and version_hint(theirs) is not None:
        return own == theirs
    if hint is not None and hint.isdecimal() and hint.lstrip("0") not in {"", str(version.version_number)}:
        return False
    return _strip_version_hint(own) == _strip_version_hint(theirs)


def _strip_version_hint(metadata: Metadata | None) -> Metadata | None:
    if metadata is None:
        return None
    properties = {name: value for name, value in (metadata.properties or {}).items() if name != _VERSION}
    rest = replace(metadata, properties=properties or None)
    return rest if rest != Metadata() else None


def _reserved_names(attachments: Attachments) -> set[str]:
    metadata = attachments.metadata
    names = (metadata.properties or {}).get(_RESERVED, "") if metadata is not None else ""
    return {name.strip() for name in names.split(",") if name.strip()}


def _make_finding(rule: str, name: str, why: str, fix: str) -> Finding:
    return Finding(rule=rule, path=name, reader=name, why=why.format(name), fix=fix)


def apply_tag_changes(request: api.RegisterSchemaRequest, latest: Version | None) -> api.RegisterSchemaRequest:
    """Return a registration with its tag changes applied to its metadata.

    A request without metadata gets those of the latest version.
    """
    add, remove = request.schema_tags_to_add, request.schema_tags_to_remove
    if not add and not remove:
        return request
    metadata = request.metadata
    if metadata is None and latest is not None:
        metadata = latest.schema.attachments.metadata
    return replace(request, metadata=_change_tags(metadata, add, remove))


def tag_attachments(attachments: Attachments, request: api.TagSchemaRequest) -> Attachments:
    """Return the attachments of a version after a tag request. Raises `InvalidRuleSet`."""
    metadata = request.metadata if request.metadata is not None else attachments.metadata
    if request.tags_to_add or request.tags_to_remove:
        metadata = _change_tags(metadata, request.tags_to_add, request.tags_to_remove)
    return Attachments(attachments.references, metadata, _merge_rules(attachments.rule_set, request))


def _change_tags(
    metadata: Metadata | None, add: Iterable[api.SchemaTags] | None, remove: Iterable[api.SchemaTags] | None
) -> Metadata:
    before = metadata or Metadata()
    tags = {path: set(names) for path, names in (before.tags or {}).items()}
    for change in add or ():
        tags.setdefault(change.schema_entity.entity_path, set()).update(change.tags)
    for change in remove or ():
        tags.get(change.schema_entity.entity_path, set()).difference_update(change.tags)
    remaining_tags = {path: tuple(names) for path, names in tags.items() if names}
    return replace(before, tags=remaining_tags or None).in_stored_order()


def _merge_rules(before: DataRuleSet | None, request: api.TagSchemaRequest) -> DataRuleSet | None:
    if request.rule_set is not None:
        if request.rules_to_merge is not None or request.rules_to_remove:
            raise InvalidRuleSet("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
        return rule_set_in(request.rule_set)
    merged = merge_rule_sets(before, rule_set_in(request.rules_to_merge))
    removed_names = set(request.rules_to_remove or ())
    if merged is None or not removed_names:
        return merged
    return DataRuleSet(
        migration_rules=_remove_rules(merged.migration_rules, removed_names),
        domain_rules=_remove_rules(merged.domain_rules, removed_names),
        encoding_rules=_remove_rules(merged.encoding_rules, removed_names),
        enable_at=merged.enable_at,
    )


def _remove_rules(rules: tuple[DataRule, ...] | None, names: set[str]) -> tuple[DataRule, ...] | None:
    return tuple(rule for rule in rules or () if rule.name not in names) or None
