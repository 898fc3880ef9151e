"""The pages of a subject: versions, fields, changes and references."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import httpx
import pytest
from tests.unit.ui.conftest import JSON, make_order, open_client, register


@pytest.fixture(scope="module")
def long() -> Iterator[httpx.Client]:
    """A client of a server with a subject of 30 versions, each with a field more."""
    for client in open_client():
        for number in range(1, 31):
            fields = [{"name": f"f{each}", "type": "int", "default": 0} for each in range(1, number + 1)]
            register(client, "many", make_order(*fields))
        yield client


def test_folded_versions_are_shown_one_by_one_on_demand(long: httpx.Client) -> None:
    """Harmless versions are folded; the fold links to a page that draws them and the versions on both sides."""
    page = long.get("/ui/subjects/many/history").text
    fold = re.search(r'href="([^"]*unfold=(\d+)-(\d+)[^"]*)"', page)
    assert fold is not None
    address, first, last = html.unescape(fold[1]), int(fold[2]), int(fold[3])
    path, _, query = address.partition("?")
    story = long.get(f"{path}.json?{query}").json()["story"]
    numbers = [version["version"] for version in story["versions"]]
    assert numbers == list(range(max(1, first - 1), min(30, last + 1) + 1))
    drawn = long.get(address).text
    assert all(f">v{number}<" in drawn for number in range(first, last + 1))
    assert "unfold=" not in "".join(re.findall(r'<a href="([^"]*)"', drawn.partition("<svg")[2].partition("</svg>")[0]))
    for wrong in ("3-1", "x", "1-", "0-3"):
        assert long.get(f"/ui/subjects/many/history?unfold={wrong}").status_code == 422


def test_fields_say_since_when_they_are_there(client: httpx.Client) -> None:
    """`since` is the first version of the last run with the field; removed fields are listed separately."""
    page = client.get("/ui/subjects/orders/fields.json").json()
    assert {row["path"]: row["since"] for row in page["rows"]} == {
        "id": 1,
        "status": 4,
        "address": 3,
        "address.city": 3,
    }
    assert [(row["path"], row["first"], row["last"]) for row in page["gone"]] == [("email", 2, 3)]
    assert page["complete"]
    older = client.get("/ui/subjects/orders/fields.json?version=2").json()
    assert {row["path"]: row["since"] for row in older["rows"]} == {"id": 1, "email": 2}
    assert older["gone"] == []
    result = client.get("/ui/subjects/orders/fields.json?field=CITY").json()
    assert [row["path"] for row in result["rows"]] == ["address.city"]
    assert result["total"] == 4


def test_a_field_that_came_back_is_as_old_as_its_return() -> None:
    """The `since` of a field that was removed and added again is the version that added it again."""
    for client in open_client():
        mail = {"name": "mail", "type": "int", "default": 0}
        more, other = ({"name": name, "type": "int", "default": 0} for name in ("more", "other"))
        for fields in ([mail], [], [mail, more], [mail, more, other]):
            register(client, "s", make_order(*fields))
        rows = client.get("/ui/subjects/s/fields.json").json()["rows"]
        assert {row["path"]: row["since"] for row in rows} == {"id": 1, "mail": 3, "more": 3, "other": 4}


def test_comparisons_say_what_changes_mean(client: httpx.Client) -> None:
    """The page has the verdicts of both directions, each change with its findings, and the diff of the texts."""
    page = client.get("/ui/subjects/orders/compare.json?old=3&new=4").json()
    assert (page["old"], page["new"], page["backward"], page["forward"]) == (3, 4, False, True)
    added = next(change for change in page["changes"] if change["path"] == "org.shop.Order.status")
    assert (added["kind"], added["backward"]) == ("added", False)
    assert added["findings"][0]["rule"] == "READER_FIELD_MISSING_DEFAULT_VALUE"
    assert '"name": "status"' in page["text"]
    markup = client.get("/ui/subjects/orders/compare?old=3&new=4").text
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in markup
    assert markup.index("What changed") < markup.index("The texts")
    mirrored = client.get("/ui/subjects/orders/compare.json?old=4&new=3").json()
    assert (mirrored["backward"], mirrored["forward"]) == (True, False)
    usual = client.get("/ui/subjects/orders/compare.json").json()
    assert (usual["old"], usual["new"]) == (3, 4)
    assert client.get("/ui/subjects/payments/compare.json").json()["new"] == 0
    assert client.get("/ui/subjects/orders/compare?old=9&new=1").status_code == 404


def test_versions_of_two_formats_are_compared_as_texts() -> None:
    """For versions of two formats, the page states the reason and shows the diff of the texts."""
    for client in open_client():
        client.put("/config", content='{"compatibility": "NONE"}', headers=JSON)
        register(client, "s", '"string"')
        register(client, "s", {"type": "object"}, schemaType="JSON")
        page = client.get("/ui/subjects/s/compare.json").json()
        assert page["problem"] == "Version 1 is avro, version 2 is json."
        assert "+" in page["text"]


def test_rules_say_where_they_come_from(client: httpx.Client) -> None:
    """The page has the policy in force as a sentence, and whether the subject, a level above or the default sets it."""
    own = client.get("/ui/subjects/orders/rules.json").json()
    assert (own["policy"]["source"], own["sentence"]) == ("subject", "Every valid schema is taken.")
    inherited = client.get("/ui/subjects/address/rules.json").json()
    assert inherited["policy"]["source"] == "default"
    assert inherited["sentence"] == "The new version must read data of the latest version."
    assert "Set by this subject." in client.get("/ui/subjects/orders/rules").text


def test_texts_are_shown_in_several_forms(client: httpx.Client) -> None:
    """A text of one long line is shown indented; the author's, the normalised and the canonical form can be chosen."""
    page = client.get("/ui/subjects/orders/definition.json").json()
    assert page["form"] == "indented"
    assert page["text"].count("\n") > 10
    raw = client.get("/subjects/orders/versions/latest/schema").text
    author = client.get("/ui/subjects/orders/definition.json?form=author").json()["text"]
    assert "\n" not in author
    assert '"doc"' not in client.get("/ui/subjects/orders/definition.json?form=canonical").json()["text"]
    file = client.get("/ui/subjects/orders/download?version=4")
    assert file.text == author
    assert file.headers["content-disposition"] == 'attachment; filename="orders-v4.avsc"'
    assert len(raw) > 0
    assert client.get("/ui/subjects/orders/definition?form=luck").status_code == 422


