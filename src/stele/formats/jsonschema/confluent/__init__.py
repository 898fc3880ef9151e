"""The rulesets `confluent` and `confluent-lenient`: a structural diff, and a table of harmless changes for each.

Written from the published behaviour of the Confluent registry (names of changes, content models, matching of branches).
What those rules leave unseen is left unseen here: `patternProperties` as such, `propertyNames`, `contains`, `format`,
`if`/`then`/`else`, names in `required` that are in no `properties`, the boolean bounds of draft-04.
"""

from stele.formats.jsonschema.confluent.changes import ALL, LENIENT, STRICT, Change
from stele.formats.jsonschema.confluent.explain import RULESETS, findings
from stele.formats.jsonschema.confluent.rules import changes

__all__ = ["ALL", "LENIENT", "RULESETS", "STRICT", "Change", "changes", "findings"]
