"""Results of the checks of `stele doctor`."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class CheckState(StrEnum):
    """Possible results of a check, the worst last."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Diagnosis(msgspec.Struct, frozen=True):
    """The result of one check.

    Attributes:
        code: Stable name of the check, for programs.
        state: Its result.
        detail: What was found, as a sentence or a few words.
        fix: What to do; '' if there is nothing to do.
    """

    code: str
    state: CheckState
    detail: str
    fix: str = ""


def judge_good(code: str, detail: str, fix: str = "") -> Diagnosis:
    """Return the result of a check that is passed; fix may say what could be added."""
    return Diagnosis(code, CheckState.OK, detail, fix)


def judge_doubtful(code: str, detail: str, fix: str) -> Diagnosis:
    """Return the result of a check whose object works, but not as well as it should."""
    return Diagnosis(code, CheckState.WARNING, detail, fix)


def judge_bad(code: str, detail: str, fix: str) -> Diagnosis:
    """Return the result of a check whose object does not work."""
    return Diagnosis(code, CheckState.ERROR, detail, fix)
