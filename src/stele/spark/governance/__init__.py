"""Governance of data at rest: what is really stored, asked of any DataFrame with framed records.

    from stele.spark.governance import census, backtest, drift
    print(census(df, "value", subject="orders-value", registry="http://localhost:8081").report())

Each answer is a typed value with a `report()`; `to_html`, `to_json` and `print_text` show it.
"""

from stele.spark.governance.census import Census, census
from stele.spark.governance.gathering import JobFailed
from stele.spark.governance.report import Report, print_text, shown, to_html, to_json

__all__ = ["Census", "JobFailed", "Report", "census", "print_text", "shown", "to_html", "to_json"]
