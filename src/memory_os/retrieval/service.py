"""One retrieval from the question to the pack: which arm is asked when, and what happens when one can't answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray

from memory_os.checking import moment_faults
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import check_text
from memory_os.domain.stop_words import COMMON_WORDS
from memory_os.domain.token_counting import ESTIMATE, TokenCounter
from memory_os.embedding.port import Embedder, EmbeddingError
from memory_os.errors import FieldError, InvalidInputError
from memory_os.graph.facade import GraphMemory
from memory_os.graph.port import GraphError, NodeRef, Path, Seed
from memory_os.outbox.waiting import wait_until
from memory_os.retrieval.arms import (
    GraphPosition,
    Ref,
    Window,
    find_named,
    read_position,
)
from memory_os.retrieval.believing import hydrate_believed
from memory_os.retrieval.citing import Origins, cite
from memory_os.retrieval.fusing import Arms, Candidate, fuse
from memory_os.retrieval.hydrating import Hydrated, hydrate
from memory_os.retrieval.log import RetrievalEntry, RetrievalLog
from memory_os.retrieval.model import ArmName, ContextPack, GraphState, GraphStateName, RetrievalRequest
from memory_os.retrieval.packing import make_pack
from memory_os.retrieval.reranking import Reranking
from memory_os.retrieval.timing import Timings
from memory_os.retrieval.trails import count_leads, follow
from memory_os.retrieval.vectors import search_vectors
from memory_os.retrieval.walking import make_seeds, walk
from memory_os.retrieval.weighing import Asked, Weights, weigh
from memory_os.retrieval.words import find_words, weigh_words
from memory_os.storage.database import Database, Scope

log = structlog.get_logger(__name__)

_word = re.compile(r"\w+")

LOOKED_UP: Final = 80
"""Records that are looked up at most beside those of the graph: more than any pack holds, as the mild boosts that need
the record itself move it by a few places only."""

TURNS: Final = 4
"""Retrievals that a process works on at a time; more take turns. One after the other is no slower, and the graph, whose
time is bounded, is not found too slow for want of a processor."""

EMBED_BUDGET_S: Final = 3.0
"""How long a question waits for its vector; a busy endpoint may take ten seconds, and then the other arms answer."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A pack, and what the log keeps of it."""

    pack: ContextPack
    entry: RetrievalEntry


@dataclass(slots=True)
class _Found:
    """What the arms found. `degraded` are arms that were wanted and could not be asked."""

    vector: Mapping[Ref, float]
    words: Mapping[Ref, float]
    named: Sequence[UUID]
    position: GraphPosition | None
    degraded: list[ArmName]
    asked: Asked


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """What was found, weighed and as its reader may see it; `leads` are the mentions of what paths pass through."""

    relevance: Mapping[Ref, float]
    hydrated: Hydrated
    origins: Origins
    leads: Mapping[NodeRef, int]


