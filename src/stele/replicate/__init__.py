"""Replication: keeps a registry in step with another one, of ours or of another make, and says what stands in the way.

A run compares and applies what is missing, so it is resumed by running it again. What is compared is in `plan`, the
registries are in `stele_registry`, `confluent_registry`, `cncf_registry` and `schemas_topic`, the run in `replicator`.
"""
