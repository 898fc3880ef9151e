"""The composition root: settings, the ASGI dispatcher, metrics, logs, and the process that serves."""
