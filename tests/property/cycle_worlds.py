"""Random worlds for cycles: memories, entities, edges and links around every bound, put past the service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st
from tests.property.stages import Stage

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.ids import derived_entity_id, new_id
from memory_os.domain.labels import LABELS
from memory_os.domain.names import canonical_name

DAY: Final = timedelta(days=1)
TICK: Final = timedelta(microseconds=1)
MOMENTS: Final = (
    datetime(2026, 3, 2, 2, 0, tzinfo=UTC),
    datetime(2024, 2, 29, 2, 0, tzinfo=UTC),
    datetime(2026, 3, 31, 23, 59, 59, 999999, tzinfo=UTC),
)
NAMES: Final = ("Kettle", "Stove", "Harbour")
TEXTS: Final = (
    "The Kettle is slow.",
    "They went from Kettle to Stove.",
    "In the Harbour they met Ann Miller, and Ann Miller knew Bob Stone.",
    "nothing of that kind.",
)
LOST: Final = ("Lost Pier", "Lost Quay", "Lost Lock")
"""Derived entities that no text names: edges may hold the first."""


@dataclass(frozen=True)
class MemorySpec:
    """A memory; times are offsets from the moment of the runs."""

    label: str
    status: str
    text: str
    owner: str | None
    created: timedelta
    used: timedelta | None
    stale: bool
    valid_to: timedelta | None
    read_before: bool


@dataclass(frozen=True)
class EdgeSpec:
    """An edge from a memory to a node, or the other way round; nodes by number, entities behind memories."""

    type: str
    memory: int
    other: int
    flipped: bool
    confidence: float
    claimed: float | None
    count: int
    used: timedelta
    faded: timedelta | None


@dataclass(frozen=True)
class Spec:
    """A world."""

    moment: datetime
    memories: Sequence[MemorySpec]
    entities: Sequence[tuple[str, str | None]]
    edges: Sequence[EdgeSpec]
    links: Sequence[tuple[int, int, timedelta | None]]
    lost: int
    deaths: frozenset[int]
    drains: frozenset[int]


_near = st.sampled_from((timedelta(), TICK, -TICK, -30 * DAY, 30 * DAY))
_labels = st.sampled_from(sorted(LABELS)) | st.sampled_from(("Opportunity", "Reference", "Resource", "Attribute"))


@st.composite
def _memories(draw: st.DrawFn) -> MemorySpec:
    label = draw(_labels)
    return MemorySpec(
        label,
        draw(st.just("active") | st.sampled_from(LABELS[label].statuses)),
        draw(st.sampled_from(TEXTS)),
        draw(st.sampled_from((None, None, "ann"))),
        draw(st.sampled_from((-400 * DAY, -400 * DAY, -90 * DAY, -90 * DAY + TICK, timedelta(hours=1)))),
        draw(st.none() | st.sampled_from((-89 * DAY, -90 * DAY, TICK - 90 * DAY, -200 * DAY, DAY))),
        draw(st.booleans()),
        draw(st.none() | _near),
        draw(st.booleans()),
    )


_confidences = st.sampled_from((0.0, 0.29, 0.3, 0.31, 0.5, 1.0)) | st.floats(0, 1)
_edges = st.builds(
    EdgeSpec,
    st.sampled_from(sorted(EDGE_TYPES)) | st.sampled_from(("ABOUT", "SUPPORTS", "TAGGED_WITH")),
    st.integers(0, 5),
    st.integers(0, 9),
    st.booleans(),
    _confidences,
    st.none() | st.floats(0, 1),
    st.integers(0, 4),
    st.sampled_from([-days * DAY + tick for days in (6, 7, 12, 29, 30, 31, 400) for tick in (timedelta(), TICK)]),
    st.none() | st.sampled_from((-400 * DAY, -10 * DAY, -DAY, timedelta(), DAY)),
)
specs = st.builds(
    Spec,
    st.sampled_from(MOMENTS),
    st.lists(_memories(), min_size=2, max_size=6),
    st.lists(
        st.tuples(st.sampled_from(("active", "retired", "retired", "archived")), st.sampled_from((None, None, "ann"))),
        min_size=3,
        max_size=3,
    ),
    st.lists(_edges, max_size=10),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.none() | _near), max_size=3),
    st.integers(0, 3),
    st.frozensets(st.integers(0, 12), max_size=4),
    st.frozensets(st.integers(0, 12), max_size=3),
)


class Filler:
    """Puts a world into a new tenant of a stage.

    Args:
        stage: The stores.
        spec: What to put there.
    """

    def __init__(self, stage: Stage, spec: Spec) -> None:
        self.stage = stage
        self.spec = spec
        self.tenant = new_id()
        self.memories: list[UUID] = [new_id() for _ in spec.memories]
        self.entities: list[UUID] = [new_id() for _ in spec.entities]
        self.lost = [derived_entity_id(self.tenant, canonical_name(name)) for name in LOST[: spec.lost]]
        self.put("tenants", name=str(self.tenant))
        for ident, memory in zip(self.memories, spec.memories, strict=True):
            self._put_memory(ident, memory)
        for ident, name, (status, owner) in zip(self.entities, NAMES, spec.entities, strict=True):
            self.put(
                "entities",
                id=ident,
                declared=True,
                name=name,
                entity_type="thing",
                status=status,
                **_readers(owner),
            )
        for ident, name in zip(self.lost, LOST, strict=False):
            given = {"name": name, "entity_type": "unknown", "created_at": spec.moment - DAY}
            self.put("entities", id=ident, declared=False, **given)
        tied = {self._put_edge(edge) for edge in spec.edges}
        linked = {self._put_link(*link) for link in spec.links}
        for kind, ids in (
            ("entity", self.entities),
            ("memory", self.memories),
            ("edge", tied - {None}),
            ("entity_link", linked - {None}),
        ):
            for ident in ids:
                self.put("outbox_events", event_type="GRAPH_UPSERT", aggregate_type=kind, aggregate_id=ident, version=1)

    def put(self, table: str, **values: Any) -> bool:
        """Insert a row unless an equal one is there."""
        given = {"tenant_id": self.tenant, **values}
        rows = self.stage.rows(
            f"INSERT INTO {table} ({', '.join(given)}) VALUES ({', '.join(f'%({name})s' for name in given)}) "
            "ON CONFLICT DO NOTHING RETURNING 1",
            **given,
        )
        return bool(rows)

    def _put_memory(self, ident: UUID, spec: MemorySpec) -> None:
        moment = self.spec.moment
        created = moment + spec.created
        valid_to = None if spec.valid_to is None else moment + spec.valid_to
        self.put(
            "memories",
            id=ident,
            label=spec.label,
            layer=LABELS[spec.label].layer,
            status=spec.status,
            text=spec.text,
            search="",
            created_at=created,
            updated_at=created,
            valid_to=valid_to,
            used_at=None if spec.used is None else moment + spec.used,
            stale_at=moment - 9 * DAY if spec.stale else None,
            **_readers(spec.owner),
        )

    def _put_edge(self, spec: EdgeSpec) -> UUID | None:
        nodes = [*self.memories, *self.entities, *self.lost[:1]]
        places = spec.memory % len(self.memories), spec.other % len(nodes)
        if places[0] == places[1]:
            return None
        sides = ("target", "source") if spec.flipped else ("source", "target")
        ends = {
            f"{side}_{'memory' if place < len(self.memories) else 'entity'}_id": nodes[place]
            for side, place in zip(sides, places, strict=True)
        }
        claimed = None if spec.claimed is None else spec.claimed * spec.confidence
        figures = {"confidence": spec.confidence, "claimed_confidence": claimed, "co_reference_count": spec.count}
        moment, ident = self.spec.moment, new_id()
        times = {"used_at": moment + spec.used, "faded_at": None if spec.faded is None else moment + spec.faded}
        there = self.put("edges", id=ident, type=spec.type, **ends, **figures, **times, created_at=moment - 500 * DAY)
        return ident if there else None

    def _put_link(self, entity: int, memory: int, valid_to: timedelta | None) -> UUID | None:
        target, ident = self.memories[memory % len(self.memories)], new_id()
        window = {"valid_from": self.spec.moment - 90 * DAY}
        if valid_to is not None:
            window["valid_to"] = self.spec.moment + valid_to
        given = {"layer": "memory", "target_id": target, "relationship": f"knows {ident}"}
        there = self.put("entity_links", id=ident, entity_id=self.entities[entity], **given, **window)
        return ident if there else None


def _readers(owner: str | None) -> dict[str, Any]:
    return {} if owner is None else {"visibility": "private", "user_id": owner}
