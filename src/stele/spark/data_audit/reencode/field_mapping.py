"""From the data of one schema to those of another one of any language: fields go by name, and what is lost is told.

Data are neutral JSON (`stele.formats.conversion.json_values`), so that a language need not know the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from stele.errors import CannotConvert
from stele.formats.conversion.json_values import INTEGERS
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    Fixed,
    Loss,
    Map,
    Model,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    Type,
    TypeReference,
    Union,
)

Adapt: TypeAlias = Callable[[Any], Any]
"""Turns a neutral value of the source into one of the target."""

_WHOLE: Final = frozenset(kind for kind in ScalarKind if "int" in kind.value)
_NUMBERS: Final = _WHOLE | {ScalarKind.FLOAT32, ScalarKind.FLOAT64, ScalarKind.NUMBER}
_TEXTS: Final = frozenset({ScalarKind.STRING, ScalarKind.UUID, ScalarKind.DATE, ScalarKind.BYTES})
_MEETING: Final = ({"number", "decimal"}, {"decimal", "text"})
"""Families whose values go between one another."""


def by_name(source: Model, target: Model) -> tuple[Adapt, list[Loss]]:
    """How data of source become data of target, and what they lose.

    A field takes the value of the one of its name, of one of its aliases, or of the only one whose name differs in case
    and underscores alone. A field nothing fills has its default, or null. Raises `CannotConvert` for one that has
    neither, and for types no value can go between.
    """
    way = _Way(source, target)
    return way.value(source.root, target.root, ""), way.losses


class _Way:
    """Goes along two models; a pair of records is entered once."""

    def __init__(self, source: Model, target: Model) -> None:
        self._source, self._target = source, target
        self._known: dict[tuple[str, str], _Within] = {}
        self.losses: list[Loss] = []

    def value(self, have: Type, want: Type, path: str) -> Adapt:
        """How a value that is not null goes from one type to another."""
        have_named, want_named = self._declared(have, self._source), self._declared(want, self._target)
        if isinstance(have_named, RecordType) and isinstance(want_named, RecordType):
            return self._records(have_named, want_named, path)
        match have, want:
            case Array(), Array():
                return _each(self._slot(have.items, want.items, f"{path}[]", (have.nullable, want.nullable)))
            case Map(), Map():
                return _values(self._slot(have.values, want.values, f"{path}{{}}", (have.nullable, want.nullable)))
            case (Union(), _) | (_, Union()) | (_, Scalar(ScalarKind.ANY)):
                return _same  # the target's model chooses the branch
        if isinstance(have_named, Enumeration) and isinstance(want_named, Enumeration):
            known = {symbol.name for symbol in want_named.symbols}
            missing = [symbol.name for symbol in have_named.symbols if symbol.name not in known]
            if missing:
                self._lose(path, "SYMBOL", f"The target has no symbol {', '.join(missing)}: such records are dead.")
            return _same
        return self._scalar(have_named or have, want_named or want, path)

    def _records(self, have: RecordType, want: RecordType, path: str) -> Adapt:
        key = have.name, want.name
        if key in self._known:
            return self._known[key]
        within = self._known[key] = _Within()
        sources = _Names(have.fields)
        moves: list[_Move] = []
        fills: list[tuple[str, Any]] = []
        used: set[str] = set()
        for field in want.fields:
            at = f"{path}.{field.name}" if path else field.name
            found = sources.find(field)
            if found is None:
                fills += self._filled(field, at)
                continue
            used.add(found.name)
            nullable = found.nullable or not found.required, field.nullable or not field.required
            adapt = self._slot(found.type, field.type, at, nullable, field)
            moves.append(_Move(found.name, field.name, adapt, left_out=not field.nullable and not field.required))
        for field in have.fields:
            if field.name not in used:
                at = f"{path}.{field.name}" if path else field.name
                self._lose(at, "FIELD", "The target has no field of that name: its values are dropped.")
        within.moves, within.fills = tuple(moves), tuple(fills)
        return within

    def _filled(self, field: RecordField, path: str) -> list[tuple[str, Any]]:
        """What a field of the target has that nothing in the source fills."""
        if field.default is not ABSENT:
            why = "The source has no such field: it gets its default."
        elif field.nullable or not field.required:
            why = "The source has no such field: it is null, or left out."
        else:
            raise CannotConvert(f"{path}: the target demands it, the source has no such field, and it has no default")
        self.losses.append(Loss(path, "FILLED", why))
        if field.default is ABSENT and not field.nullable:
            return []
        return [(field.name, None if field.default is ABSENT else field.default)]

    def _slot(
        self, have: Type, want: Type, path: str, nullable: tuple[bool, bool], field: RecordField | None = None
    ) -> Adapt:
        """As `value`, for what may be null, in the source and in the target."""
        inner = self.value(have, want, path)
        instead = None
        if nullable[0] and not nullable[1]:
            if field is not None and field.default is not ABSENT:
                instead = field.default
                self._lose(path, "NULL", "The target takes no null: its default stands for it.")
            else:
                self._lose(path, "NULL", "The target takes no null: records with one are dead.")
        return lambda value: instead if value is None else inner(value)

    def _scalar(self, have: Any, want: Any, path: str) -> Adapt:
        if have == want or have == Scalar(ScalarKind.ANY):
            return _same
        one, other = _family(have), _family(want)
        if one != other and {one, other} not in _MEETING:
            raise CannotConvert(f"{path or 'the value'}: {_word(have)} does not become {_word(want)}")
        self._narrower(have, want, path)
        if one == "decimal" and other == "number":
            whole = isinstance(want, Scalar) and want.kind in _WHOLE
            return _whole if whole else float
        if one == "number" and other == "decimal":
            return str
        return _same

    def _narrower(self, have: Any, want: Any, path: str) -> None:
        """Say where values may not fit."""
        if isinstance(have, Scalar) and isinstance(want, Scalar) and have.kind in _NUMBERS and want.kind in _WHOLE:
            least, greatest = INTEGERS.get(want.kind, (None, None))
            low, high = INTEGERS.get(have.kind, (None, None))
            fits = least is None or (low is not None and high is not None and least <= low and high <= (greatest or 0))
            if not fits or have.kind not in _WHOLE:
                self._lose(path, "RANGE", f"What does not fit {want.kind.value} is dead.")
        elif _word(have) != _word(want) and not (isinstance(want, Scalar) and want.kind is ScalarKind.STRING):
            self._lose(path, "TYPE", f"{_word(have)} becomes {_word(want)}: values that are none are dead.")
        elif _word(have) != _word(want):
            self._lose(path, "TYPE", f"{_word(have)} becomes text, as the neutral notation has it.", data=False)

    def _lose(self, path: str, what: str, why: str, *, data: bool = True) -> None:
        self.losses.append(Loss(path, what, why, data))

    def _declared(self, kind: Type, model: Model) -> Any:
        return model.types[kind.name] if isinstance(kind, TypeReference) else None


class _Names:
    """Fields by their names, and by what is left of these without case and underscores where that is one's own."""

    def __init__(self, fields: Iterable[RecordField]) -> None:
        self._exact = {field.name: field for field in fields}
        self._loose: dict[str, RecordField | None] = {}
        for field in self._exact.values():
            word = _plain(field.name)
            self._loose[word] = None if word in self._loose else field

    def find(self, wanted: RecordField) -> RecordField | None:
        for name in (wanted.name, *wanted.aliases):
            if name in self._exact:
                return self._exact[name]
        return self._loose.get(_plain(wanted.name))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _family(kind: Any) -> str:
    """What the neutral notation of a type is: text for nearly everything that is no number."""
    match kind:
        case Scalar(scalar) if scalar in _NUMBERS:
            return "number"
        case Scalar(ScalarKind.BOOLEAN):
            return "boolean"
        case Decimal():
            return "decimal"
        case Scalar(scalar) if scalar in _TEXTS:
            return "text"
        case Time() | Timestamp() | Duration() | Fixed() | Enumeration():
            return "text"
    return _word(kind)


