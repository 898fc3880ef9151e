"""Runs exporters, which copy versions with their ids and numbers into another registry that speaks this API.

An exporter puts a subject of the other registry into IMPORT mode. In this mode clients cannot register, and a request
sets the ids. Then the exporter carries over each change of the log in order. A version that exists there in the same
form is left as it is. Any other version with the same number is a conflict: the exporter stops with ERROR and
overwrites nothing. It deletes only in subjects that are in IMPORT mode there.

Source: docs/protocols/confluent.md#exporters
"""

from __future__ import annotations

import base64
from typing import Any, Final
from urllib.parse import quote

import msgspec

from stele.apis.confluent import translate
from stele.apis.confluent.models import ErrorMessage, RegisterSchemaRequest, SchemaReference
from stele.apis.confluent.names import parse_context, qualify_subject
from stele.core import queries
from stele.core.model import SubjectKey, Version, VersionState
from stele.errors import ForbiddenAddress, NotFound, SteleError, Unavailable
from stele.service.access import make_caller
from stele.service.change_events import ChangeEvent
from stele.service.delivery.exporters import COLLECTION, ExporterState, StoredExporter, decode_exporter
from stele.service.delivery.outgoing_tokens import NoToken, OutgoingTokens
from stele.service.delivery.status import EXPORTERS
from stele.service.delivery.targets import Attempt, DeliveryCode
from stele.service.outgoing import OutgoingAnswer, OutgoingClient
from stele.service.registry import Registry
from stele.service.subject_patterns import Renaming, match_any

_DELIVERED: Final = Attempt(DeliveryCode.DELIVERED)
_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MODE_FORBIDS: Final = 42205
_MOST_DEPTH: Final = 200
"""Deepest nesting of references that are carried over with a version."""


