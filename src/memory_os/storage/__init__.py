"""Postgres: tables, unit of work, migrations, pages, and the hand-tuned statements in `sql/`."""
