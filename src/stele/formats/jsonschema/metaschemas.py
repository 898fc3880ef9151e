"""The published meta-schemas of the five drafts and their vocabularies, for schemas that refer to them.

The validator knows only the meta-schema of the draft it validates by, and asks nobody for the others: their host
belongs to it. So it is given documents in which the host of such references has another name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from stele.formats.jsonschema.drafts import list_subschemas
from stele.formats.jsonschema.json_text import Json

_HOST: Final = "://json-schema.org/"
_RENAMED: Final = "://json-schema.org.invalid/"
_NAMING_KEYWORDS: Final = ("$ref", "$id", "id")


def find_metaschema(uri: str) -> Json:
    """Return the document published under an absolute URI, by http or https; None when there is none."""
    return _list_metaschemas().get(uri.partition("://")[2]) if _HOST in uri else None


@cache
def _list_metaschemas() -> Mapping[str, Json]:
    """Return the documents by URI without its scheme."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # here, because few schemas need it

    found = {uri.rstrip("#").partition("://")[2]: REGISTRY.contents(uri) for uri in REGISTRY}
    return {uri: root for uri, root in found.items() if "draft-03" not in uri}


def rename_host(document: Json) -> Json:
    """Return the document, a copy of its author's, with references to meta-schemas under the other host's name."""
    waiting = [document]
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        for keyword in _NAMING_KEYWORDS:
            uri = schema.get(keyword)
            if isinstance(uri, str) and find_metaschema(uri.partition("#")[0]) is not None:
                schema[keyword] = uri.replace(_HOST, _RENAMED, 1)
        waiting += [inner for _, inner in list_subschemas(schema)]
    return document


def restore_host(uri: str) -> str:
    """Return the name that a renamed URI was published under."""
    return uri.replace(_RENAMED, _HOST, 1)
