"""Who may do what: operations, resources, rules, and the decision on one request; pure.

A rule allows or denies a principal operations on resources. A rule for the registry covers everything in it, one for a
namespace covers the subjects in it. A deny rule beats every allow rule; where no rule matches, the default decides.

Source: docs/explanation/access.md
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

import msgspec

from stele.core.model import SettingsLevel, SubjectKey


class Operation(StrEnum):
    """What a caller may want to do; each is a right of its own."""

    LIST = "list"
    """See that a namespace or subject is there."""
    READ = "read"
    """Read schemas, versions, settings, bindings and their history; compare a schema with them."""
    REGISTER = "register"
    """Add versions, create subjects and namespaces, describe them, assign encoding ids."""
    FORCE = "force"
    """Get around a check: register without it, or enter a mode although something is there."""
    IMPORT = "import"
    """Give ids and version numbers oneself, and set the mode in which that is possible."""
    DELETE = "delete"
    """Soft-delete, and end incarnations."""
    PURGE = "purge"
    """Delete for good."""
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
    """See and change exporters and subscriptions."""
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
    """What a right can be about."""

    REGISTRY = "registry"
    NAMESPACE = "namespace"
    SUBJECT = "subject"
    KEY = "key"
    """A key that encrypts data keys, by its name."""


class Resource(NamedTuple):
    """What a caller wants to do something with. name is that of a subject or key, '' for the other types."""

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
    """Return a key that encrypts data keys as a resource."""
    return Resource(ResourceType.KEY, name=name)


def level_resource(level: SettingsLevel) -> Resource:
    """Return what settings are attached to as a resource."""
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
    PREFIX = "prefix"
    GLOB = "glob"
    """`*` is any number of characters, `?` is one."""


ANYBODY: Final = "*"
"""As the principal of a rule: everybody, also callers that did not say who they are."""


class AccessRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who may, or may not, do what.

    principal      `user:name`, `group:name`, or `*` for anybody
    operations     values of `Operation`, and names of `ROLES`
    allow          False: the rule denies
    resource_type  what the rule is about; the wider types cover the narrower ones
    namespace      of a namespace or subject; `*` is any
    name           of a subject or key, compared as `pattern` says; for a namespace, the pattern is for its name
    """

    principal: str
    operations: tuple[str, ...]
    allow: bool = True
    resource_type: ResourceType = ResourceType.REGISTRY
    namespace: str = ""
    name: str = ""
    pattern: NamePattern = NamePattern.LITERAL


class AccessDecision(NamedTuple):
    """Whether a request is allowed, and by which rule; None: by the default."""

    allowed: bool
    rule: AccessRule | None


class AccessRules:
    """Rules made ready for decisions.

    Args:
        rules: The rules; their order means nothing.
        default_allow: The decision where no rule matches.
        revision: Rises with every change of the rules: part of the key of every answer that is kept.
    """

    def __init__(self, rules: Iterable[AccessRule], *, default_allow: bool, revision: int = 0) -> None:
        self.rules = tuple(rules)
        self.default_allow = default_allow
        self.revision = revision

    def decide(self, principals: frozenset[str], operation: Operation, resource: Resource) -> AccessDecision:
        """Return whether one of these principals (`user:ann`, `group:dev`) may do that; deny beats allow."""
        allowing = None
        for rule in self.rules:
            if (rule.principal == ANYBODY or rule.principal in principals) and _matches(rule, operation, resource):
                if not rule.allow:
                    return AccessDecision(False, rule)
                allowing = allowing or rule
        return AccessDecision(self.default_allow if allowing is None else True, allowing)


def _matches(rule: AccessRule, operation: Operation, resource: Resource) -> bool:
    if operation not in rule.operations and not any(operation in ROLES.get(name, ()) for name in rule.operations):
        return False
    if rule.resource_type is ResourceType.REGISTRY:
        return True
    if rule.resource_type is ResourceType.NAMESPACE:
        return resource.type in {ResourceType.NAMESPACE, ResourceType.SUBJECT} and _matches_name(
            rule, rule.namespace, resource.namespace
        )
    if rule.resource_type is not resource.type:
        return False
    return rule.namespace in {ANYBODY, resource.namespace} and _matches_name(rule, rule.name, resource.name)


def _matches_name(rule: AccessRule, wanted: str, name: str) -> bool:
    match rule.pattern:
        case NamePattern.LITERAL:
            return wanted in {ANYBODY, name}
        case NamePattern.PREFIX:
            return name.startswith(wanted)
        case NamePattern.GLOB:
            return fnmatchcase(name, wanted)
