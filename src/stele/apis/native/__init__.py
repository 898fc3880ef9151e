"""Stele's own API, below `/api`."""

from stele.apis.native.app import application
from stele.apis.native.options import NativeOptions

__all__ = ["NativeOptions", "application"]
