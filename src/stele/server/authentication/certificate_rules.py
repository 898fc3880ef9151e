"""Maps a client's certificate to a principal, by rules over its distinguished name and its alternative names.

The rules look like Kafka's `ssl.principal.mapping.rules`: the first one that fits decides.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from stele.errors import InvalidRequest, Unauthenticated
from stele.service.access import PeerCertificate, Principal

METHOD: Final = "mtls"
"""Name of the method by which callers with a certificate authenticate."""
_PART: Final = r"((?:\\.|[^\\/])*)"
_RULE = re.compile(rf"\s*(?:(?P<default>DEFAULT)|(?P<kind>RULE|SAN):{_PART}/{_PART}/(?P<case>[LU]?))\s*(?:,|\Z)")
_MOST_KNOWN: Final = 10_000
"""Number of certificates whose principal is cached."""


class _Rule(NamedTuple):
    """One rule.

    pattern must match a whole name. replacement is a template of `re`; None stands for the name as it is.
    """

    is_for_subject: bool = True
    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""


class CertificateRules:
    """Maps certificates to principals.

    Args:
        text: Rules with commas between. `RULE:pattern/replacement/` is about the distinguished name
            (`CN=ann,OU=dev,O=Example`), `SAN:pattern/replacement/` about each alternative name (`DNS:host`,
            `URI:spiffe://…`, `email:…`); `L` or `U` at the end changes the case. `DEFAULT` takes the whole
            distinguished name.

    Raises:
        InvalidRequest: The text is no such list.
    """

    def __init__(self, text: str) -> None:
        self._rules = _parse_rules(text)
        self._known: dict[PeerCertificate, Principal] = {}

    def find_principal(self, certificate: PeerCertificate) -> Principal:
        """Return the principal of a certificate. Raises `Unauthenticated` where no rule fits."""
        known = self._known.get(certificate)
        if known is None:
            known = Principal(self._find_name(certificate), method=METHOD)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[certificate] = known
        return known

    def _find_name(self, certificate: PeerCertificate) -> str:
        for rule in self._rules:
            for name in [certificate.subject] if rule.is_for_subject else certificate.names:
                principal_name = _apply_rule(rule, name)
                if principal_name:
                    return principal_name
        raise Unauthenticated("no rule of mtls_principal_rules maps the client's certificate to a principal")


def _apply_rule(rule: _Rule, name: str) -> str:
    if rule.pattern is None:
        return name
    match = rule.pattern.fullmatch(name)
    if match is None:
        return ""
    principal_name = match.expand(rule.replacement)
    return (
        principal_name.lower() if rule.case == "L" else principal_name.upper() if rule.case == "U" else principal_name
    )


def _parse_rules(text: str) -> list[_Rule]:
    rules: list[_Rule] = []
    position = 0
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None:
            raise InvalidRequest(
                f"mtls_principal_rules: {text[position:]!r} is not RULE:pattern/replacement/, SAN:pattern/replacement/"
                " or DEFAULT"
            )
        position = match.end()
        rules.append(_Rule() if match["default"] else _make_rule(match))
    if not rules:
        raise InvalidRequest("mtls_principal_rules: there is no rule")
    return rules


def _make_rule(match: re.Match[str]) -> _Rule:
    pattern, replacement = match[3].replace(r"\/", "/"), match[4].replace(r"\/", "/")
    template = re.sub(r"\$(\d)", r"\\g<\1>", replacement.replace("\\", r"\\"))
    try:
        compiled = re.compile(pattern)
        _check_template(compiled, template)
    except (re.error, IndexError) as error:
        raise InvalidRequest(f"mtls_principal_rules: {match[0].strip()!r}: {error}") from None
    return _Rule(match["kind"] == "RULE", compiled, template, match["case"])


def _check_template(pattern: re.Pattern[str], template: str) -> None:
    """Raise `re.error` for a template that names a group which the pattern does not have."""
    for number in re.findall(r"\\g<(\d)>", template):
        if int(number) > pattern.groups:
            raise re.error(f"the pattern has no group {number}")
