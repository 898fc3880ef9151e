"""Registration, rule by rule: equality, modes, numbers and comparisons."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.core.box import Box, S, T, doc, to

from stele.core import commands as cmd
from stele.core import queries
from stele.core.commands import CompatibilityCheck, Equality, RegisterSchema, SubjectDefaults
from stele.core.events import SubjectCreated, VersionRegistered
from stele.core.metadata import DataRule, DataRuleSet, Metadata
from stele.core.model import (
    MAX_INT32,
    NO_ATTACHMENTS,
    ComparisonScope,
    Mode,
    Numbering,
    Reference,
    SchemaKind,
    SettingsLevel,
    SubjectKey,
    VersionState,
)
from stele.core.policy import ALLOW_ANY, BACKWARD, DENY_ALL, LATEST_VERSION, POLICIES, Policy, PolicyKind
from stele.core.snapshot import dump_state, load_state
from stele.errors import (
    FormatMismatch,
    IdTaken,
    Incompatible,
    InUse,
    InvalidName,
    InvalidRequest,
    InvalidRuleSet,
    InvalidVersion,
    PreconditionFailed,
    ReadOnly,
    SubjectNotFound,
    TooLarge,
    UnresolvedReference,
)

NEVER_REUSE = SubjectDefaults(numbering=Numbering.NEVER_REUSE)


def numbers(outcome: cmd.Registration) -> tuple[int, int]:
    """Return (version number, schema id)."""
    return outcome.version_number, outcome.schema_id


# --- the same again -------------------------------------------------------------------------------------------------


def test_the_same_text_is_registered_once() -> None:
    """Registering a text again returns the existing version, and writes nothing."""
    box = Box()
    first, again = box.register(S, "a"), box.register(S, "a")
    assert (first.created, again.created) == (True, False)
    assert (again.version_number, again.schema_id, again.uid) == (first.version_number, first.schema_id, first.uid)
    assert box.events == ()


def test_the_same_is_found_before_the_mode_is_asked() -> None:
    """A client can register an existing schema again while the subject is read-only, but not a new one."""
    box = Box()
    box.register(S, "a")
    box.do(cmd.SetMode(SettingsLevel(*S), Mode.READONLY))
    assert numbers(box.register(S, "a")) == (1, 1)
    with pytest.raises(ReadOnly) as caught:
        box.register(S, "b")
    assert (caught.value.subject, caught.value.how) == ("s", "in read-only mode")


def test_subjects_of_a_space_share_ids_and_spaces_do_not() -> None:
    """A text has one id in a namespace, in every subject; another namespace has its own counter."""
    box = Box()
    assert numbers(box.register(S, "a")) == (1, 1)
    assert numbers(box.register(S, "b")) == (2, 2)
    assert numbers(box.register(T, "b")) == (1, 2)
    assert numbers(box.register(SubjectKey("ctx", "s"), "b")) == (1, 1)
    assert len(box.state.contents) == 2, "the text is stored once"


def test_the_language_is_part_of_the_identity() -> None:
    """A text that is a schema in two formats is two schemas, with separate ids, look-ups and purges."""
    box = Box()
    for key, name, number in ((S, "avro", 1), (T, "json", 2), (SubjectKey("", "u"), "avro", 1)):
        outcome = box.do(RegisterSchema(key, doc("a", name, normalized=name.encode())))
        assert isinstance(outcome, cmd.Registration)
        assert outcome.schema_id == number
    in_two = RegisterSchema(
        S, doc("a", "json", normalized=b"json"), equality=Equality.DIGEST, equality_digest="normalized"
    )
    in_two = msgspec.structs.replace(in_two, check=CompatibilityCheck.SKIP)
    first, again = box.do(in_two), box.do(in_two)
    assert isinstance(first, cmd.Registration)
    assert isinstance(again, cmd.Registration)
    assert (numbers(first), first.created, numbers(again), again.created) == ((2, 2), True, (2, 2), False)
    for name in ("avro", "json"):
        lane = SchemaKind(name, "")
        version = queries.find_equal_version(box.state, S, doc("a").sha, NO_ATTACHMENTS, kind=lane)
        assert version is not None
        assert (version.kind, version.content.format) == (lane, name)
    for state in (box.state, load_state(dump_state(box.state))):
        assert state is not None
        formats = {gid: row.content.format for gid, row in state.namespaces[""].schema_entries.items()}
        assert formats == {1: "avro", 2: "json"}
        assert [(row.format, state.get_text(row)) for row in queries.list_contents(state)] == [
            ("avro", b"a"),
            ("json", b"a"),
        ]
    box.purge(S)
    box.purge(SubjectKey("", "u"))
    assert [row.format for row in queries.list_contents(box.state)] == ["json"], "what is left has its text"
    assert [box.state.get_text(row) for row in box.state.contents.values()] == [b"a"]
    box.purge(T)
    assert box.state.contents == {}


def test_attachments_are_part_of_the_identity() -> None:
    """Other references or metadata give the same text another id; their order in the request does not."""
    box = Box()
    box.register(T, "t")
    plain = box.register(S, "a")
    referring = box.register(S, "a", to(T))
    described = box.register(S, "a", metadata=Metadata(properties={"x": "1", "b": "2"}))
    again = box.register(S, "a", metadata=Metadata(properties={"b": "2", "x": "1"}))
    assert len({plain.schema_id, referring.schema_id, described.schema_id}) == 3
    assert again.schema_id == described.schema_id


def test_text_equality_ignores_attachments() -> None:
    """TEXT finds the lowest active version of the text, NEVER finds none."""
    box = Box()
    box.register(S, "a", metadata=Metadata(properties={"x": "1"}))
    box.register(S, "b")
    assert box.register(S, "a", equality=Equality.TEXT).version_number == 1
    assert numbers(box.register(S, "a", equality=Equality.NEVER)) == (3, 1)
    assert box.register(S, "a", equality=Equality.TEXT).version_number == 1


def test_digest_equality_stays_in_the_lane() -> None:
    """DIGEST finds texts with the same digest in their kind only; a text without that digest equals only itself."""
    box = Box()

    def register(document: object) -> int:
        outcome = box.do(RegisterSchema(S, document, equality=Equality.DIGEST, equality_digest="print"))  # type: ignore[arg-type]
        assert isinstance(outcome, cmd.Registration)
        return outcome.version_number

    assert register(doc("a", print=b"p" * 32)) == 1
    assert register(doc("a ", print=b"p" * 32)) == 1
    assert register(doc("a  ", type_name="Other", print=b"p" * 32)) == 2
    assert register(doc("plain")) == 3
    assert register(doc("plain")) == 3


def test_an_empty_request_repeats_the_newest_text() -> None:
    """Without a document the newest active text and references are used; without a version it is an error."""
    box = Box()
    with pytest.raises(InvalidRequest, match="Empty schema"):
        box.do(RegisterSchema(S, None))
    box.register(T, "t")
    box.register(S, "a", to(T))
    outcome = box.do(RegisterSchema(S, None, metadata=Metadata(properties={"x": "1"})))
    assert isinstance(outcome, cmd.Registration)
    assert outcome.version_number == 2
    version = queries.get_version(box.state, S, 2)
    assert box.state.get_text(version.content) == b"a"
    assert version.schema.attachments.references == (to(T),)


def test_metadata_come_from_before_and_from_settings() -> None:
    """Metadata absent from a request come from the newest version, between the level's defaults and overrides."""
    box = Box()
    changes = {
        "default_metadata": Metadata(properties={"d": "0", "o": "0"}),
        "override_metadata": Metadata(properties={"o": "9"}),
    }
    box.do(cmd.ChangeSettings(SettingsLevel(""), changes))
    box.register(S, "a", metadata=Metadata(properties={"x": "1"}))
    box.register(S, "b")
    metadata = queries.get_version(box.state, S, 2).schema.attachments.metadata
    assert metadata == Metadata(properties={"d": "0", "o": "9", "x": "1"})


