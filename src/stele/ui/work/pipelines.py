"""Pipelines that fill tables: state, dead letters by reason, and what the next schema version would change."""

from __future__ import annotations

import base64
import binascii
from asyncio import to_thread
from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.core import queries
from stele.core.access import Operation
from stele.core.model import SubjectKey
from stele.errors import InvalidName
from stele.service.decoding import MOST_BYTES, DecodeRequest, WireReading, decode_record
from stele.service.pipeline_journals import PipelineJournal, list_journals, read_journal
from stele.service.policies import parse_level_name
from stele.ui.highlight import highlight_text
from stele.ui.links import subject_path
from stele.ui.pages import Page, PageRequest

_MOST_SAMPLES: Final = 20
"""Maximum number of dead letters that one page decodes."""


class PipelinesPage(msgspec.Struct, frozen=True):
    """All pipelines; is_set is whether the server has a folder of checkpoints."""

    is_set: bool
    pipelines: Sequence[PipelineJournal]


class UsedSubject(msgspec.Struct, frozen=True):
    """A subject whose records a pipeline reads.

    used    version that determines the columns of the table
    before  versions that determined them before
    latest  newest active version; 0 if the registry has none that the caller may read
    path    path of the comparison of the two, below `/ui`; '' for none
    """

    name: str
    used: int
    before: Sequence[int]
    latest: int
    path: str


class DecodedSample(msgspec.Struct, frozen=True):
    """A dead letter whose bytes are in the journal, decoded as far as possible.

    data      its first bytes in hexadecimal, in the form that the decoding page accepts
    is_cut    whether it has more bytes
    readings  results for every wire that may have framed it
    """

    batch: int
    code: str
    reason: str
    place: str
    data: str
    bytes: int
    is_cut: bool
    readings: Sequence[WireReading]


class PipelinePage(msgspec.Struct, frozen=True):
    """A pipeline, the subjects it reads, and the newest dead letters whose bytes its journal has."""

    journal: PipelineJournal
    subjects: Sequence[UsedSubject]
    samples: Sequence[DecodedSample]


async def view_pipelines(page: PageRequest) -> PipelinesPage:
    """List the pipelines whose journals the server can read."""
    folder = page.options.pipelines
    return PipelinesPage(bool(folder), await to_thread(list_journals, folder) if folder else ())


async def view_pipeline(page: PageRequest) -> PipelinePage:
    """Show what a pipeline has done, which records it could not decode, and what its tables would change next."""
    journal = await to_thread(read_journal, page.options.pipelines, page.get_segment("pipeline"))
    await page.registry.fresh_state()
    subjects = [_find_next(page, name, used) for name, used in journal.totals.versions.items() if used]
    return PipelinePage(journal, subjects, await _decode_samples(page, journal))


async def _decode_samples(page: PageRequest, journal: PipelineJournal) -> list[DecodedSample]:
    """Return the newest samples of dead letters, decoded with the schemas that the caller may read."""
    samples = [(batch.batch, sample) for batch in journal.batches for sample in batch.samples][:_MOST_SAMPLES]
    decoded_samples = []
    for batch, sample in samples:
        try:
            data = base64.b64decode(sample.value, validate=True)
        except binascii.Error:
            continue
        readings = await decode_record(page.registry, DecodeRequest(data)) if 0 < len(data) <= MOST_BYTES else []
        is_cut = sample.bytes > len(data)
        decoded_samples.append(
            DecodedSample(batch, sample.code, sample.reason, sample.place, data.hex(), sample.bytes, is_cut, readings)
        )
    return decoded_samples


def _find_next(page: PageRequest, name: str, used: Sequence[int]) -> UsedSubject:
    latest, path = 0, ""
    try:
        level = parse_level_name(name)
    except InvalidName:
        return UsedSubject(name, used[-1], used[:-1], 0, "")
    key = SubjectKey(level.namespace or "", level.subject or "")
    if page.registry.access.can_read(key):
        newest = queries.latest_version(page.registry.state.find_subject(key))
        if newest is not None:
            latest = newest.version_number
            is_behind = latest > used[-1] > 0
            path = subject_path(key, f"compare?old={used[-1]}&new={latest}" if is_behind else "")
    return UsedSubject(name, used[-1], used[:-1], latest, path)


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    right = access(Operation.READ, Place.REGISTRY) | {VOLATILE: True}
    return [
        Page("/ui/pipelines", view_pipelines, "pipelines.html.j2", right, menu="/pipelines"),
        Page(
            "/ui/pipelines/{pipeline:str}",
            view_pipeline,
            "pipeline.html.j2",
            right,
            menu="/pipelines",
            twin="/ui/pipelines/{pipeline:str}/journal.json",
            helpers={"highlight": highlight_text},
        ),
    ]
