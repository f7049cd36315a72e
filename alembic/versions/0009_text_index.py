"""Postings: which words stand in which record, in the order of their impact, for a text search of bounded cost."""

from __future__ import annotations

import sys
import time

from alembic import op
from rls import GROUPS, IS_STEWARD, SAME_TENANT, USER, enable_tenancy
from sqlalchemy import text

from memory_os.domain.search_text import search_text

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_MINE = (
    f"(SELECT ARRAY[''] || CASE WHEN {USER} <> '' THEN ARRAY['u' || {USER}] ELSE '{{}}' END || "  # noqa: S608 - our own names
    f"ARRAY(SELECT 'g' || one FROM unnest({GROUPS}) AS one))"
)
"""What a reader may read, as `postings.reader` has it: what all of the tenant may, their own, and their groups'.

Equality of texts is leakproof, as the operators of arrays are not, and of one posting one reader is asked for: so the
rows that a search reads are found by their key, and none that the reader may not see is read on the way.
"""

_PAST = (
    "({row}.status IN ('archived', 'retracted') OR ({row}.status IN ('superseded', 'expired') "
    "AND ({row}.valid_to IS NULL OR {row}.valid_to <= {row}.updated_at)))"
)
_INDEXED = {
    "memories": (1, _PAST, "true"),
    "observations": (2, "({row}.status <> 'active')", "true"),
    "procedures": (3, "({row}.status <> 'active')", "true"),
    "outcomes": (4, "({row}.status <> 'active')", "true"),
    "entities": (5, "({row}.status <> 'active')", "{row}.declared"),
    "passages": (6, "false", "true"),
}
"""For each table: the kind of its postings, which of its rows are past, and which have postings at all.

What is superseded from a moment in the future on still holds, so it is past only when it is written again.
"""

_TEXTS = {
    "memories": "concat_ws(E'\\n', title, text)",
    "observations": "concat_ws(E'\\n', title, nullif(summary, ''))",
    "procedures": "concat_ws(E'\\n', title, nullif(summary, ''))",
    "outcomes": "concat_ws(E'\\n', title, nullif(summary, ''))",
    "passages": "text",
}
"""What the search vectors of a table are made of; those of entities are generated."""

_NAMED = "name || ' ' || memory_os_text_of(aliases) || ' ' || coalesce(summary, '')"
_BATCH = 2_000


def upgrade() -> None:
    """Make the tables, write the search vectors of all rows anew so that stems are told apart, and fill them."""
    _functions()
    _tables()
    for table in ("memories", "observations", "procedures", "outcomes", "entities", "passages"):
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE postings NO FORCE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE entities ALTER COLUMN search SET EXPRESSION AS (memory_os_text_vector({_NAMED}))")
    for table, texts in _TEXTS.items():
        _write_anew(table, texts)
    for table in _INDEXED:
        op.execute(_filled(table, table))
    op.execute("ALTER TABLE postings ADD PRIMARY KEY (tenant_id, term, impact, record_id, kind) INCLUDE (reader)")
    op.execute("CREATE INDEX postings_of_records ON postings (tenant_id, term, reader) WHERE impact = 0")
    op.execute("ALTER TABLE postings FORCE ROW LEVEL SECURITY")
    for table in _INDEXED:
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        _follow(table)


def downgrade() -> None:
    """Drop them. Labelled positions stay in the search vectors, which the older revision reads as well."""
    for table in _INDEXED:
        op.execute(f"DROP FUNCTION index_words_of_{table}() CASCADE")
    op.execute("DROP TABLE text_frequencies")
    op.execute("DROP TABLE postings")
    op.execute(f"ALTER TABLE entities ALTER COLUMN search SET EXPRESSION AS (to_tsvector('simple', {_NAMED}))")
    for function in (
        "memory_os_postings(tsvector, text, text, text[], text[], boolean)",
        "memory_os_impact(integer, integer)",
        "memory_os_frequency(tsvector, tsquery)",
        "memory_os_term(bigint, text)",
        "memory_os_scope(text, boolean)",
        "memory_os_text_vector(text)",
    ):
        op.execute(f"DROP FUNCTION {function}")


