"""The tables as SQLAlchemy Core sees them. The migrations make them; a test holds the two together."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    Identity,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR, UUID
from sqlalchemy.types import UserDefinedType

metadata = MetaData()


class Vector(UserDefinedType[str]):
    """pgvector's type; values travel as text (`[0.1,0.2]`)."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """The type's name in SQL."""
        return "vector"


def moment(name: str) -> Column[object]:
    """A column of a time."""
    return Column(name, DateTime(timezone=True))


def tenant_column() -> Column[object]:
    """The first part of every key."""
    return Column("tenant_id", UUID(), primary_key=True)


def id_column() -> Column[object]:
    """The second part of a record's key."""
    return Column("id", UUID(), primary_key=True)


def reader_columns() -> tuple[Column[object], ...]:
    """Whose a row is, and who may read it."""
    return (
        Column("visibility", Text),
        Column("user_id", Text),
        Column("reader_users", ARRAY(Text)),
        Column("reader_groups", ARRAY(Text)),
    )


def time_columns() -> tuple[Column[object], ...]:
    """Which token made a record and when, and when it changed last."""
    return (Column("created_by", UUID()), moment("created_at"), moment("updated_at"), Column("version", BigInteger))


def act_columns(subject: str) -> tuple[Column[object], ...]:
    """What is kept of an act: what it was done to, what it was, who did it, and what undoes it."""
    return (
        Column(subject, UUID()),
        Column("other_id", UUID()),
        Column("kind", Text),
        Column("detail", JSONB),
        Column("before", JSONB),
        Column("token_id", UUID()),
        Column("role", Text),
        Column("user_id", Text),
        Column("request_id", Text),
        moment("at"),
        moment("undone_at"),
    )


tenants = Table(
    "tenants",
    metadata,
    tenant_column(),
    Column("name", Text),
    Column("time_zone", Text),
    Column("status", Text),
    moment("created_at"),
    moment("updated_at"),
)

tokens = Table(
    "tokens",
    metadata,
    tenant_column(),
    id_column(),
    Column("prefix", Text),
    Column("secret_hash", LargeBinary),
    Column("name", Text),
    Column("role", Text),
    Column("scopes", ARRAY(Text)),
    Column("user_id", Text),
    Column("groups", ARRAY(Text)),
    moment("created_at"),
    moment("expires_at"),
    moment("last_used_at"),
    moment("revoked_at"),
)

memories = Table(
    "memories",
    metadata,
    tenant_column(),
    id_column(),
    Column("label", Text),
    Column("layer", Text),
    Column("status", Text),
    Column("text", Text),
    Column("title", Text),
    Column("confidence", Double),
    *reader_columns(),
    Column("subject", Text),
    Column("property", Text),
    Column("origin", Text),
    Column("conversation_id", Text),
    Column("tags", ARRAY(Text)),
    Column("metadata", JSONB),
    moment("occurred_at"),
    moment("valid_from"),
    moment("valid_to"),
    Column("search", TSVECTOR),
    Column("embedding_model", Text),
    *time_columns(),
    Column("exact_key", LargeBinary),
    Column("superseded_by", UUID()),
    moment("used_at"),
    moment("stale_at"),
)

