"""What happens after a rule: nothing, an error, or a dead letter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from struct import pack
from typing import Any, Final
from uuid import UUID

from google.protobuf import json_format
from google.protobuf.message import Message

from stele.client.serdes.rules.model import (
    DeadLetter,
    FieldLocation,
    FieldType,
    RuleAction,
    RuleContext,
)
from stele.errors import RuleFailed
from stele.protocol.confluent import Rule

RULE_HEADER: Final = "__rule.name"
"""Header of dead letters with the name of the rule that failed."""
TOPIC: Final = "dlq.topic"
"""Setting, or parameter of a rule: the topic of dead letters."""
REDACTED: Final = "<REDACTED>"
"""Replacement in dead letters for values that would have been encrypted."""
REDACT_TYPES: Final = "dlq.redact.rule.types"
"""Setting: types of rules, separated by commas, whose tagged fields are not shown in dead letters."""

_INT64: Final = range(-(2**63), 2**63)


class NoneAction(RuleAction):
    """Continues with the value before the rule."""

    def run(self, context: RuleContext, value: Any, failure: RuleFailed | None) -> None:
        """Do nothing."""


class ErrorAction(RuleAction):
    """Raises the failure."""

    def run(self, context: RuleContext, value: Any, failure: RuleFailed | None) -> None:
        """Raise the failure, or a `RuleFailed` after a success."""
        raise failure or context.rule_failure("its action after a success is an error")


class DeadLetterAction(RuleAction):
    """Sends the record as it came to another topic, then raises the failure.

    Bytes are sent unchanged. Texts are sent as UTF-8, 64-bit integers and floats as 8 bytes, everything else as JSON.
    In JSON, the fields that rules of the phase would encrypt are redacted. A whole payload that would have been
    encrypted has no such fields and is sent unencrypted.
    """

    def run(self, context: RuleContext, value: Any, failure: RuleFailed | None) -> None:
        """Send the dead letter, then raise the failure.

        Raises `RuleFailed`, too, when no topic is set or no receiver of dead letters is given.
        """
        topic = self.tools.config.get(TOPIC) or context.find_parameter(TOPIC)
        send = self.tools.dead_letters
        if not topic or send is None:
            missing = "no topic for dead letters is named" if send else "there is no producer for dead letters"
            raise context.rule_failure(f"{failure.why if failure else 'success'}; {missing}") from failure
        record = context.record
        body = self._encode_value(context, record.original)
        key, rest = (body, None) if record.field == "key" else (None, body)
        send(DeadLetter(topic, key, rest, _build_headers(context, failure)))
        raise failure or context.rule_failure("its action after a success is a dead letter")

    def _encode_value(self, context: RuleContext, value: Any) -> bytes | None:
        match value:
            case None:
                return None
            case bytes() | bytearray() | memoryview():
                return bytes(value)
            case str() | UUID():
                return str(value).encode()
            case int() if not isinstance(value, bool) and value in _INT64:
                return pack(">q", value)
            case float():
                return pack(">d", value)
        redacted_value = self._redact_fields(context, value)
        if isinstance(redacted_value, Message):
            return json_format.MessageToJson(redacted_value).encode()
        return json.dumps(redacted_value, default=_spell_value).encode()

    def _redact_fields(self, context: RuleContext, value: Any) -> Any:
        types = self.tools.config.get(REDACT_TYPES, "ENCRYPT,ENCRYPT_PAYLOAD").split(",")
        hiding = [rule for rule in context.rules if rule.type in {name.strip() for name in types}]
        if not hiding or context.walk is None:
            return value
        tags = sorted({tag for rule in hiding for tag in rule.tags or ()})
        hidden = Rule("redact", mode=context.mode.value, type="REDACT", tags=tags)
        return context.walk(replace(context, rule=hidden, rules=(hidden,), index=0), _redact_value, value)


BUILT_IN: Final[Mapping[str, type[RuleAction]]] = {"NONE": NoneAction, "ERROR": ErrorAction, "DLQ": DeadLetterAction}
"""The built-in actions, by name."""


def _redact_value(place: FieldLocation, value: Any) -> Any:
    if value is None:
        return None
    match place.type:
        case FieldType.STRING:
            return REDACTED
        case FieldType.BYTES:
            return REDACTED.encode()
    return value


def _build_headers(context: RuleContext, failure: RuleFailed | None) -> list[tuple[str, str | bytes | None]]:
    own = context.record.headers or ()
    headers = list(own.items() if isinstance(own, Mapping) else own)
    headers += [
        (RULE_HEADER, (context.rule.name or "").encode()),
        ("__rule.mode", context.mode.value.encode()),
        ("__rule.subject", context.record.subject.encode()),
        ("__rule.topic", context.record.topic.encode()),
    ]
    return headers if failure is None else [*headers, ("__rule.exception", str(failure).encode())]


def _spell_value(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes | bytearray) else str(value)
