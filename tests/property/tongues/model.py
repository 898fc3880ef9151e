"""The registry as the reference describes it: plain objects and the rules, nothing of the code that is tested.

Entities, states, numbers and conflicts after the one domain model of the dialects: spaces hold subjects, subjects hold
versions in lanes; versions are live, retired or gone; every family of ids is counted on its own. What a dialect does
differently is an argument here.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.tongues.pool import READS, interpreted
from tests.property.tongues.things import BACKWARD, Creation, Key, Lane, Policy, Row, Schema, Space, Subject


class Refused(Exception):
    """The rules refuse; kind is the domain error, which every dialect has an answer for."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Learned:
    """A name drawn by lot: equal to whatever is told first, and to nothing else from then on."""

    def __init__(self, learned: dict[int, str], uid: int) -> None:
        self._learned = learned
        self._uid = uid

    def __eq__(self, told: object) -> bool:
        fresh = self._uid not in self._learned and told not in self._learned.values()
        return isinstance(told, str) and (self._learned.setdefault(self._uid, told) if fresh else self._name) == told

    __hash__ = None  # type: ignore[assignment]  # what is still to be learned can be no key

    def __repr__(self) -> str:
        return repr(self._name)

    @property
    def _name(self) -> str:
        return self._learned.get(self._uid, "")


