"""What a Protobuf file says beside the shape of its data: the losses of `neutral`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from stele.formats.conversion.model import Loss, NamedType
from stele.formats.protobuf.options import list_options
from stele.formats.protobuf.printer import default_json_name

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto
    from google.protobuf.message import Message

    from stele.formats.protobuf.model import ProtobufSchema

_MODELLED_OPTIONS: Final = frozenset(
    {"map_entry", "allow_alias", "features.field_presence", "features.message_encoding"}
)
"""Options whose meaning the model has, or has lost under another word."""
_CLOSED: Final = frozenset({"features.enum_type"})
_META: Final = "(confluent.field_meta)"


class LossCollector:
    """Collects losses."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._schema = schema
        self.losses: list[Loss] = []

    def add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        """One loss more."""
        self.losses.append(Loss(path, what, why, data))

    def add_message_losses(self, proto: DescriptorProto, path: str) -> None:
        """Options, reserved numbers and names, extension ranges, and extensions declared inside."""
        at = path.rstrip(".")
        self._add_option_losses(proto.options, at, f"message {proto.name}")
        for oneof in proto.oneof_decl:
            self._add_option_losses(oneof.options, at, f"oneof {oneof.name}")
        if proto.reserved_range or proto.reserved_name:
            self.add_loss(at, "RESERVED", f"Nothing keeps the reserved numbers and names of {proto.name} from use.")
        if proto.extension_range:
            why = f"{proto.name} may hold extensions that other files declare; they have no place."
            self.add_loss(at, "EXTENSION", why, data=True)

    def add_field_losses(
        self, proto: FieldDescriptorProto, field: FieldDescriptor, path: str
    ) -> tuple[str, dict[str, str]]:
        """Options and the JSON name; documentation and parameters of Confluent's field metadata."""
        doc, params = "", {}
        if field.json_name != default_json_name(field.name):
            self.add_loss(path, "NAME", f"In JSON the field is {field.json_name!r}; the model knows its name only.")
        meta = self._field_meta(proto.options)
        if meta is not None:
            doc, params = meta.doc, dict(meta.params)
        known = meta is None or not (meta.tags or meta.rules or params.keys() - {"precision", "scale"})
        self._add_option_losses(proto.options, path, f"field {field.name}", but=frozenset({_META} if known else ()))
        return doc, params

    def add_enum_losses(self, proto: EnumDescriptorProto, path: str, *, is_open: bool) -> None:
        """Options, reserved numbers and names, and numbers without a name."""
        self._add_option_losses(proto.options, path, f"enum {proto.name}", but=_CLOSED)
        for value in proto.value:
            self._add_option_losses(value.options, path, f"enum value {value.name}")
        if proto.reserved_range or proto.reserved_name:
            self.add_loss(path, "RESERVED", f"Nothing keeps the reserved numbers and names of {proto.name} from use.")
        if is_open:
            why = f"{proto.name} is open: a number that has no name here is a value, and has no place in the model."
            self.add_loss(path, "OPEN_ENUM", why, data=True)

    def add_file_losses(self, types: Mapping[str, NamedType]) -> None:
        """What belongs to no message: file options, services, extensions, and types that are not reached."""
        file = self._schema.proto
        self._add_option_losses(file.options, "", "file", but=_CLOSED)
        for service in file.service:
            self.add_loss("", "SERVICE", f"The service {service.name} and its methods are no part of any data.")
        if file.extension:
            few = ", ".join(extension.name for extension in file.extension[:5])
            self.add_loss("", "EXTENSION", f"The extensions that the file declares ({few}) are left out.")
        start = f"{file.package}." if file.package else ""
        used = {name.removeprefix(start).partition(".")[0] for name in types if name.startswith(start)}
        names = [*(item.name for item in file.message_type), *(item.name for item in file.enum_type)]
        for name in names:
            if name not in used:
                self.add_loss("", "TYPE", f"{self._schema.full_name(name)} is not used by the chosen message.")

    def _add_option_losses(self, options: Message, path: str, owner: str, but: frozenset[str] = frozenset()) -> None:
        found = list_options(options, self._schema, by_name=True, place=lambda _: ())
        names = dict.fromkeys(
            option.name for option in found if option.name not in _MODELLED_OPTIONS and option.name not in but
        )
        if names:
            self.add_loss(path, "OPTION", f"Options of the {owner} are left out: {', '.join(names)}.")

    def _field_meta(self, options: Message) -> Any:
        """Confluent's metadata of a field, read with the schema's own declarations; None when there is none."""
        if not options.ByteSize():
            return None
        try:
            extension = self._schema.pool.FindExtensionByName(_META.strip("()"))
            kind = self._schema.class_of(self._schema.pool.FindMessageTypeByName(options.DESCRIPTOR.full_name))
        except KeyError:
            return None
        meta: Any = kind.FromString(options.SerializePartialToString())
        if not meta.HasExtension(extension):
            return None
        return meta.Extensions[extension]
