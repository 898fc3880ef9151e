"""Laws of the core (the domain model's invariants) on random command sequences over a small universe."""

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
    decided,
    document,
    executed,
    facts,
    keys,
    reads,
    sequences,
    stamp,
)

from stele.core import commands as cmd
from stele.core import events as ev
from stele.core import queries
from stele.core.chains import uses_of
from stele.core.digests import KINDS, digest_keys
from stele.core.events import Record, Stamp, decode_record, encode_record
from stele.core.findings import Finding
from stele.core.fold import fold, fold_record
from stele.core.model import Level, Life, Mode, SubjectKey, Version
from stele.core.policy import ALLOW_ANY, BACKWARD, DENY_ALL, Policy, Reach
from stele.core.questions import Question
from stele.core.snapshot import dump_state, load_state
from stele.core.state import State
from stele.errors import EncodingNotFound, NotFound, SteleError


class Observer:
    """Remembers what was handed out, and holds it against every later state."""

    def __init__(self) -> None:
        self.gids: dict[tuple[str, int], tuple[bytes, object]] = {}
        self.uids: dict[int, tuple[object, ...]] = {}
        self.encodings: dict[tuple[int, int], tuple[int, str]] = {}
        self._held: set[tuple[str, int]] = set()

    def check(self, state: State, command: cmd.Command, events: Sequence[ev.Event]) -> None:
        """Every law that a single state, or a state and what came before, can break."""
        self._check_gids(state, command, events)
        self._check_versions(state)
        self._check_encodings(state)
        check_indexes(state)
        check_visibility(state)

    def _check_gids(self, state: State, command: cmd.Command, events: Sequence[ev.Event]) -> None:
        purging = any(isinstance(event, ev.VersionsPurged) or getattr(event, "replaces", ()) for event in events)
        present = {
            (space.name, gid): (state.text(row.content), row.content.format, row.attachments)
            for space in state.spaces.values()
            for gid, row in space.gids.items()
        }
        for name, identity in self.gids.items():
            if name in present:
                imported = isinstance(command, cmd.Register) and command.gid == name[1]
                assert present[name] == identity or imported, "an id never stands for something else"
            else:
                assert purging or name not in self._held, "an id goes with a purge only"
        for name in present.keys() - self.gids.keys():
            assert name[1] <= state.spaces[name[0]].gid_high
        self.gids.update(present)
        self._held = set(present)
        for space in state.spaces:
            identities = [repr(identity) for (name, _), identity in present.items() if name == space]
            assert len(identities) == len(set(identities)), "one id for one identity"

    def _check_versions(self, state: State) -> None:
        for subject in all_subjects(state):
            ordinals = [row.ordinal for row in subject.versions]
            assert ordinals == sorted(set(ordinals))
            assert subject.ordinal_high >= max(ordinals, default=0)
            lanes = [(row.lane, row.lane_version) for row in subject.versions]
            assert len(lanes) == len(set(lanes)), "lane numbers are unique"
            for row in subject.versions:
                known = (subject.uid, row.ordinal, row.lane, row.lane_version, row.content.sha, row.seq, row.at)
                assert self.uids.setdefault(row.uid, known) == known, "a uid never changes its meaning"
                assert row.record_id & 0x3FFF == row.ordinal
                assert (row.life is Life.GONE) == subject.closed
        rows = [row for subject in all_subjects(state) for row in subject.versions]
        assert len({row.uid for row in rows}) == len(rows)
        assert len({row.record_id for row in rows}) == len(rows)

    def _check_encodings(self, state: State) -> None:
        for subject in all_subjects(state):
            for number, pair in enumerate(subject.encodings or (), 1):
                assert self.encodings.setdefault((subject.uid, number), pair) == pair
                if subject.closed:
                    continue
                try:
                    version, codec = queries.encoding(state, subject.key, number)
                except EncodingNotFound:
                    assert queries.by_uid(state, pair[0]) is None, "only a purge ends an encoding"
                else:
                    assert (version.uid, codec) == pair, "an encoding is never redirected"
                    assert state.text(version.content) in TEXTS


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
    """Indexes and links say what the rows say."""
    rows = [row for subject in all_subjects(state) for row in subject.versions]
    for row in rows:
        assert row in uses_of(row.schema)
        assert state.spaces[row.schema.space].gids[row.schema.gid] is row.schema
        assert queries.content_of(state, row.content.sha, row.content.format) is row.content
        assert hashlib.sha256(state.text(row.content)).digest() == row.content.sha
        assert queries.by_uid(state, row.uid) is row
        assert queries.by_record_id(state, row.record_id) is row
    named = [
        (row.extra.origin_uri, row) for row in rows if row.life is Life.LIVE and row.extra and row.extra.origin_uri
    ]
    assert all(queries.by_origin(state, uri) is row for uri, row in named), "a URI names one live version"
    assert set(state.by_origin or ()) == {uri for uri, _ in named}
    for subject in all_subjects(state):
        assert queries.incarnation(state, subject.serial) is subject
    assert set(state.by_serial or ()) == {subject.serial for subject in all_subjects(state)}
    assert sum(len(uses_of(s)) for space in state.spaces.values() for s in space.gids.values()) == len(rows)
    assert {row.content.sha for row in rows} == set(state.contents)
    assert {id(row.content) for row in rows} == {id(content) for content in queries.contents(state)}
    referring = sorted(
        ((reference.space, reference.subject, reference.ordinal), row.uid)
        for row in rows
        if row.life is not Life.GONE
        for reference in row.schema.attachments.references
    )
    assert referring == sorted((key, row.uid) for key, uses in state.referrers.items() for row in uses)
    assert all(state.referrers.values()), "nothing empty is left behind"
    check_places(state)
    for target in state.referrers:
        assert queries.version(state, SubjectKey(*target[:2]), target[2], queries.KEPT).ordinal == target[2]
    for content in queries.contents(state):
        for key in digest_keys(state.digests(content)):
            kind = next(name for name, code in KINDS.items() if code == key[0])
            found = queries.by_digest(state, kind, key[2:])
            assert found is not None
            assert key in digest_keys(state.digests(found))
            assert state.seq_of(found) <= state.seq_of(content)


