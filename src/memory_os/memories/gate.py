"""The dedup gate: what becomes of a memory that comes, beside those that are there. It runs inside the write.

Similarity only nominates; the guard of `memory_os.domain.gate` decides. When in doubt nothing merges: a clean graph
beats a complete one, and nothing that was said is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal
from uuid import UUID

from memory_os.domain.gate.judging import Thresholds
from memory_os.domain.gate.thresholds import thresholds_for
from memory_os.domain.principal import Principal
from memory_os.embedding.port import EmbedderIdentity
from memory_os.memories.model import Candidate, Check, MemoryDraft
from memory_os.memories.nominating import Nominations, Nominee
from memory_os.memories.sketches import Sketches
from memory_os.memories.states import enter_scopes
from memory_os.memories.writing import Embedded, memory_of_draft
from memory_os.storage.database import Transaction

Verdict = Literal["distinct", "merge", "review", "supersede", "contradict"]

_ORDER: Final[tuple[Verdict, ...]] = ("merge", "contradict", "supersede", "review")
"""What counts where candidates differ: an equal is an equal whatever else is near it."""

WORDS: Final = {"supersede": "supersession_candidate", "contradict": "contradiction"}
"""What answers call the rule of a verdict that speaks of a change; the guard's own rule stands with the candidate."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate says about one draft. `nominees` are those that are not distinct, the deciding one first."""

    verdict: Verdict
    rule: str | None
    nominees: Sequence[Nominee]

    @property
    def decider(self) -> Nominee:
        """The candidate that the verdict is about; there is one unless the verdict is distinct."""
        return self.nominees[0]

    def among(self, there: Collection[UUID]) -> Decision:
        """What the decision is if only these memories are there."""
        return _decide([nominee for nominee in self.nominees if nominee.memory.id in there])


DISTINCT: Final = Decision("distinct", None, ())


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides about drafts.

    Attributes:
        recent: Threshold for memories of the past hour; None takes the embedder's own.
        older: The same for all others.
        review: Similarity under which nothing is compared that only its vector speaks for.
        sketches: What this process keeps of the scopes.
    """

    recent: float | None = None
    older: float | None = None
    review: float | None = None
    sketches: Sketches = field(default_factory=Sketches)

    def thresholds(self, identity: EmbedderIdentity) -> Thresholds:
        """The embedder's calibrated pair, overridden where the settings say so."""
        own = thresholds_for(identity.model, identity.dimension)
        return Thresholds(
            own.recent if self.recent is None else self.recent,
            own.older if self.older is None else self.older,
            own.review if self.review is None else self.review,
        )

    async def enter(self, tx: Transaction, principal: Principal) -> None:
        """Wait for whoever else writes in this scope. Other scopes are not waited for."""
        await enter_scopes(tx, [principal.user_id])

    async def decide(
        self, tx: Transaction, principal: Principal, drafts: Sequence[tuple[UUID, MemoryDraft]], embedded: Embedded
    ) -> list[Decision]:
        """Decide about drafts in order, each beside what is stored and the ones before it that will be.

        Args:
            tx: The unit of work, inside the scope's lock where something is going to be stored.
            principal: Who writes.
            drafts: Checked drafts with the ids that they would be stored under.
            embedded: Their vectors, in the same order.
        """
        now = datetime.now(UTC)
        memories = [memory_of_draft(ident, draft, principal, (now, now)) for ident, draft in drafts]
        wanted = [draft for _, draft in drafts]
        nominations = Nominations(wanted, memories, embedded, self.thresholds(embedded.identity), now)
        await nominations.read(tx, scope_of(principal), self.sketches)
        decisions: list[Decision] = []
        kept: list[int] = []
        for index in range(len(drafts)):
            decisions.append(_decide(nominations.judge(index, kept)))
            if decisions[-1].verdict != "merge":
                kept.append(index)
        return decisions

    async def check(self, tx: Transaction, principal: Principal, draft: MemoryDraft, embedded: Embedded) -> Check:
        """What `decide` would say, for a client that only asks."""
        decision = (await self.decide(tx, principal, [(UUID(int=0), draft)], embedded))[0]
        rule = WORDS.get(decision.verdict, decision.rule)
        return Check(decision.verdict, rule, [candidate_of(nominee) for nominee in decision.nominees])


def scope_of(principal: Principal) -> str:
    """The part of a tenant in which writes are serial: what belongs to one user, or to nobody."""
    return principal.user_id or ""


def candidate_of(nominee: Nominee) -> Candidate:
    """A nominee as answers show it."""
    memory, judgement = nominee.memory, nominee.judgement
    return Candidate(
        memory.id,
        memory.text,
        nominee.similarity,
        nominee.tier,
        judgement.verdict,
        judgement.rule,
        list(judgement.guard),
    )


def _decide(nominees: Sequence[Nominee]) -> Decision:
    if not nominees:
        return DISTINCT
    first = min(nominees, key=lambda nominee: _ORDER.index(nominee.judgement.verdict))
    others = [nominee for nominee in nominees if nominee is not first]
    return Decision(first.judgement.verdict, first.judgement.rule, (first, *others))
