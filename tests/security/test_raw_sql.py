"""The database alone holds: who speaks raw SQL as the API's role learns nothing of what their principal may not read.

Neither by reading, changing, deleting and copying rows, nor by pointing at them: the refusal is that of an id which
nobody has. What is hidden, and where it must have left its rows, comes from the catalog and the worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg import sql
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.worker import drain
from tests.security.conftest import MakeWorld
from tests.security.hiding import SECRET, hide_records
from tests.security.prying import (
    KNOWN,
    Connection,
    Pointing,
    Principal,
    Prying,
    Reference,
    Row,
    Told,
    acting,
    is_granted,
    references,
    strangers,
)
from tests.security.worlds import STEPPING, World, tenant_tables

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

HIDE_NOTHING = {
    "tenants": "the tenant itself",
    "tokens": "who may come in; hashes",
    "idempotency_keys": "answers, sealed",
    "projection_leases": "who projects",
    "graph_rebuilds": "jobs; nothing of records",
    "graph_states": "how the graph is",
    "graph_verifications": "jobs; ids of what differs, which are looked up before they are told",
    "graph_tombstones": "left by deletions alone",
    "erasures": "receipts, for admins",
    "vector_partitions": "how large an index is",
    "vector_index": "only what all of the tenant may read",
    "audit_log": "for admins",
    "audit_contents": "for admins",
    "outbox_events": "the queue",
    "retrieval_items": "of a retrieval, which is hidden as a whole; it holds ids that were shown",
    "retrieval_feedback": "the same",
    "text_frequencies": "numbers of records with common words, of five hundred on",
    "cycle_schedules": "times",
    "cycle_runs": "jobs; numbers of changes, for reviewers, operators and admins",
    "cycle_actions": "ids and states, for the same",
}
"""Tables in which no row is hidden from some of those who see others, or which hold nothing of records."""


@dataclass(frozen=True)
class Scene:
    """A tenant in which a user hides things, and another tenant."""

    urls: DatabaseUrls
    mine: World
    other: World
    hidden: dict[str, str]

    def pry(self, principal: Principal) -> list[Told]:
        """Everything that a principal learns about what is hidden."""
        with acting(self.urls.app_url, self.mine.tenant.tenant_id, principal) as connection:
            prying = Prying(connection, principal, SECRET, list(self.hidden.values()))
            return [told for table in self.tables() for told in prying.pry(table)]

    def tables(self) -> list[str]:
        """Every table with rows of tenants."""
        with psycopg.connect(self.urls.owner_url) as owner:
            return tenant_tables(owner)


@pytest.fixture
async def scene(
    make_world: MakeWorld, client: httpx.AsyncClient, worker: WorkerContext, database_urls: DatabaseUrls
) -> Scene:
    mine, other = await make_world("zcanarya"), await make_world("zcanaryb")
    hidden = await hide_records(client, mine)
    await drain(worker)
    return Scene(database_urls, mine, other, dict(hidden.ids))


async def test_what_is_hidden_has_rows_in_every_table_and_its_user_sees_them(scene: Scene) -> None:
    keeper = Principal("keeper", "writer", scene.mine.user)
    holding = {told.table for told in scene.pry(keeper) if told.command == "SELECT"}
    assert set(scene.tables()) - HIDE_NOTHING.keys() - holding == set()


async def test_nobody_else_reads_changes_copies_or_deletes_a_hidden_row(scene: Scene) -> None:
    assert [told for principal in strangers(scene.mine.user) for told in scene.pry(principal)] == []


async def test_the_planners_statistics_show_no_values(scene: Scene) -> None:
    with psycopg.connect(scene.urls.owner_url, autocommit=True) as owner:
        owner.execute("ANALYZE")
    for principal in strangers(scene.mine.user):
        with acting(scene.urls.app_url, scene.mine.tenant.tenant_id, principal) as connection:
            shown = connection.execute(
                "SELECT tablename, attname FROM pg_stats WHERE tablename = ANY (%s)", (scene.tables(),)
            ).fetchall()
            assert shown == []


@pytest.mark.parametrize("command", ["INSERT", "UPDATE"])
async def test_to_point_at_what_is_hidden_is_answered_like_pointing_at_nothing(scene: Scene, command: str) -> None:
    differing, refused = _point(scene, command)
    assert differing == []
    with psycopg.connect(scene.urls.owner_url) as owner:
        keys = {(one.table, one.column) for one in references(owner) if one.is_key}
    assert refused >= keys - UNSEEN_KEYS


def _point(scene: Scene, command: str, only: str = "") -> tuple[list[tuple[str, ...]], set[tuple[str, str]]]:
    """What is answered otherwise than for an id that nobody has, and the columns in which that one is refused."""
    theirs = {
        f"the other tenant's {kind}": scene.other.ids[kind] for kind in ("memory", "entity", "source", "retrieval")
    }
    targets = {kind: ident for kind, ident in {**scene.hidden, **theirs}.items() if kind not in STEPPING}
    with psycopg.connect(scene.urls.owner_url) as owner:
        found = [one for one in references(owner) if only in ("", one.table)]
    differing: list[tuple[str, ...]] = []
    refused: set[tuple[str, str]] = set()
    with acting(scene.urls.app_url, scene.mine.tenant.tenant_id, Principal("nobody", "writer")) as connection:
        for reference in found:
            row = _seen_row(connection, reference)
            if row is None:
                continue
            pointing = Pointing(connection, reference, row)
            absent: dict[str, tuple[str, ...]] = {}
            for kind, ident in targets.items():
                layer = _layer(reference, kind)
                if (name := layer.get("layer", "")) not in absent:
                    absent[name] = pointing.answer_to(command, {reference.column: str(uuid4()), **layer})
                expected = absent[name]
                answered = pointing.answer_to(command, {reference.column: ident, **layer})
                if answered != expected:
                    differing.append((reference.table, reference.column, kind, *answered, *expected))
                if expected != ("stored",):
                    refused.add((reference.table, reference.column))
    return differing, refused


@pytest.mark.parametrize(
    ("change", "table"),
    [
        ("ALTER POLICY evidence_app ON evidence USING (true)", "evidence"),
        ("ALTER POLICY edges_app ON edges USING (tenant_id IS NOT NULL) WITH CHECK (true)", "edges"),
        ("ALTER TABLE passages DISABLE ROW LEVEL SECURITY", "passages"),
    ],
)
async def test_prying_notices_a_hole(scene: Scene, change: str, table: str) -> None:
    with psycopg.connect(scene.urls.owner_url) as owner:
        owner.execute(change)
    assert table in {told.table for told in scene.pry(Principal("nobody", "reader"))}


@pytest.mark.parametrize(
    ("change", "table"),
    [
        ('DROP TRIGGER "A_vector_of_seen" ON memory_embeddings', "memory_embeddings"),
        ("DROP TRIGGER corrected_by_seen ON corrections", "corrections"),
        ("ALTER POLICY entity_names_app ON entity_names WITH CHECK (true)", "entity_names"),
    ],
)
async def test_pointing_notices_a_hole(scene: Scene, change: str, table: str) -> None:
    with psycopg.connect(scene.urls.owner_url) as owner:
        owner.execute(change)
    assert table in {found[0] for found in _point(scene, "INSERT", table)[0]}


UNSEEN_KEYS = {
    ("audit_contents", "audit_id"),  # admins alone see rows of it; the id of an entry is told to nobody else
    ("cycle_actions", "run_id"),  # of reviewers, operators and admins
}
"""Foreign keys of which no row can be shown to those who try."""


def _seen_row(connection: Connection, reference: Reference) -> Row | None:
    """A row of the table that the principal sees, one with something in the column if there is one."""
    if not is_granted(connection, reference.table, "SELECT"):
        return None
    row = connection.execute(
        sql.SQL("SELECT to_jsonb(t) FROM {} t ORDER BY {} IS NULL LIMIT 1").format(
            sql.Identifier(reference.table), sql.Identifier(reference.column)
        )
    ).fetchone()
    return dict(row[0]) if row else None


def _layer(reference: Reference, kind: str) -> dict[str, str]:
    """For a link: the layer that makes it point at a record of that kind."""
    layers = [layer for layer in ("entity", "memory", "observation", "procedure", "outcome", "source") if layer in kind]
    return {"layer": layers[-1]} if reference.column == "target_id" and layers else {}


def test_what_is_known_is_still_there(database_urls: DatabaseUrls) -> None:
    with psycopg.connect(database_urls.owner_url) as connection:
        rows = connection.execute(
            "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public'"
        )
        assert KNOWN.keys() <= {row[0] for row in rows}
        assert HIDE_NOTHING.keys() <= set(tenant_tables(connection))
