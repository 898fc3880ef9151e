"""Two dialects of one idea: AVRO-1124, the proposal of a REST service for Avro schemas, and schema-repo, its successor.

| below                                                   | dialect                                             |
|---------------------------------------------------------|-----------------------------------------------------|
| `/avro1124/schemas`                                     | AVRO-1124: groups, ids, `compatibility_model`       |
| `/avro1124/schema-repo`, `/schema-repo`                 | schema-repo: subjects with a config, ids, validators |
| `/avro1124/schema-repo-browser`, `/schema-repo-browser` | the same, to look at                                |
| `/avro1124/…`, `/schema-repo-admin/…` `status`, `config` | of the server                                      |

schema-repo's Java client looks for `status` and `config` beside the URL it is given, so that is best
`…/avro1124/schema-repo`. With `…/schema-repo` it finds the status, which is at `/status` too, but not the config:
`/config` is another dialect's.

Source: docs/protocols/schema-repo.md.
"""

from __future__ import annotations

from stele.apis.schema_repo.app import SEGMENTS, application, check_options
from stele.apis.schema_repo.options import SchemaRepoOptions, parse_models, split_words

__all__ = ["SEGMENTS", "SchemaRepoOptions", "application", "check_options", "parse_models", "split_words"]
