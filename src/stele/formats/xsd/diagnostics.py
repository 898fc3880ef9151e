"""What the XML Schema library says, in words for authors, with what would have been right."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Rephrased(NamedTuple):
    """A sentence about a fault, and what was expected where that is known."""

    why: str
    expected: str | None = None


_NUMBER: Final = r"attribute (?P<name>\w+)='(?P<value>.*?)': invalid literal for int\(\).*"
_RULES: Final = tuple(
    (re.compile(pattern, re.DOTALL), Rephrased(why, expected))
    for pattern, why, expected in (
        (_NUMBER, r"\g<value> is no number for \g<name>", "a whole number, 0 or more"),
        (r"attribute (\w+)='(.*?)': value must be one of \[(.*)\]", r"\2 is no value of \1", r"one of \3"),
        (r"attribute (name|id)='(.*?)': value doesn't match.*", r"'\2' is no name", "a name without colon and blanks"),
        (r"duplicated value \('(.*)',\) for XsdKey\(name='(.*)'\)", r"\2 '\1' is declared twice", "another name"),
        (r"failed decoding '(.*)' with XsdAtomic\w*\(name='(.*?)'\).*", r"'\1' is no \2", r"a value of \2"),
        (
            r"unknown (type|element|attribute|group|attributeGroup) ('.*')",
            r"unknown \1 \2",
            r"a \1 declared or built in",
        ),
        (r"missing base type ('.*')", r"unknown base type \1", "a type declared or built in"),
        (r"missing required attribute '(.*)'", r"missing required attribute '\1'", r"\1=…"),
        (r"Unexpected child with tag '(.*?)'.*", r"the element \1 is not allowed here", "what XML Schema allows here"),
        (
            r"one or more facets are not applicable, admitted set is .*",
            "a facet of another kind of type",
            "other facets",
        ),
        (r"'default' value ('.*') is not compatible.*", r"the default \1 does not fit the type", "a value of the type"),
        (
            r"'fixed' value ('.*') is not compatible.*",
            r"the fixed value \1 does not fit the type",
            "a value of the type",
        ),
        (
            r"'default' and 'fixed' attributes are mutually exclusive",
            "there is a default and a fixed value",
            "one of them",
        ),
        (
            r"Unique Particle Attribution violation between \w+\(name='(.*?)'.*?\w+\(name='(.*?)'.*",
            r"it cannot be told which of the declarations \1 and \2 an element belongs to",
            "different names, or something between them that has to occur",
        ),
        (
            r"maxOccurs must be 'unbounded' or greater.*",
            "maxOccurs is less than minOccurs",
            "a number as great, or unbounded",
        ),
        (r"Circular definition detected for (.*)", r"\1 contains itself", None),
        (
            r"the attribute 'type' and a (.*) local declaration are mutually exclusive",
            r"there is the attribute type and a \1 inside",
            "one of them",
        ),
        (
            r"(an unexpected end|.+) at character (\d+) of the pattern (.*)",
            r"\1 at character \2 of the pattern \3",
            "a pattern",
        ),
    )
)


def rephrase_message(message: str) -> Rephrased:
    """A message of the library in other words; the message itself where there are none."""
    for pattern, words in _RULES:
        match = pattern.fullmatch(message)
        if match is not None:
            return Rephrased(match.expand(words.why), words.expected and match.expand(words.expected))
    return Rephrased(message)