def test_a_broken_rule_set_is_refused() -> None:
    """Rule sets are validated as merged, before anything is written."""
    box = Box()
    with pytest.raises(InvalidRuleSet):
        box.register(S, "a", rule_set=DataRuleSet(domain_rules=(DataRule(name="1", type="T"),)))
    assert box.state.find_subject(S) is None


# --- numbers and conditions -----------------------------------------------------------------------------------------


def test_an_explicit_ordinal_must_be_the_next() -> None:
    """Outside of imports an explicit version number must be the next one, and an explicit id is refused."""
    box = Box()
    assert box.register(S, "a", version_number=1).version_number == 1
    for wrong in (1, 3, 0, -1):
        with pytest.raises(InvalidRequest, match="one more than previous"):
            box.register(S, "b", version_number=wrong)
    with pytest.raises(ReadOnly, match="not in import mode"):
        box.register(S, "b", schema_id=2)
    with pytest.raises(ReadOnly, match="not in import mode"):
        box.register(S, "a", schema_id=2)
    assert numbers(box.register(S, "a", schema_id=1)) == (1, 1), "the id it has is no change"


def test_a_condition_on_the_latest_is_checked() -> None:
    """`expected_latest` must be the newest version number, also for an empty subject; else the command fails."""
    box = Box()
    with pytest.raises(PreconditionFailed):
        box.register(S, "a", expected_latest=1)
    box.register(S, "a", expected_latest=0)
    box.register(S, "b", expected_latest=1)
    with pytest.raises(PreconditionFailed):
        box.register(S, "c", expected_latest=1)
    box.retire(S, 2)
    assert box.register(S, "c", expected_latest=1).version_number == 3


