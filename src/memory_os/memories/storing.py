"""Storing memories through the gate: what merges, what is stored, and what follows from what is there already."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

import msgspec

from memory_os.domain.ids import new_id
from memory_os.domain.labels import LABELS
from memory_os.domain.principal import Principal
from memory_os.errors import ConflictError, InvalidInputError, MemoryOSError
from memory_os.memories.disputing import dispute
from memory_os.memories.filing import file_value
from memory_os.memories.gate import WORDS, Decision, Gate, candidate_of
from memory_os.memories.merging import merge_draft
from memory_os.memories.model import DraftEdge, Memory, MemoryDraft, NodeAddress, StoredMemory
from memory_os.memories.nominating import key_of_draft
from memory_os.memories.reading import existing_memories
from memory_os.memories.reviewing import ask_for_review
from memory_os.memories.superseding import Superseded, supersede
from memory_os.memories.writing import Embedded, store_memories
from memory_os.outbox.events import Outbox
from memory_os.sources.evidence import insert_evidence, note_widening, support_memory
from memory_os.sources.inheriting import Settled
from memory_os.storage.database import Transaction

Outcomes = list[StoredMemory | MemoryOSError]


@dataclass(slots=True)
class Storing:
    """One unit of work that stores drafts of one principal.

    Args:
        tx: The unit of work.
        outbox: Where projections are enqueued.
        principal: Who writes.
        gate: Decides what merges.
        request_id: The request, for the log.
    """

    tx: Transaction
    outbox: Outbox
    principal: Principal
    gate: Gate
    request_id: str | None
    position: int = 0
    _kept: dict[UUID, UUID] = field(default_factory=dict)

    async def store(self, settled: Sequence[Settled], embedded: Embedded) -> Outcomes:
        """Store settled drafts with their evidence in order, each beside what is there and the ones before it.

        Returns:
            The outcome of each; a `ConflictError` where its id is taken by something else.
        """
        drafts = [one.draft for one in settled]
        ids = [draft.id or new_id() for draft in drafts]
        decisions = await self._decide(ids, drafts, embedded)
        merged = {index: one for index, one in decisions.items() if one.verdict == "merge"}
        for index, decision in merged.items():
            kept = decision.decider.memory.id
            self._kept[ids[index]] = self._kept.get(kept, kept)
        stored = [index for index in range(len(drafts)) if index not in merged]
        outcomes = await self._insert(stored, ids, drafts, embedded)
        await self._support(outcomes, settled)
        for index in sorted(decisions):
            if index in merged:
                outcomes[index] = await self._merge(ids[index], settled[index], decisions[index])
            elif isinstance(known := outcomes[index], StoredMemory) and known.outcome == "created":
                outcomes[index] = await self._follow_up(known.memory, drafts[index], decisions[index])
        return [outcomes[index] for index in range(len(drafts))]

    async def _decide(
        self, ids: Sequence[UUID], drafts: Sequence[MemoryDraft], embedded: Embedded
    ) -> dict[int, Decision]:
        """What the gate says about each draft that has to pass it; one that repeats its id is no new claim."""
        gated = [index for index, draft in enumerate(drafts) if draft.dedup == "gate"]
        if not gated:
            return {}
        await self.gate.enter(self.tx, self.principal)
        named = [ids[index] for index in gated if drafts[index].id is not None]
        seen = set(await existing_memories(self.tx, named))
        fresh = []
        for index in gated:
            if ids[index] not in seen:
                seen.add(ids[index])
                fresh.append(index)
        if not fresh:
            return {}
        chosen = embedded.only(fresh)
        given = [(ids[index], drafts[index]) for index in fresh]
        decided = await self.gate.decide(self.tx, self.principal, given, chosen)
        there = await self._hold(decided) | {ids[index] for index in fresh}
        return dict(zip(fresh, (decision.among(there) for decision in decided), strict=True))

    async def _hold(self, decisions: Sequence[Decision]) -> set[UUID]:
        """Hold the nominees until the end of the transaction; gives those that are still there.

        Whoever deletes or archives waits for nobody's gate, so one may have gone since it was read.
        """
        wanted = sorted({nominee.memory.id for decision in decisions for nominee in decision.nominees})
        if not wanted:
            return set()
        rows = await self.tx.hot("hold_nominees", {"tenant_id": self.tx.tenant_id, "ids": wanted})
        return {row["id"] for row in rows}

    async def _insert(
        self, chosen: Sequence[int], ids: Sequence[UUID], drafts: Sequence[MemoryDraft], embedded: Embedded
    ) -> dict[int, StoredMemory | MemoryOSError]:
        if not chosen:
            return {}
        wanted = [self._redirected(drafts[index]) for index in chosen]
        keys = [key_of_draft(draft) if draft.dedup == "gate" else None for draft in wanted]
        outcomes, position = await store_memories(
            self.tx,
            self.outbox,
            self.principal,
            wanted,
            embedded.only(chosen),
            self.request_id,
            ids=[ids[index] for index in chosen],
            keys=keys,
        )
        self.position = max(self.position, position)
        return dict(zip(chosen, outcomes, strict=True))

    def _redirected(self, draft: MemoryDraft) -> MemoryDraft:
        """A draft whose edges lead to what was kept, where they named one that merged in this same batch."""
        if not self._kept or not draft.edges:
            return draft
        return msgspec.structs.replace(draft, edges=[self._redirected_edge(edge) for edge in draft.edges])

    def _redirected_edge(self, edge: DraftEdge) -> DraftEdge:
        ident = edge.to.memory if isinstance(edge.to, NodeAddress) else edge.to
        kept = self._kept.get(ident) if ident is not None else None
        return edge if kept is None else msgspec.structs.replace(edge, to=NodeAddress(memory=kept))

    async def _support(self, outcomes: dict[int, StoredMemory | MemoryOSError], settled: Sequence[Settled]) -> None:
        """Store the evidence of what was stored; what repeats its id may come with more than it had."""
        found = {index: one for index, one in outcomes.items() if isinstance(one, StoredMemory)}
        fresh = {index: one.memory.id for index, one in found.items() if one.outcome == "created"}
        rows = [(ident, support) for index, ident in fresh.items() for support in settled[index].supports]
        await insert_evidence(self.tx, self.principal, rows, self.request_id)
        for index, one in found.items():
            ident, given = one.memory.id, settled[index]
            if index in fresh:
                await note_widening(self.tx, self.principal, ident, given.narrower, self.request_id)
                continue
            try:
                await support_memory(
                    self.tx,
                    self.principal,
                    ident,
                    given.supports,
                    given.readers,
                    self.request_id,
                    widen=given.draft.widen,
                )
            except ConflictError as error:
                outcomes[index] = error

    async def _merge(self, ident: UUID, settled: Settled, decision: Decision) -> StoredMemory:
        given = (ident, replace(settled, draft=self._redirected(settled.draft)))
        merged = await merge_draft(self.tx, self.outbox, self.principal, given, decision.decider, self.request_id)
        self.position = max(self.position, merged.position)
        return StoredMemory(
            merged.memory,
            "merged",
            self.position,
            duplicate_of=merged.memory.id,
            similarity=decision.decider.similarity,
            rule=decision.rule,
            act_id=merged.act_id,
        )

    async def _follow_up(self, memory: Memory, draft: MemoryDraft, decision: Decision) -> StoredMemory:
        """What follows for a memory that was stored: it takes a place, disputes one, or awaits a decision."""
        answer = StoredMemory(memory, "created", self.position)
        answer.candidates = [candidate_of(nominee) for nominee in decision.nominees]
        if draft.on_conflict == "supersede":
            # Where it may not take the place (others would lose sight of the claim), it is stored and asked about.
            with suppress(ConflictError, InvalidInputError):
                if await self._take_place(answer, decision):
                    return answer
        if decision.verdict == "distinct":
            return answer
        answer.similarity = decision.decider.similarity
        answer.rule = WORDS.get(decision.verdict, decision.rule)
        answer.outcome = "review"
        if decision.verdict == "contradict" and not _is_settled(decision.decider.memory):
            other = decision.decider.memory
            disputed = await dispute(
                self.tx,
                self.outbox,
                self.principal,
                memory,
                against=other,
                reason=decision.rule,
                request_id=self.request_id,
            )
            answer.memory, answer.act_id, answer.outcome = disputed.memory, disputed.act_id, "disputed"
            self.position = max(self.position, disputed.position)
        await ask_for_review(self.tx, memory.id, decision)
        answer.position = self.position
        return answer

    async def _take_place(self, answer: StoredMemory, decision: Decision) -> bool:
        """Let a memory supersede what it gives a new value to; False where there is nothing of the kind."""
        memory = answer.memory
        if LABELS[memory.label].immutable_text:
            return False
        if memory.subject is not None and memory.property is not None:
            filed = await file_value(self.tx, self.outbox, self.principal, memory, self.request_id)
            if filed.superseded is None and filed.superseded_by is None:
                return False
            answer.memory, answer.act_id, position = filed.memory, filed.act_id, filed.position
        elif done := await self._supersede_one(memory, decision):
            answer.memory = done.new if done.new.id == memory.id else done.old
            answer.act_id, position = done.act_id, done.position
        else:
            return False
        answer.outcome, answer.rule = "superseded", decision.rule
        answer.position = self.position = max(self.position, position)
        return True

    async def _supersede_one(self, memory: Memory, decision: Decision) -> Superseded | None:
        """Let a memory supersede the first nominee that it may: of a batch, one may have been superseded just now."""
        for nominee in decision.nominees:
            if nominee.judgement.verdict not in WORDS or _is_settled(nominee.memory):
                continue
            old, new = nominee.memory, memory
            if _begins(new) < _begins(old) and new.valid_from is not None:
                old, new = new, old  # history that arrives late
            with suppress(ConflictError, InvalidInputError):
                return await supersede(self.tx, self.outbox, self.principal, old, new, self.request_id)
        return None


def _begins(memory: Memory) -> datetime:
    return memory.valid_from or memory.occurred_at or memory.created_at


def _is_settled(memory: Memory) -> bool:
    """Whether a memory is what happened: that is never superseded, and a change of state is no contradiction of it."""
    return LABELS[memory.label].immutable_text
