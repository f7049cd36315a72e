"""Plans of the hot statements, as the application's role with row-level security on.

Each is run once for real: what a plan says it will do is not what is asked here, but which rows it touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls, clone_database

from memory_os.domain.ids import new_id
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.memories.writing import vector_literal
from memory_os.storage.database import _ENTER, Scope, hot_statement

OWN, OTHERS, TENANTS, DIMENSION = 300, 200, 12, 16
MODEL = "some-model"
WINDOW = {"as_of": None, "history": False}
Filled = tuple[psycopg.Connection[Any], UUID, list[UUID]]
TABLES = (
    *("memories", "memory_embeddings", "entities", "entity_names", "mentions", "outbox_events", "edges"),
    *("sources", "passages", "passage_embeddings", "evidence", "postings", "text_frequencies"),
)
SOURCES = 10


def fill(connection: psycopg.Connection[Any], tenant_id: UUID, count: int) -> list[UUID]:
    """Rows of one tenant: memories, for each a vector, a mention of a derived entity, a declared one, a done event.

    Each memory but the last has an edge to the next, and evidence: a passage, with its vector, of one of ten sources.
    """
    ids = [new_id() for _ in range(count)]
    connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'a tenant')", (tenant_id,))
    vectors = np.random.default_rng(len(ids)).normal(size=(count, DIMENSION)).astype(np.float32)
    rows = [(tenant_id, ident, f"The gearbox {number} needs oil.") for number, ident in enumerate(ids)]
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO memories (tenant_id, id, label, layer, text, search) VALUES (%s, %s, 'Attribute', 'identity', "
            "%s, to_tsvector('english', %s))",
            [(*row, row[2]) for row in rows],
        )
        cursor.executemany(
            "INSERT INTO memory_embeddings (tenant_id, memory_id, model, dimension, embedding, visibility) "
            "VALUES (%s, %s, %s, %s, %s::vector, 'tenant')",
            [
                (tenant_id, ident, MODEL, DIMENSION, vector_literal(vector))
                for ident, vector in zip(ids, vectors, strict=True)
            ],
        )
        cursor.executemany(
            "INSERT INTO entities (tenant_id, id, declared, name, entity_type) VALUES (%s, %s, true, %s, 'system')",
            [(tenant_id, new_id(), f"Gearbox {number}") for number in range(count)],
        )
        derived = [(tenant_id, new_id(), f"Bearing {number}") for number in range(count)]
        cursor.executemany(
            "INSERT INTO entities (tenant_id, id, declared, name, entity_type) VALUES (%s, %s, false, %s, 'unknown')",
            derived,
        )
        cursor.executemany(
            "INSERT INTO mentions (tenant_id, memory_id, canonical_name, entity_id, name, occurrences, confidence, "
            "spans, seen, extractor, extractor_version) "
            "VALUES (%s, %s, %s, %s, %s, 1, 0.7, '{0,1}', now(), 'heuristic', 1)",
            [(*row[:1], ident, row[2].lower(), *row[1:]) for ident, row in zip(ids, derived, strict=True)],
        )
        cursor.executemany(
            "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, "
            "finished_at) VALUES (%s, 'GRAPH_UPSERT', 'memory', %s, 1, 'done', now())",
            [(tenant_id, ident) for ident in ids],
        )
        cursor.executemany(
            "INSERT INTO edges (tenant_id, id, type, source_memory_id, target_memory_id) "
            "VALUES (%s, %s, 'CAUSED_BY', %s, %s)",
            [(tenant_id, *pair) for pair in zip(ids, ids, ids[1:], strict=False)],
        )
        cite(cursor, tenant_id, ids, [vector_literal(vector) for vector in vectors])
    return ids


def cite(cursor: psycopg.Cursor[Any], tenant_id: UUID, ids: list[UUID], vectors: list[str]) -> None:
    """For each memory a passage with the same id and vector, and evidence that it states the memory."""
    sources = [new_id() for _ in range(SOURCES)]
    cursor.executemany(
        "INSERT INTO sources (tenant_id, id, kind, title, visibility) VALUES (%s, %s, 'conversation', 'A', 'tenant')",
        [(tenant_id, source) for source in sources],
    )
    places = [(tenant_id, ident, sources[number % SOURCES], number // SOURCES) for number, ident in enumerate(ids)]
    cursor.executemany(
        "INSERT INTO passages (tenant_id, id, source_id, ordinal, text, search) "
        "VALUES (%s, %s, %s, %s, 'The gearbox wants oil.', to_tsvector('english', 'The gearbox wants oil.'))",
        places,
    )
    cursor.executemany(
        "INSERT INTO passage_embeddings (tenant_id, passage_id, source_id, model, dimension, embedding) "
        "VALUES (%s, %s, %s, %s, %s, %s::vector)",
        [(*place[:3], MODEL, DIMENSION, vector) for place, vector in zip(places, vectors, strict=True)],
    )
    cursor.executemany(
        "INSERT INTO evidence (tenant_id, id, memory_id, source_id, passage_id, support, role) "
        "VALUES (%s, %s, %s, %s, %s, 'states', 'writer')",
        [(place[0], new_id(), place[1], place[2], place[1]) for place in places],
    )


@pytest.fixture(scope="module")
def crowd(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[tuple[DatabaseUrls, UUID, list[UUID]]]:
    """Twelve tenants with statistics, one of them and its memories; nothing here changes them."""
    for urls in clone_database(postgres_server, template_database):
        tenant_id = new_id()
        with psycopg.connect(urls.owner_url, autocommit=True) as owner:
            ids = fill(owner, tenant_id, OWN)
            for _ in range(TENANTS - 1):
                fill(owner, new_id(), OTHERS)
            owner.execute("VACUUM ANALYZE")
        yield urls, tenant_id, ids


@pytest.fixture(scope="module")
def unanalysed(
    postgres_server: EmbeddedPostgres, template_database: str
) -> Iterator[tuple[DatabaseUrls, UUID, list[UUID]]]:
    """Three tenants of which the planner knows nothing yet."""
    for urls in clone_database(postgres_server, template_database):
        tenant_id = new_id()
        with psycopg.connect(urls.owner_url, autocommit=True) as owner:
            for table in TABLES:
                owner.execute(
                    f"ALTER TABLE {table} SET (autovacuum_enabled = off)" if "emb" not in table else "SELECT 1"
                )
            ids = fill(owner, tenant_id, OWN)
            for _ in range(2):
                fill(owner, new_id(), OTHERS)
        yield urls, tenant_id, ids


@pytest.fixture
def young(unanalysed: tuple[DatabaseUrls, UUID, list[UUID]]) -> Iterator[Filled]:
    """As `filled`, before the first ANALYZE."""
    urls, tenant_id, ids = unanalysed
    with psycopg.connect(urls.app_url) as connection:
        connection.execute(_ENTER, Scope("memory_os_app", tenant_id, "reader", "ada").parameters())
        yield connection, tenant_id, ids


@pytest.fixture
def filled(crowd: tuple[DatabaseUrls, UUID, list[UUID]]) -> Iterator[Filled]:
    """A connection inside the tenant as the application, the tenant, and its memories."""
    urls, tenant_id, ids = crowd
    with psycopg.connect(urls.app_url) as connection:
        connection.execute(_ENTER, Scope("memory_os_app", tenant_id, "reader", "ada").parameters())
        yield connection, tenant_id, ids


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def explain(connection: psycopg.Connection[Any], name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of the statement's plan, run for real, that read a table."""
    (role, bypass, forced) = connection.execute(
        "SELECT current_user::text, (SELECT rolbypassrls OR rolsuper FROM pg_roles WHERE rolname = current_user), "
        "(SELECT bool_and(relforcerowsecurity) FROM pg_class WHERE relname = ANY (%s))",
        (list(TABLES),),
    ).fetchone()  # type: ignore[misc] # a SELECT without FROM has a row
    assert (role, bypass, forced) == ("memory_os_app", False, True)
    statement = b"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + hot_statement(name)
    (plan,) = connection.execute(statement, parameters).fetchone()  # type: ignore[misc] # as above
    return [node for node in nodes(plan[0]["Plan"]) if "Relation Name" in node and node["Actual Loops"]]