def test_subjects_are_not_created_against_the_will() -> None:
    """create=False refuses a subject that does not exist and does nothing to one that does."""
    box = Box()
    with pytest.raises(SubjectNotFound):
        box.register(S, "a", defaults=SubjectDefaults(create=False))
    box.do(cmd.CreateSubject(S))
    assert box.register(S, "a", defaults=SubjectDefaults(create=False)).version_number == 1


def test_lanes_are_numbered_side_by_side() -> None:
    """Version numbers count in the subject, kind versions in each (format, type): the Pravega numbering."""
    box = Box()
    numbering = []
    for text, type_name in [("a1", "A"), ("a2", "A"), ("b1", "B"), ("a3", "A"), ("b2", "B")]:
        box.do(RegisterSchema(S, doc(text, type_name=type_name), check=CompatibilityCheck.SKIP, defaults=NEVER_REUSE))
        version = queries.get_version(box.state, S, None)
        numbering.append((version.version_number, version.kind.type, version.kind_version))
    assert numbering == [(1, "A", 1), (2, "A", 2), (3, "B", 1), (4, "A", 3), (5, "B", 2)]
    box.do(RegisterSchema(S, doc("j1", "json", "A"), check=CompatibilityCheck.SKIP))
    assert queries.get_version(box.state, S, 6).kind_version == 1, "another format is another lane"


def test_the_record_id_holds_the_ordinal_in_14_bits() -> None:
    """Record ids have the version in the low 14 bits and the subject above; a number that does not fit is refused."""
    box = Box()
    box.register(S, "a")
    box.register(S, "b")
    box.register(T, "a")
    ids = [queries.get_version(box.state, key, ordinal).record_id for key, ordinal in [(S, 1), (S, 2), (T, 1)]]
    assert [number & 0x3FFF for number in ids] == [1, 2, 1]
    assert ids[0] >> 14 == ids[1] >> 14 != ids[2] >> 14
    box.do(cmd.SetMode(SettingsLevel(*S), Mode.IMPORT, force=True))
    box.register(S, "c", schema_id=3, version_number=0x4000)
    with pytest.raises(TooLarge):
        _ = queries.get_version(box.state, S, 0x4000).record_id


def test_numbers_end_at_31_bits() -> None:
    """When ids or version numbers run out, the command fails instead of assigning one that no client can read."""
    box = Box()
    box.do(cmd.SetMode(SettingsLevel(), Mode.IMPORT))
    box.register(S, "a", schema_id=MAX_INT32, version_number=MAX_INT32)
    with pytest.raises(InvalidRequest):
        box.register(T, "b", schema_id=MAX_INT32 + 1)
    with pytest.raises(InvalidVersion):
        box.register(T, "b", schema_id=5, version_number=MAX_INT32 + 1)
    box.do(cmd.SetMode(SettingsLevel(), None))
    with pytest.raises(TooLarge, match="version number"):
        box.register(S, "b", check=CompatibilityCheck.SKIP)
    with pytest.raises(TooLarge, match="schema id"):
        box.register(T, "b")


