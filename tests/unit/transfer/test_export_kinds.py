"""Every table and column of a tenant is either in an export, or left out on purpose."""

from __future__ import annotations

import re

from memory_os.storage import (
    cycle_tables,
    provenance_tables,
    retrieval_tables,
    tables,
    text_tables,
    token_tables,
    vector_tables,
)
from memory_os.transfer.kinds import KINDS
from memory_os.transfer.selecting import _OF_USER, EVERYTHING, of_user

LEFT_OUT = {
    # The tenant is there before an import, and its tokens are secrets of the place.
    *("tenants", "tokens"),
    # Derived: by workers, by triggers.
    *(
        "memory_embeddings",
        "passage_embeddings",
        "token_vectors",
        "memory_sketches",
        "entity_names",
        "entity_pairs",
        "mentions",
    ),
    *("extractions", "vector_index", "vector_partitions", "postings", "text_frequencies"),
    # Of the graph and its queue.
    *("outbox_events", "projection_leases", "graph_rebuilds", "graph_tombstones", "graph_states"),
    "graph_verifications",
    # Logs of what was done here.
    *("audit_log", "audit_contents", "erasures", "idempotency_keys", "retrievals", "retrieval_items"),
    *("retrieval_edges", "edge_reinforcements", "retrieval_feedback"),
    # What cycles did here: runs are told and undone where they were made. What they put away is exported.
    *("cycle_runs", "cycle_actions"),
    # What they proposed and wrote of the records: the next ones do so anew, in whose readers' words these are then.
    *("insight_candidates", "insight_members", "profiles"),
}


def test_every_table_of_a_tenant_is_exported_or_left_out_on_purpose() -> None:
    assert provenance_tables.metadata is tables.metadata is retrieval_tables.metadata
    others = (cycle_tables, text_tables, token_tables, vector_tables)
    assert all(module.metadata is tables.metadata for module in others)
    every = {name for name, table in tables.metadata.tables.items() if "tenant_id" in table.c}
    exported = {kind.table.name for kind in KINDS.values()}
    assert not exported & LEFT_OUT
    assert every == exported | LEFT_OUT


def test_only_what_is_derived_is_left_out_of_a_row() -> None:
    for kind in KINDS.values():
        assert set(kind.columns) | kind.derived | {"tenant_id"} == set(kind.table.c.keys()), kind.name
        assert kind.derived <= set(kind.table.c.keys()), kind.name
        assert set(kind.searched) <= set(kind.columns)
        assert ("search" in kind.table.c) == (bool(kind.searched) or kind.name == "entity"), kind.name


def test_what_a_row_points_at_comes_before_it() -> None:
    order = list(KINDS)
    ends = {
        "passage": ("source",),
        "entity_link": ("entity", "memory", "source", "outcome"),
        "edge": ("entity", "memory"),
        "archived_edge": ("entity", "memory"),
    }
    ends |= {"evidence": ("memory", "passage"), "correction": ("memory", "source"), "entity_act": ("entity",)}
    for name, others in ends.items():
        assert all(order.index(other) < order.index(name) for other in others), name


def test_the_export_of_a_user_names_the_user_as_a_parameter_alone() -> None:
    chosen = of_user("ann's")
    assert {kind.name for kind in chosen.kinds} == set(_OF_USER)
    for kind in chosen.kinds:
        for statement in (chosen.count(kind), chosen.rows(kind)):
            assert "ann" not in re.sub("tenant", "", statement)
            assert "%(user)s" in statement
            assert "%(tenant_id)s" in statement
    assert not any("%(user)s" in EVERYTHING.rows(kind) for kind in EVERYTHING.kinds)
