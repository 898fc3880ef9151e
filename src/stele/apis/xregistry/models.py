"""Entities of the registry as the dialect processes them, and other bodies."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from stele.core.model import Namespace, SchemaKind, Subject, SubjectKey
from stele.core.model import Version as RegisteredVersion
from stele.core.policy import Policy


class ErrorBody(msgspec.Struct, frozen=True):
    """Body of an error (RFC 9457, with subject and arguments).

    Attributes:
        type: URI of the error's definition.
        title: What went wrong.
        detail: Further explanation.
        subject: XID of the entity or path of the request.
        args: Values in the title.
        instance: URL of the request.
    """

    type: str
    title: str
    detail: str | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    args: dict[str, str] | UnsetType = UNSET
    instance: str | UnsetType = UNSET


Attributes = dict[str, Any]
"""Values of attributes by name, as JSON has them."""


class VersionEntity(msgspec.Struct):
    """A version of a schema.

    Attributes:
        id: Id in its schema.
        epoch: How often it was written.
        createdat: Time of its creation, UTC.
        modifiedat: Time of its last change, UTC.
        ancestorid: Id of its ancestor; its own id for a root; '' until it is known.
        attributes: Its other attributes.
        ancestor_before: Id of the ancestor before the present request.
        format_before: Value of `format` before the present request.
        registered: The version of the core with the document; None if the registry has no document.
        new_document: Document to register; empty: the version gets none; None: it keeps its document.
        is_new: Whether the present request creates it.
        is_written: Whether the present request creates or changes it.
        is_compared: Whether the policy in force was applied to it.
    """

    id: str
    epoch: int = 1
    createdat: str = ""
    modifiedat: str = ""
    ancestorid: str = ""
    attributes: Attributes = {}
    ancestor_before: str = ""
    format_before: str = ""
    registered: RegisteredVersion | None = None
    new_document: bytes | None = None
    is_new: bool = False
    is_written: bool = False
    is_compared: bool = False

    @property
    def has_document(self) -> bool:
        """Whether the registry has, or is going to have, the document."""
        return bool(self.new_document) if self.new_document is not None else self.registered is not None

    @property
    def format(self) -> str:
        """Value of `format`; '' where it has none."""
        return str(self.attributes.get("format", ""))

    @property
    def kind(self) -> SchemaKind | None:
        """Format and type of the document in the core; None without one."""
        return self.registered.kind if self.registered is not None else None


class ResourceEntity(msgspec.Struct):
    """A schema with its meta entity and its versions.

    Attributes:
        key: Key of its subject.
        group_id: Id of its group.
        id: Id in its group.
        epoch: How often its meta entity was written, or a version added or removed.
        createdat: Time of its creation, UTC.
        modifiedat: Time of the last change of its meta entity, UTC.
        attributes: Other attributes of the meta entity.
        policy: Policy in force.
        new_policy: Policy to set if `sets_policy` is set; None removes the schema's own policy.
        sets_policy: Whether the present request sets the policy.
        default_id: Id of the default version.
        is_sticky: Whether the default version was chosen.
        xref: XID of the schema that this one refers to; '' if it has versions of its own.
        versions: Versions by id.
        subject: The subject in the core, None if there is none.
        highest_generated: Highest number that was assigned as an id of a version.
        is_read_only: Whether the mode in force forbids changes.
        is_new: Whether the present request creates it.
        is_written: Whether the present request changes it.
        has_new_meta: Whether the present request changes the meta entity.
    """

    key: SubjectKey
    group_id: str
    id: str
    policy: Policy
    epoch: int = 1
    createdat: str = ""
    modifiedat: str = ""
    attributes: Attributes = {}
    new_policy: Policy | None = None
    sets_policy: bool = False
    default_id: str = ""
    is_sticky: bool = False
    xref: str = ""
    versions: dict[str, VersionEntity] = {}
    subject: Subject | None = None
    highest_generated: int = 0
    is_read_only: bool = False
    is_new: bool = False
    is_written: bool = False
    has_new_meta: bool = False

    @property
    def xid(self) -> str:
        """XID of the schema."""
        return f"/schemagroups/{self.group_id}/schemas/{self.id}"


class GroupEntity(msgspec.Struct):
    """A group of schemas.

    Attributes:
        namespace: Name of its namespace.
        id: Id of the group.
        epoch: How often it was written, or a schema added or removed.
        createdat: Time of its creation, UTC.
        modifiedat: Time of its last change, UTC.
        attributes: Its other attributes.
        place: The namespace in the core, None if there is none.
        is_new: Whether the present request creates it.
        is_written: Whether the present request changes it.
        is_changed: Whether the request changes the group itself, and not only adds or removes a schema.
        shows_attributes: Whether the caller may read more than its id.
    """

    namespace: str
    id: str
    epoch: int = 1
    createdat: str = ""
    modifiedat: str = ""
    attributes: Attributes = {}
    place: Namespace | None = None
    is_new: bool = False
    is_written: bool = False
    is_changed: bool = False
    shows_attributes: bool = True

    @property
    def xid(self) -> str:
        """XID of the group."""
        return f"/schemagroups/{self.id}"


class RegistryEntity(msgspec.Struct):
    """The registry as a whole.

    Attributes:
        epoch: How often it was written, or a group added or removed.
        createdat: Time of its creation, UTC.
        modifiedat: Time of its last change, UTC.
        attributes: Its other attributes.
        is_written: Whether the present request changes it.
        is_changed: Whether the request changes the registry itself, and not only adds or removes a group.
    """

    epoch: int = 1
    createdat: str = ""
    modifiedat: str = ""
    attributes: Attributes = {}
    is_written: bool = False
    is_changed: bool = False
