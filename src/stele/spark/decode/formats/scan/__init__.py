"""Protobuf messages into columns without a Python object for each: a compiled scan of a batch, by tables.

It reads what writers write. Whatever is out of the ordinary (damaged bytes, a message in two parts, two members of a
oneof, groups) it leaves to Protobuf's own parser, record by record, so that parser decides what is right.
"""
