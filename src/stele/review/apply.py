"""Applies a plan to a registry. Applying it twice changes nothing the second time."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stele.client import Schema, SchemaReference, SchemaRegistryClient
from stele.client.request import JSON, Effect, Request, build_path, encode_body, json_decoder
from stele.core.policy_json import PolicyJson
from stele.errors import InvalidRequest
from stele.review.plan import PENDING, Action, Plan, SubjectPlan
from stele.review.registry import read_subject
from stele.review.workspace import Workspace
from stele.service.policies import PolicyAnswer, PolicyChange

Report = Callable[[SubjectPlan], None]
"""Called after each subject that changed, with its plan; version is the registered version."""


def apply_plan(workspace: Workspace, client: SchemaRegistryClient, plan: Plan, report: Report) -> list[SubjectPlan]:
    """Apply a plan: first policies, then schemas after those they refer to, then deletions.

    Nothing is changed if any part of the plan is refused: raises `InvalidRequest`. Raises what the client raises, such
    as `Incompatible` if another writer registered a version in between. Changes that were made stay; a new plan
    continues from there.
    """
    if plan.is_refused:
        raise InvalidRequest("the plan has schemas that the registry would refuse; nothing was changed")
    for each in plan.subjects:
        if each.steps:
            _set_policy(workspace, client, each)
    done: dict[str, SubjectPlan] = {}
    for each in plan.subjects:
        result = each
        if each.action in (Action.CREATE, Action.REGISTER):
            result = _register(workspace, client, each, done)
        elif each.action is Action.DELETE:
            client.delete_subject(each.subject)
        done[each.subject] = result
        if result.is_change:
            report(result)
    return list(done.values())


def _register(
    workspace: Workspace, client: SchemaRegistryClient, plan: SubjectPlan, done: dict[str, SubjectPlan]
) -> SubjectPlan:
    references = tuple(_resolve_pending(each, done) for each in plan.references)
    entry = workspace.manifest.subjects[plan.subject]
    file = workspace.files[entry.path]
    schema = Schema(file.text, file.format.upper(), references)
    is_normalized = workspace.manifest.is_normalized(plan.subject)
    registered = client.register(plan.subject, schema, normalize=is_normalized)
    version = registered.version or client.lookup(plan.subject, schema, normalize=is_normalized).version
    return msgspec.structs.replace(plan, version=version, references=references)


def _resolve_pending(reference: SchemaReference, done: dict[str, SubjectPlan]) -> SchemaReference:
    if reference.version != PENDING:
        return reference
    return msgspec.structs.replace(reference, version=done[reference.subject].version)


def _set_policy(workspace: Workspace, client: SchemaRegistryClient, plan: SubjectPlan) -> None:
    """Set a subject's own policy and ruleset. A setting that the manifest does not name stays as it is."""
    wanted = workspace.manifest.policy_of(plan.subject)
    ruleset = workspace.manifest.ruleset_of(plan.subject)
    names = {step.what for step in plan.steps}
    if names == {"compatibility"} and wanted is not None and wanted.exact_name is not None:
        client.set_config(wanted.exact_name, plan.subject)
        return
    state = read_subject(client, plan.subject)
    if not state.is_exact:
        raise InvalidRequest(
            f"subject {plan.subject!r}: this registry knows only the common policies, and no rulesets; give"
            " one of those"
        )
    policy = wanted or state.own_policy
    change = PolicyChange(PolicyJson.from_policy(policy) if policy is not None else None, ruleset or state.own_ruleset)
    client.send(
        Request(
            "PUT",
            build_path("api", "policies", plan.subject),
            json_decoder(PolicyAnswer),
            body=encode_body(change),
            media=JSON,
            effect=Effect.WRITE,
            subject=plan.subject,
        )
    )
