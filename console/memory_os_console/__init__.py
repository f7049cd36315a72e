"""The operators' console: server-rendered pages beside the API, for whoever is awake at three in the morning."""

from __future__ import annotations

from memory_os_console.routes import console_router

__all__ = ["console_router"]
