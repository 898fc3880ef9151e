"""Access rules: read from the log and from files, combined into one set, and changed by callers with that right.

Every node follows the log, so a rule that was written through one node applies on all of them.

The model: docs/explanation/access.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from stele.core.access import ANYBODY, REGISTRY_RESOURCE, AccessRule, AccessRules, Operation, Resource
from stele.core.access_rule_text import check_principal, check_rule, parse_rules, print_rule
from stele.core.state import State
from stele.core.suggestions import suggest_name
from stele.errors import Conflict, InvalidRequest, NotFound, SteleError, TooLarge
from stele.service.access import CALLER, AccessControl
from stele.service.collections import Changes, Items, Key, edit_collection
from stele.service.registry import Registry
from stele.service.watched_file import identify_file

_logger = structlog.get_logger("stele.access")

COLLECTION: Final = "access.rules"
MOST_RULES: Final = 10_000
"""Maximum number of rules in the collection."""

ReadRules = Callable[[bytes], Iterable[AccessRule]]
"""Turns a document of a collection into rules; raises for one that it does not understand."""

_NOBODY: Final = AccessRule(ANYBODY, ("admin",), allow=False)
"""Replaces a document that cannot be understood, and denies everything: the document may have denied something."""


class RuleSource(NamedTuple):
    """A rule and its source: the name of a collection in the log, or the path of a file."""

    rule: AccessRule
    source: str


def read_rule(document: bytes) -> tuple[AccessRule]:
    """Return the rule in a document of the collection."""
    return (check_rule(msgspec.json.decode(document, type=AccessRule)),)


class RuleFile:
    """A file with rules, read again when it has changed.

    Args:
        path: The file.
        parse: Turns its text into rules. Raises `InvalidRequest`.

    Raises:
        InvalidRequest: The file cannot be read, or contains something other than rules.
    """

    def __init__(self, path: str, parse: Callable[[str], Sequence[AccessRule]] = parse_rules) -> None:
        self.path = path
        self._parse = parse
        self._seen = identify_file(Path(self.path))
        self.rules = self._read()

    def read_changes(self) -> bool:
        """Read the file if it has changed, and return whether its rules differ now.

        An invalid file leaves the rules as they are, and is logged once.
        """
        identity = identify_file(Path(self.path))
        if identity == self._seen:
            return False
        self._seen = identity
        try:
            before, self.rules = self.rules, self._read()
        except InvalidRequest as error:
            _logger.error("the rules of a file stay as they were", reason=str(error))
            return False
        _logger.info("read rules", path=self.path, rules=len(self.rules))
        return self.rules != before

    def _read(self) -> tuple[AccessRule, ...]:
        try:
            return tuple(self._parse(Path(self.path).read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"{self.path}: {error}") from None
        except InvalidRequest as error:
            raise InvalidRequest(f"{self.path}: {error}") from None


class RegistryAccess(AccessControl):
    """Decides by the rules in the log of a registry and in files.

    A request costs a comparison of two numbers. The rules are prepared again when those of the log or of a file
    changed.

    Args:
        registry: Registry whose log has rules.
        readers: Collections of the log with rules, and the functions that read their documents.
        files: Files with rules.
        default_allow: The decision where no rule matches.
        super_users: Principals that may do everything, whatever the rules say.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        readers: Mapping[str, ReadRules] | None = None,
        files: Sequence[RuleFile] = (),
        default_allow: bool = True,
        super_users: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(AccessRules((), default_allow=default_allow), super_users)
        self._registry = registry
        self._readers = {COLLECTION: read_rule, **(readers or {})}
        self._files = tuple(files)
        self._state: State | None = None
        self._seq = -1
        self._revisions: tuple[int, ...] | None = None
        self.sources: tuple[RuleSource, ...] = ()
        """The rules in force, each with its source."""

    @property
    def rules(self) -> AccessRules:
        """The rules in force."""
        state = self._registry.state
        if state.seq != self._seq or state is not self._state:
            self._follow(state)
        return self._rules

    @property
    def has_files(self) -> bool:
        """Whether there are rules in files."""
        return bool(self._files)

    def read_files(self) -> None:
        """Read files that have changed."""
        changed = [file.path for file in self._files if file.read_changes()]
        if changed:
            self._collect(self._registry.state)

    def make_changed_rules(self, collection: str, documents: Iterable[bytes]) -> AccessRules:
        """Return the rules that would be in force if a collection had these documents."""
        rows = [row for row in self.sources if row.source != collection]
        rows += self._read_documents(collection, documents)
        return AccessRules((row.rule for row in rows), default_allow=self._rules.default_allow)

    def _follow(self, state: State) -> None:
        revisions = tuple(_revision(state, name) for name in self._readers)
        if state is not self._state or revisions != self._revisions:
            self._collect(state)
        self._state, self._seq, self._revisions = state, state.seq, revisions

    def _collect(self, state: State) -> None:
        rows = [RuleSource(rule, file.path) for file in self._files for rule in file.rules]
        for name in self._readers:
            collection = state.collections.get(name)
            rows += self._read_documents(name, collection.items.values() if collection is not None else ())
        self.sources = tuple(rows)
        before = self._rules
        self._rules = AccessRules(
            (row.rule for row in rows), default_allow=before.default_allow, revision=before.revision + 1
        )

    def _read_documents(self, collection: str, documents: Iterable[bytes]) -> list[RuleSource]:
        rows = []
        for document in documents:
            try:
                rows += [RuleSource(rule, collection) for rule in self._readers[collection](document)]
            except (msgspec.MsgspecError, SteleError) as error:
                _logger.error(
                    "a rule is unknown, so all callers except super users are denied everything", reason=str(error)
                )
                rows.append(RuleSource(_NOBODY, collection))
        return rows


