"""Entities of the registry as the dialect works with them, and bodies that are no entity."""

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
        detail: What else there is to say.
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
        ancestorid: Id of its ancestor; its own where it is a root; '' until that is known.
        attributes: What else describes it.
        ancestor_before: Id of the ancestor before the present request.
        format_before: Value of `format` before the present request.
        registered: The version of the core that has the document; None where the registry has none.
        new_document: Document to be registered; empty: the version is to have none; None: it keeps what it has.
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
        """Whether the document is, or is to be, in the registry."""
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
        key: The subject that it is.
        group_id: Id of its group.
        id: Id in its group.
        epoch: How often its meta entity was written, or a version added or removed.
        createdat: Time of its creation, UTC.
        modifiedat: Time of the last change of its meta entity, UTC.
        attributes: What else describes the meta entity.
        policy: Policy in force.
        new_policy: Policy to be set; the one in force stays where `sets_policy` is not set; None removes the own one.
        sets_policy: Whether the present request sets the policy.
        default_id: Id of the default version.
        is_sticky: Whether the default version was chosen.
        xref: XID of the schema that this one stands for; '' where it is one of its own.
        versions: Versions by id.
        subject: The subject in the core, None where there is none.
        highest_generated: Highest number that was given out as an id of a version.
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
        namespace: Name of the namespace that it is.
        id: Id of the group.
        epoch: How often it was written, or a schema added or removed.
        createdat: Time of its creation, UTC.
        modifiedat: Time of its last change, UTC.
        attributes: What else describes it.
        place: The namespace in the core, None where there is none.
        is_new: Whether the present request creates it.
        is_written: Whether the present request changes it.
        is_changed: Whether it is named in the request, and not only gets or loses a schema.
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
        attributes: What else describes it.
        is_written: Whether the present request changes it.
        is_changed: Whether it is named in the request, and not only gets or loses a group.
    """

    epoch: int = 1
    createdat: str = ""
    modifiedat: str = ""
    attributes: Attributes = {}
    is_written: bool = False
    is_changed: bool = False
