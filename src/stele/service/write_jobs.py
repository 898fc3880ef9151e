"""What the writer of a node works on: commands that wait, and what they came to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from stele.core import commands as cmd
from stele.core.compatibility_requests import VALIDATOR_PREFIX, VerdictsRequired
from stele.core.events import EventMetadata, LogRecord
from stele.core.findings import Finding
from stele.core.state import State
from stele.service.access import Caller
from stele.service.times import current_millis

AnswerReader = Callable[[State, cmd.Outcome], Any]
"""Makes the answer of the outcome of a command and the state it leaves."""


class WriteJob(NamedTuple):
    """A command that waits for the writer, and whoever waits for its answer."""

    command: cmd.Command
    stamp: EventMetadata
    verdicts: dict[Any, tuple[Finding, ...]]
    done: asyncio.Future[Any]
    has_quota: bool = False
    """Whether the caller may register only so much."""
    read: AnswerReader | None = None
    """None: the outcome is the answer."""

    def collect_texts(self) -> dict[bytes, bytes]:
        """Return the texts of the documents that it registers, by SHA-256."""
        commands = self.command.commands if isinstance(self.command, cmd.Transaction) else (self.command,)
        texts: dict[bytes, bytes] = {}
        for command in commands:
            if isinstance(command, cmd.RegisterSchema) and command.document is not None:
                texts |= command.document.texts
        return texts

    def is_let_in(self, required: VerdictsRequired) -> bool:
        """Whether it is a registration that no verdict asked for is against, and no other one will be asked for.

        Validators are asked before the ruleset is, and a transaction has several commands.
        """
        return isinstance(self.command, cmd.RegisterSchema) and all(
            not question.ruleset.startswith(VALIDATOR_PREFIX)
            and question in self.verdicts
            and not any(finding.breaks for finding in self.verdicts[question])
            for question in required.questions
        )


class DecidedJob(msgspec.Struct):
    """A job of a batch, with what it came to and the record that has its events, if there are any."""

    job: WriteJob
    result: Any
    """The outcome, then the answer; or the error."""
    record: LogRecord | None = None

    def read_answer(self, state: State) -> None:
        """Make the answer, while the state is as this job leaves it."""
        if self.job.read is None or isinstance(self.result, Exception):
            return
        try:
            self.result = self.job.read(state, self.result)
        except Exception as error:
            # A defect in one answer must not end the others of the batch, nor whoever folds the record.
            self.result = error

    def set_result(self) -> None:
        """Tell whoever waits, unless he has gone."""
        if self.job.done.done():
            return
        if isinstance(self.result, Exception):
            self.job.done.set_exception(self.result)
        else:
            self.job.done.set_result(self.result)


def fail_jobs(jobs: Sequence[WriteJob], error: BaseException) -> None:
    """Tell those who still wait for jobs what went wrong."""
    for job in jobs:
        if not job.done.done():
            job.done.set_exception(error)


def make_stamp(caller: Caller, actor: str, via: str) -> EventMetadata:
    """Return what the record of a command says of who sent it and when; via is the dialect."""
    return EventMetadata(
        os.urandom(16),
        current_millis(),
        actor,
        via,
        address=caller.address,
        agent=caller.agent,
        request_id=caller.request_id,
    )
