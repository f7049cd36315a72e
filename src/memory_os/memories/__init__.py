"""Memories: storing, reading, changing and deleting knowledge items."""
