"""What the Spark package reads of a registry: clients, pinned schemas, and schemas looked up by id."""
