"""Access control: operations, resources, rules, and the decision on one request; pure.

A rule allows or denies a principal operations on resources. A rule for the registry covers everything in it, one for a
namespace covers the subjects in it. A deny rule beats every allow rule; where no rule matches, the default decides.

The model: docs/explanation/access.md.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from stele.core.globs import compile_glob, split_glob
from stele.core.model import SettingsLevel, SubjectKey


class Operation(StrEnum):
    """An operation of a caller. Each is a right of its own."""

    LIST = "list"
    """See that a namespace or subject exists."""
    READ = "read"
    """Read schemas, versions, settings, bindings and their history; compare a schema with them."""
    REGISTER = "register"
    """Add versions, create subjects and namespaces, describe them, assign encoding ids."""
    FORCE = "force"
    """Bypass a check: register without it, or enter a mode although the level is not empty."""
    IMPORT = "import"
    """Choose ids and version numbers, and set the mode in which that is possible."""
    DELETE = "delete"
    """Soft-delete versions and subjects, and end incarnations."""
    PURGE = "purge"
    """Delete versions and subjects permanently."""
    CHANGE_POLICY = "change-policy"
    """Set compatibility, settings, modes and rulesets."""
    BIND = "bind"
    """Bind resources such as topics to subjects."""
    EXPORT = "export"
    """Read the journal and archives of everything."""
    READ_KEYS = "read-keys"
    """See keys that encrypt data, without their material."""
    UNWRAP_KEYS = "unwrap-keys"
    """Have the server decrypt the material of a data key."""
    MANAGE_KEYS = "manage-keys"
    """Create, change, share, delete keys that encrypt data."""
    MANAGE_EXPORTERS = "manage-exporters"
    """See and change exporters, subscriptions and replications."""
    MANAGE_ACCESS = "manage-access"
    """See and change rules and API keys."""
    READ_AUDIT = "read-audit"
    """Read the audit trail."""


ROLES: Final[dict[str, frozenset[Operation]]] = {
    "reader": frozenset({Operation.LIST, Operation.READ, Operation.READ_KEYS}),
    "writer": frozenset({Operation.LIST, Operation.READ, Operation.READ_KEYS, Operation.REGISTER, Operation.BIND}),
    "owner": frozenset(Operation) - {Operation.MANAGE_ACCESS, Operation.READ_AUDIT, Operation.EXPORT},
    "admin": frozenset(Operation),
}
"""Names that stand for several operations in a rule."""


class ResourceType(StrEnum):
    """Type of a resource to which a right applies."""

    REGISTRY = "registry"
    NAMESPACE = "namespace"
    SUBJECT = "subject"
    KEY = "key"
    """A key encryption key, by its name."""


class Resource(NamedTuple):
    """The resource of an operation. name is the name of a subject or key, '' for the other types."""

    type: ResourceType
    namespace: str = ""
    name: str = ""


REGISTRY_RESOURCE: Final = Resource(ResourceType.REGISTRY)


def subject_resource(key: SubjectKey) -> Resource:
    """Return a subject as a resource."""
    return Resource(ResourceType.SUBJECT, key.namespace, key.name)


def namespace_resource(namespace: str) -> Resource:
    """Return a namespace as a resource."""
    return Resource(ResourceType.NAMESPACE, namespace)


def key_resource(name: str) -> Resource:
    """Return a key encryption key as a resource."""
    return Resource(ResourceType.KEY, name=name)


def level_resource(level: SettingsLevel) -> Resource:
    """Return the resource to which a level's settings belong."""
    if level.namespace is None:
        return REGISTRY_RESOURCE
    return (
        namespace_resource(level.namespace)
        if level.subject is None
        else subject_resource(SubjectKey(level.namespace, level.subject))
    )


class NamePattern(StrEnum):
    """How the name in a rule is compared."""

    LITERAL = "literal"
    """The names are equal; `*` is any name."""
    PREFIX = "prefix"
    GLOB = "glob"
    """`*` is any number of characters, `?` is one; a backslash takes the next character as it is."""


