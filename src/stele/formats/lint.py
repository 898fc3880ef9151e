"""Lint rules for valid schemas: the rules that all languages share, and the functions that run them.

A rule has the same name in every language. The `lint` module of the language defines what exactly it checks. A format
that is not `Lintable` is checked by its `fields` alone. Findings are about the document itself: schemas it refers to
have subjects of their own. Their level is WARNING, and at most `MAX_FINDINGS` are listed for each rule.

An author can silence rules for a declaration and everything inside it:

- Avro: the attribute `"stele.lint-ignore": ["RULE", …]` of a type or field,
- JSON Schema: the keyword `"x-stele-lint-ignore": ["RULE", …]`,
- Protobuf and Thrift: `stele:lint-ignore RULE …` on a line of the comment (Thrift: `/** … */`) of a declaration, or of
  the `syntax` or `package` statement, or a Thrift header, for the whole file,
- XML Schema: the same words inside `xs:annotation/xs:appinfo`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

from stele.core.findings import Finding, Severity
from stele.core.ports import Format, Parsed
from stele.errors import UnknownRule
from stele.formats.capabilities import Lintable

RULES: Final[Mapping[str, str]] = {
    "CASE_CLASH": "Names in one scope differ in more than upper and lower case: table engines treat them as the"
    " same name.",
    "CONTENT_DECLARED": "An object says whether it takes properties it does not name.",
    "DECIMAL_CHANGED": "A decimal keeps its scale and loses no precision from one version to the next.",
    "DEFAULT_BRANCH": "The default of a union is a value of its first branch, as libraries before Avro 1.12 demand.",
    "DEFAULT_FITS": "A default is a value of its type.",
    "DOC_REQUIRED": "Types and fields say what they mean.",
    "DRAFT_DECLARED": "The document names the draft of JSON Schema it is written in.",
    "ELEMENT_FORM": "Local elements are in the target namespace, as global ones are.",
    "ENUM_DEFAULT": "An enum has a default symbol, so that symbols can be added later.",
    "ENUM_VALUE_EXPLICIT": "Every value of an enum has its number written down.",
    "ENUM_VALUE_PREFIX": "Values of a top-level enum begin with its name: they share one scope with those of others.",
    "ENUM_ZERO_UNSPECIFIED": "The value of an unset enum has no other meaning.",
    "FIELD_DEFAULT": "A field that is added has a default for data written before.",
    "FIELD_ID_EXPLICIT": "Every field has its number written down.",
    "FORMAT_KNOWN": "A `format` is one the draft defines; others are silently ignored.",
    "LINT_INCOMPLETE": "The schema is small enough to be looked at as a whole.",
    "LOGICAL_TYPE": "A logical type exists, is on the type it belongs to, and has valid attributes.",
    "LOGICAL_TYPE_CHANGED": "A field keeps its logical type from one version to the next.",
    "MEMBER_REPEATED": "No object has two members of one name: all but the last one are lost.",
    "NAMESPACE_REQUIRED": "The schema declares a namespace (package, target namespace).",
    "NAMING": "Names follow the style guide of the language.",
    "NULLABLE_DEFAULT": "A field that may be null has a default.",
    "NUMBER_REUSED": "A number or name once given to a field or enum value is never given to another.",
    "PATTERN_ANCHORED": "A pattern is anchored at both ends: otherwise it matches anywhere inside the text.",
    "RECURSIVE_TYPE": "No type contains itself: table engines such as Spark cannot hold its data.",
    "REF_SIBLINGS": "Nothing is next to a `$ref` that the draft ignores there.",
    "REQUIREDNESS_DECLARED": "A field says whether it is optional.",
    "REQUIRED_FIELD": "No field is `required`: it can never be removed again.",
    "REQUIRED_UNDEFINED": "Every property that is required is defined.",
    "RESERVED_ON_DELETE": "The number and the name of a deleted field stay reserved.",
    "TIMESTAMP_UNIT": "A time keeps its unit from one version to the next.",
    "TYPE_DECLARED": "Everything has a declared type.",
    "UNBOUNDED_RECURSION": "Every type has finite data: no type requires itself.",
    "UNKNOWN_KEYWORD": "Keywords and attributes are known ones, not misspelled.",
    "UNUSED_DEFINITION": "Every definition is used.",
    "UNUSED_IMPORT": "Every import is used.",
    "WILDCARD_LIMITED": "A wildcard is limited: in number, to a namespace, or to elements that are declared.",
}
"""Every rule with one sentence on what it asks for."""

OFF_BY_DEFAULT: Final = frozenset({"DOC_REQUIRED"})
"""Rules that run only when they are requested by name: a schema without documentation is not wrong."""

MAX_FINDINGS: Final = 100
"""Maximum number of findings that are listed for one rule; one more finding gives the number of those left out."""

MAX_DECLARATIONS: Final = 100_000
"""Maximum number of declarations that are checked in one schema; if there are more, LINT_INCOMPLETE is reported."""

LOWER_SNAKE: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
UPPER_SNAKE: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
UPPER_CAMEL: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
LOWER_CAMEL: Final = re.compile(r"[a-z][A-Za-z0-9]*")

Styles = Mapping[str, re.Pattern[str]]
"""Naming styles that are allowed, each under a name written in that style; the preferred one is first."""

_DIRECTIVE: Final = re.compile(r"^[ \t]*stele:lint-ignore[ \t]+([A-Z_0-9, \t]+)$", re.MULTILINE)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")
_NOTHING: Final[frozenset[str]] = frozenset()
_LONGEST_GUESS: Final = 40
_MOST_GUESSES: Final = 1_000
_MOST_WORDS: Final = 100


def select_rules(*names: str) -> Mapping[str, str]:
    """Return the named part of `RULES`, for a format's `lint_rules`."""
    return {name: RULES[name] for name in sorted(names)}