def check_visibility(state: State) -> None:
    """RETIRED and GONE are nowhere to be seen by default; ids resolve all the same."""
    live = {s.uid for s in all_subjects(state) if any(row.life is Life.LIVE for row in s.versions)}
    assert {subject.uid for subject in queries.subjects(state, state.spaces.values())} == live
    for subject in all_subjects(state):
        assert all(row.life is Life.LIVE for row in queries.versions(subject))
        newest = queries.latest(subject)
        assert newest == max(queries.versions(subject), key=lambda row: row.ordinal, default=None)
        if subject.closed:
            continue
        for row in subject.versions:
            assert queries.version(state, subject.key, row.ordinal, queries.KEPT) is row
            if row.life is not Life.LIVE:
                with pytest.raises(NotFound):
                    queries.version(state, subject.key, row.ordinal)


@given(sequences)
def test_every_state_keeps_the_laws(drawn: list[cmd.Command]) -> None:
    """Ids, numbers, indexes and visibility hold after every command of every sequence."""
    node, observer = Node([]), Observer()
    for number, command in enumerate(drawn, 1):
        before = len(node.log)
        outcome = node.execute(command, stamp(number))
        events = decode_record(node.log[-1]).events if len(node.log) > before else ()
        if isinstance(command, cmd.AssignEncoding) and isinstance(outcome, cmd.Encoded):
            version, codec = queries.encoding(node.state, command.key, outcome.encoding)
            assert (version.ordinal, codec) == (command.ordinal, command.codec)
        if isinstance(command, cmd.Register) and isinstance(outcome, cmd.Registration):
            registered = queries.version(node.state, command.key, outcome.ordinal)
            assert (registered.uid, registered.schema.gid) == (outcome.uid, outcome.gid)
            assert queries.schema(node.state, command.key.space, outcome.gid) is registered.schema
        observer.check(node.state, command, events)


@given(sequences)
def test_ordinals_and_lane_versions_rise(drawn: list[cmd.Command]) -> None:
    """A version that brings no number of its own is numbered above all others of its subject and lane."""
    state = State()
    for number, command in enumerate(drawn, 1):
        try:
            decision = decided(state, command, stamp(number))
        except SteleError:
            continue
        for event in decision.events:
            if isinstance(event, ev.Registered) and isinstance(command, cmd.Register) and command.gid is None:
                subject = state.subject(event.key)
                rows = subject.versions if subject else []
                assert all(row.ordinal < event.ordinal for row in rows)
                assert all(
                    row.lane_version < event.lane_version for row in rows if row.lane[:2] == (event.format, event.type)
                )
            fold(state, event, stamp(number), state.seq + 1)
        state.seq += 1


# --- registering ----------------------------------------------------------------------------------------------------


