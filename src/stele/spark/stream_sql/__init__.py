"""SQL over registered streams: `CREATE STREAM … WITH (…)`, then `SELECT`, without writing a schema by hand.

    from stele.spark import sql
    sql(spark, "CREATE STREAM orders WITH (topic='orders', bootstrap='broker:9092', registry='http://registry:8081')")
    sql(spark, "SELECT id, place.city FROM orders").show()                   # the records that are there now
    query = sql(spark, "SELECT STREAM * FROM orders").writeStream…           # and new ones as they arrive

A stream names where its records are (`connectors`) and how they are read (`options`). Its table is the result of
`from_registry` with the columns of the version that is newest when a query is planned.
"""

from stele.spark.stream_sql.execute import run_statement, script, sql
from stele.spark.stream_sql.parser import RequestedColumn
from stele.spark.stream_sql.stream_catalog import (
    RegisteredStream,
    StreamDescription,
    StreamNotFound,
    create_stream,
    describe_stream,
    drop_stream,
    list_streams,
    read_stream,
)
from stele.spark.stream_sql.tokens import StatementInvalid

__all__ = [
    "RegisteredStream",
    "RequestedColumn",
    "StatementInvalid",
    "StreamDescription",
    "StreamNotFound",
    "create_stream",
    "describe_stream",
    "drop_stream",
    "list_streams",
    "read_stream",
    "run_statement",
    "script",
    "sql",
]
