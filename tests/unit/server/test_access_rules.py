"""Access rules in effect: over HTTP, on two nodes, from files and from the entries of other registries."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import structlog
from structlog.testing import capture_logs
from tests.support.authentication import HeaderAuthenticator

from stele.apis.confluent.acls import Acl, make_rule, read_rules
from stele.apis.pravega.acl_file import parse_acl_file, parse_acl_users
from stele.core.access import AccessRule, AccessRules, Operation, Resource, ResourceType
from stele.core.access_rule_text import parse_resource, parse_rule, print_rule
from stele.core.commands import ChangeItems
from stele.errors import Conflict, InvalidRequest
from stele.server.access_setup import make_access
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings, load_settings
from stele.service.access import CALLER, Caller, Principal
from stele.service.access_rules import COLLECTION, RegistryAccess, add_rule, list_rules, remove_rule
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore

SCHEMA = {"schema": '"string"'}


class Node:
    """A node of a registry where the header `user` names the caller."""

    def __init__(self, registry: Registry, **settings: Any) -> None:
        values = {"access": "deny", "super_users": ("user:root",), **settings}
        server_settings = ServerSettings(**values)
        self.registry = registry
        self.access = registry.access = make_access(registry, server_settings)
        self.front = build_dispatcher(registry, server_settings, Metrics())
        self.front._authenticator = HeaderAuthenticator(
            lambda headers: Principal(dict(headers).get(b"user", b"").decode())
        )
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(self.front), base_url="http://registry")

    async def ask(self, user: str, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """Send a request as a user, or anonymously for '', and return the response."""
        return await self._http.request(method, path, json=body, headers={"user": user} if user else {}, **more)

    async def grant(self, rule: str, user: str = "root") -> httpx.Response:
        """Add a rule."""
        return await self.ask(user, "POST", "/api/access/rules", {"rule": rule})

    async def revoke(self, rule: str, user: str = "root") -> httpx.Response:
        """Remove a rule."""
        return await self.ask(user, "DELETE", "/api/access/rules", params={"rule": rule})


@pytest.fixture
async def nodes() -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes of one log."""
    store = MemoryStore()
    registries = [await Registry.open(MemoryLog(store)) for _ in range(2)]
    yield Node(registries[0]), Node(registries[1])
    for registry in registries:
        await registry.close()


READER = "allow user:ann reader subject orders"


async def test_a_right_ends_at_the_next_request_on_every_node(nodes: tuple[Node, Node]) -> None:
    """A removed permission has no effect from the next request on, even for cached and immutable responses."""
    first, second = nodes
    assert (await first.ask("root", "POST", "/subjects/orders/versions", SCHEMA)).status_code == 200
    for node in nodes:
        assert (await node.ask("ann", "GET", "/schemas/ids/1")).status_code in {403, 404}
    assert (await first.grant(READER)).status_code == 201
    assert (await first.grant(READER)).status_code == 200
    for node in nodes:
        for _ in range(3):
            assert (await node.ask("ann", "GET", "/schemas/ids/1")).status_code == 200
            assert (await node.ask("ann", "GET", "/subjects/orders/versions/1")).status_code == 200
    assert (await second.revoke(READER)).status_code == 200
    for node in nodes:
        assert (await node.ask("ann", "GET", "/schemas/ids/1")).status_code in {403, 404}
        assert (await node.ask("ann", "GET", "/subjects/orders/versions/1")).status_code in {403, 404}
        assert (await node.ask("root", "GET", "/schemas/ids/1")).status_code == 200


async def test_rules_are_managed_over_http(nodes: tuple[Node, Node]) -> None:
    """Rules are listed with their source, are explained, and can be removed once."""
    node, other = nodes
    assert (await node.grant("allow user:ann writter registry")).status_code == 422
    await node.grant(READER)
    listed = (await other.ask("root", "GET", "/api/access/rules")).json()
    assert listed == {
        "default": "deny",
        "super_users": ["user:root"],
        "rules": [{"rule": READER, "source": COLLECTION}],
    }
    for user, operation, allowed, why in (
        ("user:ann", "read", True, f"the rule `{READER}` allows it"),
        ("user:bob", "read", False, "no rule matches, and access=deny"),
        ("user:root", "purge", True, "user:root is one of the super_users in the settings"),
    ):
        question = {"principal": user, "operation": operation, "resource": "subject orders"}
        answer = (await node.ask("root", "GET", "/api/access/explain", params=question)).json()
        assert (answer["allowed"], answer["why"]) == (allowed, why)
    for user, status in (("ann", 403), ("", 401)):
        assert (await node.ask(user, "GET", "/api/access/rules")).status_code == status
        assert (await node.grant("allow user:ann admin registry", user)).status_code == status
    assert (await node.revoke(READER)).status_code == 200
    assert (await node.revoke(READER)).status_code == 404


