"""Every GET in the OpenAPI documents of a server's dialects, requested with the names that its answers hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import product
from random import Random
from typing import Any
from urllib.parse import quote

from tests.support.asgi_requests import send_request
from tests.support.examples import scale_examples

from stele.server.asgi import App
from stele.server.dialects import DIALECTS
from stele.server.in_process import InProcessServer

_PARAMETER = re.compile(r"\{(\w+)\}")
_NUMBERS = ["0", "1", "2", "3", "7"]
_COUNTED = ("version", "id", "schemaid", "encodingid", "recordid")
_MOST = scale_examples(60)
"""Largest number of combinations of values to try for one path."""
_DATE = re.compile(r"\n#\w{3} \w{3} \d.* UTC \d{4}\n")
"""The line of a properties file with the time of the request."""

_OF_THE_NODE = "/api/refusals"
"""Path of data that a node keeps outside the log, and that no archive holds."""

Answers = dict[str, tuple[int, Any]]


def crawl_documents(server: InProcessServer, names: list[str]) -> Answers:
    """Return answers by path.

    A parameter of a path takes each of `names`, and the values of members of the same name in earlier answers.
    """
    paths = [path for path in _list_paths(server) if not path.startswith("/contexts/{") and path != _OF_THE_NODE]
    answers: Answers = {}
    known_values: dict[str, set[str]] = {}
    for path in sorted(paths, key=lambda path: path.count("{")):
        new = server.run(_get_all(server, _fill_path(path, names, known_values)))
        for _, body in new.values():
            _add_values(body, "", known_values)
        answers |= new
    return answers


_known_paths: list[str] = []


def _list_paths(server: InProcessServer) -> list[str]:
    """Return the paths with a GET of all documents.

    They are the same for every server and slow to generate, so the result of the first server is kept.
    """
    if not _known_paths:
        documents = server.run(_get_all(server, (f"/_docs/{dialect.name}/openapi.json" for dialect in DIALECTS)))
        for _, document in documents.values():
            _known_paths.extend(path for path, operations in document["paths"].items() if "get" in operations)
    return _known_paths


def _fill_path(path: str, names: list[str], known_values: dict[str, set[str]]) -> Iterator[str]:
    parameters = _PARAMETER.findall(path)
    pools = []
    for parameter in parameters:
        word = _word(parameter)
        own = sorted(known_values.get(word, ()))[:12]
        pools.append(dict.fromkeys([*own, *(_NUMBERS if word.endswith(_COUNTED) else names)]))
    combinations = list(product(*pools))
    for values in Random(path).sample(combinations, min(_MOST, len(combinations))):
        filled = path
        for parameter, value in zip(parameters, values, strict=True):
            filled = filled.replace(f"{{{parameter}}}", quote(value, safe=""))
        yield filled


def _add_values(value: Any, name: str, known_values: dict[str, set[str]]) -> None:
    """Add the scalar members of an answer to `known_values`, by their names."""
    if isinstance(value, dict):
        for member, inner in value.items():
            _add_values(inner, _word(member), known_values)
    elif isinstance(value, list):
        for inner in value:
            _add_values(inner, name, known_values)
    elif isinstance(value, str | int) and not isinstance(value, bool) and 0 < len(str(value)) < 100:
        known_values.setdefault(name, set()).add(str(value))


def _word(name: str) -> str:
    return name.replace("_", "").lower()


async def _get_all(app: App, paths: Iterable[str]) -> Answers:
    """Return status and body by path. Uses no HTTP client, whose thread would triple the time."""
    return {path: await _get(app, path) for path in paths}


async def _get(app: App, path: str) -> tuple[int, Any]:
    answer = await send_request(app, "GET", path, {"host": "store", "content-type": "application/json"}, host="store")
    try:
        return answer.status, json.loads(answer.body)
    except ValueError:
        return answer.status, _DATE.sub("\n", answer.body.decode())
