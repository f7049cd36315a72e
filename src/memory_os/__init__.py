"""Memory OS: long-term memory for teams of AI agents."""

from importlib.metadata import version

__version__ = version("memory-os")
