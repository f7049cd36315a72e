"""The text arm at growing sizes of a tenant: what a search, its raw reads, and the postings of a write cost.

Texts are of words whose popularity follows Zipf's law, so that every question has words of half the tenant's memories
and words of a few. Rows are filled in bulk; the searches are those of the product, under the policies of a reader.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from itertools import accumulate
from uuid import UUID

import psycopg
from sqlalchemy import text
from stack import Stores, add_tenants, parser, quantile, report, stores

from memory_os.domain.ids import new_id
from memory_os.domain.search_text import search_text
from memory_os.retrieval.arms import Window
from memory_os.retrieval.words import find_words, weigh_words
from memory_os.storage.database import Database, Scope

VOCABULARY, WORDS = 30_000, (8, 20)
NOW = Window(None, history=False)
FILL = """
INSERT INTO memories (tenant_id, id, label, layer, text, search)
SELECT tenant_id, id, 'Attribute', 'identity', words, memory_os_text_vector(words) FROM filling"""
POSTINGS = """
INSERT INTO postings (tenant_id, term, impact, kind, record_id, reader)
SELECT m.tenant_id, p.term, p.impact, 1, m.id, p.reader
FROM memories AS m CROSS JOIN LATERAL memory_os_postings(
    m.search, m.visibility, m.user_id, m.reader_users, m.reader_groups, false
) AS p """
"""All memories, every one of them living, into an empty table."""

COUNTS = """
INSERT INTO text_frequencies (tenant_id, term, reader, records)
SELECT tenant_id, term, reader, count(*) FROM postings
GROUP BY tenant_id, term, reader HAVING count(*) >= 500
ON CONFLICT DO NOTHING"""


class Corpus:
    """Random texts of the same words, the same for the same seed."""

    def __init__(self, seed: int = 5) -> None:
        self._source = random.Random(VOCABULARY)
        consonants, vowels = "bdfgklmnprstvz", "aeiou"
        made = {
            "".join(self._source.choice(consonants) + self._source.choice(vowels) for _ in range(4)): None
            for _ in range(VOCABULARY * 2)
        }
        self._words = list(made)[:VOCABULARY]
        self._source.seed(seed)
        self._popularity = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))

    def text(self) -> str:
        """A memory."""
        return " ".join(self._source.choices(self._words, cum_weights=self._popularity, k=self._source.randint(*WORDS)))

    def question(self) -> str:
        """Words as they come, common ones mostly, and two that are rare."""
        common = self._source.choices(self._words, cum_weights=self._popularity, k=6)
        return " ".join(["What did the", *common, *self._source.choices(self._words[500:5_000], k=2), "say?"])


def fill(connection: psycopg.Connection, corpus: Corpus, sizes: Sequence[tuple[UUID, int]]) -> None:
    """Memories of several tenants with their postings, and the counts of common words."""
    connection.execute("CREATE TEMPORARY TABLE filling (tenant_id uuid, id uuid, words text)")
    with connection.cursor() as cursor, cursor.copy("COPY filling FROM STDIN") as copy:
        for tenant_id, count in sizes:
            for _ in range(count):
                copy.write_row((tenant_id, new_id(), search_text(corpus.text())))
    connection.execute("SET session_replication_role = replica")
    connection.execute(FILL)
    connection.execute("SET session_replication_role = DEFAULT")
    connection.execute("ALTER TABLE postings DROP CONSTRAINT postings_pkey")
    connection.execute(POSTINGS)
    connection.execute(
        "ALTER TABLE postings ADD PRIMARY KEY (tenant_id, term, impact, record_id, kind) INCLUDE (reader)"
    )
    connection.execute(COUNTS)
    connection.execute("DROP TABLE filling")
    connection.commit()
    connection.autocommit = True
    connection.execute("VACUUM ANALYZE")
    connection.autocommit = False


async def search(database: Database, tenant_id: UUID, questions: Sequence[str]) -> dict[str, object]:
    """Milliseconds of reading a question and of finding, and of the bare reads that the search stands on."""
    scope = Scope("memory_os_app", tenant_id, "reader", "ada")
    times: dict[str, list[float]] = {"weigh": [], "find": [], "both": [], "raw": []}
    found = read = 0
    for question in questions:
        async with database.transaction(scope, plans="generic") as tx:
            started = time.perf_counter()
            words = await weigh_words(tx, question, NOW)
            weighed = time.perf_counter()
            found += len(await find_words(tx, words, NOW))
            ended = time.perf_counter()
            times["weigh"].append(weighed - started)
            times["find"].append(ended - weighed)
            times["both"].append(ended - started)
            given = {name: words.parameters()[name] for name in ("readers", "lexemes", "most")} | {"tenant": tenant_id}
            started = time.perf_counter()
            read += (await tx.run(text(RAW), given)).scalar_one()
            times["raw"].append(time.perf_counter() - started)
    warm = {name: values[len(values) // 5 :] for name, values in times.items()}
    return {
        "found": found / len(questions),
        "read": read / len(questions),
        **{
            f"{name}_ms": {
                "p50": round(statistics.median(values) * 1000, 2),
                "p95": round(quantile(values, 0.95) * 1000, 2),
            }
            for name, values in warm.items()
        },
    }


RAW = """
WITH lists AS MATERIALIZED (
    SELECT memory_os_term(memory_os_scope(reader, false), lexeme) AS term, most
    FROM unnest(CAST(:lexemes AS text[]), CAST(:most AS int[])) AS w (lexeme, most)
         CROSS JOIN unnest(CAST(:readers AS text[])) AS reader
)
SELECT count(*) FROM lists AS l CROSS JOIN LATERAL (
    SELECT record_id FROM postings AS p WHERE p.tenant_id = CAST(:tenant AS uuid) AND p.term = l.term
    ORDER BY impact DESC, record_id DESC, kind DESC LIMIT l.most
) AS p"""
"""As many postings as the search reads, from the index, and nothing done with them."""


def write(connection: psycopg.Connection, tenant_id: UUID, corpus: Corpus, count: int = 300) -> float:
    """Milliseconds of storing one memory, in a transaction of its own, without a vector or an event."""
    times = []
    for _ in range(count):
        words = search_text(corpus.text())
        started = time.perf_counter()
        connection.execute(
            "INSERT INTO memories (tenant_id, id, label, layer, text, search) "
            "VALUES (%s, %s, 'Attribute', 'identity', %s, memory_os_text_vector(%s))",
            (tenant_id, new_id(), words, words),
        )
        connection.commit()
        times.append(time.perf_counter() - started)
    return round(statistics.median(times) * 1000, 3)


def writes(on: Stores, tenant_id: UUID, corpus: Corpus) -> dict[str, float]:
    """The same with and without postings."""
    with psycopg.connect(on.owner_url) as connection:
        cost = {"with_postings_ms": write(connection, tenant_id, corpus)}
        connection.execute("ALTER TABLE memories DISABLE TRIGGER index_words_insert")
        connection.commit()
        cost["without_ms"] = write(connection, tenant_id, corpus)
        connection.execute("ALTER TABLE memories ENABLE TRIGGER index_words_insert")
        connection.commit()
    return cost


def main() -> None:
    """Fill, ask, write, and report."""
    options = parser(__doc__ or "", "python benchmarks/text_arm.py --rows 1000000")
    options.add_argument("--rows", type=int, default=300_000, help="memories of all tenants together")
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="of measured tenants")
    options.add_argument("--questions", type=int, default=300)
    given = options.parse_args()
    with stores() as on:
        measured = add_tenants(on, len(given.sizes))
        rest = max(0, given.rows - sum(given.sizes))
        others = add_tenants(on, 20)
        corpus = Corpus()
        sizes = [*zip(measured, given.sizes, strict=True), *((ident, rest // len(others)) for ident in others)]
        with psycopg.connect(on.owner_url) as connection:
            fill(connection, corpus, sizes)
        figures: dict[str, object] = {"rows": given.rows}
        for tenant_id, size in zip(measured, given.sizes, strict=True):
            questions = [corpus.question() for _ in range(given.questions)]
            figures[f"{size} memories"] = asyncio.run(_measure(on, tenant_id, questions))
        figures["insert"] = writes(on, measured[-1], corpus)
        report("text_arm", figures)


async def _measure(on: Stores, tenant_id: UUID, questions: Sequence[str]) -> dict[str, object]:
    database = Database(on.postgres.url("memory_os_app"), pool_size=1)
    try:
        return await search(database, tenant_id, questions)
    finally:
        await database.close()


if __name__ == "__main__":
    main()
