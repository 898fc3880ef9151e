"""Entities as JSON: the API view with absolute URLs, and the document view, which is self-contained.

Source: docs/protocols/xregistry.md#views
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from stele.apis.http.media_types import bare_media_type
from stele.apis.xregistry.attributes import SPECVERSION
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.filters import COLLECTIONS, EXCLUDE_ALL, Filters, select_own
from stele.apis.xregistry.models import GroupEntity, RegistryEntity, ResourceEntity, VersionEntity
from stele.apis.xregistry.params import DETAILS, Inlined, Level
from stele.apis.xregistry.translate import (
    REGISTRY_ID,
    EntityLoader,
    compares_versions,
    decode_name,
    group_namespace,
    is_schema,
    policy_attributes,
)
from stele.core.access import Operation, namespace_resource
from stele.core.json_depth import is_nested_deeper
from stele.core.model import OPAQUE_FORMAT, SubjectKey
from stele.service.registry import Registry

_MOST_ENTITIES: Final = 100_000
"""Most entities of one response."""
_MOST_BYTES: Final = 64 * 1024 * 1024
"""Most bytes of the documents in one response."""
_SAFE: Final = "@:~"
_UNLIMITED: Final[Filters] = ()


class View:
    """Builds the bodies of one response.

    Args:
        registry: Checks the rights of the caller.
        loader: Loads entities.
        base: URL of the registry's root, without a slash at its end.
        comparable: Formats, each with whether its schemas can be compared.
        doc: Whether the response is in the document view.
        binary: Whether documents are shown in base64.
        has_filter: Whether the request has a filter.
    """

    def __init__(
        self,
        registry: Registry,
        loader: EntityLoader,
        base: str,
        comparable: Mapping[str, bool],
        *,
        doc: bool = False,
        binary: bool = False,
        has_filter: bool = False,
    ) -> None:
        self._registry = registry
        self._loader = loader
        self._base = base
        self._comparable = comparable
        self._doc = doc
        self._binary = binary
        self._has_filter = has_filter
        self._entities = 0
        self._bytes = 0
        self._can_read: Callable[[SubjectKey], bool] = registry.access.make_filter(Operation.READ)

    # --- links

    def link(self, xid: str) -> str:
        """Return the URL of an entity or collection by its XID."""
        return self._base + "/".join(quote(part, safe=_SAFE) for part in xid.split("/"))

    def _link_self(self, xid: str, pointer: str, *, has_details: bool = False) -> str:
        if self._doc:
            return f"#{pointer or '/'}"
        return self.link(xid) + (DETAILS if has_details else "")

    def _link_collection(self, xid: str, pointer: str, is_inlined: bool, filters: Filters, count: int) -> str:
        if self._doc and is_inlined:
            return f"#{pointer}"
        if not self._has_filter:
            return self.link(xid)
        if count == 0:
            return f"{self.link(xid)}?filter={EXCLUDE_ALL}"
        texts = [",".join(map(str, each)) for each in filters]
        return self.link(xid) + ("?" + "&".join(f"filter={quote(text)}" for text in texts) if texts else "")

    def _count(self, size: int = 0) -> None:
        self._entities += 1
        self._bytes += size
        if self._entities > _MOST_ENTITIES or self._bytes > _MOST_BYTES:
            raise RegistryError("too_large", detail="Ask for less at once: fewer inlined members, or pages.")

    # --- what is in it

    async def select_groups(self, filters: Filters) -> AsyncIterator[tuple[GroupEntity, Filters]]:
        """Yield the groups that the caller may see and that pass filters, each with the filters for its schemas."""
        access = self._registry.access
        for namespace in sorted(self._loader.state.namespaces.values(), key=lambda each: each.name):
            if not self._loader.has_group(namespace) or not access.can_list_namespace(namespace):
                continue
            group = self._loader.load_group(namespace)
            group.shows_attributes = access.allows(Operation.READ, namespace_resource(namespace.name))
            left = select_own(filters, lambda group=group: self._group_attributes(group, ""))  # type: ignore[misc]
            if left is not None and (not left or await self._has_schemas(group, left)):
                yield group, left

    async def _has_schemas(self, group: GroupEntity, filters: Filters) -> bool:
        async for _ in self.select_schemas(group, filters):
            return True
        return False

    async def select_schemas(
        self, group: GroupEntity, filters: Filters
    ) -> AsyncIterator[tuple[ResourceEntity, Filters]]:
        """Yield the schemas of a group that the caller may read and that pass filters.

        Each comes with the filters for its versions.
        """
        if group.place is None:
            return
        async for subject in self._registry.time_slices.iterate(self._loader.list_schemas(group.place)):
            if not self._can_read(subject.key) or not is_schema(subject):
                continue
            schema = self._loader.load_schema(subject)
            left = self.select_schema(schema, filters)
            if left is not None:
                yield schema, left

    def select_schema(self, schema: ResourceEntity, filters: Filters) -> Filters | None:
        """Return the filters for the versions of a schema, or None if the schema passes none of its filters."""
        left = select_own(filters, lambda: self.schema_body(schema, {"meta": {}}, (), ""))
        if left and not self.select_versions(schema, left):
            return None
        return left

    def select_versions(self, schema: ResourceEntity, filters: Filters) -> list[VersionEntity]:
        """Return the versions of a schema that pass filters, by id."""
        target = self.resolve_reference(schema) or schema
        return [
            version
            for version in target.versions.values()
            if select_own(filters, lambda version=version: self.version_body(target, version, {}, "")) is not None  # type: ignore[misc]
        ]

    def resolve_reference(self, schema: ResourceEntity) -> ResourceEntity | None:
        """Return a schema, or the target of its cross reference under its own id.

        None if the target cannot be read, or is itself a cross reference.
        """
        if not schema.xref:
            return schema
        _, _, group, _, identifier = schema.xref.split("/")
        key = SubjectKey(group_namespace(group), decode_name(identifier))
        target = self._loader.find_schema(group, identifier) if self._can_read(key) else None
        if target is None or target.xref:
            return None
        return replace(target, group_id=schema.group_id, id=schema.id, xref=schema.xref)

    # --- bodies

    async def registry_body(
        self, entity: RegistryEntity, inlined: Inlined, filters: Filters, configuration: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of the registry.

        Args:
            entity: The registry.
            inlined: Members shown in full.
            filters: Filters for the groups.
            configuration: Values of `capabilities`, `model` and `modelsource`.
        """
        body: dict[str, Any] = {
            "specversion": SPECVERSION,
            "registryid": REGISTRY_ID,
            "self": self._link_self("/", ""),
            "xid": "/",
            "epoch": entity.epoch,
            **_describe(entity.attributes),
            "createdat": entity.createdat or entity.modifiedat,
            "modifiedat": entity.modifiedat,
            **{name: value for name, value in configuration.items() if name in inlined},
        }
        return body | await self.collection_members(Level.REGISTRY, None, inlined, filters, "/", "")

    def _group_attributes(self, group: GroupEntity, pointer: str) -> dict[str, Any]:
        self._count()
        return {
            "schemagroupid": group.id,
            "self": self._link_self(group.xid, pointer),
            "xid": group.xid,
            "epoch": group.epoch,
            **(_describe(group.attributes) if group.shows_attributes else {}),
            "createdat": group.createdat,
            "modifiedat": group.modifiedat,
            **(_extensions(group.attributes) if group.shows_attributes else {}),
        }

    async def group_body(self, group: GroupEntity, inlined: Inlined, filters: Filters, pointer: str) -> dict[str, Any]:
        """Return the body of a group; filters are those for its schemas, pointer is its position in the response."""
        body = self._group_attributes(group, pointer)
        return body | await self.collection_members(Level.GROUP, group, inlined, filters, group.xid, pointer)

    async def collection_members(
        self,
        level: Level,
        group: GroupEntity | None,
        inlined: Inlined,
        filters: Filters,
        xid: str,
        pointer: str,
    ) -> dict[str, Any]:
        """Return the URL and the count of the collection in the registry or a group; its map, too, if it is inlined."""
        name = COLLECTIONS[level]
        is_inlined = name in inlined
        place, below = f"{pointer}/{name}", inlined.get(name, {})
        bodies: dict[str, Any] = {}
        if level is Level.REGISTRY:
            async for each, left in self.select_groups(filters):
                bodies[each.id] = await self.group_body(each, below, left, f"{place}/{each.id}") if is_inlined else None
        elif not self._needs_schemas(is_inlined, filters):
            assert group is not None
            bodies = dict.fromkeys([row.key async for row in self._readable(group)])
        else:
            assert group is not None
            async for schema, left in self.select_schemas(group, filters):
                where = f"{place}/{_escape(schema.id)}"
                bodies[schema.id] = self.schema_body(schema, below, left, where) if is_inlined else None
        base_xid = f"{xid.rstrip('/')}/{name}"
        members: dict[str, Any] = {
            f"{name}url": self._link_collection(base_xid, place, is_inlined, filters, len(bodies)),
            f"{name}count": len(bodies),
        }
        return members | ({name: dict(sorted(bodies.items()))} if is_inlined else {})

    @staticmethod
    def _needs_schemas(is_inlined: bool, filters: Filters) -> bool:
        return is_inlined or bool(filters)

    async def _readable(self, group: GroupEntity) -> AsyncIterator[Any]:
        assert group.place is not None
        async for subject in self._registry.time_slices.iterate(self._loader.list_schemas(group.place)):
            if self._can_read(subject.key):
                yield subject

    def schema_body(self, schema: ResourceEntity, inlined: Inlined, filters: Filters, pointer: str) -> dict[str, Any]:
        """Return the body of a schema; filters are those for its versions, pointer is its position in the response."""
        body = self._schema_attributes(schema, inlined, pointer)
        target = schema if self._doc and schema.xref else self.resolve_reference(schema)
        if target is None or (self._doc and schema.xref):
            return body
        versions = self.select_versions(schema, filters) if filters else list(target.versions.values())
        is_inlined, place = "versions" in inlined, f"{pointer}/versions"
        if not (self._doc and is_inlined):  # In the document view, a schema has either its versions or their URL.
            url = self._link_collection(f"{schema.xid}/versions", place, is_inlined, filters, len(versions))
            body |= {"versionsurl": url, "versionscount": len(versions)}
        if is_inlined:
            body["versions"] = {
                version.id: self.version_body(target, version, inlined["versions"], f"{place}/{_escape(version.id)}")
                for version in sorted(versions, key=lambda each: (each.id.casefold(), each.id))
            }
        return body

    def _schema_attributes(self, schema: ResourceEntity, inlined: Inlined, pointer: str) -> dict[str, Any]:
        self._count()
        target = self.resolve_reference(schema)
        body: dict[str, Any] = {"schemaid": schema.id}
        default = target.versions.get(target.default_id) if target is not None and not self._doc else None
        place = {
            "self": self._link_self(schema.xid, pointer, has_details=True),
            "xid": schema.xid,
        }
        if default is not None and target is not None:
            body |= self.version_body(target, default, inlined, "") | {"schemaid": schema.id, **place}
        body |= place
        has_meta = "meta" in inlined
        meta_pointer = f"{pointer}/meta"
        body["metaurl"] = f"#{meta_pointer}" if self._doc and has_meta else self.link(f"{schema.xid}/meta")
        if has_meta:
            body["meta"] = self.meta_body(schema, pointer, has_versions="versions" in inlined)
        return body

    def meta_body(self, schema: ResourceEntity, pointer: str, *, has_versions: bool = False) -> dict[str, Any]:
        """Return the body of a meta entity.

        Args:
            schema: The schema.
            pointer: Position of the schema in the response.
            has_versions: Whether the response also has its versions.
        """
        self._count()
        xid = f"{schema.xid}/meta"
        is_alone = not pointer and not has_versions
        body: dict[str, Any] = {
            "schemaid": schema.id,
            "self": self._link_self(xid, "" if is_alone and self._doc else f"{pointer}/meta"),
            "xid": xid,
        }
        if schema.xref:
            body["xref"] = schema.xref
        target = None if schema.xref and self._doc else self.resolve_reference(schema)
        if target is None:
            return body
        version_xid = f"{schema.xid}/versions/{target.default_id}"
        body |= {
            "epoch": target.epoch,
            **({"labels": target.attributes["labels"]} if "labels" in target.attributes else {}),
            "createdat": target.createdat,
            "modifiedat": target.modifiedat,
            "readonly": target.is_read_only,
            **policy_attributes(self._loader.state, target),
            **{name: value for name, value in target.attributes.items() if name != "labels"},
            "defaultversionid": target.default_id,
            "defaultversionurl": f"#{pointer}/versions/{_escape(target.default_id)}"
            if self._doc and has_versions
            else self.link(version_xid) + DETAILS,
            "defaultversionsticky": target.is_sticky,
        }
        return body

    def version_body(
        self, schema: ResourceEntity, version: VersionEntity, inlined: Inlined, pointer: str
    ) -> dict[str, Any]:
        """Return the body of a version; pointer is its position in the response."""
        self._count()
        xid = f"{schema.xid}/versions/{version.id}"
        attributes = version.attributes
        body: dict[str, Any] = {
            "schemaid": schema.id,
            "versionid": version.id,
            "self": self._link_self(xid, pointer, has_details=True),
            "xid": xid,
            "epoch": version.epoch,
            **({"name": attributes["name"]} if "name" in attributes else {}),
            "isdefault": version.id == schema.default_id,
            **_describe({name: value for name, value in attributes.items() if name != "name"}),
            "createdat": version.createdat,
            "modifiedat": version.modifiedat,
            "ancestorid": version.ancestorid,
            **{name: attributes[name] for name in ("contenttype", "format") if name in attributes},
        }
        if not self._doc:
            body |= self._validation(schema, version)
        body |= _extensions(attributes)
        if "schema" in inlined and "schemaurl" not in attributes:
            body |= self._document_member(version)
        return body

    def _validation(self, schema: ResourceEntity, version: VersionEntity) -> dict[str, Any]:
        """Return the members that say whether the server validated a version, and the reason if it did not."""
        reason = ""
        if "schemaurl" in version.attributes:
            reason = "The document is outside of the registry."
        elif version.kind is None:
            reason = "The version has no document."
        elif version.kind.format == OPAQUE_FORMAT:
            reason = "The server does not know the format."
        members: dict[str, Any] = {"formatvalidated": not reason}
        if reason:
            members["formatvalidatedreason"] = reason
        if not compares_versions(schema.policy):
            return members
        if not reason and version.kind is not None and not self._comparable.get(version.kind.format, False):
            reason = "The server cannot compare schemas of the format."
        elif not reason and not version.is_compared:
            reason = "The version was registered before the rule was set."
        members["compatibilityvalidated"] = not reason
        if reason:
            members["compatibilityvalidatedreason"] = reason
        return members

    def _document_member(self, version: VersionEntity) -> dict[str, Any]:
        row = version.registered
        data = b"" if row is None else self._loader.state.get_text(row.content)
        self._count(len(data))
        if not self._binary:
            value = embed_document(data, str(version.attributes.get("contenttype", "")))
            if value is not None:
                return {"schema": value}
        return {"schemabase64": base64.b64encode(data).decode("ascii")}


def embed_document(data: bytes, content_type: str) -> Any:
    """Return a document as a value in JSON, or None if it must be written in base64.

    A JSON document is embedded byte for byte, except `null` and strings, which have another meaning there.
    """
    media_type = bare_media_type(content_type)
    if media_type == "text/plain" and data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return None
    if media_type != "application/json" and not media_type.endswith("+json"):
        return None
    if is_nested_deeper(data):
        return None
    try:
        value = msgspec.json.decode(data)
        data.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if value is None or isinstance(value, str) else msgspec.Raw(data.strip(b" \t\r\n"))


_DESCRIBING: Final = ("name", "description", "documentation", "icon", "labels")
_PLACED: Final = frozenset({*_DESCRIBING, "contenttype", "format"})


def _describe(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: attributes[name] for name in _DESCRIBING if name in attributes}


def _extensions(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other attributes of an entity, including a group's format."""
    return {name: value for name, value in attributes.items() if name not in _DESCRIBING and name != "contenttype"}


def _escape(identifier: str) -> str:
    return identifier.replace("~", "~0").replace("/", "~1")