class _Refusal(Exception):
    """The other registry refused a request, or a version cannot be copied. `attempt` holds the reason."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt.detail)
        self.attempt = attempt


class ExporterSource:
    """Creates followers of exporters.

    Args:
        registry: The registry to export.
        client: Sends requests to other registries.
    """

    collection = COLLECTION
    status_collection = EXPORTERS

    def __init__(self, registry: Registry, client: OutgoingClient) -> None:
        self._registry = registry
        self._client = client

    def make_follower(self, text: bytes) -> ExporterFollower | None:
        """Return the follower of a stored exporter, or None for a paused one."""
        exporter = decode_exporter(text)
        return (
            None if exporter.state == ExporterState.PAUSED else ExporterFollower(self._registry, self._client, exporter)
        )


class ExporterFollower:
    """Copies the changes that one exporter selects into the other registry."""

    begin = "0"

    def __init__(self, registry: Registry, client: OutgoingClient, exporter: StoredExporter) -> None:
        self.name = exporter.status_name
        self.caller = make_caller(exporter.owner, "delivery")
        self.protocol = "EXPORTER"
        self._registry = registry
        self._exporter = exporter
        self._is_chosen = match_any(exporter.subjects)
        self._far = FarRegistry(client, exporter.config)
        self._imported: set[str] = set()

    def is_wanted(self, event: ChangeEvent) -> bool:
        """Return whether an event registers or deletes versions of a subject that the exporter selects."""
        change = event.change
        if change.namespace is None or change.subject is None:
            return False
        if change.version_number is None and not change.is_deleted:
            return False  # settings and descriptions are not exported
        key = SubjectKey(change.namespace, change.subject)
        return self._is_chosen(key)

    async def attempt(self, event: ChangeEvent) -> Attempt:
        """Copy one change and return the result."""
        change = event.change
        key = SubjectKey(change.namespace or "", change.subject or "")
        try:
            if change.is_deleted:
                await self._delete(key, change.version_number, event.position.seq)
            else:
                version = self._find_version(key, change.version_number)
                if version is not None and version.seq <= event.position.seq:  # else a later record registers it
                    await self._register(version, 0)
            return _DELIVERED
        except _Refusal as refusal:
            return refusal.attempt
        except ForbiddenAddress as error:
            return Attempt(DeliveryCode.FORBIDDEN_ADDRESS, detail=str(error))
        except (BadExporterConfig, NoToken) as error:
            return Attempt(DeliveryCode.BAD_SETTINGS, detail=str(error))
        except Unavailable as error:
            return Attempt(DeliveryCode.NO_ANSWER, detail=str(error))

    async def close(self) -> None:
        """Do nothing: the HTTP client is shared."""

    def _find_version(self, key: SubjectKey, number: int | None) -> Version | None:
        """Return a version as it is now, or None if it was deleted since: a later record reports the deletion."""
        try:
            return queries.get_version(self._registry.state, key, number, queries.ACTIVE_OR_SOFT_DELETED)
        except NotFound:
            return None

    async def _register(self, version: Version, depth: int) -> None:
        """Register a version in the other registry, after the versions that it refers to. Raises `_Refusal`."""
        for reference in version.schema.attachments.references:
            referred = self._find_version(reference.key, reference.version_number)
            if referred is not None and not self._registry.access.can_read(reference.key):
                why = "the owner of the exporter may not read a referenced schema"
                raise _Refusal(Attempt(DeliveryCode.REFUSED, detail=why))
            if referred is not None and depth < _MOST_DEPTH:
                await self._register(referred, depth + 1)
        body = self._describe_version(version)
        subject = self.rename_subject(version.subject.key)
        if await self._has_version(subject, body):
            return
        await self._import_into(subject, version.subject.key)
        try:
            _require_success(await self._far.ask("POST", f"{_name_path(subject)}/versions", body))
        except _Refusal:
            self._imported.discard(subject)
            raise

    def _describe_version(self, version: Version) -> RegisterSchemaRequest:
        """Return the request that registers a version in the other registry. Raises `_Refusal`."""
        state = self._registry.state
        schema_type = version.kind.format.upper()
        if schema_type not in translate.SCHEMA_TYPES:
            raise _Refusal(Attempt(DeliveryCode.REFUSED, detail=f"the API has no schema type {schema_type}"))
        attachments = version.schema.attachments
        return RegisterSchemaRequest(
            schema=translate.text_out(state, version.schema),
            schema_type=schema_type,
            references=[
                SchemaReference(each.name, self.rename_subject(each.key), each.version_number)
                for each in attachments.references
            ],
            metadata=attachments.metadata,
            rule_set=translate.rule_set_out(attachments.rule_set),
            version=version.version_number,
            id=version.schema.schema_id,
        )

    async def _has_version(self, subject: str, body: RegisterSchemaRequest) -> bool:
        """Return whether the other registry has a version with this id and text.

        Raises `_Refusal` if the version number belongs to another schema there.
        """
        answer = await self._far.ask("GET", f"{_name_path(subject)}/versions/{body.version}")
        if answer.status != 200:
            return False
        there = msgspec.json.decode(answer.body, type=RegisterSchemaRequest)
        if there.id == body.id and _reduce_text(there.schema or "") == _reduce_text(body.schema or ""):
            return True
        detail = f"version {body.version} of the target is another schema, id {there.id}"
        raise _Refusal(Attempt(DeliveryCode.CONFLICT, 200, detail=detail))

    async def _import_into(self, subject: str, key: SubjectKey) -> None:
        """Put a subject of the other registry into IMPORT mode.

        Raises `_Refusal` if it has versions that do not come from this subject.
        """
        if subject in self._imported:
            return
        if not await self._is_imported(subject):
            await self._require_own_versions(subject, key)
            path = f"/mode/{quote(subject, safe='')}?force=true"
            _require_success(await self._far.ask("PUT", path, {"mode": "IMPORT"}))
        self._imported.add(subject)

    async def _is_imported(self, subject: str) -> bool:
        """Return whether a subject of the other registry is in IMPORT mode. Raises `_Refusal`."""
        answer = await self._far.ask("GET", f"/mode/{quote(subject, safe='')}")
        _require_success(answer, is_missing_fine=True)
        return answer.status == 200 and msgspec.json.decode(answer.body, type=_ModeAnswer).mode == "IMPORT"

    async def _require_own_versions(self, subject: str, key: SubjectKey) -> None:
        """Raise `_Refusal` if a subject of the other registry has a version that this registry does not have."""
        answer = await self._far.ask("GET", f"{_name_path(subject)}/versions")
        _require_success(answer, is_missing_fine=True)
        for number in msgspec.json.decode(answer.body, type=list[int]) if answer.status == 200 else ():
            version = self._find_version(key, number)
            if version is None:
                detail = f"version {number} of the target is not a version of this registry"
                raise _Refusal(Attempt(DeliveryCode.CONFLICT, 200, detail=detail))
            await self._has_version(subject, self._describe_version(version))

    async def _delete(self, key: SubjectKey, number: int | None, seq: int) -> None:
        """Delete in the other registry what the record `seq` deleted here.

        The deletion is soft if the version can still be read here, else permanent. If the version number was registered
        again since, the old version is deleted there, unless the new one is there already. Raises `_Refusal`.
        """
        subject = self.rename_subject(key)
        if not await self._is_imported(subject):
            return  # No exporter copied this subject.
        version = None if number is None else self._find_version(key, number)
        is_made_again = version is not None and version.seq > seq
        if version is not None and (await self._is_there(subject, version) if is_made_again else _is_active(version)):
            return
        path = _name_path(subject) if number is None else f"{_name_path(subject)}/versions/{number}"
        _require_success(await self._far.ask("DELETE", path), is_missing_fine=True)
        if version is None or is_made_again:
            _require_success(await self._far.ask("DELETE", f"{path}?permanent=true"), is_missing_fine=True)

    async def _is_there(self, subject: str, version: Version) -> bool:
        try:
            return await self._has_version(subject, self._describe_version(version))
        except _Refusal:
            return False

    def rename_subject(self, key: SubjectKey) -> str:
        """Return the name of a subject of this registry in the other registry."""
        exporter = self._exporter
        name = Renaming(exporter.subject_rename_format or "${subject}").rename_subject(key).name
        namespace = key.namespace
        match exporter.context_type:
            case "DEFAULT":
                namespace = ""
            case "AUTO":
                namespace = _join_contexts(exporter.name, namespace)
            case "CUSTOM":
                namespace = _join_contexts(parse_context(exporter.context), namespace)
        return qualify_subject(SubjectKey(namespace, name))


def _join_contexts(outer: str, inner: str) -> str:
    return f"{outer}.{inner}" if inner else outer


class _ModeAnswer(msgspec.Struct):
    mode: str = ""


def _name_path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _is_active(version: Version) -> bool:
    return version.state is VersionState.ACTIVE


def _reduce_text(text: str) -> Any:
    """Return a form of a schema's text that does not depend on its layout, for comparison."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return "".join(text.split())


