"""Endpoints of the dialect."""

from __future__ import annotations

from stele.apis.cncf.routes import azure, schemas, subscriptions

ROUTES = [*schemas.ROUTES, *subscriptions.ROUTES, *azure.ROUTES]
"""All endpoints."""
