"""Scores by the tokens of the bundled model: what was made of a record is kept, and made again when its text changes.

What can't be made within the time budget goes on being made behind the answer, so that the next question finds it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import structlog

from memory_os.embedding.bundled import BUNDLED_IDENTITY, BundledEmbedder
from memory_os.reranking.maxsim import POOLED, pack_tokens, score_packed
from memory_os.reranking.port import RerankError
from memory_os.retrieval.arms import Ref
from memory_os.storage.database import Database, Scope

log = structlog.get_logger(__name__)

MODEL: Final = f"{BUNDLED_IDENTITY.model}/tokens-{POOLED}"
"""What is stored beside the vectors; another way of packing them would be another model."""

_KEPT_TYPES: Final = frozenset({"memory", "passage"})
"""Records whose token vectors are kept. Others have short names and summaries, and are few."""

_AT_ONCE: Final = 4
"""Texts that the model is given at once: what a question that comes meanwhile waits for, some 40 ms."""

_MOST_MAKING: Final = 2
"""Answers for whose records vectors are being made at the same time; beyond that only kept ones are used."""

_PRUNE_AFTER: Final = 16
"""A sixteenth of the bound is written before it is looked at again."""


@dataclass(frozen=True, slots=True)
class Text:
    """A record's text as it was embedded."""

    ref: Ref
    text: str

    @property
    def digest(self) -> bytes:
        """Of the text; the database computes the same."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).digest()


class TokenScorer:
    """Scores records by MaxSim.

    Args:
        database: Where vectors are kept.
        embedder: The bundled model, which the caller closes; None for one of its own, loaded at the first question.
        budget_s: How long a question waits for what has to be made first.
        most_bytes: What one tenant's kept vectors may take.
    """

    def __init__(
        self, database: Database, embedder: BundledEmbedder | None, *, budget_s: float, most_bytes: int
    ) -> None:
        self._database = database
        self._embedder = embedder or BundledEmbedder()
        self._own = self._embedder if embedder is None else None
        self._budget_s = budget_s
        self._most_bytes = most_bytes
        self._making: set[asyncio.Task[None]] = set()
        self._written: dict[UUID, int] = {}

    async def close(self) -> None:
        """Give up what is still being made."""
        for task in self._making:
            task.cancel()
        await asyncio.gather(*self._making, return_exceptions=True)
        if self._own is not None:
            await self._own.close()

    async def score(self, scope: Scope, question: str, texts: Sequence[Text]) -> list[float | None]:
        """Scores in the order of the records, -1..1; None for those whose vectors were not ready in time.

        Raises:
            RerankError: The question itself was not ready in time.
        """
        deadline = asyncio.get_running_loop().time() + self._budget_s
        try:
            async with asyncio.timeout_at(deadline):
                (tokens,) = await self._embedder.embed_tokens([question])
        except TimeoutError:
            raise RerankError("the model was busy for longer than the time budget") from None
        digests = {text.ref: text.digest for text in texts}
        packed = await self._load(scope, digests)
        if missing := [text for text in texts if text.ref not in packed]:
            await self._make_until(deadline, scope, missing, packed)
        ready = [text.ref for text in texts if text.ref in packed]
        scores = await asyncio.to_thread(score_packed, tokens, [packed[ref] for ref in ready])
        by_ref = dict(zip(ready, scores, strict=True))
        return [by_ref.get(text.ref) for text in texts]

    async def _load(self, scope: Scope, digests: Mapping[Ref, bytes]) -> dict[Ref, bytes]:
        """What is kept of these texts; it is remembered, once an hour, that it was of use."""
        by_id = {ref.id: ref for ref in digests if ref.type in _KEPT_TYPES}
        given: dict[str, Any] = {"model": MODEL, "ids": list(by_id)}
        async with self._database.transaction(scope) as tx:
            given["tenant_id"] = tx.tenant_id
            rows = await tx.hot("load_token_vectors", given)
            kept = [row for row in rows if bytes(row["digest"]) == digests[by_id[row["record_id"]]]]
            if stale := [row["record_id"] for row in kept if row["stale"]]:
                await tx.touched("touch_token_vectors", {**given, "ids": stale})
        return {by_id[row["record_id"]]: bytes(row["vectors"]) for row in kept}

    async def _make_until(
        self, deadline: float, scope: Scope, missing: Sequence[Text], packed: dict[Ref, bytes]
    ) -> None:
        if len(self._making) >= _MOST_MAKING:
            return
        task = asyncio.create_task(self._make(scope, missing, packed), name="token-vectors")
        self._making.add(task)
        task.add_done_callback(self._making.discard)
        await asyncio.wait({task}, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))

    async def _make(self, scope: Scope, missing: Sequence[Text], packed: dict[Ref, bytes]) -> None:
        """Make the vectors, best first, and keep them. Whoever waits reads `packed`."""
        made: list[tuple[Text, bytes]] = []
        try:
            for start in range(0, len(missing), _AT_ONCE):
                some = missing[start : start + _AT_ONCE]
                for text, tokens in zip(some, await self._embedder.embed_tokens([t.text for t in some]), strict=True):
                    packed[text.ref] = pack_tokens(tokens)
                    made.append((text, packed[text.ref]))
            await self._keep(scope, [one for one in made if one[0].ref.type in _KEPT_TYPES])
        except Exception as error:  # noqa: BLE001 - nobody waits for it any more, and the order found is an answer too
            log.warning("token_vectors_not_kept", error_class=type(error).__name__)

    async def _keep(self, scope: Scope, made: Sequence[tuple[Text, bytes]]) -> None:
        if not made:
            return
        async with self._database.transaction(scope) as tx:
            tenant_id = tx.tenant_id
            await tx.touched(
                "keep_token_vectors",
                {
                    "tenant_id": tenant_id,
                    "model": MODEL,
                    "ids": [text.ref.id for text, _ in made],
                    "digests": [f"\\x{text.digest.hex()}" for text, _ in made],
                    "vectors": [f"\\x{vectors.hex()}" for _, vectors in made],
                },
            )
        written = self._written.get(tenant_id, self._most_bytes) + sum(len(vectors) for _, vectors in made)
        if written < self._most_bytes // _PRUNE_AFTER:
            self._written[tenant_id] = written
            return
        self._written[tenant_id] = 0
        async with self._database.transaction(scope) as tx, tx.as_steward():
            await tx.touched("prune_token_vectors", {"tenant_id": tenant_id, "most_bytes": self._most_bytes})
