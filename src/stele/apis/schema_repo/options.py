"""What an operator can choose about the two dialects of this folder."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stele.apis.schema_repo.ids import SEQUENTIAL
from stele.errors import InvalidRequest


class SchemaRepoOptions(msgspec.Struct, frozen=True):
    """Settings of both dialects.

    ids                 which ids are handed out; see `strategies`; built-in ones of other kinds are still understood
    default_validators  of a schema-repo subject created without `repo.validators`
    models              names of the operator's own for lists of policy words and validators
    read_only           every write through these dialects is refused
    max_request_bytes   longest body
    """

    ids: str = SEQUENTIAL
    default_validators: tuple[str, ...] = ()
    models: Mapping[str, tuple[str, ...]] = {}
    read_only: bool = False
    max_request_bytes: int = 16 * 1024 * 1024


def split_words(text: str) -> tuple[str, ...]:
    """The members of a comma-separated list, without the empty ones."""
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)


def parse_models(text: str) -> dict[str, tuple[str, ...]]:
    """Named models as a setting spells them: `db_policy=full_transitive,lint; noop=none`. Raises `InvalidRequest`."""
    models = {}
    for part in text.split(";"):
        name, equals, words = part.partition("=")
        if part.strip():
            if not equals or not name.strip() or "," in name:
                raise InvalidRequest(f"a compatibility model is written name=word,word, not {part.strip()!r}")
            models[name.strip()] = split_words(words)
    return models
