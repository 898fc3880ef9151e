"""Compatibility checks of Protobuf over the conformance pairs, compared with protoc compiling both files, and with buf.

python -m bench.protobuf_check
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version as version_of
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from bench.report import Row, report
from grpc_tools import protoc

from stele.errors import MalformedSchema
from stele.formats.protobuf import PROTOBUF, ProtobufSchema

CASES = Path(__file__).parent.parent / "tests" / "conformance" / "formats" / "cases"
RULESETS = ("confluent", "buf:WIRE")
ROUNDS = 7
BUF_PAIRS = 5

_number = count()


def published_pairs() -> list[tuple[str, str]]:
    """Return (reader, writer) texts of the published cases that compile, in both directions."""
    lines = [json.loads(line) for path in sorted(CASES.glob("*-protobuf.jsonl")) for line in path.open("rb")]
    pairs = [(case["new"], case["old"]) for case in lines if case.get("compiles") and "old" in case]
    return [pair for new, old in pairs for pair in ((new, old), (old, new))]


def parse_anew(text: str) -> ProtobufSchema:
    """Return a newly compiled schema. A comment makes each text unique, so that no cache applies."""
    return PROTOBUF.parse(f"{text}\n// {next(_number)}\n".encode(), {})


def with_findings(ruleset: str) -> list[tuple[str, str]]:
    """Return the pairs for which a ruleset has findings."""
    pairs = []
    for reader, writer in published_pairs():
        try:
            new, old = parse_anew(reader), parse_anew(writer)
        except MalformedSchema:
            continue
        if PROTOBUF.check(new, old, ruleset):
            pairs.append((reader, writer))
    return pairs


def measure_times(ruleset: str, reader: str, writer: str, folder: Path) -> tuple[float, float, float]:
    """Return the best times in ms of a check alone, of compiling and checking, and of protoc compiling both."""
    for name, text in (("new.proto", reader), ("old.proto", writer)):
        (folder / name).write_text(text)
    best = [float("inf")] * 3
    for _ in range(ROUNDS):
        start = perf_counter()
        new, old = parse_anew(reader), parse_anew(writer)
        parsed = perf_counter()
        PROTOBUF.check(new, old, ruleset)
        checked = perf_counter()
        for name in ("new.proto", "old.proto"):
            assert protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={folder / 'out'}", name]) == 0
        compiled = perf_counter()
        best = [min(*pair) for pair in zip(best, (checked - parsed, checked - start, compiled - checked), strict=True)]
    return best[0] * 1000, best[1] * 1000, best[2] * 1000


def measure_buf(reader: str, writer: str, folder: Path) -> float:
    """Return the milliseconds of one `buf breaking` over the pair."""
    program = shutil.which("buf", path=str(Path(sys.executable).parent))
    if program is None:
        return float("nan")
    for name, text in (("new", reader), ("old", writer)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "schema.proto").write_text(text)
        (folder / name / "buf.yaml").write_text("version: v2\nbreaking:\n  use: [WIRE]\n")
    start = perf_counter()
    subprocess.run(
        [program, "breaking", "new", "--against", "old"], cwd=folder, capture_output=True, check=False, timeout=60
    )
    return (perf_counter() - start) * 1000


def main() -> None:
    """Print median and 95th percentile of the pairs with findings, and the ratios to protoc."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for ruleset in RULESETS:
            pairs = with_findings(ruleset)
            measured = [measure_times(ruleset, *pair, folder) for pair in pairs]
            alone, whole, compiled = (list(column) for column in zip(*measured, strict=True))
            rows.append(
                {
                    "ruleset": ruleset,
                    "pairs": len(pairs),
                    "check ms": median(alone),
                    "check p95": quantiles(alone, n=20)[-1],
                    "with compiling ms": median(whole),
                    "with compiling p95": quantiles(whole, n=20)[-1],
                    "protoc both ms": median(compiled),
                    "all/protoc": median(whole) / median(compiled),
                    "buf CLI ms": median(measure_buf(*pair, folder) for pair in pairs[:BUF_PAIRS]),
                }
            )
    notes = [
        "Pairs of the published suites, both ways, on which the ruleset has findings; each round compiles them anew.",
        f"Best of {ROUNDS} rounds, timed in turn; protoc is grpc_tools in process, from files to files.",
        f"buf is `buf breaking` with the category WIRE over {BUF_PAIRS} of the pairs, start of the program included.",
    ]
    report("protobuf_check", rows, notes, {"grpcio-tools": version_of("grpcio-tools"), "buf": version_of("buf-bin")})


if __name__ == "__main__":
    main()
