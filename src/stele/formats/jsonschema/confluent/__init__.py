"""The rulesets `confluent` and `confluent-lenient`: a structural diff, and a table of harmless changes for each.

Written from the published behaviour of the Confluent registry (names of changes, content models, matching of branches).
What those rules leave unseen is left unseen here: `patternProperties` as such, `propertyNames`, `format`, of `contains`
all but its bounds, `if`/`then`/`else`, names in `required` that are in no `properties`, the boolean bounds of draft-04.
Left out are slips that no reader of a change list wants: a default that is an object or array counts as changed there
whenever it is compared, multiples are compared without their fractions, and a lowered `exclusiveMaximum` may fail.

Source: docs/protocols/json-schema.md#confluents-rules.
"""

from stele.formats.jsonschema.confluent.changes import ALL, LENIENT, RULESETS, STRICT, SchemaChange, build_findings
from stele.formats.jsonschema.confluent.rules import list_changes

__all__ = ["ALL", "LENIENT", "RULESETS", "STRICT", "SchemaChange", "build_findings", "list_changes"]
