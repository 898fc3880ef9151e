"""`stele replicate`: replication between registries, run by this command or by a server."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.text import Text

from stele.cli.connect import RegistryOptions, connect
from stele.cli.options import expand_dataclass
from stele.cli.output import (
    Output,
    OutputOption,
    console,
    exit_on_error,
    print_error,
    print_json,
    print_rows,
    print_warning,
)
from stele.cli.replication_ends import EndKind, open_source, open_target
from stele.cli.transfer import ProgressPrinter
from stele.client.request import JSON, Effect, Request, build_path, encode_body, ignore_body, json_decoder
from stele.errors import InvalidRequest, SteleError
from stele.protocol.replication import SettingsScope, SubjectName
from stele.replicate.plan import ReplicationConflict, ReplicationPlan
from stele.replicate.replicator import ReplicationOutcome, Replicator, Scope
from stele.service.replication.documents import (
    OtherRegistry,
    RegistryKind,
    Replication,
    ReplicationDirection,
    ReplicationOverview,
)
from stele.service.subject_patterns import Renaming

app = typer.Typer(help="Replicate between registries.", no_args_is_help=True)

_ROWS: Final = 50
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0

SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="Source registry: an address, or the name of a profile.")
]
TargetArgument = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="Target registry; kafka://broker/topic is a `_schemas` topic."),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the replication.")]


@dataclass(frozen=True)
class ScopeOptions:
    """What is replicated, and under which names."""

    subjects: Annotated[
        list[str] | None,
        typer.Option(
            "--subjects",
            metavar="PATTERN",
            help="Subjects to replicate: orders-*, :.namespace:name, :*:name; repeatable. Default: all.",
        ),
    ] = None
    rename: Annotated[
        str,
        typer.Option(
            metavar="FORMAT", help="Pattern for names of subjects at the target; ${subject} is the name at the source."
        ),
    ] = "${subject}"
    namespace: Annotated[
        str,
        typer.Option(
            metavar="FORMAT", help="Pattern for namespaces at the target; ${namespace} is the namespace at the source."
        ),
    ] = "${namespace}"
    settings: Annotated[
        SettingsScope, typer.Option(help="Levels whose settings, such as compatibility levels, are replicated.")
    ] = SettingsScope.SUBJECTS

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns of the subjects to replicate; by default all subjects of all namespaces."""
        return tuple(self.subjects or (":*:",))

    def make_scope(self) -> Scope:
        """Return the scope."""
        return Scope(self.patterns, Renaming(self.rename, self.namespace), self.settings)


@dataclass(frozen=True)
class EndOptions:
    """Kinds and authorities of the two registries, and how they are read and written."""

    source_kind: Annotated[EndKind, typer.Option(help="Kind of the source registry.")] = EndKind.AUTO
    target_kind: Annotated[EndKind, typer.Option(help="Kind of the target registry.")] = EndKind.AUTO
    source_authority: Annotated[
        str,
        typer.Option(
            metavar="URI",
            help="Authority of the source's schemas, if the source does not name it. Default: its address.",
        ),
    ] = ""
    target_authority: Annotated[
        str,
        typer.Option(
            metavar="URI",
            help="Authority of the target's own schemas, if the target does not name it. Default: its address.",
        ),
    ] = ""
    poll: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Seconds between requests to a source that does not notify of changes."),
    ] = 1.0
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the versions that were replicated to a target that is not Stele, so"
            " that they can be replaced later.",
        ),
    ] = None

    def make_replicator(self, source: str, target: str, scope: ScopeOptions) -> Replicator:
        """Return the replication between two registries. Raises `InvalidRequest`, `RegistryUnreachable`."""
        return Replicator(
            open_source(source, self.source_kind, self.source_authority, self.poll),
            open_target(target, self.target_kind, self.target_authority, self.state),
            scope.make_scope(),
            ProgressPrinter("target"),
        )


# --- run from here ----------------------------------------------------------------------------------------------------


