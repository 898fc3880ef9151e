"""Two dialects of one idea: AVRO-1124, the proposal of a REST service for Avro schemas, and schema-repo, the project it
became.

| below                                                   | dialect                                             |
|---------------------------------------------------------|-----------------------------------------------------|
| `/avro1124/schemas`                                     | AVRO-1124: groups, ids, `compatibility_model`       |
| `/avro1124/schema-repo`, `/schema-repo`                 | schema-repo: subjects with a config, ids, validators |
| `/avro1124/schema-repo-browser`, `/schema-repo-browser` | the same, to look at                                |
| `/avro1124/…`, `/schema-repo-admin/…` `status`, `config` | of the server                                      |

schema-repo's Java client looks for `status` and `config` beside the URL it is given, so that is best
`…/avro1124/schema-repo`. With `…/schema-repo` it finds the status, which is at `/status` too, but not the config:
`/config` is another dialect's. Source: docs/protocols/schema-repo.md.
"""

from __future__ import annotations

from typing import Any

from litestar import Litestar, Request, Router
from litestar.di import Provide

from stele import __version__
from stele.apis.http.application import DialectApplication
from stele.apis.http.openapi import openapi_config
from stele.apis.http.requests import caller_name, refuse_empty_segments
from stele.apis.schema_repo import routes_avro1124, routes_browser, routes_subjects
from stele.apis.schema_repo.desk import AVRO1124, SCHEMA_REPO, Custom, Desk, Office
from stele.apis.schema_repo.faults import answer
from stele.apis.schema_repo.ids import IdIndex
from stele.apis.schema_repo.options import SchemaRepoOptions, models_in, words_in
from stele.apis.schema_repo.strategies import strategy
from stele.apis.schema_repo.translate import policy_of
from stele.service.registry import Registry

__all__ = ["SEGMENTS", "SchemaRepoOptions", "application", "models_in", "words_in"]

SEGMENTS = ("avro1124", "schema-repo", "schema-repo-browser", "schema-repo-admin", "status")
"""First path segments of these dialects."""


def application(registry: Registry, options: SchemaRepoOptions | None = None, **settings: Any) -> Litestar:
    """Both dialects as one application. settings go to Litestar as they are.

    Raises `UnknownPolicy` for options that name a policy or validator nobody installed, and `InvalidRequest`
    for such an id strategy.
    """
    options = options or SchemaRepoOptions()
    strategy(options.ids)
    for words in (options.default_validators, *options.models.values()):
        policy_of(words, options.models)
    office = Office(registry, options, IdIndex(options.ids))
    return DialectApplication(
        route_handlers=[
            Router("/", route_handlers=routes_avro1124.ROUTES, dependencies={"desk": _desks(office, AVRO1124)}),
            Router(
                "/",
                route_handlers=[*routes_subjects.ROUTES, *routes_browser.ROUTES],
                dependencies={"desk": _desks(office, SCHEMA_REPO)},
            ),
        ],
        exception_handlers={Exception: answer},
        middleware=[refuse_empty_segments],
        openapi_config=openapi_config("schema-repo", "Stele: AVRO-1124 and schema-repo dialects", __version__),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
        **settings,
    )


def _desks(office: Office, custom: Custom) -> Provide:
    def desk(request: Request[Any, Any, Any]) -> Desk:
        return Desk(office, custom, caller_name(request))

    return Provide(desk, sync_to_thread=False)
