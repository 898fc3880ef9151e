"""The root, the server's own facts, and contexts."""

from __future__ import annotations

from litestar import delete, get, route

from stele.apis.confluent import lists
from stele.apis.confluent import models as api
from stele.apis.confluent.names import page, space_of
from stele.apis.confluent.params import READ, AtDesk, Context, ContextPrefix, Limit, Offset
from stele.core.commands import DeleteNamespace


@route("/", http_method=["GET", "POST"], status_code=200, **{k: v for k, v in READ.items() if k != "responses"})
async def root() -> dict[str, str]:
    # GET|POST /
    """Whether anybody is there."""
    return {}


@get("/status/ready", **READ)
async def ready(desk: AtDesk) -> dict[str, str]:
    # GET /status/ready
    """Whether the log can be read (Redpanda)."""
    await desk.registry.fresh_state()
    return {}


@get("/v1/metadata/id", **READ)
async def metadata_id(desk: AtDesk) -> api.ServerClusterId:
    # GET /v1/metadata/id
    """Names of the clusters."""
    options = desk.options
    return api.ServerClusterId("", api.Scope([], api.Clusters(options.kafka, options.cluster)))


@get("/v1/metadata/version", **READ)
async def metadata_version(desk: AtDesk) -> api.ServerVersion:
    # GET /v1/metadata/version
    """The release this API behaves like."""
    return api.ServerVersion(desk.options.release, desk.options.commit)


@get("/v1/metadata/deployment", **READ)
async def metadata_deployment(desk: AtDesk) -> api.Deployment:
    # GET /v1/metadata/deployment
    """Attributes of the deployment."""
    return api.Deployment(list(desk.options.deployment))


@get("/contexts", **READ)
async def list_contexts(
    desk: AtDesk, context_prefix: ContextPrefix = "", offset: Offset = "", limit: Limit = ""
) -> list[str]:
    # GET /contexts
    """All contexts."""
    state = await desk.registry.fresh_state()
    return page(lists.contexts(state, context_prefix), offset, limit, desk.options.max_items)


@delete("/contexts/{context:str}", status_code=204, responses=READ["responses"])
async def delete_context(desk: AtDesk, context: Context) -> None:
    # DELETE /contexts/{context}
    """Remove an empty context."""
    await desk.execute(DeleteNamespace(space_of(context)))


ROUTES = [root, ready, metadata_id, metadata_version, metadata_deployment, list_contexts, delete_context]
