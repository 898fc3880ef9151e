"""Turn evidence into a model: the proposal for each place, its confidence, and the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from stele.formats.conversion.infer import (
    InferOptions,
    MemberShape,
    NumberShape,
    ObjectShape,
    StringShape,
    ValueShape,
    model_from_shape,
)
from stele.formats.conversion.model import (
    Array,
    Enumeration,
    EnumSymbol,
    Map,
    Model,
    NamedType,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Type,
    TypeReference,
    Union,
    UniqueNames,
)
from stele.spark.data_audit.infer_evidence import EXACT, Evidence
from stele.spark.data_audit.report import pluralize

_RULE_OF_THREE: Final = 3
"""The rule of three: if n records have no exception, at most 3/n of all others have one, with 95 % certainty."""
_FEW: Final = 16
"""Maximum number of different texts for which the note suggests an enumeration.

Each of them must occur `_EACH` times on average.
"""
_EACH: Final = 10
_SCALARS: Final = frozenset({"boolean", "integer", "number"})
_NUMBERS: Final = frozenset({"integer", "number"})


class ProposedField(msgspec.Struct, frozen=True):
    """The proposal for one place.

    type         name of its type in the data: `integer`, `text`, `integer | text` …
    confidence   lower bound for the share of further records that fit, with 95 % certainty, if they are like those
                 counted
    note         the evidence in words
    """

    path: str
    type: str
    required: bool
    nullable: bool
    confidence: float
    note: str


def make_shape(evidence: Evidence, enumerations: int, *, parsed: bool = False) -> ValueShape:
    """Return the evidence in the form of the formats' inference.

    enumerations   maximum number of symbols of an enumeration
    parsed         whether kinds are only what texts look like, so that all are texts if one is not of another kind
    """
    shape = ValueShape()
    kinds = _resolve_kinds(evidence, parsed=parsed)
    shape.null = evidence.nulls > 0
    if "boolean" in kinds:
        shape.plain = frozenset({"boolean"})
    if "integer" in kinds or "number" in kinds:
        shape.numbers = _number_shape(evidence)
    if "text" in kinds:
        shape.words = _string_shape(evidence, kinds["text"], enumerations)
    if evidence.parts is not None:
        shape.items = make_shape(evidence.parts, enumerations, parsed=parsed)
    if "object" in kinds:
        shape.members = _object_shape(evidence, enumerations, parsed=parsed)
    return shape


def _resolve_kinds(evidence: Evidence, *, parsed: bool) -> Mapping[str, int]:
    """Return the kinds at a place. For parsed texts of several kinds this is the one kind that holds them all."""
    if parsed and len(evidence.kinds) > 1 and evidence.kinds.keys() - {"integer", "number"}:
        return {"text": sum(evidence.kinds.values())}
    return evidence.kinds


def _number_shape(evidence: Evidence) -> NumberShape:
    numbers = NumberShape()
    if evidence.low is not None and evidence.high is not None:
        beyond = 2**63 if evidence.wide else 0
        numbers.least, numbers.greatest = evidence.low, max(evidence.high, beyond)
        numbers.exact = evidence.low in EXACT and numbers.greatest in EXACT
    numbers.floats = "number" in evidence.kinds
    return numbers


def _string_shape(evidence: Evidence, count: int, enumerations: int) -> StringShape:
    words = StringShape()
    words.count = count
    words.formats = frozenset(name for name, times in evidence.notations.items() if times == count)
    words.digits = evidence.digits if words.formats else 0
    few = evidence.values is not None and len(evidence.values) <= enumerations
    words.symbols = frozenset(evidence.values or ()) if few else None
    return words


def _object_shape(evidence: Evidence, enumerations: int, *, parsed: bool) -> ObjectShape:
    members = ObjectShape()
    members.count = evidence.kinds["object"]
    if evidence.members is None:
        members.by_name = None
        members.values = make_shape(evidence.keyed or Evidence(), enumerations, parsed=parsed)
        return members
    members.by_name = {}
    for name, member_evidence in evidence.members.items():
        member = members.by_name[name] = MemberShape()
        member.count, member.places = member_evidence.there, member_evidence.order
        member.shape = make_shape(member_evidence, enumerations, parsed=parsed)
    return members


def make_model(evidence: Evidence, name: str, options: InferOptions, *, parsed: bool = False) -> Model:
    """Return the model of documents, by the rules of the formats' inference."""
    return model_from_shape(make_shape(evidence, options.enumerations, parsed=parsed), name=name, options=options)


# --- columns that have types ----------------------------------------------------------------------------------------


def refine_model(model: Model, evidence: Evidence, enumerations: int) -> Model:
    """Return the model of typed columns, refined by the evidence.

    Fields that are never null become not nullable. Texts with few values become enumerations.
    """
    return _ModelRefiner(model, enumerations).refine(evidence)


