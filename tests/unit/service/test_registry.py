"""A node over a real log: its answers, its durability, and conflicts between nodes and writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import pytest
import structlog

from stele.core import queries
from stele.core.commands import (
    ChangeSettings,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    RegisterSchema,
    Registration,
)
from stele.core.model import Attachments, Reference, SettingsLevel, SubjectKey, Version
from stele.core.policy import POLICIES, Policy
from stele.core.ports import TextForm
from stele.core.state import State
from stele.errors import (
    Incompatible,
    InUse,
    Overloaded,
    StoreError,
    SubjectNotFound,
    TooLarge,
    UnknownRuleset,
    UnresolvedReference,
)
from stele.service.limits import Limits
from stele.service.registry import Registry
from stele.storage import open_log
from stele.storage.memory import MemoryLog, MemoryStore

KEY = SubjectKey("", "orders-value")


@pytest.fixture(autouse=True)
def _no_newer_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent records of ruleset adoptions before those of the tests, whatever rulesets are installed."""
    monkeypatch.setattr("stele.service.rulesets.newest_versions", dict)


def record(*fields: str, name: str = "Order") -> bytes:
    """Return an Avro record whose fields are all ints with a default."""
    shaped = [{"name": field, "type": "int", "default": 0} for field in fields]
    return json.dumps({"type": "record", "name": name, "fields": shaped}).encode()


async def put(registry: Registry, text: bytes, key: SubjectKey = KEY, *references: Reference) -> Registration:
    """Register an Avro text the way a dialect does."""
    state = await registry.fresh_state()
    prepared = await registry.parser.prepare_schema(state, "avro", text, references, form=TextForm.PRINTED)
    outcome = await registry.execute(RegisterSchema(key, prepared.document, prepared.references))
    assert isinstance(outcome, Registration)
    return outcome


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_registration_is_idempotent_and_numbers_count_up() -> None:
    """The same text gives the same numbers; another one the next."""
    registry = await Registry.open(MemoryLog())
    first, again, second = [await put(registry, record(*fields)) for fields in ("a", "a", "ab")]
    assert (first.version_number, first.schema_id, first.created) == (1, 1, True)
    assert (again.version_number, again.schema_id, again.created) == (1, 1, False)
    assert (second.version_number, second.schema_id) == (2, 2)
    await registry.close()


async def test_an_incompatible_schema_is_refused_with_findings_and_changes_nothing() -> None:
    """The policy in force decides; the refusal names the version, the place and the fix."""
    registry = await Registry.open(MemoryLog())
    await put(registry, record("a"))
    broken = b'{"type":"record","name":"Order","fields":[{"name":"b","type":"string"}]}'
    with pytest.raises(Incompatible) as refusal:
        await put(registry, broken)
    (finding,) = refusal.value.findings
    assert finding.rule == "READER_FIELD_MISSING_DEFAULT_VALUE"
    assert finding.against == 1
    assert finding.why
    assert finding.fix
    assert len(queries.list_versions((await registry.fresh_state()).find_subject(KEY))) == 1
    await registry.execute(ChangeSettings(SettingsLevel(*KEY), {"policy": POLICIES["NONE"]}))
    assert (await put(registry, broken)).version_number == 2
    await registry.close()


async def test_concurrent_registrations_of_one_node_share_commits_and_never_share_numbers() -> None:
    """A hundred commands at once give dense numbers, and identical ones a single version."""
    registry = await Registry.open(MemoryLog())
    await registry.execute(ChangeSettings(SettingsLevel(""), {"policy": POLICIES["NONE"]}))
    texts = [record(f"f{number % 50}") for number in range(100)]
    outcomes = await asyncio.gather(*(put(registry, text) for text in texts))
    assert sorted({outcome.version_number for outcome in outcomes}) == list(range(1, 51))
    assert sum(outcome.created for outcome in outcomes) == 50
    assert {o.version_number for o in outcomes[:50]} == {o.version_number for o in outcomes[50:]}
    await registry.close()


