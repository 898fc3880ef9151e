"""The methods both clients have, declared once.

`Api` is a table: each attribute turns a function that builds a request, or a workflow of several requests, into a
method. The method of a `SchemaRegistryClient` returns the result. The method of an `AsyncSchemaRegistryClient` returns
an awaitable. Arguments, documentation and result types are those of the function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from stele.client import endpoints, keys, settings, workflows
from stele.client import history as history_endpoints
from stele.client import journal as journal_endpoints
from stele.client import usage as usage_endpoints
from stele.client.drive import drive_steps, drive_steps_async
from stele.client.request import Request, Workflow

if TYPE_CHECKING:
    from typing import Self

P = ParamSpec("P")
T = TypeVar("T")


class Endpoint(Generic[P, T]):
    """Descriptor that makes a method of each client from a function that builds a request or a workflow."""

    def __init__(self, build: Callable[P, Request[T] | Workflow[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: BlockingApi, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncApi, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(
        self, client: BlockingApi | AsyncApi | None, owner: type
    ) -> Self | Callable[P, T] | Callable[P, Coroutine[Any, Any, T]]:
        """Return the bound method, or the descriptor itself when it is read from the class."""
        if client is None:
            return self

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            operation = self._build(*args, **kwargs)
            return client.send(operation) if isinstance(operation, Request) else client.run(operation)

        return method


class Api:
    """Every call of the registry. The function has the documentation; the comments at its start name the routes."""

    ping = Endpoint(endpoints.ping)
    server_version = Endpoint(endpoints.server_version)
    cluster_id = Endpoint(endpoints.cluster_id)
    deployment = Endpoint(endpoints.deployment)

    schemas = Endpoint(endpoints.schemas)
    schema_types = Endpoint(endpoints.schema_types)
    schema_by_id = Endpoint(endpoints.schema_by_id)
    schema_text_by_id = Endpoint(endpoints.schema_text_by_id)
    subjects_of_id = Endpoint(endpoints.subjects_of_id)
    versions_of_id = Endpoint(endpoints.versions_of_id)
    schema_by_guid = Endpoint(endpoints.schema_by_guid)
    ids_of_guid = Endpoint(endpoints.ids_of_guid)

    subjects = Endpoint(endpoints.subjects)
    lookup = Endpoint(endpoints.lookup)
    delete_subject = Endpoint(endpoints.delete_subject)
    versions = Endpoint(endpoints.versions)
    register = Endpoint(endpoints.register)
    version = Endpoint(endpoints.version)
    version_text = Endpoint(endpoints.version_text)
    referenced_by = Endpoint(endpoints.referenced_by)
    delete_version = Endpoint(endpoints.delete_version)
    latest_with_metadata = Endpoint(endpoints.latest_with_metadata)

    check_compatibility = Endpoint(settings.check_compatibility)
    check = Endpoint(settings.check)
    config = Endpoint(settings.config)
    set_config = Endpoint(settings.set_config)
    delete_config = Endpoint(settings.delete_config)
    mode = Endpoint(settings.mode)
    set_mode = Endpoint(settings.set_mode)
    delete_mode = Endpoint(settings.delete_mode)
    contexts = Endpoint(settings.contexts)
    delete_context = Endpoint(settings.delete_context)
    associations = Endpoint(settings.associations)

    keks = Endpoint(keys.keks)
    kek = Endpoint(keys.kek)
    create_kek = Endpoint(keys.create_kek)
    update_kek = Endpoint(keys.update_kek)
    test_kek = Endpoint(keys.test_kek)
    delete_kek = Endpoint(keys.delete_kek)
    undelete_kek = Endpoint(keys.undelete_kek)
    dek_subjects = Endpoint(keys.dek_subjects)
    dek_versions = Endpoint(keys.dek_versions)
    dek = Endpoint(keys.dek)
    create_dek = Endpoint(keys.create_dek)
    delete_dek = Endpoint(keys.delete_dek)
    undelete_dek = Endpoint(keys.undelete_dek)

    journal = Endpoint(journal_endpoints.journal)
    schema_texts = Endpoint(journal_endpoints.schema_texts)
    events = Endpoint(journal_endpoints.events)

    usage = Endpoint(usage_endpoints.usage)
    record_usage = Endpoint(usage_endpoints.record_usage)
    forget_usage = Endpoint(usage_endpoints.forget_usage)
    preview_deletion = Endpoint(usage_endpoints.preview_deletion)

    history = Endpoint(history_endpoints.history)
    lifelines = Endpoint(history_endpoints.lifelines)
    matrix = Endpoint(history_endpoints.matrix)
    neighbours = Endpoint(history_endpoints.neighbours)
    atlas = Endpoint(history_endpoints.atlas)

    associated_subject = Endpoint(workflows.associated_subject)
    resolve = Endpoint(workflows.resolve)
    resolve_version = Endpoint(workflows.resolve_version)
    diff = Endpoint(workflows.diff)
    resolve_metadata = Endpoint(workflows.resolve_metadata)
    lineage = Endpoint(workflows.lineage)
    resolve_schema = Endpoint(workflows.resolve_schema)
    snapshot = Endpoint(workflows.snapshot)


class BlockingApi(Api, ABC):
    """A client that blocks until the registry has answered."""

    @abstractmethod
    def send(self, request: Request[T]) -> T:
        """Send one request and return its result. Use it for calls that have no method of their own."""

    def run(self, workflow: Workflow[T]) -> T:
        """Send the requests of a workflow and return its result. A request may depend on the results before it."""
        return drive_steps(workflow, self.send)


class AsyncApi(Api, ABC):
    """A client whose methods are awaited."""

    @abstractmethod
    async def send(self, request: Request[T]) -> T:
        """Send one request and return its result; see `BlockingApi.send`."""

    async def run(self, workflow: Workflow[T]) -> T:
        """Send the requests of a workflow and return its result; see `BlockingApi.run`."""
        return await drive_steps_async(workflow, self.send)
