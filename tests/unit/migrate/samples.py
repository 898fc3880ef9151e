"""Registries for tests: small ones written by hand, and random ones by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from stele.core.metadata import Metadata
from stele.migrate import model
from stele.migrate.dependency_order import sort_by_dependency
from stele.migrate.extras import MigratedAssociation, MigratedDek, MigratedKek, RegistryExtras
from stele.migrate.model import Dump, DumpVersion
from stele.protocol.confluent import Config, Rule, RuleSet, SchemaReference


def row(
    subject: str, number: int, schema_id: int, text: str = "", *refers: tuple[str, int], deleted: bool = False
) -> DumpVersion:
    """Return a version. Its default text is its id."""
    references = [SchemaReference(f"r{place}", target, version) for place, (target, version) in enumerate(refers)]
    return model.normalize_version(
        subject, number, schema_id, text or f'"t{schema_id}"', references=references, deleted=deleted
    )


def dump(*versions: DumpVersion, contexts: tuple[str, ...] = (".",)) -> Dump:
    """Return a registry with versions only."""
    return Dump(
        sort_by_dependency(versions), contexts=tuple(sorted({*contexts, *(version.context for version in versions)}))
    )


_texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
_subjects = st.sampled_from(["a", "b", "", "é/ %", ":.t:a", ":.t:b", ":.u:c"])
_metadata = st.none() | st.builds(
    Metadata,
    st.none() | st.dictionaries(_texts, st.lists(_texts, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2),
    st.none() | st.dictionaries(_texts, _texts, min_size=1, max_size=2),
    st.none() | st.lists(_texts, min_size=1, max_size=2).map(tuple),
)
_rules = st.none() | st.lists(
    st.builds(
        Rule,
        name=_texts,
        doc=st.none() | _texts,
        kind=st.sampled_from(["TRANSFORM", "CONDITION"]),
        type=_texts,
        tags=st.none() | st.lists(_texts, max_size=2),
        params=st.none() | st.dictionaries(_texts, _texts, max_size=2),
        disabled=st.booleans(),
    ),
    max_size=2,
)
_rule_sets = st.none() | st.builds(RuleSet, migration_rules=_rules, domain_rules=_rules, enable_at=st.none())
_configs = st.builds(
    Config,
    compatibility_level=st.none() | st.sampled_from(["NONE", "FULL"]),
    alias=st.none() | st.just("b"),
    normalize=st.none() | st.booleans(),
    default_metadata=_metadata,
    override_rule_set=_rule_sets,
).map(model.normalize_config)
_levels = st.sampled_from(["", ":.__GLOBAL:", ":.t:", "a", ":.t:a"])


_times = st.none() | st.integers(0, 2**40)
_deks = st.builds(
    MigratedDek,
    kek_name=st.sampled_from(["k", "l"]),
    subject=_subjects,
    version=st.integers(1, 3),
    algorithm=st.sampled_from(["AES256_GCM", "AES256_SIV"]),
    encrypted_key_material=_texts,
    ts=_times,
    deleted=st.booleans(),
)
_associations = st.builds(
    MigratedAssociation,
    subject=_subjects,
    guid=_texts,
    resource_name=_texts,
    resource_namespace=_texts,
    resource_id=_texts,
    resource_type=st.just("topic"),
    association_type=st.sampled_from(["key", "value"]),
    lifecycle=st.sampled_from(["WEAK", "STRONG"]),
    frozen=st.booleans(),
)
_besides = st.builds(
    RegistryExtras,
    st.just(())
    | st.just(
        (MigratedKek("k", "aws-kms", "arn", kms_props={"region": "b"}, ts=5), MigratedKek("l", "x", "y", deleted=True))
    ),
    st.lists(_deks, max_size=2, unique_by=lambda row: row.key).map(
        lambda rows: tuple(sorted(rows, key=lambda row: (row.kek_name, row.subject, row.algorithm, row.version)))
    ),
    st.lists(_associations, max_size=1).map(tuple),
)


def _absolute(subject: str) -> str:
    return subject if subject.startswith(":.") else f":.:{subject}"


@st.composite
def dumps(draw: st.DrawFn) -> Dump:
    """Draw a registry in which no two schemas of a context share an id."""
    versions: list[DumpVersion] = []
    numbers = draw(st.lists(st.tuples(_subjects, st.integers(1, 5)), unique=True, max_size=8))
    for schema_id, (subject, number) in enumerate(numbers, 1):
        refers = draw(st.lists(st.sampled_from(versions), max_size=2)) if versions else []
        versions.append(
            model.normalize_version(
                subject,
                number,
                schema_id,
                draw(_texts),
                schema_type=draw(st.sampled_from(["AVRO", "JSON", "PROTOBUF"])),
                references=[
                    SchemaReference(draw(_texts), _absolute(target.subject), target.version) for target in refers
                ],
                metadata=draw(_metadata),
                rule_set=draw(_rule_sets),
                deleted=draw(st.booleans()),
                ts=draw(_times),
            )
        )
    contexts = {".", *draw(st.sets(st.sampled_from([".t", ".v"]))), *(version.context for version in versions)}
    filled = sorted({version.context for version in versions})
    return Dump(
        sort_by_dependency(versions),
        dict(sorted(draw(st.dictionaries(_levels, _configs, max_size=3)).items())),
        dict(sorted(draw(st.dictionaries(_levels, st.sampled_from(["READONLY", "IMPORT"]), max_size=3)).items())),
        tuple(sorted(contexts)),
        {context: 1000 + len(context) for context in filled if draw(st.booleans())},
        extras=draw(_besides),
    )
