"""All errors of Stele.

Every error a caller can meet derives from `SteleError`. A dialect's `errors.py` finds the response by walking the class
tree, so a new error gets the response of its nearest ancestor until it has one of its own.

    SteleError
    ├── NotFound
    │   ├── NamespaceNotFound · SubjectNotFound · VersionNotFound · ContentNotFound · SettingNotFound
    │   └── CodecNotFound · EncodingNotFound · BindingNotFound
    ├── Conflict
    │   ├── Incompatible                  a policy refused the schema; carries the findings
    │   ├── AlreadyExists · InUse · NotEmpty · PreconditionFailed
    │   └── AlreadySoftDeleted · NotSoftDeleted   soft deletion out of order
    ├── Invalid
    │   ├── MalformedSchema               the text is not a schema; carries the place
    │   │   └── UnresolvedReference
    │   ├── FormatMismatch · UnknownFormat · UnknownRuleset · UnknownRule · UnknownPolicy · UnknownMode · CannotConvert
    │   ├── InvalidName · InvalidVersion · InvalidRuleSet · InvalidRequest · RulesRefused
    │   ├── IdMismatch
    │   │   └── IdTaken
    │   └── TooLarge
    ├── Refused
    │   ├── ReadOnly                      the mode in force forbids the write
    │   ├── ModeChangeRefused
    │   ├── Unauthenticated
    │   ├── Forbidden
    │   │   └── ForeignSite               a page of another site made a browser send the request
    │   ├── QuotaUsedUp                   the caller has registered as much as one caller may
    │   ├── ForbiddenAddress              the server must not send requests to that address
    │   └── TooManyRequests               the caller exceeds its rate limit
    ├── Unavailable
    │   ├── Overloaded
    │   │   └── TimeLimitReached
    │   ├── StoreError
    │   │   ├── StoreTimeout · NewerLog
    │   │   ├── DamagedLog · StoreReplaced   the stored data are not those that were written
    │   │   └── RecordsTooLarge           the store takes no write of that size; nothing was written
    │   ├── SecretsLocked · StoreUnreadable
    │   └── RegistryUnreachable           a client could not reach any server
    ├── DataError                         bytes or a datum do not fit a schema
    │   └── EncodeError · DecodeError · FrameError · RuleFailed
    └── NotInstalled                      an optional part is missing; names what to install
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stele.core.findings import Finding


class SteleError(Exception):
    """Root of all errors that Stele raises on purpose; `str()` is a sentence that a user can act on."""


# --- something is not there -----------------------------------------------------------------------------------------


class NotFound(SteleError):
    """The thing named in the request does not exist, or is not visible to this kind of request."""


class NamespaceNotFound(NotFound):
    """No namespace of that name holds anything."""


class SubjectNotFound(NotFound):
    """The subject has never been created, or has no version visible to this request."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' not found.")
        self.subject = subject


class VersionNotFound(NotFound):
    """The subject exists, the version does not (or is deleted)."""

    def __init__(self, version: int | str) -> None:
        super().__init__(f"Version {version} not found.")
        self.version = version


class ContentNotFound(NotFound):
    """No schema has that id, digest or text here."""

    def __init__(self, what: int | str | None = None) -> None:
        super().__init__("Schema not found" if what is None else f"Schema {what} not found")
        self.what = what


