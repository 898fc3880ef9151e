"""Checks whether data of a writer's schema can be read with a reader's schema.

The verdicts are those of `SchemaCompatibility` of the Java library 1.12. Its rules:

- names compare without namespace, or by a full alias of the reader;
- a reader's enum default absorbs unknown symbols;
- the first fitting branch of a union is enough;
- a pair that occurs again inside itself counts as compatible.

Rule names and paths are also those of the Java library. A path leads through the reader's schema, and through type
names into their definitions. A number right after a union counts the *writer's* branches.

Three things are added here. A reader's field that matches two fields of the writer is a finding (Java throws). A change
of a logical type is a warning: the binary format cannot show it, and it silently turns values into others. The third is
a limit: a pair of schemas that is made to explode ends with a finding of level UNKNOWN, which refuses the change, in
place of a stack overflow.

Ruleset `avro-ruby` differs in two points: decimals of equal precision and scale resolve whatever type holds them, and
inside unions full names must match.

Source: docs/protocols/avro.md#compatibility-rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from stele.core.findings import Finding, Severity
from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroNamedType,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
    describe_consequence,
    describe_type,
)
from stele.formats.avro.resolution import PROMOTIONS

MAX_DEPTH: Final = 220
"""Maximum nesting of comparisons. Recursive types of coprime periods reach any depth."""

MAX_LOOKS: Final = 200_000
"""Maximum number of branches searched for the one that was probably meant. Past it, findings name the union only."""

MAX_SKIPPED: Final = 1_500_000
"""Maximum number of branches skipped because of their names; past it, the check stops."""

MAX_PAIRS: Final = 120_000
"""Maximum number of comparisons in one check. That many take well under a second."""

_NONE: Final[frozenset[str]] = frozenset()


class Issue(NamedTuple):
    """A finding without its explanation. The meaning of extra depends on the rule, see `explain_issue`."""

    rule: str
    path: str
    reader: str
    writer: str
    extra: str = ""


class PairVerdict(NamedTuple):
    """Whether a pair is compatible, and its issues: one issue, or nested lists that several verdicts may share."""

    fits: bool
    issues: Issues


Issues = Issue | list["Issues"] | None

_FITS: Final = PairVerdict(True, None)


class _BudgetExceeded(Exception):
    """Raised when a comparison reaches a limit."""


def check_compatibility(reader: AvroSchema, writer: AvroSchema, *, ruby: bool = False) -> list[Finding]:
    """Return findings in the order of the reader's schema, each once.

    The schemas are compatible if none of the findings is a breaking one.
    """
    checker = _Checker(ruby=ruby, aliased=_has_field_aliases(reader.root))
    try:
        verdict = checker.compare_types(reader.root, writer.root)
    except (_BudgetExceeded, RecursionError):  # the second only where the caller's own stack is deep already
        why = "The two schemas are nested, or refer to each other, in too many ways to be compared in bounded time."
        fix = "Split the schema, or make its recursion simpler."
        return [
            Finding(
                "TOO_COMPLEX",
                "/",
                describe_type(reader.root),
                describe_type(writer.root),
                why,
                fix,
                level=Severity.UNKNOWN,
            )
        ]
    if verdict.issues is None and not checker.ambiguous:
        return []
    return [explain_issue(*issue) for issue in _flatten_issues([verdict.issues, checker.ambiguous])]


def _flatten_issues(issues: Issues) -> list[Issue]:
    """Return the single issues in order, each once, without recursion; every shared list is entered once."""
    unique_issues: dict[Issue, None] = {}
    entered: set[int] = set()
    waiting: list[Issues] = [issues]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Issue):
            unique_issues[item] = None
        elif item is not None and id(item) not in entered:
            entered.add(id(item))
            waiting.extend(reversed(item))
    return list(unique_issues)


class _Checker:
    """The state of one check: the pairs compared so far and the current path."""

    def __init__(self, *, ruby: bool, aliased: bool) -> None:
        self.ruby = ruby
        self.aliased = aliased
        self.done: dict[tuple[int, int], PairVerdict] = {}
        self.named: dict[int, dict[str, list[AvroRecord]]] = {}
        self.path: list[str] = []
        self.depth = 0
        self.pairs = 0
        self.looks = 0
        self.skipped = 0
        self.ambiguous: list[Issues] = []
        """Ambiguous fields, including those in branches of a union that did not fit: Java fails there."""

    def compare_types(self, reader: AvroType, writer: AvroType, token: str = "") -> PairVerdict:
        """Return the verdict on a pair, one step down the path if token is given.

        A pair that is met again inside itself counts as compatible.
        """
        if token:
            self.path.append(token)
        self.pairs += 1
        if self.pairs > MAX_PAIRS:
            raise _BudgetExceeded
        if type(reader) is AvroPrimitive and type(writer) is AvroPrimitive:
            verdict = self._compare_primitives(reader, writer)
        else:
            key = (id(reader), id(writer))
            known = self.done.get(key)
            if known is None:
                self.depth += 1
                if self.depth > MAX_DEPTH:
                    raise _BudgetExceeded
                self.done[key] = _FITS
                known = self.done[key] = self._compare_types(reader, writer)
                self.depth -= 1
            verdict = known
        if token:
            self.path.pop()
        return verdict

    def _compare_types(self, reader: AvroType, writer: AvroType) -> PairVerdict:
        if reader.kind == writer.kind:
            match reader.kind:
                case "record":
                    return self._compare_records(reader, writer)  # type: ignore[arg-type]  # equal kinds: both are records
                case "enum":
                    return self._compare_enums(reader, writer)  # type: ignore[arg-type]  # both are enums
                case "fixed":
                    return self._compare_fixed(reader, writer)  # type: ignore[arg-type]  # both are fixed
                case "array":
                    return self.compare_types(reader.items, writer.items, "items")  # type: ignore[union-attr]  # both are arrays
                case "map":
                    return self.compare_types(reader.values, writer.values, "values")  # type: ignore[union-attr]  # both are maps
                case _:
                    return self._compare_unions(reader, writer)  # type: ignore[arg-type]  # nothing else is left
        if isinstance(writer, AvroUnion):
            verdicts = [self.compare_types(reader, branch, str(index)) for index, branch in enumerate(writer.branches)]
            return _merge_verdicts(verdicts)
        if isinstance(reader, AvroUnion):
            return self._compare_to_union(reader, writer)
        if self.ruby and _decimals_agree(reader, writer):
            return _FITS
        return self._fail("TYPE_MISMATCH", describe_type(reader), describe_type(writer))

    # --- rules ------------------------------------------------------------------------------------------------------

    def _compare_primitives(self, reader: AvroPrimitive, writer: AvroPrimitive) -> PairVerdict:
        if reader.kind != writer.kind and writer.kind not in PROMOTIONS.get(reader.kind, _NONE):
            return self._fail("TYPE_MISMATCH", describe_type(reader), describe_type(writer))
        return (
            _FITS if reader.logical is None or writer.logical is None else self._compare_logical_types(reader, writer)
        )

    def _compare_logical_types(
        self, reader: AvroPrimitive | AvroFixed, writer: AvroPrimitive | AvroFixed
    ) -> PairVerdict:
        """Return a warning when both sides interpret the same bytes differently. A greater precision is no warning."""
        ours, theirs = reader.logical, writer.logical
        if ours is None or theirs is None or ours == theirs:
            return _FITS
        same = ours.name == theirs.name and ours.scale == theirs.scale
        if same and ours.precision >= theirs.precision:
            return _FITS
        return PairVerdict(
            True, self._make_issue("LOGICAL_TYPE_CHANGED", str(ours), str(theirs), describe_consequence(ours, theirs))
        )

    def _compare_names(self, reader: AvroNamedType, writer: AvroNamedType) -> PairVerdict:
        if _simple_name(reader.name) == _simple_name(writer.name) or writer.name in reader.aliases:
            return _FITS
        return self._fail("NAME_MISMATCH", reader.name, writer.name, leaf="name")

    def _compare_fixed(self, reader: AvroFixed, writer: AvroFixed) -> PairVerdict:
        if self.ruby and _decimals_agree(reader, writer):
            return _FITS
        size = _FITS
        if reader.size != writer.size:
            size = self._fail("FIXED_SIZE_MISMATCH", str(reader.size), str(writer.size), leaf="size", extra=reader.name)
        return _merge_verdicts([self._compare_names(reader, writer), size, self._compare_logical_types(reader, writer)])

    def _compare_enums(self, reader: AvroEnum, writer: AvroEnum) -> PairVerdict:
        names = self._compare_names(reader, writer)
        if reader.default is not None:
            return names
        missing = sorted(set(writer.symbols).difference(reader.symbols))
        if not missing:
            return names
        extra = f"[{', '.join(missing)}]"
        fails = self._fail("MISSING_ENUM_SYMBOLS", reader.name, writer.name, leaf="symbols", extra=extra)
        return _merge_verdicts([names, fails])

    def _compare_records(self, reader: AvroRecord, writer: AvroRecord) -> PairVerdict:
        fits, names = self._compare_names(reader, writer)
        issues: list[Issues] = [] if names is None else [names]
        path = self.path
        path += ("fields", "")
        for index, field in enumerate(reader.fields):
            other = writer.by_name.get(field.name)
            if other is not None and not field.aliases:
                if field.type is other.type and type(other.type) is AvroPrimitive:
                    continue  # the commonest case by far: a shared plain primitive
                path[-1] = str(index)
                verdict = self.compare_types(field.type, other.type, "type")
            else:
                path[-1] = str(index)
                verdict = self._compare_aliased_field(field, reader, writer)
            fits = fits and verdict.fits
            if verdict.issues is not None:
                issues.append(verdict.issues)
        del path[-2:]
        return PairVerdict(fits, issues) if issues else (_FITS if fits else PairVerdict(False, None))

    def _compare_aliased_field(self, field: AvroField, reader: AvroRecord, writer: AvroRecord) -> PairVerdict:
        """Return the verdict on a reader's field that has aliases or is not in the writer under its own name."""
        names = dict.fromkeys((field.name, *field.aliases))
        matches = [writer.by_name[name] for name in names if name in writer.by_name]
        if len(matches) == 1:
            return self.compare_types(field.type, matches[0].type, "type")
        if matches:
            matching_names = ", ".join(match.name for match in matches)
            verdict = self._fail("READER_FIELD_AMBIGUOUS", field.name, matching_names, extra=reader.name)
            self.ambiguous.append(verdict.issues)
            return verdict
        if field.default is not NO_DEFAULT:
            return _FITS
        return self._fail(
            "READER_FIELD_MISSING_DEFAULT_VALUE", field.name, writer.name, extra=describe_type(field.type)
        )

    def _compare_unions(self, reader: AvroUnion, writer: AvroUnion) -> PairVerdict:
        fits = True
        issues: list[Issues] = []
        for index, branch in enumerate(writer.branches):
            self.path.append(str(index))
            verdict = self.compare_types(reader, branch)
            if not verdict.fits:
                fits = False
                issues.append(
                    self._make_issue(
                        "MISSING_UNION_BRANCH",
                        describe_type(reader),
                        describe_type(branch),
                        self._nearest_branch_issue(reader, branch),
                    )
                )
            elif verdict.issues is not None:
                issues.append(verdict.issues)
            self.path.pop()
        return PairVerdict(fits, issues) if issues else _FITS

    def _compare_to_union(self, reader: AvroUnion, writer: AvroType) -> PairVerdict:
        for branch in self._candidate_branches(reader, writer):
            if self.ruby and not _full_names_match(branch, writer):
                self.skipped += 1
                if self.skipped > MAX_SKIPPED:
                    raise _BudgetExceeded
                continue
            verdict = self.compare_types(branch, writer)
            if verdict.fits:
                return verdict
        return self._fail(
            "MISSING_UNION_BRANCH",
            describe_type(reader),
            describe_type(writer),
            extra=self._nearest_branch_issue(reader, writer),
        )

    def _candidate_branches(self, reader: AvroUnion, writer: AvroType) -> Sequence[AvroType]:
        """Return the branches that can match a type, in order. For a record they are only the records with its name.

        If fields have aliases, all branches are returned, as in Java: one that does not fit may contain an ambiguous
        field.
        """
        if self.aliased or not isinstance(writer, AvroRecord):
            return reader.branches
        by_name = self.named.get(id(reader))
        if by_name is None:
            by_name = self.named[id(reader)] = {}
            for branch in reader.branches:
                if isinstance(branch, AvroRecord):
                    for name in {_simple_name(branch.name), *(f".{alias}" for alias in branch.aliases)}:
                        by_name.setdefault(name, []).append(branch)
        return [*by_name.get(_simple_name(writer.name), ()), *by_name.get(f".{writer.name}", ())]

    def _nearest_branch_issue(self, reader: AvroUnion, writer: AvroType) -> str:
        """Return why the branch that was probably meant (same kind and name) does not fit: rule and path, or ''."""
        branches = self._candidate_branches(reader, writer)
        self.looks += len(branches)
        for branch in branches if self.looks <= MAX_LOOKS else ():
            verdict = self.done.get((id(branch), id(writer)))
            if verdict is None or verdict.fits or branch.kind != writer.kind:
                continue
            same = True
            if isinstance(branch, AvroNamedType) and isinstance(writer, AvroNamedType):
                same = _simple_name(branch.name) == _simple_name(writer.name) or writer.name in branch.aliases
            if same:
                issue = next((issue for issue in _flatten_issues(verdict.issues)), None)
                return f"{issue.rule} at {issue.path}" if issue else ""
        return ""

    # --- issues -----------------------------------------------------------------------------------------------------

    def _make_issue(self, rule: str, reader: str, writer: str, extra: str = "") -> Issue:
        return Issue(rule, "/" + "/".join(self.path), reader, writer, extra)

    def _fail(self, rule: str, reader: str, writer: str, *, leaf: str = "", extra: str = "") -> PairVerdict:
        issue = self._make_issue(rule, reader, writer, extra)
        if leaf:
            issue = issue._replace(path=f"{issue.path}/{leaf}" if self.path else f"/{leaf}")
        return PairVerdict(False, issue)