def _revision(state: State, collection: str) -> int:
    documents = state.collections.get(collection)
    return 0 if documents is None else documents.revision


class AccessRuleInfo(msgspec.Struct, frozen=True):
    """A rule as a line of text, with its source: a collection of the log or a file."""

    rule: str
    source: str


class RuleList(msgspec.Struct, frozen=True):
    """The rules in force, the decision where no rule matches, and the super users, which need no rule."""

    default: str
    super_users: tuple[str, ...]
    rules: tuple[AccessRuleInfo, ...]


class AccessExplanation(msgspec.Struct, frozen=True):
    """Whether principals may perform an operation, and why.

    Holds the rule that decides and its source; both are '' where no rule decides.
    """

    allowed: bool
    why: str
    rule: str = ""
    source: str = ""


async def list_rules(registry: Registry) -> RuleList:
    """Return the rules in force."""
    await registry.fresh_state()
    access = registry.access
    rules = tuple(AccessRuleInfo(print_rule(row.rule), row.source) for row in find_sources(access))
    return RuleList(_describe_default(access.rules), tuple(sorted(access.super_users)), rules)


def find_sources(access: AccessControl) -> tuple[RuleSource, ...]:
    """Return the rules in force, each with its source."""
    rules = access.rules.rules  # This updates the sources, too.
    return access.sources if isinstance(access, RegistryAccess) else tuple(RuleSource(rule, "") for rule in rules)


def _describe_default(rules: AccessRules) -> str:
    return "allow" if rules.default_allow else "deny"


