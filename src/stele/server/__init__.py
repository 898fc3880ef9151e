"""The composition root: settings, the ASGI front, metrics, logs, and the process that serves."""
