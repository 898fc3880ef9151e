"""Endpoints of the dialect."""

from __future__ import annotations

from stele.apis.rocketmq.routes import subjects, tenants

ROUTES = [*subjects.ROUTES, *tenants.ROUTES]
"""All endpoints."""
