"""Take pictures of the registry's pages with a real browser, for the documentation and for developers of the pages.

    python -m tools.screenshots             all pages, light and dark, wide and narrow, to build/screenshots/
    python -m tools.screenshots --docs      those in docs/pictures/ again

It needs Chromium (Debian's package `chromium`) and the extra `dev`. It starts a server of its own and fills it. Pages
that answer a form are taken without scripts, because the editor would hide the field of the text.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

ROOT: Final = Path(__file__).parent.parent
_DOCS: Final = ROOT / "docs" / "pictures"
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
WIDE: Final = 1440
NARROW: Final = 390
SUBJECT: Final = "orders-value"
_NOON: Final = 1_790_000_000.0
"""Time of the events in the files, in seconds since 1970."""

PAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "home": "/ui",
        "schemas": "/ui/subjects",
        "search": "/ui/subjects?q=zip",
        "search-fields": "/ui/subjects?q=zip&by=field",
        "search-texts": "/ui/subjects?q=iban&by=text",
        "bulk": "/ui/bulk",
        "definition": f"/ui/subjects/{SUBJECT}",
        "definition-canonical": f"/ui/subjects/{SUBJECT}/definition?form=canonical",
        "fields": f"/ui/subjects/{SUBJECT}/fields",
        "versions": f"/ui/subjects/{SUBJECT}/versions",
        "story-line": f"/ui/subjects/{SUBJECT}/history",
        "lifelines": f"/ui/subjects/{SUBJECT}/history?picture=lifelines",
        "matrix": f"/ui/subjects/{SUBJECT}/history?picture=matrix",
        "compare": f"/ui/subjects/{SUBJECT}/compare?old=2&new=5",
        "references": f"/ui/subjects/{SUBJECT}/references",
        "rules": f"/ui/subjects/{SUBJECT}/rules",
        "usage": f"/ui/subjects/{SUBJECT}/usage",
        "clients": f"/ui/subjects/{SUBJECT}/clients",
        "atlas": "/ui/atlas",
        "usage-places": "/ui/usage",
        "rulesets": "/ui/rulesets",
        "policies": "/ui/policies",
        "events": "/ui/events",
        "access": "/ui/access?principal=user:ann&operation=read&resource=subject+orders-value",
        "audit": "/ui/audit",
        "settings": "/ui/settings",
        "apis": "/ui/apis",
        "about": "/ui/about",
        "register": "/ui/register",
        "evolve": f"/ui/subjects/{SUBJECT}/register",
        "policy": f"/ui/subjects/{SUBJECT}/policy",
        "policy-registry": "/ui/policy",
        "policy-namespace": "/ui/levels/:.:/policy",
        "check": f"/ui/check?subject={SUBJECT}",
        "decode": "/ui/decode?data=00000000020e06616e6e",
        "decode-unknown": "/ui/decode?data=7b2261223a317d",
        "delete": f"/ui/subjects/{SUBJECT}/delete",
        "delete-refused": "/ui/subjects/address/delete",
        "delete-for-good": "/ui/subjects/old-value/delete",
        "recover": "/ui/subjects/old-value/recover",
        "transfer": "/ui/transfer",
        "transfer-import": "/ui/transfer/import",
        "journal": "/ui/journal",
        "ruleset-impact": "/ui/rulesets/impact?format=avro&ruleset=confluent",
        "ruleset-impact-changes": "/ui/rulesets/impact?format=protobuf&ruleset=buf:FILE&everywhere=1",
        "pipelines": "/ui/pipelines",
        "pipeline": "/ui/pipelines/orders",
        "subscription": "/ui/events/{subscription}",
        "exporters": "/ui/exporters",
        "exporter": "/ui/exporters/west",
        "replications": "/ui/replications",
        "replication": "/ui/replications/from-main",
        "refusals": "/ui/refusals",
        "login": "/ui/login?next=%2Fjournal",
        "not-found": "/ui/subjects/nobody",
    }
)
"""Path of every kind of page by the name of its picture. `find_pages` replaces names in braces by ids."""


class FilledForm(NamedTuple):
    """A form to fill in and submit before the picture is taken.

    path    path of the page
    values  values of its fields, by name
    button  text of the button that submits it
    """

    path: str
    values: Mapping[str, str]
    button: str


_REFUSED_ADDRESS: Final = (
    '{"type":"record","name":"Address","namespace":"org.shop",'
    '"fields":[{"name":"street","type":"int"},{"name":"town","type":"string"}]}'
)
FORMS: Final[Mapping[str, FilledForm]] = MappingProxyType(
    {
        "evolve-refused": FilledForm("/ui/subjects/address/register", {"schema": _REFUSED_ADDRESS}, "Check"),
        "check-refused": FilledForm("/ui/check?subject=address", {"schema": _REFUSED_ADDRESS}, "Check"),
        "policy-preview": FilledForm(f"/ui/subjects/{SUBJECT}/policy", {"policy": "FULL_TRANSITIVE"}, "Preview"),
        "bulk-deleted": FilledForm("/ui/subjects?q=sensor-0", {}, "Change or save the selected subjects"),
        "transfer-plan": FilledForm("/ui/transfer", {"dump": "/ui/transfer/download"}, "Compare"),
        "login-refused": FilledForm("/ui/login", {"user": "ann", "password": "wrong"}, "Log in"),
    }
)
"""Forms by the name of the picture of their answer. The value of a file field is the path of the uploaded file."""

_IN_DOCS: Final = {"browse-lifelines": "lifelines", "browse-compare": "compare"}
"""Pictures in the documentation, and the names of their pages."""


def find_browser() -> str:
    """Return the path of a Chromium. Raises `FileNotFoundError` where there is none."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise FileNotFoundError("no Chromium is installed: on Debian, `apt-get install chromium`")
    return browser


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Run a headless browser and close it at the end."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def prepare_files(folder: Path) -> dict[str, str]:
    """Write the files that the server shows, pipeline journals and an audit file, and return its settings for them.

    The settings allow logins with passwords and keys, and allow everything without a login.
    """
    _write_journals(folder / "pipelines")
    _write_refusals(folder / "audit.jsonl")
    (folder / "users").touch()
    return {
        "STELE_AUTHENTICATION": "basic,keys",
        "STELE_PASSWORD_FILE": str(folder / "users"),
        "STELE_ANONYMOUS": "true",
        "STELE_UI_PIPELINES": str(folder / "pipelines"),
        "STELE_AUDIT_FILE": str(folder / "audit.jsonl"),
        "STELE_PUBLIC_URL": "https://registry.example.org",
        "STELE_STATE_DIR": str(folder / "state"),
    }


