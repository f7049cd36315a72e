"""The tables of cycles: schedules, runs and actions; the archive of edges; candidates for Insights, and profiles."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from memory_os.storage.tables import id_column, metadata, moment, reader_columns, tenant_column

archived_edges = Table(
    "archived_edges",
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
    Column("claimed_confidence", Double),
    Column("migrated_from", UUID()),
    Column("created_by", UUID()),
    moment("created_at"),
    moment("updated_at"),
    Column("version", BigInteger),
    moment("used_at"),
    moment("faded_at"),
    moment("archived_at"),
)

cycle_schedules = Table(
    "cycle_schedules",
    metadata,
    tenant_column(),
    id_column(),
    Column("cycle", Text),
    Column("cron", Text),
    Column("enabled", Boolean),
    moment("updated_at"),
)

cycle_runs = Table(
    "cycle_runs",
    metadata,
    tenant_column(),
    id_column(),
    Column("cycle", Text),
    Column("period", Text),
    moment("moment"),
    Column("dry_run", Boolean),
    Column("status", Text),
    Column("rule", Text),
    Column("cursor", JSONB),
    Column("counts", JSONB),
    Column("error", Text),
    Column("attempts", Integer),
    moment("retry_at"),
    Column("token_id", UUID()),
    Column("role", Text),
    moment("created_at"),
    moment("started_at"),
    moment("finished_at"),
    moment("undone_at"),
)

cycle_actions = Table(
    "cycle_actions",
    metadata,
    tenant_column(),
    id_column(),
    Column("run_id", UUID()),
    Column("number", Integer),
    Column("rule", Text),
    Column("target_kind", Text),
    Column("target_id", UUID()),
    Column("other_id", UUID()),
    Column("before", JSONB),
    Column("after", JSONB),
    Column("act_id", UUID()),
    moment("undone_at"),
)

insight_candidates = Table(
    "insight_candidates",
    metadata,
    tenant_column(),
    id_column(),
    Column("run_id", UUID()),
    Column("rule", Text),
    Column("title", Text),
    Column("text", Text),
    Column("summary", Text),
    Column("strength", Double),
    Column("status", Text),
    Column("memory_id", UUID()),
    moment("created_at"),
    moment("decided_at"),
    Column("decided_by", Text),
    Column("reason", Text),
    *reader_columns(),
)

insight_members = Table(
    "insight_members",
    metadata,
    tenant_column(),
    Column("candidate_id", UUID(), primary_key=True),
    Column("member_id", UUID(), primary_key=True),
    Column("memory_id", UUID()),
    Column("entity_id", UUID()),
)

profiles = Table(
    "profiles",
    metadata,
    tenant_column(),
    id_column(),
    Column("run_id", UUID()),
    *reader_columns(),
    Column("version", Integer),
    moment("moment"),
    Column("content", JSONB),
    Column("diff", JSONB),
    moment("created_at"),
)
