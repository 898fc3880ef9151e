"""Audits of stored data: what is really in a DataFrame with framed records.

    from stele.spark.data_audit import census, to_text
    print(to_text(census(df, "value", subject="orders-value", registry="http://localhost:8081")))

    census     which schemas, versions and fields are there; which versions can be deleted
    backtest   whether a proposed schema can read all records
    drift      what the schemas allow and the data never use
    infer      a schema for data that have none
    migrate    the records written again: another version, subject, language, wire

Each result is a typed value with a `report()`; `to_text`, `print_text`, `to_html` and `to_json` show it.
"""

from stele.spark.data_audit.backtest import Backtest, backtest
from stele.spark.data_audit.census import Census, census, record_usage
from stele.spark.data_audit.drift import DriftReport, drift
from stele.spark.data_audit.infer import Inference, infer, register_inferred
from stele.spark.data_audit.migrate import MigratedRecords, Migration, migrate
from stele.spark.data_audit.report import AuditReport, print_text, to_html, to_json, to_text
from stele.spark.session import JobFailed

__all__ = [
    "AuditReport",
    "Backtest",
    "Census",
    "DriftReport",
    "Inference",
    "JobFailed",
    "MigratedRecords",
    "Migration",
    "backtest",
    "census",
    "drift",
    "infer",
    "migrate",
    "print_text",
    "record_usage",
    "register_inferred",
    "to_html",
    "to_json",
    "to_text",
]
