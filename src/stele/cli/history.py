"""`stele history` and `stele atlas`: the history of a subject, its references, and the subjects of a namespace."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from stele.cli.connect import RegistryOptions, connect
from stele.cli.files import ForceOption, check_target, write_text
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, console, exit_on_error, print_json, print_rows
from stele.cli.schema import SubjectArgument
from stele.errors import InvalidRequest

if TYPE_CHECKING:
    from stele.client import SchemaRegistryClient
    from stele.pictures import Picture, PictureTable

_EVERYTHING: Final = 1_000_000
"""A limit that no answer reaches."""

SvgOption = Annotated[
    Path | None,
    typer.Option("--svg", metavar="FILE", help="Write a picture to this file instead, as SVG; - for standard output."),
]


class HistoryPicture(StrEnum):
    """Pictures of a subject."""

    STORY = "story"
    FIELDS = "fields"
    MATRIX = "matrix"
    NEIGHBOURS = "neighbours"


@expand_dataclass
def show_history(
    subject: SubjectArgument,
    registry: RegistryOptions,
    picture: Annotated[
        HistoryPicture,
        typer.Option(
            "--picture",
            help="story: versions and their compatibility; fields: when fields came and went;"
            " matrix: which version reads which; neighbours: references.",
        ),
    ] = HistoryPicture.STORY,
    svg: SvgOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of versions, newest first.")
    ] = None,
    before: Annotated[
        int | None, typer.Option("--before", min=1, help="For story: draw only versions with a lower number than this.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", help="For matrix: mark the pairs that this policy checks, in place of the effective policy."
        ),
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, max=5, help="For neighbours: number of references to follow.")
    ] = None,
    unfold: Annotated[
        bool, typer.Option("--unfold", help="Draw every version and every field. By default long pictures are folded.")
    ] = False,
    force: ForceOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show the history of a subject: a table in the terminal, a picture with --svg.

    Exit code 0: it was shown; 2: an error, such as a subject that the registry does not have.
    """
    with exit_on_error():
        _check_options(picture, before=before, policy=policy, depth=depth)
        check_target(svg, force=force)
    with connect(registry) as client:
        answer = _ask_registry(client, subject, picture, limit, before, policy, depth)
    if svg is not None:
        write_text(svg, _draw_answer(answer, picture, unfold=unfold).to_document())
    elif output is Output.JSON:
        print_json(answer)
    else:
        _print_table(_tabulate_answer(answer, picture))


@expand_dataclass
def show_atlas(
    registry: RegistryOptions,
    namespace: Annotated[
        str, typer.Option("--namespace", help="Name of the namespace. Default: the default namespace.")
    ] = "",
    svg: SvgOption = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Maximum number of subjects.")] = None,
    force: ForceOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show the subjects of a namespace and their references: a table in the terminal, a picture with --svg.

    Exit code 0: they were shown; 2: an error.
    """
    from stele.pictures import draw_atlas, tabulate_atlas

    with exit_on_error():
        check_target(svg, force=force)
    with connect(registry) as client:
        answer = client.atlas(namespace, limit=limit)
    if svg is not None:
        write_text(svg, draw_atlas(answer).to_document())
    elif output is Output.JSON:
        print_json(answer)
    else:
        _print_table(tabulate_atlas(answer))


def _check_options(picture: HistoryPicture, *, before: int | None, policy: str | None, depth: int | None) -> None:
    """Raise `InvalidRequest` for an option that does not apply to the picture."""
    options = {
        "--before": (before, HistoryPicture.STORY),
        "--policy": (policy, HistoryPicture.MATRIX),
        "--depth": (depth, HistoryPicture.NEIGHBOURS),
    }
    for option, (value, needed_picture) in options.items():
        if value is not None and picture is not needed_picture:
            raise InvalidRequest(f"{option} needs --picture {needed_picture}")


def _ask_registry(
    client: SchemaRegistryClient,
    subject: str,
    picture: HistoryPicture,
    limit: int | None,
    before: int | None,
    policy: str | None,
    depth: int | None,
) -> Any:
    match picture:
        case HistoryPicture.STORY:
            return client.history(subject, before=before, limit=limit)
        case HistoryPicture.FIELDS:
            return client.lifelines(subject, limit=limit)
        case HistoryPicture.MATRIX:
            return client.matrix(subject, limit=limit, policy=policy)
        case HistoryPicture.NEIGHBOURS:
            return client.neighbours(subject, depth=depth or 1)


def _draw_answer(answer: Any, picture: HistoryPicture, *, unfold: bool) -> Picture:
    from stele import pictures

    match picture:
        case HistoryPicture.STORY if unfold:
            return pictures.draw_story_line(answer, least_folded=0, most_stops=_EVERYTHING)
        case HistoryPicture.STORY:
            return pictures.draw_story_line(answer)
        case HistoryPicture.FIELDS if unfold:
            return pictures.draw_field_lifelines(answer, most_rows=_EVERYTHING)
        case HistoryPicture.FIELDS:
            return pictures.draw_field_lifelines(answer)
        case HistoryPicture.MATRIX:
            return pictures.draw_compatibility_matrix(answer)
        case HistoryPicture.NEIGHBOURS if unfold:
            return pictures.draw_neighbourhood(answer, most_in_layer=_EVERYTHING)
        case HistoryPicture.NEIGHBOURS:
            return pictures.draw_neighbourhood(answer)


def _tabulate_answer(answer: Any, picture: HistoryPicture) -> PictureTable:
    from stele import pictures

    match picture:
        case HistoryPicture.STORY:
            return pictures.tabulate_history(answer)
        case HistoryPicture.FIELDS:
            return pictures.tabulate_lifelines(answer)
        case HistoryPicture.MATRIX:
            return pictures.tabulate_matrix(answer)
        case HistoryPicture.NEIGHBOURS:
            return pictures.tabulate_neighbourhood(answer)


def _print_table(table: PictureTable) -> None:
    print_rows(Output.TEXT, table.columns, table.to_records())
    if table.hidden:
        console.print(f"… {table.hidden:,} more", highlight=False)
