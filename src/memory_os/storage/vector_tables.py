"""The tables of the index of vectors as SQLAlchemy Core sees them: its partitions, and what is in them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, Table, Text
from sqlalchemy.dialects.postgresql import UUID
from sqlalchemy.types import UserDefinedType

from memory_os.storage.tables import metadata, moment, tenant_column


class HalfVector(UserDefinedType[str]):
    """pgvector's type of half precision."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """The type's name in SQL."""
        return "halfvec"


vector_partitions = Table(
    "vector_partitions",
    metadata,
    tenant_column(),
    Column("model", Text),
    Column("dimension", Integer),
    Column("rows", BigInteger),
    Column("marked", Boolean),
    moment("built_at"),
)

vector_index = Table(
    "vector_index",
    metadata,
    tenant_column(),
    Column("kind", Text, primary_key=True),
    Column("record_id", UUID(), primary_key=True),
    Column("source_id", UUID()),
    Column("embedding", HalfVector()),
)