def test_deleted_versions_are_marked(client: httpx.Client) -> None:
    """A subject whose versions are soft-deleted is in the list, marked, and its page still has the text."""
    rows = client.get("/ui/subjects.json?state=deleted").json()["rows"]
    assert [row["name"] for row in rows] == ["gone"]
    assert 'class="deleted"' in client.get("/ui/subjects?state=deleted").text
    page = client.get("/ui/subjects/gone/definition.json").json()
    assert (page["head"]["state"], page["head"]["version_state"], page["text"]) == ("deleted", "deleted", '"string"')


def test_the_query_is_the_state(client: httpx.Client) -> None:
    """Order, filter and page are in the address, and links keep the values that they do not change."""
    page = client.get("/ui/subjects?format=avro&sort=-changed&ns=.")
    links = [html.unescape(link) for link in re.findall(r'href="(\?[^"]*)"', page.text)]
    assert links
    assert all("format=avro" in link and "ns=." in link for link in links)
    both = client.get("/ui/subjects.json?ns=team").json()
    assert [(row["namespace"], row["name"]) for row in both["rows"]] == [("team", "orders")]
    assert both["namespaces"] == ["", "team"]


def test_the_matrix_marks_what_another_policy_asks_for(client: httpx.Client) -> None:
    """The matrix marks the pairs that the chosen policy requires; an unknown policy is rejected."""
    path = "/ui/subjects/orders/history.json?picture=matrix"
    in_force = client.get(path).json()["matrix"]
    assert (in_force["policy"], in_force["demands"]) == ("NONE", [])
    wider = client.get(f"{path}&policy=FULL_TRANSITIVE").json()
    assert (wider["policy"], wider["matrix"]["policy"]) == ("FULL_TRANSITIVE", "FULL_TRANSITIVE")
    assert len(wider["matrix"]["demands"]) == 12
    page = client.get("/ui/subjects/orders/history?picture=matrix&policy=FULL_TRANSITIVE").text
    assert "<option selected>FULL_TRANSITIVE</option>" in page
    assert client.get(f"{path}&policy=SIDEWAYS").status_code == 422


def test_the_story_line_can_show_what_broke_alone(client: httpx.Client) -> None:
    """With `only=breaking`, harmless versions are folded in the picture and left out of the table."""
    page = client.get("/ui/subjects/orders/history?only=breaking").text
    table = page[page.index("The same as a table") :]
    assert table.count("<tr>") < client.get("/ui/subjects/orders/history").text.count("<tr>")
    assert '<option value="breaking" selected>' in page