async def explain_access(
    registry: Registry, principals: frozenset[str], operation: str, resource: Resource, host: str = ""
) -> AccessExplanation:
    """Return whether principals (`user:ann`, `group:dev`) may perform an operation, and why.

    Raises `InvalidRequest`.
    """
    if operation not in set(Operation):
        raise InvalidRequest(f"there is no operation {operation!r}{suggest_name(operation, list(Operation))}")
    for principal in principals:
        check_principal(principal)
    await registry.fresh_state()
    access = registry.access
    powerful = sorted(principals & access.super_users)
    if powerful:
        return AccessExplanation(True, f"{powerful[0]} is one of the super_users in the settings")
    decision = access.rules.decide(principals, Operation(operation), resource, host)
    if decision.rule is None:
        return AccessExplanation(decision.allowed, f"no rule matches, and access={_describe_default(access.rules)}")
    text = print_rule(decision.rule)
    source = next((row.source for row in find_sources(access) if row.rule == decision.rule), "")
    verb = "allows" if decision.allowed else "denies"
    return AccessExplanation(decision.allowed, f"the rule `{text}` {verb} it", text, source)


async def add_rule(registry: Registry, rule: AccessRule, *, via: str = "") -> bool:
    """Write a rule into the log, and return whether it is new.

    Raises `InvalidRequest`, `Conflict`, and `TooLarge` for more rules than `MOST_RULES`.
    """
    rule = check_rule(rule)
    key: Key = (print_rule(rule),)

    def change(items: Items) -> tuple[Changes, bool]:
        if key in items:
            return {}, False
        if len(items) >= MOST_RULES:
            raise TooLarge(f"there are {MOST_RULES} rules at most")
        changes = {key: msgspec.json.encode(rule)}
        require_way_back(registry, COLLECTION, items, changes)
        return changes, True

    return await edit_collection(registry, COLLECTION, change, via=via)


async def remove_rule(registry: Registry, rule: AccessRule, *, via: str = "") -> None:
    """Remove a rule from the log.

    Raises `NotFound` for an unknown rule. Raises `Conflict` for a rule of a file, or when the caller could not manage
    access afterwards.
    """
    rule = check_rule(rule)
    key: Key = (print_rule(rule),)

    def change(items: Items) -> tuple[Changes, None]:
        if key not in items:
            raise _explain_missing(registry, rule)
        changes: Changes = {key: None}
        require_way_back(registry, COLLECTION, items, changes)
        return changes, None

    await edit_collection(registry, COLLECTION, change, via=via)


def _explain_missing(registry: Registry, rule: AccessRule) -> SteleError:
    access = registry.access
    places = [row.source for row in access.sources if row.rule == rule] if isinstance(access, RegistryAccess) else []
    if places:
        return Conflict(f"the rule `{print_rule(rule)}` stands in {places[0]}: change it there")
    return NotFound(f"there is no rule `{print_rule(rule)}`")


def require_way_back(registry: Registry, collection: str, items: Items, changes: Changes) -> None:
    """Raise `Conflict` if the caller could not manage access after a change of rules.

    Such a change might be impossible to undo. Super users and the server itself can always undo it.
    """
    access, caller = registry.access, CALLER.get()
    if caller.is_system or not isinstance(access, RegistryAccess):
        return
    if not access.super_users.isdisjoint(caller.principal.names):
        return
    documents = [document for key, document in items.items() if key not in changes]
    documents += [document for document in changes.values() if document is not None]
    after = access.make_changed_rules(collection, documents)
    decision = after.decide(caller.principal.names, Operation.MANAGE_ACCESS, REGISTRY_RESOURCE, caller.address)
    if not decision.allowed:
        raise Conflict(
            "after this change you could not manage access any more: ask another administrator to make it, or set"
            " super_users"
        )


def require_manager(access: AccessControl) -> None:
    """Raise `InvalidRequest` if no principal at all could manage access: such a server could not be used."""
    rules = access.rules
    if rules.default_allow or access.super_users:
        return
    principals = {rule.principal for rule in rules.rules if rule.allow}
    if not any(
        rules.decide(frozenset({name}), Operation.MANAGE_ACCESS, REGISTRY_RESOURCE, rule.host).allowed
        for name in principals
        for rule in rules.rules
        if rule.principal == name
    ):
        raise InvalidRequest(
            "settings: with access=deny and without super_users no caller has any right: set super_users, or"
            " access_rules to a file with a rule such as `allow user:root admin registry`"
        )
