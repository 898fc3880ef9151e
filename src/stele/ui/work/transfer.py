"""Import and export: a plan of what a dump would change, the import, and the registry as a dump."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from litestar import Request, Response, get

from stele.apis.http.access import Place, access
from stele.core.access import Operation
from stele.core.model import Version
from stele.core.state import State
from stele.errors import Invalid, InvalidRequest
from stele.ui.forms import FieldProblem, Form, FormPage
from stele.ui.links import qualify_name
from stele.ui.pages import Page, PageRequest
from stele.ui.work.dumps import build_dump, pack_dump, read_dump, write_dump
from stele.ui.work.version_import import ImportRun, find_refusal, import_versions, require_rights

if TYPE_CHECKING:
    from stele.migrate.compare import Comparison
    from stele.migrate.model import Dump, DumpVersion

_ROWS: Final = 500
_NEW: Final = "register"
_FORM_BYTES: Final = 64 * 1024
"""Maximum number of bytes of a request around the file that it sends."""


class PlannedRow(msgspec.Struct, frozen=True):
    """A difference between a dump and the registry.

    what  `register`, `number taken`, `id taken`, `delete`; after the import `written`, `refused`, `not written`
    why   what prevents it, or what differs; '' for a version that is only new
    """

    what: str
    name: str
    version: int
    id: int
    why: str
    is_conflict: bool


class ImportOutcome(msgspec.Struct, frozen=True):
    """Result of an import, read from the registry afterwards.

    written  number of versions that are now as in the dump
    refused  number of versions that the registry refused
    left     number of versions that were neither written nor refused
    stopped  why the import ended early; '' if it did not
    open     subjects left in IMPORT mode
    rows     rows of the result; those that were not written come first
    omitted  number of rows that are not listed
    """

    written: int
    refused: int
    left: int
    stopped: str
    open: Sequence[str]
    rows: Sequence[PlannedRow]
    omitted: int


class TransferPage(msgspec.Struct, frozen=True):
    """What a dump would change.

    file            whether a dump was compared
    new             number of versions that the registry lacks
    same            number of versions that it has
    conflicts       number of versions whose number or id stands for another schema
    rows            conflicts, then other differences
    omitted         number of rows that are not listed
    notes           what the dump has and no page imports
    versions        number of versions of this registry, which an export would hold
    refusal         why the caller may not export; '' if the caller may
    plan            digest of the planned changes; '' if there are none, or they are impossible
    content         the dump, compressed and in base64, to send with the plan; '' if it is too long for that
    import_refusal  why the caller may not carry out the plan; '' if the caller may
    outcome         result of the import; None if there was none
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
    plan: str = ""
    content: str = ""
    import_refusal: str = ""
    outcome: ImportOutcome | None = None
    problems: Sequence[FieldProblem] = ()


class ImportPlan(NamedTuple):
    """A dump, how the registry differs from it, and the digest of both."""

    dump: Dump
    comparison: Comparison
    digest: str

    def list_missing(self) -> list[DumpVersion]:
        """Return the versions that an import would write, each after those it refers to."""
        from stele.migrate.compare import DifferenceKind

        kinds = (DifferenceKind.REGISTER, DifferenceKind.DELETE)
        missing = {(row.name, row.version) for row in self.comparison.of_kinds(*kinds)}
        return [row for row in self.dump.versions if row.key in missing]


async def view_transfer(page: PageRequest) -> TransferPage:
    """Show what can be exported, and the form that compares a dump."""
    state = await page.registry.fresh_state()
    count = sum(
        len(subject.versions) for namespace in state.namespaces.values() for subject in namespace.subjects.values()
    )
    return TransferPage(count, page.find_refusal(Operation.EXPORT))


async def submit_dump(page: PageRequest, form: Form) -> TransferPage:
    """Compare a dump with the registry: new versions, equal versions and conflicts."""
    content = await view_transfer(page)
    try:
        data = _read_file(form)
        plan = await page.registry.run_stateless(_make_plan, page.registry.state, data)
        return await page.registry.run_stateless(_show_plan, page, content, plan, data)
    except Invalid as error:
        return msgspec.structs.replace(content, problems=[FieldProblem("dump", str(error))])


async def submit_import(page: PageRequest, form: Form) -> TransferPage:
    """Carry out a plan: write what the registry lacks of the dump, if the plan is still the one that was shown.

    The caller also needs the rights to register, import, change the policy and force on each subject that is written.
    The right to delete is needed as well for subjects with deleted versions in the dump.
    """
    content = await view_transfer(page)
    try:
        data = _read_file(form)
        plan = await page.registry.run_stateless(_make_plan, page.registry.state, data)
    except Invalid as error:
        return msgspec.structs.replace(content, problems=[FieldProblem("dump", str(error))])
    missing = plan.list_missing()
    require_rights(page, missing)
    problem = ""
    if plan.comparison.conflicts:
        problem = "Nothing was written: the dump contradicts what the registry has."
    elif form.get("plan") != plan.digest:
        problem = "Nothing was written: the registry or the file is another one since this plan was made. Look again."
    if problem:
        planned = await page.registry.run_stateless(_show_plan, page, content, plan, data)
        return msgspec.structs.replace(planned, problems=[FieldProblem("", problem)])
    run = await import_versions(page, missing)
    state = await page.registry.fresh_state()
    left = await page.registry.run_stateless(_make_plan, state, data)
    outcome = _describe_outcome(missing, left, run)
    now = msgspec.structs.replace(await view_transfer(page), notes=plan.dump.notes, outcome=outcome)
    return now if outcome.written == len(missing) and not run.open else _add_problem(now, outcome)