class _ModelRefiner:
    """Refines a model along the evidence. It does not enter a union or an opaque type."""

    def __init__(self, model: Model, enumerations: int) -> None:
        self._model, self._most = model, enumerations
        self._types: dict[str, NamedType] = dict(model.types)
        self._distinct = UniqueNames(model.types)

    def refine(self, evidence: Evidence) -> Model:
        root = self._refine_type(self._model.root, evidence, "Value")
        return msgspec.structs.replace(self._model, root=root, types=self._types)

    def _refine_type(self, kind: Type, evidence: Evidence, name: str) -> Type:
        match kind:
            case Array() if evidence.parts is not None:
                items = self._refine_type(kind.items, evidence.parts, name)
                return msgspec.structs.replace(kind, items=items, nullable=evidence.parts.nulls > 0)
            case Map() if evidence.parts is not None:
                values = self._refine_type(kind.values, evidence.parts, name)
                return msgspec.structs.replace(kind, values=values, nullable=evidence.parts.nulls > 0)
            case TypeReference() if isinstance(record := self._types[kind.name], RecordType):
                fields = tuple(self._refine_field(field, evidence, record.name) for field in record.fields)
                self._types[kind.name] = msgspec.structs.replace(record, fields=fields)
            case Scalar(ScalarKind.STRING) if (
                evidence.values and len(evidence.values) <= self._most and evidence.present > len(evidence.values)
            ):
                full = self._distinct.claim_name(name)
                self._types[full] = Enumeration(full, tuple(EnumSymbol(text) for text in sorted(evidence.values)))
                return TypeReference(full)
        return kind

    def _refine_field(self, field: RecordField, owner: Evidence, record: str) -> RecordField:
        evidence = (owner.members or {}).get(field.name)
        if evidence is None or not evidence.slots:
            return field
        nullable = evidence.nulls > 0
        words = "".join(char if char.isalnum() else " " for char in field.name).title().replace(" ", "")
        kind = self._refine_type(field.type, evidence, f"{record}{words}")
        return msgspec.structs.replace(field, type=kind, nullable=nullable, required=not nullable or field.required)


# --- what is said about it ------------------------------------------------------------------------------------------


def propose_fields(evidence: Evidence, model: Model, *, parsed: bool = False) -> tuple[ProposedField, ...]:
    """Return the proposals for all places."""
    kinds = dict(types_by_path(model))
    chosen = {path for path, kind in kinds.items() if isinstance(_declared_type(model, kind), Enumeration)}
    maps = {path for path, kind in kinds.items() if isinstance(kind, Map)}
    return tuple(
        _propose_field(path, place_evidence, enumeration=path in chosen, keyed=path in maps, parsed=parsed)
        for path, place_evidence in evidence.iterate_places()
        if path and not _is_within_map(path, maps)
    )


def types_by_path(model: Model) -> Iterator[tuple[str, Type]]:
    """Yield the type at every path, `address.city`, `tags[]`, `homes{}`.

    A record that contains itself is entered once.
    """
    todo: list[tuple[str, Type, frozenset[str]]] = [("", model.root, frozenset())]
    while todo:
        path, kind, inside = todo.pop()
        yield path, kind
        match kind:
            case Array():
                todo.append((f"{path}[]", kind.items, inside))
            case Map():
                todo.append((f"{path}{{}}", kind.values, inside))
            case Union():
                todo += [(path, option.type, inside) for option in kind.options]
            case TypeReference() if kind.name not in inside and isinstance(
                record := model.types[kind.name], RecordType
            ):
                within = inside | {kind.name}
                todo += [(f"{path}.{it.name}" if path else it.name, it.type, within) for it in record.fields]


def with_notes(model: Model, notes: Mapping[str, str]) -> Model:
    """Return the model with notes as documentation of the fields that have none. `notes` are by path."""
    types: dict[str, NamedType] = dict(model.types)
    todo: list[tuple[str, Type]] = [("", model.root)]
    done: set[str] = set()
    while todo:
        path, kind = todo.pop()
        match kind:
            case Array():
                todo.append((f"{path}[]", kind.items))
            case Map():
                todo.append((f"{path}{{}}", kind.values))
            case Union():
                todo += [(path, option.type) for option in kind.options]
            case TypeReference() if kind.name not in done and isinstance(record := types[kind.name], RecordType):
                done.add(kind.name)
                paths = {field.name: f"{path}.{field.name}" if path else field.name for field in record.fields}
                fields = (
                    msgspec.structs.replace(field, doc=field.doc or notes.get(paths[field.name], ""))
                    for field in record.fields
                )
                types[kind.name] = msgspec.structs.replace(record, fields=tuple(fields))
                todo += [(paths[field.name], field.type) for field in record.fields]
    return msgspec.structs.replace(model, types=types)