def touched(node: dict[str, Any]) -> float:
    """Rows that a scan looked at, over all of its loops."""
    return float((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])


def test_the_vector_scan_stays_in_the_tenants_partition(filled: Filled) -> None:
    connection, tenant_id, _ = filled
    vector = vector_literal(np.ones(DIMENSION, dtype=np.float32))
    scans = explain(
        connection,
        "search_vectors",
        {
            "tenant_id": tenant_id,
            "vector": vector,
            "model": MODEL,
            "floor": -1.0,
            "limit": 50,
            **WINDOW,
            "reach": 100,
            "user_id": "ada",
        },
    )
    vectors = [node for node in scans if node["Relation Name"].startswith("memory_embeddings")]
    assert len({node["Relation Name"] for node in vectors}) == 1
    (partition,) = connection.execute(
        "SELECT tableoid::regclass::text FROM memory_embeddings WHERE tenant_id = %s LIMIT 1", (tenant_id,)
    ).fetchone()  # type: ignore[misc] # the tenant has vectors
    assert vectors[0]["Relation Name"] == partition
    assert sum(touched(node) for node in scans if node["Relation Name"] == "memories") <= OWN
    # The source of each of the nearest passages is looked up by its key.
    for table, most in (("passage_embeddings", OWN), ("sources", 50)):
        looked_at = [node for node in scans if node["Relation Name"] == table]
        assert looked_at
        assert all("Index" in node["Node Type"] or "Bitmap" in node["Node Type"] for node in looked_at), looked_at
        assert sum(touched(node) for node in looked_at) <= most