async def test_nobody_locks_himself_out(nodes: tuple[Node, Node]) -> None:
    """A change that the caller could not undo is refused; a super user may make it."""
    node, _ = nodes
    mine = "allow user:ann admin registry"
    await node.grant(mine)
    assert (await node.revoke(mine, "ann")).status_code == 409
    assert (await node.grant("deny * manage-access registry", "ann")).status_code == 409
    denial = [
        {
            "principal": "User:*",
            "resource": "*",
            "resource_type": "REGISTRY",
            "operation": "ALL",
            "permission": "DENY",
        }
    ]
    assert (await node.ask("ann", "POST", "/security/acls", denial)).status_code == 409
    assert (await node.revoke(mine)).status_code == 200


async def test_redpandas_entries_decide(nodes: tuple[Node, Node]) -> None:
    """ACL entries of Redpanda's API are access rules: here, ann may write subjects that begin with `orders`."""
    node, other = nodes
    entry = {
        "principal": "User:ann",
        "resource": "orders",
        "resource_type": "SUBJECT",
        "pattern_type": "PREFIXED",
        "operation": "WRITE",
        "permission": "ALLOW",
    }
    assert (await node.ask("ann", "POST", "/subjects/orders-value/versions", SCHEMA)).status_code == 403
    response = await node.ask("root", "POST", "/security/acls", [entry])
    assert response.status_code == 201
    assert "stele-not-active" not in response.headers
    assert (await other.ask("ann", "POST", "/subjects/orders-value/versions", SCHEMA)).status_code == 200
    assert (await other.ask("ann", "POST", "/subjects/other/versions", SCHEMA)).status_code == 403
    assert (await node.ask("root", "DELETE", "/security/acls", [entry])).status_code == 200
    assert (await other.ask("ann", "POST", "/subjects/orders-value/versions", SCHEMA)).status_code == 403
    bad = [{**entry, "host": "example.org"}]
    assert (await node.ask("root", "POST", "/security/acls", bad)).status_code == 422


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        (
            Acl("User:ann", "orders", "SUBJECT", "READ", "ALLOW"),
            "allow user:ann read,list subject orders",
        ),
        (
            Acl("User:*", ":.team:o", "SUBJECT", "REMOVE", "DENY", "PREFIXED", "10.0.0.1"),
            "deny * delete,purge subject o* in team from 10.0.0.1",
        ),
        (
            Acl("RedpandaRole:dev", "*", "SUBJECT", "ALL", "ALLOW"),
            "allow group:dev owner subject * in *",
        ),
        (
            Acl("ann", "*", "REGISTRY", "ALTER_CONFIGS", "ALLOW"),
            "allow user:ann change-policy registry itself",
        ),
        (
            Acl("dev", "*", "REGISTRY", "ALL", "ALLOW", principal_type="REDPANDA_ROLE"),
            "allow group:dev admin registry itself",
        ),
    ],
)
def test_which_rule_an_entry_of_redpanda_is(entry: Acl, rule: str) -> None:
    """Each ACL entry of Redpanda becomes one access rule; an entry for the registry covers no subject."""
    assert print_rule(make_rule(entry)) == rule


def test_an_old_entry_with_a_host_that_is_no_address_only_denies() -> None:
    """An old entry whose host is no address is ignored if it allows, and applies to all hosts if it denies."""
    allowing = msgspec.json.encode(Acl("User:ann", "*", "SUBJECT", "ALL", "ALLOW", host="here"))
    assert read_rules(allowing) == ()
    [rule] = read_rules(allowing.replace(b"ALLOW", b"DENY"))
    assert (rule.allow, rule.host) == (False, "*")


PRAVEGA = """
# users
admin:$2y$05$abc:prn::/*,READ_UPDATE
ann:1000:prn::/namespace:team/*,READ;prn::/namespace:team/group:orders,READ_UPDATE
bob:x:prn::/namespace:/group:o%2Fa*/schemas:*,READ_UPDATE;prn::/namespace:team,READ_UPDATE
"""


@pytest.mark.parametrize(
    ("user", "operation", "resource", "allowed"),
    [
        ("admin", Operation.REGISTER, "subject any in team", True),
        ("admin", Operation.MANAGE_ACCESS, "registry", False),
        ("ann", Operation.READ, "subject other in team", True),
        ("ann", Operation.REGISTER, "subject other in team", False),
        ("ann", Operation.DELETE, "subject orders in team", True),
        ("ann", Operation.READ, "subject orders", False),
        ("bob", Operation.REGISTER, "subject o/abc", True),
        ("bob", Operation.REGISTER, "subject p", False),
        ("bob", Operation.REGISTER, "subject new in team", True),
        ("bob", Operation.READ, "subject new in team", False),
    ],
)
def test_pravegas_file_decides(user: str, operation: Operation, resource: str, allowed: bool) -> None:
    """Pravega's resources form a tree with wildcards, and each of its two permissions stands for several operations."""
    rules = AccessRules(parse_acl_file(PRAVEGA), default_allow=False)
    assert rules.decide(frozenset({f"user:{user}"}), operation, parse_resource(resource)).allowed is allowed