ANYBODY: Final = "*"
"""Principal of a rule for all callers, including anonymous ones."""
ANY: Final = "*"
"""Namespace, name or host of a rule that matches any value."""


class AccessRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A rule that allows or denies a principal some operations on resources.

    principal      `user:name`, `group:name`, or `*` for every caller
    operations     values of `Operation`, and names of `ROLES`
    allow          False: the rule denies
    resource_type  type of the resources; the wider types cover the narrower ones
    namespace      namespace of the subjects, or the namespace itself; `*` is any
    name           name of a subject or key, compared as `pattern` says; for a namespace, the pattern is for its name
    host           address that the request must come from; `*` is any
    itself         the rule applies to the registry itself, and covers nothing in it
    """

    principal: str
    operations: tuple[str, ...]
    allow: bool = True
    resource_type: ResourceType = ResourceType.REGISTRY
    namespace: str = ""
    name: str = ""
    pattern: NamePattern = NamePattern.LITERAL
    host: str = ANY
    itself: bool = False


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user that created an object which acts later, such as a subscription.

    The object may do what that user may do at that time.

    name       name of the user; '' for an anonymous caller
    groups     groups of the user at creation
    address    address of the user at creation
    is_system  the server itself created it: it may do everything
    """

    name: str = ""
    groups: tuple[str, ...] = ()
    address: str = ""
    is_system: bool = False


class AccessDecision(NamedTuple):
    """Whether a request is allowed, and by which rule; None: by the default."""

    allowed: bool
    rule: AccessRule | None


class AccessRules:
    """Rules, indexed for decisions.

    Args:
        rules: The rules. Their order only determines which of several matching rules a decision names: the first one.
        default_allow: The decision where no rule matches.
        revision: Rises with every change of the rules. It is part of the key of every cached answer.
    """

    def __init__(self, rules: Iterable[AccessRule], *, default_allow: bool, revision: int = 0) -> None:
        self.rules = tuple(dict.fromkeys(rules))
        self.default_allow = default_allow
        self.revision = revision
        self.has_hosts = any(rule.host != ANY for rule in self.rules)
        self._principals: dict[str, dict[tuple[ResourceType | None, str], _RulesByName]] = {}
        for position, rule in enumerate(self.rules):
            self._add_rule(_IndexedRule(position, _expand_operations(rule.operations), rule))
        self._decisions: dict[tuple[frozenset[str], Operation, Resource, str], AccessDecision] = {}

    def decide(
        self, principals: frozenset[str], operation: Operation, resource: Resource, host: str = ""
    ) -> AccessDecision:
        """Return whether one of these principals (`user:ann`, `group:dev`) may perform an operation; deny beats allow.

        host is the address that the request comes from, '' when that is not known.
        """
        key = (principals, operation, resource, host if self.has_hosts else "")
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= _MOST_DECISIONS:
                self._decisions.clear()
            decision = self._decisions[key] = self._find_decision(*key)
        return decision

    def _find_decision(
        self, principals: frozenset[str], operation: Operation, resource: Resource, host: str
    ) -> AccessDecision:
        allowing: _IndexedRule | None = None
        denying: _IndexedRule | None = None
        for row in self._list_candidates(principals, resource):
            if operation not in row.operations or row.rule.host not in {ANY, host}:
                continue
            if row.rule.allow:
                allowing = row if allowing is None else min(allowing, row)
            else:
                denying = row if denying is None else min(denying, row)
        if denying is not None:
            return AccessDecision(False, denying.rule)
        if allowing is not None:
            return AccessDecision(True, allowing.rule)
        return AccessDecision(self.default_allow, None)

    def _add_rule(self, row: _IndexedRule) -> None:
        rule = row.rule
        match rule.resource_type:
            case ResourceType.REGISTRY:
                key, name, pattern = (None if rule.itself else ResourceType.REGISTRY, ""), ANY, NamePattern.LITERAL
            case ResourceType.NAMESPACE:
                key, name, pattern = (ResourceType.NAMESPACE, ""), rule.namespace, rule.pattern
            case _:
                key, name, pattern = (rule.resource_type, rule.namespace), rule.name, rule.pattern
        tables = self._principals.setdefault(rule.principal, {})
        tables.setdefault(key, _RulesByName()).add_rule(row, name, pattern)

    def _list_candidates(self, principals: Iterable[str], resource: Resource) -> list[_IndexedRule]:
        """Return the rules for any of the principals that cover the resource."""
        kind, namespace, name = resource
        places: list[tuple[tuple[ResourceType | None, str], str]] = [((ResourceType.REGISTRY, ""), "")]
        if kind is ResourceType.REGISTRY:
            places.append(((None, ""), ""))
        elif kind is ResourceType.NAMESPACE:
            places.append(((ResourceType.NAMESPACE, ""), namespace))
        else:
            places += [((kind, namespace), name), ((kind, ANY), name)]
            if kind is ResourceType.SUBJECT:
                places.append(((ResourceType.NAMESPACE, ""), namespace))
        rows: list[_IndexedRule] = []
        for principal in (*principals, ANYBODY):
            tables = self._principals.get(principal)
            if tables is not None:
                for key, wanted in places:
                    if key in tables:
                        tables[key].add_matches(wanted, rows)
        return rows


