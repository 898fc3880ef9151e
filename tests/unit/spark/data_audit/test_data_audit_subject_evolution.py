"""Histories of subjects in reports, loaded from a real registry, and the sentence for a missing one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.support.history_answers import make_history, make_lifelines

from stele.client import Request, ResolvedSchema, Retry, SchemaRegistryClient, SchemaSnapshot
from stele.core.findings import Verdict
from stele.spark.data_audit.audit_scope import load_scope
from stele.spark.data_audit.census import make_census
from stele.spark.data_audit.data_stats import SchemaStats
from stele.spark.data_audit.drift import make_drift_report
from stele.spark.data_audit.report import to_html
from stele.spark.data_audit.subject_evolution import (
    SubjectEvolution,
    describe_missing,
    draw_evolutions,
    load_evolutions,
)
from stele.testing.registry_box import RegistryBox

SUBJECT = "orders-value"


@pytest.fixture(scope="module")
def client() -> Iterator[SchemaRegistryClient]:
    """A client of a registry in this process with two versions of a subject, of the ids 1 and 2."""
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}]
    texts = [json.dumps({"type": "record", "name": "R", "fields": fields[:count]}) for count in (1, 2)]
    with RegistryBox([(SUBJECT, text) for text in texts]) as box:
        yield box.client


def test_a_registry_tells_versions_and_fields(client: SchemaRegistryClient) -> None:
    """Each subject is loaded once. An unknown subject has a reason, and the next one is still loaded."""
    nobody, orders = load_evolutions(client.send, ["nobody", SUBJECT, SUBJECT])
    assert (nobody.history, nobody.lifelines) == (None, None)
    assert nobody.missing.startswith("the registry returned an error: ")
    assert orders.history is not None
    assert orders.lifelines is not None
    assert [version.version for version in orders.history.versions] == [1, 2]
    assert [line.path for line in orders.lifelines.fields] == ["id", "note"]
    assert orders.missing == ""


def test_a_registry_that_is_away_is_asked_once() -> None:
    """After a request without an answer no more are sent, and one sentence names all subjects."""
    requests = []
    with SchemaRegistryClient("http://127.0.0.1:9", retry=Retry(rounds=1)) as away:

        def ask(request: Request[object]) -> object:
            requests.append(request)
            return away.send(request)

        evolutions = load_evolutions(ask, ["a", "b"])
    assert len(requests) == 1
    (sentence,) = describe_missing(evolutions)
    assert sentence.startswith("The history of a, b is not drawn: the registry does not answer: ")
    assert list(draw_evolutions(evolutions)) == []


def test_audits_draw_their_subjects(client: SchemaRegistryClient) -> None:
    """Reports of drift and of a census have both pictures with tables. The census labels versions with records."""
    scope = load_scope(lambda: client, SUBJECT, engine="python")
    stats = {"1": SchemaStats(records=3)}
    for page in (to_html(make_drift_report(stats, scope)), to_html(make_census(stats, scope))):
        assert page.count('class="stele-picture"') == page.count('class="picture-table"') == 2
        assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
        assert "is not drawn" not in page
    assert page.count(">3 records<") == 2, "below the version, and in the table"


def test_a_snapshot_has_no_history() -> None:
    """A report from a snapshot says why nothing is drawn."""
    schema = ResolvedSchema('"string"', id=1, subject="s", version=1)
    scope = load_scope(SchemaSnapshot((schema,)), "s", engine="python")
    page = to_html(make_drift_report({"1": SchemaStats(records=1)}, scope))
    assert "The history of s is not drawn: a snapshot holds no history." in page
    assert "<figure" not in page


def test_labels_stand_at_their_versions() -> None:
    """A label is in the picture and in the table, under its heading. A labelled version is not folded."""
    yes = Verdict.COMPATIBLE
    history = make_history([(None, None), *[(yes, yes)] * 8], subject="s")
    evolution = SubjectEvolution("s", history, make_lifelines(3, 2))
    plain, _ = draw_evolutions([evolution])
    assert plain.figure is not None
    assert plain.figure.picture.body.count("p-fold") == 2, "seven versions are one fold, of two sheets"
    story, _ = draw_evolutions([evolution], {"s": {5: "batches 0–4"}}, "batches")
    assert story.figure is not None
    assert ">batches 0–4<" in story.figure.picture.body
    assert "p-fold" not in story.figure.picture.body
    rows = story.figure.table.to_records()
    assert {row["version"]: row["batches"] for row in rows if row["batches"]} == {5: "batches 0–4"}
