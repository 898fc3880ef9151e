"""The verdicts of every version of every ruleset on every published pair of schemas, as files beside this one.

`python tests/conformance/formats/golden.py` adds new pairs, rulesets and versions. It refuses to change existing lines,
unless `--rewrite` is given. That is correct only before the version is released.

A file has one line per pair: `-` a proven break, `?` undecided, `+` compatible, `!` no verdict, with the names of the
rules that decided. First the new schema reads data of the old one, then the old one reads data of the new one. The
first line of a file lists the rulesets in the format's order.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conformance.formats.format_cases import published_cases

from stele.core.findings import Verdict
from stele.errors import SteleError
from stele.formats import rulesets
from stele.formats.jsonschema.containment.provers import PROVER
from stele.formats.registry import get_format

FOLDER = Path(__file__).parent / "verdicts"
FORMATS = ("avro", "json", "protobuf", "thrift", "xsd")
_SIGNS = {Verdict.COMPATIBLE: "+", Verdict.INCOMPATIBLE: "-", Verdict.UNDECIDED: "?"}
_PATIENCE = 60.0
"""Time limit of the prover in seconds. In production it is one second, which a busy machine could exceed."""


class Verdicts(NamedTuple):
    """Rulesets of a format in its order, and their verdicts, by pair and ruleset."""

    rulesets: tuple[str, ...]
    said: dict[tuple[str, str], str]


def read_verdicts(format_name: str) -> Verdicts:
    """Return the verdicts in the file; none if it does not exist."""
    path = FOLDER / f"{format_name}.jsonl"
    if not path.exists():
        return Verdicts((), {})
    head, *lines = map(json.loads, path.read_text(encoding="ascii").splitlines())
    texts = {(line["id"], ruleset): text for line in lines for names, text in line.items() for ruleset in names.split()}
    return Verdicts(tuple(head["rulesets"]), {key: text for key, text in texts.items() if key[1] != "id"})


def compute_verdicts(format_name: str) -> Verdicts:
    """Return the present verdicts of the rules."""
    fmt = get_format(format_name)
    names = rulesets.installed_rulesets(fmt)
    patience, PROVER._engine._deadline = PROVER._engine._deadline, _PATIENCE
    try:
        verdicts = {
            (name, ruleset): " | ".join(
                _judge_pair(format_name, ruleset, reader, writer) for reader, writer in ((new, old), (old, new))
            )
            for name, new, old in _schema_pairs(format_name)
            for ruleset in names
        }
    finally:
        PROVER._engine._deadline = patience
    return Verdicts(names, verdicts)


def _schema_pairs(format_name: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name, new, old) of every pair of schemas once, in one direction."""
    seen: set[frozenset[str]] = set()
    for case in published_cases():
        if case.format != format_name or case.new is None or case.old is None or not case.compiles:
            continue
        for number, old in enumerate(case.history or (case.old,), 1):
            pair = frozenset((case.new, old))
            if pair not in seen:
                seen.add(pair)
                yield f"{case.id}.{number}" if len(case.history) > 1 else case.id, case.new, old


def _judge_pair(format_name: str, ruleset: str, reader: str, writer: str) -> str:
    fmt = get_format(format_name)
    try:
        readers, writers = (fmt.parse(text.encode(), {}, strict=False) for text in (reader, writer))
        findings = fmt.check(readers, writers, ruleset)
    except SteleError as error:
        return f"! {type(error).__name__}"
    return " ".join([_SIGNS[Verdict.from_findings(findings)], *sorted({finding.rule for finding in findings})])


def write_verdicts(format_name: str, verdicts: Verdicts) -> None:
    """Write the file. Rulesets with equal verdicts share an entry."""
    lines: dict[str, dict[str, list[str]]] = {}
    for (name, ruleset), text in verdicts.said.items():
        lines.setdefault(name, {}).setdefault(text, []).append(ruleset)
    rows = [
        {"id": name} | {" ".join(names): text for text, names in answers.items()} for name, answers in lines.items()
    ]
    FOLDER.mkdir(exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in [{"rulesets": list(verdicts.rulesets)}, *rows])
    (FOLDER / f"{format_name}.jsonl").write_text(text, encoding="ascii")


def explain_change(format_name: str, before: Verdicts, now: Verdicts) -> str:
    """Return how a change affects rulesets that may be in use, and what to do instead; '' if it does not."""
    if not before.rulesets:
        return ""
    if lost_rulesets := [name for name in before.rulesets if name not in now.rulesets]:
        return (
            f"{format_name} lost {', '.join(lost_rulesets)}: registries that judge by them would refuse every write. "
            "Keep them."
        )
    default, known = (
        rulesets.split_ruleset(before.rulesets[0])[0],
        {rulesets.split_ruleset(name)[0] for name in before.rulesets},
    )
    if rulesets.split_ruleset(now.rulesets[0])[0] != default:
        return f"the default ruleset of {format_name} is {default} for ever: list it first"
    added = [name for name in now.rulesets if rulesets.split_ruleset(name)[0] not in known]
    if early := [name for name in added if rulesets.split_ruleset(name)[1] == rulesets.FIRST]:
        return (
            f"{', '.join(early)} joins {format_name} later than others: start at @2, so that settings which named it "
            "when it was unknown are refused with a clear error instead of being judged otherwise than before"
        )
    changed = [key for key, text in before.said.items() if now.said.get(key, text) != text]
    if not changed:
        return ""
    examples = "\n".join(f"  {ruleset}, {name}: {before.said[name, ruleset]}  ->  {now.said[name, ruleset]}"
                         for name, ruleset in changed[:10])  # fmt: skip
    name, version = rulesets.split_ruleset(changed[0][1])
    following = rulesets.join_ruleset(name, (version or rulesets.FIRST) + 1)
    return (
        f"{len(changed)} verdicts of {format_name} changed:\n{examples}\nRegistries rely on them. Put the new rules "
        f"beside the old ones as {following} in the format's RULESETS, leave {changed[0][1]} as it was, and run "
        "`python tests/conformance/formats/golden.py`. (A version no release has yet: `--rewrite`.)"
    )


def main(arguments: list[str]) -> int:
    """Update the files. Return 1 if that would change existing lines."""
    for name in FORMATS:
        before, now = read_verdicts(name), compute_verdicts(name)
        trouble = "" if "--rewrite" in arguments else explain_change(name, before, now)
        if trouble:
            sys.stderr.write(trouble + "\n")
            return 1
        write_verdicts(name, now)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
