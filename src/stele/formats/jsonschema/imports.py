"""Which documents a JSON Schema refers to, told without them."""

from __future__ import annotations

from collections.abc import Iterator

from stele.formats.jsonschema.drafts import detect_draft, list_subschemas
from stele.formats.jsonschema.json_text import Json, parse_json
from stele.formats.jsonschema.metaschemas import find_metaschema
from stele.formats.jsonschema.resolve import REF_KEYWORDS, ROOT_BASE, join_uri


def list_imports(text: bytes) -> list[str]:
    """Return the targets of references without their fragments, those inside the document left out."""
    root = parse_json(text)
    sites = list(_walk_schemas(root, ROOT_BASE, detect_draft(root).id_keyword))
    own = {base for _, base in sites}
    found: dict[str, None] = {}
    for schema, base in sites:
        for keyword in REF_KEYWORDS:
            ref = schema.get(keyword)
            written = ref.partition("#")[0] if isinstance(ref, str) else ""
            if written and join_uri(base, written) not in own and find_metaschema(join_uri(base, written)) is None:
                found[written] = None
    return list(found)


def list_exports(text: bytes) -> list[str]:
    """Return the document's own URI, if it has one."""
    root = parse_json(text)
    uri = root.get(detect_draft(root).id_keyword) if isinstance(root, dict) else None
    return [uri.partition("#")[0]] if isinstance(uri, str) and not uri.startswith("#") else []


def _walk_schemas(root: Json, base: str, id_keyword: str) -> Iterator[tuple[dict[str, Json], str]]:
    """Yield (schema, base URI) of the document and everything in it."""
    waiting = [(root, base)]
    while waiting:
        schema, base = waiting.pop()
        if not isinstance(schema, dict):
            continue
        uri = schema.get(id_keyword)
        if isinstance(uri, str):
            base = join_uri(base, uri).partition("#")[0]
        yield schema, base
        waiting += [(inner, base) for _, inner in list_subschemas(schema)]