async def test_two_nodes_on_one_file_agree(tmp_path: Path) -> None:
    """Writers on two nodes race for the same texts: each gets one version, and both nodes answer the same at once."""
    url = f"sqlite:///{tmp_path}/log.db"
    nodes = [await Registry.open(await open_log(url)) for _ in range(2)]
    await nodes[0].execute(ChangeSettings(SettingsLevel(""), {"policy": POLICIES["NONE"]}))
    work = [(nodes[turn % 2], record(f"f{turn // 2}")) for turn in range(60)]
    outcomes = await asyncio.gather(*(put(node, text) for node, text in work))
    for first, second in zip(outcomes[::2], outcomes[1::2], strict=True):
        assert (first.version_number, first.schema_id, first.uid) == (
            second.version_number,
            second.schema_id,
            second.uid,
        )
    assert {outcome.schema_id for outcome in outcomes} == set(range(1, 31))
    registration = await put(nodes[0], record("last"))
    assert queries.get_version(await nodes[1].fresh_state(), KEY, registration.version_number).uid == registration.uid
    for node in nodes:
        await node.close()


async def test_a_restarted_node_knows_everything(tmp_path: Path) -> None:
    """The state is restored from the log, and from a snapshot with the records after it."""
    url = f"sqlite:///{tmp_path}/log.db"
    registry = await Registry.open(await open_log(url))
    await put(registry, record("a"))
    await registry._save_snapshot(always=True)
    second = await put(registry, record("a", "b"))
    await registry.close()
    again = await Registry.open(await open_log(url))
    assert again._snapshot_seq == 1
    version = queries.get_version(again.state, KEY, None)
    assert (version.version_number, version.uid) == (second.version_number, second.uid)
    assert json.loads(again.state.get_text(version.content))["fields"][1]["name"] == "b"
    await again.close()


async def test_purged_texts_leave_the_file(tmp_path: Path) -> None:
    """Permanent deletion removes the bytes from the log file, also from a snapshot taken before."""
    registry = await Registry.open(await open_log(f"sqlite:///{tmp_path}/log.db"))
    secret = "very_secret_field_name"
    await put(registry, record(secret))
    await registry._save_snapshot(always=True)
    await registry.execute(DeleteSubject(KEY, DeleteMode.SOFT))
    await registry.execute(DeleteSubject(KEY, DeleteMode.HARD))
    with pytest.raises(SubjectNotFound):
        queries.get_version(await registry.fresh_state(), KEY, None)
    await registry.close()
    assert secret.encode() not in b"".join(map(Path.read_bytes, _files(tmp_path)))


async def test_references_are_resolved_guarded_and_compared(tmp_path: Path) -> None:
    """A schema can use another one's type by reference; the other one cannot be deleted meanwhile."""
    registry = await Registry.open(MemoryLog())
    address = SubjectKey("", "address")
    await put(registry, record("zip", name="Address"), address)
    text = b'{"type":"record","name":"Person","fields":[{"name":"home","type":"Address"}]}'
    with pytest.raises(UnresolvedReference):
        await put(registry, text, SubjectKey("", "person"))
    latest = Reference("Address", "", "address", -1)
    outcome = await put(registry, text, SubjectKey("", "person"), latest)
    version = queries.get_version(registry.state, SubjectKey("", "person"), outcome.version_number)
    assert version.schema.attachments == Attachments((Reference("Address", "", "address", 1),))
    with pytest.raises(InUse):
        await registry.execute(DeleteVersion(address, 1))
    await registry.close()


async def test_a_write_of_unknown_outcome_is_looked_up_in_the_log() -> None:
    """A store error after the write completes the command, one before it fails the command; it never runs twice."""

    class Flaky(MemoryLog):
        fail: str = ""

        async def append(self, expected: int, records: Sequence[bytes]) -> bool:
            if self.fail == "before":
                raise StoreError("no answer")
            won = await super().append(expected, records)
            if self.fail == "after":
                raise StoreError("no answer")
            return won

    log = Flaky()
    registry = await Registry.open(log)
    log.fail = "after"
    assert (await put(registry, record("a"))).version_number == 1
    log.fail = "before"
    with pytest.raises(StoreError):
        await put(registry, record("a", "b"))
    log.fail = ""
    assert (await put(registry, record("a", "b"))).version_number == 2
    assert await log.head() == 2
    await registry.close()


async def test_a_reader_never_sees_a_write_before_it_is_durable() -> None:
    """During an append no reader sees its changes; waiting commands are decided on each other's results."""
    store = MemoryStore()
    gate = asyncio.Event()

    class Slow(MemoryLog):
        async def append(self, expected: int, records: Sequence[bytes]) -> bool:
            await gate.wait()
            return await super().append(expected, records)

    registry = await Registry.open(Slow(store))
    texts = [record(*"abc"[:length]) for length in (1, 2, 2, 3, 3)]
    jobs = [asyncio.create_task(put(registry, text)) for text in texts]
    await asyncio.sleep(0.1)
    assert (await registry.fresh_state()).contents == {}
    assert not any(job.done() for job in jobs)
    gate.set()
    assert sorted(outcome.version_number for outcome in await asyncio.gather(*jobs)) == [1, 2, 2, 3, 3]
    assert registry.appended == 3
    await registry.close()


