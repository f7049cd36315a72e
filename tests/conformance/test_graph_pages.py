"""Reading a graph part by part in the order of its keys: both backends give the same rows, each of them once."""

from __future__ import annotations

import random
from uuid import UUID, uuid5

import pytest
from tests.fixtures.graphs import EDGE_TYPES, edge, entity, eref, memory, mref, rref

from memory_os.graph.port import (
    PARTS,
    CoOccurrence,
    GraphBackend,
    GraphPatch,
    GraphRow,
    Key,
    LinkEdge,
    Mention,
    NodeRef,
    Part,
    TypedEdge,
    key_of,
)

TENANT = UUID(int=7)
TOKEN = "token"


def ident(name: str) -> str:
    return str(uuid5(TENANT, name))


def world(seed: int) -> GraphPatch:
    """A graph with a hub, whose pairs fill several pages, and memories that mention nothing."""
    source = random.Random(seed)
    entities = [ident(f"e{number}") for number in range(40)]
    memories = [ident(f"m{number}") for number in range(60)]
    hub = entities[0]
    pairs = {(min(hub, other), max(hub, other)) for other in entities[1:]}
    pairs |= {tuple(sorted(source.sample(entities, 2))) for _ in range(20)}  # type: ignore[misc]  # two of them
    types = sorted(EDGE_TYPES)
    return GraphPatch(
        entities=[entity(key) for key in entities],
        memories=[memory(key) for key in memories],
        mentions=[Mention(key, other, 0.5) for key in memories[:30] for other in source.sample(entities, 3)],
        co_occurrences=[CoOccurrence(a, b, 0.5, 1) for a, b in sorted(pairs)],
        edges=[
            TypedEdge(ident(f"x{number}"), source.choice(types), mref(source.choice(memories)), eref(hub), 0.5)
            for number in range(25)
        ],
        links=[
            LinkEdge(ident(f"l{number}"), source.choice(entities), rref(ident(f"r{number % 9}")), "uses", 0.5)
            for number in range(25)
        ],
    )


def rows_of(patch: GraphPatch) -> dict[Part, list[GraphRow]]:
    records = sorted({link.target for link in patch.links}, key=key_of)
    return {part: list(getattr(patch, part)) if part != "records" else list(records) for part in PARTS}


async def read_all(backend: GraphBackend, part: Part, limit: int, last: Key | None = None) -> list[GraphRow]:
    found: list[GraphRow] = []
    after: Key = ()
    while True:
        page = await backend.read_page(TENANT, part, after, last, limit)
        found += page
        if len(page) < limit:
            return found
        after = key_of(page[-1])


@pytest.mark.parametrize("limit", [1, 7, 1000])
async def test_pages_give_every_row_once_in_order(backend: GraphBackend, limit: int) -> None:
    patch = world(1)
    await backend.take_fence(TENANT, TOKEN)
    await backend.apply(TENANT, TOKEN, patch)
    for part, rows in rows_of(patch).items():
        assert await read_all(backend, part, limit) == sorted(rows, key=key_of), part


async def test_a_page_ends_at_its_last_key(backend: GraphBackend) -> None:
    patch = world(2)
    await backend.take_fence(TENANT, TOKEN)
    await backend.apply(TENANT, TOKEN, patch)
    for part, rows in rows_of(patch).items():
        keys = sorted(map(key_of, rows))
        for low, high in ((0, len(keys) // 2), (len(keys) // 3, len(keys) - 1), (3, 4)):
            page = await backend.read_page(TENANT, part, keys[low], keys[high], 1000)
            assert [key_of(row) for row in page] == keys[low + 1 : high + 1], part


async def test_rows_are_looked_up_by_key(backend: GraphBackend) -> None:
    patch = world(3)
    await backend.take_fence(TENANT, TOKEN)
    await backend.apply(TENANT, TOKEN, patch)
    for part, rows in rows_of(patch).items():
        wanted = rows[::3]
        absent: Key = (ident("nobody"),) * len(key_of(rows[0]))
        found = await backend.look_up(TENANT, part, [*map(key_of, wanted), absent])
        assert sorted(found, key=key_of) == sorted(wanted, key=key_of), part


async def test_a_missing_graph_has_no_rows_and_no_epoch(backend: GraphBackend) -> None:
    for part in PARTS:
        assert await backend.read_page(TENANT, part, (), None, 10) == []
        assert await backend.look_up(TENANT, part, [(ident("a"), ident("b"))]) == []
    assert await backend.scan(TENANT) == {}
    assert await backend.epoch(TENANT) is None


async def test_a_scan_counts_nodes_by_kind(backend: GraphBackend) -> None:
    patch = world(4)
    await backend.take_fence(TENANT, TOKEN)
    await backend.apply(TENANT, TOKEN, patch)
    counts = await backend.scan(TENANT)
    assert {kind: counts[kind] for kind in ("memory", "entity", "record")} == {"memory": 60, "entity": 40, "record": 9}


async def test_only_lonely_records_are_deleted(backend: GraphBackend) -> None:
    await backend.take_fence(TENANT, TOKEN)
    await backend.apply(
        TENANT, TOKEN, GraphPatch(entities=[entity("e")], links=[LinkEdge("l", "e", rref("held"), "uses", 0.5)])
    )
    await backend.apply(TENANT, TOKEN, GraphPatch(deleted_records=["held", "never there"]))
    assert await read_all(backend, "records", 10) == [NodeRef("record", "held")]


async def test_an_epoch_stays_while_the_graph_does(backend: GraphBackend) -> None:
    assert await backend.take_fence(TENANT, "first") == "first"
    assert await backend.take_fence(TENANT, "second") == "first"
    assert await backend.epoch(TENANT) == "first"
    await backend.begin_rebuild(TENANT, "second")
    assert await backend.epoch(TENANT) == "first"
    await backend.load(TENANT, "second", GraphPatch(memories=[memory("m")]))
    await backend.finish_rebuild(TENANT, "second")
    assert await backend.epoch(TENANT) == "second"
    await backend.drop(TENANT)
    assert await backend.epoch(TENANT) is None
    assert await backend.take_fence(TENANT, "third") == "third"


async def test_edges_of_a_type_that_nobody_used_are_no_error(backend: GraphBackend) -> None:
    await backend.take_fence(TENANT, TOKEN)
    await backend.apply(TENANT, TOKEN, GraphPatch(memories=[memory("a"), memory("b")], edges=[edge("x", "a", "b")]))
    assert [key_of(row) for row in await read_all(backend, "edges", 10)] == [("x",)]