def _require_success(answer: OutgoingAnswer, *, is_missing_fine: bool = False) -> None:
    """Raise `_Refusal` if a response reports an error."""
    status = answer.status
    if status < 300:
        return
    try:
        error = msgspec.json.decode(answer.body, type=ErrorMessage)
    except msgspec.MsgspecError:
        error = ErrorMessage(status, "")
    if is_missing_fine and (status == 404 or error.error_code // 100 == 404):
        return
    detail = f"{error.error_code}: {error.message[:200]}"
    code = DeliveryCode.NOT_TAKEN
    if status in {401, 403}:
        code = DeliveryCode.BAD_SETTINGS
    elif status in {409, 422} and error.error_code != _MODE_FORBIDS:
        code = DeliveryCode.CONFLICT
    raise _Refusal(Attempt(code, status, detail=detail))


# --- the other registry -----------------------------------------------------------------------------------------------


class BadExporterConfig(SteleError):
    """The configuration of an exporter names no registry, or an unknown method of authentication."""


class FarRegistry:
    """Sends requests to another registry, with the credentials of an exporter. Its addresses are tried in turn."""

    def __init__(self, client: OutgoingClient, config: dict[str, str]) -> None:
        self._client = client
        self._config = config
        urls = (url.strip().rstrip("/") for url in config.get("schema.registry.url", "").split(","))
        self._urls = [url for url in urls if url]
        form = {
            "grant_type": "client_credentials",
            "client_id": config.get("bearer.auth.client.id", ""),
            "client_secret": config.get("bearer.auth.client.secret", ""),
            "scope": config.get("bearer.auth.scope", ""),
        }
        issuer = config.get("bearer.auth.issuer.endpoint.url", "")
        self._tokens = OutgoingTokens(client, issuer, {name: value for name, value in form.items() if value})

    async def ask(self, method: str, path: str, body: Any = None) -> OutgoingAnswer:
        """Return the response to a request.

        Raises `BadExporterConfig`, `NoToken`, `ForbiddenAddress`, `Unavailable`.
        """
        if not self._urls:
            raise BadExporterConfig("the configuration has no schema.registry.url")
        headers = {"content-type": _MEDIA_TYPE, "accept": _MEDIA_TYPE, **await self._authorize()}
        text = b"" if body is None else msgspec.json.encode(body)
        for _ in range(len(self._urls) - 1):
            try:
                return await self._client.send_request(method, self._urls[0] + path, headers=headers, body=text)
            except Unavailable:
                self._urls.append(self._urls.pop(0))
        return await self._client.send_request(method, self._urls[0] + path, headers=headers, body=text)

    async def _authorize(self) -> dict[str, str]:
        config = self._config
        bearer = config.get("bearer.auth.credentials.source", "")
        match bearer:
            case "STATIC_TOKEN":
                return {"authorization": f"Bearer {config.get('bearer.auth.token', '')}"}
            case "OAUTHBEARER":
                return {"authorization": f"Bearer {await self._tokens.get_token()}"}
            case "":
                pass
            case _:
                raise BadExporterConfig(f"bearer.auth.credentials.source {bearer!r} is not supported")
        info = config.get("basic.auth.user.info", "")
        return {"authorization": f"Basic {base64.b64encode(info.encode()).decode()}"} if info else {}
