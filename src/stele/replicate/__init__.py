"""Replication: keeps a registry in step with another one, of Stele or of another make, and reports what prevents it.

A run compares and applies what is missing, so it is resumed by running it again. `plan` compares, `replicator` runs the
replication. Sources are in `stele_registry`, `confluent_source`, `apicurio_source`, `xregistry_source` and
`cncf_source`, targets in `stele_registry`, `confluent_target` and `schemas_topic`.
"""
