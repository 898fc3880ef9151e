"""Endpoints of the API, one file per topic."""
