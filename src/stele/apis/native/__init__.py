"""Stele's own API, below `/api`."""

from stele.apis.native.app import application

__all__ = ["application"]
