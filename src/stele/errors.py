"""The whole error tree on one page.

Every error a caller can meet derives from `SteleError`; a dialect's `errors.py` finds the answer by walking the class
tree, so a new error gets the answer of its nearest ancestor until it has one of its own.

    SteleError
    ├── NotFound
    │   ├── SpaceNotFound · SubjectNotFound · VersionNotFound · ContentNotFound · SettingNotFound
    │   └── CodecNotFound · EncodingNotFound · BindingNotFound
    ├── Conflict
    │   ├── Incompatible                  a policy refused the schema; carries the findings
    │   ├── AlreadyExists · InUse · NotEmpty · PreconditionFailed
    │   └── AlreadyRetired · NotRetired   soft deletion out of order
    ├── Invalid
    │   ├── MalformedSchema               the text is no schema; carries the place
    │   │   └── UnresolvedReference
    │   ├── FormatMismatch · UnknownFormat · UnknownRuleset · UnknownRule · UnknownPolicy · UnknownMode · CannotConvert
    │   ├── InvalidName · InvalidVersion · InvalidRuleSet · InvalidRequest
    │   ├── IdMismatch
    │   │   └── IdTaken
    │   └── TooLarge
    ├── Refused
    │   ├── ReadOnly                      the mode in force forbids the write
    │   ├── ModeChangeRefused
    │   ├── Unauthenticated · Forbidden
    │   ├── QuotaUsedUp                   the caller has registered as much as one caller may
    │   ├── ForbiddenAddress              the server would have to ask its own network
    │   └── TooManyRequests               the caller asks more often than he may
    ├── Unavailable
    │   ├── StoreError · StoreTimeout
    │   │   ├── DamagedLog · StoreReplaced   what is stored is not what was stored
    │   │   └── RecordsTooLarge       the store takes no write of that size; nothing was written
    │   └── RegistryUnreachable           a client could not reach any server
    ├── DataError                         bytes or a datum do not fit a schema
    │   └── EncodeError · DecodeError · FrameError · RuleFailed
    └── NotInstalled                      an optional part is missing; says what to install
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stele.core.findings import Finding


class SteleError(Exception):
    """Root of everything Stele raises on purpose; `str()` is a sentence a person can act on."""


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
    """The subject never handed out that encoding id."""


class BindingNotFound(NotFound):
    """The resource is not bound to a subject."""


# --- the request contradicts what is stored -------------------------------------------------------------------------


class Conflict(SteleError):
    """The request is well formed, but the present state does not allow it."""


class Incompatible(Conflict):
    """The policy in force refuses the schema; `findings` say where and why, and how to mend it."""

    def __init__(self, subject: str, findings: Sequence[Finding], *, against: int | None = None) -> None:
        if against is None:  # what refuses is the policy itself or a validator, also of a first version
            super().__init__(f'the policy of subject "{subject}" refuses the schema')
        else:
            super().__init__(
                f'the schema is incompatible with an earlier schema of subject "{subject}", version {against}'
            )
        self.subject = subject
        self.findings = tuple(findings)
        self.against = against


class AlreadyExists(Conflict):
    """The thing to create is there already."""


class InUse(Conflict):
    """Other schemas refer to the version, so it cannot go."""

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
    """Soft-deleted twice; ask for permanent deletion instead."""

    def __init__(self, subject: str, version: int | None = None) -> None:
        place = "" if version is None else f" Version {version}"
        super().__init__(f"Subject '{subject}'{place} was soft deleted. Set permanent=true to delete permanently")
        self.subject = subject
        self.version = version


class NotSoftDeleted(Conflict):
    """Permanent deletion before soft deletion."""

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
"""Characters of one part of a message about a schema: what is wrong may quote a name as long as the schema allows."""


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 101]} … {text[-100:]}"


class MalformedSchema(Invalid):
    """The text is not a schema of its format.

    `line` and `column` count from 1; `path` is a JSON Pointer (JSON formats) or a dotted name. Each is None where it
    has no meaning; `expected` says what would have been right, and `undefined` which type nothing defines.
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
        """The entry of a check's `against`, from 1, that is no schema; None: the text is the new schema."""
        self.line = line
        self.column = column
        self.path = path
        self.expected = expected
        self.undefined = undefined


class UnresolvedReference(MalformedSchema):
    """A schema names another one that is neither built in nor among its references."""


class FormatMismatch(Invalid):
    """The subject or namespace takes schemas of another format."""


class UnknownFormat(Invalid):
    """No format of that name is installed."""


class UnknownRuleset(Invalid):
    """The format has no ruleset of that name."""


class UnknownRule(Invalid):
    """No lint rule has that name."""


class CannotConvert(Invalid):
    """No schema of the target language stands for the source, or a format does not take part in conversions."""


class UnknownPolicy(Invalid):
    """The word names no compatibility policy."""


class UnknownMode(Invalid):
    """The word names no mode."""


class InvalidName(Invalid):
    """The name is empty where it must not be, reserved, or has control characters."""

    def __init__(self, name: str, why: str = "is not a valid name") -> None:
        super().__init__(f"{name!r} {why}")
        self.name = name


