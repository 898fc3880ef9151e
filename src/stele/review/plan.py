"""Plan of the changes that make a registry match a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from fnmatch import fnmatchcase

import msgspec

from stele.client import Schema, SchemaReference, SchemaRegistryClient
from stele.core.policy import Policy
from stele.core.policy_json import PolicyJson
from stele.errors import InvalidRequest, NotFound
from stele.review import registry
from stele.review.check import check_file
from stele.review.registry import LATEST, SubjectState
from stele.review.report import FileReport, Outcome
from stele.review.workspace import Workspace
from stele.service.check import Candidate

PENDING = 0
"""Version of a reference to a subject whose next version this plan registers."""


class Action(Enum):
    """Action of a plan on a subject's schema."""

    NONE = "none"
    """The newest version is the file's."""
    CREATE = "create"
    """Register the first version."""
    REGISTER = "register"
    """Register a further version."""
    REFUSE = "refuse"
    """Nothing: the file is not a schema, or the policy refuses it."""
    DRIFT = "drift"
    """Nothing: the file is an older version, because a newer one was registered by other means."""
    DELETE = "delete"
    """Delete the subject softly: the folder does not have it."""
    UNMANAGED = "unmanaged"
    """Nothing: the folder does not have the subject, and pruning was not asked for."""


class PolicyStep(msgspec.Struct, frozen=True):
    """A change of a subject's own policy or ruleset; before is None for one that was not set."""

    what: str
    before: str | None
    after: str


class SubjectPlan(msgspec.Struct, frozen=True):
    """The planned changes of one subject.

    version     the file's version for NONE and DRIFT, the registered version after the plan was applied, else 0
    newest      newest version in the registry; 0 for a new subject, and for UNMANAGED and DELETE
    report      result of the file's review; None if the file was not reviewed
    references  references of the schema, with the version PENDING for versions that this plan registers
    steps       changes of policy and ruleset, made before any registration
    """

    subject: str
    action: Action
    file: str = ""
    version: int = 0
    newest: int = 0
    report: FileReport | None = None
    references: tuple[SchemaReference, ...] = ()
    steps: tuple[PolicyStep, ...] = ()

    @property
    def is_change(self) -> bool:
        """Whether applying changes the registry."""
        return self.action in _CHANGES or bool(self.steps)


_CHANGES = frozenset({Action.CREATE, Action.REGISTER, Action.DELETE})


class Plan(msgspec.Struct, frozen=True):
    """The planned changes, in the order in which they can be applied."""

    subjects: tuple[SubjectPlan, ...]

    @property
    def is_refused(self) -> bool:
        """Whether the plan refuses a schema of the folder."""
        return any(each.action is Action.REFUSE for each in self.subjects)

    @property
    def differs(self) -> bool:
        """Whether the registry differs from the folder; subjects that the folder does not own do not count."""
        return any(each.is_change or each.action is Action.DRIFT for each in self.subjects)

    @property
    def reports(self) -> list[FileReport]:
        """The reviews of the files."""
        return [each.report for each in self.subjects if each.report is not None]


def make_plan(workspace: Workspace, client: SchemaRegistryClient, *, prune: bool = False) -> Plan:
    """Compare a folder with a registry, without changing it.

    Raises `InvalidRequest` for references in a cycle or to files of no subject, and what the client raises.
    """
    planner = _Planner(workspace, client)
    done = [planner.plan_file(path) for path in planner.order]
    return Plan((*done, *planner.plan_others(prune=prune)))


