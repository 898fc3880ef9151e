"""The home page: contents of the registry, recent changes, and the health of the node."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.core.access import Operation
from stele.core.model import SubjectKey
from stele.service.journal import JournalEntry, read_page
from stele.ui.links import subject_path
from stele.ui.pages import Control, Page, PageRequest

_RECORDS: Final = 200
"""Number of records at the end of the log that are searched for changes."""
_CHANGES: Final = 15
_QUIET: Final = frozenset({"item_changed", "item_removed", "ids_skipped", "ruleset_adopted"})
"""Kinds of changes that the list leaves out."""
_PRAVEGA_GROUP: Final = {
    "groupName": "orders",
    "groupProperties": {
        "serializationFormat": {"serializationFormat": "Avro"},
        "compatibility": {"policy": "Backward"},
        "allowMultipleTypes": False,
    },
}
_OLD_SECONDS: Final = 15.0
"""Seconds since the log was last read to its end after which the node counts as catching up."""


class RegistrySize(msgspec.Struct, frozen=True):
    """Counts of what the caller may see.

    subjects    subjects with an active version
    versions    active versions
    namespaces  namespaces that hold a subject
    deleted     subjects whose versions are all soft-deleted
    formats     subjects by the format of their newest version
    policies    subjects by the policy in force, or the nearest stricter one that has a common name
    """

    subjects: int
    versions: int
    namespaces: int
    deleted: int
    formats: dict[str, int]
    policies: dict[str, int]


class NodeHealth(msgspec.Struct, frozen=True):
    """Health of the node that serves the page.

    status    `ready`, `cannot write` or `catching up`
    reason    why it is not ready; '' if it is
    store     kind of the store
    position  newest record of the log that the node has read
    lag       number of records of other nodes that it had not read at its last check
    """

    status: str
    reason: str
    store: str
    position: int
    lag: int


class RecentChange(msgspec.Struct, frozen=True):
    """A recent change.

    entry  entry of the journal
    path   path of the page of the changed object, below `/ui`; '' for none
    """

    entry: JournalEntry
    path: str


class FirstCommand(msgspec.Struct, frozen=True):
    """A command that registers a first schema in a dialect."""

    dialect: str
    command: str


class HomePage(msgspec.Struct, frozen=True):
    """Content of the home page; `commands` is filled only if the registry is empty.

    refused  number of registrations that the policy refused today; None if the caller may not know it
    actions  links to other common tasks
    """

    size: RegistrySize
    health: NodeHealth
    changes: Sequence[RecentChange]
    commands: Sequence[FirstCommand]
    register: Control
    actions: Sequence[Control]
    refused: int | None


async def view_home(page: PageRequest) -> HomePage:
    """Show the contents of the registry, the recent changes, and the health of the node."""
    rows = await page.site.subjects.list_rows()
    counts = Counter([row.facets for row in rows])
    size = RegistrySize(
        subjects=sum(count for facets, count in counts.items() if facets.state == "active"),
        versions=sum(row.versions for row in rows),
        namespaces=len({row.namespace for row in rows}),
        deleted=sum(count for facets, count in counts.items() if facets.state == "deleted"),
        formats=_sum_counts((facets.format, count) for facets, count in counts.items() if facets.format),
        policies=_sum_counts((facets.policy, count) for facets, count in counts.items()),
    )
    return HomePage(
        size=size,
        health=_find_health(page),
        changes=await _list_changes(page),
        commands=[] if rows else _list_first_commands(page),
        register=page.make_control("Register a schema", "/register", Operation.REGISTER),
        actions=[Control("Check", "/check"), Control("Decode", "/decode"), Control("Import", "/transfer")],
        refused=await _count_refused(page),
    )


async def _count_refused(page: PageRequest) -> int | None:
    """Return how many registrations were refused since midnight; the number may be some seconds old.

    Returns None if the caller may not read the audit trail.
    """
    if page.find_refusal(Operation.READ_AUDIT):
        return None
    return await page.site.refused.count_today()


def _sum_counts(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the sums by name, the largest first."""
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[name] = sums.get(name, 0) + count
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def _find_health(page: PageRequest) -> NodeHealth:
    registry = page.registry
    status, reason = "ready", ""
    if registry.write_failure is not None:
        status, reason = "cannot write", str(registry.write_failure)
    elif (age := time.monotonic() - registry.caught_up_at) > _OLD_SECONDS:
        status, reason = "catching up", f"the log was last read to its end {age:.0f} seconds ago"
    return NodeHealth(status, reason, page.options.store, registry.state.seq, registry.lag_records)


async def _list_changes(page: PageRequest) -> list[RecentChange]:
    """Return the newest changes that the caller may see, newest first."""
    end = page.registry.state.seq
    journal = await read_page(page.registry, max(0, end - _RECORDS), _RECORDS)
    registrations = {(entry.seq, entry.subject) for entry in journal.entries if entry.kind == "registered"}
    entries = [
        entry
        for entry in reversed(journal.entries)
        if entry.kind not in _QUIET
        and (entry.kind != "subject_created" or (entry.seq, entry.subject) not in registrations)
    ][:_CHANGES]
    return [RecentChange(entry, _find_path(entry)) for entry in entries]


def _find_path(entry: JournalEntry) -> str:
    if entry.namespace is None or entry.subject is None:
        return ""
    path = subject_path(SubjectKey(entry.namespace, entry.subject))
    return f"{path}?version={entry.version}" if entry.version and entry.kind == "registered" else path


def _list_first_commands(page: PageRequest) -> list[FirstCommand]:
    """Return one command to copy for each dialect."""
    root = page.base_uri
    text = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
    as_json = "-H 'Content-Type: application/json'"
    wrapped = json.dumps({"schema": text})
    definition = json.dumps({"schemaDefinition": json.loads(text)})
    idl = json.dumps({"schemaIdl": text, "schemaType": "AVRO"})
    return [
        FirstCommand(title, command)
        for title, command in (
            ("Confluent and Redpanda", f"curl {root}/subjects/orders-value/versions {as_json} \\\n  -d '{wrapped}'"),
            ("CNCF Schema Registry", f'curl -X PUT {root}/schemagroups/shop {as_json} -d \'{{"format":"avro"}}\''),
            ("Pravega", f"curl {root}/v1/groups {as_json} \\\n  -d '{json.dumps(_PRAVEGA_GROUP)}'"),
            ("AVRO-1124 and schema-repo", f"curl -X PUT {root}/schema-repo/orders -d ''"),
            (
                "RocketMQ",
                f"curl {root}/schema-registry/v1/subject/orders/schema/Order {as_json} \\\n  -d '{idl}'",
            ),
            (
                "OpenSchema",
                f"curl {root}/openschema/subjects/orders/versions {as_json} \\\n  -d '{definition}'",
            ),
        )
    ]


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [
        Page(
            "/ui",
            view_home,
            "home.html.j2",
            access(Operation.LIST, Place.LIST) | {VOLATILE: True},
            menu="",
            twin="/ui/home.json",
        )
    ]
