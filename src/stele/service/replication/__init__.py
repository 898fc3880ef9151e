"""Replication: versions in the form that registries exchange, and documents that define replications."""
