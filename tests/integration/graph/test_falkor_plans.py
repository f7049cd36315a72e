"""How FalkorDB runs our queries: through an index wherever it looks for an id, never by looking at every node."""

from __future__ import annotations

import re

import pytest
import redis
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.graphs import EDGE_TYPES, entity, eref, memory, mref, rref
from tests.fixtures.waiting import wait_for

from memory_os.graph.encoder import render_query
from memory_os.graph.expansion import LINK, Reach
from memory_os.graph.falkor_edges import Place, Present, find_places, find_records, write_declared
from memory_os.graph.falkor_pages import ask_keys, ask_range
from memory_os.graph.falkor_queries import create_index, split_batches, write_derived
from memory_os.graph.falkor_reads import MENTIONED, ask_page
from memory_os.graph.falkor_walks import ask_declared, ask_derived
from memory_os.graph.port import PARTS, CoOccurrence, GraphPatch, LinkEdge, Mention, NodeKind, NodeRef, TypedEdge

LOOK = "RETURN ID(n) LIMIT 1"
"""The end of the look at one node of a label that comes before deletions: no index serves it, and one row is cheap."""

TYPES = sorted(EDGE_TYPES)
INDEXED = ["Memory", "Entity", "Record", "LINK", *TYPES]


def every_write() -> list[str]:
    ends = [mref("m"), eref("e"), rref("r")]
    patch = GraphPatch(
        entities=[entity("e")],
        co_occurrences=[CoOccurrence("e", "f", 0.5, 1), CoOccurrence("e", "g", 0.0, 0)],
        memories=[memory("m")],
        mentions=[Mention("m", "e", 0.5)],
        edges=[TypedEdge(f"{a}{b}", "ABOUT", a, b, 0.5) for a in ends for b in ends],
        links=[LinkEdge(f"{end}", "e", end, "uses", 0.5) for end in ends],
        deleted_memories=["m"],
        deleted_entities=["e"],
    )
    places = {
        (False, "gone"): [Place("SUPPORTS", mref("m"), NodeRef("record", "r"))],
        (True, "gone"): [Place("LINK", eref("e"), mref("m"))],
    }
    statements = split_batches((*write_derived(patch), *write_declared(patch, Present(places, ["r"]))))
    return [statement.render("token", 0) for statement in statements if not statement.text.endswith(LOOK)]


def every_read() -> list[str]:
    patch = GraphPatch(deleted_edges=["s"], deleted_links=["l"], deleted_memories=["m"], deleted_entities=["e"])
    asked = [find_places(patch, INDEXED), find_records(patch, INDEXED), render_query(MENTIONED, {"ids": ["m"]})]
    nodes: dict[NodeKind, list[str]] = {"memory": ["x"], "entity": ["x"], "record": ["x"]}
    reaches = [Reach(first=True, last=False), Reach(first=False, last=True)]
    around = [ask_derived(nodes, reach, lambda *_: set()).text for reach in reaches]
    around += [text for apart in (False, True) for text in ask_declared(nodes, [LINK, *TYPES], 7, apart=apart)]
    key, pair = ("m",), ("m", "n")
    pages = [
        query
        for part in PARTS
        for after, last in (((), None), (pair, pair) if part in ("mentions", "co_occurrences") else (key, key))
        for query in (*ask_range(part, after, last, 10, TYPES), *ask_keys(part, [last or pair], TYPES))
    ]
    return [*filter(None, asked), *around, *pages]


@pytest.fixture
def graph(falkor_server: FalkorProcess, falkor_prefix: str) -> str:
    key = f"{falkor_prefix}:plans"
    with falkor_server.connect() as client:
        for name in INDEXED:
            client.execute_command("GRAPH.QUERY", key, create_index(name))
        client.execute_command(
            "GRAPH.QUERY", key, "CREATE (:Fence {id: 'fence'}), (:Memory {id: 'm'}), (:Entity {id: 'e'})"
        )
        wait_for(lambda: not unfinished(client, key), seconds=30, what="the indexes")  # they are made in the background
    return key


def unfinished(client: redis.Redis, key: str) -> list[object]:
    asked = "CALL db.indexes() YIELD label, status WHERE status <> 'OPERATIONAL' RETURN label"
    return list(client.execute_command("GRAPH.RO_QUERY", key, asked)[1])


def explain(server: FalkorProcess, key: str, query: str) -> str:
    with server.connect() as client:
        return "\n".join(client.execute_command("GRAPH.EXPLAIN", key, query))


def shorten(query: str) -> str:
    return re.sub(r"^CYPHER.*?(MATCH|UNWIND)", r"\1", query)[-90:]


@pytest.mark.parametrize("query", [*every_write(), *every_read()], ids=shorten)
def test_ids_are_looked_up_in_an_index(falkor_server: FalkorProcess, graph: str, query: str) -> None:
    plan = explain(falkor_server, graph, query)
    scans = re.findall(r"(All Node Scan|Node By Label Scan)[^\n]*", plan)
    assert len(scans) == plan.count("Node By Label Scan | (f:Fence)"), plan
    assert "Index Scan" in plan


def test_a_page_of_a_dump_is_a_range_of_internal_ids(falkor_server: FalkorProcess, graph: str) -> None:
    for query in ask_page(0, EDGE_TYPES):
        plan = explain(falkor_server, graph, query)
        assert re.search(r"(NodeByIdSeek|Node By Label and ID Scan)", plan), plan
        assert "All Node Scan" not in plan
