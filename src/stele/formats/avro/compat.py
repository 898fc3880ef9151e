"""Whether data of a writer's schema can be read with a reader's schema.

The verdicts are those of `SchemaCompatibility` of the Java library 1.12 (its rules: names compare without namespace, or
by a full alias of the reader; a reader's enum default absorbs unknown symbols; the first fitting branch of a union is
enough; a pair met again inside itself counts as compatible). So are rule names and paths: a path leads through the
reader's schema, types followed through their names, and a number right after a union counts the *writer's* branches.

Added here: a finding for a reader's field that matches two fields of the writer (Java throws), warnings for changes of
a logical type, which the binary format cannot show and which turn values silently into others, and a limit: pairs of
schemas made to explode end with a finding of level UNKNOWN, which refuses, instead of a stack overflow.

Ruleset `avro-ruby` differs in two points: decimals of equal precision and scale resolve whatever holds them, and
inside unions full names must match.

Source: docs/protocols/avro.md#compatibility-rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from stele.core.findings import Finding, Severity
from stele.formats.avro.explain import explain
from stele.formats.avro.logical import consequence
from stele.formats.avro.model import (
    NO_DEFAULT,
    Array,
    AvroSchema,
    EnumType,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    RecordField,
    Type,
    Union,
    short,
)
from stele.formats.avro.resolve import PROMOTIONS

MAX_DEPTH: Final = 220
"""Comparisons inside comparisons; recursive types of coprime periods reach any depth."""

MAX_LOOKS: Final = 200_000
"""Branches looked at for the one that was meant; beyond, findings name the union only."""

MAX_SKIPPED: Final = 1_500_000
"""Branches passed over for their names, before a check is given up."""

MAX_PAIRS: Final = 120_000
"""Comparisons in one check: well under a second."""

_NONE: Final[frozenset[str]] = frozenset()


class Issue(NamedTuple):
    """A finding before it is put into words. extra depends on the rule, see `explain`."""

    rule: str
    path: str
    reader: str
    writer: str
    extra: str = ""


class Verdict(NamedTuple):
    """Whether a pair is compatible, and its issues: one, or a list of lists that may be shared between verdicts."""

    fits: bool
    issues: Issues


Issues = Issue | list["Issues"] | None

_FITS: Final = Verdict(True, None)


class _TooMuch(Exception):
    """A limit was reached."""


def check(reader: AvroSchema, writer: AvroSchema, *, ruby: bool = False) -> list[Finding]:
    """Findings in the order of the reader's schema, each once; none that breaks means compatible."""
    checker = _Checker(ruby=ruby, aliased=_has_field_aliases(reader.root))
    try:
        verdict = checker.compare(reader.root, writer.root)
    except (_TooMuch, RecursionError):  # the second only where the caller's own stack is deep already
        why = "The two schemas are nested, or refer to each other, in too many ways to be compared in bounded time."
        fix = "Split the schema, or make its recursion simpler."
        return [Finding("TOO_COMPLEX", "/", short(reader.root), short(writer.root), why, fix, level=Severity.UNKNOWN)]
    if verdict.issues is None and not checker.ambiguous:
        return []
    return [explain(*issue) for issue in _flat([verdict.issues, checker.ambiguous])]


def _flat(issues: Issues) -> list[Issue]:
    """Leaves in order, each once; iterative, and every shared list entered once."""
    found: dict[Issue, None] = {}
    entered: set[int] = set()
    waiting: list[Issues] = [issues]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Issue):
            found[item] = None
        elif item is not None and id(item) not in entered:
            entered.add(id(item))
            waiting.extend(reversed(item))
    return list(found)


