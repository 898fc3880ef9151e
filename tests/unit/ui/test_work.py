"""The pages with forms: each has the effect of its form, reports errors, and writes nothing when it is only viewed."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.unit.ui.conftest import ADDRESS, JSON, make_order, open_client, register

from stele.core.audit_chain import AuditEntry
from stele.service.audit_file import AuditFile
from stele.spark.pipeline.journal import BatchEntry, BatchJournal, DeadLetterSample, pipeline_lock
from stele.spark.pipeline.journal import BatchReport as WrittenReport
from stele.spark.pipeline.schema_evolution import ColumnChange, TableChange

FORM = {"content-type": "application/x-www-form-urlencoded"}
REFERENCE = {"ref_name": "org.shop.Address", "ref_subject": "address", "ref_version": "1"}


@pytest.fixture
def server() -> Iterator[httpx.Client]:
    """A client of a server of its own, for tests that change something."""
    yield from open_client()


def count_records(client: httpx.Client) -> int:
    """Return the number of records in the log."""
    return int(client.get("/api/journal?limit=0").json()["end"])


def send(client: httpx.Client, path: str, **fields: Any) -> httpx.Response:
    """Return the response to a form that is sent as a browser sends it."""
    return client.post(path, data=fields)


def send_json(client: httpx.Client, path: str, **fields: Any) -> Any:
    """Return what the JSON twin answers to a form."""
    return json.loads(client.post(f"{path}.json", content=json.dumps(fields), headers=JSON).text)


# --- the whole registry -----------------------------------------------------------------------------------------------

ADDED = {"name": "note", "type": "string"}
"""A field without a default: older readers skip it, newer readers miss it in older data."""


@pytest.mark.parametrize("profile", ["8.1", "karapace"])
def test_a_policy_of_the_registry_is_what_every_api_shows_and_keeps(profile: str) -> None:
    """A policy of the registry applies to new subjects; only `/config` shows the own level of the default context."""
    for client in open_client(confluent_profile=profile):
        assert client.get("/config").json() == {"compatibilityLevel": "BACKWARD"}
        assert send(client, "/ui/policy", action="save", policy="FORWARD").status_code == 303
        assert client.get("/config").json()["compatibilityLevel"] == "BACKWARD"
        assert client.get("/config/:.__GLOBAL:").json()["compatibilityLevel"] == "FORWARD"
        assert client.get("/config?defaultToGlobal=true").json()["compatibilityLevel"] == "FORWARD"
        assert client.get("/api/policies").json()["name"] == "FORWARD"
        register(client, "orders", make_order())
        register(client, "orders", make_order(ADDED))
        config = client.get("/config/orders?defaultToGlobal=true").json()
        assert config["compatibilityLevel"] == "FORWARD"
        client.put("/config", content='{"compatibility": "FULL"}', headers=JSON)
        assert client.get("/config").json()["compatibilityLevel"] == "FULL"
        assert client.get("/api/policies").json()["name"] == "FORWARD"


def test_a_mode_of_the_registry_is_what_confluents_api_shows(server: httpx.Client) -> None:
    """A mode of the whole registry prevents changes until the default context has a mode of its own."""
    assert server.get("/mode").json() == {"mode": "READWRITE"}
    assert send(server, "/ui/policy", action="mode", mode="READONLY").status_code == 303
    assert server.get("/mode?defaultToGlobal=true").json() == {"mode": "READONLY"}
    sent = json.dumps({"schema": '"string"'})
    assert server.post("/subjects/a/versions", content=sent, headers=JSON).json()["error_code"] == 42205
    server.put("/mode", content='{"mode": "READWRITE"}', headers=JSON)
    assert server.get("/mode").json() == {"mode": "READWRITE"}
    register(server, "a", '"string"')


# --- register ---------------------------------------------------------------------------------------------------------


def test_a_first_version_is_checked_then_registered(server: httpx.Client) -> None:
    """A check writes nothing; registering leads to the page of the version; sending it again changes nothing."""
    text = json.dumps(ADDRESS, indent=2)
    before = count_records(server)
    checked = send(server, "/ui/register", subject="address", format="avro", schema=text, action="check")
    assert checked.status_code == 200
    assert "The registry takes it as version 1" in checked.text
    assert "address-value" in checked.text
    assert count_records(server) == before
    response = send(
        server, "/ui/register", subject="address", format="avro", schema=text, action="register", latest="0"
    )
    assert (response.status_code, response.headers["location"]) == (
        303,
        "/ui/subjects/address?version=1&done=registered",
    )
    assert "The version is registered." in server.get(response.headers["location"]).text
    assert server.get("/subjects/address/versions/1").json()["schema"] == text
    end = count_records(server)
    again = json.dumps(ADDRESS)
    assert send_json(server, "/ui/register", subject="address", schema=again, action="register") == {
        "location": "/subjects/address?version=1&done=same"
    }
    assert send_json(server, "/ui/register", subject="address", schema=again)["report"]["same"] == 1
    assert count_records(server) == end
    entry = server.get("/api/journal?after=0").json()["entries"][-1]
    assert (entry["kind"], entry["via"]) == ("registered", "ui")


def test_a_refused_version_names_reasons_and_fixes(server: httpx.Client) -> None:
    """Check and registration refuse a breaking change with path, reason and fix, and write nothing."""
    register(server, "orders", make_order())
    text = json.dumps(make_order({"name": "total", "type": "long"}))
    before = count_records(server)
    report = send_json(server, "/ui/register", subject="orders", schema=text)["report"]
    assert report["against"] == 1
    (finding,) = report["findings"]
    assert finding["rule"] == "READER_FIELD_MISSING_DEFAULT_VALUE"
    assert finding["path"]
    assert finding["why"]
    assert finding["fix"]
    page = send(server, "/ui/register", subject="orders", schema=text, action="register")
    assert page.status_code == 422
    assert "Nothing was registered" in page.text
    assert "reader field missing default value" in page.text
    assert "<b>Fix:</b>" in page.text
    assert count_records(server) == before
    mended = json.dumps(make_order({"name": "total", "type": "long", "default": 0}))
    assert send(server, "/ui/register", subject="orders", schema=mended, action="register").status_code == 303


def test_who_else_breaks_through_references(server: httpx.Client) -> None:
    """The check lists the schemas that refer to a changed one and would break, with their distance."""
    register(server, "address", ADDRESS)
    server.put("/config/address", content='{"compatibility": "NONE"}', headers=JSON)
    order = make_order({"name": "address", "type": "org.shop.Address"})
    register(server, "orders", order, references=[{"name": "org.shop.Address", "subject": "address", "version": 1}])
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "first", "type": "org.shop.Order"}]}
    register(server, "baskets", basket, references=[{"name": "org.shop.Order", "subject": "orders", "version": 1}])
    changed = json.dumps({**ADDRESS, "fields": [{"name": "city", "type": "int"}]})
    report = send_json(server, "/ui/register", subject="address", schema=changed)["report"]
    assert report["findings"] == []
    assert [(row["subject"], row["distance"]) for row in report["affected"]] == [("orders", 1), ("baskets", 2)]
    assert all(row["findings"][0]["rule"] == "TYPE_MISMATCH" for row in report["affected"])
    harmless = json.dumps({**ADDRESS, "doc": "Where."})
    rows = send_json(server, "/ui/register", subject="address", schema=harmless)["report"]["affected"]
    assert not any(row["findings"] or row["problem"] for row in rows)
    renamed = json.dumps({**ADDRESS, "name": "Place"})
    rows = send_json(server, "/ui/register", subject="address", schema=renamed)["report"]["affected"]
    assert all(row["problem"] for row in rows)
    page = send(server, "/ui/register", subject="address", schema=changed)
    assert "✗ breaks" in page.text


def test_missing_references_are_found(server: httpx.Client) -> None:
    """A name in the text becomes a reference to the subject that has the type; an unknown name is reported."""
    register(server, "address", ADDRESS)
    text = json.dumps(make_order({"name": "a", "type": "org.shop.Address"}, {"name": "b", "type": "org.shop.Nobody"}))
    result = send_json(server, "/ui/register", subject="orders", schema=text, action="detect")
    assert result["references"] == [{"name": "org.shop.Address", "subject": "address", "version": "1"}]
    assert result["missing"] == ["org.shop.Nobody"]
    text = json.dumps(make_order({"name": "a", "type": "org.shop.Address"}))
    refused = send(server, "/ui/register", subject="orders", schema=text, action="register")
    assert refused.status_code == 422
    response = send(server, "/ui/register", subject="orders", schema=text, action="register", **REFERENCE)
    assert response.status_code == 303
    form = server.get("/ui/subjects/orders/register.json").json()
    assert form["references"] == [{"name": "org.shop.Address", "subject": "address", "version": "1"}]
    assert form["latest"] == 1


@pytest.mark.parametrize(
    ("fields", "field", "word"),
    [
        ({"subject": "", "schema": '"int"'}, "subject", "Name the subject"),
        ({"subject": ":.team:", "schema": '"int"'}, "subject", "namespace"),
        ({"subject": "a\tb", "schema": '"int"'}, "subject", "control"),
        ({"subject": "x", "schema": " "}, "schema", "Write or paste"),
        ({"subject": "x", "schema": '{\n"type": }'}, "schema", "Line 2"),
        ({"subject": "x", "schema": '"int"', "ref_name": "a", "ref_subject": ""}, "references", "Reference 1"),
        (
            {"subject": "x", "schema": '"int"', "ref_name": "a", "ref_subject": "b", "ref_version": "-3"},
            "references",
            "number",
        ),
    ],
)
def test_messages_stand_beside_their_field(server: httpx.Client, fields: dict[str, str], field: str, word: str) -> None:
    """An error is reported at its field, in the page and in its twin, and the typed values are kept."""
    page = send(server, "/ui/register", **fields, action="register")
    assert page.status_code == 422
    assert f'id="problem-{field}"' in page.text
    (problem,) = send_json(server, "/ui/register", **fields)["problems"]
    assert problem["field"] == field
    assert word in problem["message"]


def test_somebody_else_was_faster(server: httpx.Client) -> None:
    """A version that was registered after the form was opened prevents the registration."""
    register(server, "orders", make_order())
    text = json.dumps(make_order({"name": "b", "type": "int", "default": 1}))
    late = send(server, "/ui/register", subject="orders", schema=text, action="register", latest="0")
    assert late.status_code == 422
    assert "Somebody else" in late.text
    assert server.get("/subjects/orders/versions").json() == [1]


def test_a_file_takes_the_place_of_the_text(server: httpx.Client) -> None:
    """An uploaded file is registered as it is."""
    text = b'syntax = "proto3";\nmessage Payment { int64 id = 1; }\n'
    response = server.post(
        "/ui/register",
        data={"subject": "payments", "format": "protobuf", "action": "register", "schema": ""},
        files={"file": ("payment.proto", text)},
    )
    assert response.status_code == 303, response.text
    assert server.get("/subjects/payments/versions/latest").json()["schemaType"] == "PROTOBUF"


# --- policy and mode --------------------------------------------------------------------------------------------------


def test_a_policy_is_previewed_then_set(server: httpx.Client) -> None:
    """The preview lists the versions that the policy would have refused, and writes nothing; saving sets the policy."""
    server.put("/config/orders", content='{"compatibility": "NONE"}', headers=JSON)
    register(server, "orders", make_order({"name": "a", "type": "string"}))
    register(server, "orders", make_order())
    register(server, "orders", make_order({"name": "a", "type": "int"}))
    before = count_records(server)
    result = send_json(server, "/ui/subjects/orders/policy", policy="BACKWARD_TRANSITIVE", action="preview")
    assert [(row["number"], row["accepted"]) for row in result["preview"]] == [(3, False), (2, True), (1, True)]
    assert result["preview"][0]["findings"]
    assert count_records(server) == before
    page = send(server, "/ui/subjects/orders/policy", policy="BACKWARD", action="preview")
    assert "refused" in page.text
    saved = send(server, "/ui/subjects/orders/policy", policy="FULL", action="save")
    assert saved.headers["location"] == "/ui/subjects/orders/policy?done=policy"
    assert server.get("/config/orders").json()["compatibilityLevel"] == "FULL"
    assert "set by this subject" in server.get("/ui/subjects/orders/policy").text
    send(server, "/ui/subjects/orders/policy", policy="inherit", action="save")
    assert server.get("/config/orders").status_code == 404


def test_policies_of_namespaces_and_the_registry(server: httpx.Client) -> None:
    """A namespace and the registry have the same form; a policy without a common name is shown in its fields."""
    register(server, "orders", make_order(), prefix="/contexts/.team")
    assert send(server, "/ui/policy", policy="FORWARD", action="save").status_code == 303
    assert server.get("/ui/policy.json").json()["answer"]["name"] == "FORWARD"
    custom = {"policy": "custom", "backward": "since", "backward_since": "2", "forward": "latest"}
    response = send(server, "/ui/levels/%3A.team%3A/policy", **custom, action="save")
    assert response.headers["location"] == "/ui/levels/%3A.team%3A/policy?done=policy"
    form = server.get("/ui/levels/%3A.team%3A/policy.json").json()
    assert (form["chosen"], form["backward"], form["forward"]) == ("custom", "since:2", "latest")
    for wrong in ({"policy": "LAX"}, {"policy": "custom", "backward": "since", "backward_since": "x"}):
        answer = send(server, "/ui/policy", **wrong, action="save")
        assert answer.status_code == 422
        assert 'id="problem-policy"' in answer.text
    assert 'id="problem-ruleset"' in send(server, "/ui/policy", policy="FULL", ruleset="luck", action="save").text


def test_a_mode_is_set_and_lifted(server: httpx.Client) -> None:
    """READONLY refuses a registration, and the check reports it before; inheriting removes the mode."""
    register(server, "orders", make_order())
    assert send(server, "/ui/subjects/orders/policy", mode="READONLY", action="mode").status_code == 303
    text = json.dumps(make_order({"name": "b", "type": "int", "default": 1}))
    assert send_json(server, "/ui/register", subject="orders", schema=text)["report"]["mode"] == "READONLY"
    assert send(server, "/ui/register", subject="orders", schema=text, action="register").status_code == 403
    send(server, "/ui/subjects/orders/policy", mode="inherit", action="mode")
    assert send(server, "/ui/register", subject="orders", schema=text, action="register").status_code == 303


# --- benches ----------------------------------------------------------------------------------------------------------


def test_two_texts_or_a_subject_are_checked(client: httpx.Client) -> None:
    """The check page compares with a text or the versions of a subject, reports malformed texts, and writes nothing."""
    before = count_records(client)
    old, new = json.dumps(make_order()), json.dumps(make_order({"name": "b", "type": "int"}))
    answer = send_json(client, "/ui/check", schema=new, against=old)["answer"]
    assert not answer["compatible"]
    assert send_json(client, "/ui/check", schema=old, against=new)["answer"]["compatible"]
    result = send_json(client, "/ui/check", schema=new, subject="orders", policy="BACKWARD_TRANSITIVE")
    assert result["compared"] == 4
    assert not result["answer"]["compatible"]
    assert send_json(client, "/ui/check", schema=new, subject="nobody")["problems"][0]["field"] == "subject"
    assert send_json(client, "/ui/check", schema="{")["problems"][0]["field"] == "schema"
    assert send_json(client, "/ui/check", schema=new, against="{")["problems"][0]["field"] == "against"
    assert "✗ Not compatible" in send(client, "/ui/check", schema=new, against=old).text
    assert count_records(client) == before


def test_bytes_are_decoded_or_the_page_says_why_not(client: httpx.Client) -> None:
    """The page decodes hexadecimal, base64 and files with the schema of the id, and reports the byte that is wrong."""
    version = client.get("/subjects/orders/versions/1").json()
    frame = b"\0" + version["id"].to_bytes(4, "big")
    good = frame + b"\x54"
    for data, notation in ((good.hex(" "), "auto"), ("0x" + good.hex(), "hex"), ("AAAAAAJU", "base64")):
        (row, *_) = send_json(client, "/ui/decode", data=data, notation=notation)["readings"]
        assert (row["wire"], row["subject"], row["version"]) == ("Confluent", "orders", 1)
        assert json.loads(row["record"]) == {"id": 42}
    result = client.get("/ui/decode.json", params={"data": good.hex()}).json()
    assert result["readings"][0]["record"]
    (row, *_) = send_json(client, "/ui/decode", data=(good + b"\1\2").hex())["readings"]
    assert row["problem"]
    assert row["record"] == ""
    (row, *_) = send_json(client, "/ui/decode", data="0000ffffff00")["readings"]
    assert "No schema is known" in row["problem"]
    (row, *_) = send_json(client, "/ui/decode", data="54", level="orders")["readings"]
    assert row["wire"] == "no frame"
    uploaded = client.post("/ui/decode", files={"file": ("record.bin", good)})
    assert "42" in uploaded.text
    payment = client.get("/subjects/payments/versions/1").json()["id"]
    (row, *_) = send_json(client, "/ui/decode", data=(b"\0" + payment.to_bytes(4, "big") + b"\0\x08\x07").hex())[
        "readings"
    ]
    assert (row["message"], json.loads(row["record"])) == ("Payment", {"id": 7})
    assert send_json(client, "/ui/decode", data="zz!")["problems"][0]["field"] == "data"
    assert send_json(client, "/ui/decode", data="")["problems"][0]["field"] == "data"


# --- delete and recover -----------------------------------------------------------------------------------------------


def test_delete_softly_recover_and_delete_for_good(server: httpx.Client) -> None:
    """A deletion is soft first; recovery restores text and id; deleting for good needs the typed name."""
    register(server, "orders", make_order())
    before = server.get("/subjects/orders/versions/1").json()
    assert "Nothing stands against it" in server.get("/ui/subjects/orders/delete").text
    response = send(server, "/ui/subjects/orders/delete")
    assert response.headers["location"] == "/ui/subjects/orders/versions?done=deleted"
    assert server.get("/subjects").json() == []
    back = send(server, "/ui/subjects/orders/recover", version="1")
    assert back.headers["location"].endswith("&done=recovered")
    after = server.get("/subjects/orders/versions/latest").json()
    assert (after["id"], after["schema"]) == (before["id"], before["schema"])
    send(server, "/ui/subjects/orders/delete")
    preview = server.get("/ui/subjects/orders/delete.json").json()
    assert preview["for_good"]
    refused = send(server, "/ui/subjects/orders/delete", typed="order")
    assert refused.status_code == 422
    assert 'id="problem-typed"' in refused.text
    purged = send(server, "/ui/subjects/orders/delete", typed="orders", for_good="true")
    assert purged.headers["location"] == "/ui/subjects?done=purged"
    assert server.get("/subjects?deleted=true").json() == []


def test_referrers_are_the_reason_for_a_refusal(server: httpx.Client) -> None:
    """A subject that others refer to cannot be deleted, and the page lists those that refer to it."""
    register(server, "address", ADDRESS)
    order = make_order({"name": "address", "type": "org.shop.Address"})
    register(server, "orders", order, references=[{"name": "org.shop.Address", "subject": "address", "version": 1}])
    preview = server.get("/ui/subjects/address/delete.json").json()
    assert preview["referrers"] == [{"namespace": "", "subject": "orders", "version": 1, "to_version": 1}]
    page = server.get("/ui/subjects/address/delete")
    assert "cannot be deleted now" in page.text
    assert re.search(r'<a href="/ui/subjects/orders\?version=1">', page.text)
    assert send(server, "/ui/subjects/address/delete").status_code == 422
    assert server.get("/subjects/address/versions").json() == [1]


def test_a_deletion_that_became_one_for_good_is_asked_again(server: httpx.Client) -> None:
    """A form for a soft deletion never deletes for good, whatever happened meanwhile."""
    register(server, "orders", make_order())
    server.delete("/subjects/orders")
    late = send(server, "/ui/subjects/orders/delete", typed="orders", for_good="false")
    assert late.status_code == 422
    assert server.get("/subjects?deleted=true").json() == ["orders"]


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_the_journal_filters_and_goes_back(client: httpx.Client) -> None:
    """Kinds, subjects and namespaces filter the journal; newest entries come first, and only the first page is live."""
    rows = client.get("/ui/journal.json").json()["rows"]
    assert [row["entry"]["seq"] for row in rows] == sorted((row["entry"]["seq"] for row in rows), reverse=True)
    kinds = {
        row["entry"]["kind"] for row in client.get("/ui/journal.json?kind=registered&subject=order").json()["rows"]
    }
    assert kinds == {"registered"}
    team = client.get("/ui/journal.json?ns=team").json()["rows"]
    assert {row["entry"]["namespace"] for row in team} == {"team"}
    feed = re.search(r'data-feed="([^"]*)"', client.get("/ui/journal?kind=registered&subject=a%26b").text)
    assert feed is not None
    assert feed[1].startswith("/ui/journal/feed?kind=registered&amp;subject=a%26b&amp;after=")
    assert "data-feed" not in client.get("/ui/journal?before=3").text


def test_the_journal_shows_each_entry_once(server: httpx.Client) -> None:
    """Paging back shows each entry of the journal once, newest first, also if a record has several entries."""
    for number in range(40):
        register(server, f"subject-{number}", '"int"')
    positions: list[tuple[int, int]] = []
    path = "/ui/journal.json"
    while path:
        page = server.get(path).json()
        positions += [(row["entry"]["seq"], row["entry"]["part"]) for row in page["rows"]]
        path = f"/ui/journal.json?before={page['older']}" if page["older"] else ""
    entries = server.get("/api/journal?after=0&limit=1000").json()["entries"]
    assert positions == sorted(((entry["seq"], entry["part"]) for entry in entries), reverse=True)


def test_rulesets_and_their_impact(client: httpx.Client) -> None:
    """The address of the page names a ruleset; an unknown one is reported at the field."""
    impact = client.get("/ui/rulesets/impact.json?format=avro&ruleset=confluent").json()
    assert impact["info"]["name"] == "confluent"
    assert impact["rows"] == []
    assert client.get("/ui/rulesets/impact.json?format=avro&ruleset=luck").json()["problems"]
    assert send(client, "/ui/rulesets/impact", format="avro", ruleset="luck").status_code == 422


def test_a_ruleset_is_adopted(server: httpx.Client) -> None:
    """Adopting leads back to the list."""
    register(server, "orders", make_order())
    response = send(server, "/ui/rulesets/impact", format="avro", ruleset="confluent@1")
    assert response.headers["location"] == "/ui/rulesets?done=adopted"


def test_a_dump_is_exported_and_planned(server: httpx.Client) -> None:
    """The dump of a registry has no differences to itself, is new to an empty registry, and conflicts with another."""
    register(server, "address", ADDRESS)
    order = make_order({"name": "address", "type": "org.shop.Address"})
    register(server, "orders", order, references=[{"name": "org.shop.Address", "subject": "address", "version": 1}])
    dump = server.get("/ui/transfer/download").content
    files = {"dump": ("schemas.dump", dump)}
    same = json.loads(server.post("/ui/transfer.json", files=files).text)
    assert (same["new"], same["same"], same["conflicts"]) == (0, 2, 0), same
    for other in open_client():
        new = json.loads(other.post("/ui/transfer.json", files=files).text)
        assert (new["new"], new["same"], new["conflicts"]) == (2, 0, 0)
        register(other, "address", '"int"')
        wrong = json.loads(other.post("/ui/transfer.json", files=files).text)
        assert wrong["conflicts"]
        assert "✗ 1" in other.post("/ui/transfer", files=files).text or wrong["conflicts"] > 1
        assert other.post("/ui/transfer", files={"dump": ("x", b"{nonsense")}).status_code == 422
        assert other.post("/ui/transfer").status_code == 422


def test_subscriptions_pause_and_resume(server: httpx.Client) -> None:
    """A subscription is paused and resumed from its page."""
    subscription = server.post(
        "/subscriptions", content='{"sink": "https://sink.example.org/x", "protocol": "HTTP"}', headers=JSON
    ).json()
    path = f"/ui/events/{subscription['id']}"
    assert server.get(path).status_code == 200
    assert send(server, path, action="pause").headers["location"] == "/ui/events?done=paused"
    assert server.get(f"{path}/state.json").json()["subscription"]["state"] == "paused"
    assert send(server, path, action="resume").status_code == 303
    assert send(server, path, action="dance").status_code == 422
    assert server.get("/ui/events/nobody").status_code == 404


def test_read_only_pages_only_ask() -> None:
    """Pages that are read-only refuse every change, and still check, decode and plan."""
    for client in open_client(ui_read_only=True):
        register(client, "orders", make_order())
        for path in ("/ui/register", "/ui/subjects/orders/delete", "/ui/subjects/orders/policy", "/ui/rulesets/impact"):
            refused = send(client, path, subject="orders", schema='"int"', policy="NONE", action="save")
            assert (refused.status_code, "read-only" in refused.text) == (403, True), path
        assert send(client, "/ui/check", schema='"int"').status_code == 200
        assert send(client, "/ui/decode", data="00").status_code == 200
        for path in ("/ui/subjects/orders/delete", "/ui/subjects/orders/policy", "/ui/subjects/orders/register"):
            page = client.get(path).text
            assert "These pages are read-only" in page
            assert "disabled" in page


def test_another_site_cannot_send_a_form(server: httpx.Client) -> None:
    """A form that a page of another origin sends changes nothing."""
    refused = server.post(
        "/ui/register",
        data={"subject": "x", "schema": '"int"', "action": "register"},
        headers={"origin": "https://evil.example.org"},
    )
    assert refused.status_code == 403
    assert server.get("/subjects").json() == []


def test_forms_are_bounded(server: httpx.Client) -> None:
    """Too many fields, other media types and invalid bytes are rejected with an error page."""
    many = "&".join("a=1" for _ in range(600))
    assert server.post("/ui/check", content=many, headers=FORM).status_code == 413
    assert server.post("/ui/check", content="x", headers={"content-type": "text/plain"}).status_code == 422
    assert server.post("/ui/check", content=b"\xff=\xff&schema=%FF", headers=FORM).status_code == 422
    boundary = {"content-type": "multipart/form-data; boundary=x"}
    assert server.post("/ui/check", content=b"--y\r\nnonsense", headers=boundary).status_code in {400, 422}


def test_pipelines_are_read_from_the_journals_that_they_write(tmp_path: Path) -> None:
    """The pages show what `BatchJournal` wrote: sums, dead letters by reason, changes, and newer schema versions."""
    journal = BatchJournal(str(tmp_path / "clicks"))
    change = TableChange("shop.clicks", ColumnChange("add", ("total",), "bigint"))
    entry = BatchEntry(0, ())
    journal.save_entry(entry)
    report = WrittenReport(
        0,
        at=1_790_000_000.0,
        rows=10,
        dead_letters=2,
        tables={"shop.clicks": 10},
        versions={"orders": 1},
        codes={"UNKNOWN_ID": 2},
        reasons={"no schema has the id 7": 2},
        samples=(
            DeadLetterSample("UNKNOWN_ID", "no schema has the id 7", "AAAAAAcC", 6, "in/a.parquet"),
            DeadLetterSample("TRUNCATED", "the record ends inside a value", "AAAAAAG" + "A" * 5, 4_000),
            DeadLetterSample("FRAME", "no bytes", "", 0),
            DeadLetterSample("FRAME", "damaged", "!", 1),
        ),
        changes=(change,),
    )
    journal.finish_batch(entry, report)
    journal.save_lag({"clicks": 40, "taps": 2})
    (tmp_path / "damaged" / "stele").mkdir(parents=True)
    (tmp_path / "damaged" / "stele" / "totals.json").write_text("{")
    (tmp_path / "elsewhere").mkdir()
    for client in open_client(ui_pipelines=str(tmp_path)):
        register(client, "orders", make_order())
        register(client, "orders", make_order({"name": "b", "type": "int", "default": 1}))
        listed = client.get("/ui/pipelines.json").json()["pipelines"]
        assert [row["name"] for row in listed] == ["clicks", "damaged"]
        assert listed[1]["problem"]
        pipeline = client.get("/ui/pipelines/clicks/journal.json").json()
        assert pipeline["journal"]["totals"]["rows"] == 10
        assert pipeline["journal"]["reasons"] == {"no schema has the id 7": 2}
        assert pipeline["journal"]["batches"][0]["changes"][0]["change"]["path"] == ["total"]
        assert [(row["used"], row["latest"]) for row in pipeline["subjects"]] == [(1, 2)]
        assert pipeline["journal"]["lag"]["topics"] == {"clicks": 40, "taps": 2}
        unknown, cut, empty = pipeline["samples"]
        assert (unknown["code"], unknown["data"], unknown["place"]) == ("UNKNOWN_ID", "000000000702", "in/a.parquet")
        assert unknown["readings"][0]["problem"]
        assert cut["is_cut"]
        assert (cut["readings"][0]["subject"], cut["readings"][0]["version"]) == ("orders", 1)
        assert not empty["readings"]
        page = client.get("/ui/pipelines/clicks").text
        assert "decode?data=000000000702" in page
        assert "<dd>42</dd>" in page
        assert "no schema has the id 7" in page
        assert "compare?old=1&amp;new=2" in page
        assert client.get("/ui/pipelines/damaged").status_code == 200
        with pipeline_lock(str(tmp_path / "clicks")):
            assert client.get("/ui/pipelines/clicks/journal.json").json()["journal"]["running"] is True
        for name in ("nobody", "elsewhere", "%2E%2E", "..%2Fclicks", "%00"):
            assert client.get(f"/ui/pipelines/{name}").status_code in {404, 422}, name


def test_refusals_are_read_from_the_audit_trail(tmp_path: Path) -> None:
    """The newest refusals come first, a text filters them, and a half-written line does no harm."""
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path)
    details = {"method": "GET", "path": "/subjects/a", "status": 403, "error": "Forbidden", "operation": "read"}
    entries = [AuditEntry(number, "refused", actor=f"user{number}", details=details) for number in range(1, 4)]
    file.append([*entries, AuditEntry(9, "registered", actor="ann")], 1)
    file.close()
    with path.open("ab") as opened:
        opened.write(b'{"kind":"refused"')
    for client in open_client(audit_file=str(path)):
        rows = client.get("/ui/refusals.json").json()["rows"]
        assert [row["actor"] for row in rows] == ["user3", "user2", "user1"]
        assert rows[0]["operation"] == "read"
        assert len(client.get("/ui/refusals.json?text=USER2").json()["rows"]) == 1
        assert "the right <b>read</b> is missing" in client.get("/ui/refusals").text


REFUSED = {"type": "record", "name": "Order", "namespace": "org.shop", "fields": [{"name": "id", "type": "string"}]}


@pytest.mark.parametrize("kept_text", [0, 4096])
def test_a_refused_registration_says_later_why(tmp_path: Path, kept_text: int) -> None:
    """The file, the API and the page have the caller and the rule of a refusal, and the text if a setting keeps it."""
    path = tmp_path / "audit.jsonl"
    text = json.dumps(REFUSED)
    for client in open_client(audit_file=str(path), refused_text_bytes=kept_text):
        register(client, "orders", make_order())
        sent = json.dumps({"schema": text})
        assert client.post("/subjects/orders/versions", content=sent, headers=JSON).status_code == 409
        response = send(
            client, "/ui/register", subject="orders", format="avro", schema=text, action="register", latest="1"
        )
        assert response.status_code == 422
        assert client.post("/compatibility/subjects/orders/versions", content=sent, headers=JSON).status_code == 200
        wait_for_file(path, b"registration_refused", 2)
        body = client.get("/api/refusals?kind=registration_refused").json()
        assert (body["is_durable"], body["is_complete"]) == (True, True)
        assert [(row["subject"], row["via"]) for row in body["refusals"]] == [
            ("orders", "ui"),
            ("orders", "confluent"),
        ]
        schema = body["refusals"][0]["schema"]
        assert (schema["format"], schema["against"], schema["bytes"]) == ("avro", 1, len(text))
        assert schema["sha256"] == sha256(text.encode()).hexdigest()
        assert schema["findings"][0]["rule"] == "TYPE_MISMATCH"
        assert schema["text"] == (text if kept_text else "")
        assert client.get("/ui/refusals.json?text=" + schema["sha256"]).json()["rows"] == body["refusals"]
        html = client.get("/ui/refusals").text
        assert "cannot be read as string" in html
        assert ("<summary>Text</summary>" in html) is bool(kept_text)
        assert client.get("/api/refusals?limit=1").json()["is_complete"] is False
        assert client.get("/api/refusals?text=nobody").json()["refusals"] == []
        assert client.get("/api/refusals?kind=else").status_code == 422


def wait_for_file(path: Path, part: bytes, times: int) -> None:
    """Wait until a file contains a text a number of times."""
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(part) < times:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_without_a_file_the_newest_refused_registrations_stay_in_memory() -> None:
    """A server without an audit trail keeps as many refusals as its setting allows, and drops the oldest."""
    for client in open_client(refusals_kept=2):
        register(client, "orders", make_order())
        for name in ("text", "bytes", "float"):
            changed = {**REFUSED, "fields": [{"name": "id", "type": "string", "doc": name}]}
            sent = json.dumps({"schema": json.dumps(changed)})
            assert client.post("/subjects/orders/versions", content=sent, headers=JSON).status_code == 409
        body = client.get("/api/refusals").json()
        assert (len(body["refusals"]), body["is_durable"]) == (2, False)
        assert "one process refused to register" in client.get("/ui/refusals").text


def test_a_hostile_text_of_a_refusal_is_text() -> None:
    """Names and texts with HTML in a refusal are shown as text."""
    for client in open_client(refused_text_bytes=4096):
        name = "<img src=x onerror=alert(1)>"
        path = "/subjects/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E/versions"
        client.post(path, content=json.dumps({"schema": json.dumps(make_order())}), headers=JSON)
        text = json.dumps({**REFUSED, "doc": "<script>alert(1)</script>"})
        assert client.post(path, content=json.dumps({"schema": text}), headers=JSON).status_code == 409
        html = client.get("/ui/refusals").text
        assert client.get("/api/refusals").json()["refusals"][0]["subject"] == name
        assert "<img src=x" not in html
        assert "<script>alert" not in html