def test_an_import_may_say_when() -> None:
    """In IMPORT mode a version has its given time; elsewhere a time is refused."""
    box = Box()
    with pytest.raises(ReadOnly, match="not in import mode"):
        box.register(S, "a", at=5)
    box.do(cmd.SetMode(SettingsLevel(), Mode.IMPORT))
    box.register(S, "a", schema_id=1, version_number=1, at=5)
    box.register(S, "b", schema_id=2, version_number=2)
    assert [queries.get_version(box.state, S, number).at for number in (1, 2)] == [5, 1000 + box.state.seq]
    for wrong in (-1, 2**56):
        with pytest.raises(InvalidRequest, match="is not a time"):
            box.register(S, "c", schema_id=3, version_number=3, at=wrong)
    assert queries.get_version(load_state(dump_state(box.state)), S, 1).at == 5


@pytest.mark.parametrize("name", ["a\0", "a\nb", "\x7f", "\x85", "\ud800"])
def test_names_that_would_break_lists_are_refused(name: str) -> None:
    """Control characters and lone surrogates are refused in names of subjects and namespaces; others are allowed."""
    box = Box()
    for key in (SubjectKey("", name), SubjectKey(name, "s")):
        with pytest.raises(InvalidName):
            box.register(key, "a")
        with pytest.raises(InvalidName):
            box.do(cmd.ChangeSettings(SettingsLevel(*key), {"policy": ALLOW_ANY}))
        with pytest.raises(InvalidName):
            box.do(cmd.ClearSettings(SettingsLevel(*key)))
    for fine in ("", "*", "ü/🐘", "a b"):
        box.register(SubjectKey("", fine), "a")


# --- references -----------------------------------------------------------------------------------------------------


def test_a_reference_must_exist_and_be_live() -> None:
    """Unknown, soft-deleted and purged targets are refused; the error names subject and version."""
    box = Box()
    with pytest.raises(UnresolvedReference, match='"t" and version 1'):
        box.register(S, "a", to(T))
    box.register(T, "t")
    with pytest.raises(UnresolvedReference):
        box.register(S, "a", to(T, 2))
    box.register(S, "a", to(T))
    box.register(T, "t2")
    box.retire(T, 2)
    with pytest.raises(UnresolvedReference):
        box.register(S, "b", to(T, 2))


def test_a_closure_lists_dependencies_first_and_once() -> None:
    """A diamond of references is flattened, dependencies before dependants, each name and text once."""
    box = Box()
    base, left, right = (SubjectKey("", name) for name in ("base", "left", "right"))
    box.register(base, "base")
    box.register(left, "left", to(base, name="base"))
    box.register(right, "right", to(base, name="base"))
    references = (to(left, name="left"), to(right, name="right"))
    names = [name for name, _ in queries.resolve_references(box.state, references)]
    assert names == ["base", "left", "right"]


def test_references_reach_across_spaces() -> None:
    """A reference names its namespace, so it can point into another one."""
    box = Box()
    other = SubjectKey("ctx", "t")
    box.register(other, "t")
    assert box.register(S, "a", to(other)).created
    assert [row.subject.key for row in queries.list_referrers(box.state, other, 1)] == [S]


# --- policies -------------------------------------------------------------------------------------------------------


def test_what_the_policy_refuses_is_not_registered() -> None:
    """The default policy compares with the newest active version, and the error has findings and version."""
    box = Box(refuses=lambda reader, writer: writer == b"a")
    box.register(S, "a")
    with pytest.raises(Incompatible) as caught:
        box.register(S, "b")
    assert (caught.value.against, [finding.against for finding in caught.value.findings]) == (1, [1])
    assert box.register(S, "b", check=CompatibilityCheck.SKIP).version_number == 2
    assert box.register(S, "c").version_number == 3
    assert box.asked[-1] == ("c", "b", ""), "only the newest is compared"


