"""A small test model for the core: commands to draw, a node that executes them, and all facts of a state as values.

Five texts, two namespaces, three subject names; one subject is drawn more often than the others. `reads` is the only
compatibility rule, so that an oracle can compute what a policy accepts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st

from stele.core import commands as cmd
from stele.core import queries
from stele.core.compatibility_requests import CompatibilityRequest, VerdictsRequired
from stele.core.decide import Decision, decide
from stele.core.events import EventMetadata, LogRecord, decode_record, encode_record
from stele.core.findings import Finding
from stele.core.fold import apply_record
from stele.core.metadata import Metadata
from stele.core.model import (
    Binding,
    ComparisonScope,
    Mode,
    Numbering,
    Reference,
    SchemaDocument,
    SettingsLevel,
    Subject,
    SubjectKey,
    Version,
)
from stele.core.policy import ALLOW_ANY, DENY_ALL, POLICIES, Policy, RangeKind, VersionRange
from stele.core.state import State
from stele.core.traversal import list_entries, list_versions_of_entry
from stele.errors import SteleError

SPACES = ("", "ö")
NAMES = ("a", "b", "c/d")
TEXTS = tuple(b'{"type":"text","number":%d}' % min(number, 3) for number in range(5))
NUMBER_OF = {hashlib.sha256(text).digest(): number for number, text in enumerate(TEXTS[:4])}


def document(number: int) -> SchemaDocument:
    """Text `number`: 0 and 1 print alike; 3 is of another type, 4 the same text in another format."""
    text = TEXTS[number]
    digests = {"print": hashlib.sha256(bytes([number // 2])).digest(), "md5": hashlib.md5(text).digest()}
    kind = ("json", "") if number == 4 else ("avro", "Other" if number == 3 else "Rec")
    return SchemaDocument(text, hashlib.sha256(text).digest(), *kind, digests)


def reads(reader: int, writer: int) -> bool:
    """Whether text `reader` can read data of text `writer`: neither symmetric nor transitive."""
    return (reader - writer) % 5 in {0, 1, 2}


def verdict(question: CompatibilityRequest) -> tuple[Finding, ...]:
    """Return the findings for a compatibility request, computed by `reads`."""
    reader, writer = NUMBER_OF[question.reader.sha], NUMBER_OF[question.writer.sha]
    return () if reads(reader, writer) else (Finding("NO", f"{reader}<{writer}"),)


# --- drawing commands -----------------------------------------------------------------------------------------------


def _rarely(values: st.SearchStrategy[Any], usual: Any = None) -> st.SearchStrategy[Any]:
    return st.integers(0, 15).flatmap(lambda number: values if number == 15 else st.just(usual))


keys = st.sampled_from([*(SubjectKey(space, name) for space in SPACES for name in NAMES), *[SubjectKey("", "a")] * 9])
ordinals = st.sampled_from([1, 1, 2, 2, 3, 4])
levels = st.one_of(
    st.just(SettingsLevel()),
    st.sampled_from(SPACES).map(SettingsLevel),
    keys.map(lambda key: SettingsLevel(key.namespace, key.name)),
)
policies = st.one_of(
    st.sampled_from([*POLICIES.values(), DENY_ALL, ALLOW_ANY]),
    st.builds(Policy, backward=st.builds(VersionRange, st.just(RangeKind.SINCE), ordinals)),
)
defaults = st.builds(
    cmd.SubjectDefaults,
    numbering=st.sampled_from(Numbering),
    comparison_scope=st.sampled_from(ComparisonScope),
    policy=st.none() | policies,
    create=_rarely(st.just(False), True),
)

bindings = st.builds(
    Binding,
    st.just("kafka"),
    st.just("topic"),
    st.sampled_from(["t1", "t2"]),
    st.just("value"),
    keys,
    st.none() | ordinals,
    resource_id=st.sampled_from(["", "1", "2"]),
)
registers = st.builds(
    cmd.RegisterSchema,
    key=keys,
    document=st.sampled_from([0, 0, 1, 1, 2, 2, 3, 4]).map(document) | _rarely(st.none(), document(0)),
    references=_rarely(keys.map(lambda key: (Reference("r", *key, 1),)), ()),
    metadata=_rarely(st.sampled_from("12").map(lambda value: Metadata(properties={"group": value}))),
    equality=st.sampled_from([cmd.Equality.IDENTITY] * 4 + list(cmd.Equality)),
    equality_digest=st.just("print"),
    check=st.sampled_from([cmd.CompatibilityCheck.POLICY, cmd.CompatibilityCheck.POLICY, cmd.CompatibilityCheck.SKIP]),
    version_number=_rarely(ordinals),
    schema_id=_rarely(st.integers(1, 6)),
    expected_latest=_rarely(st.integers(0, 3)),
    policy=_rarely(policies),
    defaults=defaults,
    description=st.sampled_from(["", "", "told"]),
    media_type=st.sampled_from(["", "", "text/a"]),
    origin_uri=_rarely(st.sampled_from(["u:1", "u:2"])),
    subject_update=_rarely(
        st.builds(cmd.SubjectUpdate, st.sampled_from([None, "z"]), st.sampled_from([{}, {"d": {"k": 1}}]))
    ),
    bindings=_rarely(st.lists(bindings, min_size=1, max_size=2).map(tuple), ()),
)
removals = st.sampled_from(
    [cmd.DeleteMode.SOFT, cmd.DeleteMode.SOFT, cmd.DeleteMode.HARD, cmd.DeleteMode.HARD, cmd.DeleteMode.END_INCARNATION]
)
deletions = st.one_of(
    st.builds(cmd.DeleteVersion, keys, st.none() | ordinals, removals),
    st.builds(cmd.DeleteVersion, keys, ordinals, removals),
    st.builds(cmd.DeleteSubject, keys, removals, expected_latest=_rarely(st.integers(0, 2))),
)
adoptions = st.lists(
    st.tuples(st.sampled_from(["avro", "json"]), st.sampled_from(["strict", "loose"]), st.integers(0, 3)), max_size=3
).map(tuple)
catalogue = st.one_of(
    st.builds(
        cmd.DeleteNamespace,
        st.sampled_from(SPACES),
        _rarely(st.just(cmd.SubjectsPresent.END_INCARNATIONS), cmd.SubjectsPresent.REFUSE),
    ),
    _rarely(st.builds(cmd.EndIncarnations, st.sampled_from(SPACES)), cmd.DeleteNamespace("ö")),
    st.builds(cmd.CreateNamespace, st.sampled_from(SPACES), st.booleans(), description=st.sampled_from(["", "x"])),
    st.builds(cmd.CreateSubject, keys, defaults),
    st.builds(cmd.ChangeSubject, keys, st.sampled_from(["", "y"]), default_version=st.none() | ordinals),
    st.builds(cmd.AddCodec, keys, st.sampled_from(["gzip", "snappy"])),
    st.builds(cmd.AssignEncoding, keys, ordinals, st.sampled_from(["", "", "gzip"])),
    st.builds(cmd.AssignEncoding, keys, ordinals),
    st.builds(cmd.AddBinding, bindings),
    st.builds(cmd.RemoveBinding, bindings.map(lambda binding: binding.key)),
    st.builds(
        cmd.ChangeBindings,
        st.lists(bindings, max_size=2).map(tuple),
        expected=st.none() | st.just(frozenset()),
    ),
    st.builds(cmd.AdoptRulesets, adoptions, st.booleans()),
    st.builds(
        cmd.ChangeItems,
        st.sampled_from(["keys", "exporters"]),
        st.dictionaries(st.sampled_from([("a",), ("a", "b")]), st.none() | st.sampled_from([b"{}", b"[]"]), min_size=1),
        st.none() | st.integers(0, 2),
    ),
)
settings_changes = st.one_of(
    st.builds(
        cmd.ChangeSettings,
        levels,
        st.builds(lambda policy: {"policy": policy}, st.none() | policies),
        prune=st.booleans(),
    ),
    st.builds(cmd.ChangeSettings, levels, st.just({"group": "group"})),
    st.builds(cmd.ClearSettings, levels),
)
modes = st.one_of(
    st.builds(cmd.SetMode, levels, st.none() | st.sampled_from([Mode.IMPORT, *Mode]), st.booleans()),
    st.builds(cmd.ClearMode, levels, st.booleans()),
    st.just(cmd.ClearMode(SettingsLevel(), recursive=True)),
    st.just(cmd.ClearMode(SettingsLevel(), recursive=True)),
)
imports = st.builds(
    cmd.RegisterSchema,
    keys,
    st.integers(0, 4).map(document),
    version_number=st.none() | ordinals,
    schema_id=st.integers(1, 5),
    at=_rarely(st.integers(0, 9)),
)
_MIX = [registers] * 10 + [imports] + [deletions] * 5 + [catalogue] * 3 + [settings_changes] * 2 + [modes]
commands: st.SearchStrategy[cmd.Command] = st.sampled_from(_MIX).flatmap(lambda kind: kind)


def _delete_twice(key: SubjectKey, ordinal: int | None) -> list[cmd.Command]:
    """Return both steps of a deletion, because random commands rarely contain both."""
    steps = (cmd.DeleteMode.SOFT, cmd.DeleteMode.HARD)
    if ordinal is None:
        return [cmd.DeleteSubject(key, removal) for removal in steps]
    return [cmd.DeleteVersion(key, ordinal, removal) for removal in steps]


_wipes = st.builds(_delete_twice, keys, st.none() | ordinals)
_steps = st.sampled_from([commands.map(lambda one: [one])] * 6 + [_wipes]).flatmap(lambda kind: kind)
sequences = st.lists(_steps, min_size=12, max_size=40).map(lambda steps: [one for step in steps for one in step])


# --- executing ------------------------------------------------------------------------------------------------------


def stamp(number: int) -> EventMetadata:
    """Return the event metadata of command `number`. They are different for each number."""
    return EventMetadata(number.to_bytes(16, "big"), 1_700_000_000_000 + number, "ann" if number % 3 else "", "test")


def decide_and_fold(
    state: State,
    command: cmd.Command,
    by: EventMetadata,
    answers: dict[CompatibilityRequest, tuple[Finding, ...]] | None = None,
) -> Decision:
    """Return a decision. Compatibility requests are answered in order, up to the first that refuses."""
    verdicts: dict[CompatibilityRequest, tuple[Finding, ...]] = {} if answers is None else answers
    while True:
        try:
            return decide(state, command, by, verdicts)
        except VerdictsRequired as undecided:
            for question in undecided.questions:
                verdicts[question] = verdict(question)
                if verdicts[question]:
                    break


class Node:
    """A state over a shared log of encoded records, like a node of a registry."""

    def __init__(self, log: list[bytes]) -> None:
        self.log = log
        self.state = State()

    def catch_up(self) -> None:
        """Fold the records of the log that the state does not have yet."""
        for seq in range(self.state.seq + 1, len(self.log) + 1):
            apply_record(self.state, seq, decode_record(self.log[seq - 1]))

    def execute(self, command: cmd.Command, by: EventMetadata) -> cmd.Outcome | SteleError:
        """Decide on the current state and append the record; if the log has grown, catch up and decide again."""
        while True:
            try:
                decision = decide_and_fold(self.state, command, by)
            except SteleError as error:
                if self.state.seq == len(self.log):
                    return error
                decision = None
            if self.state.seq != len(self.log):
                self.catch_up()
                continue
            assert decision is not None
            if decision.events:
                self.log.append(encode_record(LogRecord(by, decision.events)))
                self.catch_up()
            return decision.outcome


def execute_commands(drawn: Iterable[cmd.Command]) -> Node:
    """Return a node that has executed the commands; some of them may have been refused."""
    node = Node([])
    for number, command in enumerate(drawn, 1):
        node.execute(command, stamp(number))
    return node


# --- all there is to know about a state -----------------------------------------------------------------------------


def facts(state: State) -> Mapping[str, Any]:
    """Return all facts of a state as comparable values, independent of its data structures."""
    return {
        "seq": state.seq,
        "serial": state.serial,
        "settings": state.settings,
        "mode": state.mode,
        "bindings": state.bindings,
        "rulesets": dict(state.rulesets),
        "collections": {name: (row.revision, row.items) for name, row in state.collections.items()},
        "closed": [_subject(subject) for subject in state.closed],
        "referrers": {target: [row.uid for row in rows] for target, rows in state.referrers.items()},
        "contents": {
            (row.sha, row.format): (
                state.get_text(row),
                state.get_digests(row),
                state.get_seq(row),
                sorted((known.namespace, known.schema_id) for known in list_entries(row)),
            )
            for row in queries.list_contents(state)
        },
        "namespaces": {
            name: {
                **_plain(space, "subjects", "schema_entries"),
                "schema_entries": {
                    gid: (
                        row.content.sha,
                        row.content.format,
                        row.attachments,
                        [use.uid for use in list_versions_of_entry(row)],
                    )
                    for gid, row in space.schema_entries.items()
                },
                "subjects": {name: _subject(subject) for name, subject in space.subjects.items()},
            }
            for name, space in state.namespaces.items()
        },
    }


def _subject(subject: Subject) -> Mapping[str, Any]:
    details = _plain(subject.details)
    return {
        **_plain(subject, "stored_versions", "details"),
        "details": details,
        "kind": subject.kind,
        "versions": [_version(row) for row in subject.versions],
    }


def _version(row: Version) -> Mapping[str, Any]:
    links = {
        "schema": (row.schema.namespace, row.schema.schema_id),
        "subject": row.subject.uid,
        "uid": row.uid,
        "at": row.at,
    }
    return {**_plain(row, "schema", "subject", "older_version"), **links}


def _plain(struct: msgspec.Struct, *links: str) -> dict[str, Any]:
    """Return a copy of the struct's own values, so that later changes of the struct do not change it."""
    names = [name for name in struct.__struct_fields__ if name not in links]
    values = {name: getattr(struct, name) for name in names}
    return {name: value.copy() if isinstance(value, dict | list) else value for name, value in values.items()}


def all_subjects(state: State) -> list[Subject]:
    """Present and closed subjects."""
    return [*state.closed, *(row for space in state.namespaces.values() for row in space.subjects.values())]