def _merge_verdicts(verdicts: list[PairVerdict]) -> PairVerdict:
    issues: list[Issues] = [verdict.issues for verdict in verdicts if verdict.issues is not None]
    fits = all(verdict.fits for verdict in verdicts)
    return PairVerdict(fits, issues) if issues else PairVerdict(fits, None)


def _simple_name(full_name: str) -> str:
    return full_name.rpartition(".")[2]


def _has_field_aliases(root: AvroType) -> bool:
    """Return whether a record anywhere in a type has a field with aliases."""
    entered: set[int] = set()
    waiting: list[AvroType] = [root]
    while waiting:
        node = waiting.pop()
        if type(node) is AvroPrimitive or id(node) in entered:
            continue
        entered.add(id(node))
        match node:
            case AvroRecord():
                if any(field.aliases for field in node.fields):
                    return True
                waiting.extend(field.type for field in node.fields)
            case AvroUnion():
                waiting.extend(node.branches)
            case AvroArray():
                waiting.append(node.items)
            case AvroMap():
                waiting.append(node.values)
            case _:
                pass
    return False


def _decimals_agree(reader: AvroType, writer: AvroType) -> bool:
    ours, theirs = reader.logical, writer.logical
    return ours is not None and ours.name == "decimal" and ours == theirs