class Model:
    """All there is, and the rules."""

    def __init__(self) -> None:
        self.spaces: dict[str, Space] = {"": Space(), "t": Space()}
        self.policies: dict[tuple[str | None, str | None], Policy | None] = {}
        self.notes: dict[tuple[str | None, str | None], set[str]] = {}
        """Dialects that keep something of their own beside a level's policy."""
        self.closed: set[Key] = set()
        """Subjects that are read-only, there or not."""
        self.bindings: dict[tuple[str, str], tuple[str, int]] = {}
        """By space and name of a topic: a subject and the version the topic is bound to."""
        self.learned: dict[int, str] = {}
        """Names that are drawn by lot, by uid of the version: what was told first holds."""
        self.count = 0
        self.serial = 0

    # --- finding ----------------------------------------------------------------------------------------------------

    def names(self) -> list[Key]:
        """Every subject, sorted."""
        return sorted(Key(space, name) for space, place in self.spaces.items() for name in place.subjects)

    def subject(self, key: Key) -> Subject | None:
        """A subject, if it is there."""
        return self.spaces[key.space].subjects.get(key.name)

    def present(self, key: Key) -> Subject:
        """A subject that must be there."""
        found = self.subject(key)
        if found is None:
            raise Refused("SubjectNotFound")
        return found

    def language(self, key: Key) -> str:
        """The format of the newest live version, '' for none."""
        live = self.live(key)
        return live[-1].lane.format if live else ""

    def live(self, key: Key) -> list[Row]:
        """Live versions of a subject, of none where there is no such subject."""
        subject = self.subject(key)
        return subject.live if subject is not None else []

    def holders(self, space: str, gid: int) -> list[tuple[str, Row]]:
        """Versions with a gid, by subject and number."""
        subjects = sorted(self.spaces[space].subjects.items())
        return [(name, row) for name, subject in subjects for row in subject.rows if row.gid == gid]

    def policy(self, key: Key) -> Policy:
        """The policy in force: the subject's own, the one it was made with, its space's, the registry's."""
        subject = self.subject(key)
        made = subject.made.policy if subject is not None else None
        chain = (self.policies.get(key), made, self.policies.get((key.space, None)), self.policies.get((None, None)))
        return next((policy for policy in chain if policy is not None), BACKWARD)

    def writable(self, key: Key) -> None:
        """Refuse where a mode forbids writes."""
        if key in self.closed:
            raise Refused("ReadOnly")

    # --- judging ----------------------------------------------------------------------------------------------------

    def judge(self, key: Key, lane: Lane, meaning: str, policy: Policy) -> None:
        """Refuse what the policy does not let in."""
        subject = self.subject(key)
        rows = subject.live[::-1] if subject is not None else []
        if policy.reject:
            raise Refused("Incompatible")
        one_type = subject is not None and subject.made.scope == "one type" and lane.type
        if one_type and any(row.lane.type not in {"", lane.type} for row in rows):
            raise Refused("Incompatible")
        if policy.kind == "allow":
            return
        if policy.kind == "deny":
            if rows:
                raise Refused("Incompatible")
            return
        if subject is not None and subject.made.scope == "lane":
            rows = [row for row in rows if row.lane == lane]
        for row, backward, forward in policy.compared(rows):
            if not backward and not forward:
                continue
            if row.lane.format != lane.format:
                raise Refused("Incompatible")
            if lane.format == "opaque":
                raise Refused("Incomparable")
            theirs = row.draft.meaning
            if (backward and theirs not in READS[meaning]) or (forward and meaning not in READS[theirs]):
                raise Refused("Incompatible")

    def accepts(self, key: Key, lane: Lane, meaning: str, policy: Policy) -> bool:
        """Whether the policy lets a schema in."""
        try:
            self.judge(key, lane, meaning, policy)
        except Refused as refused:
            if refused.kind == "Incompatible":
                return False
            raise
        return True

    # --- registering ------------------------------------------------------------------------------------------------

    def register(
        self,
        key: Key,
        lane: Lane,
        text: bytes,
        made: Creation | None,
        *,
        policy: Policy | None = None,
        force: bool = False,
        after: int | None = None,
        again: bool = False,
        by: str = "",
        media: str = "",
    ) -> Row:
        """Register what is not there yet; made None takes no new subject, after is the latest number there must be.

        again registers what may be there all the same.
        """
        self.writable(key)
        subject = self.subject(key)
        if subject is None and made is None:
            raise Refused("SubjectNotFound")
        newest = subject.latest if subject is not None else None
        if after is not None and after != (newest.ordinal if newest else 0):
            raise Refused("PreconditionFailed")
        gate = subject.made if subject is not None else made
        if gate is not None and gate.format not in {"", lane.format}:
            raise Refused("FormatMismatch")
        if gate is not None and gate.variety not in {"", lane.variety}:
            raise Refused("FormatMismatch")
        draft = interpreted(text, lane.format)
        assert draft is not None
        in_force = self._in_force(key, made)
        if not force:
            self.judge(key, lane, draft.meaning, policy if policy is not None else in_force)
        if subject is None:
            assert made is not None
            subject = self._created(key, made)
        if policy is not None and policy != in_force:
            self.policies[key] = policy
        in_force = policy if policy is not None else in_force
        row = self._added(key, subject, lane, Schema(text, lane.format), in_force, again=again)
        row.by, row.media = by, media
        return row

    def demand(self, key: Key, policy: Policy | None) -> None:
        """Make a policy that came with a schema that is there already the subject's own."""
        if policy is not None and policy != self.policy(key):
            self.writable(key)
            self.policies[key] = policy

    def _in_force(self, key: Key, made: Creation | None) -> Policy:
        if self.subject(key) is None and made is not None and made.policy is not None:
            return self.policies.get(key) or made.policy
        return self.policy(key)

    def _created(self, key: Key, made: Creation) -> Subject:
        self.serial += 1
        subject = self.spaces[key.space].subjects[key.name] = Subject(made, self.serial)
        return subject

    def _added(self, key: Key, subject: Subject, lane: Lane, schema: Schema, policy: Policy, *, again: bool) -> Row:
        space = self.spaces[key.space]
        known = next((row for _, row in self.everywhere(key.space) if row.schema == schema), None)
        gid = known.gid if known is not None else space.gid_high + 1
        space.gid_high = max(gid, space.gid_high)
        self.count += 1
        # Lane numbers, like all numbers, go on after the highest there was.
        number = subject.lanes.get(lane, 0) + 1
        row = Row(subject.high + 1, lane, number, schema, gid, policy, self.count)
        subject.high, subject.lanes[lane] = row.ordinal, number
        if (
            subject.made.reuses and not again
        ):  # A soft-deleted twin makes room, unless data may have been written with it.
            encoded = [id(known) for known, _ in subject.encodings]
            subject.rows = [old for old in subject.rows if old.live or old.gid != gid or id(old) in encoded]
        subject.rows.append(row)
        return row

    def everywhere(self, space: str) -> Iterator[tuple[str, Row]]:
        """Every version of a space with the name of its subject, those of closed incarnations too."""
        place = self.spaces[space]
        yield from ((name, row) for name, subject in place.subjects.items() for row in subject.rows)
        yield from ((name, row) for name, subject in place.past for row in subject.rows)

    def create(self, key: Key, made: Creation, *, kept: str = "") -> Subject:
        """Create a subject without versions; a policy that was waiting for it gives way to the one it brings."""
        if self.subject(key) is not None:
            raise Refused("AlreadyExists")
        self.writable(key)
        subject = self._created(key, made)
        subject.kept |= {kept} - {""}
        if made.policy is not None and self.policies.get(key) is not None:
            self.policies[key] = None  # What was set still shows that there are settings.
        return subject

    # --- deleting ---------------------------------------------------------------------------------------------------

    def retire(self, key: Key, ordinal: int | None) -> Row:
        """Delete a version softly; None is the latest."""
        _, row = self._row(key, ordinal)
        if not row.live:
            raise Refused("AlreadyRetired")
        self.writable(key)
        row.live = False
        return row

    def purge(self, key: Key, ordinal: int | None) -> Row:
        """Delete a retired version for good; a subject that has none left is gone."""
        subject, row = self._row(key, ordinal)
        if row.live:
            raise Refused("NotRetired")
        self.writable(key)
        self._purged(key, subject, [row])
        return row

    def _row(self, key: Key, ordinal: int | None) -> tuple[Subject, Row]:
        subject = self.present(key)
        if not subject.rows:
            raise Refused("SubjectNotFound")
        row = subject.latest if ordinal is None else subject.row(ordinal)
        if row is None:
            raise Refused("VersionNotFound")
        return subject, row

    def _purged(self, key: Key, subject: Subject, going: list[Row]) -> None:
        numbers = {row.ordinal for row in going}
        subject.rows = [row for row in subject.rows if row.ordinal not in numbers]
        self._unbind(key, numbers if subject.rows else None)
        if not subject.rows:
            self._forget(key)
        elif subject.made.reuses:
            subject.high = subject.rows[-1].ordinal
            subject.lanes = {}
            for row in subject.rows:
                subject.lanes[row.lane] = max(subject.lanes.get(row.lane, 0), row.number)

    def _forget(self, key: Key) -> None:
        del self.spaces[key.space].subjects[key.name]
        self.policies.pop(key, None)
        self.notes.pop(key, None)
        self.closed.discard(key)

    def retire_all(self, key: Key) -> list[Row]:
        """Delete all live versions softly."""
        subject = self.present(key)
        if not subject.rows:
            raise Refused("SubjectNotFound")
        going = subject.live
        if not going:
            raise Refused("AllRetired")
        self.writable(key)
        for row in going:
            row.live = False
        return going

    def purge_all(self, key: Key) -> list[Row]:
        """Delete a subject for good, all versions of which are retired."""
        subject = self.present(key)
        if not subject.rows:
            raise Refused("SubjectNotFound")
        if subject.live:
            raise Refused("SubjectNotRetired")
        self.writable(key)
        going = subject.rows
        self._purged(key, subject, going)
        return going

    def close(self, key: Key) -> None:
        """End an incarnation: the next one starts at 1, what was written stays readable by gid."""
        subject = self.present(key)
        self.writable(key)
        self.spaces[key.space].past.append((key.name, subject))
        self._unbind(key, None)
        self._forget(key)

    def _unbind(self, key: Key, numbers: set[int] | None) -> None:
        """End the bindings to a subject, or to versions of it."""
        for topic, (name, number) in list(self.bindings.items()):
            if (topic[0], name) == key and (numbers is None or number in numbers):
                del self.bindings[topic]

    def bound(self, space: str, topic: str) -> Row | None:
        """The version a topic is bound to: the newest one, where that was deleted."""
        name, number = self.bindings[space, topic]
        subject = self.spaces[space].subjects.get(name)
        row = subject.row(number) if subject is not None else None
        return row if row is not None and row.live else subject.latest if subject is not None else None
