"""A node: the state in memory, the log behind it, and one writer that turns commands into records.

Any node serves any read and any write. Nodes of one log agree because the log orders what they wrote. Reads of what
never changes come from memory and catch up with the log only on a miss. Everything else first catches up
(`fresh_state`). Writes that wait while another one becomes durable go into the log together.

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
"""Log entries read at once; larger pages load no faster and leave more slack behind in the allocator."""
_BATCH = 256
"""Commands made durable together, at most."""
_SNAPSHOT_EVERY = 20_000
"""Records after the last snapshot that make the next one worth its time (at start-up and close)."""
_POLL_SECONDS = 1.0
_OWN_GROWTH_SECONDS = 0.02
"""How long a node that sees the log grow by its own records leaves it alone: others' are seen so much later."""
_ITEMS_CHANGED = b"ItemsChanged"
"""In every record that has such an event; decoding all others would take long."""
SKIPPED_SCHEMA_IDS: Final = 10_000
"""Ids of every namespace that a restored registry leaves out: more than any original gives out after a backup."""
SKIPPED_NUMBERS: Final = 100
"""Encoding ids and version numbers of every subject that it leaves out; a record id has room for 16,383 versions."""

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
        """Host, process and four digits that tell nodes of one process apart; leases and metrics have it."""
        self.limits = limits or Limits()
        self.parser = SchemaParser(self.limits)
        self.compatibility = CompatibilityChecker(self.parser, undecided)
        self.access: AccessControl = OPEN_ACCESS
        """Who may do what."""
        self.audit = AuditNotes(self.limits.refusals, self.limits.refused_text_bytes)
        """What the audit trail is to say beside the changes."""
        self.secrets = Secrets()
        """The keys that seal secrets in documents."""
        self.stateless_threads: Executor | None = None
        """Where `run_stateless` runs; None: among the threads of everything else."""
        self.stateless_processes: WorkProcesses | None = None
        """Where it runs what takes long; None: in those threads, too."""
        self.time_slices = TimeSlices()
        """For loops over all subjects, all versions of a subject and the like."""
        self.tracer: Tracer = NoTracer()
        self.conflicts = 0
        self.appended = 0
        self.quota_refusals = 0
        """Changes that this node refused because their callers had registered as much as one caller may."""
        self.write_failure: StoreError | None = None
        """Why the log takes no record, as far as anybody knows."""
        self.lag_records = 0
        """Records of others that this node had not folded when it last looked."""
        self.caught_up_at = time.monotonic()
        """When it last was known to have every record, in `time.monotonic` seconds."""
        self._snapshot_seq = 0
        self._folding = asyncio.Lock()
        self._growth = asyncio.Event()
        """Set when the state next has more of the log."""
        self._behind = True
        self._catch_ups = 0
        """How many times this node began to catch up with the log; `_caught_up`: the last time that ended well."""
        self._caught_up = 0
        self._bootstrap_lock = asyncio.Lock()
        self._bootstrapped = False
        self._has_skipped_ids = False
        self._queue: asyncio.Queue[WriteJob] = asyncio.Queue()
        self.waiting_writes = 0
        """How many changes wait for the log or are being written."""
        self._to_erase: dict[int, frozenset[bytes]] = {}
        """Digests of purged texts by the record that has them."""
        self._writing: dict[bytes, list[DecidedJob]] = {}
        """Records of the batch being written, by uid, each with the jobs that are answered in the state it leaves."""
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
        """Load the newest snapshot and the tail, then start to write and follow. Raises `StoreError`.

        early is what was loaded of this log already, in the place of the snapshot.
        """
        registry = cls(log, limits, undecided=undecided)
        await registry._load_snapshot_and_tail(early)
        registry._writer = asyncio.create_task(registry._run_writer())
        registry._follower = asyncio.create_task(registry._run_follower())
        return registry

    async def close(self) -> None:
        """Finish what is being written, keep a snapshot when it pays, and release the log."""
        await self._queue.join()
        await _end_tasks(self._writer, self._follower)
        try:
            await self._save_snapshot()
        finally:
            await self._log.close()

    async def reset(self, log: Log) -> None:
        """Forget everything, close the log and go on with an empty one: for conformance runs on memory stores only."""
        before = self._log
        await _end_tasks(self._follower)  # It waits for records of the log that goes.
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
        """Catch up if this node was told that others wrote: enough for rules of access. Raises `StoreError`."""
        if not self.has_read_all():
            await self._catch_up()

    def is_fresh(self) -> bool:
        """Whether memory is up to date for sure, without waiting."""
        return self._log.notices_at_once and self.has_read_all()

    def has_read_all(self) -> bool:
        """Whether memory has all that this node was told of, without waiting: enough for what never changes."""
        if self._folding.locked() or self._behind:
            return False
        self._behind = self._log.has_changed()
        return not self._behind

    async def read_or_catch_up(self, query: Callable[[State], T]) -> T:
        """Answer from memory; catch up and ask again where memory has nothing. For ids and exact versions."""
        if not self.has_read_all():
            await self._catch_up()
        try:
            return query(self.state)
        except NotFound:
            await self._catch_up()
            return query(self.state)

    async def wait_for_record(self, seq: int, seconds: float) -> None:
        """Return once memory has a record of the log, or when so many seconds have gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.state.seq < seq:
                    await self._growth.wait()

    def _note_growth(self) -> None:
        self._growth.set()
        self._growth = asyncio.Event()

    async def read_log(self, after: int, limit: int) -> list[tuple[int, LogRecord]]:
        """Entries of the log after a sequence number, oldest first. Raises `StoreError`."""
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
        """Why the policy in force (or the given one) would refuse a document, and which version does; ([], None): none.

        version number narrows the comparison to one version; ruleset judges where the settings name none. The caller
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
        """Run work that registers nothing apart from all other work, so that it keeps no write waiting.

        Raises what the call raises, and `Overloaded`. Cancelling interrupts it.
        """
        loop = asyncio.get_running_loop()
        work = partial(copy_context().run, call, *args, **kwargs)
        return await loop.run_in_executor(self.stateless_threads, work)

    # --- writing ----------------------------------------------------------------------------------------------------

    async def execute(self, command: cmd.Command, *, via: str = "", expects_change: bool = False) -> cmd.Outcome:
        """Carry out a command for the caller (`service.access.CALLER`); returns when it is durable.

        expects_change: it is decided once, among the others of its batch. Without, a command that changes nothing or
        is refused waits for nobody, and verdicts are found before it joins a batch.

        Raises `Forbidden` and `Unauthenticated` where a right is missing that the command wants, what the decision
        raises, `Overloaded` where too many others wait, or `StoreError`.
        """
        outcome: cmd.Outcome = await self._execute_for_caller(command, via, expects_change=expects_change)
        return outcome

    async def execute_and_read(
        self, command: cmd.Command, read: Callable[[State, Any], T], *, via: str = "", expects_change: bool = False
    ) -> T:
        """Carry out a command as `execute` does, and return what is read in the very state that it leaves.

        A moment later others may have undone it.
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
        """Register a schema, and return the outcome and the answer made of the version, as `execute_and_read` does."""

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
            raise Overloaded(f"the server has too much to do: {self.waiting_writes} changes wait for the log")
        with self.tracer.open_span("stele.append", {}):
            self.waiting_writes += 1
            self._queue.put_nowait(job)
            return await job.done

    async def _decide_job(self, job: WriteJob) -> Decision | None:
        """Decide on what memory has; what no batch decides again (refusals, no change) on a fresh state.

        None: nothing speaks against a registration, which is decided with its batch.
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
        """Before the first write, when no verdict can change yet: take over the newest rules."""
        async with self._bootstrap_lock:
            if not self._bootstrapped:
                if versions := await asyncio.to_thread(rulesets.newest_versions):
                    await self._execute(cmd.AdoptRulesets(versions, first=True), "", "start")
                self._bootstrapped = True

    async def _skip_ids(self) -> None:
        """Before the first write after a restoration: the original may have given out ids that nobody here knows."""
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
                # A defect must not take the writer with it: whoever waits hears of it, the next batch goes on.
                fail_jobs(jobs, error)
                _logger.exception("write failed")
            finally:
                self.waiting_writes -= len(jobs)
                for _ in jobs:
                    self._queue.task_done()

    async def _commit_jobs(self, jobs: list[WriteJob]) -> None:
        """Decide jobs in order on top of one another, append what they decided as one batch, answer them.

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
        """Decide every job on the state as the ones before it would leave it; the state itself stays as it was.

        Nobody is answered yet, not even jobs that are refused or change nothing: they may owe that to a job before them
        in the batch, which is not durable.
        """
        batch: list[DecidedJob] = []
        undecided: list[WriteJob] = []
        unapplied: LogRecord | None = None
        latest = self.state.latest_at
        if self.limits.has_quotas:
            queries.find_usage_of_creator(self.state, "")  # An index built within a draft is built again after it.
        self.state.begin_draft()
        try:
            for job in jobs:
                if unapplied is not None:  # Nobody sees what the last one changes.
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
        """Note after which record of the batch each job is answered: its own, or the one before it."""
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
            # Outcome unknown: only the log can tell. Our uid in it settles the matter.
            await self._require_written(expected, records[0].metadata.uid, error)
            return True
        self._note_write_failure(None)
        return written

    def _note_write_failure(self, failure: StoreError | None) -> None:
        """Remember whether the log takes records, and say it once."""
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
                # A reader that caught up in the meantime has folded it already.
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
        """Take purged texts out of the log, too: permanent deletion means the bytes are gone.

        The snapshot goes first, so that its old copy is scrubbed with the record. What fails is tried again.
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
        """Overwrite documents in the records of the past, up to now; returns how many records were.

        rewrite gets the records with documents, and answers them with the same meaning. The snapshot goes first, so
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
        """Fold what the log has that this node has not; whoever asks while that goes on shares the next time."""
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
            # Whoever wrote a purge takes the text out of the log.
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
