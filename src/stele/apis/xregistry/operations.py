"""Operations on entities, for one caller under one base URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from litestar.di import NamedDependency

from stele.apis.xregistry.attributes import print_time
from stele.apis.xregistry.capabilities import EXTENSION_MODEL, FULL_MODEL, build_capabilities
from stele.apis.xregistry.commit import build_transaction
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.filters import Filters, SortOrder, parse_filters, parse_sort, select_own, sort_entities
from stele.apis.xregistry.models import GroupEntity, ResourceEntity, VersionEntity
from stele.apis.xregistry.options import XregistryOptions
from stele.apis.xregistry.params import Flags, Level, parse_inline
from stele.apis.xregistry.serialize import View
from stele.apis.xregistry.translate import DIALECT, EntityLoader, group_namespace
from stele.apis.xregistry.updates import RequestUpdate
from stele.apis.xregistry.validation import validate_update
from stele.core.access import Operation, namespace_resource
from stele.core.state import State
from stele.errors import NotInstalled
from stele.service.registry import Registry
from stele.service.retry import retry_when_overtaken

T = TypeVar("T")
Entities = list[tuple[str, dict[str, Any]]]

EVERYTHING: Final = ("*", "capabilities", "modelsource")
"""Members that an export shows in full."""


class AppState(msgspec.Struct):
    """What all requests of an application share.

    Attributes:
        registry: The registry.
        options: Options of the dialect.
        comparable: Installed formats, each with whether its schemas can be compared; None until that is known.
    """

    registry: Registry
    options: XregistryOptions
    comparable: dict[str, bool] | None = None

    async def find_comparable(self) -> Mapping[str, bool]:
        """Return the installed formats, each with whether its schemas can be compared."""
        if self.comparable is None:
            self.comparable = {name: await self._can_compare(name) for name in self.registry.parser.list_format_names()}
        return self.comparable

    async def _can_compare(self, format_name: str) -> bool:
        try:
            return await self.registry.parser.can_compare(format_name)
        except NotInstalled:
            return False


class Operations:
    """Serves one request of one caller.

    Args:
        app_state: What all requests share.
        base: URL of the registry's root, without a slash at its end.
        flags: Flags of the request.
    """

    def __init__(self, app_state: AppState, base: str, flags: Flags) -> None:
        self._app_state = app_state
        self.registry = app_state.registry
        self.base = base
        self.flags = flags

    # --- configuration

    async def get_configuration(self) -> dict[str, Any]:
        """Return the capabilities, the model and its source."""
        comparable = await self._app_state.find_comparable()
        return {"capabilities": build_capabilities(comparable), "model": FULL_MODEL, "modelsource": EXTENSION_MODEL}

    async def describe_configuration(self, name: str) -> Any:
        """Return one part of the configuration. Raises `RegistryError` for flags that are about entities."""
        self.require_possible_answer(Level.META)
        return (await self.get_configuration())[name]

    @property
    def known_registries(self) -> list[str]:
        """URLs of other xRegistry servers, from the options."""
        return list(self._app_state.options.known_registries)

    # --- reading

    async def open_view(self) -> tuple[EntityLoader, View]:
        """Return the loader of the present entities, and the view that builds response bodies."""
        state = await self.registry.fresh_state()
        loader = EntityLoader(state, self.registry.parser.list_format_names())
        view = View(
            self.registry,
            loader,
            self.base,
            await self._app_state.find_comparable(),
            doc=self.flags.doc,
            binary=self.flags.binary,
            has_filter=bool(self.flags.filters),
        )
        return loader, view

    def _parse_inline_flag(self, level: Level, default: tuple[str, ...] = ()) -> dict[str, Any]:
        return parse_inline(("*",) if self.flags.collections else self.flags.inline or default, level)

    def _filters(self, level: Level) -> Filters:
        """Return the filters of the request. Raises `RegistryError` (`not_found`) for the filter that excludes all."""
        filters = parse_filters(self.flags.filters, level)
        if filters is None:
            raise RegistryError("not_found")
        return filters

    def require_single(self) -> None:
        """Raise `RegistryError` for the flag `sort`, in a request about one entity."""
        if self.flags.sort is not None:
            raise RegistryError("sort_noncollection")

    def require_whole(self) -> None:
        """Raise `RegistryError` for the flag `collections`, which applies to the registry and to groups only."""
        if self.flags.collections:
            raise RegistryError("bad_flag", flag="collections", detail="It is for the registry and for groups.")

    def require_no_default(self) -> None:
        """Raise `RegistryError` for the flag `setdefaultversionid`, in a request about more than one schema."""
        if self.flags.set_default is not None:
            raise RegistryError("bad_flag", flag="setdefaultversionid")

    def require_unfiltered(self) -> None:
        """Raise `RegistryError` for the flag `filter`, in a request that writes."""
        if self.flags.filters:
            raise RegistryError("bad_flag", flag="filter", detail="It is for requests that read.")

    async def describe_registry(self, default: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the body of the registry; default are the members shown in full without the flag `inline`."""
        self.require_single()
        loader, view = await self.open_view()
        inlined, filters = self._parse_inline_flag(Level.REGISTRY, default), self._filters(Level.REGISTRY)
        if self.flags.collections:
            whole = parse_inline(["*"], Level.REGISTRY)
            return await view.collection_members(Level.REGISTRY, None, whole, filters, "/", "")
        entity = loader.load_registry()
        configuration = await self.get_configuration()
        bare = await view.registry_body(entity, {}, (), {}) if filters else {}
        left = select_own(filters, lambda: bare)
        if left is None:
            raise RegistryError("not_found", "/")
        body = await view.registry_body(entity, inlined, left, configuration)
        if left and not body["schemagroupscount"]:
            raise RegistryError("not_found", "/")
        return body

    async def describe_groups(self, only: list[str] | None = None) -> Entities:
        """Return the groups that pass the request's filter, limited to the ids in `only` if given."""
        _, view = await self.open_view()
        inlined = self._parse_inline_flag(Level.GROUP)
        filters = parse_filters(self.flags.filters, Level.GROUP)
        if filters is None:
            return []
        return [
            (group.id, await view.group_body(group, inlined, left, f"/{group.id}"))
            async for group, left in view.select_groups(filters)
            if only is None or group.id in only
        ]

    def _find_visible_group(self, loader: EntityLoader, identifier: str) -> GroupEntity:
        access = self.registry.access
        resource = namespace_resource(group_namespace(identifier))
        place = loader.state.find_namespace(resource.namespace)
        if place is None or not access.can_list_namespace(place):
            access.require(Operation.LIST, resource)
        group = loader.find_group(identifier)
        if group is None:
            raise RegistryError("not_found", f"/schemagroups/{identifier}")
        group.shows_attributes = access.allows(Operation.READ, resource)
        return group

    async def describe_group(self, identifier: str) -> dict[str, Any]:
        """Return the body of a group. Raises `RegistryError` (`not_found`), `Forbidden`."""
        self.require_single()
        loader, view = await self.open_view()
        inlined, filters = self._parse_inline_flag(Level.GROUP), self._filters(Level.GROUP)
        group = self._find_visible_group(loader, identifier)
        if self.flags.collections:
            whole = parse_inline(["*"], Level.GROUP)
            return await view.collection_members(Level.GROUP, group, whole, filters, group.xid, "")
        bare = await view.group_body(group, {}, (), "") if filters else {}
        left = select_own(filters, lambda: bare)
        if left is None:
            raise RegistryError("not_found", group.xid)
        body = await view.group_body(group, inlined, left, "")
        if left and not body["schemascount"]:
            raise RegistryError("not_found", group.xid)
        return body

    async def describe_schemas(self, identifier: str, only: list[str] | None = None) -> Entities:
        """Return the schemas of a group that pass the request's filter, limited to the ids in `only` if given."""
        loader, view = await self.open_view()
        inlined = self._parse_inline_flag(Level.SCHEMA)
        group = self._find_visible_group(loader, identifier)
        filters = parse_filters(self.flags.filters, Level.SCHEMA)
        if filters is None:
            return []
        schemas = [
            (schema.id, view.schema_body(schema, inlined, left, f"/{schema.id}"))
            async for schema, left in view.select_schemas(group, filters)
            if only is None or schema.id in only
        ]
        if not schemas:
            self.registry.access.require(Operation.READ, namespace_resource(group.namespace))
        return schemas

    async def get_schema(self, group: str, identifier: str) -> tuple[EntityLoader, View, ResourceEntity]:
        """Return the loader, the view and a schema. Raises `RegistryError` (`not_found`)."""
        loader, view = await self.open_view()
        schema = loader.find_schema(group, identifier)
        if schema is None:
            raise RegistryError("not_found", f"/schemagroups/{group}/schemas/{identifier}")
        return loader, view, schema

    async def describe_schema(self, group: str, identifier: str) -> dict[str, Any]:
        """Return the body of a schema."""
        self.require_single()
        self.require_whole()
        inlined, filters = self._parse_inline_flag(Level.SCHEMA), self._filters(Level.SCHEMA)
        _, view, schema = await self.get_schema(group, identifier)
        left = view.select_schema(schema, filters)
        if left is None:
            raise RegistryError("not_found", schema.xid)
        return view.schema_body(schema, inlined, left, "")

    async def describe_meta(self, group: str, identifier: str) -> dict[str, Any]:
        """Return the body of the meta entity of a schema."""
        self.require_single()
        self.require_whole()
        self._parse_inline_flag(Level.META)
        filters = self._filters(Level.META)
        _, view, schema = await self.get_schema(group, identifier)
        body = view.meta_body(schema, "")
        if select_own(filters, lambda: body) is None:
            raise RegistryError("not_found", f"{schema.xid}/meta")
        return body

    async def describe_versions(self, group: str, identifier: str, only: list[str] | None = None) -> Entities:
        """Return the versions of a schema that pass the request's filter, limited to the ids in `only` if given."""
        self.require_whole()
        inlined = self._parse_inline_flag(Level.VERSION)
        _, view, schema = await self.get_schema(group, identifier)
        target = self._resolve_reference(view, schema)
        filters = parse_filters(self.flags.filters, Level.VERSION)
        if filters is None:
            return []
        return [
            (version.id, view.version_body(target, version, inlined, f"/{version.id}"))
            for version in view.select_versions(schema, filters)
            if only is None or version.id in only
        ]

    def _resolve_reference(self, view: View, schema: ResourceEntity) -> ResourceEntity:
        if schema.xref and self.flags.doc:
            raise RegistryError("cannot_doc_xref", schema.xid)
        target = view.resolve_reference(schema)
        if target is None:
            raise RegistryError("not_found", f"{schema.xid}/versions")
        return target

    async def get_version(
        self, group: str, identifier: str, version_id: str
    ) -> tuple[EntityLoader, View, ResourceEntity, VersionEntity]:
        """Return the loader, the view, a schema and its version. Raises `RegistryError` (`not_found`)."""
        loader, view, schema = await self.get_schema(group, identifier)
        target = self._resolve_reference(view, schema)
        version = target.versions.get(version_id)
        if version is None:
            raise RegistryError("not_found", f"{schema.xid}/versions/{version_id}")
        return loader, view, target, version

    async def describe_version(self, group: str, identifier: str, version_id: str) -> dict[str, Any]:
        """Return the body of a version."""
        self.require_single()
        self.require_whole()
        inlined, filters = self._parse_inline_flag(Level.VERSION), self._filters(Level.VERSION)
        _, view, schema, version = await self.get_version(group, identifier, version_id)
        body = view.version_body(schema, version, inlined, "")
        if select_own(filters, lambda: body) is None:
            raise RegistryError("not_found", f"{schema.xid}/versions/{version_id}")
        return body

    # --- pages

    def sort_collection(self, entities: Entities, level: Level) -> Entities:
        """Return entities of a collection in the requested order, by default by id."""
        return sort_entities(entities, self._find_order(level))

    def build_page(
        self, entities: Entities, level: Level, path: str, query: list[tuple[str, str]]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return a page of a collection by id, and the headers with the link to the next page.

        Args:
            entities: The whole collection.
            level: Level of its entities.
            path: Path of the collection.
            query: Parameters of the request.
        """
        entities = self.sort_collection(entities, level)
        if self.flags.limit is None:
            return dict(entities), {}
        start = self._find_start([identifier for identifier, _ in entities])
        page = entities[start : start + self.flags.limit]
        if start + len(page) >= len(entities):
            return dict(page), {}
        more = [(name, value) for name, value in query if name != "after"]
        url = f"{self.base}{path}?{urlencode([*more, ('after', page[-1][0])], quote_via=quote)}"
        return dict(page), {"Link": f"<{url}>;rel=next;count={len(entities)}"}

    def _find_start(self, names: list[str]) -> int:
        """Return the index at which the page begins.

        If the last entity of the previous page was deleted, the page begins at the next one by id. Raises
        `RegistryError` if such a page has another order.
        """
        after = self.flags.after
        if after is None:
            return 0
        if after in names:
            return names.index(after) + 1
        if self.flags.sort is not None:
            raise RegistryError(
                "bad_request",
                error_detail="the last entity of the previous page was deleted: start from the first page",
            )
        key = (after.casefold(), after)
        return sum((name.casefold(), name) < key for name in names)

    # --- writing

    def require_possible_answer(
        self, level: Level | None, *, is_collection: bool = False, owner: Level | None = None
    ) -> None:
        """Raise `RegistryError` for flags that do not apply to the response, before anything is written.

        Args:
            level: Level of the entities in the response; None if it shows none.
            is_collection: Whether the request is about a collection of such entities.
            owner: Level of the requested entity, if the response shows entities inside it.
        """
        self.require_unfiltered()
        if is_collection:
            self._find_order(level)
        else:
            self.require_single()
        if is_collection or (owner or level) not in {Level.REGISTRY, Level.GROUP}:
            self.require_whole()
        if level is not None:
            self._parse_inline_flag(level)

    def _find_order(self, level: Level | None) -> SortOrder | None:
        return None if self.flags.sort is None or level is None else parse_sort(self.flags.sort, level)

    async def write(
        self,
        change: Callable[[RequestUpdate], T],
        answer: Level | None = None,
        *,
        is_collection: bool = False,
        owner: Level | None = None,
    ) -> T:
        """Apply a request and make it durable, all or nothing.

        Args:
            change: Applies the request to an update. It is called again if another writer was faster.
            answer: Level of the entities in the response; None if it shows none.
            is_collection: Whether the request is about a collection of such entities.
            owner: Level of the requested entity, if the response shows entities inside it.

        Returns:
            What `change` returns.

        Raises:
            RegistryError: The request breaks a rule of the specification.
            SteleError: The registry refuses a command.
        """
        self.require_possible_answer(answer, is_collection=is_collection, owner=owner)
        configuration = await self.get_configuration()
        comparable = await self._app_state.find_comparable()

        async def attempt(state: State) -> T:
            loader = EntityLoader(state, self.registry.parser.list_format_names())
            now = print_time(datetime.now(UTC))
            update = RequestUpdate(loader, now, self.flags.ignores, configuration["capabilities"], self.registry.access)
            result = change(update)
            prepared = await validate_update(self.registry, update, comparable)
            transaction = build_transaction(update, prepared, self.registry.access)
            if transaction is not None:
                await self.registry.execute(transaction, via=DIALECT)
            return result

        return await retry_when_overtaken(self.registry, attempt)


InjectedOperations = NamedDependency[Operations]
