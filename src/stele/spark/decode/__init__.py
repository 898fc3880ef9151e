"""Decoding and encoding of columns: records to values and back, with wires, rules and formats put together.

A plan is made on the driver and sent to tasks, which run it (`records`).
"""
