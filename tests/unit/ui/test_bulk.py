"""Actions on several subjects: deletion in the order of references, policies, a file. Each succeeds or fails alone."""

from __future__ import annotations

from tests.unit.ui.conftest import ADDRESS, make_order, open_client, register

from stele.ui.work.bulk import MOST_SUBJECTS

FORM = {"content-type": "application/x-www-form-urlencoded"}
_REFERENCE = {"name": "org.shop.Address", "subject": "address", "version": 1}
_USES = {"name": "address", "type": ["null", "org.shop.Address"], "default": None}


def test_subjects_are_deleted_after_those_that_refer_to_them() -> None:
    """Subjects are deleted in any order of choice; a subject that others still refer to stays, with the reason."""
    for client in open_client():
        register(client, "address", ADDRESS)
        register(client, "orders", make_order(_USES), references=[_REFERENCE])
        alone = client.post("/ui/bulk.json", json={"action": "delete", "subject": ["address", "nobody"]}).json()
        assert [(row["done"], bool(row["problem"])) for row in alone["subjects"]] == [("", True), ("", True)]
        assert client.get("/subjects").json() == ["address", "orders"]
        both = client.post("/ui/bulk.json", json={"action": "delete", "subject": ["address", "orders"]}).json()
        assert [(row["name"], row["done"]) for row in both["subjects"]] == [
            ("address", "deleted"),
            ("orders", "deleted"),
        ]
        assert client.get("/subjects").json() == []
        assert client.get("/subjects?deleted=true").json() == ["address", "orders"]


def test_a_policy_is_set_for_all_of_them() -> None:
    """A policy is set, also in namespaces; `inherit` removes it, and the page shows the policy in force."""
    for client in open_client():
        register(client, "orders", '"int"')
        register(client, "orders", '"int"', prefix="/contexts/.team")
        chosen = ["orders", ":.team:orders"]
        result = client.post("/ui/bulk.json", json={"action": "policy", "policy": "FULL", "subject": chosen}).json()
        assert [(row["done"], row["policy"]) for row in result["subjects"]] == [("policy", "FULL")] * 2
        assert client.get("/config/:.team:orders").json() == {"compatibilityLevel": "FULL"}
        client.post("/ui/bulk.json", json={"action": "policy", "policy": "inherit", "subject": chosen})
        assert client.get("/config/orders").status_code == 404
        wrong = client.post("/ui/bulk.json", json={"action": "policy", "policy": "SIDEWAYS", "subject": chosen})
        assert (wrong.status_code, wrong.json()["problems"][0]["field"]) == (422, "policy")


def test_the_list_leads_to_them_and_they_are_saved_as_a_file() -> None:
    """The page accepts the names in the list; the file holds only the chosen subjects."""
    for client in open_client():
        register(client, "orders", '"int"')
        register(client, "payments", '"int"')
        names = [row["qualified"] for row in client.get("/ui/subjects.json").json()["rows"]]
        assert names == ["orders", "payments"]
        assert client.get("/ui/subjects").text.count('form="bulk"') == 2
        page = client.post("/ui/bulk", content="subject=orders", headers=FORM)
        assert page.status_code == 200
        assert "Delete 1 subject<" in page.text
        file = client.post("/ui/bulk/download", content="subject=orders", headers=FORM)
        assert b"orders" in file.content
        assert b"payments" not in file.content


def test_what_is_no_choice_is_refused() -> None:
    """Empty choices, invalid names, too many subjects and unknown actions are rejected, as are changes if read-only."""
    for client in open_client():
        register(client, "orders", '"int"')
        assert client.post("/ui/bulk.json", json={"action": "delete"}).status_code == 422
        assert client.post("/ui/bulk.json", json={"subject": ":.team:"}).status_code == 422
        assert client.post("/ui/bulk.json", json={"subject": "orders", "action": "burn"}).status_code == 422
        many = [f"s{number}" for number in range(MOST_SUBJECTS + 1)]
        assert client.post("/ui/bulk.json", json={"subject": many}).status_code == 413
    for client in open_client(ui_read_only=True):
        register(client, "orders", '"int"')
        assert client.post("/ui/bulk.json", json={"subject": "orders", "action": "delete"}).status_code == 403
        assert client.get("/subjects").json() == ["orders"]
        assert "checkbox" not in client.get("/ui/subjects").text