_MOST_DECISIONS: Final = 20_000
"""Maximum number of cached decisions."""


class _IndexedRule(NamedTuple):
    """A rule, its position among all rules, and its operations."""

    position: int
    operations: frozenset[Operation]
    rule: AccessRule


class _RulesByText:
    """Rules by the text at the beginning or end of a name, with the glob that the name must match."""

    def __init__(self, *, at_end: bool) -> None:
        self._at_end = at_end
        self._rules: dict[str, list[tuple[str | None, _IndexedRule]]] = {}
        self._lengths: list[int] = []

    def add_rule(self, text: str, glob: str | None, row: _IndexedRule) -> None:
        """Add a rule."""
        if len(text) not in self._lengths:
            insort(self._lengths, len(text))
        self._rules.setdefault(text, []).append((glob, row))

    def add_matches(self, name: str, rows: list[_IndexedRule]) -> None:
        """Append the rules whose pattern matches a name."""
        for length in self._lengths:
            if length > len(name):
                return
            candidates = self._rules.get(name[len(name) - length :] if self._at_end else name[:length])
            if candidates is not None:
                rows += [
                    row for glob, row in candidates if glob is None or compile_glob(glob).fullmatch(name) is not None
                ]


class _RulesByName:
    """Rules for one kind of name, found by a name.

    Globs are found by their literal beginning; globs that begin with a wildcard, by their literal end. Only rules that
    are found this way are matched.
    """

    def __init__(self) -> None:
        self._literals: dict[str, list[_IndexedRule]] = {}
        self._beginnings = _RulesByText(at_end=False)
        self._endings = _RulesByText(at_end=True)

    def add_rule(self, row: _IndexedRule, name: str, pattern: NamePattern) -> None:
        """Add a rule for this name."""
        if pattern is NamePattern.GLOB:
            pieces = split_glob(name)
            beginning, ending = pieces[0].text, pieces[-1].text
            table = self._endings if ending and not beginning else self._beginnings
            table.add_rule(beginning or ending, name, row)
        elif pattern is NamePattern.PREFIX or name == ANY:
            self._beginnings.add_rule(name if pattern is NamePattern.PREFIX else "", None, row)
        else:
            self._literals.setdefault(name, []).append(row)

    def add_matches(self, name: str, rows: list[_IndexedRule]) -> None:
        """Append the rules whose pattern matches a name."""
        rows += self._literals.get(name, ())
        self._beginnings.add_matches(name, rows)
        self._endings.add_matches(name, rows)


def _expand_operations(names: Iterable[str]) -> frozenset[Operation]:
    """Return the operations of names of operations and roles. Unknown names are ignored."""
    return frozenset().union(*(ROLES.get(name) or _SINGLE.get(name, frozenset()) for name in names))


_SINGLE: Final[dict[str, frozenset[Operation]]] = {operation.value: frozenset({operation}) for operation in Operation}