TEXT = {"readers": ["", "uada"], "pasts": ["false"], "limit": 50, "candidates": 200, **WINDOW}
READ = {"lexemes": ["gearbox", "7", "oil"], "rarities": [0.5, 5.0, 0.5], "most": [40, 40, 40], "cut": ["t", "f", "t"]}

ASKED = {
    "lexemes": READ["lexemes"],
    "vector": vector_literal(np.ones(DIMENSION, dtype=np.float32)),
    "model": MODEL,
}


def table_of(node: dict[str, Any]) -> str:
    """The table that a scan reads; of a partition the whole."""
    return re.sub(r"_(\d+|p\d+|default)$", "", str(node["Relation Name"]))


def by_key(nodes_: list[dict[str, Any]]) -> bool:
    """Whether every scan is a look-up."""
    return all("Index" in node["Node Type"] or "Bitmap" in node["Node Type"] for node in nodes_)


@pytest.mark.parametrize("state", ["analysed", "young"])
def test_the_text_arm_reads_as_much_as_it_was_told_to(filled: Filled, young: Filled, state: str) -> None:
    connection, tenant_id, _ = {"analysed": filled, "young": young}[state]
    scans = explain(connection, "search_text", {"tenant_id": tenant_id, **TEXT, **READ})
    assert "mentions" not in {node["Relation Name"] for node in scans}  # asking of each derived entity is costly
    read = [node for node in scans if node["Relation Name"] == "postings"]
    assert {node["Node Type"] for node in read} == {"Index Only Scan"}
    assert 80 <= sum(touched(node) for node in read) <= 90  # two words of three are common, and all are read in part
    found = sum(touched(node) for node in scans if node["Relation Name"] not in ("postings", "sources"))
    assert by_key(scans), scans
    assert 80 <= found <= 90


@pytest.mark.parametrize("state", ["analysed", "young"])
def test_counting_words_stops_at_its_bound(filled: Filled, young: Filled, state: str) -> None:
    connection, tenant_id, _ = {"analysed": filled, "young": young}[state]
    many = " ".join(["gearbox oil", *(f"word{number}" for number in range(254))])
    for text, most in (("gearbox oil", OWN * 3 + OWN * 2 + 100), (many, 2 * 64 + 100)):
        given = {"tenant_id": tenant_id, "text": text, "max_lexemes": 256, "most_records": 100, **TEXT}
        scans = [node for node in explain(connection, "weigh_words", given) if node["Relation Name"] == "postings"]
        assert {node["Node Type"] for node in scans} == {"Index Only Scan"}
        assert 200 <= sum(touched(node) for node in scans) <= most + 1


@pytest.mark.parametrize("state", ["analysed", "young"])
def test_a_phrase_is_looked_for_in_the_newest_records(filled: Filled, young: Filled, state: str) -> None:
    connection, tenant_id, _ = {"analysed": filled, "young": young}[state]
    scans = explain(connection, "search_phrase", {"tenant_id": tenant_id, "text": "the who", "most": 70, **TEXT})
    read = [node for node in scans if node["Relation Name"] == "postings"]
    assert {node["Node Type"] for node in read} == {"Index Only Scan"}
    assert sum(touched(node) for node in read) == 70
    assert by_key(scans), scans
    assert sum(touched(node) for node in scans) <= 140
    nothing = explain(connection, "search_phrase", {"tenant_id": tenant_id, "text": "the", "most": 70, **TEXT})
    assert sum(touched(node) for node in nothing) == 0