class SettingNotFound(NotFound):
    """The subject or namespace has no policy or mode of its own."""

    def __init__(self, subject: str, setting: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level {setting} configured")
        self.subject = subject
        self.setting = setting


class CodecNotFound(NotFound):
    """The subject has no codec of that name."""


class EncodingNotFound(NotFound):
    """The subject never assigned that encoding id."""


class BindingNotFound(NotFound):
    """The resource is not bound to a subject."""


# --- the request contradicts what is stored -------------------------------------------------------------------------


class Conflict(SteleError):
    """The request is well formed, but the present state does not allow it."""


class Incompatible(Conflict):
    """The policy in force refuses the schema; `findings` name the places, the reasons and the fixes."""

    def __init__(self, subject: str, findings: Sequence[Finding], *, against: int | None = None) -> None:
        if against is None:  # the policy itself or a validator refuses the schema, even a first version
            super().__init__(f'the policy of subject "{subject}" refuses the schema')
        else:
            super().__init__(
                f'the schema is incompatible with an earlier schema of subject "{subject}", version {against}'
            )
        self.subject = subject
        self.findings = tuple(findings)
        self.against = against


class AlreadyExists(Conflict):
    """The object to create exists already."""


class InUse(Conflict):
    """Other schemas refer to the version, so it cannot be deleted."""

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(f"One or more references exist to version {version} of subject '{subject}'")
        self.subject = subject
        self.version = version


class NotEmpty(Conflict):
    """A namespace that still holds subjects cannot be removed."""

    def __init__(self, namespace: str) -> None:
        super().__init__(f"The namespace '{namespace}' is not empty.")
        self.space = namespace


class PreconditionFailed(Conflict):
    """A conditional write found another value than the one it expected."""


class AlreadySoftDeleted(Conflict):
    """The subject or version is soft-deleted already; request permanent deletion instead."""

    def __init__(self, subject: str, version: int | None = None) -> None:
        place = "" if version is None else f" Version {version}"
        super().__init__(f"Subject '{subject}'{place} was soft deleted. Set permanent=true to delete permanently")
        self.subject = subject
        self.version = version


class NotSoftDeleted(Conflict):
    """Permanent deletion needs a soft deletion first."""

    def __init__(self, subject: str, version: int | None = None) -> None:
        place = "" if version is None else f" Version {version}"
        super().__init__(f"Subject '{subject}'{place} was not deleted first before being permanently deleted")
        self.subject = subject
        self.version = version


# --- the request itself is wrong ------------------------------------------------------------------------------------


class Invalid(SteleError):
    """The request can never succeed as it stands."""


class InvalidRequest(Invalid):
    """The body or a parameter has the wrong shape."""


_LONGEST = 500
"""Highest number of characters of one part of a message about a schema, since it may quote a long name."""


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 101]} … {text[-100:]}"


class MalformedSchema(Invalid):
    """The text is not a schema of its format.

    `line` and `column` count from 1; `path` is a JSON Pointer (JSON formats) or a dotted name. Each is None where it
    has no meaning. `expected` names what would have been valid, and `undefined` a type that nothing defines.
    """

    def __init__(
        self,
        why: str,
        *,
        line: int | None = None,
        column: int | None = None,
        path: str | None = None,
        expected: str | None = None,
        undefined: str | None = None,
    ) -> None:
        why = _shorten(why)
        place = f"line {line}, column {column}: " if line is not None else f"{_shorten(path)}: " if path else ""
        wanted = f" (expected {_shorten(expected)})" if expected else ""
        super().__init__(f"{place}{why}{wanted}")
        self.why = why
        self.against: int | None = None
        """Number of the malformed entry in a check's `against`, from 1; None: the malformed text is the new schema."""
        self.line = line
        self.column = column
        self.path = path
        self.expected = expected
        self.undefined = undefined


class UnresolvedReference(MalformedSchema):
    """A schema names another one that is neither built in nor among its references."""


class FormatMismatch(Invalid):
    """The subject or namespace accepts only schemas of another format."""


class UnknownFormat(Invalid):
    """No format of that name is installed."""


class UnknownRuleset(Invalid):
    """The format has no ruleset of that name."""


class UnknownRule(Invalid):
    """No lint rule has that name."""


class CannotConvert(Invalid):
    """No schema of the target language can represent the source, or a format does not support conversions."""


class UnknownPolicy(Invalid):
    """The word is not the name of a compatibility policy."""


class UnknownMode(Invalid):
    """The word is not the name of a mode."""


class InvalidName(Invalid):
    """The name is empty where it must not be, reserved, or has control characters."""

    def __init__(self, name: str, why: str = "is not a valid name") -> None:
        super().__init__(f"{name!r} {why}")
        self.name = name


class InvalidVersion(Invalid):
    """The text is not a version number."""

    def __init__(self, version: str) -> None:
        super().__init__(f"'{version}' is not a version: a number between 1 and 2^31-1, or 'latest'")
        self.version = version


class InvalidRuleSet(Invalid):
    """A rule set breaks its own rules (names, kinds, modes)."""


class RulesRefused(Invalid):
    """A schema has a rule that would have to be executed, and executing rules is not enabled."""


class IdMismatch(Invalid):
    """An imported id contradicts the id the same schema already has, or belongs to another schema."""


