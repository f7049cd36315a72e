"""Typed edges: directed claims between two memories, or a memory and an entity."""