def _write_journals(folder: Path) -> None:
    """Write the journal of a pipeline after three batches, and one that is damaged."""
    from stele.spark.pipeline.journal import BatchEntry, BatchJournal, BatchReport, DeadLetterSample
    from stele.spark.pipeline.schema_evolution import ColumnChange, TableChange

    journal = BatchJournal(str(folder / "orders"))
    journal.save_lag({"orders": 1_208})
    samples = (
        DeadLetterSample("UNKNOWN_SCHEMA_ID", "no schema has the id 4711", "AAAAEmcOBmFubg==", 10, "orders 0 17"),
        DeadLetterSample("TRUNCATED", "the record ends inside a value", "AAAAAAIOBmFu", 9, "orders 0 23"),
    )
    changes = {
        0: (TableChange("shop.orders", ColumnChange("create", (), "")),),
        2: (TableChange("shop.orders", ColumnChange("add", ("email",), "string")),),
    }
    for batch in range(3):
        entry = BatchEntry(batch, ())
        journal.save_entry(entry)
        report = BatchReport(
            batch,
            at=_NOON + batch * 60,
            rows=4_000 + batch,
            dead_letters=batch,
            tables={"shop.orders": 4_000 + batch},
            versions={SUBJECT: 1 if batch < 2 else 2},
            codes={"UNKNOWN_ID": batch} if batch else {},
            reasons={"no schema has the id 4711": batch} if batch else {},
            samples=(samples[batch - 1],) if batch else (),
            changes=changes.get(batch, ()),
            seconds=1.4,
        )
        journal.finish_batch(entry, report)
    damaged = folder / "payments" / "stele"
    damaged.mkdir(parents=True)
    (damaged / "totals.json").write_text("{", encoding="utf-8")