class InvalidVersion(Invalid):
    """The text is no version number."""

    def __init__(self, version: str) -> None:
        super().__init__(f"'{version}' is not a version: a number between 1 and 2^31-1, or 'latest'")
        self.version = version


class InvalidRuleSet(Invalid):
    """A rule set breaks its own rules (names, kinds, modes)."""


class RulesRefused(Invalid):
    """A schema has a rule that would have to run, and nobody said that it may."""


class IdMismatch(Invalid):
    """An imported id contradicts the id the same schema already has, or belongs to another schema."""


class IdTaken(IdMismatch):
    """An imported id stands for another schema already."""

    def __init__(self, schema_id: int, namespace: str) -> None:
        super().__init__(f"id {schema_id} of namespace '{namespace}' belongs to another schema")
        self.gid = schema_id
        self.space = namespace


class TooLarge(Invalid):
    """A limit of the settings is exceeded; the sentence names it."""


# --- the request is understood and refused --------------------------------------------------------------------------


class Refused(SteleError):
    """The registry will not do this for this caller or in this mode."""


class ReadOnly(Refused):
    """The mode in force forbids the write; `how` is the part of the sentence that says which mode."""

    def __init__(self, message: str, *, subject: str = "", namespace: str = "", how: str = "in read-only mode") -> None:
        super().__init__(message)
        self.subject = subject
        self.space = namespace
        self.how = how


class ModeChangeRefused(Refused):
    """The mode may not change to the one asked for, now or ever."""


class Unauthenticated(Refused):
    """Nobody proved who is asking."""


class Forbidden(Refused):
    """The caller may not do this; `operation` and `resource` say what he wanted to do, and with what.

    They are an `Operation` and a `Resource` of `stele.core.access`, or None.
    """

    def __init__(
        self, message: str, *, operation: str | None = None, resource: tuple[str, str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.resource = resource


class ForeignSite(Forbidden):
    """A page of another site made a browser send the request, as far as its headers say."""


class ForbiddenAddress(Refused):
    """The server sends no requests to that address."""


class QuotaUsedUp(Refused):
    """The caller has registered as many schemas, or as many bytes of them, as the settings allow one caller."""


class TooManyRequests(Refused):
    """The caller sends more requests than the settings allow.

    `seconds` are those until he may send one again; `rate` is the name of the rate he would pass.
    """

    def __init__(self, message: str, *, seconds: int, rate: str) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.rate = rate


# --- something below does not answer --------------------------------------------------------------------------------


class Unavailable(SteleError):
    """Not the caller's fault; trying again may help."""


class Overloaded(Unavailable):
    """The server has as much to do as it takes on; after a while it has room again."""


class TimeLimitReached(Overloaded):
    """The request took longer than the settings allow, and was given up; `findings` were found until then."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class StoreError(Unavailable):
    """The log could not be read or written."""


class SecretsLocked(Unavailable):
    """Secrets in the log are sealed with a key that this server does not have."""


class StoreUnreadable(Unavailable):
    """The store does not answer, and a request that only reads needs it; nothing was done, so it may be sent again."""


class StoreTimeout(StoreError):
    """The log did not answer in time; the outcome of a write was looked up and is unknown still."""


class DamagedLog(StoreError):
    """Records that were acknowledged are missing from the log, or are not what was stored; the message says where."""


class RecordsTooLarge(StoreError):
    """The store takes no write of that size, and nothing was written; the message names the setting to raise."""


class NewerLog(StoreError):
    """The log has a record of a newer release; whoever cannot read it must neither write nor repair."""


class StoreReplaced(StoreError):
    """The files of the log are not those that were opened: what was written last is not in the log."""


class RegistryUnreachable(Unavailable):
    """No server of the list answered within the retries."""


# --- data and schema do not fit -------------------------------------------------------------------------------------


class DataError(SteleError):
    """Bytes or a datum contradict the schema they are used with."""


class EncodeError(DataError):
    """The datum does not fit the schema."""


class DecodeError(DataError):
    """The bytes are not data of the schema; `offset` is where it showed, counted in the payload, or None."""

    def __init__(self, why: str, *, offset: int | None = None) -> None:
        super().__init__(why if offset is None else f"{why} at byte {offset}")
        self.why = why
        self.offset = offset


class FrameError(DataError):
    """The bytes carry no schema id in the expected wire format."""


class RuleFailed(DataError):
    """A data rule refused a record, or could not be run; `rule` is its name, `why` what went wrong."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(f"the rule {rule!r} failed: {why}")
        self.rule = rule
        self.why = why

    def __reduce__(self) -> tuple[type[RuleFailed], tuple[str, str]]:
        return RuleFailed, (self.rule, self.why)


class NotInstalled(SteleError):
    """A package is missing; extra is the extra of this distribution that brings it, '' when it is installed alone."""

    def __init__(self, what: str, extra: str = "") -> None:
        package = f"'stele-registry[{extra}]'" if extra else what
        super().__init__(f"{what} is not installed: pip install {package}")
