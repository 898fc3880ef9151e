"""Differences between the registries that speak this dialect, as data: one `Profile` for each release and maker.

Source: docs/protocols/confluent.md, docs/protocols/redpanda.md#answers, docs/protocols/karapace.md#answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from stele.core.model import Mode

ProfileName = Literal["7.9", "8.0", "8.1", "8.2", "8.3", "8.4", "redpanda", "karapace"]
"""A release of Confluent's registry, or another maker's registry."""


class Registered(Enum):
    """What the response to a registration contains."""

    VERSION = "the whole version"
    ID_UNLESS_CHANGED = "the id, and the version where the registry completed the request"
    ID = "the id"


class TextStyle(Enum):
    """How the text of a schema is stored if it is not printed from the parsed schema."""

    AS_SENT = "byte by byte"
    MINIFIED = "JSON as sent, without white space between its parts"


class EmptySubject(Enum):
    """Response to a check against the latest version of a subject that has no versions."""

    COMPATIBLE = "compatible"
    NO_SUBJECT = "40401"
    NO_VERSION = "40402"


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Behaviour in which registries differ. The defaults are those of Confluent 8.1.

    release               the release it reports, and whose behaviour it has; 8.3 and 8.4 follow source 8.5.0-0
    refusal_code          `error_code` of an incompatible schema
    has_guids             answers have `guid`, `ts`, `deleted` and always `schemaType`; there are look-ups by GUID and
                          associations, and contexts can be deleted
    registered            what the response to a registration contains
    names_missing_id      whether the message of 40403 has the id, also for the versions and subjects of a schema
    subject_first         whether a look-up answers 40401 before it parses the schema, and reports an unusable schema as
                          a failed look-up
    all_when_transitive   whether a check against one version compares with all of them if the level is transitive
    oldest_first          whether such a check begins with the oldest version, so that its message names the first
                          version
                          that refuses
    empty_subject         see `EmptySubject`
    modes                 the modes that can be set
    override_wins         whether READONLY_OVERRIDE of the default context wins over all modes; else it means READONLY
    names_contexts        whether messages about the mode name the context
    mode_first            whether deleting settings checks the mode before it looks for the settings
    texts                 see `TextStyle`, by format; texts of other formats are printed from the parsed schema
    rulesets              the ruleset by format, if settings name none
    checks_defaults       whether a default of a wrong type is refused
    is_karapace           whether bodies are checked, and incompatibilities and refused texts worded, as in Karapace
    lists_subjects_of_id  whether `includeSubjects` adds the subjects to a schema by id
    by_age                whether subjects are listed in the order of their creation, not by name
    level_after_delete    whether deleting settings answers the level in force afterwards, and accepts a level without
                          settings
    mode_falls_back       whether a known subject without a mode answers the mode in force; an unknown one answers 40401
    """

    release: str
    refusal_code: int = 409
    has_guids: bool = True
    registered: Registered = Registered.VERSION
    names_missing_id: bool = False
    subject_first: bool = False
    all_when_transitive: bool = False
    oldest_first: bool = False
    empty_subject: EmptySubject = EmptySubject.COMPATIBLE
    modes: frozenset[Mode] = frozenset(Mode)
    override_wins: bool = True
    names_contexts: bool = True
    mode_first: bool = False
    texts: Mapping[str, TextStyle] = MappingProxyType({})
    rulesets: Mapping[str, str] = MappingProxyType({})
    checks_defaults: bool = True
    is_karapace: bool = False
    lists_subjects_of_id: bool = False
    by_age: bool = False
    level_after_delete: bool = False
    mode_falls_back: bool = False


_OLD: Final = Profile(release="7.9.0", has_guids=False, registered=Registered.ID_UNLESS_CHANGED, names_contexts=False)
_NEW: Final = Profile(release="8.2.0", refusal_code=40901, override_wins=False)

PROFILES: Final[Mapping[ProfileName, Profile]] = MappingProxyType(
    {
        "7.9": _OLD,
        "8.0": Profile(release="8.0.0", names_contexts=False),
        "8.1": Profile(release="8.1.1"),
        "8.2": _NEW,
        "8.3": replace(_NEW, release="8.3.0"),
        "8.4": replace(_NEW, release="8.4.0"),
        "redpanda": replace(
            _OLD,
            registered=Registered.ID,
            names_missing_id=True,
            subject_first=True,
            all_when_transitive=True,
            empty_subject=EmptySubject.NO_SUBJECT,
            modes=frozenset({Mode.READWRITE, Mode.READONLY}),
            mode_first=True,
            texts=MappingProxyType({"protobuf": TextStyle.AS_SENT}),
        ),
        "karapace": replace(
            _OLD,
            registered=Registered.ID,
            subject_first=True,
            all_when_transitive=True,
            oldest_first=True,
            empty_subject=EmptySubject.NO_VERSION,
            texts=MappingProxyType({"avro": TextStyle.MINIFIED}),
            rulesets=MappingProxyType({"json": "karapace@2"}),
            checks_defaults=False,
            is_karapace=True,
            lists_subjects_of_id=True,
            by_age=True,
            level_after_delete=True,
            mode_falls_back=True,
        ),
    }
)
"""The profiles by name."""
