"""Settings (`/config`) and modes (`/mode`) of the registry, contexts and subjects."""

from __future__ import annotations

import asyncio
from typing import Any

from litestar import Request, delete, get, post, put

from stele.apis.confluent import karapace
from stele.apis.confluent import models as api
from stele.apis.confluent import translate as words
from stele.apis.confluent.names import is_true, level_name, parse_level, require_valid_level
from stele.apis.confluent.operations.schemas import Operations, read_first_value
from stele.apis.confluent.params import (
    READ,
    WRITE,
    Context,
    DefaultToGlobal,
    Flag,
    InjectedOperations,
    Subject,
    with_context_prefix,
)
from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import read_bytes
from stele.core import queries
from stele.core.access import Operation, level_resource
from stele.core.commands import ChangeSettings, ClearMode, ClearSettings, ModeOutcome, SetMode, SettingsOutcome
from stele.core.decide.decision import require_writable
from stele.core.model import DEFAULT_NAMESPACE, Mode, Settings, SettingsLevel, SubjectKey
from stele.core.policy import BACKWARD, Policy
from stele.core.state import State
from stele.errors import ModeChangeRefused, SettingNotFound, SubjectNotFound, TooLarge, UnknownMode
from stele.protocol.confluent import LevelConfig, LevelConfigsRequest
from stele.service.validators import require_known

_CONFIG = [*with_context_prefix("/config"), *with_context_prefix("/config/{subject:str}")]
_MODE = [*with_context_prefix("/mode"), *with_context_prefix("/mode/{subject:str}")]
_TOP = SettingsLevel(DEFAULT_NAMESPACE)
"""Level of a path without subject and context. It always has settings; without a policy, that of the server."""


@get(_CONFIG, **READ, opt=access(Operation.READ))
async def get_config(
    operations: InjectedOperations,
    subject: Subject = "",
    context: Context = "",
    default_to_global: DefaultToGlobal = "",
) -> api.Config:
    # GET /config/{subject}
    """Return the settings of a level, or those in force there."""
    level = parse_level(subject, context)
    state = await operations.registry.fresh_state()
    if is_true(default_to_global):
        return words.config_out(queries.settings_for(state, level), words.find_effective_policy(state, level))
    config = _find_config(state, level)
    if config is None:
        raise SettingNotFound(level_name(level), "compatibility")
    return config


@put(_CONFIG, operation_class=openapi_body(api.ConfigUpdateRequest), **WRITE, opt=access(Operation.CHANGE_POLICY))
async def change_config(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: Subject = "", context: Context = ""
) -> api.ConfigUpdateRequest:
    # PUT /config/{subject}
    """Change some settings of a level, and return all of them.

    A compatibility level replaces the whole policy, including parts that only `steleCompatibility` shows.
    """
    if operations.profile.is_karapace:
        karapace.require_config_body(await read_bytes(request))
    body = await read_first_value(request, api.ConfigUpdateRequest)
    if (size := len(await request.body())) > operations.registry.limits.schema_bytes:
        raise TooLarge(f"the settings have {size} bytes, more than a schema may have")
    level = require_valid_level(parse_level(subject, context))
    changes = words.changes_in(body)
    if isinstance(policy := changes.get("policy"), Policy) and policy.validators:
        await asyncio.to_thread(require_known, policy.validators)
    outcome = await operations.execute(ChangeSettings(level, changes))
    assert isinstance(outcome, SettingsOutcome)
    return words.update_out(outcome.settings or Settings())


@delete(_CONFIG, **WRITE, opt=access(Operation.CHANGE_POLICY))
async def delete_config(
    operations: InjectedOperations, subject: Subject = "", context: Context = ""
) -> api.Config | api.LevelInForce:
    # DELETE /config/{subject}
    """Delete the settings of a level, and return them.

    The profile `karapace` returns the compatibility level in force afterwards.
    """
    level = parse_level(subject, context)
    state = await operations.registry.fresh_state()
    policy = words.find_effective_policy(state, level)
    if operations.profile.mode_first:
        require_writable(state, level)
    if operations.profile.level_after_delete:
        if state.settings_at(level) is not None:
            await operations.execute(ClearSettings(level))
        policy = words.find_effective_policy(operations.registry.state, level)
        return api.LevelInForce(policy.nearest_name)
    if state.settings_at(level) is None and level != _TOP:
        raise SubjectNotFound(level_name(level))
    outcome = await operations.execute(ClearSettings(level))
    assert isinstance(outcome, SettingsOutcome)
    return words.config_out(outcome.settings or Settings(), policy)