class Levels:
    """An oracle of settings: what was set where, by the answers alone."""

    def __init__(self) -> None:
        self.policies: dict[Level, Policy | None] = {}
        self.defaults: dict[SubjectKey, Policy | None] = {}

    def follow(self, state: State, events: Sequence[ev.Event]) -> None:
        """Take note of what happened."""
        for event in events:
            if isinstance(event, ev.SettingsChanged):
                self.policies[event.level] = event.settings.policy if event.settings else None
            elif isinstance(event, ev.SubjectCreated):
                self.defaults[event.key] = event.default_policy
            elif isinstance(event, ev.SpaceDeleted):
                self.policies.update({level: None for level in self.policies if level.space == event.space})
            if isinstance(event, ev.SubjectClosed | ev.VersionsPurged) and state.subject(event.key) is None:
                self.policies.pop(Level(*event.key), None)
                self.defaults.pop(event.key, None)

    def policy(self, key: SubjectKey) -> Policy:
        """What is in force for a subject."""
        chain = [self.policies.get(Level(*key)), self.defaults.get(key), self.policies.get(Level(key.space))]
        return next((policy for policy in [*chain, self.policies.get(Level())] if policy is not None), BACKWARD)


def _must_read(policy: Policy, rows: list[Version]) -> list[tuple[Version, bool]]:
    """(version, whether the new one is the reader) that a policy asks for; rows newest first."""
    asked = []
    for direction, reader in ((policy.backward, True), (policy.forward, False)):
        for place, row in enumerate(rows):
            since = direction.reach is Reach.SINCE and row.ordinal >= direction.since
            if since or direction.reach is Reach.ALL or (direction.reach is Reach.LATEST and place == 0):
                asked.append((row, reader))
    return asked


@given(sequences)
def test_a_policy_of_any_level_is_enforced(drawn: list[cmd.Command]) -> None:
    """What is registered under a policy satisfies it, whichever level the policy comes from."""
    node, levels = Node([]), Levels()
    for number, command in enumerate(drawn, 1):
        rows: list[Version] = []
        importing = False
        if isinstance(command, cmd.Register):
            rows = queries.versions(node.state.subject(command.key))[::-1]
            importing = queries.mode_for(node.state, Level(*command.key)) is Mode.IMPORT
        before, policy = len(node.log), ALLOW_ANY
        if isinstance(command, cmd.Register):
            policy = command.policy if command.policy is not None else levels.policy(command.key)
        grouped = isinstance(command, cmd.Register) and queries.settings_for(node.state, Level(*command.key)).group
        node.execute(command, stamp(number))
        events = decode_record(node.log[-1]).events if len(node.log) > before else ()
        levels.follow(node.state, events)
        registered = next((event for event in events if isinstance(event, ev.Registered)), None)
        if registered is not None and isinstance(command, cmd.Register) and command.policy is not None:
            assert levels.policy(command.key) == command.policy, "what the command demands holds from then on"
        if registered is None or importing or grouped or command.check is cmd.Check.SKIP:  # type: ignore[union-attr]
            continue
        subject = node.state.subject(registered.key)
        assert subject is not None
        if subject.scope.value == "lane":
            rows = [row for row in rows if row.lane == (registered.format, registered.type)]
        assert policy != DENY_ALL or not rows
        new = NUMBER_OF[registered.sha]
        for row, reader in _must_read(policy, rows):
            old = NUMBER_OF[row.content.sha]
            assert row.lane.format == registered.format
            assert reads(new, old) if reader else reads(old, new)


@given(sequences, st.integers(0, 4), keys)
def test_only_live_versions_are_asked_about(drawn: list[cmd.Command], number: int, key: SubjectKey) -> None:
    """No question names a text that only retired versions of the subject have."""
    node = executed(drawn)
    asked: dict[Question, tuple[Finding, ...]] = {}
    with suppress(SteleError):
        decided(node.state, cmd.Register(key, document(number), equality=cmd.Equality.NEVER), stamp(9999), asked)
    live = {row.content.sha for row in queries.versions(node.state.subject(key))}
    for question in asked:
        assert {question.reader.sha, question.writer.sha} - {document(number).sha} <= live


@given(sequences, st.sampled_from([cmd.Equality.IDENTITY, cmd.Equality.TEXT, cmd.Equality.DIGEST]), st.data())
def test_registering_twice_at_once_makes_one_version(
    drawn: list[cmd.Command], equality: cmd.Equality, data: st.DataObject
) -> None:
    """Two nodes that register the same at the same time end with one content, one version, and the same answer."""
    log = executed(drawn).log
    one, two = Node(log), Node(log)
    one.catch_up()
    two.catch_up()
    command = cmd.Register(
        data.draw(keys), document(data.draw(st.integers(0, 4))), equality=equality, equality_digest="print"
    )
    first, second = one.execute(command, stamp(9001)), two.execute(command, stamp(9002))
    if isinstance(first, SteleError):
        assert type(first) is type(second)
        return
    assert isinstance(first, cmd.Registration)
    assert isinstance(second, cmd.Registration)
    assert not second.created
    assert (first.ordinal, first.gid, first.uid) == (second.ordinal, second.gid, second.uid)


# --- the log --------------------------------------------------------------------------------------------------------


