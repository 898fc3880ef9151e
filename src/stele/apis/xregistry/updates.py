"""Requests applied to entities: what would be there after them. Nothing is written here.

A draft holds the entities that a request touches. `commit` turns what differs into commands.

Source: docs/protocols/xregistry.md#writing
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from stele.apis.xregistry import attributes as attrs
from stele.apis.xregistry.attributes import (
    GROUP_ATTRIBUTES,
    META_ATTRIBUTES,
    REGISTRY_ATTRIBUTES,
    VERSION_ATTRIBUTES,
    Definition,
    check_attribute,
    check_id,
    parse_value,
    require_epoch,
    require_same_id,
)
from stele.apis.xregistry.capabilities import require_same_capabilities, require_same_model
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.models import Attributes, GroupEntity, RegistryEntity, SchemaEntity, VersionEntity
from stele.apis.xregistry.translate import (
    REGISTRY_ID,
    EntityLoader,
    decode_name,
    find_newest,
    group_namespace,
    inherited_policy,
    resolve_format,
)
from stele.core import queries
from stele.core.access import REGISTRY_RESOURCE, Operation, namespace_resource, subject_resource
from stele.core.model import SubjectKey
from stele.core.policy import find_policy
from stele.core.policy_json import PolicyJson
from stele.errors import UnknownPolicy
from stele.service.access import AccessControl

Members = Mapping[str, msgspec.Raw]
"""An entity in a request: its members, not decoded yet."""

_COLLECTIONS: Final = ("schemagroups", "schemas", "versions")
_DOCUMENT_MEMBERS: Final = ("schema", "schemabase64", "schemaurl")
_HANDLED: Final = frozenset({"$schema", "createdat", "modifiedat", "ancestorid", "schema", "schemabase64"})
"""Members that are not merged as the others are."""
_BESIDE_VERSION: Final = frozenset(
    {"schemaid", "meta", "versions", "metaurl", "versionsurl", "versionscount", "$schema"}
)
"""Members of a schema that say nothing about its default version."""
_JSON_FORMATS: Final = frozenset({"avro", "json"})
REQUEST: Final = "request"
"""Stands for the version that the request makes, where its id is not known yet."""


class Draft:
    """Entities as a request leaves them.

    Args:
        loader: Where entities come from.
        now: Time of the request, UTC.
        ignores: Parts of the request that are ignored.
        capabilities: Capabilities of the server.
        access: What the caller may do: who may not change something is told nothing of it either.
    """

    def __init__(
        self,
        loader: EntityLoader,
        now: str,
        ignores: frozenset[str],
        capabilities: Mapping[str, Any],
        access: AccessControl,
    ) -> None:
        self._access = access
        self.loader = loader
        self.now = now
        self.ignores = ignores
        self.capabilities = capabilities
        self.registry = loader.load_registry()
        self.groups: dict[str, GroupEntity | None] = {}
        self.schemas: dict[tuple[str, str], SchemaEntity | None] = {}
        self.deleted_groups: list[GroupEntity] = []
        self.emptied_groups: list[str] = []
        self.deleted_schemas: list[SchemaEntity] = []
        self.deleted_versions: list[tuple[SchemaEntity, VersionEntity]] = []
        self._names: dict[str, dict[str, str]] = {}

    # --- finding --------------------------------------------------------------------------------------------------------

    def find_group(self, identifier: str) -> GroupEntity | None:
        """Return a group, None where there is none, or none any more."""
        if identifier not in self.groups:
            self.groups[identifier] = self.loader.find_group(identifier)
        return self.groups[identifier]

    def get_group(self, identifier: str) -> GroupEntity:
        """Return a group. Raises `RegistryError` (`not_found`)."""
        group = self.find_group(identifier)
        if group is None:
            raise RegistryError("not_found", f"/schemagroups/{identifier}")
        return group

    def find_schema(self, group: str, identifier: str) -> SchemaEntity | None:
        """Return a schema, None where there is none, or none any more."""
        key = (group, identifier)
        if key not in self.schemas:
            self.schemas[key] = self.loader.find_schema(group, identifier) if self.find_group(group) else None
        return self.schemas[key]

    def get_schema(self, group: str, identifier: str) -> SchemaEntity:
        """Return a schema. Raises `RegistryError` (`not_found`)."""
        schema = self.find_schema(group, identifier)
        if schema is None:
            raise RegistryError("not_found", f"/schemagroups/{group}/schemas/{identifier}")
        return schema

    def written_schemas(self) -> Iterator[SchemaEntity]:
        """Yield the schemas that the request creates or changes."""
        return (schema for schema in self.schemas.values() if schema is not None and schema.is_written)

    def list_schemas(self, group: GroupEntity) -> Iterator[SchemaEntity]:
        """Yield all schemas of a group as the request leaves them."""
        if group.place is not None:
            for subject in list(self.loader.list_schemas(group.place)):
                key = (group.id, self.loader.load_schema(subject).id)
                self.find_schema(*key)
        for (owner, _), schema in list(self.schemas.items()):
            if owner == group.id and schema is not None:
                yield schema

    # --- the registry ---------------------------------------------------------------------------------------------------

    def put_registry(self, body: Members, *, patch: bool) -> None:
        """Change the registry itself, and the groups in the request."""
        self._access.require(Operation.REGISTER, REGISTRY_RESOURCE)
        entity = self.registry
        self._check_ids(body, {"registryid": REGISTRY_ID}, "/")
        if "capabilities" in body and "capabilities" not in self.ignores:
            require_same_capabilities(parse_value(body["capabilities"]), self.capabilities)
        if "modelsource" in body and "modelsource" not in self.ignores:
            require_same_model(parse_value(body["modelsource"]))
        self._check_epoch(body, entity.epoch, "/")
        entity.attributes = self._merge_attributes(
            REGISTRY_ATTRIBUTES, body, entity.attributes if patch else {}, "/", skipped=("capabilities", "modelsource")
        )
        self._touch_times(entity, body, "/")
        entity.epoch += 1
        entity.is_written = entity.is_changed = True
        self.put_groups(read_map(body.get("schemagroups"), "schemagroups", "/"), patch=patch)

    def put_groups(self, bodies: Mapping[str, Members], *, patch: bool) -> list[str]:
        """Create or change groups by id, and return their ids."""
        for identifier, body in bodies.items():
            self.put_group(identifier, body, patch=patch)
        return list(bodies)

    def touch_registry(self) -> None:
        """Note that the registry got or lost a group."""
        if not self.registry.is_written:
            self.registry.epoch += 1
            self.registry.modifiedat = self.now
            self.registry.is_written = True

    # --- groups ---------------------------------------------------------------------------------------------------------

    def put_group(self, identifier: str, body: Members, *, patch: bool, is_root: bool = False) -> GroupEntity:
        """Create or change a group, and the schemas in the request."""
        self._access.require(Operation.REGISTER, namespace_resource(group_namespace(identifier)))
        group = self.make_group(identifier)
        self._check_ids(body, {"schemagroupid": identifier}, group.xid, is_root=is_root)
        if not group.is_new:
            self._check_epoch(body, group.epoch, group.xid)
            group.epoch += 1
        group.attributes = self._merge_attributes(GROUP_ATTRIBUTES, body, group.attributes if patch else {}, group.xid)
        attrs.check_constraints(group.attributes.get("constraints", {}), group.xid)
        self._touch_times(group, body, group.xid)
        group.is_written = group.is_changed = True
        self.put_schemas(identifier, read_map(body.get("schemas"), "schemas", group.xid), patch=patch)
        for schema in self.list_schemas(group):
            check_group_constraints(group, schema)
        return group

    def make_group(self, identifier: str) -> GroupEntity:
        """Return a group, a new one where there is none."""
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
        """Note that a group got or lost a schema; it is made where there is none."""
        group = self.make_group(identifier)
        if not group.is_written:
            group.epoch += 1
            group.modifiedat = self.now
            group.is_written = True
        return group

    def delete_group(self, group: GroupEntity) -> None:
        """Delete a group with what is in it."""
        self._access.require(Operation.DELETE, namespace_resource(group.namespace))
        for schema in list(self.list_schemas(group)):
            self._forget_schema(schema)
        self.groups[group.id] = None
        self.deleted_groups.append(group)
        self.touch_registry()

    def _require_unique(self, group: str, identifier: str, xid: str) -> None:
        """Raise `RegistryError` for a new id that another one differs from in case only; group '' is the registry."""
        names = self._names.get(group)
        if names is None:
            state = self.loader.state
            namespace = state.find_namespace(group_namespace(group)) if group else None
            if not group:
                found = [
                    self.loader.load_group(each).id for each in state.namespaces.values() if self.loader.has_group(each)
                ]
            else:
                subjects = self.loader.list_schemas(namespace) if namespace is not None else ()
                found = [self.loader.load_schema(subject).id for subject in subjects]
            names = self._names[group] = {name.casefold(): name for name in found}
        other = names.setdefault(identifier.casefold(), identifier)
        if other != identifier:
            raise RegistryError("bad_request", xid, error_detail=f"{identifier!r} differs from {other!r} in case only")

    # --- schemas --------------------------------------------------------------------------------------------------------

    def put_schemas(self, group: str, bodies: Mapping[str, Members], *, patch: bool) -> list[str]:
        """Create or change schemas of a group by id, and return the ids of those that are not left out."""
        written = []
        for identifier, body in bodies.items():
            known = self.find_schema(group, identifier)
            if known is not None and known.is_read_only and "readonly" in self.ignores:
                continue
            self.put_schema(group, identifier, body, patch=patch)
            written.append(identifier)
        return written

    def make_schema(self, group: str, identifier: str) -> SchemaEntity:
        """Return a schema, a new one without versions where there is none."""
        key = SubjectKey(group_namespace(group), decode_name(identifier))
        self._access.require(Operation.REGISTER, subject_resource(key))
        schema = self.find_schema(group, identifier)
        if schema is not None:
            if schema.is_read_only:
                raise RegistryError("bad_flag" if "readonly" in self.ignores else "readonly", schema.xid, flag="ignore")
            return schema
        xid = f"/schemagroups/{group}/schemas/{identifier}"
        check_id(identifier, xid)
        self._require_unique(group, identifier, xid)
        self.touch_group(group)
        policy = inherited_policy(self.loader.state, key)
        schema = SchemaEntity(
            key, group, identifier, policy, createdat=self.now, modifiedat=self.now, is_new=True, is_written=True
        )
        schema.subject = self.loader.state.find_subject(key)
        self.schemas[group, identifier] = schema
        return schema

    def touch_schema(self, schema: SchemaEntity) -> None:
        """Note that the meta entity of a schema changes, or that it gets or loses a version."""
        if not schema.has_new_meta:
            schema.epoch += 0 if schema.is_new else 1
            schema.modifiedat = self.now
            schema.has_new_meta = True
        schema.is_written = True

    def put_schema(
        self,
        group: str,
        identifier: str,
        body: Members,
        *,
        patch: bool,
        is_root: bool = False,
        set_default: str | None = None,
    ) -> SchemaEntity:
        """Create or change a schema: its versions, its default version, its meta entity."""
        schema = self.make_schema(group, identifier)
        self._check_ids(body, {"schemaid": identifier}, schema.xid, is_root=is_root)
        meta = read_members(body["meta"], "meta", schema.xid) if _has_value(body, "meta") else None
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
        schema: SchemaEntity,
        prior: str,
        body: Members,
        meta: Members | None,
        versions: Mapping[str, Members],
        *,
        patch: bool,
        is_root: bool,
    ) -> None:
        """Apply the attributes that stand beside `meta` and `versions` to the version that they mean."""
        given = parse_value(body["versionid"]) if _has_value(body, "versionid") else None
        if is_root and "id" in self.ignores:
            given = None
        if prior:
            if given is not None and given != prior:
                require_same_id("version", given, prior, schema.xid)
            is_beside = patch and bool(body) and _BESIDE_VERSION.issuperset(body)
            if prior not in versions and not is_beside:
                self.write_version(schema, prior, body, patch=patch, is_root=is_root)
            return
        chosen = given
        if chosen is None and meta is not None and "defaultversionid" not in self.ignores:
            chosen = parse_value(meta["defaultversionid"]) if _has_value(meta, "defaultversionid") else None
        if chosen is not None:
            if chosen not in versions:
                self.write_version(
                    schema, check_id(chosen, schema.xid, of_version=True), body, patch=patch, is_root=is_root
                )
        elif not versions:
            self.write_version(schema, self.generate_version_id(schema), body, patch=patch, is_root=is_root)

    def delete_schema(self, schema: SchemaEntity) -> None:
        """Delete a schema with its versions."""
        self._access.require(Operation.DELETE, subject_resource(schema.key))
        self._forget_schema(schema)
        self.deleted_schemas.append(schema)
        self.touch_group(schema.group_id)

    def delete_schemas(self, group: GroupEntity) -> None:
        """Delete all schemas of a group."""
        self._access.require(Operation.DELETE, namespace_resource(group.namespace))
        for schema in list(self.list_schemas(group)):
            self._forget_schema(schema)
            self.deleted_schemas.append(schema)
        self.emptied_groups.append(group.id)
        self.touch_group(group.id)

    def _forget_schema(self, schema: SchemaEntity) -> None:
        if schema.is_read_only:
            raise RegistryError("readonly", schema.xid)
        self.schemas[schema.group_id, schema.id] = None

    # --- references to other schemas ------------------------------------------------------------------------------------

    def _puts_reference(self, schema: SchemaEntity, body: Members, meta: Members | None, *, patch: bool) -> bool:
        """Make a schema stand for another one, or one of its own again; whether there is nothing more to do."""
        given = parse_value(meta["xref"]) if meta is not None and _has_value(meta, "xref") else None
        if given is None:
            ends = schema.xref and (not patch or (meta is not None and "xref" in meta))
            if schema.xref and not ends:
                raise RegistryError("extra_xref_attribute", schema.xid, name="versionid", singular="schema")
            if ends:
                self._end_reference(schema)
            return False
        target = check_reference(given, schema.xid)
        assert meta is not None
        allowed = {"schemaid", "self", "xid", "shortself", "metaurl", "meta", "$schema"}
        extra = [name for name in body if name not in allowed]
        extra += [name for name in meta if name not in {"schemaid", "self", "xid", "shortself", "xref", "epoch"}]
        if extra:
            raise RegistryError("extra_xref_attribute", schema.xid, name=extra[0], singular="schema")
        if not schema.is_new:
            self._check_epoch(meta, schema.epoch, schema.xid)
        self.touch_schema(schema)
        self.deleted_versions += [(schema, version) for version in schema.versions.values() if not version.is_new]
        schema.versions, schema.attributes = {}, {}
        schema.xref, schema.default_id, schema.is_sticky = target, "", False
        return True

    def _end_reference(self, schema: SchemaEntity) -> None:
        _, _, group, _, identifier = schema.xref.split("/")
        target = self.loader.find_schema(group, identifier)
        schema.epoch = max(schema.epoch, 0 if target is None else target.epoch) + 1
        schema.xref, schema.modifiedat, schema.has_new_meta, schema.is_written = "", self.now, True, True

    # --- meta -----------------------------------------------------------------------------------------------------------

    def put_meta(self, schema: SchemaEntity, body: Members, *, patch: bool, set_default: str | None = None) -> None:
        """Change the meta entity of a schema."""
        if schema.is_read_only:
            raise RegistryError("bad_flag" if "readonly" in self.ignores else "readonly", schema.xid, flag="ignore")
        wrapped = {"meta": msgspec.Raw(msgspec.json.encode(body))}
        if schema.xref or _has_value(body, "xref"):
            if self._puts_reference(schema, wrapped, body, patch=patch):
                return
            if not schema.versions:
                self.write_version(schema, self.generate_version_id(schema), {}, patch=False)
                self._set_ancestors(schema)
        self._write_meta(schema, body, patch=patch)
        self._settle_default(schema, set_default)

    def _write_meta(self, schema: SchemaEntity, body: Members, *, patch: bool) -> None:
        xid = f"{schema.xid}/meta"
        self._check_ids(body, {"schemaid": schema.id}, xid)
        if not schema.is_new:
            self._check_epoch(body, schema.epoch, xid)
        policy_names = ("compatibility", "stelecompatibility")
        default_names = ("defaultversionid", "defaultversionsticky")
        found = self._merge_attributes(
            META_ATTRIBUTES, body, schema.attributes if patch else {}, xid, skipped=("xref",), folded=("compatibility",)
        )
        values = {name: found.pop(name, None) for name in (*policy_names, *default_names)}
        schema.attributes = found
        self.touch_schema(schema)
        self._touch_times(schema, body, xid)
        if not patch or any(name in body for name in policy_names):
            self._set_policy(schema, values["compatibility"], values["stelecompatibility"], xid)
        self._set_default_attributes(schema, body, values, patch=patch)

    def _set_policy(self, schema: SchemaEntity, word: str | None, exact: Any, xid: str) -> None:
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

    def _set_default_attributes(self, schema: SchemaEntity, body: Members, values: Attributes, *, patch: bool) -> None:
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

    def _settle_default(self, schema: SchemaEntity, set_default: str | None) -> None:
        """Say which version is the default one, after all versions are known."""
        if set_default is not None:
            self.touch_schema(schema)
            schema.is_sticky = set_default != "null"
            if schema.is_sticky:
                schema.default_id = set_default
        if schema.is_sticky and schema.default_id not in schema.versions:
            if set_default is None and any(owner is schema for owner, _ in self.deleted_versions):
                schema.is_sticky = False  # The chosen one was deleted: the newest takes its place.
            else:
                raise RegistryError("unknown_id", schema.xid, singular="version", id=schema.default_id)
        if not schema.is_sticky:
            newest = find_newest(schema.versions)
            if newest != schema.default_id and schema.default_id:
                self.touch_schema(schema)
            schema.default_id = newest

    # --- versions -------------------------------------------------------------------------------------------------------

    def put_versions(
        self, schema: SchemaEntity, bodies: Mapping[str, Members], *, patch: bool, set_default: str | None = None
    ) -> list[str]:
        """Create or change versions of a schema by id, and return their ids."""
        for identifier, body in bodies.items():
            self.write_version(schema, identifier, body, patch=patch)
        self._set_ancestors(schema)
        self._settle_default(schema, set_default)
        return list(bodies)

    def put_version(
        self,
        schema: SchemaEntity,
        identifier: str,
        body: Members | Attributes,
        *,
        patch: bool,
        document: bytes | None = None,
        set_default: str | None = None,
    ) -> VersionEntity:
        """Create or change one version, and say which one is the default."""
        version = self.write_version(schema, identifier, body, patch=patch, document=document, is_root=True)
        self._set_ancestors(schema)
        self._settle_default(schema, identifier if set_default == REQUEST else set_default)
        return version

    def generate_version_id(self, schema: SchemaEntity) -> str:
        """Return the id of the next version: a number above all that were given out."""
        number = max(schema.highest_generated + 1, queries.next_version_number(self.loader.state, schema.key))
        taken = {name.casefold() for name in schema.versions}
        while str(number) in taken:
            number += 1
        schema.highest_generated = number
        return str(number)

    def write_version(
        self,
        schema: SchemaEntity,
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
            body: Its members as JSON; with a document their values, from headers.
            patch: Whether attributes that are not there stay as they are.
            document: Document, where the attributes came in headers; then those that are not there stay.
            is_root: Whether the request is about this version alone.
        """
        xid = f"{schema.xid}/versions/{identifier}"
        if schema.xref:
            raise RegistryError("extra_xref_attribute", schema.xid, name="versions", singular="schema")
        values = {
            name: parse_value(raw) if isinstance(raw, msgspec.Raw) else raw
            for name, raw in body.items()
            if name not in _COLLECTIONS and name not in {"meta", "schema"}
        }
        if "schema" in body:
            values["schema"] = body["schema"]
        version = schema.versions.get(identifier)
        ids = {"schemaid": schema.id, "versionid": identifier}
        for name, expected in ids.items():
            if values.get(name) is not None and not (is_root and "id" in self.ignores):
                require_same_id(name.removesuffix("id"), values[name], expected, xid)
        is_new = version is None
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
        schema.is_written = version.is_written = True
        before = version.attributes
        keeps = (patch or document is not None) and not is_new
        version.attributes = self._merge_values(VERSION_ATTRIBUTES, values, before if keeps else {}, xid)
        self._touch_times(version, values, xid)
        self._set_document(version, values, before, document, xid, patch=patch)
        self._set_ancestor(version, values, xid)
        self._apply_defaults(schema, version)
        if not version.format:
            raise RegistryError("required_attribute_missing", xid, list="format")
        return version

    def _apply_defaults(self, schema: SchemaEntity, version: VersionEntity) -> None:
        group = self.find_group(schema.group_id)
        for name, rule in attrs.merge_constraints((group.attributes if group else {}).get("constraints", {})):
            if "default" in rule:
                version.attributes.setdefault(name, rule["default"])

    def _set_ancestor(self, version: VersionEntity, values: Attributes, xid: str) -> None:
        if "ancestorid" not in values:
            return
        given = values["ancestorid"]
        if given is not None and not isinstance(given, str):
            raise RegistryError("invalid_attribute", xid, name="ancestorid", error_detail="it is of the type string")
        version.ancestorid = version.id if given == REQUEST else given or ""

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
        """Give a version the document of the request, or the place where it is."""
        given = [name for name in _DOCUMENT_MEMBERS if name in values]
        present = [name for name in given if not _is_null(values[name])]
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
            version.new_document = self._read_document(values["schema"], version.format)
        elif present == ["schemabase64"]:
            version.new_document = _decode_base64(values["schemabase64"], xid)
        elif given or (not patch and "schemaurl" in before) or version.is_new:
            version.new_document = version.new_document if not given and version.new_document else b""
        if document is None and present in (["schema"], ["schemabase64"]):
            if present == ["schema"] and not patch:
                version.attributes.setdefault("contenttype", "application/json")
            elif patch:
                version.attributes.setdefault("contenttype", "application/json")

    def _read_document(self, raw: Any, format_name: str) -> bytes:
        """Return the document that a JSON value is: a string is the text itself, anything else its JSON."""
        data = bytes(raw)
        value = parse_value(msgspec.Raw(data))
        if not isinstance(value, str):
            return data
        text = value.encode("utf-8", "surrogatepass")
        schema_format = resolve_format(format_name, self.loader.installed)
        if schema_format.format in _JSON_FORMATS:
            try:
                msgspec.json.decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return data  # The name of a type is JSON with its quotes only.
        return text

    def delete_version(self, schema: SchemaEntity, version: VersionEntity) -> None:
        """Delete a version; versions that came from it become roots."""
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

    def finish_deletion(self, schema: SchemaEntity, set_default: str | None) -> None:
        """Say which version is the default one after a deletion; without any version the schema goes, too."""
        if not schema.versions:
            if set_default not in (None, "null"):
                raise RegistryError("unknown_id", schema.xid, singular="version", id=str(set_default))
            self.deleted_versions = [row for row in self.deleted_versions if row[0] is not schema]
            self.delete_schema(schema)
            return
        self._settle_default(schema, set_default)

    def _set_ancestors(self, schema: SchemaEntity) -> None:
        """Give new versions that name no ancestor the newest version, in the order of their ids.

        Raises `RegistryError` for an ancestor that is not there (`unknown_id`) and for a circle.
        """
        settled = {name: version for name, version in schema.versions.items() if version.ancestorid}
        for version in sorted(
            (version for version in schema.versions.values() if not version.ancestorid),
            key=lambda version: version.id.casefold(),
        ):
            others = {name: each for name, each in settled.items() if name != version.id}
            version.ancestorid = find_newest(others) if others else version.id
            settled[version.id] = version
        for version in schema.versions.values():
            if version.ancestorid not in schema.versions:
                raise RegistryError("unknown_id", schema.xid, singular="version", id=version.ancestorid)
        for version in schema.versions.values():
            if version.is_written:
                list_ancestors(schema, version)

    # --- what all entities share ----------------------------------------------------------------------------------------

    def _check_ids(self, body: Members, expected: Mapping[str, str], xid: str, *, is_root: bool = False) -> None:
        if is_root and "id" in self.ignores:
            return
        for name, identifier in expected.items():
            if _has_value(body, name) and not (xid == "/" and "id" in self.ignores):
                require_same_id(name.removesuffix("id"), parse_value(body[name]), identifier, xid)

    def _check_epoch(self, body: Members, current: int, xid: str) -> None:
        if "epoch" in body and "epoch" not in self.ignores:
            require_epoch(parse_value(body["epoch"]), current, xid)

    def _merge_attributes(
        self,
        definitions: Mapping[str, Definition],
        body: Members,
        before: Attributes,
        xid: str,
        *,
        skipped: tuple[str, ...] = (),
        folded: tuple[str, ...] = (),
    ) -> Attributes:
        values = {
            name: parse_value(raw) for name, raw in body.items() if name not in _COLLECTIONS and name not in skipped
        }
        for name in folded:
            if isinstance(values.get(name), str):
                values[name] = values[name].casefold()
        return self._merge_values(definitions, values, before, xid)

    def _merge_values(
        self, definitions: Mapping[str, Definition], values: Attributes, before: Attributes, xid: str
    ) -> Attributes:
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

    def _touch_times(self, entity: Any, body: Mapping[str, Any], xid: str) -> None:
        """Set the times of an entity, by the request or to that of the request."""
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