def _write_refusals(path: Path) -> None:
    """Write two refused requests to the file of an audit trail."""
    from stele.core.audit_chain import AuditEntry
    from stele.service.audit_file import AuditFile

    details = {"method": "POST", "path": f"/subjects/{SUBJECT}/versions", "status": 403, "error": "Forbidden"}
    missing = {"operation": "register", "resource_type": "subject", "resource": SUBJECT}
    unknown = {"method": "GET", "path": "/subjects", "status": 401, "error": "Unauthenticated"}
    at = int(_NOON * 1000)
    file = AuditFile(path)
    file.append(
        [
            AuditEntry(at, "refused", actor="bob", address="10.0.0.7", details=details | missing),
            AuditEntry(at + 60_000, "refused", address="10.0.0.9", details=unknown),
        ],
        1,
    )
    file.close()


def find_pages(client: httpx.Client) -> dict[str, str]:
    """Return the path of every page of a filled registry, by the name of its picture."""
    (subscription,) = client.get("/ui/events.json").raise_for_status().json()["subscriptions"]
    return {name: path.replace("{subscription}", subscription["id"]) for name, path in PAGES.items()}


def fill_registry(client: httpx.Client) -> None:
    """Register the schemas of a shop: five versions of its orders, their references, and some more topics."""
    address = _make_record(
        "Address",
        _make_field("street", "string"),
        _make_field("city", "string", "Town or city."),
        _make_field("zip", ["null", "string"], default=None),
    )
    _register(client, "address", address)
    for fields in _list_order_fields():
        uses = any(field["name"] == "address" for field in fields)
        references = [{"name": "org.shop.Address", "subject": "address", "version": 1}] if uses else []
        order = _make_record("Order", *fields) | {"doc": "An order of a customer, as the shop writes it."}
        _register(client, SUBJECT, order, references=references)
    for fields in ("  int64 id = 1;\n", "  int64 id = 1;\n  string iban = 2;\n"):
        payment = f'syntax = "proto3";\npackage shop;\n\n// A payment.\nmessage Payment {{\n{fields}}}\n'
        _register(client, "payments-value", payment, schemaType="PROTOBUF")
    click = {
        "type": "object",
        "title": "Click",
        "properties": {"url": {"type": "string", "description": "Which page."}},
    }
    _register(client, "clicks-value", click, schemaType="JSON")
    _register(client, "old-value", '"string"')
    client.delete("/subjects/old-value").raise_for_status()
    client.put("/config/payments-value", json={"compatibility": "FULL_TRANSITIVE"}).raise_for_status()
    for number in range(60):
        _register(client, f"sensor-{number:02d}-value", _make_record(f"Sensor{number}", _make_field("celsius", "int")))
    census = {
        "counted_at": 1_790_000_000_000,
        "records": 1200,
        "seen": [
            {"subject": SUBJECT, "version": version, "schema_id": version + 1, "records": records}
            for version, records in ((2, 200), (5, 1000))
        ],
    }
    client.put("/api/usage/topic%20orders", json=census).raise_for_status()
    subscription = {"sink": "https://shop.example.org/changes", "protocol": "HTTP"}
    client.post("/subscriptions", json=subscription).raise_for_status()
    exporter = {
        "name": "west",
        "contextType": "CUSTOM",
        "context": "east",
        "subjects": ["orders-*", "payments-*"],
        "config": {"schema.registry.url": "http://127.0.0.1:1", "basic.auth.user.info": "stele:secret"},
    }
    client.post("/exporters", json=exporter).raise_for_status()


def create_replications(client: httpx.Client) -> None:
    """Create replications with two registries that do not answer. One of them is paused."""
    for name, direction, state in (("from-main", "pull", "running"), ("to-branch", "push", "paused")):
        registry = {"url": "http://127.0.0.1:1", "user": "stele", "password": "secret"}
        sent = {"name": name, "direction": direction, "registry": registry, "subjects": ["orders-*"], "state": state}
        client.post("/api/replications", json=sent).raise_for_status()