def test_retired_versions_are_not_compared() -> None:
    """After a soft deletion the version below is the newest; without active versions anything is accepted."""
    box = Box(refuses=lambda reader, writer: writer == b"b")
    box.register(S, "a")
    box.register(S, "b")
    with pytest.raises(Incompatible):
        box.register(S, "c")
    box.retire(S, 2)
    assert box.register(S, "c").version_number == 3
    assert box.asked[-1][1] == "a"


def test_a_transitive_policy_stops_at_the_first_refusal() -> None:
    """All versions are compared, newest first, and the newest that refuses is the one reported."""
    box = Box(refuses=lambda reader, writer: reader == b"d" and writer in {b"a", b"b"})
    box.do(cmd.ChangeSettings(SettingsLevel(), {"policy": POLICIES["BACKWARD_TRANSITIVE"]}))
    for text in "abc":
        box.register(S, text)
    with pytest.raises(Incompatible) as caught:
        box.register(S, "d")
    assert caught.value.against == 2


def test_forward_and_full_ask_the_other_way_round() -> None:
    """FORWARD checks whether the old schema reads new data; FULL checks both directions."""
    box = Box()
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"policy": POLICIES["FORWARD"], "ruleset": "strict"}))
    box.register(S, "a")
    box.register(S, "b")
    assert box.asked == [("a", "b", "strict")]
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"policy": POLICIES["FULL"]}))
    box.register(S, "c")
    assert box.asked[1:] == [("c", "b", "strict"), ("b", "c", "strict")]


def test_another_format_is_incompatible_unless_anything_goes() -> None:
    """A change of format is refused by every directional policy without a question, and allowed by NONE."""
    box = Box()
    box.register(S, "a")
    with pytest.raises(Incompatible) as caught:
        box.do(RegisterSchema(S, doc("p", "protobuf")))
    assert caught.value.findings[0].rule == "FORMAT_CHANGED"
    assert box.asked == []
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"policy": ALLOW_ANY}))
    box.do(RegisterSchema(S, doc("p", "protobuf")))
    assert box.ordinals(S) == [1, 2]


def test_deny_all_takes_the_first_version_only() -> None:
    """A subject with DENY_ALL refuses every further version, and still finds its existing one."""
    box = Box()
    defaults = SubjectDefaults(policy=DENY_ALL)
    box.register(S, "a", defaults=defaults)
    with pytest.raises(Incompatible) as caught:
        box.register(S, "b")
    assert caught.value.findings[0].rule == "POLICY_DENIES_ALL"
    assert not box.register(S, "a").created


def test_validators_of_a_policy_are_asked_whatever_its_kind() -> None:
    """Every validator checks each new document against the newest version, and its findings refuse it."""
    box = Box(refuses=lambda reader, writer: reader == b"b" and writer == b"a")
    policy = Policy(kind=PolicyKind.ALLOW_ANY, validators=("naming", "docs"))
    box.register(S, "a", defaults=SubjectDefaults(policy=policy))
    assert box.asked == [("a", "a", "checker:naming"), ("a", "a", "checker:docs")]
    with pytest.raises(Incompatible) as caught:
        box.register(S, "b")
    assert caught.value.findings[0].against == 1
    assert box.ordinals(S) == [1]


def test_lane_scope_compares_within_the_lane() -> None:
    """With scope SCHEMA_KIND a version is compared with its own kind only, with scope SUBJECT with the newest."""
    for scope, compared in ((ComparisonScope.SCHEMA_KIND, "a"), (ComparisonScope.SUBJECT, "b")):
        box = Box()
        defaults = SubjectDefaults(comparison_scope=scope)
        for text, type_name in [("a", "A"), ("b", "B"), ("c", "A")]:
            box.do(RegisterSchema(S, doc(text, type_name=type_name), defaults=defaults))
        assert box.asked[-1][:2] == ("c", compared)


def test_one_type_refuses_another_under_every_policy() -> None:
    """With scope ONE_TYPE a second type is refused under every policy; an unnamed type is accepted."""
    for policy in (ALLOW_ANY, POLICIES["BACKWARD"]):
        box = Box()
        defaults = SubjectDefaults(comparison_scope=ComparisonScope.ONE_TYPE, policy=policy)
        box.do(RegisterSchema(S, doc("a", type_name="A"), defaults=defaults))
        with pytest.raises(Incompatible) as caught:
            box.do(RegisterSchema(S, doc("b", type_name="B")))
        assert [finding.rule for finding in caught.value.findings] == ["TYPE_CHANGED"]
        box.do(RegisterSchema(S, doc("c")))
        box.do(RegisterSchema(S, doc("d", type_name="A")))
        assert box.ordinals(S) == [1, 2, 3]


