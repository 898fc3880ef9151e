"""Errors of exporters and their answers. Source: docs/protocols/confluent.md#exporters."""

from __future__ import annotations

from typing import Any

from stele import errors as err


class ExporterNotFound(err.NotFound):
    """No exporter of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Exporter '{name}' not found.")


class InvalidExporterName(err.Invalid):
    """An exporter needs a name that can be part of a path."""

    def __init__(self) -> None:
        super().__init__("Missing or invalid exporter name")


class InvalidExporterConfig(err.Invalid):
    """The context type, the context, a format or the configuration of an exporter is wrong."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Missing or invalid exporter config: {why}")


class InvalidExporterSubjects(err.Invalid):
    """A subject of an exporter is none."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"Invalid exporter subjects: '{subject}'")


class ExporterExists(err.AlreadyExists):
    """There is an exporter of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Exporter '{name}' already exists")


class ExporterNotPaused(err.Conflict):
    """Only a paused exporter can be changed or reset."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Exporter '{name}' is not paused")


class TooManyExporters(err.Conflict):
    """The limit of exporters is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(f"A maximum of {most} exporters already exist")


def _plain(error: Exception, asking: Any) -> str:
    return str(error)


EXPORTER_FAULTS = {
    ExporterNotFound: (404, 40450, _plain),
    InvalidExporterName: (409, 40950, _plain),
    InvalidExporterConfig: (409, 40951, _plain),
    InvalidExporterSubjects: (409, 40952, _plain),
    ExporterExists: (409, 40960, _plain),
    ExporterNotPaused: (409, 40963, _plain),
    TooManyExporters: (409, 40964, _plain),
}
"""Status, code and wording by class; see `faults`."""
