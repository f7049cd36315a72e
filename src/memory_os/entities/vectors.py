"""Vectors that are made before a unit of work begins, of texts that it may find changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory_os.entities.writing import EntityMovedError
from memory_os.memories.writing import Embedded, vector_literal


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """Texts and their vectors, in the same order."""

    texts: Sequence[str]
    embedded: Embedded

    def columns(self, text: str) -> dict[str, Any]:
        """The two columns of a text's vector, both null where the embedder was down.

        Raises:
            EntityMovedError: If it is another text than those that were embedded.
        """
        if text not in self.texts:
            raise EntityMovedError
        if self.embedded.vectors is None:
            return {"embedding": None, "embedding_model": None}
        vector = self.embedded.vectors[self.texts.index(text)]
        return {"embedding": vector_literal(vector), "embedding_model": self.embedded.identity.model}
