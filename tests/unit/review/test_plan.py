"""`stele plan` and `stele apply`: a registry matches a folder after one run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.review.folders import BETTER_ORDER, BROKEN_ORDER, MANIFEST, MONEY, ORDER, write_files
from typer.testing import CliRunner, Result

from stele.cli.app import app
from stele.client import SchemaReference, SchemaRegistryClient
from stele.testing.registry_box import RegistryBox

PROTO = 'syntax = "proto3"; package shop;'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stele_registry: RegistryBox) -> Path:
    """A folder with a manifest, and an empty registry that STELE_URL names."""
    monkeypatch.setenv("STELE_URL", stele_registry.url)
    return write_files(tmp_path, {"money.avsc": MONEY, "order.avsc": ORDER, "schemas.toml": MANIFEST})


@pytest.fixture
def client(stele_registry: RegistryBox) -> Iterator[SchemaRegistryClient]:
    """A client of the registry, without a cache."""
    with SchemaRegistryClient(stele_registry.url, cache_size=1, cache_ttl=0.0) as registry_client:
        yield registry_client


def run(*arguments: str) -> Result:
    """Run a command of `stele`."""
    return CliRunner().invoke(app, list(arguments))


def actions(folder: Path, *more: str) -> dict[str, str]:
    """Return the actions of a plan, by subject."""
    rows: list[Any] = json.loads(run("plan", str(folder), "-o", "json", *more).stdout)
    return {row["subject"]: row["action"] for row in rows}


def test_once(folder: Path, client: SchemaRegistryClient) -> None:
    """A plan changes nothing; applying registers in order and sets policies; a second run has nothing to do."""
    done = run("plan", str(folder))
    assert done.exit_code == 0, done.output
    assert "+ orders-value" in done.stdout
    assert "compatibility not set → BACKWARD_TRANSITIVE" in done.stdout
    assert client.subjects() == []
    done = run("apply", str(folder))
    assert done.exit_code == 0, done.output
    version = client.version("orders-value")
    assert [(each.name, each.subject, each.version) for each in version.references] == [("shop.Money", "money", 1)]
    assert client.config("money").compatibility_level == "FULL"
    assert client.config("orders-value").compatibility_level == "BACKWARD_TRANSITIVE"
    again = run("apply", str(folder))
    assert (again.exit_code, again.stdout) == (0, "nothing to change\n")
    assert run("plan", str(folder), "--exit-code").exit_code == 0
    assert actions(folder) == {"money": "none", "orders-value": "none"}


def test_a_refusal_changes_nothing(folder: Path, client: SchemaRegistryClient) -> None:
    """If one schema would be refused, no schema is registered; findings have lines."""
    run("apply", str(folder))
    write_files(folder, {"order.avsc": BROKEN_ORDER, "new.avsc": MONEY.replace("Money", "New")})
    write_files(folder, {"schemas.toml": MANIFEST + '\n[subjects.new]\nfile = "new.avsc"\n'})
    assert actions(folder) == {"money": "none", "new": "create", "orders-value": "refuse"}
    for command in ("plan", "apply"):
        done = run(command, str(folder))
        assert done.exit_code == 1
        assert f"{folder}/order.avsc:6:5: READER_FIELD_MISSING_DEFAULT_VALUE" in done.stdout
    assert client.subjects() == ["money", "orders-value"]
    assert "::error file=" in run("plan", str(folder), "-o", "github").stdout


def test_a_change_below_gives_new_versions_above(folder: Path, client: SchemaRegistryClient) -> None:
    """A new version of a referenced schema leads to new versions of the schemas that refer to it."""
    run("apply", str(folder))
    more = '"long"}, {"name": "currency", "type": "string", "default": "EUR"}'
    write_files(folder, {"money.avsc": MONEY.replace('"long"}', more)})
    assert actions(folder) == {"money": "register", "orders-value": "register"}
    done = run("apply", str(folder))
    assert done.exit_code == 0, done.output
    assert client.version("orders-value").references[0].version == 2
    assert run("apply", str(folder)).stdout == "nothing to change\n"


def test_drift(folder: Path, client: SchemaRegistryClient) -> None:
    """Changes by other means are shown: a newer version, another policy."""
    run("apply", str(folder))
    elsewhere = write_files(folder / "elsewhere", {"order.avsc": BETTER_ORDER})
    words = ("orders-value", str(elsewhere / "order.avsc"), "--reference", "shop.Money=money:1")
    assert run("schema", "register", *words).exit_code == 0
    client.set_config("NONE", "money")
    (elsewhere / "order.avsc").unlink()
    done = run("plan", str(folder), "--exit-code")
    assert done.exit_code == 1
    assert "drift: the file is version 1, the registry's newest is 2" in done.stdout
    assert "compatibility NONE → FULL" in done.stdout
    assert run("plan", str(folder)).exit_code == 0


def test_pruning_is_asked_for(folder: Path, client: SchemaRegistryClient) -> None:
    """Subjects that the folder does not have stay, unless --prune is given and confirmed; `owns` limits it."""
    run("apply", str(folder))
    for subject in ("mine.old", "theirs"):
        run("schema", "register", subject, str(folder / "money.avsc"))
    assert "2 other subjects are not in this folder" in run("plan", str(folder)).stdout
    write_files(folder, {"schemas.toml": 'owns = ["mine.*"]\n' + MANIFEST})
    assert actions(folder, "--prune") == {"money": "none", "orders-value": "none", "mine.old": "delete"}
    assert run("apply", str(folder), "--prune").exit_code == 2
    assert client.subjects() == ["mine.old", "money", "orders-value", "theirs"]
    done = run("apply", str(folder), "--prune", "--yes")
    assert done.exit_code == 0, done.output
    assert client.subjects() == ["money", "orders-value", "theirs"]
    assert client.subjects(deleted=True) == ["mine.old", "money", "orders-value", "theirs"]


def test_exact_policies_and_rulesets(folder: Path) -> None:
    """A policy without a common name is a table; setting a policy keeps the ruleset."""
    table = 'compatibility = {backward = "all", checkers = ["lint:NAMING"]}\nruleset = "avro"\n'
    write_files(folder, {"schemas.toml": f'[subjects.money]\nfile = "money.avsc"\n{table}'})
    (folder / "order.avsc").unlink()
    assert run("apply", str(folder)).exit_code == 0
    result = json.loads(run("policy", "show", "money", "-o", "json").stdout)
    assert (result["policy"]["checkers"], result["own"]["ruleset"]) == (["lint:NAMING"], "avro")
    assert run("apply", str(folder)).stdout == "nothing to change\n"
    write_files(folder, {"schemas.toml": '[subjects.money]\nfile = "money.avsc"\ncompatibility = "FULL"\n'})
    assert run("apply", str(folder)).exit_code == 0
    result = json.loads(run("policy", "show", "money", "-o", "json").stdout)
    assert (result["name"], result["own"]["ruleset"]) == ("FULL", "avro")


def test_a_folder_without_a_manifest(tmp_path: Path, folder: Path, client: SchemaRegistryClient) -> None:
    """Without a manifest, every file is a subject named after its path, and its imports become references."""
    plain = write_files(
        tmp_path / "plain",
        {
            "shop/money.proto": f"{PROTO} message Money {{ int64 cents = 1; }}",
            "shop/order.proto": f'{PROTO} import "shop/money.proto"; message O {{ Money m = 1; }}',
        },
    )
    assert run("apply", str(plain)).exit_code == 0
    version = client.version("shop/order")
    assert version.references == (SchemaReference("shop/money.proto", "shop/money", 1),)


def test_a_folder_is_registered_in_one_step(folder: Path, client: SchemaRegistryClient) -> None:
    """`stele schema register FOLDER` orders files by their references and leaves policies alone."""
    done = run("schema", "register", str(folder))
    assert (done.exit_code, done.stdout) == (0, "money: registered version 1\norders-value: registered version 1\n")
    assert client.version("orders-value").references == (SchemaReference("shop.Money", "money", 1),)
    assert json.loads(run("policy", "show", "money", "-o", "json").stdout)["own"]["policy"] is None
    assert run("schema", "register", str(folder)).stdout == "nothing to change\n"
    for words in (("nosuch",), (str(folder), "--normalize")):
        assert run("schema", "register", *words).exit_code == 2


EVENTS = """[
  {"type": "record", "name": "Placed", "namespace": "shop", "fields": [{"name": "total", "type": MONEY}]},
  {"type": "record", "name": "Paid", "namespace": "shop", "fields": [{"name": "sum", "type": "Money"}]}
]
""".replace("MONEY", MONEY.strip())


def test_a_file_of_several_types_is_split(folder: Path, client: SchemaRegistryClient) -> None:
    """With --split each type of a file is a subject with its references; again, there is nothing to do."""
    file = write_files(folder, {"events.avsc": EVENTS}) / "events.avsc"
    words = ("schema", "register", "events-value", str(file), "--split")
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        f"{name}: registered version 1" for name in ("shop.Money", "shop.Placed", "shop.Paid", "events-value")
    ]
    version = client.version("events-value")
    assert json.loads(version.text) == ["shop.Placed", "shop.Paid"]
    assert [each.subject for each in version.references] == ["shop.Placed", "shop.Paid"]
    assert client.version("shop.Paid").references == (SchemaReference("shop.Money", "shop.Money", 1),)
    assert run(*words).stdout == "nothing to change\n"
    file.write_text(EVENTS.replace('"name": "sum"', '"name": "amount"'))
    refused = run(*words)
    assert (refused.exit_code, "! shop.Paid" in refused.stdout) == (1, True)
    assert f"{file}#shop.Paid: READER_FIELD_MISSING_DEFAULT_VALUE at /fields/0" in refused.stdout
    assert run(*words, "--reference", "a=b:1").exit_code == 2
    (folder / "x.proto").write_text(PROTO)
    assert run("schema", "register", "x", str(folder / "x.proto"), "--split").exit_code == 2


def test_a_folder_is_split(folder: Path, client: SchemaRegistryClient) -> None:
    """A type that two files define in the same way is one subject; different definitions of a type are refused."""
    (folder / "schemas.toml").unlink()
    write_files(folder, {"events.avsc": EVENTS})
    done = run("schema", "register", str(folder), "--split")
    assert done.exit_code == 0, done.output
    assert client.subjects() == ["events", "money", "order", "shop.Paid", "shop.Placed"]
    assert client.version("shop.Placed").references == (SchemaReference("shop.Money", "money", 1),)
    write_files(folder, {"events.avsc": EVENTS.replace('"cents"', '"pence"')})
    done = run("schema", "register", str(folder), "--split")
    assert done.exit_code == 2
    assert "money.avsc and events.avsc define shop.Money differently" in " ".join(done.stderr.split())
    write_files(folder, {"events.avsc": EVENTS, "shop.Paid.avsc": ORDER})
    done = run("schema", "register", str(folder), "--split")
    assert done.exit_code == 2
    assert "events.avsc defines shop.Paid, and shop.Paid.avsc has its subject" in " ".join(done.stderr.split())


def test_references_named_by_hand(folder: Path, client: SchemaRegistryClient) -> None:
    """A reference can name a subject of the registry, with a version or without one for the newest."""
    run("schema", "register", "cash", str(folder / "money.avsc"))
    (folder / "money.avsc").unlink()
    for target in ("cash", "cash:1"):
        entry = f'[subjects.orders-value]\nfile = "order.avsc"\nreferences = {{"shop.Money" = "{target}"}}\n'
        write_files(folder, {"schemas.toml": entry})
        assert run("apply", str(folder)).exit_code == 0
    assert client.versions("orders-value") == [1]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("[subjects.x]\nfil = 'order.avsc'", "fil"),
        ("[subjects.x]\nfile = 'nosuch.avsc'", "there is no file 'nosuch.avsc'"),
        ("[subjects.x]\nfile = 'order.avsc'\ncompatibility = 'SIDEWAYS'", "SIDEWAYS"),
        ("[subjects.x]\nfile = 'schemas.toml'", "unknown suffix"),
        ("[subjects.x]\nfile = 'money.avsc'\n[subjects.y]\nfile = './money.avsc'", "belongs to 'x' already"),
        ("[subjects.x]\nfile = 'order.avsc'", "money.avsc is needed by another file and has no subject"),
    ],
)
def test_wrong_manifests(folder: Path, manifest: str, message: str) -> None:
    """A manifest with an error is reported, and nothing is sent."""
    write_files(folder, {"schemas.toml": manifest})
    done = run("plan", str(folder))
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


def test_circles_are_named(folder: Path) -> None:
    """Files that refer to each other in a cycle are an error, because no order can register them."""
    import_other = 'syntax = "proto3"; import "{}";'
    write_files(folder, {"a.proto": import_other.format("b.proto"), "b.proto": import_other.format("a.proto")})
    (folder / "schemas.toml").unlink()
    done = run("plan", str(folder))
    assert (done.exit_code, "in a circle: a.proto, b.proto" in done.stderr) == (2, True), done.stderr