class _Planner:
    def __init__(self, workspace: Workspace, client: SchemaRegistryClient) -> None:
        self._workspace = workspace
        self._manifest = workspace.manifest
        self._client = client
        self._subjects = {entry.path: name for name, entry in self._manifest.subjects.items()}
        self.order = workspace.graph.require_order(self._sorted_files())
        strays = [path for path in self.order if path not in self._subjects]
        if strays:
            raise InvalidRequest(f"{strays[0]} is needed by another file and has no subject: give it one")
        self._done: dict[str, SubjectPlan] = {}

    def _sorted_files(self) -> Sequence[str]:
        """Return the files in an order in which explicitly referenced subjects precede those that need them."""
        files = {name: path for path, name in self._subjects.items()}
        order: dict[str, None] = {}
        waiting = [(name, False) for name in reversed(files)]
        seen: set[str] = set()
        while waiting:
            name, is_entered = waiting.pop()
            if is_entered:
                order[files[name]] = None
            elif name not in seen:
                seen.add(name)
                waiting.append((name, True))
                named = (target.partition(":")[0] for target in self._manifest.subjects[name].references.values())
                waiting += [(target, False) for target in named if target in files]
        return tuple(order)

    def plan_file(self, path: str) -> SubjectPlan:
        """Return the plan for the subject of a file. Files that it refers to must have been planned before."""
        subject = self._subjects[path]
        state = registry.read_subject(self._client, subject)
        policy = self._manifest.policy_of(subject)
        steps = tuple(self._policy_steps(subject, state))
        references = self._references(path, subject)
        version = self._find_version(path, subject, references)
        newest = state.numbers[-1] if state.numbers else 0
        report = None
        if version:
            action = Action.NONE if version == newest else Action.DRIFT
        else:
            report = self._review(path, state, policy or state.policy, references)
            action = Action.CREATE if not newest else Action.REGISTER
            if report.outcome in (Outcome.FAILED, Outcome.INVALID):
                action = Action.REFUSE
        display_path = self._workspace.shown_path(path)
        plan = SubjectPlan(subject, action, display_path, version, newest, report, references, steps)
        self._done[subject] = plan
        return plan

    def plan_others(self, *, prune: bool) -> Iterable[SubjectPlan]:
        """Yield the plans for subjects that the folder owns and does not have."""
        for subject in sorted(self._client.subjects()):
            if subject in self._manifest.subjects:
                continue
            is_owned = any(fnmatchcase(subject, pattern) for pattern in self._manifest.owns or ("*",))
            if is_owned:
                yield SubjectPlan(subject, Action.DELETE if prune else Action.UNMANAGED)

    def _policy_steps(self, subject: str, state: SubjectState) -> Iterable[PolicyStep]:
        policy, ruleset = self._manifest.policy_of(subject), self._manifest.ruleset_of(subject)
        if policy is not None and policy != state.own_policy:
            before = None if state.own_policy is None else policy_text(state.own_policy)
            yield PolicyStep("compatibility", before, policy_text(policy))
        if ruleset is not None and ruleset != state.own_ruleset:
            yield PolicyStep("ruleset", state.own_ruleset, ruleset)

    def _references(self, path: str, subject: str) -> tuple[SchemaReference, ...]:
        """Return the direct references of a file: those in the manifest, and those found in the file."""
        by_hand = self._manifest.subjects[subject].references
        references = {name: self._reference(name, target) for name, target in by_hand.items()}
        for name, target in self._workspace.graph.imports(path).items():
            references.setdefault(name, self._reference(name, self._subjects[target]))
        return tuple(references.values())

    def _reference(self, name: str, target: str) -> SchemaReference:
        planned = self._done.get(target)
        if planned is not None:
            version = planned.version if planned.action in (Action.NONE, Action.DRIFT) else PENDING
            return SchemaReference(name, target, version)
        reference = registry.parse_reference(name, target)
        if reference.version != LATEST:
            return reference
        newest = self._client.version(reference.subject)
        return msgspec.structs.replace(reference, version=newest.version)

    def _find_version(self, path: str, subject: str, references: tuple[SchemaReference, ...]) -> int:
        """Return the version that the file is registered as, 0 for none."""
        if any(reference.version == PENDING for reference in references):
            return 0
        file = self._workspace.files[path]
        schema = Schema(file.text, file.format.upper(), references)
        try:
            return self._client.lookup(subject, schema, normalize=self._manifest.is_normalized(subject)).version
        except NotFound:
            return 0

    def _review(
        self, path: str, state: SubjectState, policy: Policy, references: tuple[SchemaReference, ...]
    ) -> FileReport:
        file = self._workspace.files[path]
        local = self._workspace.graph.imports(path)
        remote = tuple(each for each in references if each.name not in local and each.version != PENDING)
        texts = registry.resolve_references(self._client, remote)
        schema: Candidate = self._workspace.candidate(path, texts)
        rules = msgspec.structs.replace(state.rules_for(file.format), policy=policy)
        preferred = self._manifest.ruleset_of(state.name)
        if preferred is not None:
            rules = msgspec.structs.replace(rules, ruleset=preferred)
        baselines = registry.read_baselines(self._client, state, policy)
        report = check_file(self._workspace.shown_path(path), file.format, schema, baselines, rules)
        return report.without_positions() if file.is_derived else report


def policy_text(policy: Policy) -> str:
    """Return a short text for a policy: its common name, or its value for each direction."""
    if policy.exact_name is not None:
        return policy.exact_name
    exact = PolicyJson.from_policy(policy)
    parts: list[str] = [exact.kind]
    if exact.kind == "directional":
        parts = [f"backward {exact.backward}", f"forward {exact.forward}"]
    if exact.validators:
        parts.append(f"checkers {', '.join(exact.validators)}")
    return ", ".join(parts)
