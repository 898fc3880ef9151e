"""Registered streams as datasets of Spark Declarative Pipelines: for the definition files of `spark-pipelines`.

    from stele.spark import declarative as stele

    stele.streaming_table(
        "orders",
        subject="orders-value",
        registry="http://localhost:8081",
        source=lambda spark: spark.readStream.schema("value binary").parquet("/incoming/orders"),
    )

That declares three streaming tables. `orders_records` has the raw records, each judged once: what names its schema, and
what is wrong with it. `orders` has the good ones, decoded; `orders_dead_letters` the others, with the reason. Because
the judgement is stored, a record is in exactly one of the two, even if an unknown schema is registered between their
updates; and because the raw records are, `--full-refresh orders` decodes all of them again by the newest schema.

Exactly once is Spark's own: every table is a streaming query with a checkpoint. A definition is evaluated once per run,
and the schemas are pinned then.
"""

from stele.spark.declarative.streaming_tables import Newer, RawSource, from_config, streaming_table

__all__ = ["Newer", "RawSource", "from_config", "streaming_table"]
