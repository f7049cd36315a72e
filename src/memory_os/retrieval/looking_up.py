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
from memory_os.retrieval.citing import Origins, cite
from memory_os.retrieval.hydrating import Hydrated, hydrate
from memory_os.retrieval.searching import Found
from memory_os.retrieval.trails import count_leads
from memory_os.retrieval.weighing import weigh
from memory_os.storage.database import Database, Scope

LOOKED_UP: Final = 80
"""Records that are looked up at most beside those of the graph: more than any pack holds, as the mild boosts that need
the record itself move it by a few places only."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What was found, weighed and as its reader may see it; `leads` are the mentions of what paths pass through."""

    relevance: Mapping[Ref, float]
    hydrated: Hydrated
    origins: Origins
    leads: Mapping[NodeRef, int]


async def look_up(
    database: Database, principal: Principal, found: Found, paths: Sequence[Path], window: Window
) -> LookedUp:
    """Weigh what was found by both arms, and look up the best of it and what the paths lead over."""
    ends = {Ref("memory", UUID(path.steps[-1].node.id)) for path in paths if path.steps[-1].node.kind == "memory"}
    async with database.transaction(Scope.of(principal), plans="generic") as tx:
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
        return LookedUp(relevance, hydrated, origins, leads)
