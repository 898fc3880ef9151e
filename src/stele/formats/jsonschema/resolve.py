"""Resolves `$ref` inside the document, or to the texts that are passed with it. Nothing is ever fetched.

A target is found by RFC 3986 resolution against the nearest `$id`, by anchor or JSON Pointer. As registries allow, a
`$ref` can also be exactly the name of a reference. `list_imports` lists the documents that one refers to, without
reading them.

Branches that share definitions multiply: thirty levels of `anyOf: [a, a]` check a single number a billion times. No
validator can be interrupted, so such a schema is rejected here, before a validator is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.jsonschema.drafts import Draft, detect_draft, find_metaschema, list_subschemas
from stele.formats.jsonschema.json_text import Json, json_pointer, parse_json

ROOT_BASE = "stele:///"
"""Base URI of documents without an absolute `$id`: reserved, never dereferenced."""

REF_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")


class _Site(NamedTuple):
    """One reference as written: its schema, keyword, base URI and path."""

    schema: dict[str, Json]
    keyword: str
    base: str
    path: tuple[str | int, ...]


class _Document(NamedTuple):
    """One text. label is '' for the schema itself, else the name of the reference; base is its URI."""

    label: str
    root: Json
    base: str
    draft: Draft
    sites: list[_Site]


class Links:
    """The resolved references of one schema and of everything it reaches.

    targets          schema object (by identity) with a reference keyword → the schema it points to
    documents        absolute URI as the validator requests it → document
    missing          the references without a target (only when not strict)
    used             labels of the reference texts that the schema reaches, in the order of their discovery
    has_metaschemas  whether it reaches published meta-schemas, which need no reference text
    """

    def __init__(self, root: Json, references: Mapping[str, Json], *, name: str, draft: Draft, strict: bool) -> None:
        self.targets: dict[int, Json] = {}
        self.documents: dict[str, Json] = {}
        self.missing: list[str] = []
        self.used: list[str] = []
        self.has_metaschemas = False
        self._resources: dict[str, tuple[_Document, Json]] = {}
        self._anchors: dict[tuple[str, str], Json] = {}
        self._by_label: dict[str, _Document] = {}
        self._walked: set[int] = set()
        base = join_uri(ROOT_BASE, name)
        main = self._index_document("", root, base, draft)
        own = _own_base(root, base, draft)
        for label, text in references.items():
            self._by_label[label] = document = self._index_document(label, text, join_uri(own, label), draft)
            self._resources.setdefault(join_uri(base, label), (document, text))
        self._resolve_all(main, strict=strict)

    def follow_references(self, schema: Json) -> Json:
        """Return the schema at the end of a chain of references; True (no constraint) for a circular chain."""
        seen: set[int] = set()
        while isinstance(schema, dict) and id(schema) in self.targets:
            if id(schema) in seen:
                return True
            seen.add(id(schema))
            schema = self.targets[id(schema)]
        return schema

    def iterate_parts(self, schema: Json, *, choice: int | None = None) -> Iterator[dict[str, Json]]:
        """Yield the objects that apply together with a schema, each once.

        They are the schema itself, members of `allOf`, and targets of references.

        choice  also yields the branch with that number of each `anyOf` and `oneOf`, modulo their number of branches
        """
        pending, seen = [schema], set()
        while pending:
            part = self.follow_references(pending.pop(0))
            if not isinstance(part, dict) or id(part) in seen:
                continue
            seen.add(id(part))
            yield part
            members = part.get("allOf")
            pending.extend(members if isinstance(members, list) else [])
            for keyword in ("anyOf", "oneOf"):
                branches = part.get(keyword)
                if choice is not None and isinstance(branches, list) and branches:
                    pending.append(branches[choice % len(branches)])

    def _index_document(self, label: str, root: Json, base: str, draft: Draft) -> _Document:
        document = _Document(label, root, base, draft, [])
        self._resources.setdefault(base, (document, root))
        self._walk_document(document, root, base, ())
        return document

    def _index_metaschema(self, uri: str) -> _Document | None:
        """Return the published meta-schema or vocabulary of that URI, by http or https; None when it is none."""
        root = find_metaschema(uri)
        if root is None:
            return None
        self.has_metaschemas = True
        return self._index_document(uri, root, uri, detect_draft(root))

    def _walk_document(self, document: _Document, root: Json, base: str, path: tuple[str | int, ...]) -> None:
        """Index ids, anchors and references below root, each schema once."""
        stack = [(root, base, path)]
        while stack:
            schema, base, path = stack.pop()
            if not isinstance(schema, dict) or id(schema) in self._walked:
                continue
            self._walked.add(id(schema))
            keywords = [keyword for keyword in REF_KEYWORDS if isinstance(schema.get(keyword), str)]
            if not (keywords and document.draft.ref_hides_siblings):
                base = self._register_names(document, schema, base)
            document.sites.extend(_Site(schema, keyword, base, path) for keyword in keywords)
            if keywords and document.draft.ref_hides_siblings and path:
                continue
            inner = [(child, base, path + step) for step, child in list_subschemas(schema)]
            stack.extend(reversed(inner))

    def _register_names(self, document: _Document, schema: dict[str, Json], base: str) -> str:
        """Register the ids and anchors of one schema and return the base URI that holds below it."""
        uri = schema.get(document.draft.id_keyword)
        if isinstance(uri, str):
            if uri.startswith("#"):
                self._anchors.setdefault((base, uri[1:]), schema)
            else:
                base = join_uri(base, uri).partition("#")[0]
                self._resources.setdefault(base, (document, schema))
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._anchors.setdefault((base, anchor), schema)
        return base

    def _resolve_all(self, main: _Document, *, strict: bool) -> None:
        """Resolve every reference of the schema and of the documents it reaches."""
        documents, seen = [main], {main.label}
        for document in documents:
            done = 0
            while done < len(document.sites):
                site = document.sites[done]
                done += 1
                location = self._find_target(site, document)
                if location is None:
                    self._report_missing(site, document, strict=strict)
                    continue
                owner, target = location
                self.targets.setdefault(id(site.schema), target)
                if owner.label not in seen:
                    seen.add(owner.label)
                    documents.append(owner)
                    if owner.label in self._by_label:
                        self.used.append(owner.label)

    def _find_target(self, site: _Site, document: _Document) -> tuple[_Document, Json] | None:
        ref = str(site.schema[site.keyword])
        written, _, fragment = ref.partition("#")
        uri = join_uri(site.base, written).partition("#")[0]
        owner, resource = self._resources.get(uri, (None, None))
        if owner is None:
            owner = self._by_label.get(ref) or self._by_label.get(written) or self._index_metaschema(uri)
            if owner is None:
                return None
            resource = owner.root
            uri = owner.base
        if owner is not document or written:
            self.documents[join_uri(site.base, written).partition("#")[0]] = resource
        if not fragment:
            return owner, resource
        if not fragment.startswith("/"):
            name = unquote(fragment)
            base = _own_base(resource, uri, owner.draft)
            for key in ((uri, name), (base, name)):
                if key in self._anchors:
                    return owner, self._anchors[key]
            return None
        return self._follow_pointer(owner, resource, fragment, uri)

    def _follow_pointer(
        self, owner: _Document, resource: Json, fragment: str, uri: str
    ) -> tuple[_Document, Json] | None:
        value = resource
        steps = [unquote(step).replace("~1", "/").replace("~0", "~") for step in fragment.split("/")[1:]]
        base = uri
        for step in steps:
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and len(step) < 9 and int(step) < len(value):
                value = value[int(step)]
            else:
                return None
            base = _own_base(value, base, owner.draft)
        if not isinstance(value, dict | bool):
            return None
        self._walk_document(owner, value, base, tuple(steps))
        return owner, value

    def _report_missing(self, site: _Site, document: _Document, *, strict: bool) -> None:
        ref = str(site.schema[site.keyword])
        if strict:
            where = f" of the reference {document.label!r}" if document.label else ""
            raise UnresolvedReference(
                f"{site.keyword} {ref!r}{where} cannot be resolved",
                path=json_pointer((*site.path, site.keyword)),
                expected="the location of a schema in the document, or the name of a reference",
            )
        self.missing.append(ref)


def join_uri(base: str, reference: str) -> str:
    """Resolve a URI reference against an absolute base (RFC 3986 §5.2), for any scheme."""
    target = _split_uri(reference)
    if target is None:
        return reference
    if target.scheme:
        return reference
    origin = _split_uri(base)
    if origin is None:
        return reference
    if target.netloc:
        return urlunsplit((origin.scheme, target.netloc, target.path, target.query, target.fragment))
    if not target.path:
        return _build_uri(origin.scheme, origin.netloc, origin.path, target.query or origin.query, target.fragment)
    path = target.path
    if not path.startswith("/"):
        path = origin.path.rpartition("/")[0] + "/" + path if "/" in origin.path or origin.netloc else path
    return _build_uri(origin.scheme, origin.netloc, _without_dots(path), target.query, target.fragment)


class _Uri(NamedTuple):
    scheme: str
    netloc: str
    path: str
    query: str
    fragment: str


def _split_uri(uri: str) -> _Uri | None:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    return _Uri(*parts)


def _build_uri(scheme: str, netloc: str, path: str, query: str, fragment: str) -> str:
    authority = f"//{netloc}" if netloc or scheme in ("stele", "file") else ""
    tail = (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")
    return f"{scheme}:{authority}{path}{tail}" if scheme else f"{authority}{path}{tail}"


def _without_dots(path: str) -> str:
    clean_segments: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(clean_segments) > 1:
                clean_segments.pop()
        elif segment != ".":
            clean_segments.append(segment)
    if segments[-1] in (".", ".."):
        clean_segments.append("")
    return "/".join(clean_segments)


def _own_base(schema: Json, base: str, draft: Draft) -> str:
    uri = schema.get(draft.id_keyword) if isinstance(schema, dict) else None
    return join_uri(base, uri).partition("#")[0] if isinstance(uri, str) and not uri.startswith("#") else base


MAX_LOOKS = 20_000
"""Maximum number of schemas that are applied to one value, counted over all branches."""

_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLES = ("not", "if", "then", "else")
_NAMED = ("dependentSchemas", "dependencies")


def refuse_branch_explosion(root: Json, links: Links) -> None:
    """Raise `MalformedSchema` when more than `MAX_LOOKS` schemas apply to one value; linear in the schema."""
    looks: dict[int, int] = {}
    for start in (root, *links.targets.values()):
        stack: list[tuple[Json, Iterator[Json]]] = [(start, _same_value_schemas(start, links))]
        while stack:
            schema, branches = stack[-1]
            branch = next(branches, None)
            if branch is None:
                stack.pop()
                total = 1 + sum(looks.get(id(inner), 1) for inner in _same_value_schemas(schema, links))
                if total > MAX_LOOKS:
                    raise MalformedSchema(
                        f"its branches would apply more than {MAX_LOOKS} schemas to one value", path="#"
                    )
                looks[id(schema)] = total
            elif isinstance(branch, dict) and id(branch) not in looks:
                looks[id(branch)] = 1
                stack.append((branch, _same_value_schemas(branch, links)))


def has_reference_loops(links: Links) -> bool:
    """Return whether a schema applies itself to the same value again.

    No draft defines what such a schema means, and validators decide it by the schema that they start from.
    """
    done: set[int] = set()
    for start in links.targets.values():
        path: set[int] = set()
        stack: list[tuple[Json, Iterator[Json]]] = [(start, _same_value_schemas(start, links))]
        while stack:
            schema, branches = stack[-1]
            path.add(id(schema))
            branch = next(branches, None)
            if branch is None:
                stack.pop()
                path.discard(id(schema))
                done.add(id(schema))
            elif isinstance(branch, dict) and id(branch) in path:
                return True
            elif isinstance(branch, dict) and id(branch) not in done:
                stack.append((branch, _same_value_schemas(branch, links)))
    return False


def _same_value_schemas(schema: Json, links: Links) -> Iterator[Json]:
    """Yield the schemas that this one applies to the same value."""
    if not isinstance(schema, dict):
        return
    if id(schema) in links.targets:
        yield links.targets[id(schema)]
    for keyword in _LISTS:
        members = schema.get(keyword)
        if isinstance(members, list):
            yield from members
    for keyword in _SINGLES:
        if keyword in schema:
            yield schema[keyword]
    for keyword in _NAMED:
        named = schema.get(keyword)
        if isinstance(named, dict):
            yield from named.values()


def list_imports(text: bytes) -> list[str]:
    """Return the targets of references without their fragments. Targets inside the document are left out."""
    root = parse_json(text)
    sites = list(_walk_schemas(root, ROOT_BASE, detect_draft(root).id_keyword))
    own = {base for _, base in sites}
    targets: dict[str, None] = {}
    for schema, base in sites:
        for keyword in REF_KEYWORDS:
            ref = schema.get(keyword)
            written = ref.partition("#")[0] if isinstance(ref, str) else ""
            if written and join_uri(base, written) not in own and find_metaschema(join_uri(base, written)) is None:
                targets[written] = None
    return list(targets)


def list_exports(text: bytes) -> list[str]:
    """Return the document's own URI if it has one, as a list."""
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