def test_denying_all_denies_other_lanes_too() -> None:
    """DENY_ALL also refuses a new type, although types are compared separately."""
    box = Box()
    defaults = SubjectDefaults(comparison_scope=ComparisonScope.SCHEMA_KIND, policy=DENY_ALL)
    box.do(RegisterSchema(S, doc("a", type_name="A"), defaults=defaults))
    with pytest.raises(Incompatible):
        box.do(RegisterSchema(S, doc("b", type_name="B")))


def test_varieties_are_lanes_of_their_own() -> None:
    """Custom formats have numbers of their own, and equal texts of two of them are different schemas."""
    box = Box()
    defaults = SubjectDefaults(comparison_scope=ComparisonScope.SCHEMA_KIND, policy=ALLOW_ANY)
    for variety in ("x", "y", "x"):
        document = msgspec.structs.replace(doc("a", "opaque", "T", normalized=bytes(16)), custom_format=variety)
        box.do(RegisterSchema(S, document, defaults=defaults, equality=Equality.DIGEST, equality_digest="normalized"))
    subject = box.state.find_subject(S)
    assert subject is not None
    assert [(row.kind.custom_format, row.kind_version) for row in subject.versions] == [("x", 1), ("y", 1)]


def test_retired_versions_stay_where_data_may_have_them() -> None:
    """Registering again replaces no version whose number is never reused, and none with an encoding id."""
    for defaults, encoded in ((SubjectDefaults(Numbering.NEVER_REUSE), False), (SubjectDefaults(), True)):
        box = Box()
        box.register(S, "a", defaults=defaults)
        if encoded:
            box.do(cmd.AssignEncoding(S, 1))
        box.retire(S, 1)
        assert box.register(S, "a").version_number == 2
        assert box.ordinals(S) == [1, 2]


def test_a_group_compares_its_own_members() -> None:
    """With a compatibility group only versions with the same value in their metadata are compared."""
    box = Box()
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"group": "major", "policy": POLICIES["FULL_TRANSITIVE"]}))
    for text, major in [("a", "1"), ("b", "2"), ("c", "1")]:
        box.register(S, text, metadata=Metadata(properties={"major": major}))
    assert [pair[:2] for pair in box.asked] == [("c", "a"), ("a", "c")]


def test_questions_carry_all_texts_a_verdict_needs() -> None:
    """A question names all references of both sides, so that it can be answered without the state."""
    box = Box()
    box.register(T, "t")
    box.register(S, "a", to(T))
    box.register(S, "b", Reference("n", "", "t", 1))
    assert box.asked == [("b", "a", "")]


def test_the_policy_in_force_is_written_down() -> None:
    """A version stores its policy; a new subject has that of its own settings, else that of its dialect."""
    box = Box()
    creating = SubjectDefaults(policy=Policy(forward=LATEST_VERSION))
    box.register(S, "a", defaults=creating)
    assert queries.get_version(box.state, S, 1).policy == Policy(forward=LATEST_VERSION)
    box.do(cmd.ChangeSettings(SettingsLevel(*T), {"policy": ALLOW_ANY}))
    box.register(T, "a", defaults=creating)
    assert queries.get_version(box.state, T, 1).policy == ALLOW_ANY


def test_gates_of_format_are_kept() -> None:
    """A subject or a namespace with a format refuses schemas of other formats."""
    box = Box()
    box.do(cmd.CreateNamespace("ctx", format="json"))
    with pytest.raises(FormatMismatch):
        box.register(SubjectKey("ctx", "s"), "a")
    box.do(cmd.CreateSubject(S, SubjectDefaults(format="protobuf")))
    with pytest.raises(FormatMismatch):
        box.register(S, "a")
    box.do(cmd.CreateSubject(T, SubjectDefaults(format="opaque", custom_format="words")))
    text = doc("a", "opaque")
    for variety in ("", "verse"):
        with pytest.raises(FormatMismatch, match="takes words schemas"):
            box.do(RegisterSchema(T, msgspec.structs.replace(text, custom_format=variety)))
    state = load_state(dump_state(box.state))
    assert state is not None
    assert [subject.custom_format for subject in state.namespaces[""].subjects.values()] == ["", "words"]
    box.do(RegisterSchema(T, msgspec.structs.replace(text, custom_format="words")))


