"""Reading and writing columns: records to values and back, with wires, rules and formats put together.

A plan (`planning`) is made on the driver and travels to tasks, where `records` runs it.
"""
