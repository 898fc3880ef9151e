"""Rules about the versions of a schema that need no schema language: ancestors, formats, constraints of the group."""

from __future__ import annotations

from typing import Any

from stele.apis.xregistry.attributes import merge_constraints
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.models import GroupEntity, ResourceEntity, VersionEntity


def list_ancestors(schema: ResourceEntity, version: VersionEntity) -> list[VersionEntity]:
    """Return the ancestors of a version, closest first. Raises `RegistryError` for a circle."""
    found: list[VersionEntity] = []
    seen = {version.id}
    while version.ancestorid != version.id:
        version = schema.versions[version.ancestorid]
        if version.id in seen:
            circle = ", ".join(sorted(seen))
            raise RegistryError("ancestor_circular_reference", schema.xid, list=circle)
        seen.add(version.id)
        found.append(version)
    return found


def check_group_constraints(group: GroupEntity, schema: ResourceEntity) -> None:
    """Raise `RegistryError` for a version whose attributes the group does not allow."""
    for name, rule in merge_constraints(group.attributes.get("constraints", {})):
        wanted = group.attributes.get(rule.get("equals") or "")
        choices = [_fold(value) for value in rule.get("enum") or ()]
        for version in schema.versions.values():
            value = version.attributes.get(name)
            if choices and value is not None and _fold(value) not in choices:
                raise RegistryError("constraint_failure", schema.xid, path=f"schemas.{name}", kind="enum")
            if wanted is not None and _fold(value) != _fold(wanted):
                raise RegistryError("constraint_failure", schema.xid, path=f"schemas.{name}", kind="equals")


def check_matching_versions(schema: ResourceEntity) -> None:
    """Raise `RegistryError` for a request that gives versions different formats; other dialects may have done so."""
    has_new_format = any(version.format != version.format_before for version in schema.versions.values())
    if has_new_format and len({version.format.casefold() for version in schema.versions.values()}) > 1:
        raise RegistryError("mismatched_version_attribute", schema.xid, name="format")


def _fold(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value
