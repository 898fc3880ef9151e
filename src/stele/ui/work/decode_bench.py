"""Decoding of bytes: the wire, the id, the schema and the record, or why that fails. Nothing is written."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.core.access import Operation
from stele.core.model import SubjectKey
from stele.errors import Invalid, InvalidName
from stele.service.decoding import MOST_BYTES, DecodeRequest, WireReading, decode_record
from stele.service.policies import parse_level_name
from stele.ui.forms import FieldProblem, Form, FormPage
from stele.ui.highlight import highlight_text
from stele.ui.pages import Page, PageRequest

_HEX_PREFIX: Final = re.compile(r"0x|\\x", re.IGNORECASE)
_SPACE: Final = re.compile(r"[\s:,]+")
_SHOWN: Final = 256
_NOTATIONS: Final = ("auto", "hex", "base64")


class DecodePage(msgspec.Struct, frozen=True):
    """Bytes as they were typed, and how each wire reads them.

    notation  notation of the bytes: `auto`, `hex` or `base64`
    level     subject or namespace (`:.team:`) that the bytes belong to; '' for none
    size      number of bytes
    dump      the first bytes in hexadecimal
    readings  result for each wire; None: nothing was decoded
    """

    data: str = ""
    notation: str = "auto"
    level: str = ""
    size: int = 0
    dump: str = ""
    readings: Sequence[WireReading] | None = None
    problems: Sequence[FieldProblem] = ()


async def view_decode(page: PageRequest) -> DecodePage:
    """Show the form for bytes. If the query has bytes, decode them."""
    data = page.get_query("data")
    if not data:
        return DecodePage(level=page.get_query("level"))
    return await _decode(page, data, None, page.get_query("notation", "auto"), page.get_query("level"))


async def submit_bytes(page: PageRequest, form: Form) -> DecodePage:
    """Decode bytes."""
    return await _decode(
        page, form.get("data"), form.files.get("file"), form.get("notation", "auto"), form.get("level").strip()
    )


async def _decode(page: PageRequest, text: str, file: bytes | None, notation: str, level_name: str) -> DecodePage:
    content = DecodePage(text, notation, level_name)
    try:
        data = file if file is not None else parse_bytes(text, notation)
    except ValueError as error:
        return msgspec.structs.replace(content, problems=[FieldProblem("data", str(error))])
    namespace, subject = "", None
    if level_name:
        try:
            level = parse_level_name(level_name)
        except InvalidName as error:
            return msgspec.structs.replace(content, problems=[FieldProblem("level", str(error))])
        namespace = level.namespace or ""
        subject = SubjectKey(namespace, level.subject) if level.subject else None
    try:
        readings = await decode_record(page.registry, DecodeRequest(data, namespace, subject))
    except Invalid as error:
        return msgspec.structs.replace(content, problems=[FieldProblem("data", str(error))])
    return msgspec.structs.replace(content, size=len(data), dump=data[:_SHOWN].hex(" "), readings=readings)


def parse_bytes(text: str, notation: str = "auto") -> bytes:
    r"""Return the bytes that a text spells in hexadecimal digits or base64.

    With `auto`, hexadecimal is tried first: `0x`, `\x`, colons and spaces between the digits are ignored.

    Raises `ValueError` with a message about the defect.
    """
    if notation not in _NOTATIONS:
        raise ValueError(f"The notation must be one of {', '.join(_NOTATIONS)}.")
    if len(text) > 3 * MOST_BYTES:
        raise ValueError(f"The text has {len(text):,} characters: a record of {MOST_BYTES:,} bytes is the limit.")
    digits = _SPACE.sub("", _HEX_PREFIX.sub("", text))
    if not digits:
        raise ValueError("Paste bytes, or choose a file.")
    if notation != "base64":
        try:
            return bytes.fromhex(digits)
        except ValueError:
            if notation == "hex":
                raise ValueError("These are not pairs of hexadecimal digits.") from None
    packed = _SPACE.sub("", text).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except binascii.Error:
        what = "base64" if notation == "base64" else "neither hexadecimal digits nor base64"
        raise ValueError(f"This is {'no ' if notation == 'base64' else ''}{what}.") from None


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    right = access(Operation.READ, Place.LIST)
    page = Page(
        "/ui/decode", view_decode, "decode.html.j2", right, menu="/decode", helpers={"highlight": highlight_text}
    )
    return [FormPage(page, submit_bytes, right, asks_only=True)]
