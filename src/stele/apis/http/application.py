"""The application every dialect is: Litestar without the plug-ins nobody here needs."""

from __future__ import annotations

from litestar import Litestar
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin


class DialectApplication(Litestar):
    """A dialect's application. It leaves out Litestar's plug-ins for Pydantic and attrs, which take long to load."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]
