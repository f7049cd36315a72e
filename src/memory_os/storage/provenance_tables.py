"""The tables of provenance and trust as SQLAlchemy Core sees them: sources, evidence, corrections, erasures."""

from __future__ import annotations

from sqlalchemy import ARRAY, BigInteger, Boolean, Column, Double, Integer, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR, UUID

from memory_os.storage.tables import (
    Vector,
    act_columns,
    id_column,
    metadata,
    moment,
    reader_columns,
    tenant_column,
    time_columns,
)


def _actor() -> tuple[Column[object], ...]:
    return Column("token_id", UUID()), Column("role", Text), Column("acting_user", Text), Column("request_id", Text)


sources = Table(
    "sources",
    metadata,
    tenant_column(),
    id_column(),
    Column("kind", Text),
    Column("title", Text),
    Column("uri", Text),
    Column("author", Text),
    moment("source_date"),
    Column("metadata", JSONB),
    *reader_columns(),
    *time_columns(),
)

passages = Table(
    "passages",
    metadata,
    tenant_column(),
    id_column(),
    Column("source_id", UUID()),
    Column("ordinal", Integer),
    Column("text", Text),
    Column("locator", JSONB),
    *reader_columns(),
    Column("search", TSVECTOR),
    Column("embedding_model", Text),
    moment("created_at"),
)

passage_embeddings = Table(
    "passage_embeddings",
    metadata,
    tenant_column(),
    Column("passage_id", UUID(), primary_key=True),
    Column("source_id", UUID()),
    Column("model", Text, primary_key=True),
    Column("dimension", Integer),
    Column("embedding", Vector()),
    *reader_columns(),
    Column("indexed", Boolean),
)

evidence = Table(
    "evidence",
    metadata,
    tenant_column(),
    id_column(),
    Column("memory_id", UUID()),
    Column("source_id", UUID()),
    Column("passage_id", UUID()),
    Column("support", Text),
    Column("confidence", Double),
    Column("quote_start", Integer),
    Column("quote_end", Integer),
    *_actor(),
    moment("at"),
    moment("withdrawn_at"),
    Column("withdrawn_because", Text),
    Column("living_source_id", UUID()),
    *reader_columns(),
)

corrections = Table(
    "corrections",
    metadata,
    tenant_column(),
    id_column(),
    Column("memory_id", UUID()),
    Column("kind", Text),
    Column("proposal", JSONB),
    Column("reason", Text),
    Column("source_id", UUID()),
    Column("retrieval_id", UUID()),
    Column("memory_version", BigInteger),
    Column("status", Text),
    Column("proposed_by", UUID()),
    Column("proposed_role", Text),
    Column("proposed_user", Text),
    Column("request_id", Text),
    moment("created_at"),
    moment("decided_at"),
    Column("decided_by", UUID()),
    Column("decided_role", Text),
    Column("decided_user", Text),
    Column("decision_reason", Text),
    Column("act_id", UUID()),
    Column("result_id", UUID()),
)

entity_acts = Table(
    "entity_acts",
    metadata,
    tenant_column(),
    id_column(),
    *act_columns("entity_id"),
)

erasures = Table(
    "erasures",
    metadata,
    tenant_column(),
    id_column(),
    Column("subject_type", Text),
    Column("subject", Text),
    Column("record_ids", ARRAY(UUID())),
    Column("places", JSONB),
    Column("position", BigInteger),
    *_actor(),
    moment("at"),
)

audit_contents = Table(
    "audit_contents",
    metadata,
    tenant_column(),
    Column("audit_id", UUID(), primary_key=True),
    Column("target_type", Text),
    Column("target_id", Text),
    Column("content", JSONB),
    *reader_columns(),
)
