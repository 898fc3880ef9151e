"""`stele check` of files and folders: what is compared with what, and findings that must be reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.review.folders import BETTER_ORDER, BROKEN_ORDER, MANIFEST, MONEY, ORDER, commit_all, write_files
from typer.testing import CliRunner, Result

from stele.cli.app import app
from stele.testing.registry_box import RegistryBox

RUN = CliRunner()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two schemas below `schemas`, which is the current folder."""
    write_files(tmp_path, {"schemas/money.avsc": MONEY, "schemas/order.avsc": ORDER, "README.md": "x"})
    commit_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*arguments: str) -> Result:
    """Run `stele check`."""
    return RUN.invoke(app, ["check", *arguments])


def reports(*arguments: str) -> Any:
    """Return the JSON output of `stele check`."""
    return json.loads(check(*arguments, "--output", "json").stdout)


def test_nothing_to_compare_with_is_no_success(folder: Path) -> None:
    """A valid schema without an earlier version ends with 2, unless a first version is allowed."""
    done = check("schemas")
    assert done.exit_code == 2
    assert "order.avsc: valid; nothing to compare with" in done.stdout
    assert "--allow-first" in done.stderr
    assert check("schemas", "--allow-first").exit_code == 0


@pytest.mark.parametrize("against", [".git#main", ".#main", "#main", ".git#branch=main", "schemas#HEAD"])
def test_a_folder_against_a_commit(folder: Path, against: str) -> None:
    """Every file is compared with what it was in the commit, references included; findings have a line."""
    assert check("schemas", "--against", against).exit_code == 0
    (folder / "schemas/order.avsc").write_text(BROKEN_ORDER)
    done = check("schemas", "--against", against)
    assert done.exit_code == 1
    assert "schemas/order.avsc:6:5: READER_FIELD_MISSING_DEFAULT_VALUE at /fields/2" in done.stdout
    assert "schemas/money.avsc: compatible by avro@1" in done.stdout
    assert check("schemas/money.avsc", "--against", against).exit_code == 0


def test_new_and_removed_files(folder: Path) -> None:
    """A new file beside compared ones is accepted; a removed file is a warning."""
    write_files(folder, {"schemas/sub/new.avsc": MONEY.replace("Money", "New")})
    (folder / "schemas/money.avsc").rename(folder / "schemas/cash.avsc")
    done = check("schemas", "--against", ".git#main")
    assert done.exit_code == 0
    assert "schemas/sub/new.avsc: valid; nothing to compare with" in done.stdout
    assert "schemas/money.avsc: SCHEMA_REMOVED" in done.stdout


def test_the_earlier_version_has_its_own_references(folder: Path) -> None:
    """A breaking change in a referenced file is reported for the file that refers to it, too."""
    (folder / "schemas/money.avsc").write_text(MONEY.replace("long", "string"))
    outcomes = {report["file"]: report["outcome"] for report in reports("schemas", "--against", ".git#main")}
    assert outcomes == {"schemas/money.avsc": "failed", "schemas/order.avsc": "failed"}


def test_findings_in_the_earlier_schema_are_placed_in_the_new_one(folder: Path) -> None:
    """In a forward check, the reader is the old schema; its findings have positions in the new file."""
    fields = '{"name": "first", "type": "int", "default": 0},\n    {"name": "id", "type": "string"}'
    (folder / "schemas/order.avsc").write_text(ORDER.replace('{"name": "id", "type": "long"}', fields))
    (report,) = reports("schemas/order.avsc", "--against", ".git#main", "--policy", "FORWARD")
    assert [(each["direction"], each["line"]) for each in report["findings"]] == [("forward", 5)]


def test_a_copy_of_the_folder(folder: Path, tmp_path: Path) -> None:
    """--against accepts a folder with the same paths, and can be repeated, oldest first."""
    write_files(folder, {"v1/order.avsc": ORDER, "v1/money.avsc": MONEY, "v2/order.avsc": BETTER_ORDER})
    write_files(folder, {"v2/money.avsc": MONEY})
    (folder / "schemas/order.avsc").write_text(BETTER_ORDER.replace('"Money"}', '"Money", "default": {"cents": 0}}'))
    words = ("schemas/order.avsc", "--against", "v1", "--against", "v2", "--policy", "FULL_TRANSITIVE")
    (report,) = reports(*words)
    assert report["compared_with"] == ["v2:schemas/order.avsc", "v1:schemas/order.avsc"]