def _list_order_fields() -> list[list[dict[str, Any]]]:
    """Return the fields of each version of an order."""
    first = [_make_field("id", "long", "Number of the order."), _make_field("customer", "string", "Who ordered.")]
    email = _make_field("email", ["null", "string"], "Where to send the invoice.", default=None)
    place = {"street": "", "city": "", "zip": None}
    address = _make_field("address", "org.shop.Address", "Where to send the goods.", default=place)
    line = _make_record("Line", _make_field("sku", "string"), _make_field("amount", "int", "Pieces.", default=1))
    lines = _make_field("lines", {"type": "array", "items": line}, "What was ordered.", default=[])
    states = {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT"], "default": "NEW"}
    status = _make_field("status", states, "How far it is.", default="NEW")
    return [
        first,
        [*first, email],
        [*first, email, address],
        [*first, email, address, lines],
        [*first, address, lines, status],
    ]


def _make_record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "org.shop", "fields": list(fields)}


def _make_field(name: str, kind: Any, doc: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **({"doc": doc} if doc else {}), **more}


def _register(client: httpx.Client, subject: str, schema: Any, **more: Any) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    client.post(f"/subjects/{subject}/versions", json={"schema": text, **more}).raise_for_status()


def take_pictures(
    browser: Browser, url: str, pages: Mapping[str, str], folder: Path, *, width: int, dark: bool, height: int = 900
) -> None:
    """Save a picture of each page.

    Args:
        browser: Browser that renders the pages.
        url: URL of the server.
        pages: Paths by the names of the pictures.
        folder: Folder for the pictures.
        width: Width of the window, in pixels.
        dark: Whether the theme is the dark one.
        height: Height of the window, in pixels.
    """
    folder.mkdir(parents=True, exist_ok=True)
    size = {"width": width, "height": height}
    context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light")  # type: ignore[arg-type]  # a dict will do
    page = context.new_page()
    for name, path in pages.items():
        page.goto(url + path)
        page.wait_for_load_state("load")
        page.screenshot(path=folder / f"{name}.png", full_page=width == NARROW)
    context.close()


def take_pictures_of_forms(browser: Browser, url: str, folder: Path, *, width: int, dark: bool) -> None:
    """Save a picture of the answer to each form. See `take_pictures`."""
    size = {"width": width, "height": 900}
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport=size, color_scheme=scheme, java_script_enabled=False)  # type: ignore[arg-type]  # a dict will do
    page = context.new_page()
    for name in FORMS:
        answer_form(page, url, FORMS[name])
        page.screenshot(path=folder / f"{name}.png", full_page=True)
    context.close()


def answer_form(page: Page, url: str, form: FilledForm) -> None:
    """Fill in and submit a form on a page without scripts, and wait until the answer is loaded."""
    page.goto(url + form.path)
    for name, value in form.values.items():
        field = page.locator(f"main [name={name}]")
        match field.first.get_attribute("type"):
            case "file":
                content = httpx.get(url + value).raise_for_status().content
                upload = content.replace(b"sensor-0", b"boiler-0")
                field.set_input_files({"name": "schemas.dump", "mimeType": "text/plain", "buffer": upload})
            case "radio":
                page.locator(f"main [name={name}][value={value}]").check()
            case _:
                field.fill(value)
    with page.expect_navigation():
        page.get_by_role("button", name=form.button, exact=True).click()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", action="store_true", help="only the pictures of the documentation")
    is_docs = parser.parse_args(arguments).docs
    from tests.support.server_process import serving

    with TemporaryDirectory() as folder, open_browser() as browser:
        settings = prepare_files(Path(folder))
        with serving("--store", "memory:", folder=Path(folder), environ=settings) as running:
            with httpx.Client(base_url=running.url) as client:
                fill_registry(client)
                create_replications(client)
                pages = find_pages(client)
            if is_docs:
                pages = {name: pages[page] for name, page in _IN_DOCS.items()}
                take_pictures(browser, running.url, pages, _DOCS, width=1180, dark=False, height=660)
                return 0
            for width in (WIDE, NARROW):
                for dark in (False, True):
                    pictures = ROOT / "build" / "screenshots" / f"{width}-{'dark' if dark else 'light'}"
                    take_pictures(browser, running.url, pages, pictures, width=width, dark=dark)
                    take_pictures_of_forms(browser, running.url, pictures, width=width, dark=dark)
    return 0


if __name__ == "__main__":
    sys.exit(main())
