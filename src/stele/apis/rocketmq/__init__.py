"""The RocketMQ dialect: schemas of tenants and the subjects bound to their records, below `/schema-registry/v1`.

Source: docs/protocols/rocketmq.md.
"""

from __future__ import annotations

from stele.apis.rocketmq.app import NAME, ROOT, SEGMENTS, application
from stele.apis.rocketmq.options import RocketmqOptions

__all__ = ["NAME", "ROOT", "SEGMENTS", "RocketmqOptions", "application"]
