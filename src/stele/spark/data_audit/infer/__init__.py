"""How a schema is made of data on Spark: evidence from every record, gathered in tasks, and what it proves."""