class _Checker:
    """One check: what was compared already, and where it is now."""

    def __init__(self, *, ruby: bool, aliased: bool) -> None:
        self.ruby = ruby
        self.aliased = aliased
        self.done: dict[tuple[int, int], Verdict] = {}
        self.named: dict[int, dict[str, list[Record]]] = {}
        self.path: list[str] = []
        self.depth = 0
        self.pairs = 0
        self.looks = 0
        self.skipped = 0
        self.ambiguous: list[Issues] = []
        """Ambiguous fields, also those met in a branch of a union that was tried in vain: Java gives up there."""

    def compare(self, reader: Type, writer: Type, token: str = "") -> Verdict:
        """The verdict on a pair, one step down when there is a token; optimistic while it is still being looked at."""
        if token:
            self.path.append(token)
        self.pairs += 1
        if self.pairs > MAX_PAIRS:
            raise _TooMuch
        if type(reader) is Primitive and type(writer) is Primitive:
            verdict = self._primitives(reader, writer)
        else:
            key = (id(reader), id(writer))
            known = self.done.get(key)
            if known is None:
                self.depth += 1
                if self.depth > MAX_DEPTH:
                    raise _TooMuch
                self.done[key] = _FITS
                known = self.done[key] = self._compare(reader, writer)
                self.depth -= 1
            verdict = known
        if token:
            self.path.pop()
        return verdict

    def _compare(self, reader: Type, writer: Type) -> Verdict:
        if reader.kind == writer.kind:
            match reader.kind:
                case "record":
                    return self._records(reader, writer)  # type: ignore[arg-type]  # equal kinds: both are records
                case "enum":
                    return self._enums(reader, writer)  # type: ignore[arg-type]  # both are enums
                case "fixed":
                    return self._fixed(reader, writer)  # type: ignore[arg-type]  # both are fixed
                case "array":
                    return self.compare(reader.items, writer.items, "items")  # type: ignore[union-attr]  # both are arrays
                case "map":
                    return self.compare(reader.values, writer.values, "values")  # type: ignore[union-attr]  # both are maps
                case _:
                    return self._unions(reader, writer)  # type: ignore[arg-type]  # nothing else is left
        if isinstance(writer, Union):
            verdicts = [self.compare(reader, branch, str(index)) for index, branch in enumerate(writer.branches)]
            return _merge(verdicts)
        if isinstance(reader, Union):
            return self._into_union(reader, writer)
        if self.ruby and _decimals_agree(reader, writer):
            return _FITS
        return self._fails("TYPE_MISMATCH", short(reader), short(writer))

    # --- rules ------------------------------------------------------------------------------------------------------

    def _primitives(self, reader: Primitive, writer: Primitive) -> Verdict:
        if reader.kind != writer.kind and writer.kind not in PROMOTIONS.get(reader.kind, _NONE):
            return self._fails("TYPE_MISMATCH", short(reader), short(writer))
        return _FITS if reader.logical is None or writer.logical is None else self._logical(reader, writer)

    def _logical(self, reader: Primitive | Fixed, writer: Primitive | Fixed) -> Verdict:
        """A warning when both sides read the same bytes as different things; a precision may grow."""
        ours, theirs = reader.logical, writer.logical
        if ours is None or theirs is None or ours == theirs:
            return _FITS
        same = ours.name == theirs.name and ours.scale == theirs.scale
        if same and ours.precision >= theirs.precision:
            return _FITS
        return Verdict(True, self._issue("LOGICAL_TYPE_CHANGED", str(ours), str(theirs), consequence(ours, theirs)))

    def _names(self, reader: Named, writer: Named) -> Verdict:
        if _simple(reader.name) == _simple(writer.name) or writer.name in reader.aliases:
            return _FITS
        return self._fails("NAME_MISMATCH", reader.name, writer.name, leaf="name")

    def _fixed(self, reader: Fixed, writer: Fixed) -> Verdict:
        if self.ruby and _decimals_agree(reader, writer):
            return _FITS
        size = _FITS
        if reader.size != writer.size:
            size = self._fails(
                "FIXED_SIZE_MISMATCH", str(reader.size), str(writer.size), leaf="size", extra=reader.name
            )
        return _merge([self._names(reader, writer), size, self._logical(reader, writer)])

    def _enums(self, reader: EnumType, writer: EnumType) -> Verdict:
        names = self._names(reader, writer)
        if reader.default is not None:
            return names
        missing = sorted(set(writer.symbols).difference(reader.symbols))
        if not missing:
            return names
        extra = f"[{', '.join(missing)}]"
        fails = self._fails("MISSING_ENUM_SYMBOLS", reader.name, writer.name, leaf="symbols", extra=extra)
        return _merge([names, fails])

    def _records(self, reader: Record, writer: Record) -> Verdict:
        fits, names = self._names(reader, writer)
        issues: list[Issues] = [] if names is None else [names]
        path = self.path
        path += ("fields", "")
        for index, field in enumerate(reader.fields):
            other = writer.by_name.get(field.name)
            if other is not None and not field.aliases:
                if field.type is other.type and type(other.type) is Primitive:
                    continue  # the commonest case by far: a shared plain primitive
                path[-1] = str(index)
                verdict = self.compare(field.type, other.type, "type")
            else:
                path[-1] = str(index)
                verdict = self._aliased(field, reader, writer)
            fits = fits and verdict.fits
            if verdict.issues is not None:
                issues.append(verdict.issues)
        del path[-2:]
        return Verdict(fits, issues) if issues else (_FITS if fits else Verdict(False, None))

    def _aliased(self, field: RecordField, reader: Record, writer: Record) -> Verdict:
        """A field of the reader that is not simply there under its own name."""
        names = dict.fromkeys((field.name, *field.aliases))
        matches = [writer.by_name[name] for name in names if name in writer.by_name]
        if len(matches) == 1:
            return self.compare(field.type, matches[0].type, "type")
        if matches:
            found = ", ".join(match.name for match in matches)
            verdict = self._fails("READER_FIELD_AMBIGUOUS", field.name, found, extra=reader.name)
            self.ambiguous.append(verdict.issues)
            return verdict
        if field.default is not NO_DEFAULT:
            return _FITS
        return self._fails("READER_FIELD_MISSING_DEFAULT_VALUE", field.name, writer.name, extra=short(field.type))

    def _unions(self, reader: Union, writer: Union) -> Verdict:
        fits = True
        issues: list[Issues] = []
        for index, branch in enumerate(writer.branches):
            self.path.append(str(index))
            verdict = self.compare(reader, branch)
            if not verdict.fits:
                fits = False
                issues.append(
                    self._issue("MISSING_UNION_BRANCH", short(reader), short(branch), self._nearest(reader, branch))
                )
            elif verdict.issues is not None:
                issues.append(verdict.issues)
            self.path.pop()
        return Verdict(fits, issues) if issues else _FITS

    def _into_union(self, reader: Union, writer: Type) -> Verdict:
        for branch in self._branches(reader, writer):
            if self.ruby and not _full_names_match(branch, writer):
                self.skipped += 1
                if self.skipped > MAX_SKIPPED:
                    raise _TooMuch
                continue
            verdict = self.compare(branch, writer)
            if verdict.fits:
                return verdict
        return self._fails("MISSING_UNION_BRANCH", short(reader), short(writer), extra=self._nearest(reader, writer))

    def _branches(self, reader: Union, writer: Type) -> Sequence[Type]:
        """The branches that can take a type, in order: for a record those of its name, so that width costs nothing.

        Where fields have aliases all are tried, as Java does: one that fits in vain may be ambiguous inside.
        """
        if self.aliased or not isinstance(writer, Record):
            return reader.branches
        by_name = self.named.get(id(reader))
        if by_name is None:
            by_name = self.named[id(reader)] = {}
            for branch in reader.branches:
                if isinstance(branch, Record):
                    for name in {_simple(branch.name), *(f".{alias}" for alias in branch.aliases)}:
                        by_name.setdefault(name, []).append(branch)
        return [*by_name.get(_simple(writer.name), ()), *by_name.get(f".{writer.name}", ())]

    def _nearest(self, reader: Union, writer: Type) -> str:
        """Why the branch that was probably meant (same kind and name) does not fit: rule and path, or ''."""
        branches = self._branches(reader, writer)
        self.looks += len(branches)
        for branch in branches if self.looks <= MAX_LOOKS else ():
            verdict = self.done.get((id(branch), id(writer)))
            if verdict is None or verdict.fits or branch.kind != writer.kind:
                continue
            same = True
            if isinstance(branch, Named) and isinstance(writer, Named):
                same = _simple(branch.name) == _simple(writer.name) or writer.name in branch.aliases
            if same:
                issue = next((issue for issue in _flat(verdict.issues)), None)
                return f"{issue.rule} at {issue.path}" if issue else ""
        return ""

    # --- issues -----------------------------------------------------------------------------------------------------

    def _issue(self, rule: str, reader: str, writer: str, extra: str = "") -> Issue:
        return Issue(rule, "/" + "/".join(self.path), reader, writer, extra)

    def _fails(self, rule: str, reader: str, writer: str, *, leaf: str = "", extra: str = "") -> Verdict:
        issue = self._issue(rule, reader, writer, extra)
        if leaf:
            issue = issue._replace(path=f"{issue.path}/{leaf}" if self.path else f"/{leaf}")
        return Verdict(False, issue)


