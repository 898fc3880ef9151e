"""The registry as the reference describes it: plain objects and rules, without any code of the product.

Entities, states, numbers and conflicts follow the domain model that all dialects share. Namespaces contain subjects,
and subjects contain versions of several kinds. Versions are active, soft-deleted or purged. Every family of ids is
counted separately. Differences between dialects are arguments here.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.dialect_model.model_types import (
    BACKWARD,
    Creation,
    Key,
    KindOfSchema,
    NamespaceModel,
    Policy,
    Row,
    Schema,
    Subject,
)
from tests.property.dialect_model.schemas import READS, interpret_bytes


class Refused(Exception):
    """Raised when the rules refuse. kind is the domain error; every dialect has an answer for it."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Learned:
    """A random name: equal to the first name it is compared with, and from then on to no other."""

    def __init__(self, learned: dict[int, str], uid: int) -> None:
        self._learned = learned
        self._uid = uid

    def __eq__(self, name: object) -> bool:
        fresh = self._uid not in self._learned and name not in self._learned.values()
        return isinstance(name, str) and (self._learned.setdefault(self._uid, name) if fresh else self._name) == name

    __hash__ = None  # type: ignore[assignment]  # what is still to be learned can be no key

    def __repr__(self) -> str:
        return repr(self._name)

    @property
    def _name(self) -> str:
        return self._learned.get(self._uid, "")


