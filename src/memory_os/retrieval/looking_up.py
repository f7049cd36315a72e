"""Between the arms and the order: what was found, weighed by both arms, and as its reader may see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final
from uuid import UUID

from memory_os.domain.principal import Principal
from memory_os.graph.port import NodeRef, Path
from memory_os.retrieval.arms import Ref, Window
from memory_os.retrieval.believing import hydrate_believed
from memory_os.retrieval.citing import Origins, ask_origins, cite, origins_of
from memory_os.retrieval.hydrating import Hydrated, ask_records, hydrated_of, ids_by_kind
from memory_os.retrieval.searching import Found
from memory_os.retrieval.trails import ask_leads, leads_of
from memory_os.retrieval.weighing import weigh
from memory_os.storage.database import Database, Scope

SPARE_RECORDS: Final = 4
LEAST: Final = 32
"""Records that are looked up beside those of the graph, for each one wanted, and in any case: the mild boosts that need
the record itself move it by a few places only, and what turns out to be past or hidden falls away."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What was found, weighed and as its reader may see it; `leads` are the mentions of what paths pass through."""

    relevance: Mapping[Ref, float]
    hydrated: Hydrated
    origins: Origins
    leads: Mapping[NodeRef, int]


async def look_up(
    database: Database, principal: Principal, found: Found, paths: Sequence[Path], window: Window, limit: int
) -> LookedUp:
    """Weigh what was found by both arms, and look up the best of it and what the paths lead over.

    `limit` is how many records are wanted.
    """
    ends = {Ref("memory", UUID(path.steps[-1].node.id)) for path in paths if path.steps[-1].node.kind == "memory"}
    async with database.transaction(Scope.of(principal), plans="generic") as tx:
        weights = await weigh(tx, found.asked, found.words, found.vector, ends)
        relevance = weights.relevance()
        likely = (one for one in relevance if one in found.words or one in found.vector or one in weights.turns)
        refs = {*islice(likely, max(LEAST, SPARE_RECORDS * limit)), *(Ref("entity", ident) for ident in found.named)}
        if window.believed_at is not None:
            hydrated = await hydrate_believed(tx, principal, refs, paths, window)
            origins = await cite(tx, (record.ref for record in hydrated.records.values()), window.believed_at)
            return LookedUp(relevance, hydrated, origins, {})
        ids = ids_by_kind(refs, paths)
        passages = [ref.id for ref in refs if ref.type == "passage"]
        records, steps, cited, counted = await tx.together(
            *ask_records(tx, ids, paths, window), ask_origins(tx, ids["memories"], passages), ask_leads(tx, paths)
        )
        return LookedUp(relevance, hydrated_of(records, steps), origins_of(cited), leads_of(counted))
