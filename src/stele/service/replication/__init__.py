"""Replication: versions as other registries are told them, and documents that say what follows what."""