class Model:
    """The state of the registry and its rules."""

    def __init__(self) -> None:
        self.namespaces: dict[str, NamespaceModel] = {"": NamespaceModel(), "t": NamespaceModel()}
        self.policies: dict[tuple[str | None, str | None], Policy | None] = {}
        self.notes: dict[tuple[str | None, str | None], set[str]] = {}
        """Dialects that store something of their own beside a level's policy."""
        self.closed: set[Key] = set()
        """Subjects that are read-only, existing or not."""
        self.bindings: dict[tuple[str, str], tuple[str, int]] = {}
        """The subject and the version that a topic is bound to, by namespace and name of the topic."""
        self.learned: dict[int, str] = {}
        """Random names by uid of the version; the first name that was read is kept."""
        self.count = 0
        self.serial = 0

    # --- finding ----------------------------------------------------------------------------------------------------

    def names(self) -> list[Key]:
        """Return the keys of all subjects, sorted."""
        return sorted(Key(namespace, name) for namespace, place in self.namespaces.items() for name in place.subjects)

    def subject(self, key: Key) -> Subject | None:
        """Return a subject, None if it does not exist."""
        return self.namespaces[key.namespace].subjects.get(key.name)

    def present(self, key: Key) -> Subject:
        """Return a subject. Raises `Refused` if it does not exist."""
        subject = self.subject(key)
        if subject is None:
            raise Refused("SubjectNotFound")
        return subject

    def language(self, key: Key) -> str:
        """Return the format of the newest active version, '' if there is none."""
        live = self.live(key)
        return live[-1].schema_kind.format if live else ""

    def live(self, key: Key) -> list[Row]:
        """Return the active versions of a subject, none if it does not exist."""
        subject = self.subject(key)
        return subject.live if subject is not None else []

    def holders(self, namespace: str, schema_id: int) -> list[tuple[str, Row]]:
        """Return the versions with a schema id, by subject and number."""
        subjects = sorted(self.namespaces[namespace].subjects.items())
        return [(name, row) for name, subject in subjects for row in subject.rows if row.schema_id == schema_id]

    def policy(self, key: Key) -> Policy:
        """Return the effective policy: the subject's own, its initial one, its namespace's, the registry's."""
        subject = self.subject(key)
        initial_policy = subject.made.policy if subject is not None else None
        chain = (
            self.policies.get(key),
            initial_policy,
            self.policies.get((key.namespace, None)),
            self.policies.get((None, None)),
        )
        return next((policy for policy in chain if policy is not None), BACKWARD)

    def writable(self, key: Key) -> None:
        """Raise `Refused` if a mode forbids writes."""
        if key in self.closed:
            raise Refused("ReadOnly")

    # --- judging ----------------------------------------------------------------------------------------------------

    def judge(self, key: Key, schema_kind: KindOfSchema, meaning: str, policy: Policy) -> None:
        """Raise `Refused` if the policy does not accept the schema."""
        subject = self.subject(key)
        rows = subject.live[::-1] if subject is not None else []
        if policy.reject:
            raise Refused("Incompatible")
        one_type = subject is not None and subject.made.scope == "one type" and schema_kind.type
        if one_type and any(row.schema_kind.type not in {"", schema_kind.type} for row in rows):
            raise Refused("Incompatible")
        if policy.kind == "allow":
            return
        if policy.kind == "deny":
            if rows:
                raise Refused("Incompatible")
            return
        if subject is not None and subject.made.scope == "lane":
            rows = [row for row in rows if row.schema_kind == schema_kind]
        for row, backward, forward in policy.list_compared(rows):
            if not backward and not forward:
                continue
            if row.schema_kind.format != schema_kind.format:
                raise Refused("Incompatible")
            if schema_kind.format == "opaque":
                raise Refused("Incomparable")
            theirs = row.draft.meaning
            if (backward and theirs not in READS[meaning]) or (forward and meaning not in READS[theirs]):
                raise Refused("Incompatible")

    def accepts(self, key: Key, schema_kind: KindOfSchema, meaning: str, policy: Policy) -> bool:
        """Return whether the policy accepts a schema."""
        try:
            self.judge(key, schema_kind, meaning, policy)
        except Refused as refused:
            if refused.kind == "Incompatible":
                return False
            raise
        return True

    # --- registering ------------------------------------------------------------------------------------------------

    def register(
        self,
        key: Key,
        schema_kind: KindOfSchema,
        text: bytes,
        creation: Creation | None,
        *,
        policy: Policy | None = None,
        force: bool = False,
        after: int | None = None,
        again: bool = False,
        by: str = "",
        media: str = "",
    ) -> Row:
        """Add a new version with a schema. Callers test before whether the subject has it.

        With creation None no subject is created. after is the version number that must be the latest. again keeps a
        soft-deleted version of the same schema.
        """
        self.writable(key)
        subject = self.subject(key)
        if subject is None and creation is None:
            raise Refused("SubjectNotFound")
        newest = subject.latest if subject is not None else None
        if after is not None and after != (newest.version_number if newest else 0):
            raise Refused("PreconditionFailed")
        gate = subject.made if subject is not None else creation
        if gate is not None and gate.format not in {"", schema_kind.format}:
            raise Refused("FormatMismatch")
        if gate is not None and gate.custom_format not in {"", schema_kind.custom_format}:
            raise Refused("FormatMismatch")
        draft = interpret_bytes(text, schema_kind.format)
        assert draft is not None
        in_force = self._in_force(key, creation)
        if not force:
            self.judge(key, schema_kind, draft.meaning, policy if policy is not None else in_force)
        if subject is None:
            assert creation is not None
            subject = self._create_subject(key, creation)
        if policy is not None and policy != in_force:
            self.policies[key] = policy
        in_force = policy if policy is not None else in_force
        row = self._add_schema(key, subject, schema_kind, Schema(text, schema_kind.format), in_force, again=again)
        row.by, row.media = by, media
        return row

    def demand(self, key: Key, policy: Policy | None) -> None:
        """Store a policy that was sent with an existing schema as the subject's own."""
        if policy is not None and policy != self.policy(key):
            self.writable(key)
            self.policies[key] = policy

    def _in_force(self, key: Key, creation: Creation | None) -> Policy:
        if self.subject(key) is None and creation is not None and creation.policy is not None:
            return self.policies.get(key) or creation.policy
        return self.policy(key)

    def _create_subject(self, key: Key, creation: Creation) -> Subject:
        self.serial += 1
        namespace = self.namespaces[key.namespace]
        subject = namespace.subjects[key.name] = Subject(creation, self.serial, high=namespace.used.get(key.name, 0))
        return subject

    def _add_schema(
        self, key: Key, subject: Subject, schema_kind: KindOfSchema, schema: Schema, policy: Policy, *, again: bool
    ) -> Row:
        namespace = self.namespaces[key.namespace]
        known = next((row for _, row in self.everywhere(key.namespace) if row.schema == schema), None)
        schema_id = known.schema_id if known is not None else namespace.highest_schema_id + 1
        namespace.highest_schema_id = max(schema_id, namespace.highest_schema_id)
        self.count += 1
        # Numbers of a kind, like all numbers, go on after the highest; the first kind has the numbers of versions.
        number = subject.schema_kinds.get(schema_kind, 0 if subject.schema_kinds else subject.high) + 1
        row = Row(subject.high + 1, schema_kind, number, schema, schema_id, policy, self.count)
        subject.high, subject.schema_kinds[schema_kind] = row.version_number, number
        if (
            subject.made.reuses and not again
        ):  # A soft-deleted version of the same schema is removed if it has no encoding.
            encoded = [id(known) for known, _ in subject.encodings]
            subject.rows = [old for old in subject.rows if old.live or old.schema_id != schema_id or id(old) in encoded]
        subject.rows.append(row)
        return row

    def everywhere(self, namespace: str) -> Iterator[tuple[str, Row]]:
        """Yield every version of a namespace with the name of its subject, including closed incarnations."""
        place = self.namespaces[namespace]
        yield from ((name, row) for name, subject in place.subjects.items() for row in subject.rows)
        yield from ((name, row) for name, subject in place.past for row in subject.rows)

    def create(self, key: Key, creation: Creation, *, dialect: str = "") -> Subject:
        """Create a subject without versions. Its initial policy replaces one that was set before it existed."""
        if self.subject(key) is not None:
            raise Refused("AlreadyExists")
        self.writable(key)
        subject = self._create_subject(key, creation)
        subject.kept |= {dialect} - {""}
        if creation.policy is not None and self.policies.get(key) is not None:
            self.policies[key] = None  # The key stays: the subject still has settings.
        return subject

    # --- deleting ---------------------------------------------------------------------------------------------------

    def retire(self, key: Key, version_number: int | None) -> Row:
        """Soft-delete a version; None is the latest."""
        _, row = self._row(key, version_number)
        if not row.live:
            raise Refused("AlreadyRetired")
        self.writable(key)
        row.live = False
        return row

    def purge(self, key: Key, version_number: int | None) -> Row:
        """Purge a soft-deleted version. A subject without any version left is deleted."""
        subject, row = self._row(key, version_number)
        if row.live:
            raise Refused("NotRetired")
        self.writable(key)
        self._purge_rows(key, subject, [row])
        return row

    def _row(self, key: Key, version_number: int | None) -> tuple[Subject, Row]:
        subject = self.present(key)
        if not subject.rows:
            raise Refused("SubjectNotFound")
        row = subject.latest if version_number is None else subject.row(version_number)
        if row is None:
            raise Refused("VersionNotFound")
        return subject, row

    def _purge_rows(self, key: Key, subject: Subject, going: list[Row]) -> None:
        numbers = {row.version_number for row in going}
        subject.rows = [row for row in subject.rows if row.version_number not in numbers]
        self._unbind(key, numbers if subject.rows else None)
        if not subject.rows:
            self._forget(key)
        elif subject.made.reuses:
            subject.high = subject.rows[-1].version_number
            subject.schema_kinds = {}
            for row in subject.rows:
                subject.schema_kinds[row.schema_kind] = max(subject.schema_kinds.get(row.schema_kind, 0), row.number)

    def _forget(self, key: Key) -> None:
        namespace = self.namespaces[key.namespace]
        subject = namespace.subjects.pop(key.name)
        if not subject.made.restarts or key.name in namespace.used:
            namespace.used[key.name] = subject.high
        self.policies.pop(key, None)
        self.notes.pop(key, None)
        self.closed.discard(key)

    def retire_all(self, key: Key) -> list[Row]:
        """Soft-delete all active versions."""
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
        """Purge a subject whose versions are all soft-deleted."""
        subject = self.present(key)
        if not subject.rows:
            raise Refused("SubjectNotFound")
        if subject.live:
            raise Refused("SubjectNotRetired")
        self.writable(key)
        going = subject.rows
        self._purge_rows(key, subject, going)
        return going

    def close(self, key: Key) -> None:
        """End an incarnation. The next one starts at 1; its versions stay readable by schema id."""
        subject = self.present(key)
        self.writable(key)
        self.namespaces[key.namespace].past.append((key.name, subject))
        self._unbind(key, None)
        self._forget(key)

    def _unbind(self, key: Key, numbers: set[int] | None) -> None:
        """Delete the bindings to a subject, or to versions of it."""
        for topic, (name, number) in list(self.bindings.items()):
            if (topic[0], name) == key and (numbers is None or number in numbers):
                del self.bindings[topic]

    def bound(self, namespace: str, topic: str) -> Row | None:
        """Return the version that a topic is bound to; the newest one if that was deleted."""
        name, number = self.bindings[namespace, topic]
        subject = self.namespaces[namespace].subjects.get(name)
        row = subject.row(number) if subject is not None else None
        return row if row is not None and row.live else subject.latest if subject is not None else None