@given(sequences)
def test_replaying_the_log_gives_the_same_state(drawn: list[cmd.Command]) -> None:
    """A node that starts from nothing knows what the one that decided knows, down to the last counter."""
    node = executed(drawn)
    fresh = Node(node.log)
    fresh.catch_up()
    assert facts(fresh.state) == facts(node.state)


@given(sequences, st.integers(0, 40), st.booleans())
def test_a_snapshot_and_its_tail_give_the_same_state(drawn: list[cmd.Command], cut: int, indexed: bool) -> None:
    """Dumping at any point, loading, and folding what came later is as good as folding everything."""
    node = executed(drawn)
    partial = Node(node.log[:cut])
    partial.catch_up()
    if indexed:
        queries.by_uid(partial.state, 1)
        queries.incarnation(partial.state, 1)
    loaded = load_state(dump_state(partial.state))
    assert loaded is not None
    assert facts(loaded) == facts(partial.state)
    partial.state, partial.log = loaded, node.log
    partial.catch_up()
    assert facts(partial.state) == facts(node.state)
    check_indexes(partial.state)


@given(sequences, st.randoms(use_true_random=False))
def test_nodes_with_interleaved_writers_converge(drawn: list[cmd.Command], chance: Random) -> None:
    """Two nodes that decide on what they happen to know, and again when they were late, end up equal."""
    log: list[bytes] = []
    nodes = [Node(log), Node(log)]
    for number, command in enumerate(drawn, 1):
        chance.choice(nodes).execute(command, stamp(number))
    for node in nodes:
        node.catch_up()
    assert facts(nodes[0].state) == facts(nodes[1].state)
    single = executed(drawn)
    assert facts(single.state) == facts(nodes[0].state), "and as if there had been one"


@given(sequences, sequences, st.booleans())
def test_a_draft_taken_back_leaves_no_trace(
    durable: list[cmd.Command], draft: list[cmd.Command], indexed: bool
) -> None:
    """Deciding a batch on top of one another and rolling back leaves exactly the state from before."""
    state = executed(durable).state
    if indexed:
        queries.by_uid(state, 1)
        queries.incarnation(state, 1)
        queries.by_digest(state, "print", b"")
        queries.bindings_of(state, [SubjectKey("", "s")])
    before = facts(state)
    state.begin()
    for number, command in enumerate(draft, 1000):
        try:
            decision = decided(state, command, stamp(number))
        except SteleError:
            continue
        for event in decision.events:
            fold(state, event, stamp(number), state.seq + 1)
        check_indexes(state)
    state.rollback()
    assert facts(state) == before
    check_indexes(state)
    state.pack(rest=True)
    assert facts(state) == before


@given(sequences, sequences)
def test_a_batch_does_what_its_commands_do_one_by_one(durable: list[cmd.Command], batch: list[cmd.Command]) -> None:
    """Commands decided in one draft make the same records as commands made durable one after the other."""
    node = executed(durable)
    drafted: list[Record] = []
    node.state.begin()
    for number, command in enumerate(batch, 1000):
        try:
            decision = decided(node.state, command, stamp(number))
        except SteleError:
            continue
        if decision.events:
            drafted.append(Record(stamp(number), decision.events))
            for event in decision.events:
                fold(node.state, event, stamp(number), node.state.seq + 1)
    node.state.rollback()
    length = len(node.log)
    for number, command in enumerate(batch, 1000):
        node.execute(command, stamp(number))
    assert [decode_record(record) for record in node.log[length:]] == drafted


@given(sequences)
def test_records_come_back_from_their_bytes(drawn: list[cmd.Command]) -> None:
    """Every record that deciding can make is read back as it was written."""
    state = State()
    for number, command in enumerate(drawn, 1):
        by = stamp(number)
        try:
            record = Record(by, decided(state, command, by).events)
        except SteleError:
            continue
        assert decode_record(encode_record(record)) == record
        fold_record(state, state.seq + 1, record)


@given(sequences, keys, st.integers(1, 6))
def test_reading_changes_nothing(drawn: list[cmd.Command], key: SubjectKey, number: int) -> None:
    """Queries, also those that build an index, leave the facts alone; what is not there is a NotFound."""
    state = executed(drawn).state
    before = facts(state)
    queries.policy_for(state, key)
    queries.shown_spaces(state)
    queries.by_digest(state, "print", bytes(16))
    with suppress(NotFound):
        queries.schema(state, key.space, number)
    with suppress(NotFound):
        queries.encoding(state, key, number)
    with suppress(NotFound):
        queries.version(state, key, number)
    assert facts(state) == before


def test_stamps_differ() -> None:
    """The universe's stamps name their commands: the laws above lean on it."""
    assert len({stamp(number).uid for number in range(100)}) == 100
    assert isinstance(stamp(1), Stamp)
