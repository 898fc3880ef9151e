"""Endpoints of the dialect, one file per kind of resource."""
