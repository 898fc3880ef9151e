"""The methods both clients have, declared once.

`Api` is a table: each attribute turns a function that builds a request (or a plan of several) into a method. On a
`SchemaRegistryClient` the method returns the result, on an `AsyncSchemaRegistryClient` something to await; arguments,
documentation and result types are those of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from stele.client import calls, changes, in_use, keys, plans, settings
from stele.client.request import Plan, Request

if TYPE_CHECKING:
    from typing import Self

    from stele.client.aio import AsyncSchemaRegistryClient
    from stele.client.sync import BlockingApi

P = ParamSpec("P")
T = TypeVar("T")


class Call(Generic[P, T]):
    """A function that says what to ask, made a method of whoever can ask."""

    def __init__(self, build: Callable[P, Request[T] | Plan[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: BlockingApi, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncSchemaRegistryClient, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(
        self, client: BlockingApi | AsyncSchemaRegistryClient | None, owner: type
    ) -> Self | Callable[P, T] | Callable[P, Coroutine[Any, Any, T]]:
        """The bound method."""
        if client is None:
            return self

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            asked = self._build(*args, **kwargs)
            return client.send(asked) if isinstance(asked, Request) else client.run(asked)

        return method


class Api:
    """Every call of the registry; the function named has the documentation, its first lines the routes."""

    ping = Call(calls.ping)
    server_version = Call(calls.server_version)
    cluster_id = Call(calls.cluster_id)
    deployment = Call(calls.deployment)

    schemas = Call(calls.schemas)
    schema_types = Call(calls.schema_types)
    schema_by_id = Call(calls.schema_by_id)
    schema_text_by_id = Call(calls.schema_text_by_id)
    subjects_of_id = Call(calls.subjects_of_id)
    versions_of_id = Call(calls.versions_of_id)
    schema_by_guid = Call(calls.schema_by_guid)
    ids_of_guid = Call(calls.ids_of_guid)

    subjects = Call(calls.subjects)
    lookup = Call(calls.lookup)
    delete_subject = Call(calls.delete_subject)
    versions = Call(calls.versions)
    register = Call(calls.register)
    version = Call(calls.version)
    version_text = Call(calls.version_text)
    referenced_by = Call(calls.referenced_by)
    delete_version = Call(calls.delete_version)
    latest_with_metadata = Call(calls.latest_with_metadata)

    check_compatibility = Call(settings.check_compatibility)
    check = Call(settings.check)
    config = Call(settings.config)
    set_config = Call(settings.set_config)
    delete_config = Call(settings.delete_config)
    mode = Call(settings.mode)
    set_mode = Call(settings.set_mode)
    delete_mode = Call(settings.delete_mode)
    contexts = Call(settings.contexts)
    delete_context = Call(settings.delete_context)
    associations = Call(settings.associations)

    keks = Call(keys.keks)
    kek = Call(keys.kek)
    create_kek = Call(keys.create_kek)
    update_kek = Call(keys.update_kek)
    try_kek = Call(keys.try_kek)
    delete_kek = Call(keys.delete_kek)
    undelete_kek = Call(keys.undelete_kek)
    dek_subjects = Call(keys.dek_subjects)
    dek_versions = Call(keys.dek_versions)
    dek = Call(keys.dek)
    create_dek = Call(keys.create_dek)
    delete_dek = Call(keys.delete_dek)
    undelete_dek = Call(keys.undelete_dek)

    journal = Call(changes.journal)
    schema_texts = Call(changes.schema_texts)

    usage = Call(in_use.usage)
    record_usage = Call(in_use.record_usage)
    forget_usage = Call(in_use.forget_usage)
    foresee_deletion = Call(in_use.foresee_deletion)

    associated_subject = Call(plans.associated_subject)
    resolve = Call(plans.resolve)
    resolve_version = Call(plans.resolve_version)
    resolve_metadata = Call(plans.resolve_metadata)
    lineage = Call(plans.lineage)
    resolve_schema = Call(plans.resolve_schema)
    snapshot = Call(plans.snapshot)