class IdTaken(IdMismatch):
    """An imported id belongs to another schema already."""

    def __init__(self, schema_id: int, namespace: str) -> None:
        super().__init__(f"id {schema_id} of namespace '{namespace}' belongs to another schema")
        self.gid = schema_id
        self.space = namespace


class TooLarge(Invalid):
    """A limit of the settings is exceeded; the message names it."""


# --- the request is understood and refused --------------------------------------------------------------------------


class Refused(SteleError):
    """The registry refuses the request for this caller or in this mode."""


class ReadOnly(Refused):
    """The mode in force forbids the write; `how` is the part of the message that names the mode."""

    def __init__(self, message: str, *, subject: str = "", namespace: str = "", how: str = "in read-only mode") -> None:
        super().__init__(message)
        self.subject = subject
        self.space = namespace
        self.how = how


class ModeChangeRefused(Refused):
    """The mode may not change to the requested one, now or ever."""


class Unauthenticated(Refused):
    """The caller is not authenticated."""


class Forbidden(Refused):
    """The caller may not do this; `operation` and `resource` name what was refused.

    They are an `Operation` and a `Resource` of `stele.core.access`, or None.
    """

    def __init__(
        self, message: str, *, operation: str | None = None, resource: tuple[str, str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.resource = resource


class ForeignSite(Forbidden):
    """According to its headers, a page of another site made a browser send the request."""


class ForbiddenAddress(Refused):
    """The server sends no requests to that address."""


class QuotaUsedUp(Refused):
    """The caller has registered as many schemas, or as many bytes of them, as the settings allow one caller."""


class TooManyRequests(Refused):
    """The caller sends more requests than the settings allow.

    `seconds` are those until the next request is allowed; `rate` is the name of the exceeded rate.
    """

    def __init__(self, message: str, *, seconds: int, rate: str) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.rate = rate


# --- something below does not answer --------------------------------------------------------------------------------


class Unavailable(SteleError):
    """The request failed through no fault of the caller; a retry may help."""


class Overloaded(Unavailable):
    """The server has no capacity for the request now; a later retry may help."""


class TimeLimitReached(Overloaded):
    """The request took longer than the settings allow, and was stopped; `findings` were found until then."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class StoreError(Unavailable):
    """The log could not be read or written."""


class SecretsLocked(Unavailable):
    """Secrets in the log are sealed with a key that this server does not have."""


class StoreUnreadable(Unavailable):
    """The store does not answer, and a read request needs it; nothing was done, so it may be sent again."""


class StoreTimeout(StoreError):
    """The log did not answer in time; the outcome of a write is unknown, even after checking."""


class DamagedLog(StoreError):
    """Acknowledged records are missing from the log, or differ from what was stored; the message names the place."""


class RecordsTooLarge(StoreError):
    """The store takes no write of that size, and nothing was written; the message names the setting to raise."""


class NewerLog(StoreError):
    """The log has a record of a newer release; a program that cannot read it must neither write nor repair."""


class StoreReplaced(StoreError):
    """The files of the log are not those that were opened: the last writes are not in the log."""


class RegistryUnreachable(Unavailable):
    """No server of the list answered, even after retries."""


# --- data and schema do not fit -------------------------------------------------------------------------------------


class DataError(SteleError):
    """Bytes or a datum do not fit the schema they are used with."""


class EncodeError(DataError):
    """The datum does not fit the schema."""


class DecodeError(DataError):
    """The bytes are not data of the schema; `offset` is the position of the error in the payload, or None."""

    def __init__(self, why: str, *, offset: int | None = None) -> None:
        super().__init__(why if offset is None else f"{why} at byte {offset}")
        self.why = why
        self.offset = offset


class FrameError(DataError):
    """The bytes have no schema id in the expected wire format."""


class RuleFailed(DataError):
    """A data rule refused a record, or could not be run; `rule` is its name, `why` the reason."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(f"the rule {rule!r} failed: {why}")
        self.rule = rule
        self.why = why

    def __reduce__(self) -> tuple[type[RuleFailed], tuple[str, str]]:
        return RuleFailed, (self.rule, self.why)


class NotInstalled(SteleError):
    """A package is missing; extra is the extra of this distribution that installs it, '' when it is installed alone."""

    def __init__(self, what: str, extra: str = "") -> None:
        package = f"'stele-registry[{extra}]'" if extra else what
        super().__init__(f"{what} is not installed: pip install {package}")
