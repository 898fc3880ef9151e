"""Entities that a request touches, as it leaves them: loaded, created, or marked as changed. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from stele.apis.xregistry.attributes import (
    REGISTRY_ATTRIBUTES,
    Definition,
    check_attribute,
    check_id,
    parse_value,
    require_epoch,
    require_same_id,
)
from stele.apis.xregistry.bodies import Members, has_value
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.models import Attributes, GroupEntity, ResourceEntity, VersionEntity
from stele.apis.xregistry.translate import (
    EntityLoader,
    decode_name,
    group_namespace,
    inherited_policy,
)
from stele.core.access import Operation, subject_resource
from stele.core.model import SettingsLevel, SubjectKey
from stele.service.access import AccessControl

COLLECTIONS: Final = ("schemagroups", "schemas", "versions")
"""Members of entities that are collections of others."""
_HANDLED: Final = frozenset({"$schema", "createdat", "modifiedat", "ancestorid", "schema", "schemabase64"})
"""Members that are handled elsewhere, and not merged like the others."""


class PendingEntities:
    """Entities as a request leaves them.

    Args:
        loader: Loads entities.
        now: Time of the request, UTC.
        ignores: Parts of the request that are ignored.
        capabilities: Capabilities of the server.
        access: Rights of the caller. They are checked first, so that no error shows what the caller may not change.
    """

    def __init__(
        self,
        loader: EntityLoader,
        now: str,
        ignores: frozenset[str],
        capabilities: Mapping[str, Any],
        access: AccessControl,
    ) -> None:
        self.access = access
        self.loader = loader
        self.now = now
        self.ignores = ignores
        self.capabilities = capabilities
        self.registry = loader.load_registry()
        self.registry.createdat = self.registry.createdat or now
        self.groups: dict[str, GroupEntity | None] = {}
        self.schemas: dict[tuple[str, str], ResourceEntity | None] = {}
        self.deleted_groups: list[GroupEntity] = []
        self.emptied_groups: list[str] = []
        self.deleted_schemas: list[ResourceEntity] = []
        self.deleted_versions: list[tuple[ResourceEntity, VersionEntity]] = []
        self._names: dict[str, dict[str, str]] = {}

    # --- finding

    def find_group(self, identifier: str) -> GroupEntity | None:
        """Return a group, or None if it does not exist or the request deletes it."""
        if identifier not in self.groups:
            self.groups[identifier] = self.loader.find_group(identifier)
        return self.groups[identifier]

    def get_group(self, identifier: str) -> GroupEntity:
        """Return a group. Raises `RegistryError` (`not_found`)."""
        group = self.find_group(identifier)
        if group is None:
            raise RegistryError("not_found", f"/schemagroups/{identifier}")
        return group

    def find_schema(self, group: str, identifier: str) -> ResourceEntity | None:
        """Return a schema, or None if it does not exist or the request deletes it."""
        key = (group, identifier)
        if key not in self.schemas:
            self.schemas[key] = self.loader.find_schema(group, identifier) if self.find_group(group) else None
        return self.schemas[key]

    def get_schema(self, group: str, identifier: str) -> ResourceEntity:
        """Return a schema. Raises `RegistryError` (`not_found`)."""
        schema = self.find_schema(group, identifier)
        if schema is None:
            raise RegistryError("not_found", f"/schemagroups/{group}/schemas/{identifier}")
        return schema

    def written_schemas(self) -> Iterator[ResourceEntity]:
        """Yield the schemas that the request creates or changes."""
        return (schema for schema in self.schemas.values() if schema is not None and schema.is_written)

    def list_schemas(self, group: GroupEntity) -> Iterator[ResourceEntity]:
        """Yield all schemas of a group as the request leaves them."""
        if group.place is not None:
            for subject in list(self.loader.list_schemas(group.place)):
                key = (group.id, self.loader.load_schema(subject).id)
                self.find_schema(*key)
        for (owner, _), schema in list(self.schemas.items()):
            if owner == group.id and schema is not None:
                yield schema

    # --- making and noting

    def touch_registry(self) -> None:
        """Mark the registry as changed, because a group is added or deleted."""
        if not self.registry.is_written:
            self.registry.epoch += 1
            self.registry.modifiedat = self.now
            self.registry.is_written = True

    def make_group(self, identifier: str) -> GroupEntity:
        """Return a group. It is created if it does not exist."""
        group = self.find_group(identifier)
        if group is not None:
            return group
        check_id(identifier, f"/schemagroups/{identifier}")
        self._require_unique("", identifier, f"/schemagroups/{identifier}")
        namespace = group_namespace(identifier)
        group = GroupEntity(namespace, identifier, 1, self.now, self.now, is_new=True, is_written=True)
        self.groups[identifier] = group
        self.touch_registry()
        return group

    def touch_group(self, identifier: str) -> GroupEntity:
        """Mark a group as changed, because a schema is added or deleted. It is created if it does not exist."""
        group = self.make_group(identifier)
        if not group.is_written:
            group.epoch += 1
            group.modifiedat = self.now
            group.is_written = True
        return group

    def make_schema(self, group: str, identifier: str) -> ResourceEntity:
        """Return a schema. It is created without versions if it does not exist."""
        key = SubjectKey(group_namespace(group), decode_name(identifier))
        self.access.require(Operation.REGISTER, subject_resource(key))
        schema = self.find_schema(group, identifier)
        if schema is not None:
            if schema.is_read_only:
                raise self.refuse_read_only(schema)
            return schema
        xid = f"/schemagroups/{group}/schemas/{identifier}"
        check_id(identifier, xid)
        self._require_unique(group, identifier, xid)
        self.touch_group(group)
        own = self.loader.state.settings_at(SettingsLevel(*key))
        policy = own.policy if own is not None else None
        policy = policy or inherited_policy(self.loader.state, key)
        schema = ResourceEntity(
            key, group, identifier, policy, createdat=self.now, modifiedat=self.now, is_new=True, is_written=True
        )
        schema.subject = self.loader.state.find_subject(key)
        self.schemas[group, identifier] = schema
        return schema

    def refuse_read_only(self, schema: ResourceEntity) -> RegistryError:
        """Return the error of a request about a single read-only schema."""
        if "readonly" in self.ignores:
            return RegistryError("bad_flag", schema.xid, flag="ignore")
        return RegistryError("readonly", schema.xid)

    def touch_schema(self, schema: ResourceEntity) -> None:
        """Mark the meta entity of a schema as changed, by itself or because a version is added or deleted."""
        if not schema.has_new_meta:
            schema.epoch += 0 if schema.is_new else 1
            schema.modifiedat = self.now
            schema.has_new_meta = True
        schema.is_written = True

    def _require_unique(self, group: str, identifier: str, xid: str) -> None:
        """Raise `RegistryError` for a new id that differs from another one in case only.

        The id is one of a schema in `group`; if that is '', of a group.
        """
        names = self._names.get(group)
        if names is None:
            state = self.loader.state
            namespace = state.find_namespace(group_namespace(group)) if group else None
            if not group:
                identifiers = [
                    self.loader.load_group(each).id for each in state.namespaces.values() if self.loader.has_group(each)
                ]
            else:
                subjects = self.loader.list_schemas(namespace) if namespace is not None else ()
                identifiers = [self.loader.load_schema(subject).id for subject in subjects]
            names = self._names[group] = {name.casefold(): name for name in identifiers}
        other = names.setdefault(identifier.casefold(), identifier)
        if other != identifier:
            raise RegistryError("bad_request", xid, error_detail=f"{identifier!r} differs from {other!r} in case only")

    # --- what all entities share

    def check_ids(self, body: Members, expected: Mapping[str, str], xid: str, *, is_root: bool = False) -> None:
        """Raise `RegistryError` (`mismatched_id`) for an id in a request that is not the one of the entity.

        Args:
            body: Members of the entity.
            expected: Ids by the name of their attribute.
            xid: XID of the entity.
            is_root: Whether the request is about this entity alone. Then the flag `ignore` can skip its ids.
        """
        if is_root and "id" in self.ignores:
            return
        for name, identifier in expected.items():
            if has_value(body, name) and not (xid == "/" and "id" in self.ignores):
                require_same_id(name.removesuffix("id"), parse_value(body[name]), identifier, xid)

    def check_epoch(self, body: Members, current: int, xid: str) -> None:
        """Raise `RegistryError` (`mismatched_epoch`) for an epoch in a request that is not the one of the entity."""
        if "epoch" in body and "epoch" not in self.ignores:
            require_epoch(parse_value(body["epoch"]), current, xid)

    def merge_attributes(
        self,
        definitions: Mapping[str, Definition],
        body: Members,
        before: Attributes,
        xid: str,
        *,
        skipped: tuple[str, ...] = (),
        folded: tuple[str, ...] = (),
    ) -> Attributes:
        """Return the attributes of an entity as a request leaves them.

        Args:
            definitions: Attributes of the kind of entity.
            body: Members of the entity in the request.
            before: Attributes that stay unless the request has them.
            xid: XID of the entity.
            skipped: Members that are handled elsewhere.
            folded: Attributes whose case does not matter.

        Raises:
            RegistryError: `unknown_attribute`, `invalid_attribute`.
        """
        values = {
            name: parse_value(raw) for name, raw in body.items() if name not in COLLECTIONS and name not in skipped
        }
        for name in folded:
            if isinstance(values.get(name), str):
                values[name] = values[name].casefold()
        return self.merge_values(definitions, values, before, xid)

    def merge_values(
        self, definitions: Mapping[str, Definition], values: Attributes, before: Attributes, xid: str
    ) -> Attributes:
        """Return attributes with the values of a request; see `merge_attributes`. None removes one."""
        merged = dict(before)
        for name, value in values.items():
            definition = definitions.get(name, {})
            is_server_made = definition.get("readonly") or definition.get("immutable") or _is_helper(name)
            if is_server_made or name in _HANDLED:
                continue
            if value is None:
                merged.pop(name, None)
                if name not in definitions and "*" not in definitions:
                    raise RegistryError("unknown_attribute", xid, name=name)
            else:
                merged[name] = check_attribute(definitions, name, value, xid)
        return merged

    def touch_times(self, entity: Any, body: Mapping[str, Any], xid: str) -> None:
        """Set the times of an entity: those in the request, else the time of the request."""
        values = {
            name: parse_value(body[name]) if isinstance(body[name], msgspec.Raw) else body[name]
            for name in ("createdat", "modifiedat")
            if name in body
        }
        for name, value in values.items():
            if value is not None:
                values[name] = check_attribute(REGISTRY_ATTRIBUTES, name, value, xid)
        if "createdat" in values:
            entity.createdat = values["createdat"] or self.now
        modified = values.get("modifiedat")
        entity.modifiedat = self.now if modified is None or modified == entity.modifiedat else modified


def _is_helper(name: str) -> bool:
    return name in {"metaurl", "meta", "versionsurl", "versionscount", "schemasurl", "schemascount"}
