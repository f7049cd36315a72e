"""The tables of retrieval: its log, what it traversed and reinforced, and what was said of its answers."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, DateTime, Double, Integer, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from memory_os.storage.tables import metadata

retrievals = Table(
    "retrievals",
    metadata,
    Column("tenant_id", UUID(), primary_key=True),
    Column("id", UUID(), primary_key=True),
    Column("token_id", UUID()),
    Column("user_id", Text),
    Column("conversation_id", Text),
    Column("query", Text),
    Column("as_of", DateTime(timezone=True)),
    Column("arms", JSONB),
    Column("bounds", JSONB),
    Column("timings_ms", JSONB),
    Column("graph_state", Text),
    Column("no_match", Boolean),
    Column("items", Integer),
    Column("omitted", Integer),
    Column("pack_tokens", Integer),
    Column("request_id", Text),
    Column("created_at", DateTime(timezone=True)),
)

retrieval_items = Table(
    "retrieval_items",
    metadata,
    Column("tenant_id", UUID(), primary_key=True),
    Column("retrieval_id", UUID(), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("record_type", Text),
    Column("record_id", UUID()),
    Column("in_pack", Boolean),
    Column("reason", Text),
    Column("score", Double),
    Column("arms", JSONB),
    Column("path", JSONB),
)

retrieval_edges = Table(
    "retrieval_edges",
    metadata,
    Column("tenant_id", UUID(), primary_key=True),
    Column("retrieval_id", UUID(), primary_key=True),
    Column("edge_id", UUID(), primary_key=True),
    Column("record_id", UUID(), primary_key=True),
    Column("record_type", Text),
    Column("confirmed", Boolean),
    Column("state", Text),
    Column("reason", Text),
)

edge_reinforcements = Table(
    "edge_reinforcements",
    metadata,
    Column("tenant_id", UUID(), primary_key=True),
    Column("edge_id", UUID(), primary_key=True),
    Column("period", Text, primary_key=True),
    Column("retrieval_id", UUID()),
    Column("at", DateTime(timezone=True)),
)

retrieval_feedback = Table(
    "retrieval_feedback",
    metadata,
    Column("tenant_id", UUID(), primary_key=True),
    Column("retrieval_id", UUID(), primary_key=True),
    Column("record_id", UUID(), primary_key=True),
    Column("verdict", Text),
    Column("token_id", UUID()),
    Column("user_id", Text),
    Column("at", DateTime(timezone=True)),
)
