"""The root, the server's own facts, and contexts."""

from __future__ import annotations

from litestar import delete, get, route

from stele.apis.confluent import lists
from stele.apis.confluent import models as api
from stele.apis.confluent.names import parse_context, slice_page
from stele.apis.confluent.params import READ, Context, ContextPrefix, InjectedOperations, Limit, Offset
from stele.core.commands import DeleteNamespace


@route("/", http_method=["GET", "POST"], status_code=200, **{k: v for k, v in READ.items() if k != "responses"})
async def get_root() -> dict[str, str]:
    # GET|POST /
    """Whether anybody is there."""
    return {}


@get("/status/ready", **READ)
async def get_readiness(operations: InjectedOperations) -> dict[str, str]:
    # GET /status/ready
    """Whether the log can be read (Redpanda)."""
    await operations.registry.fresh_state()
    return {}


@get("/v1/metadata/id", **READ)
async def get_cluster_id(operations: InjectedOperations) -> api.ServerClusterId:
    # GET /v1/metadata/id
    """Names of the clusters."""
    options = operations.options
    return api.ServerClusterId("", api.Scope([], api.Clusters(options.kafka, options.cluster)))


@get("/v1/metadata/version", **READ)
async def get_server_version(operations: InjectedOperations) -> api.ServerVersion:
    # GET /v1/metadata/version
    """The release this API behaves like."""
    return api.ServerVersion(operations.options.release, operations.options.commit)


@get("/v1/metadata/deployment", **READ)
async def get_deployment(operations: InjectedOperations) -> api.Deployment:
    # GET /v1/metadata/deployment
    """Attributes of the deployment."""
    return api.Deployment(list(operations.options.deployment))


@get("/contexts", **READ)
async def list_contexts(
    operations: InjectedOperations, context_prefix: ContextPrefix = "", offset: Offset = "", limit: Limit = ""
) -> list[str]:
    # GET /contexts
    """All contexts."""
    state = await operations.registry.fresh_state()
    return slice_page(lists.list_contexts(state, context_prefix), offset, limit, operations.options.max_items)


@delete("/contexts/{context:str}", status_code=204, responses=READ["responses"])
async def delete_context(operations: InjectedOperations, context: Context) -> None:
    # DELETE /contexts/{context}
    """Remove an empty context."""
    await operations.execute(DeleteNamespace(parse_context(context)))


ROUTES = [get_root, get_readiness, get_cluster_id, get_server_version, get_deployment, list_contexts, delete_context]