def test_pravegas_file_has_users_and_hashes() -> None:
    """The hashes of Pravega's file are read for the authenticator; the error for an invalid line names it."""
    assert [(user.name, user.password_hash) for user in parse_acl_users(PRAVEGA)][:2] == [
        ("admin", "$2y$05$abc"),
        ("ann", "1000"),
    ]
    for line in ("ann", "ann:x:prn::/namespace:a", "ann:x:prn::/topic:a,READ", "ann:x:*,WRITE"):
        with pytest.raises(InvalidRequest, match="line 2"):
            parse_acl_file(f"\n{line}")


async def test_a_file_of_rules_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """An invalid file leaves the rules unchanged; rules of a file cannot be changed through the API."""
    file = tmp_path / "rules.txt"
    file.write_text(f"# for the team\n{READER}\n")
    registry = await Registry.open(MemoryLog(MemoryStore()))
    node = Node(registry, access_rules=str(file))
    request = (frozenset({"user:ann"}), Operation.READ, Resource(ResourceType.SUBJECT, "", "orders"))
    assert node.access.rules.decide(*request).allowed
    with pytest.raises(Conflict, match=r"rules\.txt"):
        await remove_rule(registry, parse_rule(READER))
    file.write_text("allow user:ann readder subject orders\n")
    structlog.configure(cache_logger_on_first_use=False)
    with capture_logs() as logs:
        node.access.read_files()
        node.access.read_files()
    assert [row["log_level"] for row in logs] == ["error"]
    assert node.access.rules.decide(*request).allowed
    file.write_text("")
    node.access.read_files()
    assert not node.access.rules.decide(*request).allowed
    os.remove(file)
    with pytest.raises(InvalidRequest):
        Node(registry, access_rules=str(file))
    await registry.close()


async def test_a_server_that_nobody_could_manage_does_not_start() -> None:
    """A server needs a super user, or a rule in the log that allows managing access, to start."""
    registry = await Registry.open(MemoryLog(MemoryStore()))
    with pytest.raises(InvalidRequest, match="super_users"):
        Node(registry, super_users=())
    await add_rule(registry, parse_rule("allow user:ann admin registry"))
    Node(registry, super_users=())
    with pytest.raises(InvalidRequest, match="super_users"):
        load_settings({"super_users": "root"}, environ={})
    await registry.close()


async def test_a_rule_that_cannot_be_understood_denies_everything() -> None:
    """An unreadable rule denies everything, since it may be a denial written by a newer release."""
    registry = await Registry.open(MemoryLog(MemoryStore()))
    node = Node(registry)
    await add_rule(registry, parse_rule(READER))
    await registry.execute(ChangeItems(COLLECTION, {("x",): b'{"principal":"*","operations":["read"],"until":1}'}))
    assert (await node.ask("ann", "GET", "/subjects/orders/versions")).status_code == 403
    assert (await node.ask("root", "GET", "/subjects")).status_code == 200
    await registry.close()


async def test_rules_of_addresses_heed_them(nodes: tuple[Node, Node]) -> None:
    """With rules about addresses, a response to one address is not returned to another."""
    node, _ = nodes
    await node.ask("root", "POST", "/subjects/orders/versions", SCHEMA)
    await node.grant("allow user:ann reader subject orders from 10.0.0.9")
    for address, status in (("10.0.0.9", 200), ("10.0.0.8", 403), ("10.0.0.9", 200)):
        transport = httpx.ASGITransport(node.front, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://registry") as client:
            response = await client.get("/subjects/orders/versions/1", headers={"user": "ann"})
        assert response.status_code == status


async def test_rules_without_files_and_log_are_listed_too() -> None:
    """Rules can be listed and added in a registry without a server."""
    registry = await Registry.open(MemoryLog(MemoryStore()))
    assert (await list_rules(registry)).default == "allow"
    registry.access = RegistryAccess(registry)
    token = CALLER.set(Caller(Principal("ann")))
    await add_rule(registry, AccessRule("user:ann", ("reader",)))
    CALLER.reset(token)
    assert [row.rule for row in (await list_rules(registry)).rules] == ["allow user:ann reader registry"]
    await registry.close()
