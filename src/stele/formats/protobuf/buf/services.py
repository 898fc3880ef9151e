"""Rules about two services of the same full name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from google.protobuf.descriptor_pb2 import MethodDescriptorProto, MethodOptions

from stele.formats.protobuf.buf.module import ServiceDeclaration
from stele.formats.protobuf.buf.rules import Rules, Violation

_Part = Callable[[MethodDescriptorProto], str]


def _find_deleted_methods(new: ServiceDeclaration, old: ServiceDeclaration) -> Iterator[Violation]:
    for name in old.methods:
        if name not in new.methods:
            yield Violation(
                f"{new.full_name}.{name}",
                f"service {new.proto.name}",
                f"rpc {name}",
                f"Calls of {name} fail as unknown.",
                f"Keep rpc {name}; mark it deprecated when it should no longer be used.",
            )


def _compare_method_part(
    why: str, part: _Part, new: ServiceDeclaration, old: ServiceDeclaration
) -> Iterator[Violation]:
    """Report methods of which some part, as text, is no longer the same."""
    for name, was in old.methods.items():
        now = new.methods.get(name)
        if now is not None and part(now) != part(was):
            yield Violation(
                f"{new.full_name}.{name}", part(now), part(was), why, f"Keep `{part(was)}`, or add another rpc."
            )


def _request_text(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} ({method.input_type.removeprefix('.')})"


def _response_text(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} returns ({method.output_type.removeprefix('.')})"


def _client_streaming_text(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} ({'stream' if method.client_streaming else 'unary'})"


def _server_streaming_text(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} returns ({'stream' if method.server_streaming else 'unary'})"


def _idempotency_text(method: MethodDescriptorProto) -> str:
    return f"idempotency_level = {MethodOptions.IdempotencyLevel.Name(method.options.idempotency_level)}"


_RETRIES = "Callers that retry, or send requests in the way of safe ones, rely on what the option promised."
_FRAMES = "One side sends a sequence of messages where the other expects a single one."

RULES: Rules[ServiceDeclaration] = {
    "RPC_NO_DELETE": _find_deleted_methods,
    "RPC_SAME_REQUEST_TYPE": partial(
        _compare_method_part, "Requests of one side are read as another message by the other.", _request_text
    ),
    "RPC_SAME_RESPONSE_TYPE": partial(
        _compare_method_part, "Answers of one side are read as another message by the other.", _response_text
    ),
    "RPC_SAME_CLIENT_STREAMING": partial(_compare_method_part, _FRAMES, _client_streaming_text),
    "RPC_SAME_SERVER_STREAMING": partial(_compare_method_part, _FRAMES, _server_streaming_text),
    "RPC_SAME_IDEMPOTENCY_LEVEL": partial(_compare_method_part, _RETRIES, _idempotency_text),
}
