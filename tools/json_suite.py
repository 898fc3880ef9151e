"""The official JSON Schema test suite, from the archive that `make test` fetches, run on Stele and on jsonschema-rs.

Stele is called through its public path: `parse` with the suite's remote documents as registry references, then
`codec(...).validate`. Tests that jsonschema-rs itself answers wrongly are only counted. All other required tests must
be answered as the suite says.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import jsonschema_rs

from stele.errors import SteleError
from stele.formats.jsonschema import JSON_SCHEMA

DRAFTS: Final[Mapping[str, tuple[str, Any]]] = {
    "draft4": ("http://json-schema.org/draft-04/schema#", jsonschema_rs.Draft4Validator),
    "draft6": ("http://json-schema.org/draft-06/schema#", jsonschema_rs.Draft6Validator),
    "draft7": ("http://json-schema.org/draft-07/schema#", jsonschema_rs.Draft7Validator),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", jsonschema_rs.Draft201909Validator),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", jsonschema_rs.Draft202012Validator),
}
"""The drafts under test, each with its `$schema` and the validator of the engine."""

REMOTE: Final = "http://localhost:1234/"
"""Base URI of the suite's remote documents. Nothing is fetched from there."""

PARTS: Final = ("required", "optional", "format")
"""Parts of the suite: required tests, optional tests, and tests of formats."""


class Group(NamedTuple):
    """A schema of the suite with its tests (`description`, `data`, `valid`) and its file."""

    draft: str
    part: str
    file: str
    description: str
    schema: Any
    tests: list[dict[str, Any]]


class Answer(NamedTuple):
    """A test with the verdicts of the suite, of Stele and of jsonschema-rs (None: it raised an error)."""

    group: Group
    test: str
    suite: bool
    ours: bool | None
    bare: bool | None


def find_archive() -> Path:
    """Return the archive with the suite. Raises `FileNotFoundError` with the command that fetches it."""
    folder = Path(sys.prefix) / "suites"
    archives = sorted(folder.glob("jsonschema-*.tar.gz"))
    if len(archives) != 1:
        raise FileNotFoundError(f"the JSON Schema test suite is not in {folder}: make .venv/suites.stamp fetches it")
    return archives[0]


def read_groups() -> Iterator[Group]:
    """Yield every group of the tested drafts."""
    for path, text in _read_files().items():
        head, _, rest = path.partition("/tests/")
        draft, _, file = rest.partition("/")
        if head == "json" and draft in DRAFTS:
            part = "required"
            if file.startswith("optional/"):
                part = "format" if file.startswith("optional/format/") else "optional"
            for group in json.loads(text):
                yield Group(draft, part, file, group["description"], group["schema"], group["tests"])


@cache
def read_remotes(draft: str) -> Mapping[str, bytes]:
    """Return the remote documents of a draft by URI: the shared ones and its own."""
    remotes = {path.removeprefix("json/remotes/"): text for path, text in _read_files().items() if "/remotes/" in path}
    return {
        REMOTE + path: text
        for path, text in remotes.items()
        if path.partition("/")[0] == draft or not path.startswith("draft")
    }


def judge_group(group: Group) -> list[Answer]:
    """Return the three verdicts on each test of a group."""
    uri, _ = DRAFTS[group.draft]
    schema = group.schema
    if isinstance(schema, dict) and "$schema" not in schema:
        schema = {"$schema": uri, **schema}
    data = [test["data"] for test in group.tests]
    verdicts = zip(
        group.tests,
        _validate_with_stele(group.draft, schema, data),
        _validate_directly(group.draft, schema, data),
        strict=True,
    )
    return [Answer(group, test["description"], test["valid"], ours, bare) for test, ours, bare in verdicts]


@cache
def judge_suite() -> tuple[Answer, ...]:
    """Return the answers to the whole suite, which are computed once."""
    return tuple(answer for group in read_groups() for answer in judge_group(group))


def _validate_with_stele(draft: str, schema: Any, data: list[Any]) -> list[bool | None]:
    try:
        codec = JSON_SCHEMA.codec(JSON_SCHEMA.parse(json.dumps(schema).encode(), read_remotes(draft)))
    except SteleError:
        return [None] * len(data)
    return [not codec.validate(datum) for datum in data]


def _validate_directly(draft: str, schema: Any, data: list[Any]) -> list[bool | None]:
    _, validator = DRAFTS[draft]
    try:
        check = validator(schema, registry=_build_registry(draft))
        return [check.is_valid(datum) for datum in data]
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return [None] * len(data)


@cache
def _build_registry(draft: str) -> jsonschema_rs.Registry:
    return jsonschema_rs.Registry([(name, json.loads(text)) for name, text in read_remotes(draft).items()])


@cache
def _read_files() -> Mapping[str, bytes]:
    """Return the JSON files of the suite by their path in the archive's folder."""
    with tarfile.open(find_archive()) as packed:
        read = {
            member.name.partition("/")[2]: body.read()
            for member in packed
            if member.name.endswith(".json") and (body := packed.extractfile(member)) is not None
        }
    return {name: text for name, text in sorted(read.items()) if name.startswith(("json/tests/", "json/remotes/"))}
