"""The native API shows the history and the neighbours of subjects; the client, commands and notebooks use it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import httpx
import pytest
from tools.history_pictures import SUBJECT, register_example
from typer.testing import CliRunner, Result

from stele.cli.app import app
from stele.client import BaselineSchema, ConfigUpdateRequest, Schema
from stele.core.findings import Verdict
from stele.errors import InvalidRequest, NotFound
from stele.testing.registry_box import RegistryBox

PICTURES = ("story", "fields", "matrix", "neighbours")


@pytest.fixture(scope="module")
def box() -> Iterator[RegistryBox]:
    """A registry with the example of the documentation, which the tests do not change."""
    with RegistryBox(port=0) as box:
        register_example(box.client)
        box.client.register("team.<b>\u202e", Schema('"int"'))
        box.client.register(":.team:inside", Schema('"int"'))
        yield box


@pytest.fixture(scope="module")
def http(box: RegistryBox) -> Iterator[httpx.Client]:
    """A plain HTTP client of the registry."""
    with httpx.Client(base_url=box.url, timeout=60) as client:
        yield client


def run(box: RegistryBox, *words: str) -> Result:
    """Run a command against the registry."""
    return CliRunner().invoke(app, [*words, "--registry", box.url], env={"COLUMNS": "200"})


def test_a_history_has_verdicts_both_ways(http: httpx.Client) -> None:
    """Versions come oldest first, with names and numbers that do not change."""
    answer = http.get(f"/api/history/{SUBJECT}").json()
    assert (answer["subject"], answer["policy"], answer["earlier"], answer["complete"]) == (
        SUBJECT,
        "BACKWARD",
        0,
        True,
    )
    rows = answer["versions"]
    assert [row["version"] for row in rows] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [row["version"] for row in rows if row["deleted"]] == [4]
    assert rows[6]["link"] == {
        "before": 6,
        "backward": "incompatible",
        "forward": "compatible",
        "forced": False,
        "findings": 1,
        "reasons": ["READER_FIELD_MISSING_DEFAULT_VALUE at /fields/4"],
    }


def test_answers_come_in_parts(http: httpx.Client) -> None:
    """Limits select the newest versions, and earlier versions of a history are on further pages."""
    page = http.get(f"/api/history/{SUBJECT}?limit=2&before=4").json()
    assert ([row["version"] for row in page["versions"]], page["earlier"]) == ([2, 3], 1)
    assert http.get(f"/api/lifelines/{SUBJECT}?limit=2").json()["versions"] == [7, 8]
    assert http.get(f"/api/matrix/{SUBJECT}?limit=2").json()["versions"] == [7, 8]
    atlas = http.get("/api/atlas?limit=1&after=address").json()
    assert ([node["subject"] for node in atlas["nodes"]], atlas["omitted"]) == ([SUBJECT], 3)


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("history/nobody", 404, "subject_not_found"),
        ("lifelines/nobody", 404, "subject_not_found"),
        ("matrix/nobody", 404, "subject_not_found"),
        ("neighbours/nobody", 404, "subject_not_found"),
        (f"neighbours/{SUBJECT}?version=99", 404, "version_not_found"),
        (f"neighbours/{SUBJECT}?depth=6", 422, "invalid_request"),
        (f"history/{SUBJECT}?limit=0", 422, "invalid_request"),
        (f"history/{SUBJECT}?before=x", 422, "invalid_request"),
        (f"lifelines/{SUBJECT}?limit=501", 422, "invalid_request"),
        (f"matrix/{SUBJECT}?limit=41", 422, "invalid_request"),
        (f"matrix/{SUBJECT}?policy=NEVER", 422, "unknown_policy"),
        ("history/:.team:", 422, "invalid_name"),
        ("atlas?limit=1001", 422, "invalid_request"),
    ],
)
def test_what_is_not_there_or_means_nothing_is_refused(http: httpx.Client, path: str, status: int, kind: str) -> None:
    """Each refusal has its own kind and status."""
    answer = http.get(f"/api/{path}")
    assert (answer.status_code, answer.json()["error"]["kind"]) == (status, kind)


def test_other_namespaces_are_reached_by_qualified_names(http: httpx.Client) -> None:
    """A subject in another namespace has a history, and its namespace has an atlas."""
    assert http.get("/api/history/:.team:inside").json()["namespace"] == "team"
    assert [node["subject"] for node in http.get("/api/atlas?namespace=team").json()["nodes"]] == ["inside"]


def test_the_client_reads_the_answers(box: RegistryBox) -> None:
    """The client returns typed values, and raises its usual error for a missing subject."""
    client = box.client
    assert client.history(SUBJECT, limit=1).versions[0].version == 8
    renamed = {line.path: line.renamed_from for line in client.lifelines(SUBJECT).fields}
    assert renamed["email"] == "mail"
    matrix = client.matrix(SUBJECT, policy="FULL_TRANSITIVE")
    assert (matrix.reads[0][1], matrix.reads[0][6], matrix.policy) == (
        Verdict.COMPATIBLE,
        Verdict.INCOMPATIBLE,
        "FULL_TRANSITIVE",
    )
    neighbours = client.neighbours("address", depth=2)
    assert {row.user[1] for row in neighbours.references if row.stale} == {SUBJECT, "invoices-value"}
    assert len(client.atlas().nodes) == 5
    with pytest.raises(NotFound):
        client.history("nobody")


def test_two_versions_are_compared(box: RegistryBox) -> None:
    """The client returns the changes between two versions and which of them reads data of the other."""
    diff = box.client.diff(SUBJECT, 1, 8)
    assert (diff.backward, diff.forward) == (True, False)
    assert ("renamed", "mail", "email") in [(change.kind, change.before, change.after) for change in diff.changes]


def test_versions_of_two_languages_are_not_compared() -> None:
    """Versions in different languages are not compared."""
    with RegistryBox({"mixed": '"int"'}) as other:
        other.client.set_config(ConfigUpdateRequest(compatibility="NONE"), "mixed")
        other.client.register("mixed", Schema("{}", "JSON"))
        with pytest.raises(InvalidRequest):
            other.client.diff("mixed", 1, 2)


@pytest.mark.parametrize("picture", PICTURES)
def test_commands_print_tables_and_write_pictures(box: RegistryBox, tmp_path: Path, picture: str) -> None:
    """A command prints a table or JSON, or writes a file with --svg, which it does not overwrite by accident."""
    result = run(box, "history", SUBJECT, "--picture", picture)
    assert result.exit_code == 0, result.output
    assert {"story": "old reads new", "fields": "renamed from", "matrix": "v8 reads", "neighbours": "refers to"}[
        picture
    ] in result.stdout
    document = json.loads(run(box, "history", SUBJECT, "--picture", picture, "--output", "json").stdout)
    assert SUBJECT in (document.get("subject"), document.get("center", {}).get("subject"))
    file = tmp_path / "picture.svg"
    for words, code in (((), 0), ((), 2), (("--force", "--unfold"), 0)):
        done = run(box, "history", SUBJECT, "--picture", picture, "--svg", str(file), *words)
        assert done.exit_code == code, done.output
    assert ET.parse(file).getroot().get("role") == "img"
    assert run(box, "history", SUBJECT, "--picture", picture, "--svg", "-").stdout.startswith("<svg")


def test_commands_refuse_what_means_nothing(box: RegistryBox) -> None:
    """An option that belongs to another picture is refused, and so is an unknown subject."""
    wrong = (
        ("history", SUBJECT, "--depth", "2"),
        ("history", SUBJECT, "--picture", "fields", "--before", "2"),
        ("history", SUBJECT, "--policy", "FULL"),
        ("history", "nobody"),
    )
    assert [run(box, *words).exit_code for words in wrong] == [2, 2, 2, 2]


def test_the_atlas_has_a_command(box: RegistryBox, tmp_path: Path) -> None:
    """The command prints a table or writes a picture, for any names of subjects."""
    assert "customers-value" in run(box, "atlas").stdout
    assert run(box, "atlas", "--limit", "1").stdout.rstrip().endswith("… 4 more")
    file = tmp_path / "atlas.svg"
    assert run(box, "atlas", "--svg", str(file)).exit_code == 0
    text = file.read_text(encoding="utf-8")
    assert "team.&lt;b&gt;⟨U+202E⟩" in text
    assert "<b>" not in text


def test_notebooks_show_answers(box: RegistryBox) -> None:
    """Each response of the client has its own HTML, in which texts are escaped."""
    client = box.client
    pages = [
        client.history(SUBJECT)._repr_html_(),
        client.lifelines(SUBJECT)._repr_html_(),
        client.matrix(SUBJECT)._repr_html_(),
        client.neighbours(SUBJECT)._repr_html_(),
        client.atlas()._repr_html_(),
    ]
    assert all(page.count("<svg") == page.count("<table") == 1 for page in pages)
    version = client.version("team.<b>\u202e")._repr_html_()
    assert "<td>team.&lt;b&gt;" in version
    assert "&#34;int&#34;" in version
    compared = client.diff(SUBJECT, 1, 8)._repr_html_()
    assert "<strong>✓ yes</strong>" in compared
    assert "✗ READER_FIELD_MISSING_DEFAULT_VALUE" in compared
    assert "Both have the same content." in client.diff(SUBJECT, 8, 8)._repr_html_()
    check = client.check("avro", '{"type":"record","name":"A","fields":[]}', [BaselineSchema('"int"')])
    assert "✗ not compatible" in check._repr_html_()


def test_the_client_stays_light() -> None:
    """Importing the client imports neither pictures nor templates."""
    code = "import sys, stele.client; print([m for m in sys.modules if m.startswith(('jinja2', 'stele.pictures'))])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