def test_the_manifest_has_the_policies(folder: Path) -> None:
    """A file is judged by the policy of its subject; --policy takes precedence."""
    write_files(folder, {"schemas/schemas.toml": MANIFEST})
    (folder / "schemas/money.avsc").write_text(MONEY.replace('"long"}', '"long"}, {"name": "x", "type": "int"}'))
    assert check("schemas/money.avsc", "--against", ".git#main", "--policy", "FORWARD").exit_code == 0
    assert check("schemas/money.avsc", "--against", ".git#main").exit_code == 1  # FULL


def test_a_broken_reference_is_named_once(folder: Path) -> None:
    """A file that is no schema is an error at its line, and the files that refer to it name it."""
    (folder / "schemas/money.avsc").write_text(MONEY.replace('"long"', '"lang"'))
    done = check("schemas", "--against", ".git#main")
    assert done.exit_code == 2
    assert "schemas/money.avsc:1:87: MALFORMED_SCHEMA" in done.stdout
    assert "It refers to schemas/money.avsc, which is not a schema." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a schema file or a folder"),
        (("schemas", "--against", ".git#nosuch"), "no branch, tag or commit 'nosuch'"),
        (("schemas", "--against", "nowhere#main"), "there is no folder nowhere"),
        (("schemas", "--against", ".git#--all"), "name a branch, tag or commit"),
        (("schemas", "--against", "schemas/order.avsc"), "give one file to compare with, not 2"),
        (("schemas", "--subject", "s"), "--subject compares one file"),
        (("README.md",), "unknown suffix"),
        (("schemas/order.avsc", "--policy", "SIDEWAYS"), "SIDEWAYS"),
    ],
)
def test_invalid_arguments(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    """Invalid arguments end with 2 and one sentence."""
    done = check(*arguments)
    assert (done.exit_code, message in done.stderr.replace("\n", " ")) == (2, True), done.stderr


def test_a_file_outside_the_repository(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file outside the repository of the commit is an error."""
    other = write_files(tmp_path_factory.mktemp("other"), {"money.avsc": MONEY})
    done = check(str(other / "money.avsc"), "--against", ".git#main")
    assert (done.exit_code, "is not in the git repository" in done.stderr) == (2, True)


def test_files_that_are_no_schemas_are_left_alone(folder: Path) -> None:
    """JSON files without `$schema` and files in hidden folders are skipped."""
    write_files(folder, {"schemas/package.json": "{}", "schemas/.cache/x.avsc": "{", "schemas/binary.txt": "\0"})
    write_files(folder, {"schemas/s.json": '{"$schema": "http://json-schema.org/draft-07/schema#"}'})
    files = [report["file"] for report in reports("schemas", "--allow-first")]
    assert files == ["schemas/money.avsc", "schemas/order.avsc", "schemas/s.json"]


def test_people_see_twenty_findings(tmp_path: Path) -> None:
    """Text has 20 findings and the number of the others; --all and other output formats have all."""
    fields = [{"name": f"f{number}", "type": "int"} for number in range(1_600)]
    write_files(tmp_path, {"old.avsc": '{"type": "record", "name": "R", "fields": []}'})
    write_files(tmp_path, {"new.avsc": json.dumps({"type": "record", "name": "R", "fields": fields})})
    words = (str(tmp_path / "new.avsc"), "--against", str(tmp_path / "old.avsc"))
    few = check(*words).stdout
    assert (few.count("READER_FIELD"), "… 1,580 more (--all" in few) == (20, True)
    assert check(*words, "--all").stdout.count("READER_FIELD") == 1_600
    assert check(*words, "-o", "github").stdout.count("::error ") == 1_600
    assert max(map(len, few.splitlines())) > 100, "nothing is wrapped where nobody looks at a terminal"


def test_a_report_in_a_file(folder: Path) -> None:
    """--to writes the report, without colours and with all findings, and prints nothing."""
    (folder / "schemas/order.avsc").write_text(BROKEN_ORDER)
    for shape in ("text", "json", "github", "sarif", "junit"):
        done = check("schemas", "--against", ".git#main", "-o", shape, "--to", f"out/{shape}")
        assert (done.exit_code, done.stdout) == (1, "")
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in (folder / "out" / shape).read_text()


def test_differences_to_a_commit(folder: Path) -> None:
    """`stele diff` accepts a file or a folder with --against."""
    assert RUN.invoke(app, ["diff", "schemas", "--against", ".git#main"]).exit_code == 0
    (folder / "schemas/order.avsc").write_text(BROKEN_ORDER)
    for words in (["schemas"], ["schemas/order.avsc"]):
        done = RUN.invoke(app, ["diff", *words, "--against", ".git#main"])
        assert (done.exit_code, "+ shop.Order.note field string" in done.stdout) == (1, True), done.output
    answers = json.loads(RUN.invoke(app, ["diff", "schemas", "--against", ".git#main", "-o", "json"]).stdout)
    assert [len(answer["changes"]) for answer in answers] == [0, 1]
    (folder / "new.avsc").write_text(MONEY)
    for wrong in (["new.avsc", "--against", ".git#main"], ["new.avsc"], ["a", "b", "--against", "c"]):
        assert RUN.invoke(app, ["diff", *wrong]).exit_code == 2


# --- a subject of a registry ----------------------------------------------------------------------------------------


def test_a_subject_with_its_policy_and_references(folder: Path, stele_registry: RegistryBox) -> None:
    """A file is compared with the versions its subject's policy names; references come from the newest version."""
    url = stele_registry.url
    assert RUN.invoke(app, ["schema", "register", "money", "schemas/money.avsc", "--registry", url]).exit_code == 0
    words = ["orders-value", "schemas/order.avsc", "--reference", "shop.Money=money:1", "--registry", url]
    assert RUN.invoke(app, ["schema", "register", *words]).exit_code == 0
    (folder / "schemas/money.avsc").unlink()
    (folder / "schemas/order.avsc").write_text(BROKEN_ORDER)
    words = ["schemas/order.avsc", "--subject", "orders-value", "--registry", url]
    done = check(*words)
    assert done.exit_code == 1
    assert "schemas/order.avsc:6:5: READER_FIELD_MISSING_DEFAULT_VALUE" in done.stdout
    assert "(orders-value version 1)" in done.stdout
    differs = RUN.invoke(app, ["diff", *words])
    assert (differs.exit_code, "+ shop.Order.note" in differs.stdout) == (1, True), differs.output
    assert RUN.invoke(app, ["policy", "set", "orders-value", "--level", "NONE", "--registry", url]).exit_code == 0
    assert check(*words).exit_code == 0
    assert check(*words, "--policy", "BACKWARD").exit_code == 1
    missing = check("schemas/order.avsc", "--subject", "nosuch", "--registry", url, "--allow-first")
    assert missing.exit_code == 2, "nobody knows the reference"
    named = check(*words[:2], "nosuch", *words[3:], "--reference", "shop.Money=money", "--allow-first")
    assert named.exit_code == 0, named.output


def test_validators_of_the_policy_are_asked(folder: Path, stele_registry: RegistryBox) -> None:
    """A policy with lint rules as validators refuses by them, and the findings have positions."""
    url = stele_registry.url
    RUN.invoke(app, ["schema", "register", "money", "schemas/money.avsc", "--registry", url])
    words = ["policy", "set", "money", "--level", "BACKWARD", "--checker", "lint:DOC_REQUIRED", "--registry", url]
    assert RUN.invoke(app, words).exit_code == 0
    (folder / "schemas/money.avsc").write_text(
        MONEY.replace('"long"}', '"long"},\n{"name": "x", "type": "int", "default": 1}')
    )
    done = check("schemas/money.avsc", "--subject", "money", "--registry", url)
    assert done.exit_code == 1
    assert "schemas/money.avsc:2:1: DOC_REQUIRED at /fields/1" in done.stdout
