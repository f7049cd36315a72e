"""The resources of version 1, one module each."""

from __future__ import annotations

from memory_os.api.memories import MemoryController

V1_CONTROLLERS = (MemoryController,)
