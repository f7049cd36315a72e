"""Token vectors as SQLAlchemy Core sees them."""

from __future__ import annotations

from sqlalchemy import Column, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import UUID

from memory_os.storage.tables import metadata, moment, reader_columns, tenant_column

token_vectors = Table(
    "token_vectors",
    metadata,
    tenant_column(),
    Column("record_id", UUID(), primary_key=True),
    Column("memory_id", UUID()),
    Column("passage_id", UUID()),
    Column("model", Text, primary_key=True),
    Column("digest", LargeBinary),
    Column("vectors", LargeBinary),
    moment("used_at"),
    *reader_columns(),
)
