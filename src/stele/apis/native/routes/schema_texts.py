"""Operations on schema texts: check, conversion, inference, diff and lint. Nothing is registered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from litestar import Request, Response, post

from stele.apis.http.access import NO_RIGHT_NEEDED
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import decode_body, read_body, read_bytes
from stele.apis.native.errors import ERRORS
from stele.apis.native.params import InjectedRegistry
from stele.service import check as checks
from stele.service import convert as conversions
from stele.service import diff as diffs
from stele.service import lint as lints
from stele.service.check import CheckAnswer, CheckRequest
from stele.service.convert import (
    ConvertAnswer,
    ConvertRequest,
    ExampleAnswer,
    FieldsAnswer,
    InferRequest,
    SchemaRequest,
)
from stele.service.diff import DiffAnswer, DiffRequest
from stele.service.lint import LintAnswer, LintRequest
from stele.service.registry import Registry
from stele.service.ruleset_adoption import adopted_versions

Q = TypeVar("Q")
A = TypeVar("A")

RULESET_HEADER = "Stele-Ruleset"
"""Header with the name and version of the ruleset that was applied; absent if nothing was compared."""


async def _answer_body(
    registry: Registry, request: Request[Any, Any, Any], shape: type[Q], answer: Callable[[Q], A]
) -> A:
    """Return the answer to a body of this shape. A long body is decoded and answered in a separate process."""
    body, processes = await read_bytes(request), registry.stateless_processes
    if processes is not None and processes.takes_input(len(body)):
        return await registry.run_stateless(processes.run_call, partial(_decode_and_answer, body, shape, answer))
    return await registry.run_stateless(answer, await read_body(request, shape))


def _decode_and_answer(body: bytes, shape: type[Q], answer: Callable[[Q], A]) -> A:
    return answer(decode_body(body, shape))


def _post_question(path: str, shape: type) -> post:
    """Return the decorator of a POST endpoint that requires no right, with a body of this shape."""
    return post(path, status_code=200, operation_class=openapi_body(shape), responses=ERRORS, opt=NO_RIGHT_NEEDED)


@_post_question("/api/check", CheckRequest)
async def check_schema(request: Request[Any, Any, Any], registry: InjectedRegistry) -> Response[CheckAnswer]:
    # POST /api/check
    """Check a schema against others under a policy, without registering anything."""
    decide = partial(
        checks.check_compatibility,
        limits=registry.limits,
        undecided=registry.compatibility.undecided,
        adopted=await adopted_versions(registry),
    )
    answer = await _answer_body(registry, request, CheckRequest, decide)
    headers = {RULESET_HEADER: answer.ruleset} if answer.ruleset else {}
    return Response(answer, headers=headers)


@_post_question("/api/diff", DiffRequest)
async def diff_schemas(request: Request[Any, Any, Any], registry: InjectedRegistry) -> DiffAnswer:
    # POST /api/diff
    """List what changed between two schemas, each change with its verdict both ways, without registering any."""
    compare = partial(
        diffs.diff_schemas,
        limits=registry.limits,
        undecided=registry.compatibility.undecided,
        adopted=await adopted_versions(registry),
    )
    return await _answer_body(registry, request, DiffRequest, compare)


@_post_question("/api/lint", LintRequest)
async def lint_schema(request: Request[Any, Any, Any], registry: InjectedRegistry) -> LintAnswer:
    # POST /api/lint
    """Return advice on a valid schema, without registering anything."""
    return await _answer_body(registry, request, LintRequest, partial(lints.lint_schema, limits=registry.limits))


@_post_question("/api/convert", ConvertRequest)
async def convert_schema(request: Request[Any, Any, Any], registry: InjectedRegistry) -> ConvertAnswer:
    # POST /api/convert
    """Return a schema in another language, and what is lost there."""
    return await _answer_body(
        registry, request, ConvertRequest, partial(conversions.convert_schema, limits=registry.limits)
    )


@_post_question("/api/infer", InferRequest)
async def infer_schema(request: Request[Any, Any, Any], registry: InjectedRegistry) -> ConvertAnswer:
    # POST /api/infer
    """Return a schema inferred from samples of its data."""
    return await _answer_body(registry, request, InferRequest, conversions.infer_schema)


@_post_question("/api/example", SchemaRequest)
async def show_example(request: Request[Any, Any, Any], registry: InjectedRegistry) -> ExampleAnswer:
    # POST /api/example
    """Return a small example value that is valid under a schema."""
    return await _answer_body(
        registry, request, SchemaRequest, partial(conversions.make_example, limits=registry.limits)
    )


@_post_question("/api/fields", SchemaRequest)
async def list_fields(request: Request[Any, Any, Any], registry: InjectedRegistry) -> FieldsAnswer:
    # POST /api/fields
    """Return all fields of a schema, at any depth."""
    return await _answer_body(
        registry, request, SchemaRequest, partial(conversions.list_fields, limits=registry.limits)
    )


ROUTES: Final = (
    check_schema,
    diff_schemas,
    lint_schema,
    convert_schema,
    infer_schema,
    show_example,
    list_fields,
)
"""Endpoints of schema texts. They apply the registry's limits, ruleset versions and setting for undecided changes."""