class Retriever:
    """Answers questions. No transaction is open while the embedder or the graph is asked.

    Args:
        database: Where the records are.
        embedder: Makes the question's vector.
        graph: None while graph memory is off.
        reranking: Ranks the best candidates anew; None where that is off.
        counter: Counts the tokens of a pack.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        graph: GraphMemory | None,
        reranking: Reranking | None = None,
        counter: TokenCounter = ESTIMATE,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._graph = graph
        self._reranking = reranking
        self._counter = counter
        self._turns = asyncio.Semaphore(TURNS)
        self.log = RetrievalLog(database)

    async def close(self) -> None:
        """Wait until the log is written."""
        await self.log.close()

    async def retrieve(self, principal: Principal, request: RetrievalRequest, request_id: str | None) -> Retrieved:
        """Answer a question. The caller hands `entry` to the log once the answer is given.

        Args:
            principal: Who asks; row-level security decides what is found.
            request: The question.
            request_id: The request, for the log.

        Raises:
            InvalidInputError: If the question can't be asked as it is.
        """
        check_request(request)
        if request.rerank and self._reranking is None:
            fault = "is not offered here: leave it out, or start the service with RERANK=maxsim"
            raise InvalidInputError("this service ranks nothing anew", errors=[FieldError("/rerank", fault)])
        retrieval_id, timings = new_id(), Timings()
        scope = Scope.of(principal)
        window = Window(request.as_of or request.believed_at, "history" in request.include, request.believed_at)
        with timings.part("queue"):
            await self._turns.acquire()
        try:
            found = await self._search(scope, request, window, timings)
        finally:
            self._turns.release()
        if request.arms.graph and request.wait_for is not None and found.position is not None:
            with timings.part("wait"):
                found.position = await self._wait(scope, found.position, request.wait_for, request.timeout_ms)
        async with self._turns:
            seeds, paths = await self._walk(principal, request, window, found, timings)
            with timings.part("hydrate"):
                looked_up = await self._look_up(principal, found, paths or (), window)
        hydrated = looked_up.hydrated
        trails = follow(
            paths or (),
            seeds,
            found.named,
            hydrated,
            request.limits.paths,
            looked_up.leads,
            {*found.words, *found.vector},
            request.query,
        )
        now = window.as_of or datetime.now(UTC)
        arms = Arms(found.words, found.vector, trails)
        candidates = looked_up.origins.tell(fuse(arms, looked_up.relevance, hydrated, now, request.fusion))
        candidates = await self._rerank(principal, request, candidates, found, timings)
        with timings.part("pack"):
            state = self._state(found, paths)
            packed = make_pack(
                retrieval_id, candidates, hydrated.contradictions, state, request, found.degraded, self._counter
            )
        pack = packed.finish(timings.finish())
        values = _log_values(request, pack, found, paths, candidates, request_id)
        values["pack_tokens"] = packed.tokens
        return Retrieved(pack, RetrievalEntry(retrieval_id, principal, values, packed.entries))

    async def _search(self, scope: Scope, request: RetrievalRequest, window: Window, timings: Timings) -> _Found:
        """Ask the arms of Postgres, words and vectors side by side on two connections.

        Measured with 10,000 memories on two busy cores: 60 ms at the median instead of 73 one after the other, 88
        instead of 129 at the 95th percentile; with four clients at once there is no difference.
        """
        found = _Found({}, {}, (), None, [], Asked(request.query))
        await asyncio.gather(
            self._search_words(scope, request, window, found, timings),
            self._search_vectors(scope, request, window, found, timings),
        )
        return found

    async def _search_words(
        self, scope: Scope, request: RetrievalRequest, window: Window, found: _Found, timings: Timings
    ) -> None:
        async with self._database.transaction(scope, plans="generic") as tx:
            if self._graph is not None:
                found.position = await read_position(tx)
            if request.arms.text:
                with timings.part("text"):
                    words = await weigh_words(tx, request.query, window.searched)
                    found.asked = replace(found.asked, words=words)
                    found.words = await find_words(tx, words, window.searched)
            if request.arms.graph:
                with timings.part("names"):
                    found.named = await find_named(tx, request.query, window.searched)

    async def _search_vectors(
        self, scope: Scope, request: RetrievalRequest, window: Window, found: _Found, timings: Timings
    ) -> None:
        if not request.arms.vector or not has_words(request.query):
            return
        with timings.part("embed"):
            vector = await self._embed(request.query)
        if vector is None:
            found.degraded.append("vector")
            return
        identity = self._embedder.identity
        found.asked = replace(found.asked, identity=identity, vector=vector)
        with timings.part("vector"):
            async with self._database.transaction(scope) as tx:
                found.vector = await search_vectors(tx, identity, vector, window.searched)

    async def _embed(self, query: str) -> NDArray[np.float32] | None:
        try:
            async with asyncio.timeout(EMBED_BUDGET_S):
                vector: NDArray[np.float32] = (await self._embedder.embed([query]))[0]
                return vector
        except (EmbeddingError, TimeoutError) as error:
            log.warning("retrieval_without_vectors", error_class=type(error).__name__, error=str(error))
            return None

    async def _wait(self, scope: Scope, position: GraphPosition, wanted: int, timeout_ms: int) -> GraphPosition:
        """Look again until the graph has reached the position or the time is over."""
        return await wait_until(
            position,
            lambda seen: not seen.lag or seen.position >= wanted,
            lambda: self._database.run(scope, read_position),
            timeout_ms,
        )

    async def _walk(
        self, principal: Principal, request: RetrievalRequest, window: Window, found: _Found, timings: Timings
    ) -> tuple[list[Seed], Sequence[Path] | None]:
        if self._graph is None or not request.arms.graph or found.position is None:
            return [], ()
        seeds = make_seeds(found.named, Weights(dict(found.words), dict(found.vector)).relevance())
        position = found.position
        as_of = None if window.searched.history else (window.as_of or position.now)
        current = not position.lag and not position.incomplete and not position.doubted
        with timings.part("graph"):
            paths = await walk(self._graph, principal.tenant_id, seeds, request.limits, as_of, current=current)
        if paths is None:
            found.degraded.append("graph")
        elif seeds and not paths and not position.doubted:
            found.position = replace(position, doubted=not await self._is_there(principal, position))
        return seeds, paths

    async def _is_there(self, principal: Principal, position: GraphPosition) -> bool:
        """Whether the graph that gave nothing is the tenant's: one that was lost just now is empty, too."""
        if self._graph is None or not position.epochs:
            return True
        try:
            return await self._graph.backend.epoch(principal.tenant_id) in position.epochs
        except GraphError:
            return False

    async def _look_up(self, principal: Principal, found: _Found, paths: Sequence[Path], window: Window) -> _LookedUp:
        """Weigh what was found by both arms, and look up the best of it and what the paths lead over."""
        ends = {Ref("memory", UUID(path.steps[-1].node.id)) for path in paths if path.steps[-1].node.kind == "memory"}
        async with self._database.transaction(Scope.of(principal), plans="generic") as tx:
            weights = await weigh(tx, found.asked, found.words, found.vector, ends)
            relevance = weights.relevance()
            likely = (one for one in relevance if one in found.words or one in found.vector or one in weights.turns)
            refs = {*islice(likely, LOOKED_UP), *(Ref("entity", ident) for ident in found.named)}
            if window.believed_at is None:
                hydrated = await hydrate(tx, refs, paths, window)
            else:
                hydrated = await hydrate_believed(tx, principal, refs, paths, window)
            seen = (record.ref for record in hydrated.records.values())
            origins = await cite(tx, seen, window.believed_at)
            leads = {} if window.believed_at is not None else await count_leads(tx, paths)
            return _LookedUp(relevance, hydrated, origins, leads)

    async def _rerank(
        self,
        principal: Principal,
        request: RetrievalRequest,
        candidates: list[Candidate],
        found: _Found,
        timings: Timings,
    ) -> list[Candidate]:
        """Rank the best anew, where that is offered and not unwanted."""
        if self._reranking is None or request.rerank is False:
            return candidates
        with timings.part("rerank"):
            reranked = await self._reranking.rerank(principal, request.query, candidates)
        if not reranked.whole:
            found.degraded.append("rerank")
        return reranked.candidates

    def _state(self, found: _Found, paths: Sequence[Path] | None) -> GraphState:
        position = found.position
        if position is None:
            return GraphState("off", 0, 0)
        behind = position.lag > 0 or position.incomplete
        broken = paths is None or position.doubted
        state: GraphStateName = "degraded" if broken else "lagging" if behind else "current"
        return GraphState(state, position.lag, position.position)


