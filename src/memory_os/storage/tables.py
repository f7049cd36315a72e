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


def _moment(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True))


def _tenant() -> Column[object]:
    return Column("tenant_id", UUID(), primary_key=True)


def _id() -> Column[object]:
    return Column("id", UUID(), primary_key=True)


def _readers() -> tuple[Column[object], ...]:
    return (
        Column("visibility", Text),
        Column("user_id", Text),
        Column("reader_users", ARRAY(Text)),
        Column("reader_groups", ARRAY(Text)),
    )


def _times() -> tuple[Column[object], ...]:
    return (Column("created_by", UUID()), _moment("created_at"), _moment("updated_at"), Column("version", BigInteger))


tenants = Table(
    "tenants",
    metadata,
    _tenant(),
    Column("name", Text),
    Column("time_zone", Text),
    Column("status", Text),
    _moment("created_at"),
    _moment("updated_at"),
)

tokens = Table(
    "tokens",
    metadata,
    _tenant(),
    _id(),
    Column("prefix", Text),
    Column("secret_hash", LargeBinary),
    Column("name", Text),
    Column("role", Text),
    Column("scopes", ARRAY(Text)),
    Column("user_id", Text),
    Column("groups", ARRAY(Text)),
    _moment("created_at"),
    _moment("expires_at"),
    _moment("last_used_at"),
    _moment("revoked_at"),
)

memories = Table(
    "memories",
    metadata,
    _tenant(),
    _id(),
    Column("label", Text),
    Column("layer", Text),
    Column("status", Text),
    Column("text", Text),
    Column("title", Text),
    Column("confidence", Double),
    *_readers(),
    Column("subject", Text),
    Column("property", Text),
    Column("origin", Text),
    Column("conversation_id", Text),
    Column("tags", ARRAY(Text)),
    Column("metadata", JSONB),
    _moment("occurred_at"),
    _moment("valid_from"),
    _moment("valid_to"),
    Column("search", TSVECTOR),
    Column("embedding_model", Text),
    *_times(),
    Column("exact_key", LargeBinary),
    Column("superseded_by", UUID()),
)

