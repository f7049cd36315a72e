"""Alembic's entry point: runs the revisions on the connection that `memory_os.storage.migrate` hands over."""

from __future__ import annotations

import os

from alembic import context
from sqlalchemy import create_engine, text

from memory_os.storage.database import driver_url


def run(connection: object) -> None:
    """Run the revisions in one transaction each, never waiting long for a lock that writers hold."""
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    url = os.environ.get("OWNER_DATABASE_URL") or os.environ["DATABASE_URL"]
    with create_engine(driver_url(url)).connect() as opened:
        opened.execute(text("SET lock_timeout = '5s'"))
        run(opened)
