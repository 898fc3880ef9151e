"""Exporters as requests ask for them and as answers show them.

`service.delivery.exporter_definitions` makes them, `service.delivery.exporters` keeps them, `apis.confluent.exporting`
runs them.
"""

from __future__ import annotations

from msgspec.structs import asdict

from stele.apis.confluent import models as api
from stele.core.state import State
from stele.service.delivery.exporter_definitions import ExporterChange
from stele.service.delivery.exporters import StoredExporter, find_progress, hide_config


def read_change(request: api.ExporterRequest) -> ExporterChange:
    """Return what a request wants of an exporter."""
    return ExporterChange(**asdict(request))


def exporter_out(exporter: StoredExporter) -> api.Exporter:
    """An exporter as the API shows it."""
    return api.Exporter(
        name=exporter.name,
        context_type=exporter.context_type,
        context=exporter.context,
        subjects=list(exporter.subjects),
        subject_rename_format=exporter.subject_rename_format,
        kek_rename_format=exporter.kek_rename_format,
        config=hide_config(exporter),
    )


def status_out(state: State, exporter: StoredExporter) -> api.ExporterStatus:
    """How far an exporter is: `offset` is a record of the log; `trace` says what stopped it, or was left out."""
    progress = find_progress(state, exporter)
    return api.ExporterStatus(exporter.name, progress.state, progress.offset, progress.ts, progress.trace)
