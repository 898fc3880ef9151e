"""Which registrations need no second decision before their batch."""

from __future__ import annotations

import asyncio

import pytest

from stele.core.commands import DeleteMode, DeleteSubject, RegisterSchema, Transaction
from stele.core.compatibility_requests import (
    VALIDATOR_PREFIX,
    CompatibilityRequest,
    SchemaSource,
    VerdictsRequired,
)
from stele.core.decide.register import make_document
from stele.core.findings import Finding, Severity
from stele.core.model import SubjectKey
from stele.service.access import CALLER
from stele.service.write_jobs import WriteJob, make_stamp

KEY = SubjectKey("", "orders")
REGISTRATION = RegisterSchema(key=KEY, document=make_document(b'"int"', "avro"))
BREAK = Finding(rule="TYPE_CHANGED", path="", why="w", fix="f")
HINT = Finding(rule="TYPE_CHANGED", path="", why="w", fix="f", level=Severity.WARNING)


def _ask(ruleset: str = "") -> CompatibilityRequest:
    return CompatibilityRequest("avro", ruleset, SchemaSource(b"reader"), SchemaSource(b"writer"))


@pytest.mark.parametrize(
    ("command", "question", "findings", "is_let_in"),
    [
        (REGISTRATION, _ask(), (), True),
        (REGISTRATION, _ask(), (HINT,), True),
        (REGISTRATION, _ask(), (HINT, BREAK), False),
        (REGISTRATION, _ask(), None, False),
        (REGISTRATION, _ask(f"{VALIDATOR_PREFIX}lint"), (), False),
        (Transaction((REGISTRATION, REGISTRATION)), _ask(), (), False),
        (DeleteSubject(KEY, DeleteMode.SOFT), _ask(), (), False),
    ],
)
async def test_what_nothing_speaks_against(
    command: RegisterSchema | Transaction | DeleteSubject,
    question: CompatibilityRequest,
    findings: tuple[Finding, ...] | None,
    is_let_in: bool,
) -> None:
    """Only a single registration qualifies, if all required verdicts accept it and none is a validator's."""
    verdicts = {} if findings is None else {question: findings}
    done = asyncio.get_running_loop().create_future()
    job = WriteJob(command, make_stamp(CALLER.get(), "", ""), verdicts, done)
    assert job.is_let_in(VerdictsRequired((question,))) is is_let_in


async def test_texts_of_all_documents_are_collected() -> None:
    """A transaction has the texts of all its registrations, and none of other commands."""
    other = RegisterSchema(key=KEY, document=make_document(b'"long"', "avro"))
    command = Transaction((REGISTRATION, other, DeleteSubject(KEY, DeleteMode.SOFT)))
    job = WriteJob(command, make_stamp(CALLER.get(), "", ""), {}, asyncio.get_running_loop().create_future())
    assert sorted(job.collect_texts().values()) == [b'"int"', b'"long"']
