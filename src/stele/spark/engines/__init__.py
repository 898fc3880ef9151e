"""Avro ⇄ Arrow engines: framed bytes in, columns under the reader's schema out, and back. No Spark in here."""
