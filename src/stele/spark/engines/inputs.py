"""Splits a column of rows for encoding: one array per slot, of exactly its type; lists as offsets and items."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID

import pyarrow as pa

from stele.errors import EncodeError
from stele.spark.engines.arrow import Column
from stele.spark.engines.steps import Slot, SlotKind, WideDecimal


@dataclass(slots=True)
class ColumnInputs:
    """The arrays by slot index, the scope of each, and each slot's dotted path for messages.

    Arrays of one scope have the same length and are indexed together: scope 0 is the rows, and every list slot opens
    one for its items.
    """

    arrays: dict[int, Column] = field(default_factory=dict)
    scopes: dict[int, int] = field(default_factory=dict)
    list_scopes: dict[int, int] = field(default_factory=dict)
    paths: dict[int, str] = field(default_factory=dict)

    @classmethod
    def from_column(cls, root: Slot, values: Column) -> ColumnInputs:
        """Split the values into arrays. Raises `EncodeError` when a type does not fit its slot."""
        inputs = cls()
        inputs._add_slot(root, values, 0, "")
        return inputs

    @property
    def scope_count(self) -> int:
        """Number of scopes."""
        return 1 + len(self.list_scopes)

    def _add_slot(self, slot: Slot, values: Column, scope: int, path: str) -> None:
        self.scopes[slot.index] = scope
        self.paths[slot.index] = path or "the value"
        match slot.kind:
            case SlotKind.STRUCT:
                self._add_struct(slot, values, scope, path)
            case SlotKind.LIST:
                self._add_list(slot, values, scope, path)
            case _:
                self.arrays[slot.index] = _fit_type(slot, values, path)

    def _add_struct(self, slot: Slot, values: Column, scope: int, path: str) -> None:
        if pa.types.is_null(values.type):
            values = pa.nulls(len(values), slot.type)
        if not pa.types.is_struct(values.type):
            raise EncodeError(f"{path or 'the value'} is {values.type}, the schema wants a record")
        self.arrays[slot.index] = values
        # flatten, not field: Arrow can keep values below a null struct, which must not count as present
        columns = dict(zip((f.name for f in values.type), values.flatten(), strict=True))
        unknown = sorted(columns.keys() - {child.name for child in slot.children})
        if unknown:
            raise EncodeError(f"{_join_path(path, unknown[0])} is not in the schema")
        for child in slot.children:
            column = columns.get(child.name)
            if column is None:
                column = pa.nulls(len(values), child.type)
            self._add_slot(child, column, scope, _join_path(path, child.name))

    def _add_list(self, slot: Slot, values: Column, scope: int, path: str) -> None:
        inner = self.list_scopes.setdefault(slot.index, self.scope_count)
        if pa.types.is_null(values.type):
            values = pa.nulls(len(values), slot.type)
        is_map = len(slot.children) == 2
        if pa.types.is_large_list(values.type) or pa.types.is_fixed_size_list(values.type):
            values = values.cast(pa.list_(values.type.value_field))
        fits = pa.types.is_map(values.type) if is_map else pa.types.is_list(values.type)
        if not fits:
            raise EncodeError(f"{path or 'the value'} is {values.type}, the schema wants {slot.type}")
        self.arrays[slot.index] = values
        items = (values.keys, values.items) if is_map else (values.values,)
        marks = (path + "{key}", path + "{}") if is_map else (path + "[]",)
        for child, column, mark in zip(slot.children, items, marks, strict=True):
            self._add_slot(child, column, inner, mark)


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fit_type(slot: Slot, values: Column, path: str) -> Column:
    if slot.is_uuid:
        return _uuid_bytes(values, path)
    if slot.digits is not None:
        return _decimal_bytes(values, slot.digits, path)
    if values.type == slot.type:
        return values
    try:
        return values.cast(slot.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EncodeError(f"{path or 'the value'} ({values.type}) does not fit {slot.type}: {error}") from error


def _uuid_bytes(values: Column, path: str) -> Column:
    try:
        uuids = [None if text is None else UUID(text).bytes for text in values.cast(pa.string()).to_pylist()]
    except (ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EncodeError(f"{path or 'the value'} is not a UUID: {error}") from error
    return pa.array(uuids, pa.binary())


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_LONGEST = 1000


def _decimal_bytes(values: Column, digits: WideDecimal, path: str) -> Column:
    """Return the unscaled integers of decimals that are given as text."""
    integers = []
    for row, text in enumerate(values.to_pylist()):
        try:
            integers.append(None if text is None else _unscaled_bytes(str(text), digits))
        except ValueError as error:
            raise EncodeError(f"row {row}, {path or 'the value'}: {error}") from error
    return pa.array(integers, pa.binary())


def _unscaled_bytes(text: str, digits: WideDecimal) -> bytes:
    """Return the number in as few bytes as possible, or in the fixed size of its type. Raises `ValueError`."""
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        raise ValueError("is not a number")
    sign, figures, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    digit_text = "".join(map(str, figures)).lstrip("0")
    zeros = exponent + digits.scale
    if zeros < 0:
        if digit_text[zeros:].strip("0"):
            raise ValueError(f"the number has more than {digits.scale} digits behind the point")
        digit_text = digit_text[:zeros]
    elif digit_text:
        digit_text += "0" * min(zeros, digits.precision + 1)
    if len(digit_text) > digits.precision:
        raise ValueError(f"the number has more than {digits.precision} digits")
    number = int(digit_text or "0") * (-1 if sign else 1)
    least = (number if number >= 0 else ~number).bit_length() // 8 + 1
    if digits.size is not None and least > digits.size:
        raise ValueError(f"the decimal needs {least} bytes, the schema has {digits.size}")
    return number.to_bytes(least if digits.size is None else digits.size, signed=True)
