"""What the code needs of its database, as constants: a start that loaded Alembic to learn them would take longer."""

from __future__ import annotations

SCHEMA_REVISION = "0013"
"""The newest revision; a test holds it against the migrations."""

LEAST_SERVER_VERSION = 180000
"""Postgres 18: the generated names need its `casefold()`."""