def _declared_type(model: Model, kind: Type) -> NamedType | None:
    return model.types[kind.name] if isinstance(kind, TypeReference) else None


def _is_within_map(path: str, maps: set[str]) -> bool:
    """Return whether a place is one member of an object that became a map. Such a member gets no proposal."""
    return any(path.startswith(f"{outer}.") if outer else not path.startswith("{") for outer in maps)


def _propose_field(path: str, evidence: Evidence, *, enumeration: bool, keyed: bool, parsed: bool) -> ProposedField:
    is_part = path.endswith(("[]", "{}"))
    required = bool(evidence.slots) and evidence.there == evidence.slots
    kinds = _resolve_kinds(evidence, parsed=parsed)
    kind = "enumeration" if enumeration else "map" if keyed else " | ".join(sorted(kinds)) or "null"
    unseen = _RULE_OF_THREE / max(evidence.present, 1)
    if enumeration and evidence.values:
        # Good-Turing estimate: the share of new values in further data equals the share of values seen once
        once = sum(times == 1 for times in evidence.values.values())
        unseen = max(unseen, once / max(evidence.present, 1))
    if required and not is_part:
        unseen = max(unseen, _RULE_OF_THREE / evidence.slots)
    parts = [] if is_part else [_presence_note(evidence)]
    parts += [_null_note(evidence), *_kind_notes(evidence, kinds, enumeration=enumeration, parsed=parsed)]
    note = "; ".join(part for part in parts if part)
    return ProposedField(path, kind, required, evidence.nulls > 0, round(max(0.0, 1 - unseen), 6), note)


def _presence_note(evidence: Evidence) -> str:
    if evidence.there == evidence.slots:
        return f"always there, in {pluralize(evidence.slots, 'record')}"
    share = _format_share(evidence.there, evidence.slots)
    return f"there in {evidence.there:,} of {evidence.slots:,} ({share}): may be left out"


def _null_note(evidence: Evidence) -> str:
    if not evidence.nulls:
        return ""
    if not evidence.present:
        return "always null"
    return f"null in {evidence.nulls:,} of {evidence.there:,} ({_format_share(evidence.nulls, evidence.there)})"


def _kind_notes(evidence: Evidence, chosen: Mapping[str, int], *, enumeration: bool, parsed: bool) -> Iterator[str]:
    n = evidence.present
    if len(evidence.kinds) > 1:
        ranked = sorted(evidence.kinds.items(), key=lambda item: -item[1])
        counts = ", ".join(
            f"{name} in {_format_share(count, n)}" if at == 0 else f"{name} in {count:,}"
            for at, (name, count) in enumerate(ranked)
        )
        mixed = parsed and "text" in chosen
        yield (
            counts if evidence.kinds.keys() <= _NUMBERS else f"{counts}: {'all are texts' if mixed else 'any of them'}"
        )
    if evidence.low is not None and evidence.kinds.keys() <= _SCALARS:
        yield f"whole numbers {evidence.low:,} to {evidence.high:,}{' and beyond 64 bits' if evidence.wide else ''}"
    if evidence.least is not None and evidence.most is not None and evidence.kinds.keys() <= _SCALARS:
        yield f"numbers {evidence.least:.6g} to {evidence.most:.6g}"
    if "text" in chosen and n:
        yield from _text_notes(evidence, chosen["text"], enumeration=enumeration)


def _text_notes(evidence: Evidence, count: int, *, enumeration: bool) -> Iterator[str]:
    if enumeration and evidence.values is not None:
        yield f"{pluralize(len(evidence.values), 'value')} in {pluralize(count, 'text')}"
        return
    for name, times in sorted(evidence.notations.items(), key=lambda item: -item[1]):
        if times == count:
            yield f"all {pluralize(times, 'text')} are of the notation {name}"
        elif times * 2 > count:
            others = pluralize(count - times, "text")
            yield f"{_format_share(times, count)} are of the notation {name}, {others} not: a text"
    if (
        evidence.values
        and not evidence.notations
        and len(evidence.values) <= _FEW
        and count >= _EACH * len(evidence.values)
    ):
        examples = ", ".join(sorted(evidence.values)[:8])
        yield f"{len(evidence.values)} different values in {pluralize(count, 'text')}: an enumeration? ({examples})"
    elif evidence.longest is not None:
        span = (
            f"{evidence.shortest:,} to {evidence.longest:,}"
            if evidence.shortest != evidence.longest
            else f"{evidence.longest:,}"
        )
        yield f"{span} characters"


def _format_share(part: int, total: int) -> str:
    """Return a share in percent. It is 0 % or 100 % only if it is exact."""
    percent = 100 * part / total
    text = f"{percent:.2f}"
    if text == "100.00" and part < total:
        return "more than 99.99 %"
    return f"{text} %" if text != "0.00" or not part else "less than 0.01 %"