def _add_problem(content: TransferPage, outcome: ImportOutcome) -> TransferPage:
    count = outcome.refused + outcome.left
    verb = "was" if count == 1 else "were"
    parts = [f"{count:,} of {outcome.written + count:,} versions {verb} not written."] if count else []
    if outcome.stopped:
        parts.append(f"The import ended early: {outcome.stopped}")
    if outcome.open:
        parts.append(f"Still in IMPORT mode: {', '.join(outcome.open)}. Set their modes back.")
    return msgspec.structs.replace(content, problems=[FieldProblem("", " ".join(parts))])


def _read_file(form: Form) -> bytes:
    """Return the file that a form sends: an upload, or the content that a plan kept. Raises `InvalidRequest`."""
    data = form.files.get("dump") or form.get("text").encode()
    if not data and form.get("content"):
        try:
            data = b64decode(form.get("content"), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidRequest("the content is not base64") from None
    if not data.strip():
        raise InvalidRequest("Choose a dump of a topic, or an archive.")
    return data


def _make_plan(state: State, data: bytes) -> ImportPlan:
    """Return the plan of an import. Raises `InvalidRequest`, `TooLarge`."""
    from stele.migrate.compare import CONFLICTS, DifferenceKind, compare_dumps

    source = read_dump(data)
    subjects = {version.subject for version in source.versions}
    ids = {(version.context, version.id) for version in source.versions}

    def is_wanted(version: Version) -> bool:
        key = version.subject.key
        return (f".{key.namespace}", version.schema.schema_id) in ids or qualify_name(key) in subjects

    comparison = compare_dumps(source, build_dump(state, is_wanted), modes=False)
    rows = tuple(comparison.of_kinds(DifferenceKind.REGISTER, DifferenceKind.DELETE, *CONFLICTS))
    digest = sha256(msgspec.json.encode((source.versions, rows))).hexdigest()
    return ImportPlan(source, msgspec.structs.replace(comparison, differences=rows), digest)


def _show_plan(page: PageRequest, form: TransferPage, plan: ImportPlan, data: bytes) -> TransferPage:
    from stele.migrate.compare import CONFLICTS

    differences, conflicts = plan.comparison.differences, len(plan.comparison.conflicts)
    rows = [
        PlannedRow(row.kind.value, row.name, row.version or 0, row.id or 0, row.why, row.kind in CONFLICTS)
        for row in differences
    ]
    rows.sort(key=lambda row: not row.is_conflict)
    is_possible = bool(differences) and not conflicts
    content = b64encode(pack_dump(data)).decode() if is_possible else ""
    fits = len(content) + _FORM_BYTES <= page.options.max_request_bytes
    return msgspec.structs.replace(
        form,
        file=True,
        new=sum(row.what == _NEW for row in rows),
        same=plan.comparison.same,
        conflicts=conflicts,
        rows=rows[:_ROWS],
        omitted=max(0, len(rows) - _ROWS),
        notes=plan.dump.notes,
        plan=plan.digest if is_possible else "",
        content=content if fits else "",
        import_refusal=find_refusal(page, plan.list_missing()) if is_possible else "",
    )


def _describe_outcome(missing: Sequence[DumpVersion], left: ImportPlan, run: ImportRun) -> ImportOutcome:
    """Return the result of an import. A version counts as written if the registry no longer lacks it."""
    still = {(row.name, row.version): row.why for row in left.comparison.differences}
    rows = []
    for version in missing:
        what, why = "written", ""
        if version.key in run.refused:
            what, why = "refused", run.refused[version.key]
        elif version.key in still:
            what, why = "not written", still[version.key]
        rows.append(PlannedRow(what, version.subject, version.version, version.id, why, what != "written"))
    written = sum(row.what == "written" for row in rows)
    refused = sum(row.what == "refused" for row in rows)
    rows.sort(key=lambda row: not row.is_conflict)
    omitted = max(0, len(rows) - _ROWS)
    return ImportOutcome(written, refused, len(rows) - written - refused, run.stopped, run.open, rows[:_ROWS], omitted)


@get("/ui/transfer/download", opt=access(Operation.EXPORT, Place.REGISTRY))
async def download_dump(request: Request[Any, Any, Any]) -> Response[bytes]:
    # GET /ui/transfer/download
    """Send all versions of the registry as a dump of a topic."""
    registry = PageRequest(request).registry
    await registry.fresh_state()
    body = await registry.run_stateless(write_dump, registry)
    headers = {"content-disposition": 'attachment; filename="schemas.dump"'}
    return Response(body, media_type="application/jsonl", headers=headers)


ROUTES: Final = (download_dump,)
"""The endpoint that sends the registry as a file."""


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    right = access(Operation.READ, Place.REGISTRY)
    plan = Page("/ui/transfer", view_transfer, "transfer.html.j2", right, menu="/transfer", in_thread=True)
    done = plan._replace(path="/ui/transfer/import")
    return [
        FormPage(plan, submit_dump, right, asks_only=True),
        FormPage(done, submit_import, right),
    ]
