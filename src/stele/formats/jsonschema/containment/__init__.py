"""The rulesets `containment` and `containment-lenient`: the reader's schema allows all that the writer's allows.

A pair is compatible when that is proved (by the canonical form of jsonschema-rs) and no counter-example turns up; it is
incompatible when a document is found that the writer's schema allows and the reader's refuses, and the finding shows
it. What is neither is undecided: an `UNKNOWN` finding, which refuses, under `containment`; a warning, which lets the
change pass, under `containment-lenient`. Version 2 of both compares patterns and lengths as regular languages; version
1 compares patterns as texts.

Source: docs/protocols/json-schema.md#containment.
"""

from stele.formats.jsonschema.containment.verdict import check_containment

__all__ = ["check_containment"]
