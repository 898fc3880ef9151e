"""Infer: a schema for raw data, from all of the data in one Spark job, with a confidence for each part.

Data without types (JSON documents, CSV) get the schema that the formats' own inference finds. Columns with types
(Parquet, ORC, tables) keep them. The data add which fields are always there and which texts have few values. The result
can be offered to a registry, which checks it first and registers it if no rule is against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from stele.client import Metadata, ResolvedSchema, Schema, SchemaRegistryClient, SchemaSnapshot
from stele.client.serdes.schemas import parse_schema
from stele.errors import Incompatible, Invalid, InvalidRequest, NotFound
from stele.formats.capabilities import ANNOTATIONS, HasOutline
from stele.formats.conversion.convert import write_model
from stele.formats.conversion.infer import InferOptions
from stele.formats.conversion.model import Loss
from stele.formats.registry import get_format
from stele.spark.data_audit.aggregation import aggregate_rows
from stele.spark.data_audit.data_stats import MOST_VALUES
from stele.spark.data_audit.infer_evidence import ALL, CollectedEvidence, DocumentAggregator, RowAggregator
from stele.spark.data_audit.infer_proposal import ProposedField, make_model, propose_fields, refine_model, with_notes
from stele.spark.data_audit.report import AuditReport, Bars, Fact, ReportState, Section, pluralize
from stele.spark.registry import PATIENCE, RegistryLike, as_picklable, get_client, retry_unavailable
from stele.spark.session import require_spark, spark_failures
from stele.spark.types import from_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PREFIX: Final = "stele.inferred"
"""Prefix of properties in a schema's metadata: `stele.inferred.records`, `stele.inferred.field.place.city` …"""
MOST_NOTES: Final = 200
_LONGEST: Final = 300
"""Maximum length of a property in characters."""


class SchemaOffer(msgspec.Struct, frozen=True):
    """The result of offering a schema to a registry.

    version, id  version number and id of the schema; 0 if it was refused
    there        whether the newest version already had that schema, except for its documentation
    against      reasons why the subject's policy refuses it
    """

    subject: str
    version: int = 0
    id: int = 0
    there: bool = False
    against: tuple[str, ...] = ()

    @property
    def is_registered(self) -> bool:
        """Whether the subject has the schema."""
        return self.version > 0


def offer_schema(
    registry: RegistryLike, subject: str, schema: ResolvedSchema, notes: Metadata, *, patience: float
) -> SchemaOffer:
    """Register a schema with its notes, unless the newest version is the same or the policy refuses it.

    Raises `Invalid` for a snapshot, `MalformedSchema`, `ReadOnly`, `RegistryUnreachable`.
    """
    if isinstance(registry, SchemaSnapshot):
        raise Invalid("a schema cannot be registered in a snapshot: give a registry")
    address = as_picklable(registry)
    assert not isinstance(address, SchemaSnapshot)
    client = cast("SchemaRegistryClient", get_client(address))
    return retry_unavailable(lambda: _try_offer(client, subject, schema, notes), patience)


def _try_offer(client: SchemaRegistryClient, subject: str, schema: ResolvedSchema, notes: Metadata) -> SchemaOffer:
    with suppress(NotFound):
        newest = client.resolve_version(subject)
        if (
            newest.schema_type == schema.schema_type
            and _comparable_outline(newest) == _comparable_outline(schema) is not None
        ):
            return SchemaOffer(subject, newest.version, newest.id, there=True)
    wanted = Schema(schema.text, schema.schema_type, metadata=notes)
    compatibility = client.check_compatibility(subject, wanted)
    if not compatibility.is_compatible:
        return SchemaOffer(
            subject, against=tuple(compatibility.messages or ()) or ("it is not compatible with earlier versions",)
        )
    try:
        version = client.register(subject, wanted)
    except Incompatible as refusal:  # another client registered a version meanwhile
        return SchemaOffer(subject, against=(str(refusal),))
    number = version.version or client.lookup(subject, wanted).version
    return SchemaOffer(subject, number, version.id)


def _comparable_outline(schema: ResolvedSchema) -> list[Any] | None:
    """Return the declarations of a schema without documentation; None for a format without an outline."""
    parsed = parse_schema(schema)
    if not isinstance(parsed.format, HasOutline):
        return None
    return [
        (node.path, node.kind, {key: value for key, value in node.attributes.items() if key not in ANNOTATIONS})
        for node in parsed.format.outline(parsed.parsed)
    ]


