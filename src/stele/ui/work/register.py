"""Registration of a schema or of the next version of one: first the check, with the readers that would break."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import NO_RIGHT_NEEDED, Place, access
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.findings import Finding
from stele.core.model import MAX_INT32, Reference, SettingsLevel, SubjectKey
from stele.core.state import State
from stele.errors import Incompatible, InvalidName, InvalidRequest, MalformedSchema, PreconditionFailed, SteleError
from stele.service.missing_references import find_missing_references
from stele.service.policies import get_policy, parse_level_name
from stele.service.proposals import Proposal, ProposalReport, check_proposal, register_proposal
from stele.service.schemas import LATEST
from stele.ui.forms import Destination, FieldProblem, Form, FormPage
from stele.ui.links import add_query, qualify_name, subject_path
from stele.ui.pages import Page, PageRequest
from stele.ui.routes.rules import describe_policy

VIA: Final = "ui"
"""Name of these pages in the journal entries of their changes."""
_JSON_FORMATS: Final = frozenset({"avro", "json"})
_ROWS: Final = 20
"""Maximum number of references in a form."""
_ACTIONS: Final = ("check", "detect", "register")


class ReferenceRow(msgspec.Struct, frozen=True):
    """A reference in the form, as texts that were typed; version '' or `latest` is the newest one."""

    name: str = ""
    subject: str = ""
    version: str = ""


class RegisterPage(msgspec.Struct, frozen=True):
    """A form for a schema, and the results of its check.

    subject     qualified name; '' if the form asks for it
    is_new      whether the subject has no active version
    latest      number of the newest active version; 0 for none
    schema      the text
    references  rows of the form
    missing     names that the schema uses without a reference, and for which the registry has no schema
    sentence    policy in force, in words
    refusal     why the caller may not register; '' if the caller may
    report      result of a check; None: nothing was checked
    refused     findings that refused the registration itself, because another writer changed the subject after the
                check
    names       other common names for such a subject
    problems    what is wrong with the form
    """

    subject: str
    is_new: bool
    latest: int
    format: str
    formats: Sequence[str]
    schema: str
    references: Sequence[ReferenceRow]
    normalize: bool
    sentence: str
    refusal: str
    missing: Sequence[str] = ()
    report: ProposalReport | None = None
    refused: Sequence[Finding] = ()
    names: Sequence[str] = ()
    problems: Sequence[FieldProblem] = ()


async def view_register(page: PageRequest) -> RegisterPage:
    """Show the form that registers the first version of a subject."""
    format_name = page.get_query("format", "avro")
    return await _show(page, page.get_query("subject"), format_name, "", [], normalize=False)


async def view_evolve(page: PageRequest) -> RegisterPage:
    """Show the form that registers the next version of a subject; it begins with the newest text."""
    key = page.subject
    state = await page.registry.fresh_state()
    newest = queries.latest_version(state.find_subject(key))
    if newest is None:
        return await _show(page, qualify_name(key), page.get_query("format", "avro"), "", [], normalize=False)
    references = [
        ReferenceRow(each.name, qualify_name(each.key), str(each.version_number))
        for each in newest.schema.attachments.references
    ]
    text = state.get_text(newest.content).decode("utf-8", "replace")
    if newest.kind.format in _JSON_FORMATS and "\n" not in text.strip():
        text = await page.registry.run_stateless(_break_lines, text)
    return await _show(page, qualify_name(key), newest.kind.format, text, references, normalize=False)


def _break_lines(text: str) -> str:
    """Return a JSON text on several lines for editing, as the same schema. Other texts are returned unchanged."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


async def submit_schema(page: PageRequest, form: Form) -> msgspec.Struct:
    """Check a schema, find its missing references, or register it."""
    rows = _read_rows(form)
    content = await _show(
        page,
        form.get("subject").strip(),
        form.get("format", "avro"),
        _read_text(form),
        rows,
        normalize=form.get("normalize") in {"on", "true"},
    )
    action = form.get("action", "check")
    if action not in _ACTIONS:
        raise InvalidRequest(f"action must be one of {', '.join(_ACTIONS)}")
    key, problems = _parse_subject(content.subject)
    if key is None:
        return msgspec.structs.replace(content, problems=problems)
    page.registry.access.require(Operation.REGISTER if action == "register" else Operation.READ, subject_resource(key))
    if not content.schema.strip():
        return _with_problem(content, "schema", "Write or paste a schema, or choose a file.")
    try:
        if action == "detect":
            return await _detect_references(page, key, content)
        references, problems = _parse_references(key, rows)
        if problems:
            return msgspec.structs.replace(content, problems=problems)
        proposal = Proposal(key, content.format, content.schema, references, content.normalize)
        if action == "register":
            return await _register(page, content, proposal, form.get("latest"))
        report = await check_proposal(page.registry, proposal)
        return msgspec.structs.replace(content, report=report, names=await _list_names(page, proposal))
    except MalformedSchema as error:
        place = error.path or ""
        message = f"{f'{place}: ' if place and error.line is None else ''}{error.why}"
        if error.line is not None:
            message = f"Line {error.line}, column {error.column}: {message}"
        if error.expected:
            message += f" (expected {error.expected})"
        return msgspec.structs.replace(content, problems=[FieldProblem("schema", message, error.line)])
    except InvalidName as error:
        return _with_problem(content, "subject", str(error))


