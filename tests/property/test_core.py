"""Invariants of the core (those of the domain model) on random sequences of commands."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.core_machine import (
    NUMBER_OF,
    TEXTS,
    Node,
    all_subjects,
    decide_and_fold,
    document,
    execute_commands,
    facts,
    keys,
    reads,
    sequences,
    stamp,
)

from stele.core import commands as cmd
from stele.core import events as ev
from stele.core import queries
from stele.core.compatibility_requests import CompatibilityRequest
from stele.core.digests import KINDS, digest_keys
from stele.core.events import EventMetadata, LogRecord, decode_record, encode_record
from stele.core.findings import Finding
from stele.core.fold import apply_event, apply_record
from stele.core.model import Mode, Numbering, SettingsLevel, SubjectKey, Version, VersionState
from stele.core.policy import ALLOW_ANY, BACKWARD, DENY_ALL, Policy, RangeKind
from stele.core.snapshot import dump_state, load_state
from stele.core.state import State
from stele.core.traversal import list_versions_of_entry
from stele.errors import EncodingNotFound, NotFound, SteleError


class Observer:
    """Remembers ids and numbers that were assigned, and compares them with every later state."""

    def __init__(self) -> None:
        self.gids: dict[tuple[str, int], tuple[bytes, object]] = {}
        self.uids: dict[int, tuple[object, ...]] = {}
        self.encodings: dict[tuple[int, int], tuple[int, str]] = {}
        self.numbers: dict[tuple[SubjectKey, int], int] = {}
        self._held: set[tuple[str, int]] = set()

    def check(self, state: State, command: cmd.Command, events: Sequence[ev.Event]) -> None:
        """Assert every invariant of a state, and of a state together with the earlier ones."""
        self._check_gids(state, command, events)
        self._check_versions(state, command)
        self._check_encodings(state)
        check_indexes(state)
        check_visibility(state)

    def _check_gids(self, state: State, command: cmd.Command, events: Sequence[ev.Event]) -> None:
        purging = any(isinstance(event, ev.VersionsPurged) or getattr(event, "replaces", ()) for event in events)
        present = {
            (space.name, gid): (state.get_text(row.content), row.content.format, row.attachments)
            for space in state.namespaces.values()
            for gid, row in space.schema_entries.items()
        }
        for name, identity in self.gids.items():
            if name in present:
                imported = isinstance(command, cmd.RegisterSchema) and command.schema_id == name[1]
                assert present[name] == identity or imported, "an id never stands for something else"
            else:
                assert purging or name not in self._held, "an id goes with a purge only"
        for name in present.keys() - self.gids.keys():
            assert name[1] <= state.namespaces[name[0]].highest_schema_id
        self.gids.update(present)
        self._held = set(present)
        for space in state.namespaces:
            identities = [repr(identity) for (name, _), identity in present.items() if name == space]
            assert len(identities) == len(set(identities)), "one id for one identity"

    def _check_versions(self, state: State, command: cmd.Command) -> None:
        for subject in all_subjects(state):
            ordinals = [row.version_number for row in subject.versions]
            assert ordinals == sorted(set(ordinals))
            assert subject.highest_version_number >= max(ordinals, default=0)
            lanes = [(row.kind, row.kind_version) for row in subject.versions]
            assert len(lanes) == len(set(lanes)), "lane numbers are unique"
            for row in subject.versions:
                number = (subject.key, row.version_number)
                imported = isinstance(command, cmd.RegisterSchema) and (command.key, command.version_number) == number
                if subject.numbering is Numbering.NEVER_RESTART:
                    if imported:  # an import may say what the number of a version is
                        self.numbers[number] = row.uid
                    assert self.numbers.setdefault(number, row.uid) == row.uid, "a number never names another version"
                known = (subject.uid, row.version_number, row.kind, row.kind_version, row.content.sha, row.seq, row.at)
                assert self.uids.setdefault(row.uid, known) == known, "a uid never changes its meaning"
                assert row.record_id & 0x3FFF == row.version_number
                assert (row.state is VersionState.ARCHIVED) == subject.is_closed
        rows = [row for subject in all_subjects(state) for row in subject.versions]
        assert len({row.uid for row in rows}) == len(rows)
        assert len({row.record_id for row in rows}) == len(rows)

    def _check_encodings(self, state: State) -> None:
        for subject in all_subjects(state):
            for number, pair in enumerate(subject.encodings or (), 1):
                assert self.encodings.setdefault((subject.uid, number), pair) == pair
                if subject.is_closed:
                    continue
                try:
                    version, codec = queries.get_encoding(state, subject.key, number)
                except EncodingNotFound:
                    assert queries.find_version_by_uid(state, pair[0]) is None, "only a purge ends an encoding"
                else:
                    assert (version.uid, codec) == pair, "an encoding is never redirected"
                    assert state.get_text(version.content) in TEXTS


def check_places(state: State) -> None:
    """Bindings are found at their subjects and resources, and nowhere else."""
    bound = set(state.bindings.values())
    subjects = {row.subject for row in bound} | {SubjectKey("", "nobody's")}
    for subject in subjects:
        assert queries.bindings_of(state, [subject]) == {row for row in bound if row.subject == subject}
    for name in {row.resource_id for row in bound if row.resource_id}:
        assert queries.bindings_of_resource(state, "topic", name) == {row for row in bound if row.resource_id == name}
    assert state.by_place is not None
    assert all(state.by_place.values()), "nothing empty is left behind"
    assert {row for rows in state.by_place.values() for row in rows} == bound


def check_indexes(state: State) -> None:
    """Assert that indexes and links agree with the rows."""
    rows = [row for subject in all_subjects(state) for row in subject.versions]
    for row in rows:
        assert row in list_versions_of_entry(row.schema)
        assert state.namespaces[row.schema.namespace].schema_entries[row.schema.schema_id] is row.schema
        assert queries.find_content(state, row.content.sha, row.content.format) is row.content
        assert hashlib.sha256(state.get_text(row.content)).digest() == row.content.sha
        assert queries.find_version_by_uid(state, row.uid) is row
        assert queries.get_version_by_record_id(state, row.record_id) is row
    texts = {id(row.content): len(state.get_text(row.content)) for row in rows}
    assert state.text_bytes == sum(texts.values())
    named: dict[str, list[Version]] = {}
    for row in sorted(rows, key=lambda row: row.seq):
        if row.attributes and row.attributes.origin_uri:
            named.setdefault(row.attributes.origin_uri, []).append(row)
    for uri, versions in named.items():
        assert queries.find_last_version_by_origin(state, uri) is versions[-1]
        active = [row for row in versions if row.state is VersionState.ACTIVE]
        assert active == [version for version in [queries.find_version_by_origin(state, uri)] if version is not None], (
            "a URI names one live version"
        )
    assert {uri: list(versions) for uri, versions in (state.by_origin or {}).items()} == named
    for subject in all_subjects(state):
        assert queries.find_incarnation(state, subject.serial) is subject
    assert set(state.by_serial or ()) == {subject.serial for subject in all_subjects(state)}
    assert sum(
        len(list_versions_of_entry(s)) for space in state.namespaces.values() for s in space.schema_entries.values()
    ) == len(rows)
    assert {row.content.sha for row in rows} == set(state.contents)
    assert {id(row.content) for row in rows} == {id(content) for content in queries.list_contents(state)}
    referring = sorted(
        ((reference.namespace, reference.subject, reference.version_number), row.uid)
        for row in rows
        if row.state is not VersionState.ARCHIVED
        for reference in row.schema.attachments.references
    )
    assert referring == sorted((key, row.uid) for key, uses in state.referrers.items() for row in uses)
    assert all(state.referrers.values()), "nothing empty is left behind"
    check_places(state)
    for target in state.referrers:
        assert (
            queries.get_version(
                state, SubjectKey(*target[:2]), target[2], queries.ACTIVE_OR_SOFT_DELETED
            ).version_number
            == target[2]
        )
    for content in queries.list_contents(state):
        for key in digest_keys(state.get_digests(content)):
            kind = next(name for name, code in KINDS.items() if code == key[0])
            first_content = queries.find_content_by_digest(state, kind, key[2:])
            assert first_content is not None
            assert key in digest_keys(state.get_digests(first_content))
            assert state.get_seq(first_content) <= state.get_seq(content)


def check_visibility(state: State) -> None:
    """Assert that soft-deleted and archived versions are hidden by default, and that their ids resolve."""
    live = {s.uid for s in all_subjects(state) if any(row.state is VersionState.ACTIVE for row in s.versions)}
    assert {subject.uid for subject in queries.list_subjects(state, state.namespaces.values())} == live
    for subject in all_subjects(state):
        assert all(row.state is VersionState.ACTIVE for row in queries.list_versions(subject))
        newest = queries.latest_version(subject)
        assert newest == max(queries.list_versions(subject), key=lambda row: row.version_number, default=None)
        if subject.is_closed:
            continue
        for row in subject.versions:
            assert queries.get_version(state, subject.key, row.version_number, queries.ACTIVE_OR_SOFT_DELETED) is row
            if row.state is not VersionState.ACTIVE:
                with pytest.raises(NotFound):
                    queries.get_version(state, subject.key, row.version_number)


@given(sequences)
def test_every_state_keeps_the_laws(drawn: list[cmd.Command]) -> None:
    """Ids, numbers, indexes and visibility hold after every command of every sequence."""
    node, observer = Node([]), Observer()
    for number, command in enumerate(drawn, 1):
        before = len(node.log)
        outcome = node.execute(command, stamp(number))
        events = decode_record(node.log[-1]).events if len(node.log) > before else ()
        if isinstance(command, cmd.AssignEncoding) and isinstance(outcome, cmd.EncodingOutcome):
            version, codec = queries.get_encoding(node.state, command.key, outcome.encoding)
            assert (version.version_number, codec) == (command.version_number, command.codec)
        if isinstance(command, cmd.RegisterSchema) and isinstance(outcome, cmd.Registration):
            registered = queries.get_version(node.state, command.key, outcome.version_number)
            assert (registered.uid, registered.schema.schema_id) == (outcome.uid, outcome.schema_id)
            assert queries.get_schema_entry(node.state, command.key.namespace, outcome.schema_id) is registered.schema
        observer.check(node.state, command, events)


@given(sequences)
def test_ordinals_and_lane_versions_rise(drawn: list[cmd.Command]) -> None:
    """A version that brings no number of its own has a higher number than all others of its subject and kind."""
    state = State()
    for number, command in enumerate(drawn, 1):
        try:
            decision = decide_and_fold(state, command, stamp(number))
        except SteleError:
            continue
        for event in decision.events:
            if (
                isinstance(event, ev.VersionRegistered)
                and isinstance(command, cmd.RegisterSchema)
                and command.schema_id is None
            ):
                subject = state.find_subject(event.key)
                rows = subject.versions if subject else []
                assert all(row.version_number < event.version_number for row in rows)
                assert all(
                    row.kind_version < event.kind_version for row in rows if row.kind[:2] == (event.format, event.type)
                )
            apply_event(state, event, stamp(number), state.seq + 1)
        state.seq += 1


# --- registering ----------------------------------------------------------------------------------------------------


class Levels:
    """An oracle of settings, which follows the events only."""

    def __init__(self) -> None:
        self.policies: dict[SettingsLevel, Policy | None] = {}
        self.defaults: dict[SubjectKey, Policy | None] = {}

    def follow(self, state: State, events: Sequence[ev.Event]) -> None:
        """Update the settings from events."""
        for event in events:
            if isinstance(event, ev.SettingsChanged):
                self.policies[event.level] = event.settings.policy if event.settings else None
            elif isinstance(event, ev.SubjectCreated):
                self.defaults[event.key] = event.default_policy
            elif isinstance(event, ev.NamespaceDeleted):
                self.policies.update({level: None for level in self.policies if level.namespace == event.namespace})
            if isinstance(event, ev.IncarnationEnded | ev.VersionsPurged) and state.find_subject(event.key) is None:
                self.policies.pop(SettingsLevel(*event.key), None)
                self.defaults.pop(event.key, None)

    def policy(self, key: SubjectKey) -> Policy:
        """Return the effective policy of a subject."""
        chain = [
            self.policies.get(SettingsLevel(*key)),
            self.defaults.get(key),
            self.policies.get(SettingsLevel(key.namespace)),
        ]
        return next((policy for policy in [*chain, self.policies.get(SettingsLevel())] if policy is not None), BACKWARD)


def _must_read(policy: Policy, rows: list[Version]) -> list[tuple[Version, bool]]:
    """Return (version, whether the new one is the reader) for each comparison of a policy; rows are newest first."""
    required_reads = []
    for direction, reader in ((policy.backward, True), (policy.forward, False)):
        for place, row in enumerate(rows):
            since = direction.kind is RangeKind.SINCE and row.version_number >= direction.since
            if since or direction.kind is RangeKind.ALL or (direction.kind is RangeKind.LATEST and place == 0):
                required_reads.append((row, reader))
    return required_reads


@given(sequences)
def test_a_policy_of_any_level_is_enforced(drawn: list[cmd.Command]) -> None:
    """Every registered version satisfies the policy, whichever level the policy comes from."""
    node, levels = Node([]), Levels()
    for number, command in enumerate(drawn, 1):
        rows: list[Version] = []
        importing = False
        if isinstance(command, cmd.RegisterSchema):
            rows = queries.list_versions(node.state.find_subject(command.key))[::-1]
            importing = queries.mode_for(node.state, SettingsLevel(*command.key)) is Mode.IMPORT
        before, policy = len(node.log), ALLOW_ANY
        if isinstance(command, cmd.RegisterSchema):
            policy = command.policy if command.policy is not None else levels.policy(command.key)
        grouped = (
            isinstance(command, cmd.RegisterSchema)
            and queries.settings_for(node.state, SettingsLevel(*command.key)).group
        )
        node.execute(command, stamp(number))
        events = decode_record(node.log[-1]).events if len(node.log) > before else ()
        levels.follow(node.state, events)
        registered = next((event for event in events if isinstance(event, ev.VersionRegistered)), None)
        if registered is not None and isinstance(command, cmd.RegisterSchema) and command.policy is not None:
            assert levels.policy(command.key) == command.policy, "what the command demands holds from then on"
        if registered is None or importing or grouped or command.check is cmd.CompatibilityCheck.SKIP:  # type: ignore[union-attr]
            continue
        subject = node.state.find_subject(registered.key)
        assert subject is not None
        if subject.comparison_scope.value == "lane":
            rows = [row for row in rows if row.kind == (registered.format, registered.type)]
        assert policy != DENY_ALL or not rows
        new = NUMBER_OF[registered.sha]
        for row, reader in _must_read(policy, rows):
            old = NUMBER_OF[row.content.sha]
            assert row.kind.format == registered.format
            assert reads(new, old) if reader else reads(old, new)


@given(sequences, st.integers(0, 4), keys)
def test_only_live_versions_are_asked_about(drawn: list[cmd.Command], number: int, key: SubjectKey) -> None:
    """No compatibility request names a text that only soft-deleted versions of the subject have."""
    node = execute_commands(drawn)
    answers: dict[CompatibilityRequest, tuple[Finding, ...]] = {}
    with suppress(SteleError):
        decide_and_fold(
            node.state, cmd.RegisterSchema(key, document(number), equality=cmd.Equality.NEVER), stamp(9999), answers
        )
    live = {row.content.sha for row in queries.list_versions(node.state.find_subject(key))}
    for question in answers:
        assert {question.reader.sha, question.writer.sha} - {document(number).sha} <= live


@given(sequences, st.sampled_from([cmd.Equality.IDENTITY, cmd.Equality.TEXT, cmd.Equality.DIGEST]), st.data())
def test_registering_twice_at_once_makes_one_version(
    drawn: list[cmd.Command], equality: cmd.Equality, data: st.DataObject
) -> None:
    """Two nodes that register the same at the same time end with one content, one version, and the same answer."""
    log = execute_commands(drawn).log
    one, two = Node(log), Node(log)
    one.catch_up()
    two.catch_up()
    command = cmd.RegisterSchema(
        data.draw(keys), document(data.draw(st.integers(0, 4))), equality=equality, equality_digest="print"
    )
    first, second = one.execute(command, stamp(9001)), two.execute(command, stamp(9002))
    if isinstance(first, SteleError):
        assert type(first) is type(second)
        return
    assert isinstance(first, cmd.Registration)
    assert isinstance(second, cmd.Registration)
    assert not second.created
    assert (first.version_number, first.schema_id, first.uid) == (second.version_number, second.schema_id, second.uid)


# --- the log --------------------------------------------------------------------------------------------------------


@given(sequences)
def test_replaying_the_log_gives_the_same_state(drawn: list[cmd.Command]) -> None:
    """A node that replays the whole log has the same state as the one that decided, including every counter."""
    node = execute_commands(drawn)
    fresh = Node(node.log)
    fresh.catch_up()
    assert facts(fresh.state) == facts(node.state)


@given(sequences, st.integers(0, 40), st.booleans())
def test_a_snapshot_and_its_tail_give_the_same_state(drawn: list[cmd.Command], cut: int, indexed: bool) -> None:
    """A state from a snapshot at any point and the later records equals the state from all records."""
    node = execute_commands(drawn)
    partial = Node(node.log[:cut])
    partial.catch_up()
    if indexed:
        queries.find_version_by_uid(partial.state, 1)
        queries.find_incarnation(partial.state, 1)
    loaded = load_state(dump_state(partial.state))
    assert loaded is not None
    assert facts(loaded) == facts(partial.state)
    partial.state, partial.log = loaded, node.log
    partial.catch_up()
    assert facts(partial.state) == facts(node.state)
    check_indexes(partial.state)


@given(sequences, st.randoms(use_true_random=False))
def test_nodes_with_interleaved_writers_converge(drawn: list[cmd.Command], chance: Random) -> None:
    """Two nodes that decide on incomplete states, and again after they were late, end with equal states."""
    log: list[bytes] = []
    nodes = [Node(log), Node(log)]
    for number, command in enumerate(drawn, 1):
        chance.choice(nodes).execute(command, stamp(number))
    for node in nodes:
        node.catch_up()
    assert facts(nodes[0].state) == facts(nodes[1].state)
    single = execute_commands(drawn)
    assert facts(single.state) == facts(nodes[0].state), "and as if there had been one"


@given(sequences, sequences, st.booleans())
def test_a_draft_taken_back_leaves_no_trace(
    durable: list[cmd.Command], draft: list[cmd.Command], indexed: bool
) -> None:
    """Rolling back a batch of decisions restores exactly the state before it."""
    state = execute_commands(durable).state
    if indexed:
        queries.find_version_by_uid(state, 1)
        queries.find_incarnation(state, 1)
        queries.find_content_by_digest(state, "print", b"")
        queries.bindings_of(state, [SubjectKey("", "s")])
    before = facts(state)
    state.begin_draft()
    for number, command in enumerate(draft, 1000):
        try:
            decision = decide_and_fold(state, command, stamp(number))
        except SteleError:
            continue
        for event in decision.events:
            apply_event(state, event, stamp(number), state.seq + 1)
        check_indexes(state)
    state.roll_back()
    assert facts(state) == before
    check_indexes(state)
    state.pack_texts(rest=True)
    assert facts(state) == before


@given(sequences, sequences)
def test_a_batch_does_what_its_commands_do_one_by_one(durable: list[cmd.Command], batch: list[cmd.Command]) -> None:
    """Commands decided in one batch make the same records as commands appended one after the other."""
    node = execute_commands(durable)
    drafted: list[LogRecord] = []
    node.state.begin_draft()
    for number, command in enumerate(batch, 1000):
        try:
            decision = decide_and_fold(node.state, command, stamp(number))
        except SteleError:
            continue
        if decision.events:
            drafted.append(LogRecord(stamp(number), decision.events))
            for event in decision.events:
                apply_event(node.state, event, stamp(number), node.state.seq + 1)
    node.state.roll_back()
    length = len(node.log)
    for number, command in enumerate(batch, 1000):
        node.execute(command, stamp(number))
    assert [decode_record(record) for record in node.log[length:]] == drafted


@given(sequences)
def test_records_come_back_from_their_bytes(drawn: list[cmd.Command]) -> None:
    """Every record of a decision is decoded as it was encoded."""
    state = State()
    for number, command in enumerate(drawn, 1):
        by = stamp(number)
        try:
            record = LogRecord(by, decide_and_fold(state, command, by).events)
        except SteleError:
            continue
        assert decode_record(encode_record(record)) == record
        apply_record(state, state.seq + 1, record)


@given(sequences, keys, st.integers(1, 6))
def test_reading_changes_nothing(drawn: list[cmd.Command], key: SubjectKey, number: int) -> None:
    """Queries do not change the facts, even those that build an index; a missing object raises NotFound."""
    state = execute_commands(drawn).state
    before = facts(state)
    queries.policy_for(state, key)
    queries.visible_namespaces(state)
    queries.find_content_by_digest(state, "print", bytes(16))
    with suppress(NotFound):
        queries.get_schema_entry(state, key.namespace, number)
    with suppress(NotFound):
        queries.get_encoding(state, key, number)
    with suppress(NotFound):
        queries.get_version(state, key, number)
    assert facts(state) == before


def test_stamps_differ() -> None:
    """The event metadata of different commands differ, which the other tests rely on."""
    assert len({stamp(number).uid for number in range(100)}) == 100
    assert isinstance(stamp(1), EventMetadata)
