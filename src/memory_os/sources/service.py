"""What the API asks of sources: check, embed outside of any transaction, then one unit of work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from memory_os.domain.principal import Principal
from memory_os.memories.writing import Embedded
from memory_os.sources.checking import check_draft, check_passages
from memory_os.sources.model import PassageDraft, SourceDraft


@dataclass(frozen=True, slots=True)
class SourceService:
    """Checks sources and embeds their passages.

    Attributes:
        embed: Vectors of texts, or none while the embedder is down; never called inside a transaction.
        max_text_chars: Longest text of a passage.
    """

    embed: Callable[[Sequence[str]], Awaitable[Embedded]]
    max_text_chars: int

    def check(self, draft: SourceDraft, principal: Principal) -> None:
        """Check a source; see `check_draft`."""
        check_draft(draft, principal, max_text_chars=self.max_text_chars)

    def check_passages(self, drafts: Sequence[PassageDraft]) -> None:
        """Check passages; see `check_passages`."""
        check_passages(drafts, max_text_chars=self.max_text_chars)

    async def embed_passages(self, drafts: Sequence[PassageDraft]) -> Embedded:
        """The vectors of passages, all in one go."""
        return await self.embed([draft.text for draft in drafts])
