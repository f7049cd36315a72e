"""Sets single rows of a graph right, from the canonical rows as they are now, and touches nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from memory_os.graph.port import (
    CoOccurrence,
    GraphBackend,
    GraphDataError,
    GraphPatch,
    GraphRow,
    Key,
    MemoryNode,
    Mention,
    Part,
)
from memory_os.outbox.queue import WORKER_ROLE, Lease
from memory_os.projection import canonical
from memory_os.projection.derivation import read_mentions
from memory_os.projection.differences import group
from memory_os.projection.nodes import mention_edge
from memory_os.storage.database import Database, Scope, Transaction


async def mend(database: Database, backend: GraphBackend, lease: Lease, part: Part, keys: Sequence[Key]) -> int:
    """Set rows of one part to what the canonical rows say, under the tenant's lease and fence.

    Returns:
        How many of them are right now. One that the graph can't hold is not among them, nor one that it repeats.

    Raises:
        GraphUnavailableError: The graph does not answer.
        FenceLostError: The tenant is somebody else's by now.
    """

    async def read(tx: Transaction) -> tuple[dict[Key, GraphRow], GraphPatch]:
        rows = await canonical.look_up(tx, part, keys)
        return rows, await _patch(tx, part, keys, rows)

    rows, patch = await database.run(Scope(WORKER_ROLE, lease.tenant_id), read)
    try:
        await backend.apply(lease.tenant_id, str(lease.token), patch)
    except GraphDataError:
        if len(keys) == 1:
            return 0
        middle = len(keys) // 2
        return sum([await mend(database, backend, lease, part, some) for some in (keys[:middle], keys[middle:])])
    found = group(await backend.look_up(lease.tenant_id, part, keys))
    return sum(found.get(key, []) == ([rows[key]] if key in rows else []) for key in keys)


async def _patch(tx: Transaction, part: Part, keys: Sequence[Key], rows: dict[Key, GraphRow]) -> GraphPatch:
    gone = [key for key in keys if key not in rows]
    present = list(rows.values())
    match part:
        case "memories":
            return await _memories(tx, cast("list[MemoryNode]", present), [key[0] for key in gone])
        case "mentions":
            # A patch sets all the mentions of a memory, so the memory is set as a whole.
            owners = await canonical.look_up(tx, "memories", {key[:1] for key in keys})
            return await _memories(tx, cast("list[MemoryNode]", list(owners.values())), [])
        case "co_occurrences":
            pairs = [*cast("list[CoOccurrence]", present), *(CoOccurrence(a, b, 0.0, 0) for a, b in gone)]
            return GraphPatch(co_occurrences=pairs)
        case "records":
            return GraphPatch(deleted_records=[key[0] for key in gone])
        case "entities" | "edges" | "links":
            values: dict[str, Any] = {part: present, f"deleted_{part}": [key[0] for key in gone]}
            return GraphPatch(**values)


async def _memories(tx: Transaction, memories: Sequence[MemoryNode], gone: Sequence[str]) -> GraphPatch:
    mentions: list[Mention] = [
        mention_edge(row) for row in await read_mentions(tx, [UUID(memory.id) for memory in memories])
    ]
    return GraphPatch(memories=memories, mentions=mentions, deleted_memories=gone)
