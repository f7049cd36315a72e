"""The port of a graph backend: what projection, retrieval and rebuild ask of it.

A backend holds one graph for each tenant. Every write is *absolute* (it sets, it never adds) and *fenced* (it names
the token that the writer put into the graph when it took the tenant's lease), so that delivering a patch twice changes
nothing and a writer that slept past its lease changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

NodeKind = Literal["memory", "entity", "record"]

STRONGEST = 15
"""Entities that the statistics name: the seed's number."""


class GraphError(Exception):
    """Base class of what a backend raises."""


class GraphUnavailableError(GraphError):
    """The backend can't be reached or can't serve now (refused, loading, time-out, out of memory, read-only)."""


class GraphDataError(GraphError):
    """The backend, or the encoder before it, refused the data of one write (a Cypher error, a value it can't hold)."""


class GraphDamagedError(GraphDataError):
    """The graph can't be read though the server answers: it has to be rebuilt."""


class FenceLostError(GraphError):
    """The graph's fence holds another token: somebody else took the tenant over, nothing was written."""


class NodeRef(NamedTuple):
    """Address of a node. `record` is an observation, procedure, outcome or source that a link points at."""

    kind: NodeKind
    id: str


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """A memory in the graph. Times are epoch microseconds; the text is never in the graph."""

    id: str
    label: str
    status: str
    version: int
    valid_from: int | None = None
    valid_to: int | None = None
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class EntityNode:
    """An entity in the graph. `name` is here for matching; `strength` is in 0..5."""

    id: str
    name: str
    type: str
    strength: float
    declared: bool


@dataclass(frozen=True, slots=True)
class Mention:
    """A `MENTIONS` edge from a memory to an entity; weight in 0..5."""

    memory_id: str
    entity_id: str
    weight: float


@dataclass(frozen=True, slots=True)
class CoOccurrence:
    """A `CO_OCCURS` edge between two entities, `a < b` as text. `count` is the records naming both; 0 removes it."""

    a: str
    b: str
    weight: float
    count: int


@dataclass(frozen=True, slots=True)
class TypedEdge:
    """One of the 18 typed edges; `confidence` in 0..1.

    `weight` is what an expansion takes for the confidence, where the two differ: what was found before must not be
    found for that. None: the confidence itself.
    """

    id: str
    type: str
    source: NodeRef
    target: NodeRef
    confidence: float
    co_reference_count: int = 0
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class LinkEdge:
    """A `LINK` edge: an entity's declared relationship to a node, with its validity window in epoch microseconds."""

    id: str
    entity_id: str
    target: NodeRef
    relationship: str
    confidence: float
    valid_from: int | None = None
    valid_to: int | None = None


@dataclass(frozen=True, slots=True)
class GraphPatch:
    """What one projection step sets, all of it absolute.

    `mentions` is the *complete* set of mentions of every memory in `memories`: edges of those memories that are not
    listed are removed. A backend applies a patch as one; where it can't, it sets mentions before co-occurrences and
    removes mentions after them, so that whatever it got to, the mentions in the graph cover every pair that was set.

    An edge, link, mention or co-occurrence with a memory or entity that is not in the graph is left out, and that is no
    error: put the ends into the same patch. A record is made by the edge or link that names it and goes with the last
    one. An edge or link with a known id and another type or other ends replaces the one that was there. What a patch
    both sets and deletes is deleted. Of rows with equal keys the last counts.
    """

    entities: Sequence[EntityNode] = ()
    co_occurrences: Sequence[CoOccurrence] = ()
    memories: Sequence[MemoryNode] = ()
    mentions: Sequence[Mention] = ()
    edges: Sequence[TypedEdge] = ()
    deleted_edges: Sequence[str] = ()
    links: Sequence[LinkEdge] = ()
    deleted_links: Sequence[str] = ()
    deleted_memories: Sequence[str] = ()
    deleted_entities: Sequence[str] = ()
    deleted_records: Sequence[str] = ()
    """Records that no edge holds; one that an edge does hold stays. Only a repair needs this."""

    nothing_to_prune: Collection[str] = ()
    """Memories that mention nothing in the graph that is not listed, as their writer knows: a backend may save itself
    the search for what to remove."""


Part = Literal["entities", "memories", "mentions", "co_occurrences", "edges", "links", "records"]
"""What a graph is made of, named as in `GraphPatch`."""

PARTS: tuple[Part, ...] = ("entities", "memories", "mentions", "co_occurrences", "edges", "links", "records")
"""All parts, ends before the edges that need them, and records, which edges make, last."""

Key = tuple[str, ...]
"""What tells the rows of one part apart: an id, or the two ids of a mention or a pair. Keys sort as text does."""

GraphRow = EntityNode | MemoryNode | Mention | CoOccurrence | TypedEdge | LinkEdge | NodeRef
"""One row of a part; a record is its reference."""


def key_of(row: GraphRow) -> Key:
    """The key of a row within its part."""
    if isinstance(row, Mention):
        return row.memory_id, row.entity_id
    if isinstance(row, CoOccurrence):
        return row.a, row.b
    return (row.id,)


@dataclass(frozen=True, slots=True)
class GraphStats:
    """Counts of one tenant's graph. Fence and bookkeeping nodes are not counted."""

    nodes: int = 0
    edges: int = 0
    entity_nodes: int = 0
    memory_nodes: int = 0
    edges_by_type: Mapping[str, int] = field(default_factory=dict)
    top_entities: Sequence[tuple[EntityNode, int]] = ()
    """The `STRONGEST` entities with their number of mentions, strongest first, ties by id."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Where an expansion starts, and how relevant that start is (0..1)."""

    node: NodeRef
    weight: float


