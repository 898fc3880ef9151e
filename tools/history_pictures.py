"""Draws the pictures of `docs/how-to/history.md` from a real registry that it fills; with --check it compares them.

Times and authors are fixed, so that the same code gives the same files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from stele import pictures
from stele.client import ConfigUpdateRequest, Schema, SchemaReference, SchemaRegistryClient
from stele.protocol.history import SubjectHistory
from stele.testing.registry_box import RegistryBox

FOLDER: Final = Path(__file__).parent.parent / "docs" / "pictures"
SUBJECT: Final = "crates-value"
_FIRST_DAY: Final = 1_772_438_400_000
"""2 March 2026, in milliseconds since 1970."""
_DAY: Final = 86_400_000
_AUTHORS: Final = ("ann", "ann", "build-bot", "build-bot", "omar", "build-bot", "ann", "omar")


def _field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def _record(name: str, *fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": list(fields)})


_CITY: Final = _field("city", "string")
_ID: Final = _field("id", "long")
_MAIL: Final = _field("mail", "string")
_EMAIL: Final = _field("email", "string", aliases=["mail"])
_ANY_EMAIL: Final = _field("email", ["null", "string"], default=None, aliases=["mail"])
_TOTAL: Final = _field("total", "int", default=0)
_CENTS: Final = _field("total", "long", default=0, doc="in cents")
_NOTE: Final = _field("note", ["null", "string"], default=None)
_SHIP_TO: Final = _field("shipTo", ["null", "shop.Address"], default=None)

ADDRESSES: Final = (
    _record("Address", _CITY),
    _record("Address", _CITY, _field("zip", ["null", "string"], default=None)),
)
CRATES: Final = (
    (_ID, _MAIL),
    (_ID, _MAIL, _TOTAL),
    (_ID, _EMAIL, _TOTAL),
    (_ID, _EMAIL, _TOTAL, _NOTE),
    (_ID, _EMAIL, _CENTS),
    (_ID, _ANY_EMAIL, _CENTS, _SHIP_TO),
    (_ID, _ANY_EMAIL, _CENTS, _SHIP_TO, _field("channel", "string")),
    (_ID, _ANY_EMAIL, _CENTS, _SHIP_TO, _field("channel", "string", default="shop")),
)
"""Versions of the example: a rename, a version that is deleted, and one that breaks while the policy is NONE."""


def register_example(client: SchemaRegistryClient) -> None:
    """Register the subjects of the example: crates, which refer to addresses, and invoices, which refer to both."""
    for text in ADDRESSES:
        client.register("address", Schema(text))
    for number, fields in enumerate(CRATES, 1):
        references = (SchemaReference("shop.Address", "address", 1),) if _SHIP_TO in fields else ()
        if number == 7:
            client.set_config(ConfigUpdateRequest(compatibility="NONE"), SUBJECT)
        client.register(SUBJECT, Schema(_record("Crate", *fields), references=references))
    client.set_config(ConfigUpdateRequest(compatibility="BACKWARD"), SUBJECT)
    client.delete_version(SUBJECT, 4)
    invoice = _record("Invoice", _ID, _field("crate", "shop.Crate"), _field("to", "shop.Address"))
    crate, address = SchemaReference("shop.Crate", SUBJECT, 8), SchemaReference("shop.Address", "address", 1)
    client.register("invoices-value", Schema(invoice, references=(address, crate)))
    customer = _record("Customer", _ID, _field("home", "shop.Address"))
    client.register("customers-value", Schema(customer, references=(SchemaReference("shop.Address", "address", 2),)))


def draw_pictures() -> dict[str, str]:
    """Return the text of each picture by its file name."""
    with RegistryBox() as box:
        register_example(box.client)
        answers = {
            "history-story": pictures.draw_story_line(_set_times(box.client.history(SUBJECT))),
            "history-fields": pictures.draw_field_lifelines(box.client.lifelines(SUBJECT)),
            "history-matrix": pictures.draw_compatibility_matrix(box.client.matrix(SUBJECT)),
            "history-neighbours": pictures.draw_neighbourhood(box.client.neighbours("address", depth=2)),
            "history-atlas": pictures.draw_atlas(box.client.atlas()),
        }
    return {f"{name}.svg": f"{picture.to_document()}\n" for name, picture in answers.items()}


def _set_times(history: SubjectHistory) -> SubjectHistory:
    """Return the history with versions at intervals of a few days."""
    versions = tuple(
        replace(version, at=_FIRST_DAY + number * 9 * _DAY, author=_AUTHORS[number])
        for number, version in enumerate(history.versions)
    )
    return replace(history, versions=versions)


def main() -> int:
    """Write the pictures; with --check compare them and return 1 where one differs."""
    drawn = draw_pictures()
    if "--check" not in sys.argv:
        for name, text in drawn.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    different = [
        name
        for name, text in drawn.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text(encoding="utf-8") != text
    ]
    for name in different:
        print(f"docs/pictures/{name} differs: run python -m tools.history_pictures")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
