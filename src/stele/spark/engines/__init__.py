"""Avro ⇄ Arrow engines: framed bytes in, columns under the reader's schema out, and back. No Spark in here.

Source: docs/protocols/spark.md, docs/protocols/avro.md#schema-resolution.
"""
