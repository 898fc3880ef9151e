"""Exporters: create and change them, pause, resume, reset and delete them, and see how far each one is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.core.access import Operation
from stele.errors import AlreadyExists, Conflict, Invalid, InvalidRequest
from stele.service.delivery.exporter_definitions import (
    CONTEXT_TYPES,
    ExporterChange,
    InvalidExporterConfig,
    InvalidExporterName,
    InvalidExporterSubjects,
    create_exporter,
    delete_exporter,
    update_exporter,
)
from stele.service.delivery.exporters import (
    ExporterOverview,
    get_exporter,
    list_exporters,
    pause_exporter,
    reset_exporter,
    resume_exporter,
)
from stele.ui.forms import Destination, FieldProblem, Form, FormPage
from stele.ui.links import split_lines
from stele.ui.pages import Page, PageRequest
from stele.ui.work.register import VIA

_SWITCHES: Final = {
    "pause": (pause_exporter, "paused"),
    "resume": (resume_exporter, "resumed"),
    "reset": (reset_exporter, "reset"),
}


class ExporterEntry(msgspec.Struct, frozen=True):
    """The values of an exporter's form: subjects has one pattern per line, config is a JSON object of strings."""

    name: str = ""
    context_type: str = "AUTO"
    context: str = ""
    subjects: str = "*"
    subject_rename_format: str = ""
    config: str = '{\n  "schema.registry.url": ""\n}'


class ExportersPage(msgspec.Struct, frozen=True):
    """All exporters, and a form for a new one; refusal says why the caller may not define one."""

    exporters: Sequence[ExporterOverview]
    entered: ExporterEntry
    context_types: Sequence[str]
    refusal: str
    problems: Sequence[FieldProblem] = ()


class ExporterPage(msgspec.Struct, frozen=True):
    """An exporter, and a form to change it; refusal says why the caller may not."""

    exporter: ExporterOverview
    entered: ExporterEntry
    context_types: Sequence[str]
    refusal: str
    problems: Sequence[FieldProblem] = ()


async def view_exporters(page: PageRequest) -> ExportersPage:
    """Show all exporters, how far each one is, and a form to define another one."""
    return await _show_list(page, ExporterEntry(), ())


async def submit_exporter(page: PageRequest, form: Form) -> msgspec.Struct:
    """Create an exporter, or show the form again with what is wrong with it."""
    entered = _read_entry(form, ExporterEntry())
    try:
        exporter = await create_exporter(page.registry, _read_change(entered), VIA)
    except (Invalid, Conflict) as error:
        return await _show_list(page, entered, [_describe_problem(error)])
    return Destination(f"/exporters/{quote(exporter.name, safe='')}?done=created")


async def view_exporter(page: PageRequest) -> ExporterPage:
    """Show how far an exporter is, what it copies and where to, and the error that stopped it."""
    exporter = await get_exporter(page.registry, page.get_segment("exporter"))
    return _show(page, exporter, _make_entry(exporter), ())


async def submit_change(page: PageRequest, form: Form) -> msgspec.Struct:
    """Pause, resume, reset, delete or change an exporter."""
    name, action = page.get_segment("exporter"), form.get("action")
    path = f"/exporters/{quote(name, safe='')}"
    if action == "delete":
        await delete_exporter(page.registry, name, VIA)
        return Destination("/exporters?done=ended")
    if action in _SWITCHES:
        switch, done = _SWITCHES[action]
        await switch(page.registry, name, VIA)
        return Destination(f"{path}?done={done}")
    if action != "save":
        raise InvalidRequest(f"action must be save, delete or one of {', '.join(_SWITCHES)}")
    exporter = await get_exporter(page.registry, name)
    entered = _read_entry(form, _make_entry(exporter))
    try:
        await update_exporter(page.registry, name, _read_change(entered), VIA)
    except Invalid as error:
        return _show(page, exporter, entered, [_describe_problem(error)])
    return Destination(f"{path}?done=changed")


async def _show_list(page: PageRequest, entered: ExporterEntry, problems: Sequence[FieldProblem]) -> ExportersPage:
    refusal = page.find_refusal(Operation.MANAGE_EXPORTERS, is_change=True)
    return ExportersPage(await list_exporters(page.registry), entered, CONTEXT_TYPES, refusal, problems)


def _show(
    page: PageRequest, overview: ExporterOverview, entered: ExporterEntry, problems: Sequence[FieldProblem]
) -> ExporterPage:
    refusal = page.find_refusal(Operation.MANAGE_EXPORTERS, is_change=True)
    return ExporterPage(overview, entered, CONTEXT_TYPES, refusal, problems)


def _make_entry(overview: ExporterOverview) -> ExporterEntry:
    return ExporterEntry(
        overview.name,
        overview.context_type,
        overview.context,
        "\n".join(overview.subjects),
        overview.subject_rename_format,
        msgspec.json.format(msgspec.json.encode(overview.config), indent=2).decode(),
    )


def _read_entry(form: Form, before: ExporterEntry) -> ExporterEntry:
    """Return the values of a form; a value that it lacks is taken from `before`."""
    return ExporterEntry(**{name: form.get(name, value) for name, value in msgspec.structs.asdict(before).items()})


def _read_change(entered: ExporterEntry) -> ExporterChange:
    """Return the exporter that a form describes. Raises `InvalidExporterConfig`."""
    try:
        config = msgspec.json.decode(entered.config or "{}", type=dict[str, str])
    except msgspec.DecodeError as error:
        raise InvalidExporterConfig(f"it is not a JSON object of strings: {error}") from None
    return ExporterChange(
        name=entered.name,
        context_type=entered.context_type,
        context=entered.context,
        subjects=split_lines(entered.subjects),
        subject_rename_format=entered.subject_rename_format,
        config=config,
    )


def _describe_problem(error: Invalid | Conflict) -> FieldProblem:
    field = ""
    if isinstance(error, InvalidExporterName | AlreadyExists):
        field = "name"
    elif isinstance(error, InvalidExporterSubjects):
        field = "subjects"
    return FieldProblem(field, str(error))


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    right = access(Operation.MANAGE_EXPORTERS, Place.REGISTRY)
    every = Page("/ui/exporters", view_exporters, "exporters.html.j2", right | {VOLATILE: True}, menu="/exporters")
    one = Page(
        "/ui/exporters/{exporter:str}",
        view_exporter,
        "exporter.html.j2",
        right | {VOLATILE: True},
        menu="/exporters",
        twin="/ui/exporters/{exporter:str}/state.json",
    )
    return [FormPage(every, submit_exporter, right), FormPage(one, submit_change, right)]
