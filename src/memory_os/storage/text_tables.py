"""The tables of text search as SQLAlchemy Core sees them: postings, and how many records common words stand in."""

from __future__ import annotations

from sqlalchemy import REAL, BigInteger, Column, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import UUID

from memory_os.storage.tables import metadata, moment, tenant_column

postings = Table(
    "postings",
    metadata,
    tenant_column(),
    Column("term", BigInteger, primary_key=True),
    Column("impact", REAL, primary_key=True),
    Column("kind", SmallInteger, primary_key=True),
    Column("record_id", UUID(), primary_key=True),
    Column("reader", Text),
)

text_frequencies = Table(
    "text_frequencies",
    metadata,
    tenant_column(),
    Column("term", BigInteger, primary_key=True),
    Column("reader", Text),
    Column("records", BigInteger),
    moment("at"),
)