class PausedLog(MemoryLog):
    """A log whose appends return only when the gate is open, and whose writers do not wait for turns."""

    def __init__(self, shared: MemoryStore) -> None:
        super().__init__(shared)
        self.gate, self.appended = asyncio.Event(), asyncio.Event()

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        written = await super().append(expected, records)
        self.appended.set()
        await self.gate.wait()
        return written

    def turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


async def test_a_registration_answers_what_it_made_though_that_is_gone() -> None:
    """A registration returns its version, even if other nodes deleted it and reused its number before the answer."""
    store = MemoryStore()
    log = PausedLog(store)
    node, other = await Registry.open(log), await Registry.open(MemoryLog(store))
    first = record("a")
    prepared = await node.parser.prepare_schema(node.state, "avro", first, (), form=TextForm.PRINTED)
    command = RegisterSchema(KEY, prepared.document, prepared.references)

    def read_version(state: State, version: Version) -> tuple[int, bytes]:
        return version.version_number, state.get_text(version.content)

    registering = asyncio.create_task(node.register(command, read_version))
    await log.appended.wait()
    await other.execute(DeleteSubject(KEY, DeleteMode.SOFT))
    await other.execute(DeleteSubject(KEY, DeleteMode.HARD))
    await put(other, record("b"))
    await node.fresh_state()
    log.gate.set()
    outcome, answer = await registering
    assert outcome.created
    assert answer == (1, prepared.document.text)


async def test_a_defect_in_an_answer_concerns_its_caller_alone() -> None:
    """A defect in one answer does not affect other registrations of the batch, nor the node."""
    node = await Registry.open(MemoryLog())

    def fail(state: State, version: Version) -> None:
        raise RuntimeError("defect")

    prepared = await node.parser.prepare_schema(node.state, "avro", record("a"), (), form=TextForm.PRINTED)
    command = RegisterSchema(KEY, prepared.document, prepared.references)
    failed, registration = await asyncio.gather(
        node.register(command, fail, expects_change=True),
        put(node, record("b"), SubjectKey("", "other")),
        return_exceptions=True,
    )
    assert isinstance(failed, RuntimeError)
    assert isinstance(registration, Registration)
    assert (await put(node, record("a"))).version_number == 1


async def test_limits_refuse_before_parsing() -> None:
    """A text over the limit is refused with the name of the limit."""
    registry = await Registry.open(MemoryLog(), Limits(schema_bytes=100))
    with pytest.raises(TooLarge, match="max_schema_bytes"):
        await put(registry, record(*(f"field{n}" for n in range(50))))
    await registry.close()


async def test_a_record_nobody_can_read_stops_the_node_with_its_number() -> None:
    """A log of a later version, or a damaged one, is refused with the record's number instead of being read in part."""
    log = MemoryLog()
    await log.append(0, [b"\xc1"])
    with pytest.raises(StoreError, match="record 1 "):
        await Registry.open(log)


async def test_a_validator_that_is_not_installed_refuses() -> None:
    """A policy with an unknown validator accepts nothing, instead of everything."""
    registry = await Registry.open(MemoryLog())
    await registry.execute(ChangeSettings(SettingsLevel(*KEY), {"policy": Policy(validators=("house-rules",))}))
    with pytest.raises(UnknownRuleset, match="house-rules"):
        await put(registry, record("a"))
    await registry.close()


async def test_a_job_that_cannot_be_judged_fails_alone() -> None:
    """If settings change within a batch, two registrations are decided again; one that fails leaves the other."""
    store, gate = MemoryStore(), asyncio.Event()

    class Slow(MemoryLog):
        async def append(self, expected: int, records: Sequence[bytes]) -> bool:
            await gate.wait()
            return await super().append(expected, records)

    registry = await Registry.open(Slow(store))
    gate.set()
    strict, free = SubjectKey("", "strict"), SubjectKey("", "free")
    await registry.execute(ChangeSettings(SettingsLevel(""), {"policy": POLICIES["NONE"]}))
    for key in (strict, free):
        await put(registry, record("a"), key)
    gate.clear()
    first = asyncio.create_task(put(registry, record("x")))
    await asyncio.sleep(0.1)
    commands = [
        registry.execute(ChangeSettings(SettingsLevel(*strict), {"policy": Policy(validators=("house-rules",))})),
        registry.execute(ChangeSettings(SettingsLevel(*free), {"policy": POLICIES["BACKWARD"]})),
    ]
    changes = [asyncio.create_task(command) for command in commands]
    await asyncio.sleep(0)
    jobs = [asyncio.create_task(put(registry, record("a", "b"), key)) for key in (strict, free)]
    await asyncio.sleep(0.2)
    gate.set()
    refused, taken = await asyncio.gather(*jobs, return_exceptions=True)
    await asyncio.gather(first, *changes)
    assert isinstance(refused, UnknownRuleset)
    assert isinstance(taken, Registration)
    assert taken.version_number == 2
    await registry.close()