def _merge(verdicts: list[Verdict]) -> Verdict:
    issues: list[Issues] = [verdict.issues for verdict in verdicts if verdict.issues is not None]
    fits = all(verdict.fits for verdict in verdicts)
    return Verdict(fits, issues) if issues else Verdict(fits, None)


def _simple(full_name: str) -> str:
    return full_name.rpartition(".")[2]


def _has_field_aliases(root: Type) -> bool:
    """Whether a record anywhere in a type has a field with aliases."""
    entered: set[int] = set()
    waiting: list[Type] = [root]
    while waiting:
        node = waiting.pop()
        if type(node) is Primitive or id(node) in entered:
            continue
        entered.add(id(node))
        match node:
            case Record():
                if any(field.aliases for field in node.fields):
                    return True
                waiting.extend(field.type for field in node.fields)
            case Union():
                waiting.extend(node.branches)
            case Array():
                waiting.append(node.items)
            case Map():
                waiting.append(node.values)
            case _:
                pass
    return False


def _decimals_agree(reader: Type, writer: Type) -> bool:
    ours, theirs = reader.logical, writer.logical
    return ours is not None and ours.name == "decimal" and ours == theirs


def _full_names_match(reader: Type, writer: Type) -> bool:
    if not (isinstance(reader, Named) and isinstance(writer, Named)):
        return True
    return reader.name == writer.name or writer.name in reader.aliases or _decimals_agree(reader, writer)
