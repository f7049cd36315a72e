"""One retrieval from the question to the pack: which arm is asked when, and what happens when one can't answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from memory_os.checking import moment_faults
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import check_text
from memory_os.domain.token_counting import ESTIMATE, TokenCounter
from memory_os.embedding.port import Embedder
from memory_os.errors import FieldError, InvalidInputError
from memory_os.graph.facade import GraphMemory
from memory_os.graph.port import GraphError, Path, Seed
from memory_os.outbox.waiting import wait_until
from memory_os.retrieval.arms import (
    GraphPosition,
    Window,
    read_position,
)
from memory_os.retrieval.fusing import Arms, Candidate, fuse
from memory_os.retrieval.log import RetrievalEntry, RetrievalLog
from memory_os.retrieval.looking_up import look_up
from memory_os.retrieval.model import ContextPack, GraphState, GraphStateName, RetrievalRequest
from memory_os.retrieval.packing import make_pack
from memory_os.retrieval.reranking import Reranking
from memory_os.retrieval.searching import Found, Searching
from memory_os.retrieval.timing import Timings
from memory_os.retrieval.trails import follow
from memory_os.retrieval.walking import make_seeds, walk
from memory_os.retrieval.weighing import Weights
from memory_os.storage.database import Database, Scope

TURNS: Final = 4
"""Retrievals that a process works on at a time; more take turns. One after the other is no slower, and the graph, whose
time is bounded, is not found too slow for want of a processor."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A pack, and what the log keeps of it."""

    pack: ContextPack
    entry: RetrievalEntry


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
        self._searching = Searching(database, embedder, with_graph=graph is not None)
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
            found = await self._searching.search(scope, request, window, timings)
        finally:
            self._turns.release()
        if request.arms.graph and request.wait_for is not None and found.position is not None:
            with timings.part("wait"):
                found.position = await self._wait(scope, found.position, request.wait_for, request.timeout_ms)
        async with self._turns:
            seeds, paths = await self._walk(principal, request, window, found, timings)
            with timings.part("hydrate"):
                looked_up = await look_up(
                    self._database, principal, found, paths or (), window, request.limits.memories
                )
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
            packed = make_pack(candidates, hydrated.contradictions, state, request, found.degraded, self._counter)
        pack = packed.finish(retrieval_id, timings.finish())
        values = _log_values(request, pack, found, paths, candidates, request_id)
        values["pack_tokens"] = packed.tokens
        return Retrieved(pack, RetrievalEntry(retrieval_id, principal, values, packed.entries))

    async def _wait(self, scope: Scope, position: GraphPosition, wanted: int, timeout_ms: int) -> GraphPosition:
        """Look again until the graph has reached the position or the time is over."""
        return await wait_until(
            position,
            lambda seen: not seen.lag or seen.position >= wanted,
            lambda: self._database.run(scope, read_position),
            timeout_ms,
        )

    async def _walk(
        self, principal: Principal, request: RetrievalRequest, window: Window, found: Found, timings: Timings
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

    async def _rerank(
        self,
        principal: Principal,
        request: RetrievalRequest,
        candidates: list[Candidate],
        found: Found,
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

    def _state(self, found: Found, paths: Sequence[Path] | None) -> GraphState:
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


def _log_values(
    request: RetrievalRequest,
    pack: ContextPack,
    found: Found,
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