@pytest.mark.parametrize("state", ["analysed", "young"])
def test_neighbours_are_looked_up_by_their_places(filled: Filled, young: Filled, state: str) -> None:
    connection, tenant_id, ids = {"analysed": filled, "young": young}[state]
    scans = explain(connection, "surroundings", {"tenant_id": tenant_id, "passages": ids[:50], "reach": 4, **ASKED})
    assert by_key([node for node in scans if node["Relation Name"] != "sources"]), scans
    read = dict.fromkeys(("passages", "sources", "passage_embeddings"), 0.0)
    for node in scans:
        read[table_of(node)] += touched(node)
    places = SOURCES * (50 // SOURCES + 4)  # the first five of each conversation, and four behind these
    assert read["passages"] <= 50 + places
    assert read["passage_embeddings"] == places


@pytest.mark.parametrize("state", ["analysed", "young"])
def test_candidates_are_looked_up_one_by_one(filled: Filled, young: Filled, state: str) -> None:
    connection, tenant_id, ids = {"analysed": filled, "young": young}[state]
    scans = explain(connection, "weigh_candidates", {"tenant_id": tenant_id, "memories": ids[:50], **ASKED})
    assert {table_of(node) for node in scans} == {"memories", "memory_embeddings"}
    assert by_key(scans), scans
    assert sum(touched(node) for node in scans) == 100


@pytest.mark.parametrize("state", ["analysed", "young"])
def test_the_text_arm_is_planned_once_for_all_questions(filled: Filled, young: Filled, state: str) -> None:
    """What a plan for no particular values reads, by the counters of the transaction."""
    connection, tenant_id, ids = {"analysed": filled, "young": young}[state]
    connection.execute("SELECT set_config('plan_cache_mode', 'force_generic_plan', true)")
    for name, given in (
        ("weigh_words", {"text": "gearbox oil", "max_lexemes": 256, "most_records": 100, **TEXT}),
        ("search_text", {**TEXT, **READ}),
        ("search_phrase", {"text": "the who", "most": 70, **TEXT}),
        ("surroundings", {"passages": ids[:50], "reach": 4, **ASKED}),
        ("weigh_candidates", {"memories": ids[:50], **ASKED}),
    ):
        connection.execute(hot_statement(name), {"tenant_id": tenant_id, **given}, prepare=True)
    rows = connection.execute(
        "SELECT relname, seq_tup_read, coalesce(idx_tup_read, 0) FROM pg_stat_xact_user_tables AS t LEFT JOIN LATERAL "
        "(SELECT sum(pg_stat_get_xact_tuples_returned(i.indexrelid)) AS idx_tup_read FROM pg_index AS i "
        "WHERE i.indrelid = t.relid) AS read ON true WHERE seq_scan + idx_scan > 0"
    ).fetchall()
    read = {table: (sequentially, by_index) for table, sequentially, by_index in rows}
    assert all(sequentially == 0 for sequentially, _ in read.values()), read
    assert 0 < read["postings"][1] <= 82 + 70 + 100 + OWN * 5, read


def test_names_are_looked_up_by_equality(filled: Filled) -> None:
    connection, tenant_id, _ = filled
    scans = explain(
        connection,
        "find_named_entities",
        {"tenant_id": tenant_id, "names": ["gearbox 7", "bearing 8", "oil", "gearbox"], "history": False},
    )
    assert {node["Relation Name"] for node in scans} == {"entity_names", "entities", "mentions", "memories"}
    assert all("Index" in node["Node Type"] for node in scans), scans
    # Two entities, and for the derived one a mention with its memory. All mentions would be 300.
    assert sum(touched(node) for node in scans) <= 10


def test_the_position_does_not_read_what_is_done(filled: Filled) -> None:
    connection, tenant_id, _ = filled
    every = explain(connection, "graph_position", {"tenant_id": tenant_id, "limit": 10_000})
    scans = [node for node in every if node["Relation Name"] != "graph_states"]  # one row a tenant
    assert all("Index" in node["Node Type"] or "Bitmap" in node["Node Type"] for node in scans), scans
    assert sum(touched(node) for node in scans) <= 1


def test_records_and_steps_are_looked_up_by_key(filled: Filled) -> None:
    connection, tenant_id, ids = filled
    some = ids[:60]
    nothing: dict[str, list[UUID]] = {"entities": [], "links": [], "pairs_a": [], "pairs_b": []}
    wanted = {**nothing, "memories": some, "records": some, "edges": ids[:20], "tenant_id": tenant_id, **WINDOW}
    # Of each edge both ends are looked up; the edges among the memories are read for contradictions, too.
    for name, most in (("hydrate_records", {"memories": 60, "passages": 60}), ("check_steps", {"edges": 80})):
        scans = explain(connection, name, wanted)
        for table, limit in most.items():
            looked_at = [node for node in scans if node["Relation Name"] == table]
            assert looked_at
            assert all("Index" in node["Node Type"] for node in looked_at), looked_at
            assert sum(touched(node) for node in looked_at) <= limit, looked_at


def test_evidence_is_looked_up_by_its_memories_and_passages(filled: Filled) -> None:
    connection, tenant_id, ids = filled
    some = ids[:60]
    scans = explain(
        connection, "cite_records", {"tenant_id": tenant_id, "memories": some, "passages": some, "believed_at": None}
    )
    # Each piece of evidence is read as a memory's and as a passage's, and shows only with its memory and its source.
    for table, most in (("evidence", 120), ("passages", 120), ("memories", 120)):
        looked_at = [node for node in scans if node["Relation Name"] == table]
        assert looked_at
        assert all("Index" in node["Node Type"] for node in looked_at), looked_at
        assert sum(touched(node) for node in looked_at) <= most, looked_at