def _full_names_match(reader: AvroType, writer: AvroType) -> bool:
    if not (isinstance(reader, AvroNamedType) and isinstance(writer, AvroNamedType)):
        return True
    return reader.name == writer.name or writer.name in reader.aliases or _decimals_agree(reader, writer)


# --- issues in words --------------------------------------------------------------------------------------------------


_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "TYPE_MISMATCH": (
        "Data written as {writer} cannot be read as {reader}.",
        "Keep the type {writer}, or add a new field with a default and leave this one as it is.",
    ),
    "NAME_MISMATCH": (
        "The writer's type is called {writer}, the reader's {reader}, and types are matched by name.",
        'Keep the name, or add "aliases": ["{writer}"] to {reader}.',
    ),
    "FIXED_SIZE_MISMATCH": (
        "The reader expects {reader} bytes where the writer wrote {writer}.",
        "Keep the size of {extra} at {writer}, or define a new fixed type under another name.",
    ),
    "MISSING_ENUM_SYMBOLS": (
        "The reader's enum {reader} has no symbol for values {extra} that the writer may have written.",
        "Keep these symbols, or give the enum {reader} a default symbol.",
    ),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The reader needs the field {reader!r}, but records written as {writer} do not have it.",
        'Give {reader!r} ({extra}) a default (for instance ["null", …] with null), or an alias the writer knows.',
    ),
    "READER_FIELD_AMBIGUOUS": (
        "The reader's field {reader!r} matches several fields of the writer by name and alias: {writer}.",
        "Remove the aliases of {reader!r} in {extra} that name other existing fields.",
    ),
    "MISSING_UNION_BRANCH": (
        "The writer may have written {writer}, and no branch of the reader's {reader} takes it.",
        "Add {writer} to the union, or stop removing it.",
    ),
    "LOGICAL_TYPE_CHANGED": (
        "The bytes can be read, but values written as {writer} are taken for {reader}: {extra}.",
        "Keep the logical type {writer}, or put values of the new kind into a new field.",
    ),
}

_WARNINGS: Final = frozenset({"LOGICAL_TYPE_CHANGED"})


def explain_issue(rule: str, path: str, reader: str, writer: str, extra: str = "") -> Finding:
    """Return the finding for an issue.

    extra is the fixed's name (FIXED_SIZE_MISMATCH), the missing symbols as `[A, B]` (MISSING_ENUM_SYMBOLS), the field's
    type or the record's name (READER_FIELD_…), what happens to values (LOGICAL_TYPE_CHANGED), or the first reason why
    the branch that was probably meant does not fit (MISSING_UNION_BRANCH).
    """
    why, fix = (text.format(reader=reader, writer=writer, extra=extra) for text in _WORDS[rule])
    if rule == "MISSING_UNION_BRANCH" and extra:
        why = f"{why} The nearest one fails with {extra}."
        fix = "Mend that branch so that it reads what was written before."
    level = Severity.WARNING if rule in _WARNINGS else Severity.ERROR
    # The missing symbols are what the writer has and the reader lacks, so they stand in the writer's column.
    writer_column = extra if rule == "MISSING_ENUM_SYMBOLS" else writer
    return Finding(rule, path, reader, writer_column, why, fix, level=level)
