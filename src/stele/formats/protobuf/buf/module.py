"""The declarations of a module (the files that are compared together), with indexes for the lookups of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum as PyEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.descriptor_pb2 import Edition, FeatureSet, FieldDescriptorProto
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FileDescriptorProto,
        MethodDescriptorProto,
        ServiceDescriptorProto,
    )
    from google.protobuf.message import Message


_F = FieldDescriptorProto
_KIND_NAMES: Mapping[int, str] = {number: name.removeprefix("TYPE_").lower() for name, number in _F.Type.items()}
_NAMED = frozenset({_F.TYPE_MESSAGE, _F.TYPE_GROUP, _F.TYPE_ENUM})


class Cardinality(PyEnum):
    """How many values a field has, and whether an unset value differs from the default."""

    EXPLICIT = "optional with explicit presence"
    IMPLICIT = "optional with implicit presence"
    REQUIRED = "required"
    REPEATED = "repeated"
    MAP = "map"


@dataclass(eq=False, slots=True)
class FileDeclaration:
    """One file. Its declarations at any depth are indexed by their name below the package."""

    proto: FileDescriptorProto
    features: Features
    messages: dict[str, MessageDeclaration] = field(default_factory=dict)
    enums: dict[str, EnumDeclaration] = field(default_factory=dict)
    extensions: dict[str, FieldDeclaration] = field(default_factory=dict)
    services: dict[str, ServiceDeclaration] = field(default_factory=dict)

    @property
    def dialect(self) -> tuple[str, int, bool]:
        """Properties besides features that affect the meaning of a field: syntax, edition and one option."""
        return self.proto.syntax, self.proto.edition, self.proto.options.java_string_check_utf8

    def full_name(self, name: str) -> str:
        """Return a name below the package with the package."""
        return f"{self.proto.package}.{name}" if self.proto.package else name


@dataclass(eq=False, slots=True)
class MessageDeclaration:
    """One message, a map entry or the body of a group included."""

    full_name: str
    proto: DescriptorProto
    features: Features
    is_entry: bool
    fields: dict[int, FieldDeclaration] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class FieldDeclaration:
    """One field or, where owner is None, one extension.

    kind is the type as encoded: TYPE_GROUP also for a message field with delimited encoding. entry is the message of
    the entries of a map field.
    """

    full_name: str
    proto: FieldDescriptorProto
    file: FileDeclaration
    module: Module
    owner: MessageDeclaration | None
    features: Features
    kind: int
    entry: MessageDeclaration | None

    def is_same_as(self, other: FieldDeclaration) -> bool:
        """Return whether a quick comparison finds no difference. Most pairs need no other comparison.

        The default of an enum field may have changed with the enum, so enum fields are never counted as equal.
        """
        return (
            self.kind == other.kind != _F.TYPE_ENUM
            and self.proto == other.proto
            and (self.entry is None) == (other.entry is None)
            and self.features == other.features
            and self.full_name == other.full_name
            and self.oneof == other.oneof
            and self.file.dialect == other.file.dialect
        )

    @property
    def in_entry(self) -> bool:
        """Whether this is the key or the value of a map."""
        return self.owner is not None and self.owner.is_entry

    @property
    def type_name(self) -> str:
        """Full name of the field's message or enum, '' for a scalar."""
        return self.proto.type_name.removeprefix(".")

    @property
    def cardinality(self) -> Cardinality:
        """Number of values of the field; see `Cardinality`."""
        label = self.proto.label
        if label == _F.LABEL_REPEATED:
            return Cardinality.REPEATED if self.entry is None else Cardinality.MAP
        if label == _F.LABEL_REQUIRED or self.features.field_presence == FeatureSet.LEGACY_REQUIRED:
            return Cardinality.REQUIRED
        present = self.owner is None or self.kind in {_F.TYPE_MESSAGE, _F.TYPE_GROUP}
        if present or self.proto.HasField("oneof_index") or self.features.field_presence == FeatureSet.EXPLICIT:
            return Cardinality.EXPLICIT
        return Cardinality.IMPLICIT

    @property
    def oneof(self) -> str:
        """Name of the enclosing oneof, '' for none. The one that proto3 `optional` implies does not count."""
        if self.owner is None or self.proto.proto3_optional or not self.proto.HasField("oneof_index"):
            return ""
        return self.owner.proto.oneof_decl[self.proto.oneof_index].name

    @property
    def kind_text(self) -> str:
        """Type as text: the name of a message or enum, the key and value of a map, or the keyword of a scalar."""
        if self.entry is not None:
            return f"map<{', '.join(part.kind_text for _, part in sorted(self.entry.fields.items()))}>"
        name = self.type_name if self.kind in _NAMED else _KIND_NAMES[self.kind]
        return f"group {name}" if self.kind == _F.TYPE_GROUP else name

    def __str__(self) -> str:
        words = {Cardinality.REPEATED: "repeated ", Cardinality.REQUIRED: "required "}
        return f"{words.get(self.cardinality, '')}{self.kind_text} {self.proto.name} = {self.proto.number}"