@dataclass(frozen=True, slots=True)
class Step:
    """One hop of a path. `forward` is false where the edge was walked against its direction."""

    type: str
    edge_id: str | None
    forward: bool
    weight: float
    node: NodeRef
    relationship: str | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A path from a seed; its score is the product of weights, divided by the log degree of what it passes through."""

    seed: NodeRef
    steps: Sequence[Step]
    score: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of one expansion: hops (0..2 by default), paths returned, and a time budget in milliseconds."""

    hops: int = 2
    paths: int = 12
    budget_ms: int = 150


@dataclass(frozen=True, slots=True)
class GraphDump:
    """The whole of one tenant's graph as comparable values: for tests, verify and repair of small graphs.

    Weights, strengths and confidences are stored with 15 significant digits: pass what they are compared with through
    `memory_os.graph.encoder.canonical_float`.
    """

    memories: Mapping[str, MemoryNode]
    entities: Mapping[str, EntityNode]
    records: frozenset[str]
    mentions: Mapping[tuple[str, str], float]
    co_occurrences: Mapping[tuple[str, str], tuple[float, int]]
    edges: Mapping[str, TypedEdge]
    links: Mapping[str, LinkEdge]


class GraphBackend(Protocol):
    """A store of property graphs, one for each tenant.

    Every method may raise `GraphUnavailableError`; writes may raise `GraphDataError` and `FenceLostError`. Reading a
    graph that does not exist is an empty answer and never creates it; writing to one is a lost fence.

    A write that raised `GraphUnavailableError` may have happened, or may happen yet, but never after a later write.
    """

    name: str
    keeps_writes: bool
    """Whether a write that was answered outlives the server whatever happens to it."""

    async def open(self) -> None:
        """Prepare the backend; must not need the server to answer (it may come up later)."""
        ...

    async def close(self) -> None:
        """Release connections, files and locks."""
        ...

    async def ping(self) -> str:
        """Answer an identity of the running server (changes when it restarts or is replaced)."""
        ...

    async def take_fence(self, tenant_id: UUID, token: str) -> str:
        """Make the graph with its indexes where missing, and let only writes with `token` pass from now on.

        Returns:
            The graph's epoch: the first token that it ever had. A graph that was lost and made again, or replaced by a
            rebuilt one, has another.
        """
        ...

    async def epoch(self, tenant_id: UUID) -> str | None:
        """The graph's epoch; None where there is no graph."""
        ...

    async def apply(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        """Set what the patch says; nothing changes when the fence holds another token."""
        ...

    async def mentioned_entities(self, tenant_id: UUID, memory_ids: Sequence[str]) -> Mapping[str, frozenset[str]]:
        """The entities that each memory mentions in the graph at present; absent memories are left out."""
        ...

    async def expand(
        self, tenant_id: UUID, seeds: Sequence[Seed], bounds: Bounds, *, as_of: int | None = None
    ) -> Sequence[Path]:
        """The strongest paths from the seeds, best first, ties by ids; see `memory_os.graph.expansion`.

        Links count only where they hold at `as_of` (epoch microseconds); without it, all do.
        """
        ...

    async def stats(self, tenant_id: UUID) -> GraphStats:
        """Counts and the strongest entities."""
        ...

    async def dump(self, tenant_id: UUID) -> GraphDump:
        """Everything in the graph, read in pages."""
        ...

    async def read_page(
        self, tenant_id: UUID, part: Part, after: Key, last: Key | None, limit: int
    ) -> Sequence[GraphRow]:
        """Rows of one part in the order of their keys: beyond `after`, up to `last` with it, `limit` at most.

        Args:
            tenant_id: Whose graph.
            part: Which part.
            after: The key to begin behind; `()` is the beginning.
            last: The key to end at; None is the end.
            limit: Rows at most; fewer say that there are no more.
        """
        ...

    async def look_up(self, tenant_id: UUID, part: Part, keys: Sequence[Key]) -> Sequence[GraphRow]:
        """The rows of one part with these keys, in any order; what is not there is left out."""
        ...

    async def scan(self, tenant_id: UUID) -> Mapping[str, int]:
        """Touch every node, past all indexes, and count them by kind.

        Raises:
            GraphDamagedError: The server can't read a graph of its own.
        """
        ...

    async def begin_rebuild(self, tenant_id: UUID, token: str) -> None:
        """Make an empty scratch graph (dropping an older one) with indexes; readers keep seeing the live graph."""
        ...

    async def load(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        """Write a patch into the scratch graph, as `apply` does; raises `FenceLostError` if it is another rebuild's."""
        ...

    async def finish_rebuild(self, tenant_id: UUID, token: str) -> None:
        """Swap the scratch graph in atomically; the fence of the new graph holds `token`.

        Raises:
            FenceLostError: The fence of the live graph or that of the scratch graph does not hold `token`.
        """
        ...

    async def abandon_rebuild(self, tenant_id: UUID, token: str) -> None:
        """Drop the scratch graph if it is that of `token`."""
        ...

    async def drop(self, tenant_id: UUID) -> None:
        """Remove the tenant's graphs altogether."""
        ...
