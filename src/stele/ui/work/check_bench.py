"""Check of a schema against another text, or against the versions of a subject. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from stele.apis.http.access import Place, access
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.model import SettingsLevel, SubjectKey
from stele.core.policy import POLICIES
from stele.errors import Invalid, InvalidName, MalformedSchema, NotFound
from stele.service.check import Candidate, CheckAnswer, CheckRequest, NamedText, check_compatibility
from stele.service.policies import get_policy, parse_level_name
from stele.service.ruleset_adoption import adopted_versions
from stele.ui.forms import FieldProblem, Form, FormPage
from stele.ui.links import qualify_name
from stele.ui.pages import Page, PageRequest

_MOST_COMPARED = 50
_MOST_FINDINGS = 200


class CheckPage(msgspec.Struct, frozen=True):
    """Two texts, or a text and a subject, and the result of their check.

    against   text of the older schema, if no subject is named
    subject   subject whose versions are the older schemas; '' for none
    answer    result; None: nothing was checked
    compared  number of older schemas that were compared
    omitted   number of findings that are not listed
    """

    formats: Sequence[str]
    policies: Sequence[str]
    format: str = "avro"
    policy: str = "BACKWARD"
    schema: str = ""
    against: str = ""
    subject: str = ""
    answer: CheckAnswer | None = None
    compared: int = 0
    omitted: int = 0
    problems: Sequence[FieldProblem] = ()


async def view_check(page: PageRequest) -> CheckPage:
    """Show the form for a check."""
    return CheckPage(
        page.registry.parser.list_format_names(),
        list(POLICIES),
        format=page.get_query("format", "avro"),
        policy=page.get_query("policy", "BACKWARD"),
        subject=page.get_query("subject"),
    )


async def submit_check(page: PageRequest, form: Form) -> CheckPage:
    """Check a schema."""
    content = msgspec.structs.replace(
        await view_check(page),
        format=form.get("format", "avro"),
        policy=form.get("policy", "BACKWARD"),
        schema=form.get("schema").replace("\r\n", "\n"),
        against=form.get("against").replace("\r\n", "\n"),
        subject=form.get("subject").strip(),
    )
    if not content.schema.strip():
        return _with_problem(content, "schema", "Write or paste the schema to check.")
    try:
        if content.subject:
            older, references, ruleset = await _find_versions(page, content)
        else:
            older = (Candidate(content.against),) if content.against.strip() else ()
            references, ruleset = (), None
    except (Invalid, NotFound) as error:
        return _with_problem(content, "subject", str(error))
    request = CheckRequest(
        content.format, content.schema, content.policy, ruleset=ruleset, references=references, against=older
    )
    check = partial(
        check_compatibility,
        request,
        page.registry.limits,
        undecided=page.registry.compatibility.undecided,
        adopted=await adopted_versions(page.registry),
    )
    try:
        answer = await page.registry.run_stateless(check)
    except MalformedSchema as error:
        field = "schema" if error.against is None else "against"
        return msgspec.structs.replace(content, problems=[FieldProblem(field, str(error), error.line)])
    except Invalid as error:
        return _with_problem(content, "", str(error))
    omitted = answer.omitted + max(0, len(answer.findings) - _MOST_FINDINGS)
    cut = msgspec.structs.replace(answer, findings=answer.findings[:_MOST_FINDINGS])
    return msgspec.structs.replace(content, answer=cut, compared=len(older), omitted=omitted)


async def _find_versions(
    page: PageRequest, content: CheckPage
) -> tuple[tuple[Candidate, ...], tuple[NamedText, ...], str | None]:
    """Return the newest versions of a subject, oldest first, and the references and ruleset of the newest one.

    Raises `InvalidName`, `SubjectNotFound`, `Forbidden`, `Unauthenticated`.
    """
    level = parse_level_name(content.subject)
    if level.namespace is None or not level.subject:
        raise InvalidName(content.subject, "names no subject")
    key = SubjectKey(level.namespace, level.subject)
    page.registry.access.require(Operation.READ, subject_resource(key))
    state = await page.registry.fresh_state()
    newest = queries.get_version(state, key, None)
    versions = [
        version
        for version in queries.list_versions(state.find_subject(key))
        if version.kind.format == newest.kind.format
    ][-_MOST_COMPARED:]

    def read(sha: bytes) -> str:
        return state.get_text(state.contents[sha]).decode("utf-8", "replace")

    candidates = [
        Candidate(
            read(version.content.sha),
            tuple(
                NamedText(name, read(sha))
                for name, sha in queries.resolve_references(state, version.schema.attachments.references)
            ),
            f"{qualify_name(key)} version {version.version_number}",
        )
        for version in versions
    ]
    answer = await get_policy(page.registry, SettingsLevel(*key))
    return tuple(candidates), candidates[-1].references, answer.rulesets.get(newest.kind.format)


def _with_problem(content: CheckPage, field: str, message: str) -> CheckPage:
    return msgspec.structs.replace(content, problems=[FieldProblem(field, message)])


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    right = access(Operation.READ, Place.INSIDE)
    page = Page("/ui/check", view_check, "check.html.j2", access(Operation.LIST, Place.NOWHERE), menu="/check")
    return [FormPage(page, submit_check, right, asks_only=True)]