@dataclass(eq=False)
class EnumDeclaration:
    """One enum."""

    full_name: str
    proto: EnumDescriptorProto
    features: Features

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each name."""
        return {value.name: value.number for value in self.proto.value}

    def names_by_number(self) -> dict[int, set[str]]:
        """Return the names of each number; several where aliases are allowed."""
        names: dict[int, set[str]] = {}
        for value in self.proto.value:
            names.setdefault(value.number, set()).add(value.name)
        return names


@dataclass(eq=False, slots=True)
class ServiceDeclaration:
    """One service; methods by name."""

    full_name: str
    proto: ServiceDescriptorProto
    methods: dict[str, MethodDescriptorProto]


class Module:
    """A set of files with their declarations.

    files maps the path under which a file is compared to its descriptor; others are files that are not compared, but
    whose enums the fields of the module may use.
    """

    def __init__(self, files: Mapping[str, FileDescriptorProto], others: Iterable[FileDescriptorProto] = ()) -> None:
        self._others = others
        self._widened: dict[tuple[str, str], bool] = {}
        self.messages: dict[str, MessageDeclaration] = {}
        self.enums: dict[str, EnumDeclaration] = {}
        self.services: dict[str, ServiceDeclaration] = {}
        self.extensions: dict[tuple[str, int], FieldDeclaration] = {}
        self.files = {path: self._index_file(proto) for path, proto in files.items()}

    @cached_property
    def packages(self) -> dict[str, list[FileDeclaration]]:
        """The files of each package."""
        packages: dict[str, list[FileDeclaration]] = {}
        for file in self.files.values():
            packages.setdefault(file.proto.package, []).append(file)
        return packages

    @cached_property
    def _foreign_enums(self) -> dict[str, EnumDeclaration]:
        return Module({proto.name: proto for proto in self._others}).enums

    def find_enum(self, full_name: str) -> EnumDeclaration:
        """Return an enum of the module or of the other files. It exists for every enum that a field uses."""
        return self.enums.get(full_name) or self._foreign_enums[full_name]

    def has_enum_values_of(self, full_name: str, other: Module, other_name: str) -> bool:
        """Return whether an enum has all values of an enum of another module, each with its number."""
        key = full_name, other_name
        if key not in self._widened:
            now, was = self.find_enum(full_name), other.find_enum(other_name)
            self._widened[key] = now.numbers.items() >= was.numbers.items()
        return self._widened[key]

    # --- reading the descriptors ------------------------------------------------------------------------------------

    def _index_file(self, proto: FileDescriptorProto) -> FileDeclaration:
        features = default_features(proto)
        if proto.options.HasField("features"):
            features = override_features(features, proto.options.features)
        file = FileDeclaration(proto, features)
        self._index_types(file, "", features, proto.message_type, proto.enum_type)
        self._index_extensions(file, "", proto.extension)
        for service in proto.service:
            declaration = ServiceDeclaration(
                file.full_name(service.name), service, {method.name: method for method in service.method}
            )
            file.services[service.name] = self.services[declaration.full_name] = declaration
        return file

    def _index_types(
        self,
        file: FileDeclaration,
        scope: str,
        around: Features,
        messages: Iterable[DescriptorProto],
        enums: Iterable[EnumDescriptorProto],
    ) -> None:
        """Index the types of a scope (a name with a trailing dot, or ''). The compiler limits how deep they nest."""
        for proto in messages:
            options = proto.options
            features = override_features(around, options.features) if options.HasField("features") else around
            name = scope + proto.name
            message = MessageDeclaration(file.full_name(name), proto, features, options.map_entry)
            file.messages[name] = self.messages[message.full_name] = message
            self._index_types(file, f"{name}.", features, proto.nested_type, proto.enum_type)
            for item in proto.field:
                full_name = f"{message.full_name}.{item.name}"
                message.fields[item.number] = self._build_field(file, full_name, item, message)
            self._index_extensions(file, f"{name}.", proto.extension)
        for enum in enums:
            features = override_features(around, enum.options.features) if enum.options.HasField("features") else around
            declaration = EnumDeclaration(file.full_name(scope + enum.name), enum, features)
            file.enums[scope + enum.name] = self.enums[declaration.full_name] = declaration

    def _index_extensions(self, file: FileDeclaration, scope: str, extensions: Sequence[FieldDescriptorProto]) -> None:
        for item in extensions:
            extension = self._build_field(file, file.full_name(scope + item.name), item, None)
            file.extensions[scope + item.name] = self.extensions[item.extendee, item.number] = extension

    def _build_field(
        self, file: FileDeclaration, full_name: str, proto: FieldDescriptorProto, owner: MessageDeclaration | None
    ) -> FieldDeclaration:
        features = file.features
        if proto.options.HasField("features"):
            features = override_features(features, proto.options.features)
        kind = proto.type
        entry = None
        if kind == _F.TYPE_MESSAGE:
            if proto.label == _F.LABEL_REPEATED and owner is not None:
                entry = self._find_map_entry(proto, owner)
            if features.message_encoding == FeatureSet.DELIMITED and entry is None and not (owner and owner.is_entry):
                kind = _F.TYPE_GROUP
        return FieldDeclaration(full_name, proto, file, self, owner, features, kind, entry)

    def _find_map_entry(self, proto: FieldDescriptorProto, owner: MessageDeclaration) -> MessageDeclaration | None:
        """Return the entry of a map field, which is always declared in the same message."""
        message = self.messages.get(proto.type_name.removeprefix("."))
        if message is None or not message.is_entry or not message.full_name.startswith(f"{owner.full_name}."):
            return None
        return message


CPP_VIEW, CPP_CORD, CPP_STRING = 1, 2, 3
"""Values of `pb.CppFeatures.StringType`."""
JAVA_DEFAULT, JAVA_VERIFY = 1, 2
"""Values of `pb.JavaFeatures.Utf8Validation`."""


class Features(NamedTuple):
    """The features that the rules use, as numbers of their enums."""

    field_presence: int
    enum_type: int
    utf8_validation: int
    message_encoding: int
    json_format: int
    cpp_string_type: int
    java_utf8_validation: int


_PROTO2 = Features(
    FeatureSet.EXPLICIT,
    FeatureSet.CLOSED,
    FeatureSet.NONE,
    FeatureSet.LENGTH_PREFIXED,
    FeatureSet.LEGACY_BEST_EFFORT,
    CPP_STRING,
    JAVA_DEFAULT,
)
_PROTO3 = _PROTO2._replace(
    field_presence=FeatureSet.IMPLICIT,
    enum_type=FeatureSet.OPEN,
    utf8_validation=FeatureSet.VERIFY,
    json_format=FeatureSet.ALLOW,
)
_EDITION_2023 = _PROTO3._replace(field_presence=FeatureSet.EXPLICIT)
_EDITION_2024 = _EDITION_2023._replace(cpp_string_type=CPP_VIEW)

# Numbers of the fields of FeatureSet, of the languages' extensions of it, and of the one feature needed from those.
_OWN = {1: "field_presence", 2: "enum_type", 4: "utf8_validation", 5: "message_encoding", 6: "json_format"}
_LANGUAGES = {1000: (2, "cpp_string_type"), 1001: (2, "java_utf8_validation")}


def default_features(file: FileDescriptorProto) -> Features:
    """Return the features of a file that sets none."""
    if file.syntax == "editions":
        return _EDITION_2024 if file.edition >= Edition.EDITION_2024 else _EDITION_2023
    return _PROTO3 if file.syntax == "proto3" else _PROTO2


def override_features(around: Features, features: Message) -> Features:
    """Return the features of a declaration that sets some of them. `features` is its FeatureSet.

    The FeatureSet is read field by field, because other loaded code decides whether the language extensions are known.
    """
    changes: dict[str, int] = {}
    for number, value in _read_fields(features.SerializeToString()):
        if number in _OWN:
            changes[_OWN[number]] = value
        elif number in _LANGUAGES:
            wanted, name = _LANGUAGES[number]
            for inner, choice in _read_fields(value):
                if inner == wanted:
                    changes[name] = choice
    return around._replace(**changes)


def _read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield numbers and values of the fields of a serialized message."""
    fields = UnknownFieldSet(Empty.FromString(data))
    for index in range(len(fields)):
        yield fields[index].field_number, fields[index].data