def make_notes(fields: tuple[ProposedField, ...], records: int, confidence: float) -> Metadata:
    """Return the notes as properties of a schema. Of many fields only those with the least confidence are kept."""
    properties = {f"{PREFIX}.records": str(records), f"{PREFIX}.confidence": str(confidence)}
    for field in sorted(fields, key=lambda it: it.confidence)[:MOST_NOTES]:
        note = f"{field.confidence}: {field.note}"
        properties[f"{PREFIX}.field.{field.path}"] = note if len(note) <= _LONGEST else f"{note[: _LONGEST - 1]}…"
    return Metadata(properties=properties)


MOST_SYMBOLS: Final = 1_000
"""Maximum number of symbols of an inferred enumeration."""


class Inference(msgspec.Struct, frozen=True):
    """The result of an inference.

    schema      text of the proposed schema, in `format`
    records     number of records that were read; `nulls` are rows without a document
    unreadable  records that are not valid documents, by reason: they are in no other figure
    sample      the fraction of the records that was to be read
    losses      properties of the data that the format cannot express
    fields      the proposal for each path
    offer       result of the offer to a registry, None if it was not offered
    """

    format: str
    schema: str
    records: int
    nulls: int
    unreadable: dict[str, int]
    sample: float
    losses: tuple[Loss, ...]
    fields: tuple[ProposedField, ...]
    offer: SchemaOffer | None = None

    @property
    def confidence(self) -> float:
        """The least confidence of all fields: a lower bound for the share of further records that fit. 0 for none."""
        return min((field.confidence for field in self.fields), default=0.0)

    @property
    def keeps_data(self) -> bool:
        """Whether every record that was read can be written under the schema as it is."""
        return not any(loss.data for loss in self.losses)

    @property
    def resolved_schema(self) -> ResolvedSchema:
        """The schema in the form that functions of `stele.spark` take."""
        return ResolvedSchema(self.schema, self.format.upper())

    def report(self) -> AuditReport:
        """Return the result as a report."""
        return _make_report(self)


def infer(
    df: DataFrame,
    column: str | None = None,
    *,
    to: str = "avro",
    name: str = "Record",
    parse: bool = False,
    notations: bool = True,
    enumerations: int = 0,
    notes: bool = True,
    sample: float = 1.0,
    seed: int = 0,
) -> Inference:
    """Infer a schema from data. Runs one Spark job over a batch DataFrame.

    column        a column with a JSON document in each row, as text or bytes; None: the columns are the fields
    to            format of the schema: avro, json, protobuf …
    name          full name of the record
    parse         whether texts are read as the types that they look like (CSV): numbers, booleans; empty ones are null
    notations     JSON and parsed texts: if all values of a path are dates, timestamps or UUIDs, it gets that type;
                  columns that have a type keep it, and only the report mentions the notation
    enumerations  maximum number of different texts for which a path with repeated texts is an enumeration; 0 makes none
    notes         whether the evidence is written into the schema, as documentation of its fields
    sample        fraction of the records that is read

    Raises `InvalidRequest` without records, `UnknownFormat`, `CannotConvert`, `TooLarge`, `Invalid`, `JobFailed`,
    `NotInstalled`.
    """
    require_spark()
    target = get_format(to)
    if df.isStreaming:
        raise Invalid("an audit needs a batch DataFrame, not a stream")
    if not 0 < sample <= 1:
        raise Invalid(f"sample must be a fraction above 0 and at most 1, not {sample}")
    if not 0 <= enumerations <= MOST_SYMBOLS:
        raise InvalidRequest(f"enumerations is {enumerations}; it must be from 0 to {MOST_SYMBOLS}")
    chosen = df if sample == 1 else df.sample(fraction=sample, seed=seed)
    observations = _collect_evidence(chosen, column, max(MOST_VALUES, enumerations), parse=parse)
    losses: list[Loss] = []
    if column is not None or parse:
        options = InferOptions(notations=notations, enumerations=enumerations)
        model = make_model(observations.evidence, name, options, parsed=parse)
    else:
        typed, losses = from_spark(chosen.schema, name=name)
        model = refine_model(typed, observations.evidence, enumerations)
    fields = propose_fields(observations.evidence, model, parsed=parse)
    written = write_model(with_notes(model, _field_docs(fields)) if notes else model, target)
    return Inference(
        format=target.name,
        schema=written.text.decode(),
        records=observations.records,
        nulls=observations.nulls,
        unreadable=observations.reasons,
        sample=sample,
        losses=(*losses, *written.losses),
        fields=fields,
    )


