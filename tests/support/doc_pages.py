"""Documentation pages as programs: their code blocks, the output that they must print, and checks hidden from readers.

A page is Markdown. Its blocks of `bash` and `python` run in order. Around them a page may have:

- ```` ```output ```` after a block: lines that the block prints, in this order; `…` stands for any text, or alone on a
  line for any lines;
- `<!-- exits with 1 -->` before a block: the exit code of the block, if it is not 0;
- `<!-- needs a broker -->` before a block: it runs only in a test that has a broker;
- `<!-- check` … `-->` around Bash commands: a check that runs like a block and is hidden from the reader.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.fork_server import can_fork, get_fork_server
from tests.support.java_machine import JavaMachine
from tests.support.server_process import free_port

PAGE_ADDRESS = "http://127.0.0.1:8081"
"""The address that pages write for the registry."""
PAGE_BROKER = "127.0.0.1:9092"
"""The address that pages write for a Kafka broker."""
_OWN_PORT = re.compile(r"\bstele serve\b.* --port (\d+)")
"""Matches a command that starts a server; the group is its port."""
_STEP = re.compile(
    r"(?:^<!-- exits with (?P<code>\d+) -->\n|^(?P<broker><!-- needs a broker -->)\n)?"
    r"^```(?P<kind>bash|python)\n(?P<block>.*?)^```$"
    r"(?:\n\n(?:[^\n`#]+\n\n)?```output\n(?P<printed>.*?)^```$)?"
    r"|^<!-- check\n(?P<check>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)


class Step(NamedTuple):
    """One block of a page.

    Attributes:
        kind: `bash` or `python`.
        code: The text of the block.
        exit_code: What the block ends with.
        printed: The lines that the page shows below the block; empty if it shows none.
        needs_broker: Whether the block needs a Kafka broker.
    """

    kind: str
    code: str
    exit_code: int = 0
    printed: str = ""
    needs_broker: bool = False


def list_steps(text: str) -> Iterator[Step]:
    """Yield the blocks and hidden checks of a page, in order."""
    for match in _STEP.finditer(text):
        if match["check"] is not None:
            yield Step("bash", match["check"])
        else:
            code = int(match["code"] or 0)
            yield Step(match["kind"], match["block"], code, match["printed"] or "", match["broker"] is not None)


def run_page(
    page: Path, folder: Path, address: str, broker: str | None = None, java_machine: JavaMachine | None = None
) -> None:
    """Run every block of a page in a folder against the registry at an address.

    Blocks that need a broker are skipped without one. Spark in a block uses the given Java machine, or starts one of
    its own. Commands are forked from a process that has loaded them. Servers that the page starts get free ports in
    place of the ports in its text.

    Raises:
        AssertionError: A block ended with another code, or did not print what the page shows.
    """
    groups: list[int] = []
    path, python, forking = str(Path(sys.executable).parent), sys.executable, dict[str, str]()
    if can_fork():
        server = get_fork_server()
        path, python, forking = f"{server.programs}:{path}", str(server.programs / "python"), server.environ
    text = page.read_text(encoding="utf-8")
    for port in sorted({port for step in list_steps(text) for port in _OWN_PORT.findall(step.code)}):
        text = re.sub(rf"\b{port}\b", str(free_port()), text)
    try:
        for step in list_steps(text):
            if step.needs_broker and broker is None:
                continue
            code = step.code.replace(PAGE_ADDRESS, address).replace(PAGE_BROKER, broker or PAGE_BROKER)
            script = f'export PATH="{path}:$PATH"\n{code}'
            command = ["bash", "-euo", "pipefail", "-c", script] if step.kind == "bash" else [python, "-c", code]
            lent = nullcontext(dict[str, str]()) if java_machine is None else java_machine.lend(folder)
            with lent as variables:
                started = subprocess.Popen(
                    command,
                    cwd=folder,
                    env={**os.environ, **variables, **forking, "STELE_URL": address, "COLUMNS": "200"},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    start_new_session=True,
                )
                groups.append(started.pid)
                printed, _ = started.communicate(timeout=300)
            where = f"{page.name}\n{step.code}\n{printed}"
            assert started.returncode == step.exit_code, f"exit code {started.returncode}: {where}"
            missing = find_missing_line(step.printed.replace(PAGE_ADDRESS, address), printed)
            assert missing is None, f"does not print {missing!r}: {where}"
    except BaseException:
        _end_groups(groups)
        raise


def _end_groups(groups: list[int]) -> None:
    """Kill the background processes that a page started, because the next run uses the same ports."""
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def list_sql(page: Path) -> list[list[str]]:
    """Return the statements of every SQL block of a page, without their semicolons."""
    blocks = re.findall(r"^ *```sql\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [[line.strip().rstrip(";") for line in block.splitlines()] for block in blocks]


def find_missing_line(expected: str, printed: str) -> str | None:
    """Return the first expected line that is missing or out of order in the output, or None."""
    lines = [line.strip() for line in printed.splitlines()]
    for line in expected.splitlines():
        if (wanted := line.strip()) in {"", "…"}:
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("…")))
        position = next((number for number, each in enumerate(lines) if pattern.fullmatch(each)), None)
        if position is None:
            return line
        lines = lines[position + 1 :]
    return None