memory_embeddings = Table(
    "memory_embeddings",
    metadata,
    tenant_column(),
    Column("memory_id", UUID(), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("dimension", Integer),
    Column("embedding", Vector()),
    *reader_columns(),
    Column("indexed", Boolean),
)

embedding_models = Table(
    "embedding_models",
    metadata,
    Column("model", Text, primary_key=True),
    Column("dimension", Integer),
    Column("current", Boolean),
    moment("created_at"),
)

entities = Table(
    "entities",
    metadata,
    tenant_column(),
    id_column(),
    Column("declared", Boolean),
    Column("name", Text),
    Column("canonical_name", Text),
    Column("entity_type", Text),
    Column("aliases", ARRAY(Text)),
    Column("summary", Text),
    Column("payload", JSONB),
    Column("confidence", Double),
    Column("status", Text),
    *reader_columns(),
    moment("first_seen"),
    moment("last_seen"),
    Column("mention_records", Integer),
    Column("mention_occurrences", Integer),
    Column("mention_confidence", Double),
    Column("embedding", Vector()),
    Column("embedding_model", Text),
    Column("search", TSVECTOR),
    *time_columns(),
)

entity_names = Table(
    "entity_names",
    metadata,
    tenant_column(),
    Column("canonical_name", Text, primary_key=True),
    Column("entity_id", UUID(), primary_key=True),
    Column("surface", Text),
)


def _record(name: str) -> Table:
    return Table(
        name,
        metadata,
        tenant_column(),
        id_column(),
        Column("title", Text),
        Column("summary", Text),
        Column("payload", JSONB),
        Column("confidence", Double),
        Column("status", Text),
        *reader_columns(),
        Column("search", TSVECTOR),
        *time_columns(),
    )


observations = _record("observations")
procedures = _record("procedures")
outcomes = _record("outcomes")

entity_links = Table(
    "entity_links",
    metadata,
    tenant_column(),
    id_column(),
    Column("entity_id", UUID()),
    Column("layer", Text),
    Column("target_id", UUID()),
    Column("target_entity_id", UUID()),
    Column("target_memory_id", UUID()),
    Column("target_observation_id", UUID()),
    Column("target_procedure_id", UUID()),
    Column("target_outcome_id", UUID()),
    Column("target_source_id", UUID()),
    Column("relationship", Text),
    Column("confidence", Double),
    moment("valid_from"),
    moment("valid_to"),
    *time_columns(),
)

edges = Table(
    "edges",
    metadata,
    tenant_column(),
    id_column(),
    Column("type", Text),
    Column("source_memory_id", UUID()),
    Column("source_entity_id", UUID()),
    Column("target_memory_id", UUID()),
    Column("target_entity_id", UUID()),
    Column("confidence", Double),
    Column("co_reference_count", Integer),
    *time_columns(),
    Column("migrated_from", UUID()),
    Column("claimed_confidence", Double),
    moment("used_at"),
    moment("faded_at"),
)

memory_acts = Table(
    "memory_acts",
    metadata,
    tenant_column(),
    id_column(),
    *act_columns("memory_id"),
)

memory_sketches = Table(
    "memory_sketches",
    metadata,
    tenant_column(),
    Column("scope", Text, primary_key=True),
    Column("memory_id", UUID(), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("sketch", LargeBinary),
    Column("changed", BigInteger),
)

memory_reviews = Table(
    "memory_reviews",
    metadata,
    tenant_column(),
    id_column(),
    Column("memory_id", UUID()),
    Column("other_id", UUID()),
    Column("kind", Text),
    Column("similarity", Double),
    Column("tier", Text),
    Column("rule", Text),
    Column("guard", ARRAY(Text)),
    Column("status", Text),
    moment("created_at"),
    moment("decided_at"),
    Column("decided_by", Text),
    Column("reason", Text),
)

mentions = Table(
    "mentions",
    metadata,
    tenant_column(),
    Column("memory_id", UUID(), primary_key=True),
    Column("canonical_name", Text, primary_key=True),
    Column("entity_id", UUID()),
    Column("name", Text),
    Column("occurrences", Integer),
    Column("confidence", Double),
    Column("spans", ARRAY(Integer)),
    moment("seen"),
    Column("extractor", Text),
    Column("extractor_version", Integer),
)

extractions = Table(
    "extractions",
    metadata,
    tenant_column(),
    Column("memory_id", UUID(), primary_key=True),
    Column("extractor", Text),
    Column("extractor_version", Integer),
    moment("at"),
)

entity_pairs = Table(
    "entity_pairs",
    metadata,
    tenant_column(),
    Column("entity_a", UUID(), primary_key=True),
    Column("entity_b", UUID(), primary_key=True),
    Column("records", Integer),
)

outbox_events = Table(
    "outbox_events",
    metadata,
    tenant_column(),
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("event_type", Text),
    Column("aggregate_type", Text),
    Column("aggregate_id", UUID()),
    Column("version", BigInteger),
    Column("payload", JSONB),
    Column("status", Text),
    Column("attempts", Integer),
    moment("available_at"),
    Column("lease_token", UUID()),
    moment("lease_until"),
    Column("last_error", Text),
    Column("errors", JSONB),
    Column("superseded_by", BigInteger),
    Column("discard_reason", Text),
    Column("discarded_by", Text),
    Column("request_id", Text),
    moment("created_at"),
    moment("finished_at"),
)

workers = Table(
    "workers",
    metadata,
    id_column(),
    Column("host", Text),
    Column("pid", Integer),
    Column("version", Text),
    Column("state", Text),
    Column("breaker", Text),
    Column("breaker_reason", Text),
    moment("started_at"),
    moment("last_seen"),
    Column("done", BigInteger),
    Column("failed", BigInteger),
    Column("stale_acks", BigInteger),
)

projection_leases = Table(
    "projection_leases",
    metadata,
    tenant_column(),
    Column("token", UUID()),
    Column("worker_id", UUID()),
    moment("lease_until"),
)

graph_rebuilds = Table(
    "graph_rebuilds",
    metadata,
    tenant_column(),
    id_column(),
    Column("status", Text),
    Column("phase", Text),
    Column("user_id", Text),
    Column("max_memories", Integer),
    Column("allow_partial", Boolean),
    Column("truncated", Boolean),
    Column("total", BigInteger),
    Column("processed", BigInteger),
    Column("attempts", Integer),
    Column("requested_by", Text),
    Column("request_id", Text),
    Column("error", Text),
    moment("created_at"),
    moment("started_at"),
    moment("heartbeat_at"),
    moment("finished_at"),
)

graph_tombstones = Table(
    "graph_tombstones",
    metadata,
    tenant_column(),
    Column("aggregate_type", Text, primary_key=True),
    Column("aggregate_id", UUID(), primary_key=True),
    Column("version", BigInteger),
    moment("deleted_at"),
)

graph_states = Table(
    "graph_states",
    metadata,
    tenant_column(),
    Column("epoch", Text),
    Column("next_epoch", Text),
    Column("doubt", Text),
    moment("doubted_at"),
    moment("verified_at"),
    moment("created_at"),
)

graph_servers = Table(
    "graph_servers",
    metadata,
    Column("backend", Text, primary_key=True),
    Column("identity", Text),
    moment("watched_at"),
)

graph_verifications = Table(
    "graph_verifications",
    metadata,
    tenant_column(),
    id_column(),
    Column("repair", Boolean),
    Column("status", Text),
    Column("phase", Text),
    Column("checked", BigInteger),
    Column("total", BigInteger),
    Column("parts", JSONB),
    Column("missing", BigInteger),
    Column("extra", BigInteger),
    Column("differing", BigInteger),
    Column("waiting", BigInteger),
    Column("dead", BigInteger),
    Column("repaired", BigInteger),
    Column("sample", JSONB),
    Column("damage", Text),
    Column("attempts", Integer),
    Column("error", Text),
    Column("requested_by", Text),
    Column("request_id", Text),
    moment("created_at"),
    moment("started_at"),
    moment("heartbeat_at"),
    moment("finished_at"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    tenant_column(),
    Column("principal", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_hash", LargeBinary),
    Column("status", Integer),
    Column("body", LargeBinary),
    moment("created_at"),
    Column("record_ids", ARRAY(UUID())),
    moment("erased_at"),
)

audit_log = Table(
    "audit_log",
    metadata,
    tenant_column(),
    id_column(),
    moment("at"),
    Column("token_id", UUID()),
    Column("role", Text),
    Column("user_id", Text),
    Column("action", Text),
    Column("target_type", Text),
    Column("target_id", Text),
    Column("detail", JSONB),
    Column("request_id", Text),
)

RECORD_TABLES = {"observation": observations, "procedure": procedures, "outcome": outcomes}
"""The three business-memory tables of one shape, by the layer that links name."""