def register_inferred(
    inference: Inference, subject: str, registry: RegistryLike, *, patience: float = PATIENCE
) -> Inference:
    """Offer the schema to a registry, and return the inference with the result of the offer.

    The subject's policy is checked first. A schema that it refuses is reported and not registered. Notes are registered
    with the schema as properties of its metadata. If the newest version differs only in documentation, nothing is
    registered.
    Raises `Invalid` for a snapshot, `ReadOnly`, `RegistryUnreachable`.
    """
    notes = make_notes(inference.fields, inference.records, inference.confidence)
    offer = offer_schema(registry, subject, inference.resolved_schema, notes, patience=patience)
    return msgspec.structs.replace(inference, offer=offer)


def _collect_evidence(df: DataFrame, column: str | None, most: int, *, parse: bool) -> CollectedEvidence:
    """Return the evidence. Raises `InvalidRequest` if there is none."""
    observations = (
        aggregate_rows(df, RowAggregator(most, parse)).get(ALL, CollectedEvidence())
        if column is None
        else _collect_from_documents(df, column, most)
    )
    if not observations.records - sum(observations.reasons.values()):
        raise InvalidRequest("there are no records to infer a schema from")
    return observations


def _collect_from_documents(df: DataFrame, column: str, most: int) -> CollectedEvidence:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    if df.columns.count(column) != 1:
        raise Invalid(f"there must be exactly one column {column!r}: the data have {', '.join(df.columns)}")
    place = df.columns.index(column)
    kind = df.schema.fields[place].dataType
    if not isinstance(kind, t.StringType | t.BinaryType):
        raise Invalid(f"JSON documents must be strings or binary; {column!r} is {kind.simpleString()}")
    with spark_failures():
        one = df.toDF(*(f"c{n}" for n in range(len(df.columns)))).select(f.col(f"c{place}"))
    return aggregate_rows(one, DocumentAggregator(most)).get(ALL, CollectedEvidence())


def _field_docs(fields: tuple[ProposedField, ...]) -> Mapping[str, str]:
    return {field.path: f"{field.note[:1].upper()}{field.note[1:]}." for field in fields if field.note}


def _make_report(inference: Inference) -> AuditReport:
    unread = sum(inference.unreadable.values())
    verdict = f"a schema in {inference.format} for {pluralize(inference.records - unread, 'record')}"
    if unread:
        verdict += f"; {pluralize(unread, 'record')} could not be read"
    if not inference.keeps_data:
        verdict += "; it does not hold all of the data"
    if inference.offer is not None:
        verdict += f"; {_describe_offer(inference.offer)}"
    return AuditReport(
        title="Inference",
        verdict=verdict,
        state=ReportState.from_outcome(
            good=not unread and inference.keeps_data and (inference.offer is None or inference.offer.is_registered)
        ),
        facts=(
            Fact("records", inference.records),
            Fact("not read", unread),
            Fact("fields", len(inference.fields)),
            Fact("confidence", inference.confidence),
            *((Fact("sample", inference.sample),) if inference.sample < 1 else ()),
        ),
        sections=(
            Section(
                "Fields",
                ("field", "type", "required", "nullable", "confidence", "why"),
                tuple(_field_row(field) for field in inference.fields),
                note="Confidence: at least that part of further records fits, with 95 % certainty.",
            ),
            Section(
                "Why the subject refuses it",
                ("reason",),
                tuple((why,) for why in (inference.offer or SchemaOffer("")).against),
            ),
            Section(
                "What the schema does not say",
                ("field", "what", "why", "data"),
                tuple((it.path or "/", it.what, it.why, "lost" if it.data else "kept") for it in inference.losses),
            ),
            Section(
                "Records that are no documents",
                ("reason", "records"),
                tuple(inference.unreadable.items()),
                bars=Bars("records by reason", inference.unreadable),
            ),
            Section("Schema", text=inference.schema.rstrip()),
        ),
    )


def _describe_offer(offer: SchemaOffer) -> str:
    if not offer.is_registered:
        return f"{offer.subject} refuses it"
    at = f"{offer.subject} v{offer.version}, id {offer.id}"
    return f"{at} says the same already" if offer.there else f"registered as {at}"


def _field_row(field: ProposedField) -> tuple[Any, ...]:
    required, nullable = ("yes" if flag else "no" for flag in (field.required, field.nullable))
    return field.path, field.type, required, nullable, field.confidence, field.note