@get(_MODE, **READ, opt=access(Operation.READ))
async def get_mode(
    operations: InjectedOperations,
    subject: Subject = "",
    context: Context = "",
    default_to_global: DefaultToGlobal = "",
) -> api.ModeBody:
    # GET /mode/{subject}
    """Return the mode of a level, or the one in force there."""
    level = parse_level(subject, context)
    state = await operations.registry.fresh_state()
    mode = _find_mode(operations, state, level)
    falls_back = operations.profile.mode_falls_back and level.subject is not None
    if is_true(default_to_global) and not falls_back:
        mode = queries.mode_for(state, level)
    if mode is None:
        raise SubjectNotFound(level_name(level)) if falls_back else SettingNotFound(level_name(level), "mode")
    return api.ModeBody(mode.value)


@put(_MODE, operation_class=openapi_body(api.ModeUpdateRequest), **WRITE, opt=access(Operation.CHANGE_POLICY))
async def change_mode(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    subject: Subject = "",
    context: Context = "",
    force: Flag = "",
) -> api.ModeBody:
    # PUT /mode/{subject}
    """Set or delete the mode of a level."""
    body = await read_first_value(request, api.ModeUpdateRequest)
    mode = words.mode_in(body)
    if mode is not None and mode not in operations.profile.modes:
        raise UnknownMode(f"{mode.value} is not a mode of this registry")
    level = require_valid_level(parse_level(subject, context))
    _require_mutable(operations)
    await operations.execute(SetMode(level, _choose_mode(operations, level, mode), force=is_true(force)))
    return api.ModeBody(mode.value if mode is not None else None)


@delete(_MODE, **WRITE, opt=access(Operation.CHANGE_POLICY))
async def delete_mode(
    operations: InjectedOperations, subject: Subject = "", context: Context = "", recursive: Flag = ""
) -> api.ModeBody:
    # DELETE /mode/{subject}
    """Delete the mode of a level, with recursive also those below it, and return what it was."""
    level = parse_level(subject, context)
    _require_mutable(operations)
    state = await operations.registry.fresh_state()
    if state.mode_at(level) is None and level != _TOP and not is_true(recursive):
        raise SubjectNotFound(level_name(level))
    outcome = await operations.execute(ClearMode(level, recursive=is_true(recursive)))
    assert isinstance(outcome, ModeOutcome)
    before = outcome.mode or (Mode.READWRITE if level == _TOP else None)
    return api.ModeBody(before.value if before is not None else None)


@post(
    "/config:batchGet",
    operation_class=openapi_body(LevelConfigsRequest),
    **WRITE,
    opt=access(Operation.READ, Place.INSIDE),
)
async def get_settings_of_levels(operations: InjectedOperations, request: Request[Any, Any, Any]) -> list[LevelConfig]:
    # POST /config:batchGet
    """Return settings and modes of many levels in the order of the request.

    They are those that `GET /config/…` and `GET /mode/…` show.
    """
    names = (await read_first_value(request, LevelConfigsRequest)).levels
    if len(names) > (most := operations.options.max_schemas):
        raise TooLarge(f"the request names {len(names)} levels, more than {most}")
    state = await operations.registry.fresh_state()
    configs = []
    async for name in operations.registry.time_slices.iterate(names):
        level = parse_level(name)
        operations.registry.access.require(Operation.READ, level_resource(level))
        mode = _find_mode(operations, state, level)
        configs.append(LevelConfig(name, _find_config(state, level), mode.value if mode is not None else None))
    return configs


def _find_config(state: State, level: SettingsLevel) -> api.Config | None:
    """Return the settings that a level shows; None if it has none."""
    own = state.settings_at(level)
    if level == _TOP:
        return words.config_out(own or Settings(), (own.policy if own is not None else None) or BACKWARD)
    if own is None and words.find_default_policy(state, level) is None:
        return None
    return words.config_out(own or Settings(), words.find_effective_policy(state, level))


def _find_mode(operations: Operations, state: State, level: SettingsLevel) -> Mode | None:
    """Return the mode that a level shows; None if it has none."""
    own = state.mode_at(level)
    if operations.profile.mode_falls_back and level.subject is not None:
        key = SubjectKey(level.namespace or "", level.subject)
        is_known = state.find_subject(key) is not None or own is not None or state.settings_at(level) is not None
        return queries.mode_for(state, level) if is_known else None
    if state.mode_at(_TOP) is Mode.READONLY_OVERRIDE:
        return queries.mode_for(state, level)
    return own or (Mode.READWRITE if level == _TOP else None)


def _choose_mode(operations: Operations, level: SettingsLevel, mode: Mode | None) -> Mode | None:
    """Return the mode to store. In releases where READONLY_OVERRIDE does not win over other levels, it is READONLY."""
    if mode is Mode.READONLY_OVERRIDE and level == _TOP and not operations.profile.override_wins:
        return Mode.READONLY
    return mode


def _require_mutable(operations: Operations) -> None:
    if not operations.options.mode_mutable:
        raise ModeChangeRefused("Mode changes are not allowed")


ROUTES = [get_config, change_config, delete_config, get_mode, change_mode, delete_mode, get_settings_of_levels]
