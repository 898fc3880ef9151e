"""The dashboard and the alert rules in deploy/ name metrics that exist, and every alert is explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
DASHBOARD = ROOT / "deploy" / "grafana" / "stele.json"
RULES = ROOT / "deploy" / "prometheus" / "stele-rules.yml"
METRIC = re.compile(r"\bstele_\w+")


def list_exposed_names() -> set[str]:
    """Return the names under which Prometheus sees the metrics of docs/reference/metrics.md."""
    suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(stele_\w+)` \| (\w+) \|", page, re.MULTILINE)
    return {f"{name.removesuffix('_total')}{suffix}" for name, kind in rows for suffix in suffixes[kind]}


@pytest.mark.parametrize("path", [DASHBOARD, RULES], ids=lambda path: path.name)
def test_metrics_exist(path: Path) -> None:
    """Expressions name only metrics that exist."""
    assert set(METRIC.findall(path.read_text(encoding="utf-8"))) - list_exposed_names() == set()


def test_panels_of_the_dashboard_differ() -> None:
    """Each panel has its own id and position, and an expression."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len({panel["id"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])


def test_alerts_are_explained() -> None:
    """The page on operating has exactly one row for each alert."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"]}
    page = (ROOT / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")
    assert alerts == set(re.findall(r"^\| `(Stele\w+)` \|", page, re.MULTILINE))