memory_embeddings = Table(
    "memory_embeddings",
    metadata,
    _tenant(),
    Column("memory_id", UUID(), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("dimension", Integer),
    Column("embedding", Vector()),
)

embedding_models = Table(
    "embedding_models",
    metadata,
    Column("model", Text, primary_key=True),
    Column("dimension", Integer),
    Column("current", Boolean),
    _moment("created_at"),
)

entities = Table(
    "entities",
    metadata,
    _tenant(),
    _id(),
    Column("declared", Boolean),
    Column("name", Text),
    Column("canonical_name", Text),
    Column("entity_type", Text),
    Column("aliases", ARRAY(Text)),
    Column("summary", Text),
    Column("payload", JSONB),
    Column("confidence", Double),
    Column("status", Text),
    *_readers(),
    _moment("first_seen"),
    _moment("last_seen"),
    Column("mention_records", Integer),
    Column("mention_occurrences", Integer),
    Column("mention_confidence", Double),
    Column("embedding", Vector()),
    Column("embedding_model", Text),
    Column("search", TSVECTOR),
    *_times(),
)

entity_names = Table(
    "entity_names",
    metadata,
    _tenant(),
    Column("canonical_name", Text, primary_key=True),
    Column("entity_id", UUID(), primary_key=True),
    Column("surface", Text),
)


def _record(name: str) -> Table:
    return Table(
        name,
        metadata,
        _tenant(),
        _id(),
        Column("title", Text),
        Column("summary", Text),
        Column("payload", JSONB),
        Column("confidence", Double),
        Column("status", Text),
        *_readers(),
        Column("search", TSVECTOR),
        *_times(),
    )


observations = _record("observations")
procedures = _record("procedures")
outcomes = _record("outcomes")

entity_links = Table(
    "entity_links",
    metadata,
    _tenant(),
    _id(),
    Column("entity_id", UUID()),
    Column("layer", Text),
    Column("target_id", UUID()),
    Column("target_entity_id", UUID()),
    Column("target_memory_id", UUID()),
    Column("target_observation_id", UUID()),
    Column("target_procedure_id", UUID()),
    Column("target_outcome_id", UUID()),
    Column("relationship", Text),
    Column("confidence", Double),
    _moment("valid_from"),
    _moment("valid_to"),
    *_times(),
)

edges = Table(
    "edges",
    metadata,
    _tenant(),
    _id(),
    Column("type", Text),
    Column("source_memory_id", UUID()),
    Column("source_entity_id", UUID()),
    Column("target_memory_id", UUID()),
    Column("target_entity_id", UUID()),
    Column("confidence", Double),
    Column("co_reference_count", Integer),
    *_times(),
    Column("migrated_from", UUID()),
    Column("claimed_confidence", Double),
)

memory_acts = Table(
    "memory_acts",
    metadata,
    _tenant(),
    _id(),
    Column("memory_id", UUID()),
    Column("other_id", UUID()),
    Column("kind", Text),
    Column("detail", JSONB),
    Column("before", JSONB),
    Column("token_id", UUID()),
    Column("role", Text),
    Column("user_id", Text),
    Column("request_id", Text),
    _moment("at"),
    _moment("undone_at"),
)

memory_sketches = Table(
    "memory_sketches",
    metadata,
    _tenant(),
    Column("scope", Text, primary_key=True),
    Column("memory_id", UUID(), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("sketch", LargeBinary),
    Column("changed", BigInteger),
)

memory_reviews = Table(
    "memory_reviews",
    metadata,
    _tenant(),
    _id(),
    Column("memory_id", UUID()),
    Column("other_id", UUID()),
    Column("kind", Text),
    Column("similarity", Double),
    Column("tier", Text),
    Column("rule", Text),
    Column("guard", ARRAY(Text)),
    Column("status", Text),
    _moment("created_at"),
    _moment("decided_at"),
    Column("decided_by", Text),
    Column("reason", Text),
)

mentions = Table(
    "mentions",
    metadata,
    _tenant(),
    Column("memory_id", UUID(), primary_key=True),
    Column("canonical_name", Text, primary_key=True),
    Column("entity_id", UUID()),
    Column("name", Text),
    Column("occurrences", Integer),
    Column("confidence", Double),
    Column("spans", ARRAY(Integer)),
    _moment("seen"),
    Column("extractor", Text),
    Column("extractor_version", Integer),
)

extractions = Table(
    "extractions",
    metadata,
    _tenant(),
    Column("memory_id", UUID(), primary_key=True),
    Column("extractor", Text),
    Column("extractor_version", Integer),
    _moment("at"),
)

entity_pairs = Table(
    "entity_pairs",
    metadata,
    _tenant(),
    Column("entity_a", UUID(), primary_key=True),
    Column("entity_b", UUID(), primary_key=True),
    Column("records", Integer),
)

outbox_events = Table(
    "outbox_events",
    metadata,
    _tenant(),
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("event_type", Text),
    Column("aggregate_type", Text),
    Column("aggregate_id", UUID()),
    Column("version", BigInteger),
    Column("payload", JSONB),
    Column("status", Text),
    Column("attempts", Integer),
    _moment("available_at"),
    Column("lease_token", UUID()),
    _moment("lease_until"),
    Column("last_error", Text),
    Column("errors", JSONB),
    Column("superseded_by", BigInteger),
    Column("discard_reason", Text),
    Column("discarded_by", Text),
    Column("request_id", Text),
    _moment("created_at"),
    _moment("finished_at"),
)

workers = Table(
    "workers",
    metadata,
    _id(),
    Column("host", Text),
    Column("pid", Integer),
    Column("version", Text),
    Column("state", Text),
    Column("breaker", Text),
    Column("breaker_reason", Text),
    _moment("started_at"),
    _moment("last_seen"),
    Column("done", BigInteger),
    Column("failed", BigInteger),
    Column("stale_acks", BigInteger),
)

projection_leases = Table(
    "projection_leases",
    metadata,
    _tenant(),
    Column("token", UUID()),
    Column("worker_id", UUID()),
    _moment("lease_until"),
)

graph_rebuilds = Table(
    "graph_rebuilds",
    metadata,
    _tenant(),
    _id(),
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
    _moment("created_at"),
    _moment("started_at"),
    _moment("heartbeat_at"),
    _moment("finished_at"),
)

graph_tombstones = Table(
    "graph_tombstones",
    metadata,
    _tenant(),
    Column("aggregate_type", Text, primary_key=True),
    Column("aggregate_id", UUID(), primary_key=True),
    Column("version", BigInteger),
    _moment("deleted_at"),
)

graph_states = Table(
    "graph_states",
    metadata,
    _tenant(),
    Column("epoch", Text),
    Column("next_epoch", Text),
    Column("doubt", Text),
    _moment("doubted_at"),
    _moment("verified_at"),
    _moment("created_at"),
)

graph_servers = Table(
    "graph_servers",
    metadata,
    Column("backend", Text, primary_key=True),
    Column("identity", Text),
    _moment("watched_at"),
)

graph_verifications = Table(
    "graph_verifications",
    metadata,
    _tenant(),
    _id(),
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
    _moment("created_at"),
    _moment("started_at"),
    _moment("heartbeat_at"),
    _moment("finished_at"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    _tenant(),
    Column("principal", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_hash", LargeBinary),
    Column("status", Integer),
    Column("body", LargeBinary),
    _moment("created_at"),
)

audit_log = Table(
    "audit_log",
    metadata,
    _tenant(),
    _id(),
    _moment("at"),
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