def _word(kind: Any) -> str:
    match kind:
        case Scalar(scalar):
            return scalar.value
        case RecordType() | Enumeration() | Fixed():
            return f"{type(kind).__name__.lower()} {kind.name}"
    return type(kind).__name__.lower()


def _same(value: Any) -> Any:
    return value


def _whole(value: Any) -> Any:
    number = float(value)
    return int(number) if number == int(number) else number


def _each(inner: Adapt) -> Adapt:
    return lambda value: [inner(item) for item in value] if isinstance(value, list) else value


def _values(inner: Adapt) -> Adapt:
    return lambda value: {key: inner(item) for key, item in value.items()} if isinstance(value, dict) else value


class _Move(NamedTuple):
    """A field's way; left_out is whether null means that the target has no such member."""

    old: str
    new: str
    adapt: Adapt
    left_out: bool


class _Within:
    """The way between two records, which may lead through itself."""

    def __init__(self) -> None:
        self.moves: tuple[_Move, ...] = ()
        self.fills: tuple[tuple[str, Any], ...] = ()

    def __call__(self, value: Any) -> Any:
        """The target's record."""
        if not isinstance(value, dict):
            return value
        made = {}
        for old, new, adapt, left_out in self.moves:
            if old in value:
                found = adapt(value[old])
                if found is not None or not left_out:
                    made[new] = found
        return made | dict(self.fills)
