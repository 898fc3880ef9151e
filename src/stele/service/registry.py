"""A node: the state in memory, the log behind it, and one writer that turns commands into records.

Any node serves any read and any write. Nodes of one log agree because the log orders their writes. Reads of immutable
facts come from memory and catch up with the log only on a miss. Every other read catches up first (`fresh_state`).
Writes that arrive while another one becomes durable go into the log together.

Source: docs/protocols/redpanda.md#one-log-many-writers.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import time
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import structlog

from stele.core import commands as cmd
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.compatibility_requests import CompatibilityRequest, VerdictsRequired
from stele.core.decide import Decision, decide
from stele.core.decide.compatibility import find_incompatibilities
from stele.core.events import (
    LogRecord,
    decode_record,
    encode_record,
    make_record,
    redact_texts,
)
from stele.core.findings import Finding, WhenUndecided
from stele.core.fold import apply_event, apply_record
from stele.core.model import Attachments, SchemaDocument, SubjectKey, Version
from stele.core.policy import Policy
from stele.core.ports import Log, LogEntry
from stele.core.snapshot import dump_state
from stele.core.state import State
from stele.errors import (
    DamagedLog,
    Incompatible,
    NotFound,
    Overloaded,
    QuotaUsedUp,
    RecordsTooLarge,
    SteleError,
    StoreError,
    StoreReplaced,
    StoreTimeout,
    TooLarge,
)
from stele.service import rulesets
from stele.service.access import CALLER, OPEN_ACCESS, AccessControl
from stele.service.audit_notes import AuditNotes
from stele.service.compatibility import CompatibilityChecker
from stele.service.early_state import EarlyState, decode_snapshot
from stele.service.limits import Limits
from stele.service.old_records import decode_entry, read_entry
from stele.service.refusals import note_refused_registration
from stele.service.required_rights import required_rights
from stele.service.schemas import SchemaParser
from stele.service.secrets import Secrets
from stele.service.time_slices import TimeSlices
from stele.service.tracing import NoTracer, Tracer
from stele.service.work_processes import WorkProcesses
from stele.service.write_jobs import AnswerReader, DecidedJob, WriteJob, fail_jobs, make_stamp
from stele.storage.heap import return_memory

_logger = structlog.get_logger("stele.registry")

_PAGE = 1000
"""Log entries that are read at once. Larger pages load no faster and leave more unused memory in the allocator."""
_BATCH = 256
"""Maximum number of commands that are made durable together."""
_SNAPSHOT_EVERY = 20_000
"""Records since the last snapshot from which on the next one is saved (at start-up and close)."""
_POLL_SECONDS = 1.0
_OWN_GROWTH_SECONDS = 0.02
"""Pause of the follower while the log grows only by own records. Records of other nodes are seen that much later."""
_ITEMS_CHANGED = b"ItemsChanged"
"""Bytes that every record with such an event contains. They avoid decoding all other records."""
SKIPPED_SCHEMA_IDS: Final = 10_000
"""Schema ids of every namespace that a restored registry skips: more than any original assigns after a backup."""
SKIPPED_NUMBERS: Final = 100
"""Encoding ids and version numbers that it skips in every subject. A record id has room for 16,383 versions."""

P = ParamSpec("P")
T = TypeVar("T")


class Registry:
    """One node of a registry. Open with `Registry.open`, close with `close`; belongs to one event loop."""

    def __init__(
        self, log: Log, limits: Limits | None = None, *, undecided: WhenUndecided = WhenUndecided.REFUSE
    ) -> None:
        self._log = log
        self.state = State()
        self.node_name = f"{socket.gethostname()}/{os.getpid()}/{os.urandom(2).hex()}"
        """Host, process and four random digits, which distinguish nodes of one process. Used in leases and metrics."""
        self.limits = limits or Limits()
        self.parser = SchemaParser(self.limits)
        self.compatibility = CompatibilityChecker(self.parser, undecided)
        self.access: AccessControl = OPEN_ACCESS
        """Decides what callers may do."""
        self.audit = AuditNotes(self.limits.refusals, self.limits.refused_text_bytes)
        """Notes for the audit trail that are not changes in the log."""
        self.secrets = Secrets()
        """The keys that seal secrets in documents."""
        self.stateless_threads: Executor | None = None
        """Executor of `run_stateless`; None: the default threads of the event loop."""
        self.stateless_processes: WorkProcesses | None = None
        """Processes for its long calls; None: these run in threads, too."""
        self.time_slices = TimeSlices()
        """For loops over all subjects, all versions of a subject and the like."""
        self.tracer: Tracer = NoTracer()
        self.conflicts = 0
        self.appended = 0
        self.quota_refusals = 0
        """Number of changes that this node refused because of the quota of their callers."""
        self.write_failure: StoreError | None = None
        """Error of the last write to the log; None if it succeeded."""
        self.lag_records = 0
        """Number of records of other nodes that this node had not folded at the last check."""
        self.caught_up_at = time.monotonic()
        """Time at which this node last had every record, in seconds of `time.monotonic`."""
        self._snapshot_seq = 0
        self._folding = asyncio.Lock()
        self._growth = asyncio.Event()
        """Set when the state has folded more of the log."""
        self._behind = True
        self._catch_ups = 0
        """Number of times this node began to catch up with the log; `_caught_up` is the last time that succeeded."""
        self._caught_up = 0
        self._bootstrap_lock = asyncio.Lock()
        self._bootstrapped = False
        self._has_skipped_ids = False
        self._queue: asyncio.Queue[WriteJob] = asyncio.Queue()
        self.waiting_writes = 0
        """How many changes wait for the log or are being written."""
        self._to_erase: dict[int, frozenset[bytes]] = {}
        """Digests of purged texts, by the sequence number of the record that has them."""
        self._writing: dict[bytes, list[DecidedJob]] = {}
        """Records of the batch being written, by uid, each with the jobs that are answered from the state after it."""
        self._writer: asyncio.Task[None] | None = None
        self._follower: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        log: Log,
        limits: Limits | None = None,
        *,
        undecided: WhenUndecided = WhenUndecided.REFUSE,
        early: EarlyState | None = None,
    ) -> Registry:
        """Load the newest snapshot and the records after it, then start writer and follower. Raises `StoreError`.

        `early` is a state that was already loaded from this log. It replaces the snapshot.
        """
        registry = cls(log, limits, undecided=undecided)
        await registry._load_snapshot_and_tail(early)
        registry._writer = asyncio.create_task(registry._run_writer())
        registry._follower = asyncio.create_task(registry._run_follower())
        return registry

    async def close(self) -> None:
        """Finish pending writes, save a snapshot if there are enough new records, and close the log."""
        await self._queue.join()
        await _end_tasks(self._writer, self._follower)
        try:
            await self._save_snapshot()
        finally:
            await self._log.close()

    async def reset(self, log: Log) -> None:
        """Drop all state, close the log and continue with an empty one: only for conformance runs on memory stores."""
        before = self._log
        await _end_tasks(self._follower)  # It waits for records of the old log.
        async with before.turn(), self._folding:
            self._log = log
            purges = self.state.purges + 1
            self.state = State()
            self.state.purges = purges
            self._bootstrapped = False
            self._snapshot_seq = 0
            self._to_erase.clear()
        await before.close()
        self._follower = asyncio.create_task(self._run_follower())

    # --- reading ----------------------------------------------------------------------------------------------------

    async def fresh_state(self) -> State:
        """Return the state with everything in it that was durable when this was called."""
        if not self._log.notices_at_once or not self.has_read_all():
            await self._catch_up()
        return self.state

    async def heed_notices(self) -> None:
        """Catch up if this node knows of new records: sufficient for access rules. Raises `StoreError`."""
        if not self.has_read_all():
            await self._catch_up()

    def is_fresh(self) -> bool:
        """Return whether memory is certainly up to date. Does not wait."""
        return self._log.notices_at_once and self.has_read_all()

    def has_read_all(self) -> bool:
        """Return whether memory has all records this node knows of: sufficient for immutable facts. Does not wait."""
        if self._folding.locked() or self._behind:
            return False
        self._behind = self._log.has_changed()
        return not self._behind

    async def read_or_catch_up(self, query: Callable[[State], T]) -> T:
        """Answer from memory. On a miss, catch up and ask again. For ids and exact versions."""
        if not self.has_read_all():
            await self._catch_up()
        try:
            return query(self.state)
        except NotFound:
            await self._catch_up()
            return query(self.state)

    async def wait_for_record(self, seq: int, seconds: float) -> None:
        """Wait until memory has a record of the log, at most the given seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.state.seq < seq:
                    await self._growth.wait()

    def _note_growth(self) -> None:
        self._growth.set()
        self._growth = asyncio.Event()

    async def read_log(self, after: int, limit: int) -> list[tuple[int, LogRecord]]:
        """Return records after a sequence number, each with its own number, oldest first. Raises `StoreError`."""
        return [(entry.seq, decode_entry(entry)) for entry in await self._log.tail(after, limit)]

    async def find_incompatibilities(
        self,
        key: SubjectKey,
        document: SchemaDocument,
        attachments: Attachments,
        *,
        policy: Policy | None = None,
        version_number: int | None = None,
        ruleset: str = "",
    ) -> tuple[list[Finding], int | None]:
        """Return why the policy in force (or the given one) refuses a document, and which version does, or ([], None).

        version_number limits the comparison to one version; ruleset decides where the settings name none. The caller
        needs the right to read the subject. Raises `VersionNotFound`, `Forbidden`, `Unauthenticated`.
        """
        self.access.require(Operation.READ, subject_resource(key))
        verdicts: dict[Any, tuple[Finding, ...]] = {}
        while True:
            state = await self.fresh_state()
            only = None if version_number is None else queries.get_version(state, key, version_number)
            try:
                return find_incompatibilities(
                    state,
                    key,
                    document,
                    attachments,
                    policy or queries.policy_for(state, key),
                    ChainMap(verdicts, self.compatibility.verdicts),  # type: ignore[arg-type]  # ChainMap only reads the second
                    only=only,
                    ruleset=ruleset,
                )
            except VerdictsRequired as undecided:
                verdicts |= await self._find_verdicts(state, undecided, document.texts)

    async def run_stateless(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work that registers nothing separately from all other work, so that it delays no write.

        Raises what the call raises, and `Overloaded`. Cancelling interrupts it.
        """
        loop = asyncio.get_running_loop()
        work = partial(copy_context().run, call, *args, **kwargs)
        return await loop.run_in_executor(self.stateless_threads, work)

    # --- writing ----------------------------------------------------------------------------------------------------

    async def execute(self, command: cmd.Command, *, via: str = "", expects_change: bool = False) -> cmd.Outcome:
        """Execute a command for the caller (`service.access.CALLER`), and return when it is durable.

        expects_change: the command is decided once, together with its batch. Otherwise a command that changes nothing
        or is refused does not wait for a batch, and verdicts are computed before it joins one.

        Raises `Forbidden` and `Unauthenticated` if the caller lacks a required right, what the decision raises,
        `Overloaded` if too many changes wait, or `StoreError`.
        """
        outcome: cmd.Outcome = await self._execute_for_caller(command, via, expects_change=expects_change)
        return outcome

    async def execute_and_read(
        self, command: cmd.Command, read: Callable[[State, Any], T], *, via: str = "", expects_change: bool = False
    ) -> T:
        """Execute a command as `execute` does, and return what `read` returns for the state right after it.

        Later commands of others may already have changed that state again.
        """
        run = copy_context().run
        answer: T = await self._execute_for_caller(
            command, via, expects_change=expects_change, read=lambda state, outcome: run(read, state, outcome)
        )
        return answer

    async def register(
        self,
        command: cmd.RegisterSchema,
        make_answer: Callable[[State, Version], T],
        *,
        via: str = "",
        expects_change: bool = False,
    ) -> tuple[cmd.Registration, T]:
        """Register a schema. Return its outcome and the answer made from the version, as `execute_and_read` does."""

        def read(state: State, outcome: cmd.Registration) -> tuple[cmd.Registration, T]:
            version = queries.get_version(state, outcome.key, outcome.version_number, queries.ACTIVE_OR_SOFT_DELETED)
            return outcome, make_answer(state, version)

        return await self.execute_and_read(command, read, via=via, expects_change=expects_change)

    async def _execute_for_caller(
        self, command: cmd.Command, via: str, *, expects_change: bool, read: AnswerReader | None = None
    ) -> Any:
        if not self.access.is_open:
            for operation, resource in required_rights(command, self.state):
                self.access.require(operation, resource)
        if self.state.seq == 0:
            await self._bootstrap_rulesets()
        elif self._log.may_lack_records():
            await self._skip_ids()
        actor = CALLER.get().principal.name
        try:
            return await self._execute(command, actor, via, expects_change=expects_change, read=read)
        except Incompatible as error:
            note_refused_registration(self.audit, command, error)
            raise

    async def _execute(
        self,
        command: cmd.Command,
        actor: str,
        via: str,
        *,
        expects_change: bool = False,
        read: AnswerReader | None = None,
    ) -> Any:
        caller = CALLER.get()
        has_quota = self.limits.has_quotas and not self.access.is_super(caller)
        job = WriteJob(
            command, make_stamp(caller, actor, via), {}, asyncio.get_running_loop().create_future(), has_quota, read
        )
        if not expects_change:
            decision = await self._decide_job(job)
            if decision is not None and not decision.events:
                return decision.outcome if read is None else read(self.state, decision.outcome)
        if self.waiting_writes >= self.limits.waiting_writes:
            raise Overloaded(f"the server is overloaded: {self.waiting_writes} changes are waiting for the log")
        with self.tracer.open_span("stele.append", {}):
            self.waiting_writes += 1
            self._queue.put_nowait(job)
            return await job.done

    async def _decide_job(self, job: WriteJob) -> Decision | None:
        """Decide on the state in memory; repeat refusals and decisions without events on a fresh state.

        None: a registration that no verdict refuses. It is decided with its batch.
        """
        is_fresh = False
        while True:
            try:
                decision = decide(self.state, job.command, job.stamp, self._collect_verdicts(job))
                if is_fresh or decision.events:
                    return decision
            except VerdictsRequired as undecided:
                await self._answer_requests(self.state, job, undecided)
                if job.is_let_in(undecided):
                    return None
                continue
            except SteleError:
                if is_fresh:
                    raise
            await self.fresh_state()
            is_fresh = True

    def _collect_verdicts(self, job: WriteJob) -> Any:
        return ChainMap(job.verdicts, self.compatibility.verdicts)  # type: ignore[arg-type]  # only read

    async def _answer_requests(self, state: State, job: WriteJob, undecided: VerdictsRequired) -> None:
        job.verdicts.update(await self._find_verdicts(state, undecided, job.collect_texts()))

    async def _find_verdicts(
        self, state: State, undecided: VerdictsRequired, extra: Mapping[bytes, bytes]
    ) -> dict[CompatibilityRequest, tuple[Finding, ...]]:
        with self.tracer.open_span("stele.verdict", {"stele.comparisons": len(undecided.questions)}):
            return await self.compatibility.answer_requests(state, undecided.questions, extra)

    async def _bootstrap_rulesets(self) -> None:
        """Adopt the newest rulesets before the first write, when that cannot change any verdict yet."""
        async with self._bootstrap_lock:
            if not self._bootstrapped:
                if versions := await asyncio.to_thread(rulesets.newest_versions):
                    await self._execute(cmd.AdoptRulesets(versions, first=True), "", "start")
                self._bootstrapped = True

    async def _skip_ids(self) -> None:
        """Skip ids before the first write after a restore: the original may have assigned ids that this log lacks."""
        async with self._bootstrap_lock:
            if not self._has_skipped_ids:
                _logger.warning("restored", skipped_schema_ids=SKIPPED_SCHEMA_IDS, skipped_numbers=SKIPPED_NUMBERS)
                await self._execute(cmd.SkipIds(SKIPPED_SCHEMA_IDS, SKIPPED_NUMBERS), "", "restore")
                self._has_skipped_ids = True

    async def _run_writer(self) -> None:
        while True:
            jobs = [await self._queue.get()]
            while len(jobs) < _BATCH and not self._queue.empty():
                jobs.append(self._queue.get_nowait())
            try:
                await self._commit_jobs(jobs)
            except SteleError as error:
                fail_jobs(jobs, error)
            except Exception as error:
                # A defect must not end the writer: the waiting callers get the error, the next batch continues.
                fail_jobs(jobs, error)
                _logger.exception("write failed")
            finally:
                self.waiting_writes -= len(jobs)
                for _ in jobs:
                    self._queue.task_done()

    async def _commit_jobs(self, jobs: list[WriteJob]) -> None:
        """Decide jobs in order, each on the result of those before, append their records as one batch, and answer them.

        A batch that is too large for the store is halved; a change that is too large by itself is refused.
        """
        pending, most = jobs, len(jobs)
        while pending:
            async with self._log.turn():
                await self._catch_up()
                batch, undecided = self._decide_in_draft(pending[:most])
                expected = self.state.seq
                records = [row.record for row in batch if row.record is not None]
                self._note_writing(batch)
                try:
                    if not records or await self._append_records(expected, records):
                        await self._apply_batch(expected, batch)
                    else:
                        self.conflicts += 1
                except RecordsTooLarge as error:
                    if len(records) > 1:
                        most = max(most // 2, 1)
                    else:
                        fail_jobs([row.job for row in batch if row.record is not None], TooLarge(str(error)))
            for job in undecided:
                try:
                    await self._decide_job(job)
                except SteleError as error:
                    fail_jobs([job], error)
            pending = [job for job in pending if not job.done.done()]

    def _decide_in_draft(self, jobs: list[WriteJob]) -> tuple[list[DecidedJob], list[WriteJob]]:
        """Decide every job on the state that the jobs before it would leave. The state itself is rolled back.

        No job is answered yet, not even one that is refused or changes nothing: the reason may be an earlier job of the
        batch, which is not durable yet.
        """
        batch: list[DecidedJob] = []
        undecided: list[WriteJob] = []
        unapplied: LogRecord | None = None
        latest = self.state.latest_at
        if self.limits.has_quotas:
            queries.find_usage_of_creator(self.state, "")  # An index that is built in a draft is built again after it.
        self.state.begin_draft()
        try:
            for job in jobs:
                if unapplied is not None:  # The last job's events are never applied: no job follows it.
                    for event in unapplied.events:
                        apply_event(self.state, event, unapplied.metadata, self.state.seq + 1)
                    unapplied = None
                stamp = job.stamp.not_before(latest)
                latest = stamp.at
                try:
                    decision = decide(self.state, job.command, stamp, self._collect_verdicts(job))
                    self.limits.check_growth(self.state, decision.events)
                    if job.has_quota:
                        self.limits.check_quota(self.state, decision.events, stamp.actor)
                except VerdictsRequired:
                    undecided.append(job)
                except SteleError as error:
                    self.quota_refusals += isinstance(error, QuotaUsedUp)
                    batch.append(DecidedJob(job, error))
                else:
                    unapplied = make_record(stamp, decision.events) if decision.events else None
                    batch.append(DecidedJob(job, decision.outcome, unapplied))
        finally:
            self.state.roll_back()
        return batch, undecided

    def _note_writing(self, batch: list[DecidedJob]) -> None:
        """Assign each job to the record after which it is answered: its own, or the last one before it."""
        self._writing = {}
        answered: list[DecidedJob] | None = None
        for row in batch:
            if row.record is not None:
                answered = self._writing[row.record.metadata.uid] = []
            if answered is None:
                row.read_answer(self.state)
            else:
                answered.append(row)

    def _fold_own_record(self, seq: int, record: LogRecord) -> None:
        """Fold a record of the batch being written, and answer before anything else is folded."""
        apply_record(self.state, seq, record)
        for row in self._writing[record.metadata.uid]:
            row.read_answer(self.state)

    async def _append_records(self, expected: int, records: Sequence[LogRecord]) -> bool:
        try:
            written = await self._log.append(expected, [encode_record(record) for record in records])
        except RecordsTooLarge:
            raise
        except StoreError as error:
            self._note_write_failure(error)
            if isinstance(error, (DamagedLog, StoreReplaced)):
                raise
            # Outcome unknown: the write succeeded if the log has this uid.
            await self._require_written(expected, records[0].metadata.uid, error)
            return True
        self._note_write_failure(None)
        return written

    def _note_write_failure(self, failure: StoreError | None) -> None:
        """Store whether the log accepts records, and log each change of that once."""
        if failure is not None and type(failure) is not type(self.write_failure):
            _logger.error("cannot write", error=str(failure))
        elif failure is None and self.write_failure is not None:
            _logger.warning("can write again")
        self.write_failure = failure

    async def _require_written(self, expected: int, uid: bytes, error: StoreError) -> None:
        try:
            entries = await self._log.tail(expected, 1)
        except StoreError:
            raise StoreTimeout(f"the outcome of a write is unknown: {error}") from error
        if not entries or decode_entry(entries[0]).metadata.uid != uid:
            raise error

    async def _apply_batch(self, expected: int, batch: list[DecidedJob]) -> None:
        seq = expected
        for row in batch:
            if row.record is not None:
                seq += 1
                # A reader that caught up meanwhile may have folded it already.
                if seq > self.state.seq:
                    self._fold_own_record(seq, row.record)
        self.appended += seq - expected
        self._note_growth()
        self.state.pack_texts()
        for row in batch:
            row.set_result()
        for content in self.state.erased:
            self._to_erase[content.seq] = self._to_erase.get(content.seq, frozenset()) | {content.sha}
        self.state.erased.clear()
        await self._erase_purged_texts()

    async def _erase_purged_texts(self) -> None:
        """Erase purged texts from the log, too: permanent deletion removes the bytes.

        The snapshot is saved first, so that its old copy is scrubbed with the record. Failures are retried.
        """
        try:
            if self._to_erase and self._snapshot_seq:
                await self._save_snapshot(always=True)
            for seq, shas in list(self._to_erase.items()):
                for entry in await self._log.tail(seq - 1, 1):
                    redacted = redact_texts(decode_record(entry.record), shas)
                    await self._log.erase(entry.seq, encode_record(redacted))
                self._to_erase.pop(seq, None)
        except StoreError as error:
            _logger.warning("purged texts are still in the log; trying again", error=str(error))

    async def rewrite_records(self, rewrite: Callable[[LogRecord], LogRecord]) -> int:
        """Overwrite documents in the records so far, and return how many records were changed.

        rewrite gets each record with documents, and returns one with the same meaning. The snapshot is saved first, so
        that its old copy is scrubbed with the records. Raises what rewrite raises, and `StoreError`.
        """
        end, seq, changed = (await self.fresh_state()).seq, 0, 0
        if await self._log.load_snapshot() is not None:
            await self._save_snapshot(always=True)
        while seq < end:
            for entry in await self._log.tail(seq, min(_PAGE, end - seq)):
                seq = entry.seq
                if _ITEMS_CHANGED not in entry.record:
                    continue
                record = decode_record(entry.record)
                if (rewritten := rewrite(record)) != record:
                    await self._log.erase(seq, encode_record(rewritten))
                    changed += 1
            await asyncio.sleep(0)
        return changed

    # --- following the log ------------------------------------------------------------------------------------------

    async def _catch_up(self) -> None:
        """Fold the new records of the log. Callers that arrive while this runs share the next run."""
        wanted = self._catch_ups + 1
        async with self._folding:
            if self._caught_up >= wanted:
                return
            self._catch_ups = wanted
            self._behind = True
            while self._behind:
                entries = await self._log.tail(self.state.seq, _PAGE)
                for entry in entries:
                    self._fold_entry(entry)
                if entries:
                    self._note_growth()
                self.state.pack_texts()
                self._behind = len(entries) == _PAGE
            self._caught_up = wanted
            self.caught_up_at = time.monotonic()

    def _fold_entry(self, entry: LogEntry) -> None:
        if entry.seq <= self.state.seq:
            return
        record = read_entry(entry)
        if record.metadata.uid in self._writing:
            self._fold_own_record(entry.seq, record)
        else:
            apply_record(self.state, entry.seq, record)
            # The node that wrote the purge erases the text from the log.
            self.state.erased.clear()

    async def _run_follower(self) -> None:
        looked_at = 0.0
        while True:
            try:
                await self._log.wait(self.state.seq, _POLL_SECONDS)
                self.lag_records = max(await self._log.head() - self.state.seq, 0)
                if not self.lag_records and time.monotonic() < looked_at + _POLL_SECONDS:
                    await asyncio.sleep(_OWN_GROWTH_SECONDS)
                    continue
                looked_at = time.monotonic()
                await self._catch_up()
                await self._erase_purged_texts()
                await self._log.require_writable()
            except StoreError as error:
                self._note_write_failure(error)
                await asyncio.sleep(_POLL_SECONDS)
            else:
                self._note_write_failure(None)

    async def _load_snapshot_and_tail(self, early: EarlyState | None) -> None:
        started = time.perf_counter()
        gc.disable()
        try:
            if early is not None:
                self.state, self._snapshot_seq = early.state, early.snapshot_seq
            else:
                stored = await self._log.load_snapshot()
                self.state, self._snapshot_seq = await asyncio.to_thread(decode_snapshot, stored)
                del stored
            await self._catch_up()
            self.state.contents.sort_added()
        finally:
            gc.enable()
            gc.freeze()
            return_memory()
        await self._save_snapshot()
        seconds = round(time.perf_counter() - started, 3)
        _logger.info("loaded", seq=self.state.seq, schemas=len(self.state.contents), seconds=seconds)

    async def _save_snapshot(self, *, always: bool = False) -> None:
        if not always and self.state.seq - self._snapshot_seq < _SNAPSHOT_EVERY:
            return
        await self._log.save_snapshot(self.state.seq, dump_state(self.state))
        self._snapshot_seq = self.state.seq


async def _end_tasks(*tasks: asyncio.Task[None] | None) -> None:
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
