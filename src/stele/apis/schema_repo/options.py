"""Options of one deployment of the two dialects."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stele.apis.schema_repo.ids import SEQUENTIAL
from stele.errors import InvalidRequest


class SchemaRepoOptions(msgspec.Struct, frozen=True):
    """Options of both dialects.

    Attributes:
        ids: Strategy of the ids that are assigned (see `ids`); ids of the built-in ones are always accepted.
        default_validators: Validators of a schema-repo subject created without `repo.validators`.
        models: The operator's own names for lists of policy words and validators.
        read_only: Refuse every write through these dialects.
        max_request_bytes: Longest body.
    """

    ids: str = SEQUENTIAL
    default_validators: tuple[str, ...] = ()
    models: Mapping[str, tuple[str, ...]] = {}
    read_only: bool = False
    max_request_bytes: int = 16 * 1024 * 1024


def split_words(text: str) -> tuple[str, ...]:
    """Return the members of a comma-separated list, without empty ones."""
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)


def parse_models(text: str) -> dict[str, tuple[str, ...]]:
    """Return the named models in a setting such as `db_policy=full_transitive,lint; noop=none`.

    Raises `InvalidRequest`.
    """
    models = {}
    for part in text.split(";"):
        name, equals, words = part.partition("=")
        if part.strip():
            if not equals or not name.strip() or "," in name:
                raise InvalidRequest(f"a compatibility model must have the form name=word,word, not {part.strip()!r}")
            models[name.strip()] = split_words(words)
    return models