@app.command("run")
@expand_dataclass
def run(
    source: SourceArgument,
    target: TargetArgument,
    scope: ScopeOptions,
    ends: EndOptions,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow/--once", help="Keep replicating every change until interrupted, or end after the first pass."
        ),
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Replicate a registry to another one; --follow continues with every change. Ends with 1 if there are conflicts."""
    with exit_on_error():
        replicator = ends.make_replicator(source, target, scope)
        try:
            if follow:
                _follow(replicator, output)
            outcome = replicator.synchronize()
        except KeyboardInterrupt:
            raise typer.Exit(0) from None
        finally:
            replicator.source.close()
            replicator.target.close()
    _print_outcome(outcome, output)
    if outcome.conflicts:
        raise typer.Exit(1)


def _follow(replicator: Replicator, output: Output) -> None:
    """Replicate until the process is stopped. After an error, try again with growing pauses."""
    observer = _Observer(output)
    failures = 0
    while True:
        try:
            replicator.follow(observer, observer.position)
        except SteleError as error:
            failures = failures + 1 if observer.passes == 0 else 1
            observer.passes = 0
            print_error("error:", f"{error}; trying again")
            time.sleep(min(_FIRST_PAUSE * 2 ** min(failures - 1, 10), _LONGEST_PAUSE))


class _Observer:
    """Prints the outcomes of a replication, and keeps the position that it reached."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.position = ""
        self.passes = 0

    def claim(self) -> bool:
        """Return True: no other process runs this replication."""
        return True

    def sleep(self, seconds: float) -> None:
        """Sleep for a number of seconds."""
        time.sleep(seconds)

    def note_part(self, outcome: ReplicationOutcome) -> None:
        """Do nothing: outcomes are printed for whole passes only."""

    def note_pass(self, outcome: ReplicationOutcome, subjects: frozenset[SubjectName] | None) -> None:
        """Print the outcome of a pass that changed something or met conflicts."""
        self.note_waiting(outcome.position)
        if outcome.registered or outcome.removed or outcome.settings or outcome.conflicts:
            _print_outcome(outcome, self._output)

    def note_waiting(self, position: str) -> None:
        """Keep the position that the replication reached."""
        self.position = position
        self.passes += 1


def _print_outcome(outcome: ReplicationOutcome, output: Output) -> None:
    if output is Output.JSON:
        print_json(msgspec.to_builtins(outcome._asdict()))
        return
    for row in outcome.conflicts[:_ROWS]:
        print_warning(f"{_name_place(row)} version {row.version}: {row.code}: {row.why}")
    if outcome.mapped:
        print_warning(f"{outcome.mapped} schema ids were taken: those versions have other ids at the target")
    console.print(
        Text(
            f"{outcome.registered} registered, {outcome.removed} deleted, {outcome.same} there already,"
            f" {outcome.settings} settings, {len(outcome.conflicts)} conflicts"
        )
    )


def _name_place(row: ReplicationConflict) -> str:
    return f":.{row.namespace}:{row.subject}" if row.namespace else row.subject