def _functions() -> None:
    # The positions of stems have the label D and those of the words as they stand the label C: ts_filter parts them.
    op.execute("""
    CREATE FUNCTION memory_os_text_vector(words text) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN to_tsvector('pg_catalog.english', words) || setweight(to_tsvector('pg_catalog.simple', words), 'C')""")
    op.execute("""
    CREATE FUNCTION memory_os_scope(reader text, past boolean) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN hashtextextended(CASE WHEN past THEN 'p' ELSE 'l' END || reader, 0)""")
    op.execute("""
    CREATE FUNCTION memory_os_term(scope bigint, lexeme text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN hashtextextended(lexeme, scope)""")
    # The document's side of BM25: k1 = 1.2, b = 0.3, and the length that counts as usual (domain/text_ranking.py). The
    # length is the number of different stems, which costs nothing to know.
    op.execute("""
    CREATE FUNCTION memory_os_impact(occurrences integer, length integer) RETURNS real
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (occurrences * 2.2::float8 / (occurrences + 1.2::float8 * (0.7::float8 + 0.3::float8 * length / 16)))::real
    """)
    # ts_rank of one word is the sum of 1/i^2 for its occurrences, divided by what the sum tends to: to read how often
    # it occurs from that costs a twentieth of unpacking the vector.
    op.execute("""
    CREATE FUNCTION memory_os_frequency(search tsvector, word tsquery) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN round(1 / (1.64493406685 * (1 - ts_rank('{1,0,0,0}', search, word)::float8)) - 0.5)::integer""")
    # A posting for each stem and reader, and one of impact 0 for the record itself, whose term is that of no word.
    op.execute("""
    CREATE FUNCTION memory_os_postings(
        search tsvector, visibility text, user_id text, reader_users text[], reader_groups text[], past boolean
    ) RETURNS TABLE (term bigint, impact real, reader text)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 20 AS $$
        WITH stems AS MATERIALIZED (SELECT ts_filter(search, '{d}') AS words),
        readers AS MATERIALIZED (
            SELECT '' AS reader WHERE visibility = 'tenant'
            UNION SELECT 'u' || user_id WHERE visibility <> 'tenant' AND user_id IS NOT NULL
            UNION SELECT 'u' || one FROM unnest(reader_users) AS one
            WHERE visibility = 'restricted' AND one IS NOT NULL
            UNION SELECT 'g' || one FROM unnest(reader_groups) AS one
            WHERE visibility = 'restricted' AND one IS NOT NULL
        )
        SELECT memory_os_term(memory_os_scope(r.reader, past), s.lexeme), s.impact, r.reader
        FROM readers AS r CROSS JOIN (
            SELECT w.lexeme, memory_os_impact(cardinality(w.positions), length(stems.words)) AS impact
            FROM stems CROSS JOIN LATERAL unnest(stems.words) AS w
            UNION ALL SELECT '', 0
        ) AS s
    $$""")


def _tables() -> None:
    # One row for each stem of a record and each of its readers: '' is everybody in the tenant, 'u' and a user, 'g' and
    # a group. `term` is a hash of who reads it, whether it is past, and the stem; `impact` is the document's side of
    # BM25, and 0 in the one row that stands for the record.
    op.execute("""
    CREATE TABLE postings (
        tenant_id uuid NOT NULL,
        term bigint NOT NULL,
        impact real NOT NULL,
        kind smallint NOT NULL CHECK (kind BETWEEN 1 AND 6),
        record_id uuid NOT NULL,
        reader text NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05)""")
    seen = f"{SAME_TENANT} AND (reader = ANY ({_MINE}::text[]) OR {IS_STEWARD})"
    enable_tenancy("postings", seen=seen, owner="true", app="SELECT", worker_grants="SELECT")
    # How many records a common word stands in, by term; the term of no word counts the records. It only saves the
    # counting of long lists, and is as exact as it is new. What is of a user goes with the user's erasure.
    op.execute("""
    CREATE TABLE text_frequencies (
        tenant_id uuid NOT NULL,
        term bigint NOT NULL,
        reader text NOT NULL,
        records bigint NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (tenant_id, term)
    )""")
    enable_tenancy("text_frequencies", seen=seen, app="SELECT, DELETE", worker_grants="SELECT, INSERT, DELETE")


