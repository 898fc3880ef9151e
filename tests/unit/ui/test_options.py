"""Settings of the pages, their files, and what they show of the server."""

from __future__ import annotations

import gzip
from base64 import b64decode

import httpx
import pytest
from tests.unit.ui.conftest import JSON, open_client, open_server, register
from tools.ui_assets import EDITOR_FILE, PACKAGES, check_files, list_bundled_packages

from stele.errors import InvalidRequest
from stele.server.settings import load_settings
from stele.server.settings_table import list_settings
from stele.service.collections import read_collection
from stele.service.delivery.exporters import COLLECTION, decode_exporter
from stele.service.delivery.status import EXPORTERS, DeliveryState, DeliveryStatus, save_status
from stele.ui.assets import list_assets


def test_read_only_pages_offer_no_change() -> None:
    """With ui_read_only every control of a change is disabled, and a request for one is refused; the APIs go on."""
    for client in open_client(ui_read_only=True):
        register(client, "orders", '"string"')
        page = client.get("/ui/subjects/orders")
        assert "These pages are read-only (setting ui_read_only)." in page.text
        controls = client.get("/ui/subjects/orders/definition.json").json()["head"]["controls"]
        assert all(control["refusal"] for control in controls)
        refused = client.post("/ui/subjects", content=b"", headers=JSON)
        assert refused.status_code in {403, 405}


def test_pages_can_be_switched_off() -> None:
    """Without pages, `/ui` is a path like any other, and the start page does not lead there."""
    for client in open_client(ui=False):
        assert client.get("/ui").headers["content-type"] != "text/html; charset=utf-8"
        assert client.get("/", headers={"accept": "application/json"}).json()["ui"] is None
        assert 'href="ui"' not in client.get("/", headers={"accept": "text/html"}).text


def test_the_environment_is_on_every_page() -> None:
    """The name and the colour of the environment are at the top of every page, the colour in an attribute."""
    for client in open_client(ui_environment="production", ui_environment_color="#b00020"):
        for path in ("/ui", "/ui/subjects", "/ui/nothing"):
            text = client.get(path).text
            assert "<bdi>production</bdi>" in text
            assert 'fill="#b00020"' in text
        assert "· production</title>" in client.get("/ui").text
    with pytest.raises(InvalidRequest, match="ui_environment_color"):
        load_settings({"ui_environment_color": "red; x"}, environ={})


def test_settings_say_where_they_come_from() -> None:
    """Each setting has its value and its origin, and no password."""
    settings = load_settings(
        {"port": 9000}, environ={"STELE_STORE": "postgresql://ann:secret@db/stele", "STELE_WORKERS": "2"}
    )
    for client in open_client():
        rows = {row["name"]: row for row in client.get("/ui/settings.json").json()["settings"]}
        assert rows["store"]["value"] == "memory:"
    listed = {row.name: row for row in list_settings(settings)}
    assert (listed["port"].value, listed["port"].origin) == ("9000", "flag")
    assert listed["workers"].origin == "environment"
    assert listed["host"].origin == "default"
    assert "secret" not in listed["store"].value
    assert all(row.description for row in listed.values())


def test_assets_are_small_and_kept(client: httpx.Client) -> None:
    """All files together have at most 250 kB compressed, those of a first page 40 kB; each is kept for a year."""
    sizes = {name: len(gzip.compress(asset.body)) for name, asset in list_assets().items()}
    assert sum(sizes.values()) <= 250_000
    first = [name for name in sizes if f'/{name}"' in client.get("/ui").text]
    assert {"style.css", "theme.js", "htmx.js", "page.js"} <= set(first)
    page = len(gzip.compress(client.get("/ui").content))
    assert sum(sizes[name] for name in first) + page <= 40_000
    for name, asset in list_assets().items():
        answer = client.get(f"/ui/static/{asset.digest}/{name}")
        assert answer.content == asset.body
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert client.get(f"/ui/static/0/{name}").headers["cache-control"] == "no-cache"
    assert client.get("/ui/static/0/nothing.js").status_code == 404


def test_files_of_others_are_those_that_are_recorded() -> None:
    """Each third-party file has the hash in the script, and the page About lists its licence."""
    assert check_files() == []
    for client in open_client():
        licences = client.get("/ui/about.json").json()["licences"]
        fetched = [", ".join(file.name for file in each.files) for each in PACKAGES]
        bundled = [EDITOR_FILE for _ in list_bundled_packages()]
        assert [row["files"] for row in licences] == [*fetched, *bundled]
        assert all(row["licence"] and row["version"] for row in licences)


@pytest.mark.parametrize("ids", ["sequential", "md5"])
def test_every_dialect_reads_what_its_view_names(ids: str) -> None:
    """The path that the page of clients shows for a dialect returns the version, in plain text or in base64."""
    for client in open_client(schema_repo_ids=ids):
        for prefix in ("", "/contexts/.team"):
            for number in (1, 2, 3):
                fields = [{"name": f"only_in_{number}", "type": "int", "default": 0}]
                register(client, "orders", {"type": "record", "name": "Order", "fields": fields}, prefix=prefix)
        for name in ("orders", ":.team:orders"):
            for number in (1, 2, 3):
                views = client.get(f"/ui/subjects/{name}/clients.json?version={number}").json()["views"]
                assert len(views) == 6
                for view in views:
                    if not view["path"]:
                        assert (view["dialect"], name) == ("AVRO-1124 and schema-repo", ":.team:orders")
                        continue
                    answer = client.get(view["path"])
                    assert answer.status_code == 200, (name, view, answer.text)
                    text = answer.text
                    if view["dialect"] == "Pravega":
                        text = b64decode(answer.json()["schemaData"]).decode()
                    assert f"only_in_{number}" in text, (view, text)


def test_events_show_how_far_everybody_is() -> None:
    """Subscriptions and exporters have their state, what was delivered and what waits."""
    for server, client in open_server(event_delivery=False):
        subscription = {"sink": "https://sink.example.org/x", "protocol": "HTTP"}
        assert client.post("/subscriptions", json=subscription).status_code == 201
        register(client, "orders", '"string"')
        response = client.post("/exporters", json={"name": "east"})
        assert response.status_code == 200, response.text
        (row,) = client.get("/ui/events.json").json()["exporters"]
        assert (row["state"], row["offset"], row["waiting_records"] >= 1) == ("STARTING", 0, True)
        stored = server.run(read_collection(server.registry, COLLECTION))
        name = decode_exporter(stored["east",]).status_name
        stopped = DeliveryStatus("1", DeliveryState.PAUSED, delivered=1234, last_code="conflict", last_detail="taken")
        server.run(save_status(server.registry, EXPORTERS, name, stopped))
        server.run(save_status(server.registry, EXPORTERS, "east/1", DeliveryStatus("9", delivered=5)))
        page = client.get("/ui/events.json").json()
        assert [row["state"] for row in page["subscriptions"]] == ["active"]
        (row,) = page["exporters"]
        assert (row["state"], row["delivered"], row["offset"]) == ("ERROR", 1234, 1), "the run that goes on counts"
        assert row["trace"] == "conflict  taken"
        text = client.get("/ui/events").text
        assert "1,234" in text
        assert "✗ stopped by an error" in text
        assert client.post("/ui/exporters/east", data={"action": "resume"}).status_code == 303
        failing = DeliveryStatus("1", failures=3, last_code="no_answer", last_detail="gone")
        server.run(save_status(server.registry, EXPORTERS, name, failing))
        text = client.get("/ui/exporters/east").text
        assert "~ running, attempts fail" in text
        assert "3 attempts failed: no_answer gone" in text
