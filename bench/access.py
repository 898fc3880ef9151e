"""Costs of access control: a decision among 10,000 rules, and a read by id of an authenticated user.

The read is the hot path: a connection repeats its cached answer. One server has no authentication. The other checks a
password with each request and has 10,000 rules. Short rounds alternate, so that other load affects both alike. The
figures are medians: of the CPU time per request, and of the ratio of two rounds that follow each other.

    python -m bench.access
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path

from bench.http_load import Client, cpu_seconds, run_clients
from bench.report import Row, report
from bench.server_process import STELE, run_server

from stele.core.access import AccessRule, AccessRules, NamePattern, Operation, Resource, ResourceType
from stele.core.access_rule_text import print_rule

ROUNDS, SECONDS, CONNECTIONS, SCHEMAS, RULES, DECISIONS = 15, 1.0, 16, 200, 10_000, 9_000
PASSWORD = "open-sesame"


# --- decisions ------------------------------------------------------------------------------------------------------


def _make_rule(number: int, principal: str, pattern: NamePattern, name: str) -> AccessRule:
    return AccessRule(principal, ("writer",), number % 7 > 0, ResourceType.SUBJECT, "", name, pattern)


RULE_SETS = {
    "names, of one user": [_make_rule(n, "user:ann", NamePattern.LITERAL, f"team{n}-orders") for n in range(RULES)],
    "prefixes, of one user": [_make_rule(n, "user:ann", NamePattern.PREFIX, f"team{n}-") for n in range(RULES)],
    "globs, of one user": [_make_rule(n, "user:ann", NamePattern.GLOB, f"team{n}-*-v?lue") for n in range(RULES)],
    "prefixes, of 1,000 users": [
        _make_rule(n, f"user:u{n % 1000}", NamePattern.PREFIX, f"team{n}-") for n in range(RULES)
    ],
}


def measure_decisions() -> list[Row]:
    """Return the time of a first decision and of a cached one."""
    rows: list[Row] = []
    for name, rules in RULE_SETS.items():
        started = time.process_time()
        indexed = AccessRules(rules, default_allow=False)
        building = time.process_time() - started
        principals = frozenset({"user:ann", "group:dev", "group:ops"})
        resources = [Resource(ResourceType.SUBJECT, "", f"team{n}-orders-value") for n in range(DECISIONS)]
        times = []
        for operation in (Operation.LIST, Operation.READ, Operation.READ):  # the first round compiles the globs
            started = time.process_time()
            for resource in resources:
                indexed.decide(principals, operation, resource)
            times.append((time.process_time() - started) / DECISIONS * 1e6)
        rows.append(
            {
                "10,000 rules": name,
                "µs per new decision": round(times[1], 2),
                "µs per remembered decision": round(times[2], 2),
                "ms to make them ready": round(building * 1000),
            }
        )
    return rows


# --- reads ----------------------------------------------------------------------------------------------------------


def serve(folder: Path, **settings: str) -> AbstractContextManager[tuple[int, int]]:
    """Run a server with these settings and yield (port, pid)."""
    folder.mkdir()
    environment = {f"STELE_{name.upper()}": value for name, value in settings.items()}
    return run_server(lambda port: [sys.executable, *STELE, "--port", str(port)], folder, environment)


def _register_schemas(port: int, authorization: str) -> None:
    for number in range(SCHEMAS):
        schema = json.dumps({"type": "fixed", "name": f"F{number}", "size": 4})
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/subjects/team{number}-orders/versions",
            json.dumps({"schema": schema}).encode(),
            {"content-type": "application/json", "authorization": authorization},
        )
        urllib.request.urlopen(request).close()


def _make_clients(port: int, authorization: str) -> list[Client]:
    requests = [
        f"GET /schemas/ids/{number} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {authorization}\r\n\r\n".encode()
        for number in range(1, SCHEMAS + 1)
    ]
    return [Client(port, itertools.cycle(requests[start:] + requests[:start])) for start in range(CONNECTIONS)]


def measure_reads(folder: Path) -> list[Row]:
    """Return the CPU time of a read from the open server and from the one with access control."""
    import bcrypt

    authorization = "Basic " + base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
    passwords, rules = folder / "users", folder / "rules"
    passwords.write_text(f"ann:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(5)).decode()}\n")
    lines = [
        print_rule(AccessRule("user:ann", ("writer",), True, ResourceType.SUBJECT, "", f"team{n}-orders"))
        for n in range(RULES)
    ]
    rules.write_text("\n".join([*lines, "allow user:root admin registry"]))
    closed = {
        "access": "deny",
        "access_rules": str(rules),
        "authentication": "basic",
        "password_file": str(passwords),
    }
    micros: dict[str, list[float]] = {"open": [], "closed": []}
    with serve(folder / "open") as one, serve(folder / "closed", **closed) as other:
        servers = {"open": one, "closed": other}
        for port, _ in servers.values():
            _register_schemas(port, authorization)
        for number in range(ROUNDS + 1):
            for name, (port, pid) in servers.items():
                before = cpu_seconds(pid)
                answered = asyncio.run(run_clients(_make_clients(port, authorization), SECONDS))
                if number:  # the first round is a warm-up
                    micros[name].append((cpu_seconds(pid) - before) / answered * 1e6)
    ratios = [closed / open_ for open_, closed in zip(micros["open"], micros["closed"], strict=True)]
    return [
        {
            "read by id, given again": "with a password and 10,000 rules, and without",
            "µs of CPU, open": round(statistics.median(micros["open"]), 1),
            "µs of CPU, with access control": round(statistics.median(micros["closed"]), 1),
            "CPU time, times": round(statistics.median(ratios), 3),
        }
    ]


def main() -> None:
    """Measure, print and keep."""
    with tempfile.TemporaryDirectory() as folder:
        report("access", [*measure_decisions(), *measure_reads(Path(folder))])


if __name__ == "__main__":
    main()
