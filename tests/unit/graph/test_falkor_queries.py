"""The texts that go to the server: closed vocabulary, and no piece of data outside the header."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.fixtures.graphs import EDGE_TYPES, edge, entity, memory, mref, patches

from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_edges import Place, Present, find_places, find_records, write_declared
from memory_os.graph.falkor_queries import (
    BATCH,
    create_index,
    needed_indexes,
    number_columns,
    split_batches,
    write_derived,
)
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.patches import normalise
from memory_os.graph.port import GraphPatch, Mention

INDEXED = {"Memory", "Entity", "Record", "LINK", *EDGE_TYPES}


@settings(max_examples=100)
@given(patches)
def test_texts_do_not_depend_on_data(patch: GraphPatch) -> None:
    checked = normalise(patch, EDGE_TYPES)
    place = Place("SUPPORTS", mref("m1"), mref("m2"))
    present = Present({(False, row.id): [place] for row in checked.edges}, ["r1"])
    texts = {text for text, _ in (*write_derived(checked), *write_declared(checked, present))}
    for text in texts:
        for piece in ("m1", 'm"3', "m}4", "é", "e1", "e`3", "$e4", "日", "r1", "r\\2", "s1", "s'3", "uses"):
            assert piece not in text
    for query in (find_places(checked, INDEXED), find_records(checked, INDEXED)):
        if query:
            body = query[query.index("UNWIND") :]
            assert not any(piece in body for piece in ("m1", "e`3", "s'3", "uses"))


def test_columns_are_numbered() -> None:
    assert number_columns("SET e.count = r.count, e.r = r.id", "id", "count") == "SET e.count = r[1], e.r = r[0]"
    with pytest.raises(ValueError, match="not in"):
        number_columns("r.absent", "id")


def test_statements_are_cut_and_empty_ones_left_out() -> None:
    patch = GraphPatch(memories=[memory("m")], mentions=[Mention("m", f"e{n}", 0.5) for n in range(2 * BATCH + 1)])
    sizes = [len(statement.rows) for statement in split_batches(write_derived(patch))]
    assert sizes == [1, BATCH, BATCH, 1, 1]


def test_indexes_are_asked_for_where_they_are_needed() -> None:
    assert needed_indexes(GraphPatch(entities=[entity("e")])) == {"Memory", "Entity"}
    assert needed_indexes(GraphPatch(edges=[edge("s", "a", "b")])) == {"Memory", "Entity", "SUPPORTS"}
    assert create_index("Memory") == "CREATE INDEX FOR (n:Memory) ON (n.id)"
    assert create_index("SUPPORTS") == "CREATE INDEX FOR ()-[e:SUPPORTS]->() ON (e.id)"


@pytest.mark.parametrize("prefix", ["", "a b", "a:b", "{x}", "é", "x" * 65, "a*"])
def test_a_prefix_can_not_break_out_of_a_key(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        FalkorBackend(FalkorAddress(), prefix=prefix, edge_types=EDGE_TYPES)


@pytest.mark.parametrize("name", ["", "lower", "A-B", "A`B", "A B", "A|B", "A]->() DETACH DELETE n //"])
def test_an_edge_type_is_an_identifier(name: str) -> None:
    with pytest.raises(ValueError, match="identifiers"):
        FalkorBackend(FalkorAddress(), prefix="p", edge_types=frozenset({name}))
