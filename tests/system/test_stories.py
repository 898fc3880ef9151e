"""First hour of four users, each at a terminal in an empty folder: their commands and the output."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.support.doc_pages import PAGE_ADDRESS, Step, list_steps
from tests.support.examples import PROFILE
from tests.support.fork_server import can_fork, get_fork_server
from tests.support.server_process import call, free_port
from tests.support.terminal import Terminal, TerminalOutput, open_terminals
from tests.unit.review.folders import MONEY, write_files

pytestmark = pytest.mark.timeout(1200)

DOCS = Path(__file__).parents[2] / "docs"

Success = Callable[[], None]


@pytest.fixture
def forks(request: pytest.FixtureRequest) -> bool:
    """Return whether commands are forked, which is faster: in everyday runs of tests that do not check colours.

    The command line chooses colours when it is imported.
    """
    return can_fork() and PROFILE == "everyday" and "columns" not in request.fixturenames


@pytest.fixture
def succeed(
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    forks: bool,
) -> Iterator[Success]:
    """Yield a function to call at the first success of a story. Prints the time from the empty folder to that call."""
    begun = time.monotonic()
    seconds: list[float] = []
    yield lambda: seconds.append(time.monotonic() - begun)
    for each in [] if forks else seconds:
        record_property("seconds_to_first_success", round(each, 1))
        with capsys.disabled():
            sys.stdout.write(f"\n{request.node.name}: first success after {each:.1f} s\n")


@contextmanager
def open_story(folder: Path, forks: bool) -> Iterator[tuple[Terminal, Terminal]]:
    """Open two terminals in one folder: for the server and for its user."""
    with open_terminals(folder / "story") as terminals:
        if forks:
            server = get_fork_server()
            variables = {"PATH": f"{server.programs}:$PATH", **server.environ}
            for terminal in terminals:
                terminal.type(f"export {' '.join(f'{name}={value}' for name, value in variables.items())}")
        yield terminals


def read_steps(page: str, until: str) -> list[Step]:
    """Return the blocks of a page before a heading."""
    return list(list_steps((DOCS / page).read_text(encoding="utf-8").split(f"## {until}\n")[0]))


def follow(terminal: Terminal, step: Step, address: str, seconds: float = 180.0) -> TerminalOutput:
    """Type a block of a page and return its output.

    Asserts that it ends with the exit code and the output of the page, and fits the terminal.
    """
    if step.kind == "python":
        (terminal.folder / "snippet.py").write_text(step.code.replace(PAGE_ADDRESS, address), encoding="utf-8")
        output = terminal.type("python snippet.py", seconds=seconds)
    else:
        output = terminal.type(step.code.replace(PAGE_ADDRESS, address), seconds=seconds)
    assert output.code == step.exit_code, output.text
    at = 0
    for line in step.printed.splitlines():
        wanted = ".*?".join(re.escape(" ".join(part.split())) for part in line.split("…"))
        match = re.compile(wanted).search(output.text, at)
        assert match, f"{line!r} is not in {output.text[at:]!r}"
        at = match.end()
    terminal.assert_fits(output)
    return output


def start_server(terminal: Terminal, other: Terminal, store: str) -> str:
    """Start a registry in one terminal, set its address in the other one, and return the address."""
    port = free_port()
    terminal.start(f"stele serve --store {store} --port {port}", f"Stele on http://127.0.0.1:{port}, log in {store}")
    address = f"http://127.0.0.1:{port}"
    wait_until_ready(address)
    other.type(f"export STELE_URL={address}")
    return address


def wait_until_ready(address: str) -> None:
    """Wait until a server that has printed its address is ready."""
    until = time.monotonic() + 120
    while True:
        with suppress(OSError):
            if call(f"{address}/health/ready").status == 200:
                return
        assert time.monotonic() < until, "the server does not become ready"
        time.sleep(0.05)


@pytest.mark.parametrize("columns", [80, 120])
def test_serve_register_be_refused_mend_register(tmp_path: Path, columns: int, succeed: Success) -> None:
    """The tutorial works as written. A refusal shows rule, path, reason and fix in colours, in lines that fit."""
    register, refuse_check, refuse, mend = read_steps("tutorial/ten-minutes.md", "Read old data with the new schema")
    with open_terminals(tmp_path / "story", columns) as (server, person):
        address = start_server(server, person, "memory:")
        follow(person, register, address)
        succeed()
        checked = follow(person, refuse_check, address)
        refused = follow(person, refuse, address)
        assert refused.text.startswith("refused: the schema is incompatible with orders-value")
        for output in (checked, refused):
            assert "TYPE_MISMATCH at /fields/1/type" in output.text
            assert "why: Data written as int cannot be read as string." in output.text
            assert (
                "fix: Keep the type int, or add a new field with a default and leave this one as it is." in output.text
            )
            assert "\x1b[31mTYPE_MISMATCH\x1b[0m" in output.raw
        for command in ("schema register orders-value broken.avsc", "check broken.avsc --against order.avsc"):
            piped = person.type(f"stele {command} 2>&1 | cat")
            assert not piped.is_coloured
            assert piped.text in {refused.text, checked.text}  # only line breaks differ between terminal and pipe
        mended = follow(person, mend, address)
        assert "orders-value version 2, id 2" in mended.text
        assert server.interrupt().code == 0


SCHEMA = """{
  "type": "record", "name": "Order", "namespace": "shop",
  "fields": [
    {"name": "id", "type": "long"},
    {"name": "total", "type": "Money"}
  ]
}
"""


def test_a_pull_request_is_checked(tmp_path: Path, succeed: Success, forks: bool) -> None:
    """Of two changed files, the incompatible one is annotated at its line, and the check passes after the fix."""
    money = MONEY.replace('"long"}', '"long"}, {"name": "currency", "type": "string", "default": "EUR"}')
    order = SCHEMA.replace('"Money"}', '"Money"},\n    {"name": "note", "type": "string"}')
    with open_story(tmp_path, forks) as (_, person):
        person.type("git init -q -b main shop && cd shop && git config user.name me && git config user.email me@here")
        shop = write_files(person.folder / "shop", {"schemas/order.avsc": SCHEMA, "schemas/money.avsc": MONEY})
        assert person.type('git add . && git commit -q -m "The first schemas" && git checkout -q -b change').code == 0
        write_files(shop, {"schemas/order.avsc": order, "schemas/money.avsc": money})
        check = "stele check schemas --against .git#main"
        output = person.type(check)
        assert output.code == 1
        person.assert_fits(output)
        assert "schemas/money.avsc: compatible by avro@1" in output.text
        finding = "schemas/order.avsc:6:5: READER_FIELD_MISSING_DEFAULT_VALUE at /fields/2 (main:schemas/order.avsc)"
        assert finding in output.text
        annotated = person.type(f"{check} --output github")
        (line,) = annotated.lines[:-1]
        assert annotated.code == 1
        assert line.startswith(
            "::error file=schemas/order.avsc,line=6,col=5,title=READER_FIELD_MISSING_DEFAULT_VALUE::"
        )
        assert person.type(f"{check} --output sarif --to report.sarif") == ("", 1)
        (run,) = json.loads((shop / "report.sarif").read_text(encoding="utf-8"))["runs"]
        (result,) = run["results"]
        place = result["locations"][0]["physicalLocation"]
        assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("schemas/order.avsc", 6)
        write_files(shop, {"schemas/order.avsc": order.replace('"string"}', '"string", "default": ""}')})
        assert person.type(f"{check} --output github") == ("", 0)
        succeed()
        person.assert_fits(person.type(check))


def test_back_up_break_restore(tmp_path: Path, succeed: Success, forks: bool) -> None:
    """A backup made while the server runs replaces a damaged store; no id is given out twice."""
    store = "sqlite:///stele.db"
    schemas = {f"{name}.avsc": f'{{"type": "enum", "name": "Kind", "symbols": ["{name}"]}}' for name in "abc"}
    with open_story(tmp_path, forks) as (server, person):
        write_files(person.folder, schemas)
        start_server(server, person, store)
        assert "first-value version 1, id 1" in person.type("stele schema register first-value a.avsc").text
        assert person.type(f"stele backup backup.db --store {store}").text.endswith("records copied to backup.db")
        succeed()
        assert "second-value version 1, id 2" in person.type("stele schema register second-value b.avsc").text
        server.interrupt()

        person.type("sed -i s/symbols/sYmbols/g stele.db")
        damaged = person.type(f"stele log verify --store {store}")
        person.assert_fits(damaged)
        assert damaged.code == 1
        assert "has a wrong checksum" in damaged.text
        assert "first-value 1 1" in damaged.text
        refused = server.type(f"stele serve --store {store} --port 0")
        server.assert_fits(TerminalOutput(refused.raw.partition("\n")[2]))  # without the line with the address
        assert refused.code == 2
        assert "is damaged. Going on could give ids out twice: restore the newest backup" in refused.text
        server.type("rm -f stele.db stele.db-wal stele.db-shm")
        refused = server.type(f"stele serve --store {store} --port 0")
        server.assert_fits(refused)
        assert refused.code == 2
        assert "is missing or empty, but" in refused.text

        person.type("rm -f stele.db stele.db-wal stele.db-shm stele.db.mark\ncp backup.db stele.db")
        assert person.type(f"stele log verify --store {store}").text.endswith("records are whole")
        start_server(server, person, store)
        assert '"a"' in person.type("stele schema get --id 1").text
        assert person.type("stele schema get --id 2").code == 2
        again = [person.type(f"stele schema register {name}").text for name in ("third c.avsc", "second-value b.avsc")]
        assert again == ["third version 1, id 10002", "second-value version 1, id 10003"]
        server.interrupt()


def test_from_the_first_pipeline_to_the_first_row(tmp_path: Path, succeed: Success, forks: bool) -> None:
    """The page on pipelines works as written, up to rows and dead letters. Java starts once."""
    register, write, run = read_steps("how-to/pipeline.md", "From files, from Kafka")
    with open_story(tmp_path, forks) as (server, person):
        address = start_server(server, person, "memory:")
        follow(person, register, address)
        follow(person, write, address)
        init, start, _, show, dead_letters, _ = (Step("bash", line) for line in run.code.splitlines())
        follow(person, init, address)
        ran = follow(person, start, address, seconds=240.0)
        assert ran.text.count("starting Spark …") == 1
        assert "1 batch, 1,000 rows, 1 dead letter, 0 tombstones; versions used: parcels-value 1" in ran.text
        rows = follow(person, show, address)
        succeed()
        assert "id | city | _stele_schema_id | _stele_version" in rows.text
        assert rows.text.count("| Bergen | 1 | 1") == 5
        dead = follow(person, dead_letters, address)
        assert "NOT_FRAMED" in dead.text
        assert "starting Spark" not in rows.text + dead.text
        server.interrupt()
