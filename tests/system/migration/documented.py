"""Every GET that the OpenAPI documents of a server's dialects name, asked with whatever names its answers hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
from tests.support.examples import scale_examples

from stele.server.dialects import DIALECTS

_PARAMETER = re.compile(r"\{(\w+)\}")
_NUMBERS = ["0", "1", "2", "3", "7"]
_COUNTED = ("version", "id", "schemaid", "encodingid", "recordid")
_MOST = scale_examples(60)
"""Combinations of values tried of one path, at most."""
_DATE = re.compile(r"\n#\w{3} \w{3} \d.* UTC \d{4}\n")
"""The line of a properties file that says when it was asked for."""

_OF_THE_NODE = "/api/refusals"
"""What a node remembers beside the log, and no archive brings."""

Answers = dict[str, tuple[int, Any]]


def crawl_documents(http: httpx.Client, names: list[str]) -> Answers:
    """Answers by path; names are tried wherever a path has room for one, and so is what the answers call likewise."""
    paths = [path for path in _list_paths(http) if not path.startswith("/contexts/{") and path != _OF_THE_NODE]
    answers: Answers = {}
    found: dict[str, set[str]] = {}
    for path in sorted(paths, key=lambda path: path.count("{")):
        new = {filled: _answer(http.get(filled)) for filled in _fill_path(path, names, found)}
        for _, body in new.values():
            _add_values(body, "", found)
        answers |= new
    return answers


_known_paths: list[str] = []


def _list_paths(http: httpx.Client) -> list[str]:
    """The paths with a GET of all documents: every server has the same, and writing them is dear, so one is asked."""
    if not _known_paths:
        for dialect in DIALECTS:
            document = http.get(f"/_docs/{dialect.name}/openapi.json").json()
            _known_paths.extend(path for path, operations in document["paths"].items() if "get" in operations)
    return _known_paths


def _fill_path(path: str, names: list[str], found: dict[str, set[str]]) -> Iterator[str]:
    parameters = _PARAMETER.findall(path)
    pools = []
    for parameter in parameters:
        word = _word(parameter)
        own = sorted(found.get(word, ()))[:12]
        pools.append(dict.fromkeys([*own, *(_NUMBERS if word.endswith(_COUNTED) else names)]))
    combinations = list(product(*pools))
    for values in Random(path).sample(combinations, min(_MOST, len(combinations))):
        filled = path
        for parameter, value in zip(parameters, values, strict=True):
            filled = filled.replace(f"{{{parameter}}}", quote(value, safe=""))
        yield filled


def _add_values(value: Any, name: str, found: dict[str, set[str]]) -> None:
    """Add what the members of an answer are, by their names."""
    if isinstance(value, dict):
        for member, inner in value.items():
            _add_values(inner, _word(member), found)
    elif isinstance(value, list):
        for inner in value:
            _add_values(inner, name, found)
    elif isinstance(value, str | int) and not isinstance(value, bool) and 0 < len(str(value)) < 100:
        found.setdefault(name, set()).add(str(value))


def _word(name: str) -> str:
    return name.replace("_", "").lower()


def _answer(response: httpx.Response) -> tuple[int, Any]:
    try:
        return response.status_code, response.json()
    except ValueError:
        return response.status_code, _DATE.sub("\n", response.text)
