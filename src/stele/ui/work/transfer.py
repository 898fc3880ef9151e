"""Import and export: what a dump would bring, and the registry as a dump to keep."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler

from stele.apis.http.access import Place, access
from stele.core import queries
from stele.core.access import Operation
from stele.core.model import Version, VersionState
from stele.core.state import State
from stele.errors import Invalid, TooLarge
from stele.service.registry import Registry
from stele.ui.forms import FieldProblem, Form, FormPage
from stele.ui.links import qualify_name
from stele.ui.pages import Page, PageRequest, Site

if TYPE_CHECKING:
    from stele.migrate.model import Dump

MOST_VERSIONS: Final = 20_000
"""Versions in a dump that a page makes or compares; commands take any number."""
_ROWS: Final = 500
_NEW: Final = "register"


class PlannedRow(msgspec.Struct, frozen=True):
    """Something that the registry lacks of a dump, or has otherwise.

    what  `register`, `number taken`, `id taken`, `delete` …
    why   what stands against it, or what differs; '' for what is only new
    """

    what: str
    name: str
    version: int
    id: int
    why: str
    is_conflict: bool


class TransferPage(msgspec.Struct, frozen=True):
    """What a dump would bring.

    file       whether a dump was compared
    new        versions that the registry does not have
    same       versions that it has
    conflicts  versions whose number or id stands for another schema
    rows       conflicts first, some of the others behind them
    omitted    rows that are left out
    notes      what the dump has and no registry takes over
    versions   of this registry, that an export would hold
    refusal    why the caller may not export; '' where he may
    """

    versions: int
    refusal: str
    file: bool = False
    new: int = 0
    same: int = 0
    conflicts: int = 0
    rows: Sequence[PlannedRow] = ()
    omitted: int = 0
    notes: Sequence[str] = ()
    problems: Sequence[FieldProblem] = ()


async def view_transfer(page: PageRequest) -> TransferPage:
    """Show what can be exported, and the form for a dump to compare."""
    state = await page.registry.fresh_state()
    count = sum(
        len(subject.versions) for namespace in state.namespaces.values() for subject in namespace.subjects.values()
    )
    return TransferPage(count, page.find_refusal(Operation.EXPORT))


async def submit_dump(page: PageRequest, form: Form) -> TransferPage:
    """Compare a dump with the registry: what is new, what is the same, and what is in the way."""
    shown = await view_transfer(page)
    data = form.files.get("dump") or form.get("text").encode()
    if not data.strip():
        return msgspec.structs.replace(shown, problems=[FieldProblem("dump", "Choose a dump of a topic.")])
    state = page.registry.state
    try:
        return await page.registry.run_stateless(_compare_dump, shown, state, data)
    except Invalid as error:
        return msgspec.structs.replace(shown, problems=[FieldProblem("dump", str(error))])


def _compare_dump(shown: TransferPage, state: State, data: bytes) -> TransferPage:
    """Return what a dump would bring. Raises `InvalidRequest`, `TooLarge`."""
    from stele.migrate.compare import CONFLICTS, DifferenceKind, compare_dumps
    from stele.migrate.dump_file import read_records
    from stele.migrate.topic_reader import read_topic_records

    source = read_topic_records(read_records(io.BytesIO(data)))
    _require_few(len(source.versions))
    subjects = {version.subject for version in source.versions}
    found = compare_dumps(source, build_dump(state, subjects), modes=False)
    wanted = (DifferenceKind.REGISTER, DifferenceKind.DELETE, *CONFLICTS)
    rows = [
        PlannedRow(row.kind.value, row.name, row.version or 0, row.id or 0, row.why, row.kind in CONFLICTS)
        for row in found.of_kinds(*wanted)
    ]
    rows.sort(key=lambda row: not row.is_conflict)
    return msgspec.structs.replace(
        shown,
        file=True,
        new=sum(row.what == _NEW for row in rows),
        same=found.same,
        conflicts=len(found.conflicts),
        rows=rows[:_ROWS],
        omitted=max(0, len(rows) - _ROWS),
        notes=source.notes,
    )


def build_dump(state: State, subjects: set[str] | None = None) -> Dump:
    """Return the versions of a registry, of subjects with these names or of all, as a dump.

    Settings, modes, keys and associations are left out. Raises `TooLarge`.
    """
    from stele.migrate.dependency_order import sort_by_dependency
    from stele.migrate.model import DEFAULT_CONTEXT, Dump

    versions = [version for version in _list_versions(state) if subjects is None or _name(version) in subjects]
    _require_few(len(versions))
    contexts = {DEFAULT_CONTEXT, *(f".{version.subject.key.namespace}" for version in versions)}
    return Dump(
        sort_by_dependency([_describe(state, version) for version in versions]), contexts=tuple(sorted(contexts))
    )


def _require_few(count: int) -> None:
    if count > MOST_VERSIONS:
        raise TooLarge(
            f"there are {count:,} versions, and pages take {MOST_VERSIONS:,}: "
            "use `stele export` and `stele import --dry-run` instead"
        )


def _list_versions(state: State) -> Iterator[Version]:
    for namespace in state.namespaces.values():
        for subject in namespace.subjects.values():
            yield from queries.list_versions(subject, queries.ACTIVE_OR_SOFT_DELETED)


def _name(version: Version) -> str:
    return qualify_name(version.subject.key)


def _describe(state: State, version: Version) -> Any:
    from stele.migrate.model import normalize_version
    from stele.protocol.confluent import Rule, RuleSet, SchemaReference

    attachments = version.schema.attachments
    rules = attachments.rule_set
    rule_set = None
    if rules is not None:
        phases = {
            phase: [Rule(**{name: getattr(rule, name, None) for name in Rule.__struct_fields__}) for rule in found]
            for phase in ("migration_rules", "domain_rules", "encoding_rules")
            if (found := getattr(rules, phase))
        }
        rule_set = RuleSet(**phases)  # type: ignore[arg-type]  # the phases are lists of rules
    return normalize_version(
        _name(version),
        version.version_number,
        version.schema.schema_id,
        state.get_text(version.content).decode("utf-8", "replace"),
        schema_type=(version.kind.custom_format or version.kind.format).upper(),
        references=[
            SchemaReference(row.name, qualify_name(row.key), row.version_number) for row in attachments.references
        ],
        metadata=attachments.metadata,
        rule_set=rule_set,
        deleted=version.state is VersionState.SOFT_DELETED,
        ts=version.at or None,
    )


def _write_dump(registry: Registry) -> bytes:
    from stele.migrate.dump_file import write_records
    from stele.migrate.topic_records import Flavour
    from stele.migrate.topic_writer import write_records as make_records

    topic = make_records(build_dump(registry.state), Flavour.CONFLUENT)
    return b"".join(write_records(topic.records))


def create_routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the endpoint that sends the registry as a file."""

    @get("/ui/transfer/download", opt=access(Operation.EXPORT, Place.REGISTRY))
    async def download_dump(request: Request[Any, Any, Any]) -> Response[bytes]:
        # GET /ui/transfer/download
        """Send all versions of the registry as a dump of a topic."""
        await site.registry.fresh_state()
        body = await site.registry.run_stateless(_write_dump, site.registry)
        return Response(
            body,
            media_type="application/jsonl",
            headers={"content-disposition": 'attachment; filename="schemas.dump"'},
        )

    return [download_dump]


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    right = access(Operation.READ, Place.REGISTRY)
    page = Page("/ui/transfer", view_transfer, "transfer.html.j2", right, menu="/transfer")
    return [FormPage(page, submit_dump, right, asks_only=True)]
