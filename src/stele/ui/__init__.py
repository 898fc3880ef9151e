"""Web pages of the registry, each with a JSON twin for programs (`.json`).

A page is a view function, which returns a plain struct, and a template, which shows it. Views call the core and the
service with the rights of the caller, as the APIs do. Pages work without scripts; their addresses hold their state.
"""

from stele.ui.options import NAME, SEGMENTS, UiOptions

__all__ = ["NAME", "SEGMENTS", "UiOptions"]