@app.command("diff")
@expand_dataclass
def diff(
    source: SourceArgument,
    target: TargetArgument,
    scope: ScopeOptions,
    ends: EndOptions,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what a replication would do, without doing it. Ends with 1 if the registries differ."""
    with exit_on_error():
        replicator = ends.make_replicator(source, target, scope)
        try:
            plan, _ = replicator.make_plan()
        finally:
            replicator.source.close()
            replicator.target.close()
    _print_plan(plan, output)
    if plan.conflicts or not plan.is_empty:
        raise typer.Exit(1)


def _print_plan(plan: ReplicationPlan, output: Output) -> None:
    rows: list[dict[str, Any]] = [
        {"what": "register", "namespace": row.namespace, "subject": row.subject, "version": row.version, "why": row.uri}
        for row in plan.versions
    ]
    going = [(f"remove ({fate})", uid) for uid, fate in plan.removed] + [("delete", uid) for uid in plan.deleted]
    rows += [
        {"what": what, "namespace": row.namespace, "subject": row.subject, "version": row.version, "why": row.uri}
        for what, uid in going
        for row in [plan.places[uid]]
    ]
    rows += [
        {
            "what": "settings",
            "namespace": row.namespace or "",
            "subject": row.subject or "",
            "version": 0,
            "why": f"{json.dumps(row.seen)} becomes {json.dumps(row.values)}",
        }
        for row in plan.settings
    ]
    rows += [
        {
            "what": row.code.value,
            "namespace": row.namespace,
            "subject": row.subject,
            "version": row.version,
            "why": row.why,
        }
        for row in plan.conflicts
    ]
    if output is Output.JSON:
        print_json({"same": plan.same, "differences": rows})
        return
    if rows:
        print_rows(output, ("what", "namespace", "subject", "version", "why"), rows[:_ROWS])
    if len(rows) > _ROWS:
        console.print(f"… and {len(rows) - _ROWS} more", highlight=False)
    console.print(Text(f"{plan.same} versions are the same; {len(rows)} differences"))


# --- run by a server --------------------------------------------------------------------------------------------------

_PATH: Final = "/api/replications"


class _Overviews(msgspec.Struct):
    replications: list[ReplicationOverview]


_overview = json_decoder(ReplicationOverview)
_overviews = json_decoder(_Overviews)


@app.command("create")
@expand_dataclass
def create(
    registry: RegistryOptions,
    name: NameArgument,
    scope: ScopeOptions,
    pull: Annotated[str | None, typer.Option(metavar="URL", help="Address of a registry to replicate from.")] = None,
    push: Annotated[str | None, typer.Option(metavar="URL", help="Address of a registry to replicate to.")] = None,
    kind: Annotated[RegistryKind, typer.Option(help="Kind of the other registry.")] = RegistryKind.STELE,
    authority: Annotated[
        str, typer.Option(metavar="URI", help="Authority of the other registry's schemas, if it does not name it.")
    ] = "",
    other_user: Annotated[
        str,
        typer.Option(
            metavar="NAME:PASSWORD", envvar="STELE_OTHER_USER", help="User name and password at the other registry."
        ),
    ] = "",
    other_token: Annotated[
        str, typer.Option(metavar="TOKEN", envvar="STELE_OTHER_TOKEN", help="Bearer token for the other registry.")
    ] = "",
    poll: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Seconds between requests to a registry that does not notify of changes."),
    ] = 1.0,
    output: OutputOption = Output.TEXT,
) -> None:
    """Make the server follow another registry, or send its own changes to it, from now on."""
    with exit_on_error():
        if (pull is None) == (push is None):
            raise InvalidRequest("give either --pull URL or --push URL")
        user, _, password = other_user.partition(":")
        other = OtherRegistry(pull or push or "", kind, user, password, other_token, authority)
        direction = ReplicationDirection.PULL if pull is not None else ReplicationDirection.PUSH
        wanted = Replication(
            name, direction, other, scope.patterns, scope.rename, scope.namespace, poll, settings=scope.settings
        )
        wanted.require_valid()
    body = encode_body(wanted)
    with connect(registry) as client:
        overview = client.send(Request("POST", _PATH, _overview, body=body, media=JSON, effect=Effect.DELETE))
    _print_overview(overview, output)


@app.command("list")
@expand_dataclass
def list_replications(registry: RegistryOptions, output: OutputOption = Output.TEXT) -> None:
    """List the replications of the server, and how far each one is."""
    with connect(registry) as client:
        overviews = client.send(Request("GET", _PATH, _overviews)).replications
    if output is Output.JSON:
        print_json(overviews)
        return
    print_rows(
        output,
        ("name", "direction", "registry", "state", "phase", "versions", "conflicts", "lag", "node"),
        [
            {
                "name": row.replication.name,
                "direction": row.replication.direction.value,
                "registry": row.replication.registry.url,
                "state": row.replication.state.value,
                "phase": row.status.phase.value,
                "versions": row.status.registered,
                "conflicts": row.status.conflict_count,
                "lag": f"{row.lag_seconds:.1f} s",
                "node": row.node,
            }
            for row in overviews
        ],
    )


@app.command("status")
@expand_dataclass
def show_status(registry: RegistryOptions, name: NameArgument, output: OutputOption = Output.TEXT) -> None:
    """Show the progress of a replication, its conflicts and its failures. Ends with 1 if there are any."""
    with connect(registry) as client:
        overview = client.send(Request("GET", build_path("api", "replications", name), _overview))
    _print_overview(overview, output)
    if overview.status.conflict_count or overview.status.failures:
        raise typer.Exit(1)


@app.command("pause")
@expand_dataclass
def pause(registry: RegistryOptions, name: NameArgument, output: OutputOption = Output.TEXT) -> None:
    """Pause a replication until it is resumed."""
    _print_overview(_switch(registry, name, "pause"), output)


@app.command("resume")
@expand_dataclass
def resume(registry: RegistryOptions, name: NameArgument, output: OutputOption = Output.TEXT) -> None:
    """Resume a replication: it first replicates all changes since the pause."""
    _print_overview(_switch(registry, name, "resume"), output)


def _switch(registry: RegistryOptions, name: str, verb: str) -> ReplicationOverview:
    path = build_path("api", "replications", name, verb)
    with connect(registry) as client:
        return client.send(Request("POST", path, _overview, effect=Effect.WRITE))


@app.command("delete")
@expand_dataclass
def delete(registry: RegistryOptions, name: NameArgument) -> None:
    """End a replication of the server.

    Replicated subjects stay. They accept no other versions until their mode is changed.
    """
    with connect(registry) as client:
        client.send(Request("DELETE", build_path("api", "replications", name), ignore_body, effect=Effect.DELETE))
    typer.echo(f"deleted {name}")


def _print_overview(overview: ReplicationOverview, output: Output) -> None:
    if output is Output.JSON:
        print_json(overview)
        return
    replication, status = overview.replication, overview.status
    changed = (
        f"{datetime.fromtimestamp(status.changed_at / 1000, UTC):%Y-%m-%d %H:%M:%S}" if status.changed_at else "never"
    )
    word = "from" if replication.direction is ReplicationDirection.PULL else "to"
    lines = [
        f"{replication.name}: {replication.direction} {word} {replication.registry.url} ({replication.registry.kind})",
        f"state {replication.state}, {status.phase}, lag {overview.lag_seconds:.1f} s, last change {changed} UTC",
        f"{status.registered} versions registered, {status.removed} deleted, {status.mapped} with another schema id",
        f"settings of {status.settings} levels changed",
        f"at work on node {overview.node}" if overview.node else "at work on no node",
    ]
    for line in lines:
        console.print(Text(line))
    if status.last_error:
        print_error("failing:", f"{status.last_error}: {status.last_detail} (attempt {status.failures})")
    for row in status.conflicts[:_ROWS]:
        place = f":.{row.namespace}:{row.subject}" if row.namespace else row.subject
        print_warning(f"{place} version {row.version}: {row.code}: {row.why}")
