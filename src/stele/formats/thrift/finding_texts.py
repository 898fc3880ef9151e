"""Compatibility findings in words: what happens, and what the author can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stele.core.findings import Finding, Severity

_ERRORS: Final[Mapping[str, tuple[str, str]]] = {
    "STRUCT_REMOVED": (
        "{path} exists on the writer's side as {writer} and is gone on the reader's: its data has no type any more.",
        "Keep {path} under its name, even when nothing uses it any longer.",
    ),
    "FIELD_REMOVED": (
        "The field {writer} is gone.",
        "Keep the field, and mark it as deprecated in its documentation.",
    ),
    "FIELD_TYPE_CHANGED": (
        "What was written as {writer} is not read as {reader}: readers skip it, or take its bytes for something else.",
        "Keep the type {writer}, and add a field with a new id for the new type.",
    ),
    "FIELD_TYPE_NAME_CHANGED": (
        "The field was declared as {writer} and is {reader} now; the audit compares types by their names.",
        "Keep the type {writer}, and add a field with a new id for the new type.",
    ),
    "FIELD_REQUIREDNESS_CHANGED": (
        "The field was {writer} and is {reader} now: one side may leave out what the other one demands.",
        "Leave the word as it was.",
    ),
    "REQUIRED_FIELD_ADDED": (
        "Readers demand the field {reader}, which data written before does not have.",
        "Make the new field optional.",
    ),
    "REQUIRED_FIELD_MAY_BE_MISSING": (
        "Readers demand the field {reader}, which the writer may leave out: it has {writer}.",
        "Leave the field optional, or give it a default.",
    ),
    "FIELD_INSERTED": (
        "The new field {reader} has an id below ids that exist, which may have belonged to a field of the past.",
        "Give the field an id above all that were ever used.",
    ),
    "ENUM_VALUE_REMOVED": (
        "The reader's enum {reader} has no name for the value {writer}, which may have been written.",
        "Keep the value, and mark it as deprecated in its documentation.",
    ),
    "SERVICE_REMOVED": (
        "The service {writer} is gone: its clients have nobody to call.",
        "Keep the service until no client calls it.",
    ),
    "SERVICE_PARENT_CHANGED": (
        "The service extended {writer} and {reader} now: the functions it had from there are gone.",
        "Let the service extend {writer} again.",
    ),
    "FUNCTION_REMOVED": (
        "The function {writer} is gone: calls of it fail.",
        "Keep the function until no client calls it.",
    ),
    "FUNCTION_ONEWAY_CHANGED": (
        "The function was {writer} and is {reader} now: one side waits for an answer that the other never sends.",
        "Leave the function as it was, and add another one.",
    ),
    "RETURN_TYPE_CHANGED": (
        "The function returned {writer} and returns {reader} now.",
        "Keep the type, and add another function for the new one.",
    ),
}

_WARNINGS: Final[Mapping[str, tuple[str, str]]] = {
    "ENUM_REMOVED": (
        "The enum {writer} is gone: its values are numbers without names now.",
        "Keep the enum as long as data with its values exists.",
    ),
    "ENUM_VALUE_RENAMED": (
        "The value was called {writer} and is {reader} now: the data is the same, its meaning perhaps not.",
        "Keep the name if the number got another meaning, and give the new meaning a new number.",
    ),
    "FIELD_RENAMED": (
        "The field was called {writer} and is {reader} now: the data is the same, its meaning perhaps not.",
        "Give the field a new id if it means something else.",
    ),
    "DEFAULT_CHANGED": (
        "The default was {writer} and is {reader} now: data without the field reads differently on the two sides.",
        "Keep the default, or make sure that no writer leaves the field out.",
    ),
    "NAMESPACE_CHANGED": (
        "The namespace was {writer} and is {reader} now: generated code moves.",
        "Keep the namespace if programs use the generated code.",
    ),
    "CONSTANT_REMOVED": (
        "The constant {writer} is gone.",
        "Keep the constant if programs use the generated code.",
    ),
    "CONSTANT_CHANGED": (
        "The constant was {writer} and is {reader} now: programs made from the two sides differ.",
        "Keep the constant, and add another one.",
    ),
    "UNION_MEMBER_REMOVED": (
        "The union has lost its member {writer}: what was written with it is read as a union without a value.",
        "Keep the member as long as data with it exists.",
    ),
    "STRUCT_READ_AS_UNION": (
        "{writer} may have several fields set where the reader's {reader} allows one.",
        "Leave it a struct.",
    ),
    "BINARY_READ_AS_STRING": (
        "Bytes written as binary are read as a string: those that are not UTF-8 cannot be.",
        "Leave the field binary.",
    ),
    "INTEGER_READ_AS_ENUM": (
        "Any number may have been written as {writer}; most are no value of {reader}.",
        "Leave the field {writer}.",
    ),
}


def make_finding(rule: str, path: str, reader: str = "", writer: str = "") -> Finding:
    """Make the finding of a rule. path is dotted; reader and writer are what each side has there."""
    level = Severity.WARNING if rule in _WARNINGS else Severity.ERROR
    why, fix = (_WARNINGS if rule in _WARNINGS else _ERRORS)[rule]
    words = {"path": path, "reader": reader, "writer": writer}
    return Finding(rule, path, reader, writer, why.format(**words), fix.format(**words), level=level)