def check_request(request: RetrievalRequest) -> None:
    """Check what the shape alone does not.

    Raises:
        InvalidInputError: With a pointer for each fault.
    """
    faults = [
        FieldError(f"/{name}", fault)
        for name in ("query", "conversation_id", "user_id")
        if (value := getattr(request, name)) is not None and (fault := check_text(value))
    ]
    faults += moment_faults(request, ("as_of", "believed_at"))
    if not faults and request.believed_at is not None and request.believed_at > datetime.now(UTC):
        faults.append(FieldError("/believed_at", "must not lie in the future: nobody knows what will be believed then"))
    if faults:
        raise InvalidInputError("the question can't be asked as it is", errors=faults)


def has_words(query: str) -> bool:
    """Whether there is a word in the question that tells anything: the vector of anything else is near to chance."""
    return any(word.casefold() not in COMMON_WORDS for word in _word.findall(query))


def _log_values(
    request: RetrievalRequest,
    pack: ContextPack,
    found: _Found,
    paths: Sequence[Path] | None,
    candidates: Sequence[Candidate],
    request_id: str | None,
) -> dict[str, Any]:
    """The columns of the retrieval's row; tokens are the packer's to count."""
    wanted = {"vector": request.arms.vector, "text": request.arms.text, "graph": request.arms.graph}
    hits = {"vector": len(found.vector), "text": len(found.words), "graph": len(paths or ())}
    shown = {name: sum(name in candidate.ranks for candidate in candidates) for name in wanted}
    limits = request.limits
    return {
        "conversation_id": request.conversation_id,
        "query": request.query,
        "as_of": request.as_of or request.believed_at,
        "arms": {
            name: {"wanted": wanted[name], "degraded": name in found.degraded, "found": hits[name], "kept": shown[name]}
            for name in wanted
        },
        "bounds": {
            "hops": limits.hops,
            "paths": limits.paths,
            "memories": limits.memories,
            "budget_tokens": request.budget_tokens,
            **({} if request.believed_at is None else {"believed_at": request.believed_at.isoformat()}),
            "named_entities": len(found.named),
            "limit_hit": any(omission.reason == "limit" for omission in pack.omitted),
            "budget_hit": any(omission.reason == "budget" for omission in pack.omitted),
        },
        "timings_ms": pack.timings_ms,
        "graph_state": pack.graph.state,
        "no_match": pack.no_match,
        "items": len(pack.items),
        "omitted": pack.omitted_count,
        "request_id": request_id,
    }