# --- importing ------------------------------------------------------------------------------------------------------


def test_imports_bring_their_numbers_and_are_not_checked() -> None:
    """In IMPORT mode schemas have their own ids and version numbers, in any order, and are not checked."""
    box = Box(refuses=lambda reader, writer: True)
    box.do(cmd.SetMode(SettingsLevel(), Mode.IMPORT))
    assert numbers(box.register(S, "c", schema_id=30, version_number=3)) == (3, 30)
    assert numbers(box.register(S, "a", schema_id=10, version_number=1)) == (1, 10)
    assert numbers(box.register(S, "d", schema_id=40)) == (4, 40)
    assert not box.register(S, "a", schema_id=10, version_number=1).created
    assert box.ordinals(S) == [1, 3, 4]
    assert [row.kind_version for row in queries.list_versions(box.state.find_subject(S))] == [1, 3, 4]
    box.do(cmd.SetMode(SettingsLevel(), None))
    assert numbers(box.register(T, "new")) == (1, 41), "ids go on above the highest imported one"


def test_imports_take_no_id_from_another_schema() -> None:
    """An id of another schema, or one out of range, is refused."""
    box = Box()
    box.do(cmd.SetMode(SettingsLevel(), Mode.IMPORT))
    box.register(S, "a", schema_id=10, version_number=1)
    with pytest.raises(IdTaken):
        box.register(S, "b", schema_id=10)
    with pytest.raises(ReadOnly, match="not in read-write mode"):
        box.register(S, "b")
    for wrong in (0, -5):
        with pytest.raises(InvalidRequest):
            box.register(S, "b", schema_id=wrong)


def test_imports_may_bring_a_schema_under_several_ids() -> None:
    """An import may give a schema several ids: each stays readable, and later registrations get the lowest."""
    box = Box()
    box.do(cmd.SetMode(SettingsLevel(), Mode.IMPORT))
    for gid in (12, 10, 11):
        assert box.register(S, "a", schema_id=gid).created
    assert not box.register(S, "a", schema_id=11, version_number=3).created
    assert [row.schema.schema_id for row in queries.list_versions(box.state.find_subject(S))] == [12, 10, 11]
    box.do(cmd.SetMode(SettingsLevel(), None))
    assert numbers(box.register(T, "a")) == (1, 10)


def test_an_import_overwrites_the_version_it_names() -> None:
    """An import replaces the version with its number, and that version's id, unless another version refers to it."""
    box = Box()
    box.do(cmd.SetMode(SettingsLevel(), Mode.IMPORT))
    box.register(S, "a", schema_id=1, version_number=1)
    box.register(S, "b", schema_id=2, version_number=1)
    assert [(row.version_number, row.schema.schema_id) for row in queries.list_versions(box.state.find_subject(S))] == [
        (1, 2)
    ]
    assert 1 not in box.state.namespaces[""].schema_entries
    box.register(S, "b", schema_id=3, version_number=1)
    assert queries.get_schema_entry(box.state, "", 3).content.sha == doc("b").sha
    box.register(T, "t", to(S, 1), schema_id=4)
    with pytest.raises(InUse):
        box.register(S, "c", schema_id=5, version_number=1)


def test_an_import_brings_a_retired_version_back() -> None:
    """The same schema, id and number make a version active again; a soft-deleted one of a later number stays."""
    box = Box()
    box.do(cmd.SetMode(SettingsLevel(), Mode.IMPORT))
    box.register(S, "a", schema_id=1, version_number=2)
    box.retire(S)
    assert box.register(S, "a", schema_id=1, version_number=2).created
    assert box.ordinals(S) == [2]
    box.retire(S)
    assert box.register(S, "a", schema_id=1, version_number=1).created
    assert [(row.version_number, row.state) for row in box.state.find_subject(S).versions] == [
        (1, VersionState.ACTIVE),
        (2, VersionState.SOFT_DELETED),
    ]


