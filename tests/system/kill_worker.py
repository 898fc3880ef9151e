"""A node that registers schemas until it is killed and writes each acknowledged registration to a file, one per line.

python -m tests.system.kill_worker STORE_URL ACK_FILE NAME
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from stele.core.commands import RegisterSchema, Registration
from stele.core.decide.register import make_document
from stele.core.model import SubjectKey
from stele.service.registry import Registry
from stele.storage import open_log


async def register_for_ever(store: str, ack_file: str, name: str) -> None:
    """Register texts that no other node registers, in two subjects that all nodes share."""
    registry = await Registry.open(await open_log(store))
    with open(ack_file, "a", encoding="utf-8") as acks:  # noqa: ASYNC230 - a line of a test's notes
        for count in range(10**9):
            text = json.dumps({"type": "fixed", "size": 4, "name": f"N{name}_{os.getpid()}_{count}"})
            key = SubjectKey("", f"subject-{count % 2}")
            outcome = await registry.execute(RegisterSchema(key, make_document(text.encode(), "opaque")))
            assert isinstance(outcome, Registration)
            acks.write(json.dumps([key.name, outcome.version_number, outcome.schema_id, text]) + "\n")
            acks.flush()


def main() -> None:
    """Register schemas with the arguments of the command line."""
    asyncio.run(register_for_ever(*sys.argv[1:]))


if __name__ == "__main__":
    main()
