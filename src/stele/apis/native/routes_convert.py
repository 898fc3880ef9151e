"""Schemas in other languages, from samples, by example and by field; nothing is registered."""

from __future__ import annotations

import asyncio
from typing import Any

from litestar import Request, post
from litestar.handlers import HTTPRouteHandler

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.native.faults import ERRORS
from stele.service import convert as service
from stele.service.convert import (
    ConvertAnswer,
    ConvertRequest,
    ExampleAnswer,
    FieldsAnswer,
    InferRequest,
    SchemaRequest,
)
from stele.service.registry import Registry


def routes(registry: Registry) -> list[HTTPRouteHandler]:
    """The endpoints, within the registry's limits."""

    @post("/api/convert", status_code=200, operation_class=openapi_body(ConvertRequest), responses=ERRORS)
    async def convert_schema(request: Request[Any, Any, Any]) -> ConvertAnswer:
        # POST /api/convert
        """A schema in another language, and what it does not say there."""
        asked = await read_body(request, ConvertRequest)
        return await asyncio.to_thread(service.convert_schema, asked, registry.limits)

    @post("/api/infer", status_code=200, operation_class=openapi_body(InferRequest), responses=ERRORS)
    async def infer_schema(request: Request[Any, Any, Any]) -> ConvertAnswer:
        # POST /api/infer
        """A schema made from samples of its data."""
        asked = await read_body(request, InferRequest)
        return await asyncio.to_thread(service.infer_schema, asked)

    @post("/api/example", status_code=200, operation_class=openapi_body(SchemaRequest), responses=ERRORS)
    async def show_example(request: Request[Any, Any, Any]) -> ExampleAnswer:
        # POST /api/example
        """A small datum that fits a schema."""
        asked = await read_body(request, SchemaRequest)
        return await asyncio.to_thread(service.make_example, asked, registry.limits)

    @post("/api/fields", status_code=200, operation_class=openapi_body(SchemaRequest), responses=ERRORS)
    async def list_fields(request: Request[Any, Any, Any]) -> FieldsAnswer:
        # POST /api/fields
        """All fields of a schema, at any depth."""
        asked = await read_body(request, SchemaRequest)
        return await asyncio.to_thread(service.list_fields, asked, registry.limits)

    return [convert_schema, infer_schema, show_example, list_fields]
