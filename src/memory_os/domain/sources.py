"""What sources are, how they support memories, and what becomes of these when a source is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

SourceKind = Literal["document", "conversation", "task", "code_change", "url", "manual"]
Support = Literal["states", "supports", "contradicts", "mentions"]
Withdrawal = Literal["source_deleted", "withdrawn"]
DeletionPolicy = Literal["keep", "orphan-archive", "cascade"]

SOURCE_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "document": "A file or page.",
        "conversation": "A dialogue; its turns are the passages.",
        "task": "A record of a task.",
        "code_change": "A commit or a change under review.",
        "url": "Something on the web.",
        "manual": "What somebody told by hand.",
    }
)
"""The kinds of source by name."""

SUPPORTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "states": "The passage says just that.",
        "supports": "The passage makes it more likely.",
        "contradicts": "The passage says otherwise.",
        "mentions": "The passage speaks of it.",
    }
)
"""How a passage bears on a memory."""

DELETION_POLICIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "keep": "Records stay; their evidence is marked as withdrawn.",
        "orphan-archive": "Records without any other evidence are archived.",
        "cascade": "Every record that has evidence from it is retracted, and what was derived from these.",
    }
)
"""What becomes of the records of a source that is deleted."""
