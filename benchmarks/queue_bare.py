"""A contender of `job_queue.py`: the least that a claiming loop can be, two statements and two commits a batch.

One UPDATE over a SELECT ... FOR UPDATE SKIP LOCKED takes a batch, one UPDATE marks it done. No tenants, no leases that
run out, no attempts, no policies: what they cost is what this loop is compared for. Written with a plain connection and
prepared statements.
"""

from __future__ import annotations

import argparse
import os

import psycopg
from gate import wait_for_start

LEAN = """
CREATE TABLE IF NOT EXISTS bare_jobs (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    status text NOT NULL DEFAULT 'pending',
    payload uuid NOT NULL DEFAULT gen_random_uuid()
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS bare_pending ON bare_jobs (id) WHERE status = 'pending'
"""
"""The table with nothing in it that a queue could do without."""

STATEMENTS = {
    "lean": (
        """
        UPDATE bare_jobs AS j SET status = 'leased'
        FROM (
            SELECT id FROM bare_jobs WHERE status = 'pending' ORDER BY id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
        ) AS due
        WHERE j.id = due.id RETURNING j.id, j.payload
        """,
        "UPDATE bare_jobs SET status = 'done' WHERE id = ANY (%(ids)s)",
    ),
    # The same two on the product's own table, with its checks and its indexes; a token and a time are what those ask.
    "outbox": (
        """
        UPDATE outbox_events AS j SET status = 'leased', lease_token = gen_random_uuid(), lease_until = now()
        FROM (
            SELECT tenant_id, id FROM outbox_events WHERE status = 'pending'
            ORDER BY tenant_id, available_at, id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
        ) AS due
        WHERE j.tenant_id = due.tenant_id AND j.id = due.id RETURNING j.id, j.tenant_id, j.aggregate_id
        """,
        """
        UPDATE outbox_events AS j
        SET status = 'done', lease_token = NULL, lease_until = NULL, finished_at = now()
        FROM unnest(%(tenants)s::uuid[], %(ids)s::bigint[]) AS given (tenant_id, id)
        WHERE j.tenant_id = given.tenant_id AND j.id = given.id
        """,
    ),
}


def main() -> None:
    """Claim and mark until nothing is left."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--table", choices=list(STATEMENTS), default="lean")
    options.add_argument("--batch", type=int, default=200)
    given = options.parse_args()
    claim, finish = STATEMENTS[given.table]
    with psycopg.connect(os.environ["BENCH_URL"], prepare_threshold=0) as connection:
        wait_for_start()
        while True:
            rows = connection.execute(claim, {"batch": given.batch}).fetchall()
            connection.commit()
            if not rows:
                return
            done = {"ids": [row[0] for row in rows]}
            if given.table == "outbox":
                done["tenants"] = [row[1] for row in rows]
            connection.execute(finish, done)
            connection.commit()


if __name__ == "__main__":
    main()