async def test_a_full_subject_and_a_full_registry_say_so() -> None:
    """A version or text over a limit is refused with the limit's name; existing ones can still be registered again."""
    registry = await Registry.open(MemoryLog(), Limits(versions=2, schemas=3))
    for fields in ("a", "ab"):
        await put(registry, record(*fields))
    with pytest.raises(TooLarge, match="max_versions"):
        await put(registry, record(*"abc"))
    assert not (await put(registry, record("a"))).created
    await put(registry, record("z"), SubjectKey("", "others"))
    with pytest.raises(TooLarge, match="max_schemas"):
        await put(registry, record(*"zy"), SubjectKey("", "others"))
    assert (await put(registry, record("a"), SubjectKey("", "third"))).created
    crowd = [put(registry, record(*fields), SubjectKey("", "batch")) for fields in ("a", "ab", "z")]
    answers = await asyncio.gather(*crowd, return_exceptions=True)  # one batch, decided on top of one another
    assert sum(isinstance(answer, TooLarge) for answer in answers) == 1
    await registry.close()


async def test_a_registry_holds_no_more_bytes_than_its_limit() -> None:
    """Each text is counted once, a purge frees its bytes, and the error names the limit."""
    text = len(json.dumps(json.loads(record("a")), separators=(",", ":")))  # as it is printed
    registry = await Registry.open(MemoryLog(), Limits(text_bytes=2 * text))
    await put(registry, record("a"))
    await put(registry, record("a"), SubjectKey("", "others"))
    await put(registry, record("b"), SubjectKey("", "others"))
    assert registry.state.text_bytes == 2 * text
    with pytest.raises(TooLarge, match="max_text_bytes"):
        await put(registry, record("c"), SubjectKey("", "third"))
    for mode in (DeleteMode.SOFT, DeleteMode.HARD):
        await registry.execute(DeleteSubject(SubjectKey("", "others"), mode))
    assert registry.state.text_bytes == text
    assert (await put(registry, record("c"), SubjectKey("", "third"))).created
    await registry.close()


async def test_more_writes_than_may_wait_are_refused() -> None:
    """While a store hangs, the queue has a limit; waiting changes are written when the store answers again."""
    log = MemoryLog()
    registry = await Registry.open(log, Limits(waiting_writes=3))
    async with log.turn():
        waiting = [asyncio.create_task(put(registry, record(name), SubjectKey("", name))) for name in "abc"]
        async with asyncio.timeout(120):
            while registry.waiting_writes < 3:  # noqa: ASYNC110 - nobody says when
                await asyncio.sleep(0.01)
        assert registry.waiting_writes == 3
        with pytest.raises(Overloaded, match="3 changes are waiting"):
            await put(registry, record("d"), SubjectKey("", "d"))
    assert [answer.created for answer in await asyncio.gather(*waiting)] == [True] * 3
    assert registry.waiting_writes == 0
    assert (await put(registry, record("d"), SubjectKey("", "d"))).created
    await registry.close()


async def test_a_reset_leaves_nothing_of_the_old_log() -> None:
    """A reset logs nothing, closes the log, and no pending work of the old log reaches the new one."""
    log = MemoryLog()
    registry = await Registry.open(log)
    await put(registry, record("a"))
    registry._to_erase[1] = b"purged, but not yet taken out of the old log"
    with structlog.testing.capture_logs() as logs:
        writing = [asyncio.create_task(put(registry, record("a", f"f{number}"))) for number in range(20)]
        await asyncio.sleep(0)
        await registry.reset(MemoryLog())
        await asyncio.gather(*writing, return_exceptions=True)
        with pytest.raises(StoreError, match="closed"):
            await log.head()
        await put(registry, record("b"), SubjectKey("", "new"))
        assert queries.get_version(await registry.fresh_state(), SubjectKey("", "new"), 1)
        await registry.close()
    assert [line for line in logs if line["log_level"] != "info"] == []