def _write_anew(table: str, texts: str) -> None:
    """Make the search vectors of a table's rows from their texts again, and tell how far it is."""
    connection = op.get_bind()
    total = connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()  # noqa: S608 - our own names
    if not total:
        return
    op.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    update = text(
        f"UPDATE {table} AS t SET search = memory_os_text_vector(n.words) "  # noqa: S608 - our own names
        "FROM unnest(CAST(:tenants AS uuid[]), CAST(:ids AS uuid[]), CAST(:words AS text[])) "
        "AS n (tenant_id, id, words) "
        "WHERE t.tenant_id = n.tenant_id AND t.id = n.id"
    )
    done, told = 0, time.monotonic()
    read = text(f"SELECT tenant_id, id, {texts} FROM {table}")  # noqa: S608 - our own names
    with connection.execute(read, execution_options={"yield_per": _BATCH}) as rows:
        for batch in rows.partitions():
            given = {
                "tenants": [row[0] for row in batch],
                "ids": [row[1] for row in batch],
                "words": [search_text(row[2]) for row in batch],
            }
            connection.execute(update, given)
            done += len(batch)
            if time.monotonic() - told > 1 or done == total:
                told = time.monotonic()
                sys.stderr.write(f"words of {table}: {done} of {total}\n")
    op.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def _computed(table: str, rows: str) -> str:
    """The postings of rows of a table, as a query."""
    kind, past, indexed = _INDEXED[table]
    return (
        f"SELECT r.tenant_id, w.term, w.impact, {kind} AS kind, r.id AS record_id, w.reader "  # noqa: S608 - our own names
        f"FROM {rows} AS r CROSS JOIN LATERAL memory_os_postings(r.search, r.visibility, r.user_id, r.reader_users, "
        f"r.reader_groups, {past.format(row='r')}) AS w WHERE {indexed.format(row='r')}"
    )


def _filled(table: str, rows: str) -> str:
    return f"INSERT INTO postings (tenant_id, term, impact, kind, record_id, reader) {_computed(table, rows)}"


def _follow(table: str) -> None:
    """Let the postings follow the rows of a table.

    What a posting was can be computed from the row as it was, so it is found by its whole key.
    """
    kind, past, indexed = _INDEXED[table]
    compared = "search, {row}.visibility, {row}.user_id, {row}.reader_users, {row}.reader_groups"
    was, now = (
        f"({name}.{compared.format(row=name)}, {past.format(row=name)}, {indexed.format(row=name)})"
        for name in ("o", "n")
    )
    changed = (
        f"SELECT {{row}}.* FROM old_rows AS o JOIN new_rows AS n ON n.tenant_id = o.tenant_id AND n.id = o.id "  # noqa: S608 - our own names
        f"WHERE {was} IS DISTINCT FROM {now}"
    )

    def removed(rows: str) -> str:
        return f"""
            DELETE FROM postings WHERE ctid = ANY (ARRAY(
                SELECT p.ctid FROM ({_computed(table, rows)}) AS gone CROSS JOIN LATERAL (
                    SELECT k.ctid FROM postings AS k
                    WHERE k.tenant_id = gone.tenant_id AND k.term = gone.term AND k.impact = gone.impact
                      AND k.record_id = gone.record_id AND k.kind = {kind} OFFSET 0
                ) AS p))"""  # noqa: S608 - our own names

    op.execute(f"""
    CREATE FUNCTION index_words_of_{table}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
    BEGIN
        IF TG_OP = 'INSERT' THEN
            {_filled(table, "new_rows")};
        ELSIF TG_OP = 'DELETE' THEN
            {removed("old_rows")};
        ELSE
            {removed(f"({changed.format(row='o')})")};
            {_filled(table, f"({changed.format(row='n')})")};
        END IF;
        RETURN NULL;
    END $$""")
    op.execute(f"ALTER FUNCTION index_words_of_{table}() OWNER TO memory_os_owner")
    op.execute(f"REVOKE ALL ON FUNCTION index_words_of_{table}() FROM PUBLIC")
    for event, transition in (
        ("INSERT", "NEW TABLE AS new_rows"),
        ("UPDATE", "OLD TABLE AS old_rows NEW TABLE AS new_rows"),
        ("DELETE", "OLD TABLE AS old_rows"),
    ):
        op.execute(
            f"CREATE TRIGGER index_words_{event.lower()} AFTER {event} ON {table} REFERENCING {transition} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION index_words_of_{table}()"
        )
