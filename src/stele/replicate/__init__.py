"""Replication: keeps a registry in step with another one, of ours or of another make, and says what stands in the way.

A run compares and applies what is missing, so it is resumed by running it again. What is compared is in `plan`, the run
in `replicator`. Sources are in `stele_registry`, `confluent_source`, `apicurio_source`, `xregistry_source` and
`cncf_source`, targets in `stele_registry`, `confluent_target` and `schemas_topic`.
"""
