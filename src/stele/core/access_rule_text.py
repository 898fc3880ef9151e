"""Access rules as text, one per line: `allow user:ann writer subject orders-*`.

A line has `allow` or `deny`, a principal, operations and roles with commas between them, and a resource:

    registry                      the registry and everything in it
    registry itself               the registry, and nothing in it
    namespace NAME                a namespace and the subjects in it
    subject NAME [in NAMESPACE]   a subject; without a namespace, of the default one
    key NAME                      a key encryption key

It may end with `from ADDRESS`. `*` and `?` in a name are wildcards; a backslash before them makes them literal. A text
that has spaces or is empty stands in double quotes, as in JSON.

The model: docs/explanation/access.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

import msgspec

from stele.core.access import (
    ANY,
    ANYBODY,
    ROLES,
    AccessRule,
    NamePattern,
    Operation,
    Resource,
    ResourceType,
)
from stele.core.globs import split_glob
from stele.core.suggestions import suggest_name
from stele.errors import InvalidRequest

_LONGEST: Final = 1000
"""Maximum length of a name in a rule, in characters."""
_WORD: Final = re.compile(r'"(?:[^"\\]|\\.)*"(?=\s|\Z)|[^\s"]\S*')
_PLAIN: Final = re.compile(r"[!#-~\xa1-\U0010ffff][!-~\xa1-\U0010ffff]*")
_OPERATIONS: Final = (*ROLES, *(operation.value for operation in Operation))
_WILDCARDS: Final = re.compile(r"([\\*?])")


def check_rule(rule: AccessRule) -> AccessRule:
    """Return a rule in its simplest form: a glob without wildcards is a literal. Raises `InvalidRequest`."""
    check_principal(rule.principal)
    if not rule.operations:
        raise InvalidRequest("a rule needs an operation or a role")
    for name in rule.operations:
        if name not in _OPERATIONS:
            raise InvalidRequest(f"there is no operation or role {name!r}{suggest_name(name, _OPERATIONS)}")
    is_subject = rule.resource_type is ResourceType.SUBJECT
    if rule.namespace and not (is_subject or rule.resource_type is ResourceType.NAMESPACE):
        raise InvalidRequest(f"a rule for a {rule.resource_type} must not name a namespace")
    if bool(rule.name) != (is_subject or rule.resource_type is ResourceType.KEY):
        verb = "names no subject" if rule.name else "needs a name"
        raise InvalidRequest(f"a rule for a {rule.resource_type} {verb}")
    if rule.itself and rule.resource_type is not ResourceType.REGISTRY:
        raise InvalidRequest("only a rule for the registry can be limited to it")
    if max(len(rule.name), len(rule.namespace)) > _LONGEST:
        raise InvalidRequest(f"a name in a rule may have {_LONGEST} characters at most")
    if rule.host != ANY:
        _check_host(rule.host)
    operations = tuple(dict.fromkeys(rule.operations))
    if rule.resource_type is ResourceType.NAMESPACE:
        namespace, pattern = _simplify_pattern(rule.namespace, rule.pattern)
        return msgspec.structs.replace(rule, operations=operations, namespace=namespace, pattern=pattern)
    if rule.resource_type is ResourceType.REGISTRY:
        return msgspec.structs.replace(rule, operations=operations, pattern=NamePattern.LITERAL)
    name, pattern = _simplify_pattern(rule.name, rule.pattern)
    return msgspec.structs.replace(rule, operations=operations, name=name, pattern=pattern)


def check_principal(principal: str) -> None:
    """Raise `InvalidRequest` unless this can be the principal of a rule."""
    kind, separator, name = principal.partition(":")
    if principal == ANYBODY:
        return
    if not separator or kind not in {"user", "group"} or not name:
        raise InvalidRequest(f"{principal!r} is not a principal: write user:NAME, group:NAME, or * for every caller")
    if not name.isprintable() or len(name) > _LONGEST:
        raise InvalidRequest("the name of a principal has control characters or is too long")


def _check_host(host: str) -> None:
    try:
        ip_address(host)
    except ValueError:
        raise InvalidRequest(f"{host!r} is not an address that a request can come from") from None


def _simplify_pattern(name: str, pattern: NamePattern) -> tuple[str, NamePattern]:
    if pattern is NamePattern.PREFIX and not name:
        raise InvalidRequest("a prefix is empty: * stands for any name")
    if pattern is not NamePattern.GLOB:
        return name, pattern
    pieces = split_glob(name)
    plain = "".join(piece.text for piece in pieces)
    wildcards = [piece.wildcard for piece in pieces if piece.wildcard]
    if not wildcards and plain != ANY:
        return plain, NamePattern.LITERAL
    if wildcards == ["*"] and pieces[-1].wildcard:
        return (plain, NamePattern.PREFIX) if plain else (ANY, NamePattern.LITERAL)
    return name, NamePattern.GLOB


def parse_rule(text: str) -> AccessRule:
    """Return the rule that a line is. Raises `InvalidRequest`."""
    words = _split_words(text)
    if len(words) < 4 or words[0] not in {"allow", "deny"}:
        raise InvalidRequest(
            f"{text!r} is not a rule: write allow or deny, a principal, operations and a resource, such as"
            " `allow user:ann writer subject orders-*`"
        )
    principal, operations = words[1], tuple(words[2].split(","))
    return parse_rule_words(words[3:], principal, operations, allow=words[0] == "allow")


def parse_rule_words(
    resource: list[str], principal: str, operations: tuple[str, ...], *, allow: bool = True
) -> AccessRule:
    """Return a rule whose resource is given in words: `["subject", "orders-*"]`. Raises `InvalidRequest`."""
    host = ANY
    if len(resource) > 2 and resource[-2] == "from":
        resource, host = resource[:-2], resource[-1]
    rule = AccessRule(principal, operations, allow, host=host)
    match resource:
        case ["registry"]:
            return check_rule(rule)
        case ["registry", "itself"]:
            return check_rule(msgspec.structs.replace(rule, itself=True))
        case ["namespace", name]:
            return check_rule(_replace(rule, ResourceType.NAMESPACE, namespace=name))
        case ["subject", name]:
            return check_rule(_replace(rule, ResourceType.SUBJECT, name=name))
        case ["subject", name, "in", namespace]:
            return check_rule(_replace(rule, ResourceType.SUBJECT, name=name, namespace=namespace))
        case ["key", name]:
            return check_rule(_replace(rule, ResourceType.KEY, name=name))
        case _:
            raise _unknown_resource(resource)


def parse_resource_words(words: list[str]) -> Resource:
    """Return one resource that is given in words as in a rule, without wildcards. Raises `InvalidRequest`."""
    match words:
        case ["registry"]:
            return Resource(ResourceType.REGISTRY)
        case ["namespace", name]:
            return Resource(ResourceType.NAMESPACE, name)
        case ["subject", name]:
            return Resource(ResourceType.SUBJECT, "", name)
        case ["subject", name, "in", namespace]:
            return Resource(ResourceType.SUBJECT, namespace, name)
        case ["key", name]:
            return Resource(ResourceType.KEY, "", name)
        case _:
            raise _unknown_resource(words)


def parse_resource(text: str) -> Resource:
    """Return the resource that a text names: `subject orders in team`. Raises `InvalidRequest`."""
    return parse_resource_words(_split_words(text))


def _unknown_resource(words: list[str]) -> InvalidRequest:
    return InvalidRequest(
        f"{' '.join(words)!r} is nothing a rule can be about: write registry, namespace NAME,"
        " subject NAME [in NAMESPACE] or key NAME"
    )


def print_words(words: Iterable[str]) -> str:
    """Return words as one text, with quotes where a word needs them."""
    return " ".join(map(_quote_word, words))


def _replace(rule: AccessRule, kind: ResourceType, name: str = "", namespace: str = "") -> AccessRule:
    return msgspec.structs.replace(rule, resource_type=kind, name=name, namespace=namespace, pattern=NamePattern.GLOB)


def print_rule(rule: AccessRule) -> str:
    """Return a checked rule as a line that `parse_rule` reads."""
    words = ["allow" if rule.allow else "deny", rule.principal, ",".join(rule.operations), *print_resource_words(rule)]
    return print_words(words)


def print_resource_words(rule: AccessRule) -> list[str]:
    """Return the resource of a rule in words."""
    words = [rule.resource_type.value]
    match rule.resource_type:
        case ResourceType.REGISTRY if rule.itself:
            words.append("itself")
        case ResourceType.NAMESPACE:
            words.append(_print_pattern(rule.namespace, rule.pattern))
        case ResourceType.SUBJECT:
            words.append(_print_pattern(rule.name, rule.pattern))
            words += ["in", rule.namespace] if rule.namespace else []
        case ResourceType.KEY:
            words.append(_print_pattern(rule.name, rule.pattern))
    return words if rule.host == ANY else [*words, "from", rule.host]


def _print_pattern(name: str, pattern: NamePattern) -> str:
    if pattern is NamePattern.GLOB or (pattern is NamePattern.LITERAL and name == ANY):
        return name
    plain = _WILDCARDS.sub(r"\\\1", name)
    return f"{plain}*" if pattern is NamePattern.PREFIX else plain


def parse_rules(text: str) -> list[AccessRule]:
    """Return the rules in a text, one a line; a line that begins with # is a comment. Raises `InvalidRequest`."""
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                rules.append(parse_rule(line))
            except InvalidRequest as error:
                raise InvalidRequest(f"line {number}: {error}") from None
    return rules


def _split_words(text: str) -> list[str]:
    words, position = [], 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _WORD.match(text, position)
        if match is None:
            raise InvalidRequest(f"{text!r} has a double quote that is not closed")
        words.append(_unquote_word(match[0]))
        position = match.end()
    return words


def _unquote_word(word: str) -> str:
    if not word.startswith('"'):
        return word
    try:
        return msgspec.json.decode(word, type=str)
    except msgspec.MsgspecError:
        raise InvalidRequest(f"{word} must be quoted as in JSON") from None


def _quote_word(word: str) -> str:
    is_plain = _PLAIN.fullmatch(word) and not any(map(str.isspace, word))
    return word if is_plain else msgspec.json.encode(word).decode()
