"""Endpoints of the dialect."""

from __future__ import annotations

from stele.apis.cncf.routes import azure, groups, schemas, subscriptions

ROUTES = [*groups.ROUTES, *schemas.ROUTES, *subscriptions.ROUTES, *azure.ROUTES]
"""All endpoints."""
