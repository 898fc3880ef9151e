"""Work items of the writer of a node: waiting commands and their results."""

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
"""Makes the answer from the state after a command and the command's outcome."""


class WriteJob(NamedTuple):
    """A command that waits for the writer, and the future of its answer."""

    command: cmd.Command
    stamp: EventMetadata
    verdicts: dict[Any, tuple[Finding, ...]]
    done: asyncio.Future[Any]
    has_quota: bool = False
    """Whether the caller has a quota."""
    read: AnswerReader | None = None
    """Makes the answer. None: the outcome is the answer."""

    def collect_texts(self) -> dict[bytes, bytes]:
        """Return the texts of the documents that it registers, by SHA-256."""
        commands = self.command.commands if isinstance(self.command, cmd.Transaction) else (self.command,)
        texts: dict[bytes, bytes] = {}
        for command in commands:
            if isinstance(command, cmd.RegisterSchema) and command.document is not None:
                texts |= command.document.texts
        return texts

    def is_let_in(self, required: VerdictsRequired) -> bool:
        """Return whether this is a registration that all verdicts accept, and no further verdict will be required.

        That excludes verdicts of validators, which are required before the one of the ruleset, and transactions, which
        have several commands.
        """
        return isinstance(self.command, cmd.RegisterSchema) and all(
            not question.ruleset.startswith(VALIDATOR_PREFIX)
            and question in self.verdicts
            and not any(finding.breaks for finding in self.verdicts[question])
            for question in required.questions
        )


class DecidedJob(msgspec.Struct):
    """A job of a batch, with its result and the record of its events, if it has any."""

    job: WriteJob
    result: Any
    """The outcome, then the answer; or the error."""
    record: LogRecord | None = None

    def read_answer(self, state: State) -> None:
        """Make the answer from the state that this job leaves."""
        if self.job.read is None or isinstance(self.result, Exception):
            return
        try:
            self.result = self.job.read(state, self.result)
        except Exception as error:
            # A defect in one answer must not fail other answers of the batch, nor the fold of the record.
            self.result = error

    def set_result(self) -> None:
        """Set the result on the caller's future unless it was cancelled."""
        if self.job.done.done():
            return
        if isinstance(self.result, Exception):
            self.job.done.set_exception(self.result)
        else:
            self.job.done.set_result(self.result)


def fail_jobs(jobs: Sequence[WriteJob], error: BaseException) -> None:
    """Set an error on the futures of jobs that still wait."""
    for job in jobs:
        if not job.done.done():
            job.done.set_exception(error)


def make_stamp(caller: Caller, actor: str, via: str) -> EventMetadata:
    """Return the metadata of a command's record: the caller, the time, and the dialect `via`."""
    return EventMetadata(
        os.urandom(16),
        current_millis(),
        actor,
        via,
        address=caller.address,
        agent=caller.agent,
        request_id=caller.request_id,
    )
