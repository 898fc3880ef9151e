"""Rules about two services of the same full name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from google.protobuf.descriptor_pb2 import MethodDescriptorProto, MethodOptions

from stele.formats.protobuf.buf.module import Service
from stele.formats.protobuf.buf.note import Note, Rules

_Part = Callable[[MethodDescriptorProto], str]


def _deleted(new: Service, old: Service) -> Iterator[Note]:
    for name in old.methods:
        if name not in new.methods:
            yield Note(
                f"{new.full_name}.{name}",
                f"service {new.proto.name}",
                f"rpc {name}",
                f"Calls of {name} fail as unknown.",
                f"Keep rpc {name}; mark it deprecated when it should no longer be used.",
            )


def _same(why: str, part: _Part, new: Service, old: Service) -> Iterator[Note]:
    """Methods of which some part, as text, is no longer the same."""
    for name, was in old.methods.items():
        now = new.methods.get(name)
        if now is not None and part(now) != part(was):
            yield Note(f"{new.full_name}.{name}", part(now), part(was), why, f"Keep `{part(was)}`, or add another rpc.")


def _request(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} ({method.input_type.removeprefix('.')})"


def _response(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} returns ({method.output_type.removeprefix('.')})"


def _client(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} ({'stream' if method.client_streaming else 'unary'})"


def _server(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} returns ({'stream' if method.server_streaming else 'unary'})"


def _idempotency(method: MethodDescriptorProto) -> str:
    return f"idempotency_level = {MethodOptions.IdempotencyLevel.Name(method.options.idempotency_level)}"


_RETRIES = "Callers that retry, or send requests in the way of safe ones, rely on what the option promised."
_FRAMES = "One side sends a sequence of messages where the other expects a single one."

RULES: Rules[Service] = {
    "RPC_NO_DELETE": _deleted,
    "RPC_SAME_REQUEST_TYPE": partial(_same, "Requests of one side are read as another message by the other.", _request),
    "RPC_SAME_RESPONSE_TYPE": partial(
        _same, "Answers of one side are read as another message by the other.", _response
    ),
    "RPC_SAME_CLIENT_STREAMING": partial(_same, _FRAMES, _client),
    "RPC_SAME_SERVER_STREAMING": partial(_same, _FRAMES, _server),
    "RPC_SAME_IDEMPOTENCY_LEVEL": partial(_same, _RETRIES, _idempotency),
}