async def _register(page: PageRequest, content: RegisterPage, proposal: Proposal, latest: str) -> msgspec.Struct:
    expected = int(latest) if latest.isascii() and latest.isdigit() and len(latest) < 10 else None
    try:
        registration = await register_proposal(page.registry, proposal, expected_latest=expected, via=VIA)
    except Incompatible as error:
        report = await check_proposal(page.registry, proposal)
        problem = FieldProblem(
            "", "Nothing was registered: the policy refuses this schema. The reasons are listed below."
        )
        return msgspec.structs.replace(content, report=report, refused=error.findings, problems=[problem])
    except PreconditionFailed:
        return _with_problem(
            content, "", "Somebody else registered a version meanwhile. Nothing was registered: check the schema again."
        )
    done = "registered" if registration.created else "same"
    return Destination(
        add_query(subject_path(registration.key), {"version": registration.version_number, "done": done})
    )


async def _show(
    page: PageRequest,
    subject: str,
    format_name: str,
    text: str,
    rows: Sequence[ReferenceRow],
    *,
    normalize: bool,
) -> RegisterPage:
    """Return the form with these values, and the policy and rights that it shows."""
    key, _ = _parse_subject(subject)
    state = await page.registry.fresh_state()
    sentence, refusal, latest = "", "", 0
    if key is not None:
        refusal = page.find_refusal(Operation.REGISTER, subject_resource(key))
        if page.registry.access.can_read(key):
            sentence = describe_policy(await get_policy(page.registry, SettingsLevel(*key)))
            newest = queries.latest_version(state.find_subject(key))
            latest = newest.version_number if newest is not None else 0
    elif page.options.read_only:
        refusal = page.find_refusal(Operation.REGISTER)
    return RegisterPage(
        subject=subject,
        is_new=not latest,
        latest=latest,
        format=format_name,
        formats=page.registry.parser.list_format_names(),
        schema=text,
        references=rows,
        normalize=normalize,
        sentence=sentence,
        refusal=refusal,
    )


def _with_problem(content: RegisterPage, field: str, message: str) -> RegisterPage:
    return msgspec.structs.replace(content, problems=[FieldProblem(field, message)])


def _read_text(form: Form) -> str:
    """Return the text of the form, or that of the file that was chosen instead."""
    file = form.files.get("file")
    text = file.decode("utf-8", "replace") if file is not None else form.get("schema")
    return text.replace("\r\n", "\n")


def _read_rows(form: Form) -> list[ReferenceRow]:
    columns = [form.get_all(name) for name in ("ref_name", "ref_subject", "ref_version")]
    longest = max(map(len, columns), default=0)
    if longest > _ROWS + 2:
        raise InvalidRequest(f"a form can have at most {_ROWS} references")
    rows = [
        ReferenceRow(*(column[at].strip() if at < len(column) else "" for column in columns)) for at in range(longest)
    ]
    return [row for row in rows if row.name or row.subject]


def _parse_subject(name: str) -> tuple[SubjectKey | None, list[FieldProblem]]:
    if not name:
        return None, [FieldProblem("subject", "Name the subject.")]
    try:
        level = parse_level_name(name)
    except InvalidName as error:
        return None, [FieldProblem("subject", str(error))]
    if level.namespace is None or not level.subject:
        return None, [FieldProblem("subject", "This names a namespace: write a name behind it.")]
    return SubjectKey(level.namespace, level.subject), []


def _parse_references(
    key: SubjectKey, rows: Sequence[ReferenceRow]
) -> tuple[tuple[Reference, ...], list[FieldProblem]]:
    references: list[Reference] = []
    problems: list[FieldProblem] = []
    for number, row in enumerate(rows, 1):
        target, wrong = _parse_subject(row.subject)
        if not row.name or target is None:
            what = wrong[0].message if wrong and row.subject else "It needs a name and a subject."
            problems.append(FieldProblem("references", f"Reference {number}: {what}"))
            continue
        version = row.version.lower()
        if version in {"", "latest"}:
            place = LATEST
        elif version.isascii() and version.isdigit() and 0 < int(version[:11]) <= MAX_INT32:
            place = int(version)
        else:
            problems.append(FieldProblem("references", f"Reference {number}: the version is a number, or latest."))
            continue
        namespace = target.namespace if row.subject.startswith(":.") else key.namespace
        references.append(Reference(row.name, namespace, target.name, place))
    return tuple(references), problems


async def _detect_references(page: PageRequest, key: SubjectKey, content: RegisterPage) -> RegisterPage:
    known = [row.name for row in content.references]
    missing_references = await find_missing_references(
        page.registry, key.namespace, content.format, content.schema, known
    )
    rows = [
        ReferenceRow(each.name, qualify_name(each.subject), str(each.version))
        for each in missing_references
        if each.subject is not None
    ]
    missing = [each.name for each in missing_references if each.subject is None]
    return msgspec.structs.replace(content, references=[*content.references, *rows][:_ROWS], missing=missing)


async def _list_names(page: PageRequest, proposal: Proposal) -> list[str]:
    """Return the subject names that the naming strategies of clients give to this record."""
    state: State = page.registry.state
    try:
        prepared = await page.registry.parser.prepare_schema(
            state, proposal.format, proposal.text.encode(), proposal.references
        )
    except SteleError:
        return []
    record = prepared.document.type
    topic = proposal.key.name.removesuffix("-value").removesuffix("-key")
    names = [f"{topic}-value", record, f"{topic}-{record}"] if record and topic != record else [f"{topic}-value"]
    return [name for name in names if name and name != proposal.key.name]


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    new = Page("/ui/register", view_register, "register.html.j2", NO_RIGHT_NEEDED, menu="/register")
    evolve = Page(
        "/ui/subjects/{name:str}/register", view_evolve, "register.html.j2", access(Operation.READ), menu="/subjects"
    )
    right = access(Operation.REGISTER, Place.INSIDE)
    return [FormPage(new, submit_schema, right), FormPage(evolve, submit_schema, right)]
