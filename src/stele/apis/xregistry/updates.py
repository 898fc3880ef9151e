"""Applies requests to entities, without writing anything.

`pending` holds the entities that a request touches, `commit` turns what differs into commands.

Source: docs/protocols/xregistry.md#writing
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from stele.apis.xregistry import attributes as attrs
from stele.apis.xregistry.attributes import (
    GROUP_ATTRIBUTES,
    META_ATTRIBUTES,
    REGISTRY_ATTRIBUTES,
    VERSION_ATTRIBUTES,
    check_id,
    parse_value,
    require_epoch,
    require_same_id,
)
from stele.apis.xregistry.bodies import (
    Members,
    check_reference,
    decode_base64,
    has_value,
    is_null,
    read_document,
    read_map,
    read_members,
)
from stele.apis.xregistry.capabilities import require_same_capabilities, require_same_model
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.models import Attributes, GroupEntity, ResourceEntity, VersionEntity
from stele.apis.xregistry.pending import COLLECTIONS, PendingEntities
from stele.apis.xregistry.translate import (
    REGISTRY_ID,
    find_newest,
    group_namespace,
    inherited_policy,
)
from stele.apis.xregistry.validation import check_group_constraints, list_ancestors
from stele.core import queries
from stele.core.access import REGISTRY_RESOURCE, Operation, namespace_resource, subject_resource
from stele.core.policy import find_policy
from stele.core.policy_json import PolicyJson
from stele.errors import UnknownPolicy

_DOCUMENT_MEMBERS: Final = ("schema", "schemabase64", "schemaurl")
_BESIDE_VERSION: Final = frozenset(
    {"schemaid", "meta", "versions", "metaurl", "versionsurl", "versionscount", "$schema"}
)
"""Members of a schema that do not belong to its default version."""
REQUEST: Final = "request"
"""Placeholder for the version that the request creates, while its id is not known yet."""


class RequestUpdate(PendingEntities):
    """Applies a request to the entities that it touches."""

    # --- the registry

    def put_registry(self, body: Members, *, patch: bool) -> None:
        """Change the registry itself, and the groups in the request."""
        self.access.require(Operation.REGISTER, REGISTRY_RESOURCE)
        entity = self.registry
        self.check_ids(body, {"registryid": REGISTRY_ID}, "/")
        if "capabilities" in body and "capabilities" not in self.ignores:
            require_same_capabilities(parse_value(body["capabilities"]), self.capabilities, patch=patch)
        if "modelsource" in body and "modelsource" not in self.ignores:
            require_same_model(parse_value(body["modelsource"]))
        self.check_epoch(body, entity.epoch, "/")
        entity.attributes = self.merge_attributes(
            REGISTRY_ATTRIBUTES, body, entity.attributes if patch else {}, "/", skipped=("capabilities", "modelsource")
        )
        self.touch_times(entity, body, "/")
        entity.epoch += 1
        entity.is_written = entity.is_changed = True
        self.put_groups(read_map(body.get("schemagroups"), "schemagroups", "/"), patch=patch)

    def put_groups(self, bodies: Mapping[str, Members], *, patch: bool) -> list[str]:
        """Create or change groups by id, and return their ids."""
        for identifier, body in bodies.items():
            self.put_group(identifier, body, patch=patch)
        return list(bodies)

    # --- groups

    def put_group(self, identifier: str, body: Members, *, patch: bool, is_root: bool = False) -> GroupEntity:
        """Create or change a group, and the schemas in the request."""
        self.access.require(Operation.REGISTER, namespace_resource(group_namespace(identifier)))
        group = self.make_group(identifier)
        self.check_ids(body, {"schemagroupid": identifier}, group.xid, is_root=is_root)
        if not group.is_new:
            self.check_epoch(body, group.epoch, group.xid)
            group.epoch += 1
        group.attributes = self.merge_attributes(GROUP_ATTRIBUTES, body, group.attributes if patch else {}, group.xid)
        attrs.check_constraints(group.attributes.get("constraints", {}), group.xid)
        self.touch_times(group, body, group.xid)
        group.is_written = group.is_changed = True
        self.put_schemas(identifier, read_map(body.get("schemas"), "schemas", group.xid), patch=patch)
        for schema in self.list_schemas(group):
            check_group_constraints(group, schema)
        return group

    def delete_group(self, group: GroupEntity) -> None:
        """Delete a group with its schemas."""
        self.access.require(Operation.DELETE, namespace_resource(group.namespace))
        for schema in list(self.list_schemas(group)):
            self._forget_schema(schema)
        self.groups[group.id] = None
        self.deleted_groups.append(group)
        self.touch_registry()

    # --- schemas

    def put_schemas(self, group: str, bodies: Mapping[str, Members], *, patch: bool) -> list[str]:
        """Create or change schemas of a group by id, and return the ids of those that were written.

        Read-only schemas are skipped if the flag `ignore` has `readonly`.
        """
        written = []
        for identifier, body in bodies.items():
            known = self.find_schema(group, identifier)
            if known is not None and known.is_read_only and "readonly" in self.ignores:
                continue
            self.put_schema(group, identifier, body, patch=patch)
            written.append(identifier)
        return written

    def put_schema(
        self,
        group: str,
        identifier: str,
        body: Members,
        *,
        patch: bool,
        is_root: bool = False,
        set_default: str | None = None,
    ) -> ResourceEntity:
        """Create or change a schema: its versions, its default version, its meta entity."""
        schema = self.make_schema(group, identifier)
        self.check_ids(body, {"schemaid": identifier}, schema.xid, is_root=is_root)
        meta = read_members(body["meta"], "meta", schema.xid) if has_value(body, "meta") else None
        if self._puts_reference(schema, body, meta, patch=patch):
            return schema
        versions = read_map(body.get("versions"), "versions", schema.xid)
        prior = schema.default_id
        for version_id, version in versions.items():
            self.write_version(schema, version_id, version, patch=patch)
        self._write_default_version(schema, prior, body, meta, versions, patch=patch, is_root=is_root)
        self._set_ancestors(schema)
        if meta is not None:
            self._write_meta(schema, meta, patch=patch)
        self._settle_default(schema, set_default)
        return schema

    def _write_default_version(
        self,
        schema: ResourceEntity,
        prior: str,
        body: Members,
        meta: Members | None,
        versions: Mapping[str, Members],
        *,
        patch: bool,
        is_root: bool,
    ) -> None:
        """Apply the attributes beside `meta` and `versions` to the version that they belong to."""
        version_id = parse_value(body["versionid"]) if has_value(body, "versionid") else None
        if is_root and "id" in self.ignores:
            version_id = None
        if prior:
            if version_id is not None and version_id != prior:
                require_same_id("version", version_id, prior, schema.xid)
            is_beside = patch and bool(body) and _BESIDE_VERSION.issuperset(body)
            if prior not in versions and not is_beside:
                self.write_version(schema, prior, body, patch=patch, is_root=is_root)
            return
        chosen = version_id
        if chosen is None and meta is not None and "defaultversionid" not in self.ignores:
            chosen = parse_value(meta["defaultversionid"]) if has_value(meta, "defaultversionid") else None
        if chosen is not None:
            check_id(chosen, schema.xid, of_version=True)
            if chosen not in versions:
                self.write_version(schema, chosen, body, patch=patch, is_root=is_root)
        elif not versions:
            self.write_version(schema, self.generate_version_id(schema), body, patch=patch, is_root=is_root)

    def delete_schema(self, schema: ResourceEntity) -> None:
        """Delete a schema with its versions."""
        self.access.require(Operation.DELETE, subject_resource(schema.key))
        self._forget_schema(schema)
        self.deleted_schemas.append(schema)
        self.touch_group(schema.group_id)

    def delete_schemas(self, group: GroupEntity) -> None:
        """Delete all schemas of a group."""
        self.access.require(Operation.DELETE, namespace_resource(group.namespace))
        for schema in list(self.list_schemas(group)):
            self._forget_schema(schema)
            self.deleted_schemas.append(schema)
        self.emptied_groups.append(group.id)
        self.touch_group(group.id)

    def _forget_schema(self, schema: ResourceEntity) -> None:
        if schema.is_read_only:
            raise RegistryError("readonly", schema.xid)
        self.schemas[schema.group_id, schema.id] = None

    # --- references to other schemas

    def _puts_reference(self, schema: ResourceEntity, body: Members, meta: Members | None, *, patch: bool) -> bool:
        """Set or remove the cross reference of a schema. Return whether the request is complete with that."""
        reference = parse_value(meta["xref"]) if meta is not None and has_value(meta, "xref") else None
        if reference is None:
            ends = schema.xref and (not patch or (meta is not None and "xref" in meta))
            if schema.xref and not ends:
                raise RegistryError("extra_xref_attribute", schema.xid, name="versionid", singular="schema")
            if ends:
                self._end_reference(schema)
            return False
        target = check_reference(reference, schema.xid)
        assert meta is not None
        allowed = {"schemaid", "self", "xid", "shortself", "metaurl", "meta", "$schema"}
        extra = [name for name in body if name not in allowed]
        extra += [name for name in meta if name not in {"schemaid", "self", "xid", "shortself", "xref", "epoch"}]
        if extra:
            raise RegistryError("extra_xref_attribute", schema.xid, name=extra[0], singular="schema")
        if not schema.is_new:
            self.check_epoch(meta, schema.epoch, schema.xid)
        self.touch_schema(schema)
        self.deleted_versions += [(schema, version) for version in schema.versions.values() if not version.is_new]
        schema.versions, schema.attributes = {}, {}
        schema.xref, schema.default_id, schema.is_sticky = target, "", False
        return True

    def _end_reference(self, schema: ResourceEntity) -> None:
        _, _, group, _, identifier = schema.xref.split("/")
        target = self.loader.find_schema(group, identifier)
        schema.epoch = max(schema.epoch, 0 if target is None else target.epoch) + 1
        schema.xref, schema.modifiedat, schema.has_new_meta, schema.is_written = "", self.now, True, True

    # --- meta

    def put_meta(self, schema: ResourceEntity, body: Members, *, patch: bool, set_default: str | None = None) -> None:
        """Change the meta entity of a schema."""
        if schema.is_read_only:
            raise self.refuse_read_only(schema)
        wrapped = {"meta": msgspec.Raw(msgspec.json.encode(body))}
        if schema.xref or has_value(body, "xref"):
            if self._puts_reference(schema, wrapped, body, patch=patch):
                return
            if not schema.versions:
                self.write_version(schema, self.generate_version_id(schema), {}, patch=False)
                self._set_ancestors(schema)
        self._write_meta(schema, body, patch=patch, is_root=True)
        self._settle_default(schema, set_default)

    def _write_meta(self, schema: ResourceEntity, body: Members, *, patch: bool, is_root: bool = False) -> None:
        xid = f"{schema.xid}/meta"
        self.check_ids(body, {"schemaid": schema.id}, xid, is_root=is_root)
        if not schema.is_new:
            self.check_epoch(body, schema.epoch, xid)
        policy_names = ("compatibility", "stelecompatibility")
        default_names = ("defaultversionid", "defaultversionsticky")
        attributes = self.merge_attributes(
            META_ATTRIBUTES,
            body,
            schema.attributes if patch else {},
            xid,
            skipped=("xref", *self.ignores.intersection(default_names)),
            folded=("compatibility",),
        )
        values = {name: attributes.pop(name, None) for name in (*policy_names, *default_names)}
        schema.attributes = attributes
        self.touch_schema(schema)
        self.touch_times(schema, body, xid)
        if not patch or any(name in body for name in policy_names):
            self._set_policy(schema, values["compatibility"], values["stelecompatibility"], xid)
        self._set_default_attributes(schema, body, values, patch=patch)

    def _set_policy(self, schema: ResourceEntity, word: str | None, exact: Any, xid: str) -> None:
        schema.sets_policy = True
        schema.new_policy = None
        try:
            if exact is not None:
                schema.new_policy = msgspec.convert(exact, PolicyJson).to_policy
            elif word is not None:
                schema.new_policy = find_policy(word)
        except (UnknownPolicy, msgspec.ValidationError) as error:
            raise RegistryError("invalid_attribute", xid, name="compatibility", error_detail=str(error)) from None
        state = self.loader.state
        schema.policy = schema.new_policy or inherited_policy(state, schema.key)

    def _set_default_attributes(
        self, schema: ResourceEntity, body: Members, values: Attributes, *, patch: bool
    ) -> None:
        has_id = "defaultversionid" in body and "defaultversionid" not in self.ignores
        has_sticky = "defaultversionsticky" in body and "defaultversionsticky" not in self.ignores
        chosen = values["defaultversionid"] if has_id else None
        if patch and not has_sticky:
            if not has_id:
                return
            schema.is_sticky = chosen is not None
        else:
            was_sticky = schema.is_sticky
            schema.is_sticky = bool(values["defaultversionsticky"]) if has_sticky else False
            if patch and was_sticky and not has_id:
                return
        if not schema.is_sticky:
            return
        schema.default_id = chosen if chosen is not None else find_newest(schema.versions)

    def _settle_default(self, schema: ResourceEntity, set_default: str | None) -> None:
        """Set the default version, after all versions are known."""
        if set_default is not None:
            self.touch_schema(schema)
            schema.is_sticky = set_default != "null"
            if schema.is_sticky:
                schema.default_id = set_default
        if schema.is_sticky and schema.default_id not in schema.versions:
            if set_default is None and any(owner is schema for owner, _ in self.deleted_versions):
                schema.is_sticky = False  # The chosen version was deleted: the newest replaces it.
            else:
                raise RegistryError("unknown_id", schema.xid, singular="version", id=schema.default_id)
        if not schema.is_sticky:
            newest = find_newest(schema.versions)
            if newest != schema.default_id and schema.default_id:
                self.touch_schema(schema)
            schema.default_id = newest

    # --- versions

    def put_versions(
        self, schema: ResourceEntity, bodies: Mapping[str, Members], *, patch: bool, set_default: str | None = None
    ) -> list[str]:
        """Create or change versions of a schema by id, and return their ids."""
        for identifier, body in bodies.items():
            self.write_version(schema, identifier, body, patch=patch)
        self._set_ancestors(schema)
        self._settle_default(schema, set_default)
        return list(bodies)

    def put_version(
        self,
        schema: ResourceEntity,
        identifier: str,
        body: Members | Attributes,
        *,
        patch: bool,
        document: bytes | None = None,
        set_default: str | None = None,
    ) -> VersionEntity:
        """Create or change one version, and set the default version."""
        version = self.write_version(schema, identifier, body, patch=patch, document=document, is_root=True)
        if set_default == REQUEST and not version.is_new:
            raise RegistryError("defaultversionid_request", schema.xid)
        self._set_ancestors(schema)
        self._settle_default(schema, identifier if set_default == REQUEST else set_default)
        return version

    def generate_version_id(self, schema: ResourceEntity) -> str:
        """Return the id of the next version: a number above all that were assigned."""
        number = max(schema.highest_generated + 1, queries.next_version_number(self.loader.state, schema.key))
        taken = {name.casefold() for name in schema.versions}
        while str(number) in taken:
            number += 1
        schema.highest_generated = number
        return str(number)

    def write_version(
        self,
        schema: ResourceEntity,
        identifier: str,
        body: Members | Attributes,
        *,
        patch: bool,
        document: bytes | None = None,
        is_root: bool = False,
    ) -> VersionEntity:
        """Create or change a version.

        Args:
            schema: Its schema.
            identifier: Its id.
            body: Its members as JSON; with a document, their values from headers.
            patch: Whether absent attributes stay as they are.
            document: Document, if the attributes came in headers. Absent attributes then stay as they are.
            is_root: Whether the request is about this version alone.
        """
        xid = f"{schema.xid}/versions/{identifier}"
        require_own_versions(schema)
        values = {
            name: parse_value(raw) if isinstance(raw, msgspec.Raw) else raw
            for name, raw in body.items()
            if name not in COLLECTIONS and name not in {"meta", "schema"}
        }
        if "schema" in body:
            values["schema"] = body["schema"]
        version = self._open_version(schema, identifier, values, xid, is_root=is_root)
        is_new = version.is_new
        schema.is_written = version.is_written = True
        before = version.attributes
        keeps = (patch or document is not None) and not is_new
        version.attributes = self.merge_values(VERSION_ATTRIBUTES, values, before if keeps else {}, xid)
        self.touch_times(version, values, xid)
        self._set_document(version, values, before, document, xid, patch=patch)
        self._set_ancestor(version, values, xid)
        self._apply_defaults(schema, version)
        if not version.format:
            raise RegistryError("required_attribute_missing", xid, list="format")
        return version

    def _open_version(
        self, schema: ResourceEntity, identifier: str, values: Attributes, xid: str, *, is_root: bool
    ) -> VersionEntity:
        """Return the version with an id, after ids and epoch were checked. It is created if it does not exist."""
        version = schema.versions.get(identifier)
        ids = {"schemaid": schema.id, "versionid": identifier}
        for name, expected in ids.items():
            if values.get(name) is not None and not (is_root and "id" in self.ignores):
                require_same_id(name.removesuffix("id"), values[name], expected, xid)
        if version is None:
            check_id(identifier, xid, of_version=True)
            clash = next((name for name in schema.versions if name.casefold() == identifier.casefold()), None)
            if clash is not None:
                raise RegistryError(
                    "bad_request", xid, error_detail=f"{identifier!r} differs from {clash!r} in case only"
                )
            version = VersionEntity(identifier, 1, self.now, self.now, is_new=True)
            schema.versions[identifier] = version
            self.touch_schema(schema)
            if identifier.isascii() and identifier.isdigit() and len(identifier) < 10:
                schema.highest_generated = max(schema.highest_generated, int(identifier))
        else:
            if "epoch" not in self.ignores:
                require_epoch(values.get("epoch"), version.epoch, xid)
            version.epoch += 0 if version.is_new else 1
        return version

    def _apply_defaults(self, schema: ResourceEntity, version: VersionEntity) -> None:
        group = self.find_group(schema.group_id)
        for name, rule in attrs.merge_constraints((group.attributes if group else {}).get("constraints", {})):
            if "default" in rule:
                version.attributes.setdefault(name, rule["default"])

    def _set_ancestor(self, version: VersionEntity, values: Attributes, xid: str) -> None:
        if "ancestorid" not in values:
            return
        ancestor_id = values["ancestorid"]
        if ancestor_id is not None and not isinstance(ancestor_id, str):
            raise RegistryError(
                "invalid_attribute", xid, name="ancestorid", error_detail="it must be of the type string"
            )
        version.ancestorid = version.id if ancestor_id == REQUEST else ancestor_id or ""

    def _set_document(
        self,
        version: VersionEntity,
        values: Attributes,
        before: Attributes,
        document: bytes | None,
        xid: str,
        *,
        patch: bool,
    ) -> None:
        """Set the document of a version, or the URL where the document is."""
        document_members = [name for name in _DOCUMENT_MEMBERS if name in values]
        present = [name for name in document_members if not is_null(values[name])]
        if len(present) > 1:
            raise RegistryError("one_resource", xid, list=", ".join(_DOCUMENT_MEMBERS))
        if present and present[0] != "schemaurl":
            version.attributes.pop("schemaurl", None)
        if document is not None:
            if present and document:
                raise RegistryError(
                    "extra_xregistry_header", name="xRegistry-schemaurl", error_detail="the body has a document, too"
                )
            version.new_document = document
        elif present == ["schema"]:
            version.new_document = read_document(values["schema"], version.format, self.loader.installed)
        elif present == ["schemabase64"]:
            version.new_document = decode_base64(values["schemabase64"], xid)
        elif document_members or (not patch and "schemaurl" in before) or version.is_new:
            version.new_document = version.new_document if not document_members and version.new_document else b""
        if document is None and (present == ["schema"] or (patch and present == ["schemabase64"])):
            version.attributes.setdefault("contenttype", "application/json")

    def delete_version(self, schema: ResourceEntity, version: VersionEntity) -> None:
        """Delete a version. Versions of which it is the ancestor become roots."""
        if schema.is_read_only:
            raise RegistryError("readonly", schema.xid)
        del schema.versions[version.id]
        self.deleted_versions.append((schema, version))
        self.touch_schema(schema)
        for other in schema.versions.values():
            if other.ancestorid == version.id:
                other.ancestorid = other.id
                other.epoch += 1
                other.modifiedat = self.now
                other.is_written = True

    def finish_deletion(self, schema: ResourceEntity, set_default: str | None) -> None:
        """Set the default version after a deletion. A schema without versions is deleted."""
        if not schema.versions:
            if set_default not in (None, "null"):
                raise RegistryError("unknown_id", schema.xid, singular="version", id=str(set_default))
            self.deleted_versions = [row for row in self.deleted_versions if row[0] is not schema]
            self.delete_schema(schema)
            return
        self._settle_default(schema, set_default)

    def _set_ancestors(self, schema: ResourceEntity) -> None:
        """Set the ancestor of new versions that name none: the newest version, in the order of their ids.

        Raises `RegistryError` for an ancestor that does not exist (`unknown_id`) and for a circle.
        """
        known = {name: each for name, each in schema.versions.items() if each.ancestorid and not each.is_new}
        newest = find_newest(known) if known else ""
        lost = [version for version in schema.versions.values() if not version.ancestorid]
        for version in sorted(lost, key=lambda version: version.id.casefold()):
            version.ancestorid = newest or version.id
            newest = version.id
        for version in schema.versions.values():
            if version.ancestorid not in schema.versions:
                raise RegistryError("unknown_id", schema.xid, singular="version", id=version.ancestorid)
        for version in schema.versions.values():
            if version.is_written:
                list_ancestors(schema, version)


def require_own_versions(schema: ResourceEntity) -> None:
    """Raise `RegistryError` if a schema has a cross reference, so that its versions cannot be changed."""
    if schema.xref:
        raise RegistryError("extra_xref_attribute", schema.xid, name="versions", singular="schema")