def test_an_import_may_refer_to_retired_versions() -> None:
    """An import may refer to soft-deleted versions, but not to missing ones."""
    box = Box()
    box.register(T, "t")
    box.retire(T)
    box.do(cmd.SetMode(SettingsLevel(), Mode.IMPORT, force=True))
    box.register(S, "a", to(T), schema_id=9)
    with pytest.raises(UnresolvedReference):
        box.register(S, "b", to(T, 2), schema_id=10)


def test_an_import_adds_and_removes_nothing_of_its_own() -> None:
    """Attachments are stored as sent, and a soft-deleted version of the same schema stays beside the new one."""
    box = Box()
    box.do(cmd.SetMode(SettingsLevel(), Mode.IMPORT))
    box.register(S, "a", schema_id=1, version_number=1, metadata=Metadata(properties={"owner": "me"}))
    box.register(S, "b", schema_id=2, version_number=2)
    assert box.state.namespaces[""].schema_entries[2].attachments.metadata is None
    box.retire(S, 2)
    box.register(S, "b", schema_id=2, version_number=3)
    lives = [(row.version_number, row.state) for row in box.state.find_subject(S).versions]
    assert lives == [(1, VersionState.ACTIVE), (2, VersionState.SOFT_DELETED), (3, VersionState.ACTIVE)]


# --- what the events say --------------------------------------------------------------------------------------------


def test_a_known_text_is_not_written_again() -> None:
    """The log has each text once: a second registration of a content only names it."""
    box = Box()
    box.register(S, "a")
    assert [type(event) for event in box.events] == [SubjectCreated, VersionRegistered]
    box.register(T, "a")
    registered = box.events[-1]
    assert isinstance(registered, VersionRegistered)
    assert (registered.text, registered.digests) == (None, {})


def test_the_author_and_rare_attributes_are_kept() -> None:
    """The author of a version and the data of a dialect are stored, to be returned later."""
    box = Box()
    box.do(
        RegisterSchema(S, doc("a"), labels={"l": "1"}, dialect_data={"x": {"y": 1}}, origin_uri="u", ancestor=1),
        actor="ann",
    )
    extra = queries.get_version(box.state, S, 1).attributes
    assert extra is not None
    assert (extra.created_by, extra.labels, extra.dialect_data, extra.origin_uri) == (
        "ann",
        {"l": "1"},
        {"x": {"y": 1}},
        "u",
    )
    box.do(RegisterSchema(S, doc("b")))
    assert queries.get_version(box.state, S, 2).attributes is None


def test_a_policy_comes_with_a_registration_or_not_at_all() -> None:
    """The policy in a command applies to its document and afterwards; a refused command changes neither."""
    box = Box(refuses=lambda reader, writer: reader == b"b")
    box.register(S, "a", policy=ALLOW_ANY)
    with pytest.raises(Incompatible):
        box.register(S, "b", policy=BACKWARD)
    assert queries.policy_for(box.state, S) == ALLOW_ANY
    box.register(S, "b")
    box.register(S, "c", policy=BACKWARD)
    assert queries.policy_for(box.state, S) == BACKWARD
    assert [type(event).__name__ for event in box.events] == ["SettingsChanged", "VersionRegistered"]


def test_a_policy_comes_with_a_repeated_registration() -> None:
    """A policy in a repeated registration is set, but no version is added; a read-only mode forbids it."""
    box = Box()
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"normalize": True}))
    box.register(S, "a", policy=ALLOW_ANY)
    assert box.register(S, "a", policy=BACKWARD).created is False
    assert queries.settings_for(box.state, SettingsLevel(*S)).normalize is True
    assert queries.policy_for(box.state, S) == BACKWARD
    box.do(cmd.SetMode(SettingsLevel(*S), Mode.READONLY))
    assert box.register(S, "a", policy=BACKWARD).version_number == 1
    with pytest.raises(ReadOnly):
        box.register(S, "a", policy=ALLOW_ANY)