def lint_rules_of(fmt: Format[Any]) -> Mapping[str, str]:
    """Return the rules a format is judged by, each with its sentence."""
    return fmt.lint_rules if isinstance(fmt, Lintable) else select_rules("CASE_CLASH", "DOC_REQUIRED", "FIELD_DEFAULT")


def default_rules_of(fmt: Format[Any]) -> Mapping[str, str]:
    """Return the rules that run when none are selected, each with its sentence."""
    return {rule: asks for rule, asks in lint_rules_of(fmt).items() if rule not in OFF_BY_DEFAULT}


def require_known_rules(fmt: Format[Any], names: Iterable[str]) -> frozenset[str]:
    """Return the names as a set.

    Raises `UnknownRule` for a rule that no language has. A rule that only another language has is accepted.
    """
    wanted = frozenset(names)
    there = {*RULES, *lint_rules_of(fmt)}
    unknown = sorted(wanted - there)
    if unknown:
        near = get_close_matches(unknown[0].upper(), there, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UnknownRule(f"there is no lint rule {unknown[0]!r}{hint}; {fmt.name} has {', '.join(lint_rules_of(fmt))}")
    return wanted


def lint_schema(
    fmt: Format[Any], parsed: Parsed, before: Parsed | None = None, rules: Collection[str] | None = None
) -> list[Finding]:
    """Return the findings of the lint rules.

    before is the previous version, for rules about changes. rules None means all rules. LINT_INCOMPLETE is reported
    even if it is not among the rules. Raises `UnknownRule`.
    """
    wanted = None if rules is None else require_known_rules(fmt, rules) | {"LINT_INCOMPLETE"}
    findings = fmt.lint(parsed, before) if isinstance(fmt, Lintable) else _lint_fields(fmt, parsed, before)
    return [finding for finding in findings if wanted is None or finding.rule in wanted]


class LintReport:
    """The findings of one run: warnings, a bounded number of each rule."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._counts: Counter[str] = Counter()
        self._places = 0
        self._guessed: dict[tuple[str, int], str | None] = {}

    def add_finding(
        self,
        rule: str,
        path: str,
        why: str,
        fix: str,
        *,
        current: str = "",
        before: str = "",
        ignored: frozenset[str] = _NOTHING,
    ) -> None:
        """Add a warning, unless the author silenced the rule there.

        current and before are the texts that the two versions have there.
        """
        if rule in ignored:
            return
        self._counts[rule] += 1
        if self._counts[rule] <= MAX_FINDINGS:
            finding = Finding(rule, path, shorten_text(current), shorten_text(before), why, fix, level=Severity.WARNING)
            self._found.append(finding)

    def count_declaration(self) -> bool:
        """Count a declaration. Return False when more than `MAX_DECLARATIONS` were counted."""
        self._places += 1
        return self._places <= MAX_DECLARATIONS

    def nearest_word(self, word: str, words: Iterable[str], cutoff: float = 0.75) -> str | None:
        """Return the word that was probably meant; None if none is similar or this run has guessed often enough.

        words must be an object that lives as long as the run: the cache of guesses uses its id as a key.
        """
        key = word, id(words)
        if key not in self._guessed:
            if len(word) > _LONGEST_GUESS or len(self._guessed) >= _MOST_GUESSES:
                return None
            near = get_close_matches(word, list(islice(words, _MOST_WORDS)), 1, cutoff)
            self._guessed[key] = near[0] if near else None
        return self._guessed[key]

    def list_findings(self, root: str) -> list[Finding]:
        """Return all findings. The last ones have the path root and report what was left out."""
        findings = list(self._found)
        for rule, count in self._counts.items():
            if count > MAX_FINDINGS:
                why = f"{count - MAX_FINDINGS} more findings of this rule are left out."
                findings.append(Finding(rule, root, why=why, fix="Mend the ones listed first.", level=Severity.WARNING))
        if self._places > MAX_DECLARATIONS:
            why = f"Only the first {MAX_DECLARATIONS} declarations of the schema were looked at."
            fix = "Split the schema into smaller ones."
            findings.append(Finding("LINT_INCOMPLETE", root, why=why, fix=fix, level=Severity.WARNING))
        return findings


# --- what the rules of several languages do the same way ------------------------------------------------------------


def report_missing_doc(notes: LintReport, path: str, what: str, how: str, ignored: frozenset[str]) -> None:
    """Add a DOC_REQUIRED finding for a declaration without documentation."""
    why = f"{what} has no description, so readers of the data must guess its meaning."
    notes.add_finding("DOC_REQUIRED", path, why, how, ignored=ignored)


def check_name(
    notes: LintReport,
    path: str,
    name: str,
    what: str,
    styles: Styles,
    ignored: frozenset[str],
) -> None:
    """Add a NAMING finding if a name is in none of the styles."""
    if not any(style.fullmatch(name) for style in styles.values()):
        first = next(iter(styles))
        fix = f"Call it {restyle_name(name, first)}."
        notes.add_finding(
            "NAMING", path, f"The name of {what} is not {' or '.join(styles)}.", fix, current=name, ignored=ignored
        )


SNAKE_NAME: Final[Styles] = {"lower_snake_case": LOWER_SNAKE}
FIELD_NAME: Final[Styles] = {"lower_snake_case": LOWER_SNAKE, "lowerCamelCase": LOWER_CAMEL}
CAMEL_NAME: Final[Styles] = {"lowerCamelCase": LOWER_CAMEL, "lower_snake_case": LOWER_SNAKE}
TYPE_NAME: Final[Styles] = {"UpperCamelCase": UPPER_CAMEL}
SYMBOL_NAME: Final[Styles] = {"UPPER_SNAKE_CASE": UPPER_SNAKE}


def restyle_name(name: str, style: str) -> str:
    """Return a name in another style. The style is given by its key in `Styles`, such as `lower_snake_case`."""
    words = [word.lower() for word in _WORD.findall(name[:200])] or ["name"]
    camel = [word.capitalize() for word in words]
    match style:
        case "lower_snake_case":
            return "_".join(words)
        case "UPPER_SNAKE_CASE":
            return "_".join(words).upper()
        case "UpperCamelCase":
            return "".join(camel)
        case _:
            return "".join([words[0], *camel[1:]])


def report_case_clashes(
    notes: LintReport, names: Iterable[str], path: str, ignored: frozenset[str], *, what: str = "fields"
) -> None:
    """Add a CASE_CLASH finding for each name that differs from an earlier one of its scope in case only."""
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other != name:
            why = f"The {what} {other!r} and {name!r} are one and the same column to Spark and most table formats."
            notes.add_finding("CASE_CLASH", path, why, f"Rename {name!r}.", current=name, ignored=ignored)


def report_recursion(notes: LintReport, rule: str, path: str, members: Iterable[str], ignored: frozenset[str]) -> None:
    """Note a group of types that contain each other, for the rules RECURSIVE_TYPE and UNBOUNDED_RECURSION."""
    first, *others = members
    more = f" by way of {', '.join(others[:5])}{', …' if len(others) > 5 else ''}" if others else ""
    if rule == "RECURSIVE_TYPE":
        why = f"{first} contains itself{more}: Spark, Arrow and table formats have no column of such a shape."
        fix = "Refer to the inner value by an id, or keep the data out of tables."
    else:
        why = f"{first} requires itself{more}: no finite value of it exists."
        fix = "Make one field of the cycle optional."
    notes.add_finding(rule, path, why, fix, current=first, ignored=ignored)


def ignored_rules(value: object) -> frozenset[str]:
    """Return the rules an attribute silences: a list of names, or one name."""
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(name for name in names if isinstance(name, str))


def ignored_rules_in_comment(comment: str) -> frozenset[str]:
    """Return the rules that a comment silences."""
    rules = [names for line in _DIRECTIVE.findall(comment) for names in re.split(r"[,\s]+", line) if names]
    return frozenset(rules) if rules else _NOTHING


def has_explanation(comment: str) -> bool:
    """Return whether a comment has any text besides lint directives."""
    return bool(_DIRECTIVE.sub("", comment).strip())


def shorten_text(text: str, limit: int = 120) -> str:
    """Return the text, cut to the limit with `…` at its end."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _lint_fields(fmt: Format[Any], parsed: Parsed, before: Parsed | None) -> list[Finding]:
    """Return the findings for a format that has no rules of its own."""
    notes = LintReport()
    fields = fmt.fields(parsed)
    known_before = None if before is None else {field.path for field in fmt.fields(before)}
    scopes: dict[str, list[str]] = {}
    for field in fields:
        scope, _, name = field.path.rpartition(".")
        scopes.setdefault(scope, []).append(name)
        if not field.doc.strip():
            report_missing_doc(notes, field.path, f"The field {name!r}", "Document the field.", _NOTHING)
        if known_before is not None and field.path not in known_before and field.default is None:
            why = "The field is new and has no default, so data written before has no value for it."
            notes.add_finding("FIELD_DEFAULT", field.path, why, "Give the field a default.", current=field.type)
    for scope, names in scopes.items():
        report_case_clashes(notes, dict.fromkeys(names), scope, _NOTHING)
    return notes.list_findings("")
