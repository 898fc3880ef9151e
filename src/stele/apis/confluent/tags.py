"""Tags of schema entities, and requests that change attachments of a version without its text. Pure.

Tags live in the metadata under the path of their entity; the text of a schema is never rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from stele.apis.confluent import models as api
from stele.apis.confluent.translate import rule_set_in
from stele.core.metadata import Metadata, Rule, RuleSet, merge_rule_sets
from stele.core.model import Attachments, Version
from stele.errors import InvalidRuleSet


def apply_tag_changes(request: api.RegisterSchemaRequest, latest: Version | None) -> api.RegisterSchemaRequest:
    """A registration with its tag changes made part of its metadata, or of the latest version's when it has none."""
    add, remove = request.schema_tags_to_add, request.schema_tags_to_remove
    if not add and not remove:
        return request
    metadata = request.metadata
    if metadata is None and latest is not None:
        metadata = latest.schema.attachments.metadata
    return replace(request, metadata=_change_tags(metadata, add, remove))


def tag_attachments(attachments: Attachments, request: api.TagSchemaRequest) -> Attachments:
    """The attachments of a version as a tag request wants them. Raises `InvalidRuleSet`."""
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
    kept = {path: tuple(names) for path, names in tags.items() if names}
    return replace(before, tags=kept or None).in_stored_order()


def _merge_rules(before: RuleSet | None, request: api.TagSchemaRequest) -> RuleSet | None:
    if request.rule_set is not None:
        if request.rules_to_merge is not None or request.rules_to_remove:
            raise InvalidRuleSet("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
        return rule_set_in(request.rule_set)
    merged = merge_rule_sets(before, rule_set_in(request.rules_to_merge))
    gone = set(request.rules_to_remove or ())
    if merged is None or not gone:
        return merged
    return RuleSet(
        migration_rules=_remove_rules(merged.migration_rules, gone),
        domain_rules=_remove_rules(merged.domain_rules, gone),
        encoding_rules=_remove_rules(merged.encoding_rules, gone),
        enable_at=merged.enable_at,
    )


def _remove_rules(rules: tuple[Rule, ...] | None, names: set[str]) -> tuple[Rule, ...] | None:
    return tuple(rule for rule in rules or () if rule.name not in names) or None
