"""Two related dialects: AVRO-1124, the proposal of a REST service for Avro schemas, and schema-repo, its successor.

| below                                                   | dialect                                             |
|---------------------------------------------------------|-----------------------------------------------------|
| `/avro1124/schemas`                                     | AVRO-1124: groups, ids, `compatibility_model`       |
| `/avro1124/schema-repo`, `/schema-repo`                 | schema-repo: subjects with a config, ids, validators |
| `/avro1124/schema-repo-browser`, `/schema-repo-browser` | schema-repo as HTML pages                           |
| `/avro1124/…`, `/schema-repo-admin/…` `status`, `config` | status and config of the server                    |

schema-repo's Java client requests `status` and `config` beside its configured URL, so the best URL is
`…/avro1124/schema-repo`. With `…/schema-repo` it finds the status, which is at `/status` too, but not the config,
because `/config` belongs to another dialect.

Source: docs/protocols/schema-repo.md.
"""

from __future__ import annotations

from stele.apis.schema_repo.app import SEGMENTS, application, check_options
from stele.apis.schema_repo.options import SchemaRepoOptions, parse_models, split_words

__all__ = ["SEGMENTS", "SchemaRepoOptions", "application", "check_options", "parse_models", "split_words"]
