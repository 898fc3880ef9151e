"""CESQL, the query language of CloudEvents: expressions about the attributes of an event, parsed and evaluated. Pure.

Source: docs/protocols/cncf.md#cesql
"""
