"""`stele status`: the state of a registry."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.text import Text

from stele.cli.connect import RegistryOptions
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, exit_on_error, print_json, print_labelled
from stele.cli.server_pages import ServerPages, decode_page, open_server_pages

_LABEL_WIDTH: Final = 11
_STATE_COLOURS: Final = {"ready": "green"}


class RequestFigures(msgspec.Struct, frozen=True, rename="camel"):
    """Numbers and durations of the requests that a server answered since it started.

    Attributes:
        answered: Requests, whatever their status.
        refused: Those with a status from 400 to 499.
        failed: Those with a status from 500.
        mean_seconds: Mean duration of those that were timed.
        p99_seconds: Upper bound of 99 % of the durations; null above the highest bucket of the histogram.
    """

    answered: int
    refused: int
    failed: int
    mean_seconds: float
    p99_seconds: float | None


class RegistryStatus(msgspec.Struct, frozen=True, rename="camel"):
    """State, contents and requests of a registry.

    Attributes:
        registry: The address that answered.
        version: Release of Stele; '' for other registries.
        is_live: Whether the process works.
        is_ready: Whether it is loaded and the log takes records.
        status: One word or two: ready, starting, cannot write.
        reason: Why it is not ready.
        role: `read-write`, or `read-only` while the log takes no records. Every node of a registry serves reads and
            writes; none leads.
        store: Kind of the store.
        dialects: Dialects that it answers.
        counts: Numbers of what it holds, and the position of the log; null if unknown.
        requests: Figures about its requests; null if its metrics cannot be read.
    """

    registry: str
    version: str
    is_live: bool
    is_ready: bool
    status: str
    reason: str
    role: str
    store: str
    dialects: list[str]
    counts: dict[str, int] | None
    requests: RequestFigures | None


@expand_dataclass
def show_status(
    registry: RegistryOptions,
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="Base URL of the registry; the same as --registry.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show the state of a registry: release, readiness, contents, requests.

    Exit code 0: it is ready; 1: it answers and is not ready; 2: it does not answer.
    """
    if url is not None:
        registry = replace(registry, registry=[url, *(registry.registry or ())])
    with exit_on_error(), open_server_pages(registry.find_connection()) as pages:
        status = read_status(pages)
    if output is Output.JSON:
        print_json(status)
    else:
        _print_status(status)
    if not status.is_ready:
        raise typer.Exit(1)


class _Readiness(msgspec.Struct, frozen=True):
    status: str
    reason: str = ""


def read_status(pages: ServerPages) -> RegistryStatus:
    """Request the pages of a server, and return its status. Raises `httpx.RequestError`."""
    ready = pages.get_page("/health/ready")
    readiness: _Readiness | None = decode_page(ready.content, _Readiness)
    if readiness is None:  # a registry of another make has no probes, and is ready if it answers
        is_ready = pages.get_page("/subjects").is_success
        readiness = _Readiness("ready" if is_ready else "not ready")
    index = pages.read_index()
    metrics = pages.get_page("/metrics", "text/plain")
    return RegistryStatus(
        registry=pages.url,
        version=index.version,
        is_live=pages.first.status_code < 500,
        is_ready=readiness.status == "ready",
        status=readiness.status,
        reason=readiness.reason,
        role="read-write" if readiness.status == "ready" else "read-only",
        store=index.store,
        dialects=[dialect.name for dialect in index.dialects],
        counts=index.counts or None,
        requests=read_figures(metrics.text) if metrics.is_success else None,
    )


def read_figures(exposition: str) -> RequestFigures | None:
    """Return the figures about requests in a page of metrics; None if they are not there."""
    from prometheus_client.parser import text_string_to_metric_families

    by_status: dict[int, float] = defaultdict(float)
    buckets: dict[float, float] = defaultdict(float)
    seconds = timed = 0.0
    try:
        samples = [sample for family in text_string_to_metric_families(exposition) for sample in family.samples]
    except ValueError:
        return None
    for sample in samples:
        match sample.name:
            case "stele_requests_total":
                by_status[int(sample.labels["status"]) // 100] += sample.value
            case "stele_request_seconds_bucket":
                buckets[float(sample.labels["le"])] += sample.value
            case "stele_request_seconds_sum":
                seconds += sample.value
            case "stele_request_seconds_count":
                timed += sample.value
    if not by_status:
        return None
    bound = next((le for le, count in sorted(buckets.items()) if count >= 0.99 * timed), float("inf"))
    return RequestFigures(
        answered=int(sum(by_status.values())),
        refused=int(by_status[4]),
        failed=int(by_status[5]),
        mean_seconds=seconds / timed if timed else 0.0,
        p99_seconds=None if bound == float("inf") else bound,
    )


def _print_status(status: RegistryStatus) -> None:
    colour = _STATE_COLOURS.get(status.status, "red")
    state = Text.assemble((status.status, colour), f": {status.reason}" if status.reason else "")
    _print_row("registry", status.registry)
    _print_row("version", f"Stele {status.version}" if status.version else "not a Stele server, or behind a proxy")
    _print_row("state", state)
    if status.store:
        _print_row("role", f"{status.role} node")
        _print_row("store", status.store)
    if status.counts:
        counts: dict[str, Any] = {name: f"{count:,}" for name, count in status.counts.items()}
        template = "subjects {subjects}, versions {versions}, schemas {schemas}, schema ids {ids}"
        _print_row("contents", template.format_map(counts))
        _print_row("log", f"position {counts['position']}")
    if status.dialects:
        _print_row("dialects", ", ".join(status.dialects))
    if status.requests is not None:
        _print_row("requests", _describe_figures(status.requests))


def _describe_figures(figures: RequestFigures) -> str:
    slowest = f"99 % within {figures.p99_seconds * 1000:g} ms" if figures.p99_seconds else "99 % not within 10 s"
    return (
        f"{figures.answered:,} answered since the start: {figures.refused:,} refused (4xx), {figures.failed:,} failed"
        f" (5xx); mean {figures.mean_seconds * 1000:.1f} ms, {slowest}"
    )


def _print_row(label: str, text: str | Text) -> None:
    print_labelled(Text(label, "dim"), Text(text) if isinstance(text, str) else text, _LABEL_WIDTH)
