"""Bulk imports (`/subjects:import`), an extension: how `stele import` brings a registry here."""

from __future__ import annotations

from typing import Any

from litestar import Request, post

from stele.apis.confluent.importing import bring
from stele.apis.confluent.parameters import WRITE, AtDesk
from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.protocol import confluent as api


@post("/subjects:import", operation_class=openapi_body(api.ImportRequest), **WRITE)
async def import_all(desk: AtDesk, request: Request[Any, Any, Any]) -> api.ImportResponse:
    # POST /subjects:import
    """Import versions, keys, associations and exporters as another registry shows them, with ids and times kept."""
    return await bring(desk, await read_body(request, api.ImportRequest))


ROUTES = [import_all]