# --- reading requests -------------------------------------------------------------------------------------------------


def read_members(raw: Any, name: str, xid: str) -> Members:
    """Return the members of an object in a request. Raises `RegistryError` for anything else."""
    try:
        return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        raise RegistryError("bad_request", xid, error_detail=f"{name!r} is an object") from None


def read_map(raw: Any, name: str, xid: str) -> Mapping[str, Members]:
    """Return the entities of a map in a request by id. Raises `RegistryError` for anything else."""
    if raw is None or _is_null(raw):
        return {}
    try:
        return msgspec.json.decode(raw, type=dict[str, dict[str, msgspec.Raw]])
    except msgspec.DecodeError:
        raise RegistryError("bad_request", xid, error_detail=f"{name!r} is a map of objects") from None


def _has_value(body: Mapping[str, Any], name: str) -> bool:
    return name in body and not _is_null(body[name])


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, msgspec.Raw) and bytes(value) == b"null")


def _is_helper(name: str) -> bool:
    return name in {"metaurl", "meta", "versionsurl", "versionscount", "schemasurl", "schemascount"}


def _decode_base64(text: Any, xid: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise RegistryError("invalid_attribute", xid, name="schemabase64", error_detail="it is no base64") from None


def check_reference(xref: Any, xid: str) -> str:
    """Return the XID of the schema that another one stands for. Raises `RegistryError` (`malformed_xref`)."""
    parts = xref.split("/") if isinstance(xref, str) else []
    if len(parts) != 5 or parts[0] or (parts[1], parts[3]) != ("schemagroups", "schemas"):
        raise RegistryError(
            "malformed_xref", xid, xref=str(xref)[:200], error_detail="it is /schemagroups/ID/schemas/ID"
        )
    if not attrs.is_id(parts[2]) or not attrs.is_id(parts[4]) or xref == xid:
        raise RegistryError("malformed_xref", xid, xref=xref[:200], error_detail="it leads to no schema")
    return str(xref)


# --- rules ------------------------------------------------------------------------------------------------------------


def list_ancestors(schema: SchemaEntity, version: VersionEntity) -> list[VersionEntity]:
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


def check_group_constraints(group: GroupEntity, schema: SchemaEntity) -> None:
    """Raise `RegistryError` for a version whose attributes the group does not allow."""
    for name, rule in attrs.merge_constraints(group.attributes.get("constraints", {})):
        wanted = group.attributes.get(rule.get("equals") or "")
        choices = [_fold(value) for value in rule.get("enum") or ()]
        for version in schema.versions.values():
            value = version.attributes.get(name)
            if choices and value is not None and _fold(value) not in choices:
                raise RegistryError("constraint_failure", schema.xid, path=f"schemas.{name}", kind="enum")
            if wanted is not None and _fold(value) != _fold(wanted):
                raise RegistryError("constraint_failure", schema.xid, path=f"schemas.{name}", kind="equals")


def check_matching_versions(schema: SchemaEntity) -> None:
    """Raise `RegistryError` for versions of different formats."""
    if len({version.format.casefold() for version in schema.versions.values()}) > 1:
        raise RegistryError("mismatched_version_attribute", schema.xid, name="format")


def _fold(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value
