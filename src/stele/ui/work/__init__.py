"""The pages on which users change something or try something out, one module for each."""

from __future__ import annotations

from stele.ui.forms import FormPage
from stele.ui.pages import Page
from stele.ui.work import (
    bulk,
    check_bench,
    decode_bench,
    deletion,
    delivery,
    exporters,
    journal,
    pipelines,
    policy,
    recovery,
    refusals,
    register,
    replications,
    ruleset_impact,
    transfer,
)

_FORMS = (
    register,
    policy,
    check_bench,
    decode_bench,
    deletion,
    bulk,
    recovery,
    ruleset_impact,
    delivery,
    exporters,
    replications,
    transfer,
)
_PAGES = (journal, pipelines, refusals)


def list_form_pages() -> list[FormPage]:
    """Return the pages with forms."""
    return [form for module in _FORMS for form in module.list_form_pages()]


def list_work_pages() -> list[Page]:
    """Return the pages without forms."""
    return [page for module in _PAGES for page in module.list_pages()]
