"""A user with very many memories, put straight into the database: through the API it would take minutes."""

from __future__ import annotations

from uuid import UUID

import psycopg

_MEMORIES = """
INSERT INTO memories (tenant_id, id, label, layer, text, user_id, search, embedding_model, visibility)
SELECT %(tenant)s, gen_random_uuid(), 'Attribute', 'identity', 'Number ' || n || ' of many.', %(user)s,
       to_tsvector('simple', 'number ' || n), 'm', 'tenant'
FROM generate_series(1, %(count)s) AS n
"""
_MADE_OF_THEM = (
    """
    INSERT INTO memory_embeddings (tenant_id, memory_id, model, dimension, embedding, visibility, user_id, reader_users,
                                   reader_groups)
    SELECT tenant_id, id, 'm', 256,
           (SELECT array_agg(random()) FROM generate_series(1, 256) WHERE id IS NOT NULL)::vector,
           visibility, user_id, reader_users, reader_groups
    FROM memories WHERE tenant_id = %(tenant)s AND user_id = %(user)s
    """,
    """
    INSERT INTO entities (tenant_id, id, declared, name, entity_type)
    SELECT %(tenant)s, gen_random_uuid(), false, 'Name ' || n || ' of ' || %(user)s, 'unknown'
    FROM generate_series(1, %(count)s / 10) AS n
    """,
    """
    INSERT INTO mentions (tenant_id, memory_id, canonical_name, entity_id, name, occurrences, confidence, spans, seen,
                          extractor, extractor_version)
    SELECT m.tenant_id, m.id, 'name ' || part || ' ' || e.name, e.id, e.name, 1, 0.5, '{0,1}', now(), 'x', 1
    FROM (SELECT tenant_id, id, row_number() OVER () AS n FROM memories
          WHERE tenant_id = %(tenant)s AND user_id = %(user)s) AS m
    CROSS JOIN generate_series(0, 1) AS part
    JOIN (SELECT id, name, row_number() OVER () AS n, count(*) OVER () AS all_of_them FROM entities
          WHERE tenant_id = %(tenant)s) AS e ON e.n = 1 + (m.n * 7 + part * 13) %% e.all_of_them
    """,
    """
    INSERT INTO extractions (tenant_id, memory_id, extractor, extractor_version)
    SELECT tenant_id, id, 'x', 1 FROM memories WHERE tenant_id = %(tenant)s AND user_id = %(user)s
    """,
    """
    INSERT INTO edges (tenant_id, id, type, source_memory_id, target_memory_id)
    SELECT tenant_id, gen_random_uuid(), 'SUPPORTS', id, next FROM (
        SELECT tenant_id, id, lead(id) OVER () AS next FROM memories
        WHERE tenant_id = %(tenant)s AND user_id = %(user)s) AS m WHERE next IS NOT NULL
    """,
    """
    INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, finished_at)
    SELECT tenant_id, 'GRAPH_UPSERT', 'memory', id, 1, 'done', now() FROM memories
    WHERE tenant_id = %(tenant)s AND user_id = %(user)s
    """,
    """
    INSERT INTO memory_acts (tenant_id, id, memory_id, kind, role)
    SELECT tenant_id, gen_random_uuid(), id, 'change', 'writer' FROM memories
    WHERE tenant_id = %(tenant)s AND user_id = %(user)s
    """,
)


def crowd(owner_url: str, tenant_id: UUID, user: str, count: int) -> None:
    """Give a user memories with vectors, two mentions, an edge, an act and a finished event each."""
    given = {"tenant": tenant_id, "user": user, "count": count}
    with psycopg.connect(owner_url) as connection:
        # Triggers that keep counts run as the tables' owner, who sees the tenant that was entered.
        connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(tenant_id),))
        for statement in (_MEMORIES, *_MADE_OF_THEM):
            connection.execute(statement, given)
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("ANALYZE")
